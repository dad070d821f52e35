/* SPDX-License-Identifier: Apache-2.0 */

/* What is known of nodes: to everybody, which of his own jobs they failed; to operators, all that
 * stands against them, what is done about it, and why not. */

#include "api/routes.h"
#include "api/views.h"
#include "base/str.h"
#include "core/plan/nodes.h"
#include "core/policy/lemon.h"

#include <string.h>

#define VERDICTS_MAX 2000 /* of the past that are looked through for a node */
#define BLAMED_MAX   50

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

static json_t *view_fact(const struct node_seen *s)
{
    json_t *v = json_pack("{s:s, s:s, s:s, s:I, s:I}", "signature", s->signature, "isolation",
                          isolation_name(s->isolation), "cause", cause_name(s->cause), "count",
                          (json_int_t)s->count, "seq", (json_int_t)s->seq);

    view_time(v, "time_us", s->at);
    view_number(v, "code", s->code, 0);
    view_number(v, "job", s->job, 0);
    view_text(v, "device", s->device);
    view_text(v, "text", s->text);
    if (s->cleared)
        json_object_set_new(v, "cleared", json_true());
    return v;
}

static json_t *list_facts(const struct node_ledger *l)
{
    json_t *list = json_array();

    for (size_t i = l->seen.n; i-- > 0;)
        json_array_append_new(list, view_fact(&l->seen.v[i]));
    return list;
}

static void add_verdict(json_t *j, const struct node_ledger *l)
{
    const struct node_verdict *v = &l->verdict;

    json_object_set_new(j, "isolation", json_string(isolation_name(v->isolation)));
    view_text(j, "rule", v->rule);
    view_text(j, "why", v->why);
    view_time(j, "judged_us", l->judged_at);
    if (v->isolation == ISOLATION_NONE)
        return;
    json_object_set_new(j, "cause", json_string(cause_name(v->cause)));
    view_text(j, "device", v->device);
}

static void add_score(json_t *j, const struct model *m, const struct node_ledger *l)
{
    struct lemon_score s;

    lemon_score(m, l, &s);
    view_number(j, "incidents", s.incidents, 0);
    view_number(j, "rate_percent", s.percent, 0);
    if (s.lemon)
        json_object_set_new(j, "lemon", json_true());
}

/* full: with all its facts, the newest first; else that one alone. */
static json_t *view_ledger(const struct model *m, const struct node_ledger *l, bool full)
{
    const char *waits = plan_node_waits(m, l);
    json_t *v = json_object();

    add_verdict(v, l);
    json_object_set_new(v, "drained", json_boolean(l->drained));
    if (l->drained) {
        view_time(v, "drained_us", l->drained_at);
        view_text(v, "reason", l->reason);
    }
    view_text(v, "waits", waits ? waits : "");
    view_time(v, "heard_us", l->heard);
    add_score(v, m, l);
    if (full)
        json_object_set_new(v, "facts", list_facts(l));
    else if (l->seen.n > 0)
        json_object_set_new(v, "last", view_fact(&l->seen.v[l->seen.n - 1]));
    return v;
}

static bool add_ledger(struct store *store, const char *name, json_t *answer)
{
    const struct node_ledger *l = nodes_find(&store_model(store)->nodes, name);

    if (l)
        json_object_set_new(answer, "ledger", view_ledger(store_model(store), l, true));
    return l;
}

/* To who sees nothing of it, a node is one that nothing is known of, whether it exists or not;
 * operators are told when there is none. */
void get_node(struct store *store, const struct api_request *r, const struct route_params *p,
              struct api_answer *ret)
{
    json_t *blamed = json_array(), *kept_out, *node = NULL, *answer;
    bool operator= r->asker->is_operator, known;
    struct err e = {0};

    if (list_blame(store, r->asker, p->name, blamed, &e) < 0) {
        json_decref(blamed);
        answer_no_journal(ret, &e);
        return;
    }
    kept_out = list_kept_out(store, r->asker, p->name);
    known = json_array_size(blamed) + json_array_size(kept_out) > 0;
    answer = json_pack("{s:s, s:o, s:o, s:I}", "node", p->name, "kept_out_of", kept_out,
                       "blamed_in", blamed, "now_us", (json_int_t)store_now(store));
    if (operator&& add_ledger(store, p->name, answer))
        known = true;
    if ((operator|| json_array_size(blamed) > 0) && (node = view_node(store, p->name))) {
        json_object_set_new(answer, "scheduler", node);
        known = true;
    }
    if (known || !operator) {
        answer_json(ret, 200, answer);
        return;
    }
    json_decref(answer);
    answer_error(ret, 404, "the scheduler has no node '%s', and nothing is known of one", p->name);
}

static json_t *list_shared(const struct nodes *n)
{
    json_t *list = json_array();

    VEC_FOREACH (&n->shared, s) {
        json_t *v = json_pack("{s:s}", "signature", s->signature);

        view_text(v, "peer", s->peer);
        view_time(v, "time_us", s->at);
        json_array_append_new(list, v);
    }
    return list;
}

static json_t *view_listed(const struct store *store, const struct node_ledger *l)
{
    json_t *v = view_ledger(store_model(store), l, false), *node = view_node(store, l->name);

    json_object_set_new(v, "node", json_string(l->name));
    if (node)
        json_object_set_new(v, "scheduler", node);
    return v;
}

void get_nodes(struct store *store, const struct api_request *r, const struct route_params *p,
               struct api_answer *ret)
{
    const struct nodes *n = &store_model(store)->nodes;
    const char *after = request_arg(r, "after"), *next = NULL;
    json_t *list, *answer;
    size_t limit;

    if (!request_limit(r, &limit, ret))
        return;
    list = json_array();
    VEC_FOREACH (&n->list, l) {
        if (after && strcmp((*l)->name, after) <= 0)
            continue;
        if (json_array_size(list) == limit)
            break;
        json_array_append_new(list, view_listed(store, *l));
        next = (*l)->name;
    }
    answer = json_pack("{s:o, s:s, s:o, s:o, s:I}", "nodes", list, "mode", mode_name(n->terms.mode),
                       "stopped", view_stopped(n), "shared", list_shared(n), "now_us",
                       (json_int_t)store_now(store));
    if (json_array_size(list) == limit)
        json_object_set_new(answer, "next", json_string(next));
    answer_json(ret, 200, answer);
}

/* What people say */

static void submit(struct store *store, const struct api_request *r, enum request request,
                   const char *node, struct api_answer *ret)
{
    struct event e = {.kind = EVENT_OPERATOR, .request = {.request = request}};
    struct err err = {0};

    STR_COPY(e.request.who, r->asker->name);
    STR_COPY(e.request.node, node);
    if (store->backend.submit(store->ctx, &e, &err) < 0)
        answer_error(ret, 503, "%s", err.text);
    else
        answer_json(ret, 200, json_pack("{s:b}", "done", 1));
}

void post_resume(struct store *store, const struct api_request *r, const struct route_params *p,
                 struct api_answer *ret)
{
    const struct node_ledger *l = nodes_find(&store_model(store)->nodes, p->name);

    if (!l)
        answer_error(ret, 404, "nothing is known of a node '%s'", p->name);
    else if (!l->drained && l->verdict.isolation == ISOLATION_NONE)
        answer_error(ret, 409, "nothing stands against node %s, and reknit has not drained it",
                     p->name);
    else
        submit(store, r, REQUEST_RESUME, p->name, ret);
}

void post_rearm(struct store *store, const struct api_request *r, const struct route_params *p,
                struct api_answer *ret)
{
    if (store_model(store)->nodes.n_stopped == 0)
        answer_error(ret, 409, "no rule about nodes is stopped");
    else
        submit(store, r, REQUEST_REARM, "", ret);
}
