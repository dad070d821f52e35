/* SPDX-License-Identifier: Apache-2.0 */

/* What a scheduler says changes the state here, and so does what it was asked for.
 *
 * An intent is only a wish: whether it was granted is seen by a later look, never taken from the
 * answer. "Done" is looked after, "unknown" too, and what has not come about is asked for again, a
 * few times. So the state after a lost answer is the state after a look. */

#include "core/state/scheduled.h"

#include "base/str.h"

#include <assert.h>
#include <string.h>

#define HOUR USEC_PER_HOUR

const struct policy *policy_of(const struct model *m, const struct job *j)
{
    return j->has_policy ? &j->policy : &m->policy;
}

bool sched_was_requeued(const struct job *j)
{
    return j->sched.look.state != SCHED_NONE && j->sched.look.state != SCHED_FORGOTTEN &&
           j->sched.look.restarts > j->sched.base_restarts;
}

/* Deeds */

void model_add_deed(struct model *m, enum deed_kind kind, const char *name)
{
    size_t old = 0;
    struct deed *d;

    while (old < m->deeds.n &&
           (m->deeds.v[old].at + HOUR <= m->now || m->deeds.n - old >= DEEDS_MAX))
        old++;
    if (old > 0) {
        memmove(m->deeds.v, m->deeds.v + old, (m->deeds.n - old) * sizeof(m->deeds.v[0]));
        m->deeds.n -= old;
    }
    d = VEC_PUSH(&m->deeds);
    *d = (struct deed){.at = m->now, .kind = kind};
    STR_COPY(d->name, name);
}

uint32_t model_count_deeds(const struct model *m, enum deed_kind kind, const char *name,
                           usec_t span)
{
    uint32_t n = 0;

    VEC_FOREACH (&m->deeds, d)
        n += d->kind == kind && d->at + span > m->now && (!name || streq(d->name, name));
    return n;
}

/* Inputs */

void sched_seen(struct job *j, const struct job_facts *f)
{
    enum mode mode = j->sched.mode;

    j->scheduled = f->scheduled;
    j->sched =
        (struct sched){.interactive = f->interactive, .mode = mode, .pending_since = USEC_NEVER};
    j->sched.id = f->id;
    j->sched.uid = f->uid;
    STR_COPY(j->sched.label, f->label);
    STR_COPY(j->sched.user, f->user);
    STR_COPY(j->sched.name, f->name);
    STR_COPY(j->sched.account, f->account);
    STR_COPY(j->sched.qos, f->qos);
    STR_COPY(j->sched.partition, f->partition);
}

void sched_attempt_begun(struct model *m, struct job *j)
{
    struct sched *s = &j->sched;

    s->base_restarts = j->attempt.number - 1;
    s->pending_since = USEC_NEVER;
    s->requeues = s->amends = s->cancels = 0;
    s->requeue_due = s->amend_due = s->armed = s->approved = s->rejected = false;
    for (uint32_t i = s->n_kept; i-- > 0;)
        if (s->kept[i].until <= m->now)
            s->kept[i] = s->kept[--s->n_kept];
}

bool sched_look(struct model *m, struct job *j, const struct look_facts *look)
{
    struct sched *s = &j->sched;

    if (!j->scheduled)
        return false;
    s->look = *look;
    s->looked_at = m->now;
    s->requeue_due |= s->requeues > 0 && !sched_was_requeued(j);
    s->amend_due |= s->amends > 0;
    if (look->state != SCHED_PENDING || !sched_was_requeued(j) || look->completing)
        s->pending_since = USEC_NEVER;
    else if (s->pending_since == USEC_NEVER)
        s->pending_since = m->now;
    return true;
}

/* The next requeue counts from there on. */
void sched_launch_failed(struct job *j, const struct event *e)
{
    STR_COPY(j->start_detail, e->result.detail);
    j->start_failed = true;
    j->start_unknown = false;
    j->starts_failed++;
    j->sched.base_restarts = e->attempt - 1;
    j->sched.pending_since = USEC_NEVER;
}

/* Derived events */

void sched_interrupted(struct model *m, struct job *j)
{
    if (j->scheduled)
        model_add_deed(m, DEED_INTERRUPTED, j->sched.partition);
}

static void keep_out(struct model *m, struct sched *s, const char *node)
{
    for (uint32_t i = 0; i < s->n_kept; i++)
        if (streq(s->kept[i].node, node))
            return;
    if (s->n_kept == KEPT_OUT_MAX)
        return;
    STR_COPY(s->kept[s->n_kept].node, node);
    s->kept[s->n_kept++].until = m->now + m->brakes.exclusion_life;
    model_add_deed(m, DEED_EXCLUDED, node);
}

void sched_decided(struct model *m, struct job *j, const struct event *e)
{
    struct sched *s = &j->sched;

    if (!j->scheduled)
        return;
    s->decision = e->seq;
    s->approved = s->rejected = s->nodes_refused = false;
    s->requeues = s->amends = s->cancels = 0;
    s->requeue_due = s->amend_due = true;
    for (uint32_t i = 0; i < e->decision.n_nodes && i < KEPT_OUT_MAX; i++)
        keep_out(m, s, e->decision.nodes[i]);
}

bool sched_intent(struct model *m, struct job *j, const struct event *e)
{
    struct sched *s = &j->sched;

    if (!j->scheduled)
        return false;
    switch (e->intended.intent) {
    case INTENT_REQUEUE:
        s->requeues++;
        s->requeue_due = false;
        model_add_deed(m, DEED_ACTED, s->partition);
        return true;
    case INTENT_AMEND:
        s->amends++;
        s->amend_due = false;
        s->nodes_refused |= e->intended.n_nodes == 0 && s->look.constrained;
        return true;
    case INTENT_CANCEL:
        s->cancels++;
        return true;
    case INTENT_ARM:
        s->armed = true;
        return true;
    default:
        return false;
    }
}

/* A requeue that was refused for good is a start that failed; whatever else did not come about is
 * seen at the next look. */
void sched_result(struct job *j, const struct event *intent, const struct result_facts *r)
{
    switch (intent->intended.intent) {
    case INTENT_REQUEUE:
        if (r->outcome != OUTCOME_FAILED || sched_was_requeued(j))
            break;
        STR_COPY(j->start_detail, r->detail);
        j->start_failed = true;
        j->start_unknown = false;
        j->starts_failed++;
        break;
    case INTENT_AMEND:
        j->sched.nodes_refused |= r->outcome == OUTCOME_FAILED && intent->intended.n_nodes > 0;
        break;
    default:
        break;
    }
}
