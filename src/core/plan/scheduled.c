/* SPDX-License-Identifier: Apache-2.0 */

/* From a decision to what a scheduler is asked for.
 *
 *   restart   requeue, which ends what still runs → once it waits: exclusions, and a later start
 *             where there is a backoff → at that time: a start now, because a scheduler looks at a
 *             job at once when it is changed, and at one whose time has come only now and then
 *   the end   nothing, when it has ended; cancel, when what was found to be dead or done runs on
 *
 * A plain requeue needs nothing else to get going: should reknit die behind it, the scheduler
 * starts the job by itself, only later. So nothing is held, but for the moment of plan/lost.c.
 *
 * A decision asks for one requeue. What comes of it, refusal or silence, is a new decision
 * (policy/decide.c), so that each step has its reason and the number of steps its limit. What is
 * amended is asked for until a look shows it, a few times; and never again once it was seen:
 * whatever is different then, a person wants so.
 *
 * Every wish may be answered with "done" and have no effect. So each has a number of tries, or,
 * when it cannot be given up (a start that must not happen, a hold of ours), longer and longer
 * pauses: brakes_pause(). Who heeds nothing that is amended is asked with such pauses also for the
 * attempts that follow. And none waits for another that may never be granted. */

#include "core/plan/scheduled.h"

#include "core/plan/arm.h"
#include "core/plan/letgo.h"
#include "core/plan/lost.h"
#include "core/plan/place.h"

#include "base/str.h"

#include <string.h>

#define AMENDS_MAX   6
#define REVERT_PAUSE (5 * USEC_PER_MIN) /* between tries to take exclusions back, behind those */
#define START_SLACK  USEC_PER_SEC

static bool say(char *ret, size_t size, const char *why)
{
    if (ret)
        str_copy(ret, size, why);
    return false;
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
    if (s->approved)
        return true;
    if (s->mode == MODE_PROPOSE || decided == MODE_PROPOSE)
        return say(ret, size, "it waits for approval");
    if (s->over)
        return say(ret, size,
                   "it had ended before reknit looked for the first time: whoever waited for it "
                   "may have done "
                   "something else meanwhile, so it waits for approval");
    if (s->succeeded)
        return say(ret, size,
                   "another job that waited for its end would run beside it: it waits "
                   "for approval");
    return true;
}

bool plan_sched_cares(const struct model *m, const struct job *j)
{
    return j->sched.mode == MODE_ACT || plan_sched_may_act(m, j, NULL, 0);
}

static bool is_decided(const struct job *j)
{
    return j->state == JOB_DECIDED || j->state == JOB_STARTING;
}

static bool can_be_requeued(const struct look_facts *look)
{
    switch (look->state) {
    case SCHED_RUNNING:
    case SCHED_SUSPENDED:
    case SCHED_FAILED:
    case SCHED_TIMEOUT:
    case SCHED_NODE_FAIL:
    case SCHED_OUT_OF_MEMORY:
    case SCHED_PREEMPTED:
    case SCHED_BOOT_FAIL:
        return true;
    default: /* it waits already, or nobody may bring it back */
        return false;
    }
}

/* The attempt that was judged is still the last, as far as the scheduler knows. */
static bool wants_requeue(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return is_decided(j) && action_restarts(j->attempt.decision.action) && !s->requeue_asked &&
           !s->look_due && !j->start_failed && !j->requested && !sched_was_requeued(j) &&
           can_be_requeued(&s->look) && !lost_would_start_beside_itself(j) &&
           !(s->look.completing && s->not_while_completing) && !job_awaits(j, INTENT_RESERVE) &&
           !job_awaits(j, INTENT_ARM) && !arm_is_wanted(m, j) && plan_sched_may_act(m, j, NULL, 0);
}

/* Who was refused waits before he asks again; otherwise the delay is one of the start. */
static usec_t requeue_due(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;
    usec_t wait = j->sched.requeue_refused ? a->decision.delay : 0;

    if (!wants_requeue(m, j))
        return USEC_NEVER;
    return usec_max(brakes_free_at(m, j), a->decided_at + wait);
}

/* When the next attempt is to start. Who else queued it gave it a start time that is his, unless
 * that was the scheduler after a node was lost. And unless that is proven to be gone, the
 * scheduler's own delay stays. */
static usec_t start_time(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;
    const struct attempt *a = &j->attempt;
    usec_t early = usec_max(s->pending_since + m->brakes.early_start, lost_settled_at(j));
    usec_t wanted = a->decided_at + a->decision.delay;
    bool fenced = s->n_fenced > 0;
    bool lost = !fenced && (s->node_lost || a->node_failed);

    if (sched_lost_node(j))
        return lost_start_time(m, j);
    if ((!s->requeue_asked && !fenced) || !sched_begins_as_it_was(j))
        return usec_max(s->look.begin, early);
    if (lost && s->look.begin > wanted)
        wanted = s->look.begin;
    return usec_max(wanted, early);
}

/* With them it cannot run at all. What we did ourselves is taken back in every mode. */
static bool wants_reversal(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return (is_decided(j) || j->state == JOB_ENDED) && s->pending_since != USEC_NEVER &&
           s->look.constrained && s->look.n_kept_out > 0 && s->amend_due && !m->frozen &&
           (s->amends > 0 || s->mode > MODE_OBSERVE) && !job_awaits(j, INTENT_AMEND);
}

static usec_t reversal_due(const struct model *m, const struct job *j)
{
    if (!wants_reversal(m, j))
        return USEC_NEVER;
    return j->sched.reverts < WISH_TRIES ? m->now : j->sched.amended_at + REVERT_PAUSE;
}

static bool may_amend(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return is_decided(j) && action_restarts(j->attempt.decision.action) && s->amend_due &&
           s->amends < AMENDS_MAX && s->pending_since != USEC_NEVER &&
           (!s->look.held || s->guarded) && !s->look.constrained && !j->requested &&
           !job_awaits(j, INTENT_AMEND) && !job_awaits(j, INTENT_RESERVE) &&
           plan_sched_may_act(m, j, NULL, 0);
}

/* The first for a decision is asked for at once, however vain those for the one before were. */
static usec_t amendment_free_at(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return s->amended ? usec_max(m->now, s->amended_at + brakes_pause(s->hasty)) : m->now;
}

static bool starts_too_soon(const struct model *m, const struct job *j)
{
    usec_t start = start_time(m, j);

    return j->sched.look.begin + START_SLACK < start && start > m->now;
}

static bool lacks_rank_or_nodes(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return (!s->in_force && s->tries < NODES_TRIES && sched_lacks_exclusions(j)) ||
           place_should_be_first(m, j);
}

/* The scheduler would start it too early, or on a node that is to be kept out. */
static bool lacks_something(const struct model *m, const struct job *j)
{
    return lacks_rank_or_nodes(m, j) || starts_too_soon(m, j);
}

/* From when on, not before `at`, it waits although it need not; USEC_NEVER: it will not. */
static usec_t late_from(const struct model *m, const struct job *j, usec_t at)
{
    usec_t from = usec_max(start_time(m, j), at);

    return j->sched.look.begin > from + START_SLACK ? from : USEC_NEVER;
}

static usec_t amendment_due(const struct model *m, const struct job *j)
{
    usec_t at = amendment_free_at(m, j);

    if (!may_amend(m, j))
        return USEC_NEVER;
    if (lacks_rank_or_nodes(m, j))
        return at;
    if (starts_too_soon(m, j)) /* as soon as it may start, there is nothing left to ask for */
        return usec_min(start_time(m, j), at);
    if (sched_lost_node(j))
        return usec_max(lost_move_due(j), at);
    return late_from(m, j, at);
}

/* Schedulers count whole seconds. */
static usec_t round_up_second(usec_t t)
{
    return (t + USEC_PER_SEC - 1) / USEC_PER_SEC * USEC_PER_SEC;
}

static usec_t begin_to_ask_for(const struct model *m, const struct job *j)
{
    usec_t start = start_time(m, j), begin = j->sched.look.begin;

    if (start <= m->now)
        return m->now;
    if (start < begin) /* there is time; the scheduler's own delay is long enough */
        return begin;
    return round_up_second(start);
}

static void fill_amendment(const struct model *m, const struct job *j, struct intent_facts *ret)
{
    const struct sched *s = &j->sched;

    *ret = (struct intent_facts){.intent = INTENT_AMEND,
                                 .not_before = begin_to_ask_for(m, j),
                                 .after_step = STEP_NONE,
                                 .first = place_should_be_first(m, j),
                                 .restarts = s->look.restarts};
    if (s->look.constrained || s->nodes_refused)
        return; /* none of ours any more */
    for (uint32_t i = 0; i < s->n_kept; i++)
        if (!sched_requires(j, s->kept[i].node))
            STR_COPY(ret->nodes[ret->n_nodes++], s->kept[i].node);
}

static bool runs(const struct job *j)
{
    return j->sched.look.state == SCHED_RUNNING || j->sched.look.state == SCHED_SUSPENDED;
}

/* What cannot be started again is left as it is, even if it looks dead: see `of_verdict`. */
static bool wants_end(const struct model *m, const struct job *j)
{
    enum action action = j->attempt.decision.action;
    bool is_dead = j->attempt.hung || j->attempt.crashed;

    return j->state == JOB_DECIDED && (action == ACTION_STOP || action == ACTION_COMPLETE) &&
           j->sched.of_verdict && is_dead && !j->requested && runs(j) && !sched_was_requeued(j) &&
           plan_sched_may_act(m, j, NULL, 0);
}

/* What was stopped after a failure; who ended it himself, or planned its end, need not look. */
static bool wants_hold(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;
    enum cause cause = j->attempt.incident.cause;
    bool failed = cause != CAUSE_CANCELLED && cause != CAUSE_TIME_LIMIT && cause != CAUSE_NONE;

    return j->state == JOB_DECIDED && j->attempt.decision.action == ACTION_STOP && s->of_verdict &&
           failed && policy_of(m, j)->hold_on_stop && s->holds == 0 && !s->look_due &&
           !j->requested && s->look.requeueable && can_be_requeued(&s->look) &&
           (!runs(j) || j->attempt.hung || j->attempt.crashed) && !sched_was_requeued(j) &&
           plan_sched_may_act(m, j, NULL, 0);
}

static usec_t hold_due(const struct model *m, const struct job *j)
{
    return wants_hold(m, j) ? brakes_free_at(m, j) : USEC_NEVER;
}

static usec_t cancel_due(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    if (!s->cancel_due || s->cancels >= WISH_TRIES || job_awaits(j, INTENT_CANCEL) || m->frozen)
        return USEC_NEVER;
    if (s->unwanted)
        return m->now;
    return wants_end(m, j) && !wants_hold(m, j) && !job_awaits(j, INTENT_HOLD)
               ? brakes_free_at(m, j)
               : USEC_NEVER;
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

static usec_t fence_due(const struct model *m, const struct job *j)
{
    return is_decided(j) && plan_sched_may_act(m, j, NULL, 0) ? lost_fence_due(m, j) : USEC_NEVER;
}

/* While a node is lost, only its start matters: what else it lacks can be had as it waits. */
static bool is_settled(const struct model *m, const struct job *j)
{
    if (!is_decided(j) && j->state != JOB_ENDED)
        return false;
    if (sched_lost_node(j))
        return (!may_amend(m, j) || !starts_too_soon(m, j)) && lost_is_far_away(m, j);
    return !may_amend(m, j) || !lacks_something(m, j);
}

static usec_t release_due(const struct model *m, const struct job *j)
{
    return lost_release_due(m, j, is_settled(m, j));
}

/* An amendment is of the attempt that waits. */
static bool let_go(const struct model *m, const struct job *j, struct intent_facts *ret,
                   uint32_t *ret_attempt)
{
    if (!letgo_intent(m, j, ret))
        return false;
    if (ret->intent == INTENT_AMEND)
        *ret_attempt = j->sched.look.restarts + 1;
    return true;
}

bool plan_sched_intent(const struct model *m, const struct job *j, struct intent_facts *ret,
                       uint32_t *ret_attempt)
{
    *ret_attempt = j->attempt.number;
    if (j->sched.unwatched)
        return m->now >= cancel_due(m, j) ? ask(ret, INTENT_CANCEL, j)
                                          : let_go(m, j, ret, ret_attempt);
    if (wants_inspection(j))
        return ask(ret, INTENT_INSPECT, j);
    if (arm_is_wanted(m, j))
        return ask(ret, INTENT_ARM, j);
    if (arm_is_taken_back(m, j))
        return ask(ret, INTENT_DISARM, j);
    if (m->now >= cancel_due(m, j))
        return ask(ret, INTENT_CANCEL, j);
    if (m->now >= hold_due(m, j))
        return ask(ret, INTENT_HOLD, j);
    if (place_intent(m, j, ret))
        return true;
    if (m->now >= lost_guard_due(m, j))
        return ask(ret, INTENT_GUARD, j);
    if (m->now >= release_due(m, j))
        return ask(ret, INTENT_RELEASE, j);
    if (m->now >= fence_due(m, j)) {
        ask(ret, INTENT_FENCE, j);
        STR_COPY(ret->nodes[ret->n_nodes++], sched_lost_node(j));
        return true;
    }
    if (m->now >= requeue_due(m, j))
        return ask(ret, INTENT_REQUEUE, j);
    if (m->now < usec_min(reversal_due(m, j), amendment_due(m, j)))
        return false;
    fill_amendment(m, j, ret);
    *ret_attempt = j->sched.look.restarts + 1;
    return true;
}

/* Somebody has decided on an end, and it is there. */
static bool is_over(const struct job *j)
{
    enum action action = j->attempt.decision.action;
    const struct look_facts *look = &j->sched.look;

    if (job_awaits(j, INTENT_HOLD))
        return false;
    if (j->state == JOB_DECIDED && j->sched.held_for_people && look->held && !look->completing)
        return true;
    return j->state == JOB_DECIDED && (action == ACTION_STOP || action == ACTION_COMPLETE) &&
           sched_has_ended(look->state) && !look->completing &&
           (look->state == SCHED_CANCELLED || !sched_was_requeued(j));
}

usec_t plan_sched_due(const struct model *m, const struct job *j)
{
    usec_t amending = usec_min(reversal_due(m, j), amendment_due(m, j));
    usec_t asking = usec_min(requeue_due(m, j), cancel_due(m, j));
    usec_t waiting = sched_requeue_limit(j);

    if (j->sched.unwatched)
        return usec_min(cancel_due(m, j), letgo_due(m, j));
    if (is_over(j) && !j->sched.look_due && !job_awaits(j, INTENT_REQUEUE))
        waiting = usec_min(waiting, j->sched.doubt_until);
    asking = usec_min(usec_min(asking, lost_guard_due(m, j)), place_due(m, j));
    asking = usec_min(usec_min(asking, hold_due(m, j)), release_due(m, j));
    return usec_min(usec_min(usec_min(asking, amending), waiting), fence_due(m, j));
}

/* A job may come back for as long as its scheduler knows it; who has decided on an end need not
 * wait for that, unless a requeue may yet be done. */
bool plan_sched_ended(const struct model *m, const struct job *j)
{
    if (j->sched.unwatched)
        return letgo_is_done(m, j);
    if (j->sched.look.state == SCHED_FORGOTTEN)
        return is_decided(j);
    if (hold_due(m, j) != USEC_NEVER)
        return false;
    return is_over(j) && !sched_is_in_doubt(m, j);
}
