/* SPDX-License-Identifier: Apache-2.0 */

/* What is known of a node, and how the daemon itself is. */

#include "api/metrics.h"
#include "api/openapi.h"
#include "api/routes.h"
#include "api/views.h"
#include "base/str.h"
#include "core/plan/scheduled.h"

#include <inttypes.h>
#include <string.h>

#define VERDICTS_MAX 2000 /* of the past that are looked through for a node */
#define BLAMED_MAX   50

/* Nodes */

static bool names_node(const struct culprits *c, const char *node)
{
    for (uint32_t i = 0; i < c->n_nodes; i++)
        if (streq(c->nodes[i], node))
            return true;
    return false;
}

static json_t *blamed_in(const struct event *e)
{
    json_t *v = json_pack("{s:s, s:I, s:I, s:s, s:s, s:i}", "job", e->job, "attempt",
                          (json_int_t)e->attempt, "seq", (json_int_t)e->seq, "class",
                          incident_class_name(e->incident.class), "cause",
                          cause_name(e->incident.cause), "confidence", (int)e->incident.confidence);

    view_time(v, "time_us", e->time_us);
    view_text(v, "summary", e->incident.summary);
    return v;
}

static int list_blame(struct store *store, const struct asker *who, const char *node, json_t *list,
                      struct err *e)
{
    struct journal_choice c = {.kinds = UINT64_C(1) << EVENT_VERDICT, .newest_first = true};
    _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;
    _cleanup_(freep) struct event *event = xnew(struct event);
    int r = store_select(store, &c, &cursor, e);

    for (size_t rows = 0; r >= 0 && rows < VERDICTS_MAX && json_array_size(list) < BLAMED_MAX &&
                          (r = journal_next(cursor, event, e)) > 0;
         rows++)
        if (names_node(&event->incident.culprits, node) && store_shows(store, who, event->job))
            json_array_append_new(list, blamed_in(event));
    return r;
}

static json_t *list_kept_out(const struct store *store, const struct asker *who, const char *node)
{
    const struct model *m = store_model(store);
    json_t *list = json_array();

    VEC_FOREACH (&m->jobs, at) {
        const struct job *j = *at;

        for (uint32_t i = 0; access_sees(who, j->sched.uid) && i < j->sched.n_kept; i++)
            if (streq(j->sched.kept[i].node, node) && sched_keeps_out(m, j, i) &&
                json_array_size(list) < PAGE_MAX)
                json_array_append_new(list, json_pack("{s:s, s:I}", "job", j->name, "until_us",
                                                      (json_int_t)j->sched.kept[i].until));
    }
    return list;
}

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
    json_t *v = json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:I}", "node", a->node, "connected",
                          a->connected, "behind_us", (json_int_t)a->behind, "dropped",
                          (json_int_t)a->dropped, "refused", (json_int_t)a->refused, "watched",
                          (json_int_t)a->watched, "missed", (json_int_t)a->missed);

    view_time(v, "heard_us", a->heard);
    view_text(v, "version", a->version);
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

static json_t *view_node(const struct store *store, const char *node)
{
    struct api_node n;
    json_t *v;

    if (!store->backend.node(store->ctx, node, &n))
        return NULL;
    v = json_pack("{s:b}", "usable", n.usable);
    view_text(v, "reason", n.reason);
    view_text(v, "who", n.who);
    view_time(v, "since_us", n.since);
    return v;
}

/* To who sees nothing of it, a node is one that nothing is known of, whether it exists or not. */
void get_node(struct store *store, const struct api_request *r, const struct route_params *p,
              struct api_answer *ret)
{
    json_t *blamed = json_array(), *node, *answer;
    struct err e = {0};

    if (list_blame(store, r->asker, p->name, blamed, &e) < 0) {
        json_decref(blamed);
        answer_no_journal(ret, &e);
        return;
    }
    answer = json_pack("{s:s, s:o, s:O, s:I}", "node", p->name, "kept_out_of",
                       list_kept_out(store, r->asker, p->name), "blamed_in", blamed, "now_us",
                       (json_int_t)store_now(store));
    if ((r->asker->is_operator || json_array_size(blamed) > 0) &&
        (node = view_node(store, p->name)))
        json_object_set_new(answer, "scheduler", node);
    json_decref(blamed);
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
                        json_pack("{s:I, s:I}", "bytes", (json_int_t)s->journal_bytes, "seq",
                                  (json_int_t)store_model(store)->seq));
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
