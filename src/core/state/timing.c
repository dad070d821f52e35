/* SPDX-License-Identifier: Apache-2.0 */

/* Order statistics on integers, kept up to date gap by gap: no sorting, no floating point, and the
 * same result on every machine.
 *
 * The gaps lie in two arrays, a ring in order of arrival (to know which one to drop) and a sorted
 * one. Adding moves part of the sorted array, at most 4 KiB, once per sign of progress, of which
 * there is at most one a second and job. */

#include "core/state/timing.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <assert.h>
#include <string.h>

/* First position in sorted[] whose value is not below gap. */
static uint32_t position(const struct gaps *g, usec_t gap)
{
    uint32_t lo = 0, hi = g->n;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (g->sorted[mid] < gap)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void drop_oldest(struct gaps *g)
{
    uint32_t i = position(g, g->ring[g->next]);

    assert(g->n == GAPS_MAX && g->sorted[i] == g->ring[g->next]);
    memmove(&g->sorted[i], &g->sorted[i + 1], (g->n - i - 1) * sizeof(g->sorted[0]));
    g->n--;
}

static void gaps_add(struct gaps *g, usec_t gap)
{
    uint32_t i;

    if (g->n == GAPS_MAX)
        drop_oldest(g);
    i = position(g, gap);
    memmove(&g->sorted[i + 1], &g->sorted[i], (g->n - i) * sizeof(g->sorted[0]));
    g->sorted[i] = gap;
    g->ring[g->next] = gap;
    g->next = (g->next + 1) % GAPS_MAX;
    g->n++;
}

/* The deviations from the median grow away from it on both sides, so that merging the two sides
 * up to half of all yields their median without sorting them. */
static usec_t deviation(const struct gaps *g, usec_t median)
{
    uint32_t above = position(g, median), below = above;
    usec_t last = 0;

    for (uint32_t taken = 0; taken <= (g->n - 1) / 2; taken++) {
        bool has_below = below > 0, has_above = above < g->n;
        usec_t down = has_below ? median - g->sorted[below - 1] : 0;
        usec_t up = has_above ? g->sorted[above] - median : 0;

        if (has_above && (!has_below || up <= down)) {
            last = up;
            above++;
        } else {
            last = down;
            below--;
        }
    }
    return last;
}

void timing_add_gap(struct timing *t, usec_t gap)
{
    struct gaps *g = &t->gaps;

    gap = gap < 0 ? 0 : gap > GAP_LONGEST ? GAP_LONGEST : gap;
    gaps_add(g, gap);
    t->present.n = g->n;
    t->present.median = g->sorted[(g->n - 1) / 2];
    t->present.mad = deviation(g, t->present.median);
    t->present.q99 = g->sorted[(g->n * 99 + 99) / 100 - 1];
    t->present.longest = g->sorted[g->n - 1];
}

/* Rises at once, falls by halves: too long a timeout delays, too short a one kills. */
static usec_t blend(usec_t old, usec_t now)
{
    usec_t half;

    now = now < 1 ? 1 : now > GAP_LONGEST ? GAP_LONGEST : now; /* 0 = not known */
    half = old / 2 + now / 2;
    return half > now ? half : now;
}

void timing_add_first_step(struct timing *t, usec_t took)
{
    t->first_step = blend(t->first_step, took);
}

void timing_add_phase(struct timing *t, enum phase phase, usec_t took)
{
    assert(phase >= 0 && phase < PHASE_MAX);
    t->phase[phase] = blend(t->phase[phase], took);
}

static usec_t mean(usec_t a, usec_t b)
{
    return a / 2 + b / 2 + (a % 2 + b % 2) / 2;
}

void timing_next_attempt(struct timing *t)
{
    struct rhythm *l = &t->learned, *p = &t->present;

    if (rhythm_known(p)) {
        if (rhythm_known(l)) {
            p->median = mean(l->median, p->median);
            p->mad = mean(l->mad, p->mad);
            p->q99 = mean(l->q99, p->q99);
            p->longest = mean(l->longest, p->longest);
        }
        *l = *p;
    }
    memset(p, 0, sizeof(*p));
    memset(&t->gaps, 0, sizeof(t->gaps));
}

void timing_tell(const struct timing *t, struct learned_facts *ret)
{
    _cleanup_(freep) struct timing *over = xmemdup(t, sizeof(*t));
    const struct rhythm *l = &over->learned;

    timing_next_attempt(over);
    *ret = (struct learned_facts){.n = l->n,
                                  .median = l->median,
                                  .mad = l->mad,
                                  .q99 = l->q99,
                                  .longest = l->longest,
                                  .first_step = t->first_step,
                                  .n_phases = PHASE_MAX};
    memcpy(ret->phases, t->phase, sizeof(ret->phases));
}

static usec_t bounded(usec_t t)
{
    return t < GAP_LONGEST ? t : GAP_LONGEST;
}

void timing_take(struct timing *t, const struct learned_facts *f)
{
    memset(t, 0, sizeof(*t));
    t->learned = (struct rhythm){.n = f->n,
                                 .median = bounded(f->median),
                                 .mad = bounded(f->mad),
                                 .q99 = bounded(f->q99),
                                 .longest = bounded(f->longest)};
    t->first_step = bounded(f->first_step);
    for (uint32_t p = 0; p < f->n_phases && p < PHASE_MAX; p++)
        t->phase[p] = bounded(f->phases[p]);
}
