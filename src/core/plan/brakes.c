/* SPDX-License-Identifier: Apache-2.0 */

/* Everything that is done by itself has a bound over all jobs, too: a switch, a file system or a
 * scheduler that fails takes hundreds of jobs down at once, and none of them is at fault. Then they
 * are brought back one by one, and whoever is wrong about it is wrong slowly. */

#include "core/plan/scheduled.h"

#include "base/str.h"

/* The time at which the n-th latest such deed falls out of the span, so that one more fits. */
static usec_t room_at(const struct model *m, enum deed_kind kind, const char *name, usec_t span,
                      uint32_t limit)
{
    uint32_t n = 0;

    if (limit == 0)
        return m->now;
    for (size_t i = m->deeds.n; i-- > 0;) {
        const struct deed *d = &m->deeds.v[i];

        if (d->kind != kind || (name && !streq(d->name, name)))
            continue;
        if (d->at + span <= m->now)
            break;
        if (++n == limit)
            return d->at + span;
    }
    return m->now;
}

bool brakes_see_storm(const struct model *m)
{
    const struct brakes *b = &m->brakes;

    return b->storm_jobs > 0 &&
           model_count_deeds(m, DEED_INTERRUPTED, NULL, b->storm_window) >= b->storm_jobs;
}

static usec_t later(usec_t a, usec_t b)
{
    return a > b ? a : b;
}

usec_t brakes_free_at(const struct model *m, const struct job *j)
{
    const struct brakes *b = &m->brakes;
    usec_t at = room_at(m, DEED_ACTED, NULL, USEC_PER_HOUR, b->actions_per_hour);

    at = later(at, room_at(m, DEED_ACTED, j->sched.partition, USEC_PER_HOUR,
                           b->actions_per_partition_hour));
    if (brakes_see_storm(m))
        at = later(at, room_at(m, DEED_ACTED, NULL, USEC_PER_MIN, b->storm_per_minute));
    return at;
}
