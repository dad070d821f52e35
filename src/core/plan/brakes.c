/* SPDX-License-Identifier: Apache-2.0 */

/* Everything that is done by itself has a bound over all jobs, too: a switch, a file system or a
 * scheduler that fails takes hundreds of jobs down at once, and none of them is at fault. Then they
 * are brought back one by one, and whoever is wrong about it is wrong slowly. */

#include "core/plan/scheduled.h"

#define PAUSE_MAX USEC_PER_MIN

bool brakes_see_storm(const struct model *m)
{
    return model_storm_until(m) > m->now;
}

static uint32_t count_waiting(const struct model *m)
{
    uint32_t n = 0;

    VEC_FOREACH (&m->jobs, j)
        n += (*j)->sched.in_storm && (*j)->state == JOB_DECIDED &&
             plan_sched_may_act(m, *j, NULL, 0);
    return n;
}

/* Whom the scheduler has forgotten, nobody brings back. So that all are asked for before the last
 * minute in which it is known, there are more a minute where more failed; in that, nobody waits. */
static usec_t worked_off_at(const struct model *m, const struct job *j)
{
    const struct brakes *b = &m->brakes;
    usec_t known = j->attempt.interrupted_at + b->proposal_life, left = known - m->now;
    uint32_t rate = b->storm_per_minute, needed;

    if (b->proposal_life == 0 || rate == 0)
        return model_room_at(m, DEED_ACTED, NULL, USEC_PER_MIN, rate);
    if (left <= USEC_PER_MIN)
        return m->now;
    needed = (uint32_t)((count_waiting(m) * USEC_PER_MIN + left - 1) / left);
    rate = needed > rate ? needed : rate;
    return usec_min(model_room_at(m, DEED_ACTED, NULL, USEC_PER_MIN, rate), known - USEC_PER_MIN);
}

/* When it may be answered as one of a storm. That calm has come says nothing about those that
 * failed in it: they are brought back at its rate to the last. */
static usec_t storm_free_at(const struct model *m, const struct job *j)
{
    const struct brakes *b = &m->brakes;
    usec_t room = model_room_at(m, DEED_ACTED, NULL, USEC_PER_MIN, b->storm_per_minute);

    if (j->sched.in_storm && b->storm_jobs > 0 && j->attempt.interrupted_at != USEC_NEVER)
        return worked_off_at(m, j);
    return usec_min(room, model_storm_until(m));
}

/* The first may have come a moment too late; after that, it is more likely that it never works. */
usec_t brakes_pause(uint32_t n)
{
    usec_t pause = USEC_PER_SEC;

    if (n < 2)
        return 0;
    for (uint32_t i = 2; i < n && pause < PAUSE_MAX; i++)
        pause *= 2;
    return usec_min(pause, PAUSE_MAX);
}

usec_t brakes_free_at(const struct model *m, const struct job *j)
{
    const struct brakes *b = &m->brakes;
    usec_t hour = model_room_at(m, DEED_ACTED, NULL, USEC_PER_HOUR, b->actions_per_hour);
    usec_t partition = model_room_at(m, DEED_ACTED, j->sched.partition, USEC_PER_HOUR,
                                     b->actions_per_partition_hour);

    usec_t user = j->sched.user[0] ? model_room_at(m, DEED_ACTED_FOR, j->sched.user, USEC_PER_HOUR,
                                                   b->actions_per_user_hour)
                                   : m->now;

    return usec_max(usec_max(hour, user), usec_max(partition, storm_free_at(m, j)));
}
