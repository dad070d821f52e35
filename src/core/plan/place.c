/* SPDX-License-Identifier: Apache-2.0 */

/* A job that is queued again goes to the end: on a full cluster its nodes are given to the next one
 * in the same second. What the policy does about it:
 *
 *   priority      it is put before the others that wait, and is as they are again once it has begun
 *   reservation   ... and its nodes are kept free, from the death of the first task on, as soon as
 * a witness tells of it (after the end they may be somebody else's already), until the job is the
 * first that waits, and may start
 *
 * The job itself never refers to the reservation: so it can start anywhere, and nothing about it
 * must be undone. The scheduler gives it a short life when it is made: so nothing is left behind,
 * whoever dies; it is only given back sooner, as soon as it is of no use any more. */

#include "core/plan/place.h"

#include "core/plan/scheduled.h"

#include "base/str.h"

#include <inttypes.h>

#define RESERVED_FOR    (5 * USEC_PER_MIN)  /* a job that has not begun by then will not soon */
#define RESERVED_UNTIL  (11 * USEC_PER_MIN) /* the scheduler has ended it by itself */
#define DELAY_MAX       USEC_PER_MIN        /* nothing is kept for who is to wait for longer */
#define GIVE_BACK_AGAIN (20 * USEC_PER_SEC)

static bool is_decided(const struct job *j)
{
    return j->state == JOB_DECIDED || j->state == JOB_STARTING;
}

/* A task of it has died, and the others end, or will. */
static bool is_dying(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;
    bool gathers = j->state == JOB_RUNNING || j->state == JOB_ENDING || j->state == JOB_JUDGED;

    return gathers && j->attempt.task_died_at != USEC_NEVER && s->mode == MODE_ACT && !m->frozen &&
           !s->interactive && s->look.requeueable && !s->succeeded && !sched_was_requeued(j);
}

static bool is_to_start_soon(const struct model *m, const struct job *j)
{
    return is_decided(j) && action_restarts(j->attempt.decision.action) &&
           j->attempt.decision.delay <= DELAY_MAX && plan_sched_may_act(m, j, NULL, 0) &&
           (j->sched.requeue_asked || brakes_free_at(m, j) <= m->now);
}

static bool has_reservation(const struct model *m, const struct job *j)
{
    return j->sched.reservation[0] && m->now < j->sched.reserved_at + RESERVED_UNTIL;
}

/* The scheduler would start it now. Only one that can be the first gets what it gives back. */
static bool may_start_now(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return s->pending_since != USEC_NEVER && s->amends > 0 && s->look.begin <= m->now;
}

/* Its nodes are of use to it and to nobody else. */
static bool should_keep(const struct model *m, const struct job *j)
{
    return !may_start_now(m, j) && policy_of(m, j)->keep_place == KEEP_PLACE_RESERVATION &&
           !j->requested && !sched_lost_node(j) && !brakes_see_storm(m) &&
           (is_dying(m, j) || is_to_start_soon(m, j));
}

static bool wants_reservation(const struct model *m, const struct job *j)
{
    return should_keep(m, j) && j->sched.reserves == 0 && !has_reservation(m, j) &&
           j->sched.ran_on[0] && !job_awaits(j, INTENT_UNRESERVE);
}

/* In every mode: it is ours. */
static usec_t give_back_due(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;
    usec_t again = s->unreserves == 0 ? m->now : s->unreserved_at + GIVE_BACK_AGAIN;
    usec_t until = s->reserved_at + RESERVED_FOR;

    if (!has_reservation(m, j) || job_awaits(j, INTENT_RESERVE) ||
        job_awaits(j, INTENT_UNRESERVE) || job_awaits(j, INTENT_AMEND))
        return USEC_NEVER;
    if (!should_keep(m, j) || m->now >= until)
        return again;
    return s->pending_since != USEC_NEVER && s->amends > 0 && s->look.begin < until ? s->look.begin
                                                                                    : until;
}

/* It has begun; or it is let go, and waits like the others from then on. */
static bool may_yield(const struct job *j)
{
    const struct sched *s = &j->sched;
    bool runs = s->look.state == SCHED_RUNNING, waits = s->look.state == SCHED_PENDING;

    return s->raised && s->yields < WISH_TRIES && !s->look.held &&
           (s->unwatched ? runs || waits : runs && j->state == JOB_RUNNING);
}

static bool wants_to_yield(const struct model *m, const struct job *j)
{
    return may_yield(j) && j->sched.yield_due && !m->frozen && !job_awaits(j, INTENT_YIELD);
}

bool place_is_kept(const struct model *m, const struct job *j)
{
    return has_reservation(m, j) || may_yield(j);
}

/* They were told when it failed. Only what we ourselves brought back: who queues it again by hand
 * knows what is behind it. */
static bool wants_mending(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;
    bool waits = s->look.state == SCHED_PENDING && sched_was_requeued(j);
    bool runs = j->state == JOB_RUNNING && j->attempt.number > 1;

    return s->requeued_by_us && (waits || runs) && s->look.stranded && s->mends < WISH_TRIES &&
           s->mend_due && !m->frozen && s->mode > MODE_OBSERVE && !j->requested &&
           !job_awaits(j, INTENT_MEND);
}

static bool ask(struct intent_facts *ret, enum intent intent, const struct job *j)
{
    *ret = (struct intent_facts){
        .intent = intent, .after_step = STEP_NONE, .restarts = j->sched.look.restarts};
    return true;
}

static void fill_reservation(const struct model *m, const struct job *j, struct intent_facts *ret)
{
    const struct sched *s = &j->sched;

    ask(ret, INTENT_RESERVE, j);
    STR_PRINTF(ret->reservation, RESERVATION_PREFIX "%" PRIu32 "-%" PRIu32, s->id,
               s->look.restarts);
    ret->not_before = m->now; /* of its life */
    for (uint32_t i = 0; i < s->n_kept && is_decided(j); i++)
        if (!sched_requires(j, s->kept[i].node))
            STR_COPY(ret->nodes[ret->n_nodes++], s->kept[i].node);
}

bool place_intent(const struct model *m, const struct job *j, struct intent_facts *ret)
{
    if (wants_reservation(m, j)) {
        fill_reservation(m, j, ret);
        return true;
    }
    if (m->now >= give_back_due(m, j)) {
        ask(ret, INTENT_UNRESERVE, j);
        STR_COPY(ret->reservation, j->sched.reservation);
        return true;
    }
    if (wants_to_yield(m, j))
        return ask(ret, INTENT_YIELD, j);
    return wants_mending(m, j) && ask(ret, INTENT_MEND, j);
}

usec_t place_due(const struct model *m, const struct job *j)
{
    return give_back_due(m, j);
}

bool place_should_be_first(const struct model *m, const struct job *j)
{
    return policy_of(m, j)->keep_place != KEEP_PLACE_NONE && j->sched.look.outranked &&
           !j->sched.is_first && j->sched.firsts < WISH_TRIES;
}
