/* SPDX-License-Identifier: Apache-2.0 */

/* The books of the nodes. A fact is noted as a trouble, until it is cleared: the driver says that
 * it is over, the node booted anew since, or a person says that it is well. Who takes a node into
 * service that was drained says so, whatever he took it for.
 *
 * A fact is of the time at which it happened. The node's clock says when, unless that cannot be:
 * an agent that was away, or begins, tells late. */

#include "core/state/nodes.h"

#include "base/hash.h"
#include "base/hostlist.h"
#include "base/str.h"
#include "core/state/lemons.h"
#include "core/state/observe.h"
#include "core/state/scheduled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLDEST      (30 * USEC_PER_DAY) /* of what a kernel may still hold */
#define CLOCK_SLACK (5 * USEC_PER_SEC)
#define SHARED_LIFE USEC_PER_HOUR
#define REASON_OURS "reknit:"

/* Until another try, when nothing was done: what came between may be over; the answer was no. */
#define SOON  USEC_PER_MIN
#define LATER (10 * USEC_PER_MIN)

/* While a drain shows in no look yet. */
#define DRAIN_SHOWS (30 * USEC_PER_SEC)

/* Looking up */

static size_t position(const struct nodes *n, const char *name)
{
    return VEC_BISECT(&n->list, x, strcmp((*x)->name, name) < 0);
}

struct node_ledger *nodes_find(const struct nodes *n, const char *name)
{
    size_t i = position(n, name);

    return i < n->list.n && streq(n->list.v[i]->name, name) ? n->list.v[i] : NULL;
}

static void ledger_free(struct node_ledger *l)
{
    VEC_DONE(&l->seen);
    VEC_DONE(&l->troubles);
    VEC_DONE(&l->pending);
    VEC_DONE(&l->incidents);
    free(l);
}

void nodes_clear(struct nodes *n)
{
    VEC_FOREACH (&n->list, l)
        ledger_free(*l);
    VEC_DONE(&n->list);
    VEC_DONE(&n->shared);
}

/* One that we drained, or ask for, is never forgotten while another can be. */
static bool is_dispensable(const struct node_ledger *l)
{
    return !l->drained && l->pending.n == 0;
}

static bool make_room(struct nodes *n)
{
    size_t oldest = SIZE_MAX;

    if (n->list.n < LEDGER_NODES_MAX)
        return true;
    for (size_t i = 0; i < n->list.n; i++)
        if (is_dispensable(n->list.v[i]) &&
            (oldest == SIZE_MAX || n->list.v[i]->heard < n->list.v[oldest]->heard))
            oldest = i;
    if (oldest == SIZE_MAX)
        return false;
    ledger_free(n->list.v[oldest]);
    VEC_REMOVE(&n->list, oldest);
    return true;
}

struct node_ledger *nodes_open(struct model *m, const char *name)
{
    struct node_ledger *l = nodes_find(&m->nodes, name);

    if (!l && make_room(&m->nodes)) {
        l = xnew(struct node_ledger);
        STR_COPY(l->name, name);
        *VEC_INSERT(&m->nodes.list, position(&m->nodes, name)) = l;
        lemons_open(m, l);
    }
    if (l)
        l->heard = m->now;
    return l;
}

bool nodes_rule_is_stopped(const struct nodes *n, const char *rule)
{
    for (uint32_t i = 0; i < n->n_stopped; i++)
        if (streq(n->stopped[i], rule))
            return true;
    return false;
}

const struct shared_fault *nodes_shared(const struct nodes *n, const struct node_trouble *t,
                                        usec_t now)
{
    VEC_FOREACH (&n->shared, s)
        if (streq(s->signature, t->signature) && streq(s->peer, t->peer) &&
            now < s->at + SHARED_LIFE)
            return s;
    return NULL;
}

uint32_t nodes_drained(const struct nodes *n)
{
    uint32_t count = 0;

    VEC_FOREACH (&n->list, at) {
        const struct node_ledger *l = *at;
        bool soon = false;

        VEC_FOREACH (&l->pending, e)
            soon |= e->intended.intent == INTENT_DRAIN;
        count += l->drained || soon;
    }
    return count;
}

void nodes_count(const struct nodes *n, uint32_t ret[ISOLATION_MAX])
{
    memset(ret, 0, ISOLATION_MAX * sizeof(ret[0]));
    VEC_FOREACH (&n->list, l)
        ret[(*l)->verdict.isolation]++;
}

bool nodes_await(const struct nodes *n, uint64_t intent)
{
    VEC_FOREACH (&n->list, at)
        VEC_FOREACH (&(*at)->pending, e)
            if (e->seq == intent)
                return true;
    return false;
}

bool node_is_quiet(const struct node_ledger *l)
{
    return l->troubles.n == 0 && l->verdict.isolation == ISOLATION_NONE && !l->drained;
}

/* Facts */

static usec_t time_of(const struct model *m, const struct node_fact *f)
{
    usec_t at = f->signal.time_us;

    return at != USEC_UNKNOWN && !f->signal.uptime && at <= m->now && at > m->now - OLDEST ? at
                                                                                           : m->now;
}

static void remember(struct node_ledger *l, const struct event *e, usec_t at)
{
    const struct node_fact *f = &e->fact;
    struct node_seen *s;

    if (l->seen.n == NODE_SEEN_MAX)
        VEC_REMOVE(&l->seen, 0);
    s = VEC_PUSH(&l->seen);
    s->at = at;
    s->seq = e->seq;
    s->isolation = f->isolation;
    s->cause = f->signal.cause;
    s->code = f->code;
    s->count = f->count;
    s->job = f->job;
    s->cleared = f->cleared;
    STR_COPY(s->signature, f->signal.signature);
    STR_COPY(s->device, f->signal.who.device);
    STR_COPY(s->text, f->signal.text);
}

/* The part of a GPU that a graphics exception names: "GPC 2, TPC 1". */
static void unit_of(const struct node_fact *f, char *ret, size_t size)
{
    const char *at = strstr(f->signal.text, "GPC ");
    unsigned gpc, tpc;

    ret[0] = '\0';
    if (at && sscanf(at, "GPC %3u, TPC %3u", &gpc, &tpc) == 2)
        str_printf(ret, size, "GPC %u, TPC %u", gpc, tpc);
}

static bool is_same(const struct node_trouble *t, const struct node_fact *f, const char *unit)
{
    return t->code == f->code && streq(t->signature, f->signal.signature) &&
           streq(t->device, f->signal.who.device) && streq(t->peer, f->signal.who.peer) &&
           streq(t->unit, unit);
}

/* The least, and of those the one that was silent longest, gives way. */
static void drop_least(struct node_ledger *l)
{
    size_t least = 0;

    for (size_t i = 1; i < l->troubles.n; i++) {
        const struct node_trouble *t = &l->troubles.v[i], *best = &l->troubles.v[least];

        if (t->isolation < best->isolation ||
            (t->isolation == best->isolation && t->noted < best->noted))
            least = i;
    }
    VEC_REMOVE(&l->troubles, least);
}

static struct node_trouble *trouble_of(struct node_ledger *l, const struct node_fact *f)
{
    char unit[sizeof(((struct node_trouble *)0)->unit)];
    struct node_trouble *t;

    unit_of(f, unit, sizeof(unit));
    VEC_FOREACH (&l->troubles, x)
        if (is_same(x, f, unit))
            return x;
    if (l->troubles.n == TROUBLES_MAX)
        drop_least(l);
    t = VEC_PUSH(&l->troubles);
    t->code = f->code;
    STR_COPY(t->signature, f->signal.signature);
    STR_COPY(t->device, f->signal.who.device);
    STR_COPY(t->peer, f->signal.who.peer);
    STR_COPY(t->unit, unit);
    return t;
}

static void note_job(struct node_trouble *t, const struct job *j)
{
    uint64_t h = hash_bytes(HASH_INIT, j->name, strlen(j->name));

    for (uint32_t i = 0; i < t->n_jobs; i++)
        if (t->jobs[i] == h)
            return;
    if (t->n_jobs == TROUBLE_JOBS)
        memmove(t->jobs, t->jobs + 1, --t->n_jobs * sizeof(t->jobs[0]));
    t->jobs[t->n_jobs++] = h;
}

static void note_time(struct node_trouble *t, usec_t at)
{
    if (t->first == 0 || at < t->first)
        t->first = at;
    if (t->last == 0 || at >= t->last + NODE_BURST) {
        memmove(t->at + 1, t->at, (TROUBLE_TIMES - 1) * sizeof(t->at[0]));
        t->at[0] = at;
    }
    if (at > t->last)
        t->last = at;
}

/* What is the node's own, and no more of the same within an hour. */
static bool is_incident(const struct node_trouble *t, const struct node_fact *f, usec_t at)
{
    return f->isolation >= ISOLATION_EXCLUDE && f->signal.cause != CAUSE_STORAGE &&
           f->signal.cause != CAUSE_NETWORK && (t->last == 0 || at >= t->last + USEC_PER_HOUR);
}

static void note(struct model *m, struct node_ledger *l, const struct node_fact *f, usec_t at)
{
    struct node_trouble *t = trouble_of(l, f);

    if (is_incident(t, f, at))
        lemons_fact(m, l, f, at);

    t->isolation = f->isolation;
    t->cause = f->signal.cause;
    t->noted = m->now;
    note_time(t, at);
    VEC_FOREACH (&m->jobs, j)
        if (nodes_fact_concerns(m, f, *j))
            note_job(t, *j);
}

/* The driver speaks for all that it said of a GPU by numbers. */
static bool is_cleared(const struct node_trouble *t, const struct node_fact *f)
{
    const char *pattern = *f->signal.clears ? f->signal.clears : f->signal.signature;

    return streq(t->device, f->signal.who.device) &&
           (signature_matches(pattern, t->signature) || (f->code > 0 && t->code > 0));
}

static void clear(struct node_ledger *l, const struct node_fact *f)
{
    for (size_t i = l->troubles.n; i-- > 0;)
        if (is_cleared(&l->troubles.v[i], f))
            VEC_REMOVE(&l->troubles, i);
    l->check_due |= l->drained;
}

static bool apply_fact(struct model *m, const struct event *e)
{
    struct node_ledger *l = nodes_open(m, e->fact.node);
    usec_t at = time_of(m, &e->fact);

    if (!l)
        return false;
    remember(l, e, at);
    if (e->fact.cleared)
        clear(l, &e->fact);
    else if (l->look.booted <= at + CLOCK_SLACK)
        note(m, l, &e->fact, at);
    return true;
}

/* As evidence of jobs */

static bool runs_on(const struct job *j, const char *node)
{
    return j->scheduled && (j->state == JOB_RUNNING || j->state == JOB_ENDING) &&
           hostlist_has(j->sched.ran_on, node);
}

static bool is_of_hardware(const struct node_fact *f)
{
    return cause_domain(f->signal.cause) == DOMAIN_INFRASTRUCTURE;
}

static bool is_alone(const struct model *m, const struct job *j, const char *node)
{
    VEC_FOREACH (&m->jobs, other)
        if (*other != j && runs_on(*other, node))
            return false;
    return true;
}

/* What a program did is told of the one whose it was: by its number, or since no other ran there.
 * Of hardware that is sick, all who use the node may know. */
bool nodes_fact_concerns(const struct model *m, const struct node_fact *f, const struct job *j)
{
    if (!runs_on(j, f->node) || time_of(m, f) + CLOCK_SLACK < j->attempt.started)
        return false;
    if (f->job > 0)
        return j->sched.id == f->job;
    return is_of_hardware(f) || (f->signal.cause != CAUSE_HOST_OOM && is_alone(m, j, f->node));
}

/* What the scheduler says */

static void forget_before(struct node_ledger *l, usec_t booted)
{
    for (size_t i = l->troubles.n; i-- > 0;)
        if (l->troubles.v[i].last + CLOCK_SLACK < booted)
            VEC_REMOVE(&l->troubles, i);
    l->check_due |= l->drained;
}

static bool is_ours(const struct node_look *look)
{
    return look->drain && str_startswith(look->reason, REASON_OURS);
}

/* Somebody took it back, or gave it another reason: it is not ours any more. */
static void give_up(struct node_ledger *l)
{
    l->drained = l->resume = l->check_due = false;
    l->reason[0] = '\0';
    l->tries = 0;
}

static bool apply_look(struct model *m, const struct event *e)
{
    const struct node_look *look = &e->node_look;
    struct node_ledger *l = nodes_open(m, look->node);
    bool first = l && l->look.node[0] == '\0', was_drained = l && (l->look.drain || l->drained);

    if (!l || (l->drained && !is_ours(&l->look) && !is_ours(look) &&
               m->now < l->drained_at + DRAIN_SHOWS))
        return false;
    if (look->booted > (first ? 0 : l->look.booted))
        forget_before(l, look->booted);
    l->look = *look;
    if (is_ours(look)) {
        if (!l->drained)
            l->drained_at = m->now;
        l->drained = true;
        STR_COPY(l->reason, look->reason);
    } else if (l->drained) {
        give_up(l);
    }
    if (was_drained && !look->drain)
        l->troubles.n = 0;
    return true;
}

static bool apply_terms(struct model *m, const struct event *e)
{
    m->nodes.terms = e->node_terms;
    return true;
}

/* What was made of it */

static void apply_shared(struct model *m, const struct node_verdict *v)
{
    struct nodes *n = &m->nodes;
    struct shared_fault *s = NULL;

    VEC_FOREACH (&n->shared, x)
        if (streq(x->signature, v->signature) && streq(x->peer, v->device))
            s = x;
    if (!s && n->shared.n == SHARED_MAX)
        VEC_REMOVE(&n->shared, 0);
    if (!s)
        s = VEC_PUSH(&n->shared);
    STR_COPY(s->signature, v->signature);
    STR_COPY(s->peer, v->device);
    s->at = m->now;
}

static bool apply_stopped(struct model *m, const struct node_verdict *v)
{
    struct nodes *n = &m->nodes;

    if (nodes_rule_is_stopped(n, v->rule) || n->n_stopped == STOPPED_MAX)
        return false;
    STR_COPY(n->stopped[n->n_stopped++], v->rule);
    return true;
}

static bool apply_verdict(struct model *m, const struct event *e)
{
    const struct node_verdict *v = &e->node_verdict;
    struct node_ledger *l;

    if (v->node[0] == '\0' && v->signature[0] == '\0')
        return apply_stopped(m, v);
    if (v->node[0] == '\0') {
        apply_shared(m, v);
        return true;
    }
    l = nodes_find(&m->nodes, v->node);
    if (!l)
        return false;
    if (v->isolation >= ISOLATION_DRAIN &&
        (l->verdict.isolation < ISOLATION_DRAIN || !streq(l->verdict.rule, v->rule)))
        model_add_deed(m, DEED_CONVICTED, v->rule);
    l->verdict = *v;
    l->judged_at = m->now;
    l->judged = e->seq;
    l->tries = 0;
    return true;
}

/* What is asked of the scheduler */

static bool apply_intent(struct model *m, const struct event *e)
{
    struct node_ledger *l = nodes_find(&m->nodes, e->intended.nodes[0]);

    if (!l || l->pending.n > 0)
        return false;
    if (e->intended.intent == INTENT_DRAIN) {
        l->tries++;
        model_add_deed(m, DEED_DRAINED, l->name);
    } else if (e->intended.intent == INTENT_CHECK_NODE) {
        l->check_due = false;
    }
    *VEC_PUSH(&l->pending) = *e;
    return true;
}

/* Nothing was done, and nothing counts as done. */
static void take_back(struct model *m, struct node_ledger *l)
{
    deeds *list = &m->deeds[DEED_DRAINED];

    l->tries--;
    for (size_t i = list->n; i-- > 0;)
        if (streq(list->v[i].name, l->name)) {
            VEC_REMOVE(list, i);
            return;
        }
}

static void drain_answered(struct model *m, struct node_ledger *l, const struct event *intent,
                           const struct result_facts *r)
{
    if (r->outcome == OUTCOME_DONE) {
        l->drained = true;
        l->drained_at = m->now;
        STR_COPY(l->reason, intent->intended.reason);
        l->tries = 0;
        return;
    }
    if (r->outcome == OUTCOME_VOID && l->tries > 0)
        take_back(m, l);
    l->retry_at = m->now + (r->outcome == OUTCOME_FAILED ? LATER : SOON);
}

static void undrain_answered(struct model *m, struct node_ledger *l, const struct result_facts *r)
{
    l->retry_at = r->outcome == OUTCOME_DONE ? 0 : m->now + SOON;
    if (r->outcome == OUTCOME_DONE) {
        give_up(l);
        l->look.out = l->look.drain = false;
    } else if (r->outcome == OUTCOME_FAILED) {
        l->resume = false;
    }
}

static void check_answered(struct model *m, struct node_ledger *l, const struct result_facts *r)
{
    l->resume |= r->outcome == OUTCOME_DONE;
    if (r->outcome == OUTCOME_DONE || r->outcome == OUTCOME_FAILED)
        return;
    l->check_due = true;
    l->retry_at = m->now + LATER;
}

static void answered(struct model *m, struct node_ledger *l, const struct event *intent,
                     const struct result_facts *r)
{
    if (intent->intended.intent == INTENT_DRAIN)
        drain_answered(m, l, intent, r);
    else if (intent->intended.intent == INTENT_UNDRAIN)
        undrain_answered(m, l, r);
    else
        check_answered(m, l, r);
}

static bool apply_result(struct model *m, const struct event *e)
{
    VEC_FOREACH (&m->nodes.list, at) {
        struct node_ledger *l = *at;

        if (l->pending.n == 0 || l->pending.v[0].seq != e->result.intent)
            continue;
        answered(m, l, &l->pending.v[0], &e->result);
        VEC_REMOVE(&l->pending, 0);
        return true;
    }
    return false;
}

static bool apply_request(struct model *m, const struct event *e)
{
    struct node_ledger *l = nodes_find(&m->nodes, e->request.node);

    if (e->request.request == REQUEST_REARM) {
        m->nodes.n_stopped = 0;
        m->deeds[DEED_CONVICTED].n = 0;
        return true;
    }
    if (!l)
        return false;
    l->troubles.n = 0;
    l->resume = l->drained;
    l->retry_at = 0;
    return true;
}

bool nodes_apply(struct model *m, const struct event *e)
{
    switch (e->kind) {
    case EVENT_NODE_FACT:
        return apply_fact(m, e);
    case EVENT_NODE_TERMS:
        return apply_terms(m, e);
    case EVENT_NODE_LOOK:
        return apply_look(m, e);
    case EVENT_NODE_VERDICT:
        return apply_verdict(m, e);
    case EVENT_INTENT:
        return apply_intent(m, e);
    case EVENT_RESULT:
        return apply_result(m, e);
    case EVENT_OPERATOR:
        return apply_request(m, e);
    default:
        return false;
    }
}
