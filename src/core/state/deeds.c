/* SPDX-License-Identifier: Apache-2.0 */

/* What happened within the last hour, counted for the brakes. */

#include "core/state/scheduled.h"

#include "base/str.h"

#include <string.h>

void model_add_deed(struct model *m, enum deed_kind kind, const char *name)
{
    deeds *list = &m->deeds[kind];
    size_t old = 0;
    struct deed *d;

    while (old < list->n &&
           (list->v[old].at + USEC_PER_HOUR <= m->now || list->n - old >= DEEDS_MAX))
        old++;
    if (old > 0) {
        memmove(list->v, list->v + old, (list->n - old) * sizeof(list->v[0]));
        list->n -= old;
    }
    d = VEC_PUSH(list);
    *d = (struct deed){.at = m->now};
    STR_COPY(d->name, name);
}

usec_t model_room_at(const struct model *m, enum deed_kind kind, const char *name, usec_t span,
                     uint32_t limit)
{
    const deeds *list = &m->deeds[kind];
    uint32_t n = 0;

    if (limit == 0)
        return m->now;
    if (limit > DEEDS_MAX)
        limit = DEEDS_MAX;
    for (size_t i = list->n; i-- > 0 && list->v[i].at + span > m->now;)
        if ((!name || streq(list->v[i].name, name)) && ++n == limit)
            return list->v[i].at + span;
    return m->now;
}

usec_t model_storm_until(const struct model *m)
{
    const struct brakes *b = &m->brakes;

    return model_room_at(m, DEED_INTERRUPTED, NULL, b->storm_window, b->storm_jobs);
}

uint32_t model_deeds_of_hour(const struct model *m, enum deed_kind kind)
{
    const deeds *list = &m->deeds[kind];
    uint32_t n = 0;

    while (n < list->n && list->v[list->n - 1 - n].at + USEC_PER_HOUR > m->now)
        n++;
    return n;
}
