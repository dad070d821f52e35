/* SPDX-License-Identifier: Apache-2.0 */

/* A job whose mode is off is not watched any more: nothing is found, judged or decided about it.
 * But what Reknit holds of it by then is first taken back, so that it is as it would be without:
 * the reservation of its nodes, its place before the others, a start that was moved away, the nodes
 * that are kept out of it while it waits, a hold, and that it may be requeued against its user's
 * word. Only then it is let go, which ends it for core; should it be watched again, that begins
 * with the attempt that runs then.
 *
 * While a node of it is lost, hold and start stay as they are: to give them back would start a
 * second copy beside the first. That ends when the node answers again; the hold at its deadline,
 * the start when it comes.
 *
 * A call that timed out may hold or arm it long after it was let go. That shows in a look, and is
 * taken back then. */

#include "core/plan/letgo.h"

#include "core/plan/arm.h"
#include "core/plan/lost.h"
#include "core/plan/place.h"

static bool is_held(const struct job *j)
{
    return j->sched.guarded && j->sched.look.held && sched_lives(j->sched.look.state);
}

/* What it ran with when it was let go, it is queued again with: then only what keeps it from
 * starting at all is taken back. */
static bool is_different(const struct model *m, const struct job *j)
{
    const struct look_facts *look = &j->sched.look;

    if (j->state == JOB_ENDED)
        return look->n_kept_out > 0 && look->constrained;
    return look->n_kept_out > 0 || sched_start_is_moved(m, j);
}

/* What somebody else holds cannot be amended, and whoever frees it can have it start at once. */
static bool is_amended(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return s->pending_since != USEC_NEVER && (!s->look.held || s->guarded) &&
           s->undoes < WISH_TRIES && is_different(m, j);
}

static bool wants_undoing(const struct model *m, const struct job *j)
{
    return is_amended(m, j) && !sched_lost_node(j) && j->sched.amend_due && !m->frozen &&
           !job_awaits(j, INTENT_AMEND) && !job_awaits(j, INTENT_RESERVE);
}

static usec_t release_due(const struct model *m, const struct job *j)
{
    return lost_release_due(m, j, !sched_lost_node(j) && !is_amended(m, j));
}

static bool ask(struct intent_facts *ret, enum intent intent, const struct job *j)
{
    *ret = (struct intent_facts){
        .intent = intent, .after_step = STEP_NONE, .restarts = j->sched.look.restarts};
    return true;
}

/* As the scheduler itself would have it: without our nodes, and when it said. */
static bool ask_undoing(const struct model *m, const struct job *j, struct intent_facts *ret)
{
    usec_t begin = sched_start_is_moved(m, j) ? j->sched.own_begin : j->sched.look.begin;
    usec_t early = j->sched.pending_since + m->brakes.early_start;

    ask(ret, INTENT_AMEND, j);
    begin = usec_max(usec_max(begin, early), m->now);
    ret->not_before = (begin + USEC_PER_SEC - 1) / USEC_PER_SEC * USEC_PER_SEC;
    return true;
}

bool letgo_intent(const struct model *m, const struct job *j, struct intent_facts *ret)
{
    if (place_intent(m, j, ret))
        return true;
    if (arm_is_taken_back(m, j))
        return ask(ret, INTENT_DISARM, j);
    if (wants_undoing(m, j))
        return ask_undoing(m, j, ret);
    return m->now >= release_due(m, j) && ask(ret, INTENT_RELEASE, j);
}

usec_t letgo_due(const struct model *m, const struct job *j)
{
    usec_t due = usec_min(place_due(m, j), release_due(m, j));

    if (j->requested && m->now < j->sched.doubt_until)
        due = usec_min(due, j->sched.doubt_until);
    return wants_undoing(m, j) ? usec_min(due, m->now) : due;
}

/* A requeue that was asked for may come late, and holds nothing; but who has cancelled the job
 * meanwhile does not want that. */
bool letgo_is_done(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    if (!job_may_enter(j->state, JOB_ENDED))
        return false;
    if (s->look.state == SCHED_FORGOTTEN)
        return !place_is_kept(m, j);
    return j->pending.n == 0 && !s->look_due && !is_held(j) && !is_amended(m, j) &&
           !arm_is_left(j) && !place_is_kept(m, j) && !(j->requested && sched_is_in_doubt(m, j));
}
