/* SPDX-License-Identifier: Apache-2.0 */

/* A node that does not answer may still run what it ran, though the scheduler has given it up. So
 * nothing is started while one of the last attempt's is lost: the start is moved away, again and
 * again, until the node answers, or is fenced. One that answers was told to end what it runs, which
 * takes a while: processes have Slurm's KillWait, 30 s by default, to end by themselves. A start
 * before that would also be refused its tasks, as long as those of the last attempt are not over.
 *
 * A scheduler that requeues a job itself when it gives a node up starts it in the same second, and
 * one that is requeued while it still ends may wait out its delay until then. So a running job that
 * loses a node is guarded, by a hold that is taken back as soon as the start was moved; and an
 * ended one is requeued only when the scheduler has done with it. */

#include "core/plan/lost.h"

#include "core/plan/scheduled.h"

#define START_AWAY   (10 * USEC_PER_MIN) /* a start that must not happen is moved so far away */
#define START_MARGIN (3 * USEC_PER_MIN)  /* ... and again when only so much is left */
#define FENCE_AGAIN  USEC_PER_MIN
#define SETTLES_IN   (45 * USEC_PER_SEC) /* a node that answers again */
#define GUARDS_MAX   3

bool lost_would_start_beside_itself(const struct job *j)
{
    const struct sched *s = &j->sched;

    if (!sched_lost_node(j))
        return false;
    return sched_has_ended(s->look.state) ? s->look.completing : !s->guarded || !s->look.held;
}

usec_t lost_start_time(const struct model *m, const struct job *j)
{
    usec_t begin = j->sched.look.begin;

    return begin > m->now + START_MARGIN ? begin : m->now + START_AWAY;
}

usec_t lost_move_due(const struct job *j)
{
    return j->sched.look.begin - START_MARGIN;
}

usec_t lost_settled_at(const struct job *j)
{
    usec_t returned = j->sched.returned_at;

    return returned > 0 && !j->sched.approved ? returned + SETTLES_IN : 0;
}

bool lost_is_far_away(const struct model *m, const struct job *j)
{
    return j->sched.look.begin > m->now + START_MARGIN / 2;
}

/* The hold lasts for as long as the node is lost: whoever frees what is stale must not free it. It
 * is asked for while the job runs, and lengthened also where it waits and its start does not move.
 */
usec_t lost_guard_due(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    bool runs = s->look.state == SCHED_RUNNING, waits = s->pending_since != USEC_NEVER;

    if (s->mode != MODE_ACT || s->interactive || !sched_lost_node(j) || s->look_due ||
        job_awaits(j, INTENT_GUARD) || job_awaits(j, INTENT_RELEASE))
        return USEC_NEVER;
    if (s->look.held && (runs || waits))
        return s->guarded ? s->guarded_at + GUARD_LIFE / 3 : USEC_NEVER;
    return runs && s->guards < GUARDS_MAX && !m->frozen ? m->now : USEC_NEVER;
}

static bool may_release(const struct job *j)
{
    const struct sched *s = &j->sched;
    bool runs = s->look.state == SCHED_RUNNING, waits = s->look.state == SCHED_PENDING;

    return s->guarded && s->look.held && (runs || waits) && !s->look_due &&
           !job_awaits(j, INTENT_RELEASE) && !job_awaits(j, INTENT_GUARD) &&
           !job_awaits(j, INTENT_AMEND);
}

/* From when on. At once when the node is back, or the job waits, and would not start too soon by
 * itself; at the latest when the hold's time is up, which is lengthened in mode act alone. */
static usec_t held_until(const struct model *m, const struct job *j, bool settled)
{
    const struct sched *s = &j->sched;

    if (s->look.state == SCHED_RUNNING ? !sched_lost_node(j)
                                       : s->pending_since != USEC_NEVER && settled)
        return m->now;
    return s->mode == MODE_ACT ? USEC_NEVER : s->guarded_at + GUARD_LIFE;
}

/* Not given up: nobody else would start the job. */
usec_t lost_release_due(const struct model *m, const struct job *j, bool settled)
{
    const struct sched *s = &j->sched;
    usec_t from, again = s->released_at + brakes_pause(s->releases);

    if (m->frozen || !may_release(j))
        return USEC_NEVER;
    from = held_until(m, j, settled);
    return s->releases > 0 && again > from ? again : from;
}

usec_t lost_fence_due(const struct model *m, const struct job *j)
{
    usec_t asked = j->sched.fence_asked_at;

    if (!action_restarts(j->attempt.decision.action) || !sched_lost_node(j) || j->requested ||
        j->sched.look.state == SCHED_CANCELLED || job_awaits(j, INTENT_FENCE))
        return USEC_NEVER;
    return asked == USEC_NEVER ? m->now : asked + FENCE_AGAIN;
}
