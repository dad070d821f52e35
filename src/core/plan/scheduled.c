/* SPDX-License-Identifier: Apache-2.0 */

/* From a decision to what a scheduler is asked for.
 *
 *   restart   requeue, which ends what still runs → once it waits: exclusions, and a later start
 *             where there is a backoff → at that time: a start now, because a scheduler looks at a
 *             job at once when it is changed, and at one whose time has come only now and then
 *   stop      nothing, when it has ended; otherwise cancel
 *
 * A plain requeue needs nothing else to get going: should reknit die behind it, the scheduler
 * starts the job by itself, only later. So nothing is ever held.
 *
 * Whatever was asked for counts as granted only when a look shows it. Until then nothing is asked
 * twice, and what a look shows to be missing is asked for again, up to a limit. */

#include "core/plan/scheduled.h"

#include "base/str.h"

#include <string.h>

#define TRIES_MAX  3
#define AMENDS_MAX 6

/* Schedulers count whole seconds. */
#define START_SLACK USEC_PER_SEC

static bool is_pending(const struct job *j, enum intent intent)
{
    VEC_FOREACH (&j->pending, e)
        if (e->intended.intent == intent)
            return true;
    return false;
}

static bool say(char *ret, size_t size, const char *why)
{
    if (ret)
        str_copy(ret, size, why);
    return false;
}

static bool is_approved(const struct model *m, const struct job *j)
{
    usec_t life = m->brakes.proposal_life;

    return j->sched.approved && (life == 0 || m->now < j->attempt.decided_at + life);
}

/* A decision is carried out in the mode that it was made in: what was only observed is not caught
 * up with when the mode changes. */
bool plan_sched_may_act(const struct model *m, const struct job *j, char *ret, size_t size)
{
    const struct sched *s = &j->sched;
    enum mode decided = j->attempt.decision.mode;

    if (m->frozen)
        return say(ret, size, "an operator has frozen all actions");
    if (s->interactive)
        return say(ret, size, "an interactive job cannot be started again by anybody else");
    if (s->rejected)
        return say(ret, size, "it was rejected");
    if (s->mode <= MODE_OBSERVE || decided <= MODE_OBSERVE)
        return say(ret, size, "reknit only observes this job");
    if (is_approved(m, j))
        return true;
    if (s->mode == MODE_PROPOSE || decided == MODE_PROPOSE)
        return say(ret, size, "it waits for approval");
    if (s->look.successor)
        return say(ret, size,
                   "another job that waited for its end would run beside it: it waits "
                   "for approval");
    return true;
}

static bool is_decided(const struct job *j)
{
    return j->state == JOB_DECIDED || j->state == JOB_STARTING;
}

/* The attempt that was judged is still the last, as far as the scheduler knows. */
static bool wants_requeue(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return is_decided(j) && action_restarts(j->attempt.decision.action) && s->requeue_due &&
           s->requeues < TRIES_MAX && !sched_was_requeued(j) && !j->start_failed &&
           s->look.state != SCHED_NONE && s->look.state != SCHED_PENDING &&
           s->look.state != SCHED_CANCELLED && s->look.state != SCHED_FORGOTTEN &&
           s->look.state != SCHED_COMPLETED && !is_pending(j, INTENT_REQUEUE) &&
           plan_sched_may_act(m, j, NULL, 0);
}

static usec_t requeue_due(const struct model *m, const struct job *j)
{
    return wants_requeue(m, j) ? brakes_free_at(m, j) : USEC_NEVER;
}

/* Unless it is proven to be gone, what ran on a lost node may still run: the scheduler's own delay
 * stays. */
static bool keeps_delay(const struct job *j)
{
    return j->attempt.incident.cause == CAUSE_NODE_FAILURE;
}

/* When the next attempt is to start. */
static usec_t start_time(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;
    usec_t early = s->pending_since + m->brakes.early_start;
    usec_t wanted = j->attempt.decided_at + j->attempt.decision.delay;

    if (keeps_delay(j) && s->look.begin > wanted)
        return s->look.begin;
    return wanted > early ? wanted : early;
}

static bool is_kept_out(const struct look_facts *look, const char *node)
{
    for (uint32_t i = 0; i < look->n_kept_out; i++)
        if (streq(look->kept_out[i], node))
            return true;
    return false;
}

static bool lacks_exclusions(const struct job *j)
{
    const struct sched *s = &j->sched;

    for (uint32_t i = 0; !s->nodes_refused && i < s->n_kept; i++)
        if (!is_kept_out(&s->look, s->kept[i].node))
            return true;
    return false;
}

static bool may_amend(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return is_decided(j) && action_restarts(j->attempt.decision.action) && s->amend_due &&
           s->amends < AMENDS_MAX && s->pending_since != USEC_NEVER && !s->look.held &&
           !is_pending(j, INTENT_AMEND) && plan_sched_may_act(m, j, NULL, 0);
}

/* The scheduler would start it too early, or on a node that is to be kept out. */
static bool lacks_something(const struct model *m, const struct job *j)
{
    const struct look_facts *l = &j->sched.look;

    if (l->constrained)
        return l->n_kept_out > 0;
    return lacks_exclusions(j) || l->begin + START_SLACK < start_time(m, j);
}

static bool is_late(const struct model *m, const struct job *j)
{
    return j->sched.look.begin > start_time(m, j) + START_SLACK;
}

static usec_t amendment_due(const struct model *m, const struct job *j)
{
    if (!may_amend(m, j))
        return USEC_NEVER;
    if (lacks_something(m, j))
        return m->now;
    return is_late(m, j) ? start_time(m, j) : USEC_NEVER;
}

static void fill_amendment(const struct model *m, const struct job *j, struct intent_facts *ret)
{
    const struct sched *s = &j->sched;
    usec_t start = start_time(m, j);

    if (start < m->now)
        start = m->now;
    else if (start < s->look.begin) /* there is time; the scheduler's own delay is long enough */
        start = s->look.begin;
    *ret = (struct intent_facts){.intent = INTENT_AMEND,
                                 .not_before = start,
                                 .after_step = STEP_NONE,
                                 .restarts = s->look.restarts};
    if (s->look.constrained || s->nodes_refused)
        return; /* none of ours any more */
    for (uint32_t i = 0; i < s->n_kept; i++)
        STR_COPY(ret->nodes[ret->n_nodes++], s->kept[i].node);
}

static bool wants_cancel(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return j->state == JOB_DECIDED && j->attempt.decision.action == ACTION_STOP &&
           (j->attempt.hung || j->attempt.crashed) && s->cancels < TRIES_MAX &&
           (s->look.state == SCHED_RUNNING || s->look.state == SCHED_SUSPENDED) &&
           !sched_was_requeued(j) && !is_pending(j, INTENT_CANCEL) &&
           plan_sched_may_act(m, j, NULL, 0);
}

static bool wants_arming(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return j->state == JOB_RUNNING && s->mode == MODE_ACT && !s->armed && !m->frozen &&
           !s->interactive && s->look.state == SCHED_RUNNING && !s->look.requeueable;
}

static bool wants_inspection(const struct job *j)
{
    return j->state == JOB_RUNNING && j->attempt.suspicion != SUSPICION_NONE &&
           !j->attempt.inspected && !j->attempt.progressed;
}

static bool ask(struct intent_facts *ret, enum intent intent, const struct job *j)
{
    *ret = (struct intent_facts){
        .intent = intent, .after_step = STEP_NONE, .restarts = j->sched.look.restarts};
    return true;
}

bool plan_sched_intent(const struct model *m, const struct job *j, struct intent_facts *ret,
                       uint32_t *ret_attempt)
{
    *ret_attempt = j->attempt.number;
    if (wants_inspection(j))
        return ask(ret, INTENT_INSPECT, j);
    if (wants_arming(m, j))
        return ask(ret, INTENT_ARM, j);
    if (wants_cancel(m, j))
        return ask(ret, INTENT_CANCEL, j);
    if (m->now >= requeue_due(m, j))
        return ask(ret, INTENT_REQUEUE, j);
    if (m->now < amendment_due(m, j))
        return false;
    fill_amendment(m, j, ret);
    *ret_attempt = j->sched.look.restarts + 1;
    return true;
}

usec_t plan_sched_due(const struct model *m, const struct job *j)
{
    usec_t requeue = requeue_due(m, j), amend = amendment_due(m, j);

    return requeue < amend ? requeue : amend;
}

/* A job may come back for as long as its scheduler knows it; who has decided on an end need not
 * wait for that. */
bool plan_sched_ended(const struct job *j)
{
    enum action action = j->attempt.decision.action;
    enum sched_state state = j->sched.look.state;

    if (!is_decided(j))
        return false;
    if (state == SCHED_FORGOTTEN)
        return true;
    return j->state == JOB_DECIDED && (action == ACTION_STOP || action == ACTION_COMPLETE) &&
           sched_has_ended(state) && !j->sched.look.completing && !sched_was_requeued(j);
}
