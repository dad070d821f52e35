/* SPDX-License-Identifier: Apache-2.0 */
#include "core/measure/trend.h"

/* Loss: a spike that comes back is training as usual, so only a rise that is still open at the
 * end counts, one that has kept most of its height, for enough lines.
 *
 * Step time: algorithms b.5 verify a change by its ratio: 1.10 after 10 steps (Greyhound), or
 * 5 % over 50 steps (EROICA); what takes half as long again is seen sooner. What lasts under five
 * minutes is not worth a word. */

#define RISE_PER_MILLE   250 /* loss: level after to level before */
#define RISE_LINES       8
#define RISE_LINES_SHORT 5 /* enough when they span many steps, or updates are skipped */
#define RISE_STEPS       30
#define KEPT_PER_MILLE   700 /* of the peak's height */
#define JUMP_PER_MILLE   100
#define CLIMB_PER_MILLE  300
#define CLIMB_LINES      100
#define NAN_LINES        3
#define SLOW_LEAP        500 /* per mille */
#define SLOW_LEAP_LINES  8
#define SLOW_QUICK       100
#define SLOW_QUICK_LINES 20
#define SLOW_SURE        45
#define SLOW_SURE_LINES  50
#define SLOW_LEAST       (5 * USEC_PER_MIN)

static int64_t per_mille_above(int64_t level, int64_t base)
{
    int64_t unit = (base < 0 ? -base : base) / 1000;

    return (level - base) / (unit > 0 ? unit : 1);
}

static int64_t steps_since_onset(const struct series *s)
{
    const struct sample *last = &s->recent[(s->recent_next + SERIES_SMOOTH - 1) % SERIES_SMOOTH];

    if (s->n_onset == 0 || s->onset[0].step == STEP_NONE || last->step < s->onset[0].step)
        return (int64_t)s->open_n;
    return last->step - s->onset[0].step;
}

static bool height_kept(const struct series *s)
{
    return (s->smooth - s->level) / 1000 >= (s->peak - s->level) / 1000 * KEPT_PER_MILLE / 1000;
}

static bool has_risen(const struct series *s, bool collapsing)
{
    uint64_t lines = RISE_LINES;

    if (!s->open || !height_kept(s))
        return false;
    if (collapsing || steps_since_onset(s) >= RISE_STEPS)
        lines = RISE_LINES_SHORT;
    return s->open_n >= lines && per_mille_above(series_level_after(s), s->level) >= RISE_PER_MILLE;
}

/* In a steep descent the band is wide; a value far above the one before it is no descent. */
static bool jumped(const struct series *s, uint32_t i)
{
    const struct sample *p = series_recent(s, i), *before = series_recent(s, i + 1);

    return before && per_mille_above(p->value, before->value) > JUMP_PER_MILLE;
}

const struct sample *series_last_onset(const struct series *s)
{
    const struct sample *first = NULL, *p;

    if (s->open)
        return s->n_onset > 0 ? &s->onset[0] : NULL;
    for (uint32_t i = 0; (p = series_recent(s, i)) && (series_beyond(s, p) || jumped(s, i)); i++)
        first = p;
    return first;
}

enum divergence loss_diverged(const struct series *s, bool collapsing)
{
    if (s->nan_run >= NAN_LINES)
        return DIVERGENCE_NAN;
    if (has_risen(s, collapsing))
        return DIVERGENCE_RISE;
    if (s->climbing && s->n - s->climb_n >= CLIMB_LINES && s->level - s->best >= s->rule->least &&
        per_mille_above(s->level, s->best) >= CLIMB_PER_MILLE)
        return DIVERGENCE_CLIMB;
    return DIVERGENCE_NONE;
}

/* The series of a rate is stored negated, so that a loss of throughput is a rise as well. */
static bool throughput_fell(const struct series *rate)
{
    return rate->open;
}

/* How long a line takes is not known: so it must be more of them. */
bool rate_fell(const struct series *rate)
{
    if (!rate->open || !height_kept(rate) || rate->open_n < SLOW_QUICK_LINES ||
        steps_since_onset(rate) < SLOW_SURE_LINES || series_level_after(rate) >= 0)
        return false;
    return per_mille_above(-rate->level, -series_level_after(rate)) >= SLOW_QUICK;
}

bool steps_slowed(const struct series *s, const struct series *rate)
{
    int64_t level = series_level_after(s), ratio;

    if (!s->open || !height_kept(s) || level <= 0)
        return false;
    if (rate && rate->n > SERIES_WINDOW && !throughput_fell(rate))
        return false;
    if (steps_since_onset(s) < (SLOW_LEAST + level - 1) / level)
        return false;
    ratio = per_mille_above(level, s->level);
    return (ratio >= SLOW_LEAP && s->open_n >= SLOW_LEAP_LINES) ||
           (ratio >= SLOW_QUICK && s->open_n >= SLOW_QUICK_LINES) ||
           (ratio >= SLOW_SURE && s->open_n >= SLOW_SURE_LINES);
}
