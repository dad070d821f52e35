/* SPDX-License-Identifier: Apache-2.0 */

/* A path matches a route part by part. What stands for {job} and {node} are names as they can be:
 * letters, digits and a few marks (those of "25_[4,6-9%2]" among them), so no path leads anywhere
 * but into the state. */

#include "api/routes.h"

#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct route routes[] = {
    {"GET", "/v1/jobs", FOR_USERS, get_jobs},
    {"GET", "/v1/jobs/{job}", FOR_USERS, get_job},
    {"GET", "/v1/jobs/{job}/attempts", FOR_USERS, get_attempts},
    {"GET", "/v1/jobs/{job}/events", FOR_USERS, get_job_events},
    {"POST", "/v1/jobs/{job}/mode", FOR_USERS, post_mode},
    {"GET", "/v1/incidents", FOR_USERS, get_incidents},
    {"GET", "/v1/decisions", FOR_USERS, get_decisions},
    {"POST", "/v1/decisions/{seq}/approve", FOR_USERS, post_approve},
    {"POST", "/v1/decisions/{seq}/reject", FOR_USERS, post_reject},
    {"POST", "/v1/freeze", FOR_OPERATORS, post_freeze},
    {"POST", "/v1/thaw", FOR_OPERATORS, post_thaw},
    {"GET", "/v1/nodes", FOR_OPERATORS, get_nodes},
    {"GET", "/v1/nodes/{node}", FOR_USERS, get_node},
    {"POST", "/v1/nodes/{node}/resume", FOR_OPERATORS, post_resume},
    {"POST", "/v1/rearm", FOR_OPERATORS, post_rearm},
    {"GET", "/v1/fleet", FOR_OPERATORS, get_fleet},
    {"POST", "/v1/ingest/alertmanager", FOR_MONITORS, post_alertmanager},
    {"GET", "/v1/agents", FOR_OPERATORS, get_agents},
    {"GET", "/v1/events", FOR_USERS, get_events},
    {"GET", "/v1/health", FOR_USERS, get_health},
    {"GET", "/v1/openapi.json", FOR_USERS, get_openapi},
    {"GET", "/metrics", FOR_OPERATORS, get_metrics},
    {NULL},
};

static bool take_name(const char *part, size_t len, char *ret, size_t size)
{
    static const char good[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+@[],:%";

    if (len == 0 || len >= size || strchr(".-[],:%", part[0]) || strspn(part, good) < len)
        return false;
    return str_copy_n(ret, size, part, len);
}

static bool take_seq(const char *part, size_t len, uint64_t *ret)
{
    char text[24];
    long long v;

    if (len == 0 || len >= sizeof(text) || strspn(part, "0123456789") < len)
        return false;
    str_copy_n(text, sizeof(text), part, len);
    if (str_to_i64(text, &v) < 0)
        return false;
    *ret = (uint64_t)v;
    return true;
}

static bool take_part(const char *pattern, size_t pattern_len, const char *part, size_t len,
                      struct route_params *ret)
{
    if (pattern[0] != '{')
        return pattern_len == len && strncmp(pattern, part, len) == 0;
    if (pattern_len == 5 && strncmp(pattern, "{seq}", 5) == 0)
        return take_seq(part, len, &ret->seq);
    return take_name(part, len, ret->name, sizeof(ret->name));
}

static bool matches(const char *pattern, const char *path, struct route_params *ret)
{
    while (*pattern == '/' && *path == '/') {
        size_t n = strcspn(++pattern, "/"), m = strcspn(++path, "/");

        if (!take_part(pattern, n, path, m, ret))
            return false;
        pattern += n;
        path += m;
    }
    return *pattern == '\0' && *path == '\0';
}

const struct route *route_find(const char *method, const char *path, struct route_params *ret,
                               char ret_allow[32])
{
    size_t n = 0;

    ret_allow[0] = '\0';
    for (const struct route *r = routes; r->method; r++) {
        struct route_params params = {0};

        if (!matches(r->path, path, &params))
            continue;
        if (streq(r->method, method)) {
            *ret = params;
            return r;
        }
        n += (size_t)snprintf(ret_allow + n, 32 - n, "%s%s", n > 0 ? ", " : "", r->method);
    }
    return NULL;
}

void answer_no_journal(struct api_answer *a, const struct err *e)
{
    answer_error(a, 503, "the journal cannot be read: %s", e->text);
}

bool answer_found(struct store *store, const struct api_request *r, const char *name,
                  struct found_job *ret, struct api_answer *a)
{
    struct err e = {0};
    int error = store_find_job(store, r->asker, name, ret, &e);

    if (error == -ENOENT)
        answer_error(a, 404,
                     "there is no job '%s' that you may see and Reknit watches or remembers; "
                     "'#SBATCH --comment=reknit' opts a job in",
                     name);
    else if (error < 0)
        answer_no_journal(a, &e);
    return error >= 0;
}

static bool may_ask(const struct route *route, const struct asker *who)
{
    if (who->is_operator)
        return true;
    return route->whom == (who->is_monitor ? FOR_MONITORS : FOR_USERS);
}

void route_answer(struct store *store, const struct api_request *r, struct api_answer *ret)
{
    /* To a HEAD, what GET says is sent without its text. */
    const char *method = streq(r->method, "HEAD") ? "GET" : r->method;
    struct route_params params;
    char allow[32];
    const struct route *route = route_find(method, r->path, &params, allow);

    memset(ret, 0, sizeof(*ret));
    if (!route && allow[0]) {
        answer_error(ret, 405, "not with %s", r->method);
        ret->allow = streq(allow, "GET") ? "GET, HEAD" : "POST";
    } else if (!route) {
        answer_error(ret, 404, "there is nothing at %s; /v1/openapi.json tells what there is",
                     r->path);
    } else if (!r->asker->known) {
        answer_error(ret, 401, "%s",
                     r->asker->why ? r->asker->why
                                   : "who are you? A token or credential is wanted");
    } else if (!may_ask(route, r->asker)) {
        answer_error(ret, 403, "%s",
                     r->asker->is_monitor
                         ? "a monitor's token is for /v1/ingest alone"
                         : "for operators only: root, the scheduler's user, reknitd's own, "
                           "and the group that 'operators' in reknitd.yaml names");
    } else {
        route->fn(store, r, &params, ret);
    }
}
