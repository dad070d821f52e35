/* SPDX-License-Identifier: Apache-2.0 */

/* How the daemon itself is, and the agents of the nodes. */

#include "api/metrics.h"
#include "api/openapi.h"
#include "api/routes.h"
#include "api/views.h"
#include "base/str.h"
#include "core/plan/scheduled.h"

#include <inttypes.h>
#include <string.h>

/* Agents */

struct agent_page {
    json_t *list;
    const char *after; /* a node; "" = from the first */
    bool gone;         /* only those that are */
    size_t limit;
    char next[NODE_NAME_LEN];
};

static json_t *view_agent(const struct api_agent *a)
{
    json_t *v = json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "node", a->node,
                          "connected", a->connected, "behind_us", (json_int_t)a->behind, "dropped",
                          (json_int_t)a->dropped, "refused", (json_int_t)a->refused, "watched",
                          (json_int_t)a->watched, "missed", (json_int_t)a->missed, "kernel_gaps",
                          (json_int_t)a->kernel_gaps, "kernel_lost", (json_int_t)a->kernel_lost);

    view_time(v, "heard_us", a->heard);
    view_text(v, "version", a->version);
    view_text(v, "kernel_trouble", a->kernel_trouble);
    return v;
}

static bool take_agent(void *ctx, const struct api_agent *a)
{
    struct agent_page *p = ctx;

    if (strcmp(a->node, p->after) <= 0 || (p->gone && a->connected))
        return true;
    if (json_array_size(p->list) == p->limit)
        return false;
    json_array_append_new(p->list, view_agent(a));
    STR_COPY(p->next, a->node);
    return true;
}

void get_agents(struct store *store, const struct api_request *r, const struct route_params *p,
                struct api_answer *ret)
{
    const char *after = request_arg(r, "after");
    struct agent_page page = {.after = after ? after : "", .gone = request_arg(r, "gone")};
    json_t *answer;

    if (!request_limit(r, &page.limit, ret))
        return;
    page.list = json_array();
    store->backend.agents(store->ctx, take_agent, &page);
    answer = json_pack("{s:o, s:I}", "agents", page.list, "now_us", (json_int_t)store_now(store));
    if (json_array_size(page.list) == page.limit)
        json_object_set_new(answer, "next", json_string(page.next));
    answer_json(ret, 200, answer);
}

/* Health */

static json_t *view_adapter(const struct api_status *s)
{
    json_t *j =
        json_pack("{s:b, s:I, s:I}", "ok", s->adapter_ok, "errors", (json_int_t)s->adapter_errors,
                  "restarts", (json_int_t)s->adapter_restarts);

    view_text(j, "state", s->adapter);
    view_time(j, "last_look_us", s->last_look);
    return j;
}

#define GONE_NAMED_MAX 20

static bool name_gone(void *ctx, const struct api_agent *a)
{
    json_t *list = ctx;

    if (!a->connected)
        json_array_append_new(list, json_string(a->node));
    return json_array_size(list) < GONE_NAMED_MAX;
}

static json_t *view_agents(const struct store *store, const struct api_agents *c)
{
    json_t *gone = json_array();

    store->backend.agents(store->ctx, name_gone, gone);
    return json_pack("{s:b, s:I, s:I, s:o, s:I, s:I, s:I}", "listening", c->listening, "connected",
                     (json_int_t)c->connected, "gone", (json_int_t)c->gone, "gone_nodes", gone,
                     "messages", (json_int_t)c->messages, "refused", (json_int_t)c->refused,
                     "dropped", (json_int_t)c->dropped);
}

static json_t *view_webhook(const struct api_webhook *w)
{
    json_t *v =
        json_pack("{s:b, s:I, s:I, s:I}", "configured", w->configured, "sent", (json_int_t)w->sent,
                  "given_up", (json_int_t)w->given_up, "pending", (json_int_t)w->pending);

    view_text(v, "trouble", w->trouble);
    return v;
}

static json_t *view_readers(const struct api_status *s)
{
    json_t *v =
        json_pack("{s:I, s:I, s:I, s:I, s:I}", "running", (json_int_t)s->readers, "on_nodes",
                  (json_int_t)s->readers_on_nodes, "hung", (json_int_t)s->readers_hung, "replaced",
                  (json_int_t)s->readers_replaced, "unread", (json_int_t)s->unread);

    view_text(v, "unread_job", s->unread_job);
    view_text(v, "unread_why", s->unread_why);
    return v;
}

static json_t *view_holds(const struct model *m)
{
    const struct job *one = NULL;
    json_int_t n = 0;
    json_t *v;

    VEC_FOREACH (&m->jobs, j) {
        if (!view_is_held_unnoted(*j))
            continue;
        one = *j;
        n++;
    }
    v = json_pack("{s:I}", "unnoted", n);
    view_text(v, "unnoted_job", one ? one->sched.label : "");
    return v;
}

static void add_for_operators(json_t *v, const struct store *store, const struct api_status *s)
{
    char hash[20];

    json_object_set_new(v, "readers", view_readers(s));
    json_object_set_new(v, "agents", view_agents(store, &s->agents));
    json_object_set_new(v, "webhook", view_webhook(&s->webhook));
    json_object_set_new(v, "holds", view_holds(store_model(store)));
    STR_PRINTF(hash, "%016" PRIx64, s->config_hash);
    view_text(v, "config_file", s->config);
    view_text(v, "config_hash", hash);
    json_object_set_new(v, "loop_lag_us", json_integer(store->loop_lag));
    json_object_set_new(v, "journal",
                        json_pack("{s:I, s:I, s:I}", "bytes", (json_int_t)s->journal_bytes, "seq",
                                  (json_int_t)store_model(store)->seq, "lost",
                                  (json_int_t)s->journal_lost));
}

void get_health(struct store *store, const struct api_request *r, const struct route_params *p,
                struct api_answer *ret)
{
    const struct model *m = store_model(store);
    struct api_status s = {0};
    json_t *v;

    store->backend.status(store->ctx, &s);
    v = json_pack("{s:b, s:b, s:b}", "ok", s.adapter_ok && !s.tilt, "frozen", m->frozen, "storm",
                  brakes_see_storm(m));
    view_text(v, "version", s.version);
    view_text(v, "cluster", s.cluster);
    json_object_set_new(v, "mode", json_string(mode_name(s.mode)));
    view_text(v, "tilt", s.tilt);
    view_time(v, "started_us", s.started);
    view_time(v, "now_us", store_now(store));
    json_object_set_new(v, "adapter", view_adapter(&s));
    if (r->asker->is_operator)
        add_for_operators(v, store, &s);
    answer_json(ret, 200, v);
}

void get_openapi(struct store *store, const struct api_request *r, const struct route_params *p,
                 struct api_answer *ret)
{
    answer_text(ret, "application/json", xstrdup(openapi_json));
}

void get_metrics(struct store *store, const struct api_request *r, const struct route_params *p,
                 struct api_answer *ret)
{
    struct api_status s = {0};

    store->backend.status(store->ctx, &s);
    answer_text(ret, "text/plain; version=0.0.4; charset=utf-8",
                metrics_text(store->metrics, store, &s));
}
