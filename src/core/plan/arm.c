/* SPDX-License-Identifier: Apache-2.0 */

/* A job of --no-requeue can be requeued by nobody, and that can be changed while it runs, never
 * after. So it is armed in time: who opts in wants restarts. When it leaves our care, its user's
 * word holds again, also for the scheduler, which requeues by itself what loses a node. But only
 * what we changed is changed back: who was seen to become so without us is as a person wants. */

#include "core/plan/arm.h"

#include "core/plan/scheduled.h"

/* While it runs, and not later, it can be let: as soon as it is in our care, or, where people are
 * asked first, when they have said yes. */
bool arm_is_wanted(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;
    bool decided = j->state == JOB_DECIDED || j->state == JOB_STARTING;
    bool cared_for = j->state == JOB_RUNNING && s->mode == MODE_ACT;
    bool to_restart =
        decided && action_restarts(j->attempt.decision.action) && plan_sched_may_act(m, j, NULL, 0);

    return (cared_for || to_restart) && s->arm_due && s->arms < WISH_TRIES && !m->frozen &&
           !s->interactive && s->look.state == SCHED_RUNNING && !s->look.requeueable &&
           !job_awaits(j, INTENT_ARM);
}

bool arm_is_left(const struct job *j)
{
    const struct sched *s = &j->sched;

    return s->armed && s->disarms < WISH_TRIES && sched_lives(s->look.state);
}

bool arm_is_taken_back(const struct model *m, const struct job *j)
{
    return arm_is_left(j) && j->sched.disarm_due && !m->frozen && !plan_sched_cares(m, j) &&
           !job_awaits(j, INTENT_DISARM) && !job_awaits(j, INTENT_ARM);
}
