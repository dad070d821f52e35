/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cluster.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/options.h"
#include "wire/codec.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGES_MAX 10000 /* a daemon that never comes to an end is not believed */

/* "[2-9%1]", and what is left of it where somebody cut it short. */
static bool is_array_rest(const char *s)
{
    size_t n = *s == '[' ? 1 + strspn(s + 1, "0123456789,-:%.") : 0;

    return n > 0 && (s[n] == '\0' || streq(s + n, "]"));
}

bool cluster_is_job(const char *name)
{
    size_t n = strspn(name, "0123456789"), m;

    if (n == 0 || name[n] == '\0')
        return n > 0;
    if (name[n] == '_' && is_array_rest(name + n + 1))
        return true;
    m = strspn(name + n + 1, "0123456789");
    return strchr("-_+", name[n]) && m > 0 && name[n + 1 + m] == '\0';
}

const char *cluster_text(const json_t *j, const char *key)
{
    const char *s = json_string_value(json_object_get(j, key));

    return s ? s : "";
}

int64_t cluster_number(const json_t *j, const char *key, int64_t absent)
{
    const json_t *v = json_object_get(j, key);

    return json_is_integer(v) ? json_integer_value(v) : absent;
}

int cluster_path(const char *name, const char *rest, char *ret, size_t size, struct err *e)
{
    char escaped[256], some[64]; /* of a long list of an array's tasks the beginning says which */

    if (!isalnum((unsigned char)name[0]))
        return err_set(e, -EINVAL,
                       "'%s' is no job: a number (4242, 25_3), or a key as 'reknit jobs' shows it",
                       name);
    STR_COPY(some, name);
    client_escape(some, escaped, sizeof(escaped));
    str_printf(ret, size, "/v1/jobs/%s%s", escaped, rest);
    return 0;
}

int cluster_job(const char *name, json_t **ret, struct err *e)
{
    char path[300];
    int r = cluster_path(name, "", path, sizeof(path), e);

    return r < 0 ? r : client_get(path, ret, e);
}

/* Whether there is a further page, and its path. */
static bool next_page(const json_t *page, const char *path, const char *next, char *ret,
                      size_t size)
{
    const json_t *v = json_object_get(page, "next");
    char value[256];

    if (json_is_integer(v)) {
        snprintf(value, sizeof(value), "%" PRId64, (int64_t)json_integer_value(v));
    } else if (json_is_string(v)) {
        client_escape(json_string_value(v), value, sizeof(value));
    } else {
        return false;
    }
    return snprintf(ret, size, "%s&%s=%s", path, next, value) < (int)size;
}

int cluster_each(const char *path, const char *name, const char *next,
                 int (*fn)(void *ctx, json_t *element), void *ctx, struct err *e)
{
    char at[1024];

    STR_COPY(at, path);
    for (int n = 0; n < PAGES_MAX; n++) {
        json_t *page = NULL, *v;
        bool more;
        size_t i;
        int r = client_get(at, &page, e);

        if (r < 0)
            return r;
        json_array_foreach (json_object_get(page, name), i, v)
            if (r >= 0)
                r = fn(ctx, v);
        more = next_page(page, path, next, at, sizeof(at));
        json_decref(page);
        if (r != 0 || !more)
            return r < 0 ? r : 0;
    }
    return err_set(e, -E2BIG, "reknitd's answer has no end");
}

struct reading {
    struct story *story;
    struct err *e;
};

static int add_event(void *ctx, json_t *element)
{
    struct reading *r = ctx;
    _cleanup_(freep) struct event *event = xnew(struct event);
    int error = codec_json_event(element, event, r->e);

    if (error < 0)
        return err_prefix(r->e, error, "an event that this release does not understand");
    story_add(r->story, event);
    return 0;
}

int cluster_story(const char *name, struct story *ret, struct err *e)
{
    struct reading r = {.story = ret, .e = e};
    char path[320];
    int error = cluster_path(name, "/events?thin=1&limit=500", path, sizeof(path), e);

    return error < 0 ? error : cluster_each(path, "events", "after", add_event, &r, e);
}

int cluster_show(const char *path, bool json, void (*print)(const json_t *v))
{
    struct err e = {0};
    json_t *v = NULL;

    if (client_get(path, &v, &e) < 0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    if (json) {
        json_dumpf(v, stdout, JSON_SORT_KEYS | JSON_COMPACT);
        putchar('\n');
    } else {
        print(v);
    }
    json_decref(v);
    return EXIT_OK;
}
