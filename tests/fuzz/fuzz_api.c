/* SPDX-License-Identifier: Apache-2.0 */

/* A request: "METHOD PATH QUERY\n" and the body. Whatever it is, there is an
 * answer; who is not known learns nothing, and who is no operator commands
 * nothing. */

#include "api/routes.h"
#include "base/str.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct model *model;
static unsigned submitted;

static const struct model *get_model(void *ctx)
{
    return model;
}

static usec_t get_now(void *ctx)
{
    return USEC_PER_SEC;
}

static int submit(void *ctx, const struct event *e, struct err *err)
{
    submitted++;
    assert(event_is_sane(e));
    return 0;
}

static void get_status(void *ctx, struct api_status *ret)
{
    *ret = (struct api_status){.version = "0", .adapter = "connected"};
}

/* The query is the value of every argument. */
static const char *get_arg(void *ctx, const char *name)
{
    const char *value = ctx;

    return value[0] ? value : NULL;
}

static void tell_agents(void *ctx, bool (*fn)(void *fn_ctx, const struct api_agent *a),
                        void *fn_ctx)
{
    fn(fn_ctx, &(struct api_agent){.node = "n1", .version = "1"});
}

static struct store *make_desk(void)
{
    static const struct api_backend b = {.model = get_model,
                                         .now = get_now,
                                         .submit = submit,
                                         .status = get_status,
                                         .agents = tell_agents,
                                         .journal = "/nonexistent/journal.db"};
    struct event e = {.kind = EVENT_JOB_SEEN, .seq = 1, .time_us = 1, .job = "4242-1"};

    model = model_new();
    e.seen = (struct job_facts){.scheduled = true, .id = 4242, .uid = 1000};
    model_apply(model, &e);
    return store_new(&b, NULL);
}

static void ask(struct store *d, struct api_request *r, const struct asker *who)
{
    _cleanup_answer_ struct api_answer a = {0};
    unsigned before = submitted;

    r->asker = who;
    route_answer(d, r, &a);
    assert(a.status >= 200 && a.status < 600);
    assert(a.stream || (a.text && a.len == strlen(a.text)));
    assert(who->known || a.status >= 400);
    assert(submitted == before || who->is_operator);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct asker root = {.known = true, .is_operator = true, .name = "root"};
    static const struct asker other = {.known = true, .uid = 1001, .name = "other"};
    static const struct asker nobody = {0};
    char *text = strndup((const char *)data, size), *save = NULL, *line;
    const char *newline = memchr(data, '\n', size);
    struct store *d = make_desk();
    struct api_request r = {.arg = get_arg};

    if (newline) {
        r.body = newline + 1;
        r.body_len = size - (size_t)(newline + 1 - (const char *)data);
    }
    text[strcspn(text, "\n")] = '\0';
    line = text;
    r.method = strtok_r(line, " ", &save);
    r.path = r.method ? strtok_r(NULL, " ", &save) : NULL;
    r.arg_ctx = save ? save : (char *)"";
    r.method = r.method ? r.method : "";
    r.path = r.path ? r.path : "";
    ask(d, &r, &root);
    ask(d, &r, &other);
    ask(d, &r, &nobody);
    store_free(d);
    model_free(model);
    free(text);
    return 0;
}
