/* SPDX-License-Identifier: Apache-2.0 */

/* What is known of a node, and how the daemon itself is. */

#include "api/metrics.h"
#include "api/openapi.h"
#include "api/routes.h"
#include "api/views.h"
#include "base/str.h"
#include "core/plan/scheduled.h"

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

static int list_blame(struct desk *d, const struct asker *who, const char *node, json_t *list,
                      struct err *e)
{
    struct journal_choice c = {.kinds = UINT64_C(1) << EVENT_VERDICT, .newest_first = true};
    _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;
    _cleanup_(freep) struct event *event = xnew(struct event);
    int r = desk_select(d, &c, &cursor, e);

    for (size_t rows = 0; r >= 0 && rows < VERDICTS_MAX && json_array_size(list) < BLAMED_MAX &&
                          (r = journal_next(cursor, event, e)) > 0;
         rows++)
        if (names_node(&event->incident.culprits, node) &&
            access_sees(who, desk_owner(d, event->job)))
            json_array_append_new(list, blamed_in(event));
    return r;
}

static json_t *list_kept_out(const struct desk *d, const struct asker *who, const char *node)
{
    const struct model *m = desk_model(d);
    json_t *list = json_array();

    VEC_FOREACH (&m->jobs, at) {
        const struct job *j = *at;

        for (uint32_t i = 0; access_sees(who, j->sched.uid) && i < j->sched.n_kept; i++)
            if (streq(j->sched.kept[i].node, node) && j->sched.kept[i].until > m->now &&
                json_array_size(list) < PAGE_MAX)
                json_array_append_new(list, json_pack("{s:s, s:I}", "job", j->name, "until_us",
                                                      (json_int_t)j->sched.kept[i].until));
    }
    return list;
}

/* To who sees nothing of it, a node is one that nothing is known of, whether it exists or not. */
void get_node(struct desk *d, const struct api_request *r, const struct route_params *p,
              struct api_answer *ret)
{
    json_t *blamed = json_array();
    struct err e = {0};

    if (list_blame(d, r->asker, p->name, blamed, &e) < 0) {
        json_decref(blamed);
        answer_no_journal(ret, &e);
        return;
    }
    answer_json(ret, 200,
                json_pack("{s:s, s:o, s:o, s:I}", "node", p->name, "kept_out_of",
                          list_kept_out(d, r->asker, p->name), "blamed_in", blamed, "now_us",
                          (json_int_t)desk_now(d)));
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

static void add_for_operators(json_t *v, const struct desk *d, const struct api_status *s)
{
    json_object_set_new(v, "readers",
                        json_pack("{s:I, s:I, s:I}", "running", (json_int_t)s->readers, "hung",
                                  (json_int_t)s->readers_hung, "replaced",
                                  (json_int_t)s->readers_replaced));
    json_object_set_new(v, "agents", json_integer(s->agents));
    json_object_set_new(v, "loop_lag_us", json_integer(d->loop_lag));
    json_object_set_new(v, "journal",
                        json_pack("{s:I, s:I}", "bytes", (json_int_t)s->journal_bytes, "seq",
                                  (json_int_t)desk_model(d)->seq));
}

void get_health(struct desk *d, const struct api_request *r, const struct route_params *p,
                struct api_answer *ret)
{
    const struct model *m = desk_model(d);
    struct api_status s = {0};
    json_t *v;

    d->backend.status(d->ctx, &s);
    v = json_pack("{s:b, s:b, s:b}", "ok", s.adapter_ok && !s.tilt, "frozen", m->frozen, "storm",
                  brakes_see_storm(m));
    view_text(v, "version", s.version);
    view_text(v, "cluster", s.cluster);
    json_object_set_new(v, "mode", json_string(mode_name(s.mode)));
    view_text(v, "tilt", s.tilt);
    view_time(v, "started_us", s.started);
    view_time(v, "now_us", desk_now(d));
    json_object_set_new(v, "adapter", view_adapter(&s));
    if (r->asker->is_operator)
        add_for_operators(v, d, &s);
    answer_json(ret, 200, v);
}

void get_openapi(struct desk *d, const struct api_request *r, const struct route_params *p,
                 struct api_answer *ret)
{
    answer_text(ret, "application/json", xstrdup(openapi_json));
}

void get_metrics(struct desk *d, const struct api_request *r, const struct route_params *p,
                 struct api_answer *ret)
{
    struct api_status s = {0};

    d->backend.status(d->ctx, &s);
    answer_text(ret, "text/plain; version=0.0.4; charset=utf-8", metrics_text(d->metrics, d, &s));
}
