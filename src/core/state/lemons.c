/* SPDX-License-Identifier: Apache-2.0 */

/* What the score of a node rests on (algorithm b.6): incidents, with weights, and how long it was
 * used, both with a half-life of two weeks.
 *
 *   1    a fault of it that a privileged witness saw, or that the scheduler lost it
 *   0.3  a job on it alone failed, and nobody knows why; of a user once a day
 *   1/N  ... a job on N nodes, of those in the books
 *
 * What a job's text says counts for nothing here, nor what it was convicted for by its text. Nodes
 * that are not in the books have had no incident; so only the sum over all needs to be known of
 * them. */

#include "core/state/lemons.h"

#include "base/hash.h"
#include "base/hostlist.h"
#include "base/str.h"
#include "core/state/observe.h"

#include <string.h>

#define WEIGHT_FAULT       1000
#define WEIGHT_UNEXPLAINED 300
#define NODES_MOST         64 /* of more, a failure says nothing of one of them */

static uint64_t hash_of(const struct job *j)
{
    return j ? hash_bytes(HASH_INIT, j->name, strlen(j->name)) : 0;
}

static void add_incident(struct node_ledger *l, usec_t at, uint32_t weight, const struct job *j)
{
    struct node_incident *i;

    if (l->incidents.n == NODE_INCIDENTS_MAX)
        VEC_REMOVE(&l->incidents, 0);
    i = VEC_PUSH(&l->incidents);
    i->at = at;
    i->weight = weight;
    i->job = hash_of(j);
    i->uid = j ? j->sched.uid : 0;
}

static double days(usec_t t)
{
    return t > 0 ? (double)t / (double)USEC_PER_DAY : 0;
}

void lemons_open(const struct model *m, struct node_ledger *l)
{
    double all = decaying_now(&m->nodes.used, m->now, LEMON_HALF_LIFE);

    if (m->nodes.terms.nodes > 0)
        decaying_add(&l->used, all / m->nodes.terms.nodes, m->now, LEMON_HALF_LIFE);
}

void lemons_fact(struct model *m, struct node_ledger *l, const struct node_fact *f, usec_t at)
{
    const struct job *witness = NULL;

    VEC_FOREACH (&m->jobs, j)
        if (nodes_fact_concerns(m, f, *j))
            witness = *j;
    add_incident(l, at, WEIGHT_FAULT, witness);
}

static void note_use(struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;
    double span = days(a->interrupted_at - a->started);

    decaying_add(&m->nodes.used, span * (j->nodes > 0 ? j->nodes : 1), m->now, LEMON_HALF_LIFE);
    VEC_FOREACH (&m->nodes.list, l)
        if (hostlist_has(j->sched.ran_on, (*l)->name))
            decaying_add(&(*l)->used, span, m->now, LEMON_HALF_LIFE);
}

static bool is_one(const char *list)
{
    return hostlist_has(list, list) && !strchr(list, ',');
}

/* Whose jobs keep failing, wherever they run, is no witness against a node each time. */
static bool failed_lately(const struct model *m, uint32_t uid)
{
    VEC_FOREACH (&m->nodes.list, l)
        VEC_FOREACH (&(*l)->incidents, i)
            if (i->job != 0 && i->uid == uid && i->weight < WEIGHT_FAULT &&
                m->now < i->at + USEC_PER_DAY)
                return true;
    return false;
}

static void note_unexplained(struct model *m, const struct job *j)
{
    struct node_ledger *l;

    if (failed_lately(m, j->sched.uid))
        return;
    if (is_one(j->sched.ran_on)) {
        l = nodes_open(m, j->sched.ran_on);
        if (l)
            add_incident(l, m->now, WEIGHT_UNEXPLAINED, j);
        return;
    }
    if (j->nodes < 2 || j->nodes > NODES_MOST)
        return;
    VEC_FOREACH (&m->nodes.list, at)
        if (hostlist_has(j->sched.ran_on, (*at)->name))
            add_incident(*at, m->now, WEIGHT_FAULT / j->nodes, j);
}

void lemons_judged(struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;
    bool failed = a->incident.class == CLASS_CRASH || a->incident.class == CLASS_HANG;
    struct node_ledger *l;

    if (!j->scheduled || a->interrupted_at == USEC_NEVER)
        return;
    note_use(m, j);
    if (a->node_failed && j->sched.look.lost_node[0]) {
        l = nodes_open(m, j->sched.look.lost_node);
        if (l)
            add_incident(l, m->now, WEIGHT_FAULT, j);
    } else if (failed && a->incident.cause == CAUSE_UNKNOWN) {
        note_unexplained(m, j);
    }
}
