/* SPDX-License-Identifier: Apache-2.0 */

/* The cluster's nodes all together: how many can be used, who keeps the others out, how many are
 * heard, what stands against them, and what room is left to do something about it. */

#include "api/routes.h"
#include "api/views.h"
#include "core/policy/lemon.h"
#include "core/state/scheduled.h"

#include "base/str.h"

#define NAMED_MAX 20 /* of a list of names: the first of them */

struct fleet {
    const struct model *m;
    uint32_t known, usable, by_reknit, by_others;
    uint32_t agents, gone, deaf; /* deaf: connected, and their kernel's log cannot be read */
    json_t *silent;
};

static void take_node(void *ctx, const char *name, bool usable)
{
    struct fleet *f = ctx;
    const struct node_ledger *l = nodes_find(&f->m->nodes, name);

    f->known++;
    if (l && l->drained)
        f->by_reknit++;
    else if (usable)
        f->usable++;
    else
        f->by_others++;
}

static bool take_agent(void *ctx, const struct api_agent *a)
{
    struct fleet *f = ctx;

    if (a->connected) {
        f->agents++;
        f->deaf += a->kernel_trouble[0] != '\0';
        return true;
    }
    f->gone++;
    if (json_array_size(f->silent) < NAMED_MAX)
        json_array_append_new(f->silent, json_string(a->node));
    return true;
}

/* A node counts once for each cause that stands against it. */
static json_t *count_causes(const struct model *m)
{
    uint32_t n[CAUSE_MAX] = {0};
    json_t *counts = json_object();

    VEC_FOREACH (&m->nodes.list, l) {
        bool seen[CAUSE_MAX] = {false};

        VEC_FOREACH (&(*l)->troubles, t) {
            n[t->cause] += !seen[t->cause];
            seen[t->cause] = true;
        }
    }
    for (int c = 0; c < CAUSE_MAX; c++)
        if (n[c] > 0)
            json_object_set_new(counts, cause_name((enum cause)c), json_integer(n[c]));
    return counts;
}

static json_t *count_isolation(const struct model *m)
{
    uint32_t n[ISOLATION_MAX];
    json_t *counts = json_object();

    nodes_count(&m->nodes, n);
    for (int i = ISOLATION_EXCLUDE; i < ISOLATION_MAX; i++)
        json_object_set_new(counts, isolation_name((enum isolation)i), json_integer(n[i]));
    return counts;
}

static json_t *list_lemons(const struct model *m)
{
    json_t *names = json_array();

    VEC_FOREACH (&m->nodes.list, l) {
        struct lemon_score s;

        lemon_score(m, *l, &s);
        if (s.lemon && json_array_size(names) < NAMED_MAX)
            json_array_append_new(names, json_string((*l)->name));
    }
    return names;
}

static json_t *view_isolation(const struct model *m)
{
    const struct node_terms *t = &m->nodes.terms;

    return json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:o}", "mode", mode_name(t->mode), "frozen",
                     m->frozen, "drained", (json_int_t)nodes_drained(&m->nodes), "max_drained",
                     (json_int_t)t->max_drained, "drained_within_hour",
                     (json_int_t)model_deeds_of_hour(m, DEED_DRAINED), "drains_per_hour",
                     (json_int_t)t->drains_per_hour, "stopped", view_stopped(&m->nodes));
}

void get_fleet(struct store *store, const struct api_request *r, const struct route_params *p,
               struct api_answer *ret)
{
    struct fleet f = {.m = store_model(store), .silent = json_array()};
    struct api_status status = {0};
    json_t *v;

    store->backend.status(store->ctx, &status);
    if (store->backend.nodes)
        store->backend.nodes(store->ctx, take_node, &f);
    store->backend.agents(store->ctx, take_agent, &f);
    v = json_pack("{s:{s:I, s:I, s:I, s:I}, s:{s:b, s:I, s:I, s:I, s:o}}", "nodes", "known",
                  (json_int_t)f.known, "usable", (json_int_t)f.usable, "out_by_reknit",
                  (json_int_t)f.by_reknit, "out_by_others", (json_int_t)f.by_others, "agents",
                  "listening", status.agents.listening, "connected", (json_int_t)f.agents, "gone",
                  (json_int_t)f.gone, "kernel_unread", (json_int_t)f.deaf, "gone_nodes", f.silent);
    json_object_set_new(v, "asks_for", count_isolation(f.m));
    json_object_set_new(v, "trouble", count_causes(f.m));
    json_object_set_new(v, "lemons", list_lemons(f.m));
    json_object_set_new(v, "kept_out", json_integer(sched_kept_out(f.m)));
    json_object_set_new(v, "isolation", view_isolation(f.m));
    view_time(v, "last_look_us", status.last_look);
    view_time(v, "now_us", store_now(store));
    answer_json(ret, 200, v);
}
