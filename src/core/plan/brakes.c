/* SPDX-License-Identifier: Apache-2.0 */

/* Everything that is done by itself has a bound over all jobs, too: a switch, a file system or a
 * scheduler that fails takes hundreds of jobs down at once, and none of them is at fault. Then they
 * are brought back one by one, and whoever is wrong about it is wrong slowly. */

#include "core/plan/scheduled.h"

#define PAUSE_MAX USEC_PER_MIN

/* Until when so many were interrupted at once; m->now: it is no storm. */
static usec_t storm_until(const struct model *m)
{
    const struct brakes *b = &m->brakes;

    return model_room_at(m, DEED_INTERRUPTED, NULL, b->storm_window, b->storm_jobs);
}

bool brakes_see_storm(const struct model *m)
{
    return storm_until(m) > m->now;
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
    usec_t storm = model_room_at(m, DEED_ACTED, NULL, USEC_PER_MIN, b->storm_per_minute);
    usec_t hour = model_room_at(m, DEED_ACTED, NULL, USEC_PER_HOUR, b->actions_per_hour);
    usec_t partition = model_room_at(m, DEED_ACTED, j->sched.partition, USEC_PER_HOUR,
                                     b->actions_per_partition_hour);

    return usec_max(usec_max(hour, partition), usec_min(storm, storm_until(m)));
}
