/* SPDX-License-Identifier: Apache-2.0 */
#include "core/measure/series.h"

#include "base/str.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* A rise that stays, seen online in constant memory (compare algorithms b.5: a median of five
 * takes single spikes out, the level before is a median, the noise a median absolute deviation).
 *
 * While nothing happens each value goes into `before`, the window that defines the level. Once the
 * smoothed value leaves the band, the level is frozen, the lines at which it left are kept, and
 * values go into `after` until the smoothed value has come back half of the way. So a rise is
 * open exactly while it lasts, and what decides about it (how high, how long) is asked at the end.
 *
 * A slow climb never leaves the band, because the level follows it. It is caught by comparing the
 * level with the lowest one ever seen. */

/* A loss that explodes is some twenty per cent up within a few lines; smaller moves are training.
 */
const struct series_rule series_loss = {
    .skip = 0,
    .before = 8,
    .few = 8,
    .leap = 200,
    .open = 200,
    .sigmas = 6,
    .least = 200000, /* 0.2 */
    .climbs = true,
};

/* Compilation, caches and clocks settle in the first steps. */
const struct series_rule series_step_time = {
    .skip = 10,
    .before = 30,
    .few = 8,
    .leap = 250,
    .open = 35,
    .sigmas = 5,
    .least = 0,
};

#define VALUE_LIMIT   ((int64_t)1000000000000000) /* products with 1000 stay in range */
#define REFRESH_EVERY 8
#define CLIMB_LEFT    100 /* per mille above the best level: a climb begins */
#define CLIMB_BACK    50  /* ... and below which it has ended */

/* The k-th smallest of v (Hoare's selection); the order of the others is changed. Asked for every
 * value of every series, so sorting would be too dear. */
static int64_t select_nth(int64_t *v, size_t n, size_t k)
{
    ptrdiff_t low = 0, high = (ptrdiff_t)n - 1, want = (ptrdiff_t)k;

    while (low < high) {
        int64_t pivot = v[want];
        ptrdiff_t i = low, j = high;

        while (i <= j) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i <= j) {
                int64_t swap = v[i];

                v[i++] = v[j];
                v[j--] = swap;
            }
        }
        if (j < want)
            low = i;
        if (want < i)
            high = j;
    }
    return v[k];
}

int64_t series_median(const int64_t *v, size_t n)
{
    int64_t copy[SERIES_WINDOW];

    assert(n > 0 && n <= SERIES_WINDOW);
    memcpy(copy, v, n * sizeof(*v));
    return select_nth(copy, n, n / 2);
}

static int64_t deviation_of(const struct series_window *w, int64_t level)
{
    int64_t d[SERIES_WINDOW];

    for (uint32_t i = 0; i < w->n; i++)
        d[i] = w->v[i] > level ? w->v[i] - level : level - w->v[i];
    return series_median(d, w->n) * 1483 / 1000; /* 1.4826 MAD: sigma of a normal distribution */
}

void series_window_add(struct series_window *w, int64_t value)
{
    w->v[w->next] = value;
    w->next = (w->next + 1) % SERIES_WINDOW;
    if (w->n < SERIES_WINDOW)
        w->n++;
}

static int64_t magnitude(int64_t v)
{
    return v < 0 ? -v : v;
}

static int64_t threshold(const struct series *s)
{
    int64_t ratio = magnitude(s->level) / 1000 * s->rule->open;
    int64_t noise = s->deviation * s->rule->sigmas;
    int64_t above = ratio > noise ? ratio : noise;

    return above > s->rule->least ? above : s->rule->least;
}

/* Few values know little of the noise, but enough to see what is far above it. */
static bool leaves_band(const struct series *s)
{
    int64_t leap = magnitude(s->level) / 1000 * s->rule->leap;
    int64_t noise = 2 * s->deviation * s->rule->sigmas;

    if (s->before.n >= s->rule->before && s->smooth > s->level + threshold(s))
        return true;
    return s->before.n >= s->rule->few && s->smooth > s->level + threshold(s) &&
           s->smooth > s->level + (leap > noise ? leap : noise);
}

struct sample sample_of(const struct signal *from, int64_t value)
{
    struct sample p = {
        .value = value,
        .step = from->step.step,
        .time_us = signal_time(from),
        .file = from->file,
        .line = from->line,
        .offset = from->offset,
    };

    STR_COPY(p.text, from->text);
    return p;
}

/* i-th last of the recent samples, 0 = the newest. */
static const struct sample *recent_at(const struct series *s, uint32_t i)
{
    return &s->recent[(s->recent_next + 2 * SERIES_SMOOTH - 1 - i) % SERIES_SMOOTH];
}

static uint32_t recent_count(const struct series *s)
{
    return s->n < SERIES_SMOOTH ? (uint32_t)s->n : SERIES_SMOOTH;
}

static int64_t smoothed(const struct series *s)
{
    int64_t v[SERIES_SMOOTH];
    uint32_t n = recent_count(s);

    for (uint32_t i = 0; i < n; i++)
        v[i] = recent_at(s, i)->value;
    return series_median(v, n);
}

void series_init(struct series *s, const struct series_rule *rule, const struct signal *from)
{
    *s = (struct series){
        .rule = rule, .file = from->file, .rank = from->who.rank, .best = INT64_MAX};
    STR_COPY(s->signature, from->signature);
    s->last_before.value = METRIC_NAN;
}

static void follow_climb(struct series *s)
{
    int64_t left;

    if (s->before.n < SERIES_WINDOW)
        return;
    if (s->level < s->best) {
        s->best = s->level;
        s->climbing = false;
        return;
    }
    left = magnitude(s->best) / 1000;
    if (!s->climbing && s->level > s->best + left * CLIMB_LEFT) {
        s->climbing = true;
        s->climb_n = s->n;
        s->climb = *recent_at(s, 0);
    } else if (s->climbing && s->level < s->best + left * CLIMB_BACK) {
        s->climbing = false;
    }
}

static void refresh_level(struct series *s)
{
    s->level = series_median(s->before.v, s->before.n);
    s->deviation = deviation_of(&s->before, s->level);
    if (s->rule->climbs)
        follow_climb(s);
}

static void keep_onset(struct series *s, const struct sample *p)
{
    if (s->n_onset < SERIES_ONSET)
        s->onset[s->n_onset++] = *p;
}

/* The smoothed value is above the band: the rise began with the oldest recent value above it. */
static void open_rise(struct series *s, int64_t limit)
{
    s->open = true;
    s->open_n = 0;
    s->n_onset = 0;
    s->after = (struct series_window){0};
    s->peak = s->smooth;
    s->last_before.value = METRIC_NAN;
    for (uint32_t i = recent_count(s); i-- > 0;) {
        const struct sample *p = recent_at(s, i);

        if (s->n_onset == 0 && p->value <= limit) {
            s->last_before = *p;
            continue;
        }
        keep_onset(s, p);
        series_window_add(&s->after, p->value);
        s->open_n++;
    }
}

static void follow_rise(struct series *s, int64_t value)
{
    s->open_n++;
    series_window_add(&s->after, value);
    keep_onset(s, recent_at(s, 0));
    if (s->smooth > s->peak)
        s->peak = s->smooth;
    if (s->smooth < s->level + threshold(s) / 2)
        s->open = false;
}

void series_add(struct series *s, int64_t value, const struct signal *from)
{
    if (value == NUMBER_NONE)
        return;
    if (value == METRIC_NAN || value == METRIC_INF) {
        if (s->nan_run++ == 0)
            s->nan = sample_of(from, value);
        return;
    }
    s->nan_run = 0;
    if (value > VALUE_LIMIT || value < -VALUE_LIMIT)
        return;
    s->recent[s->recent_next] = sample_of(from, value);
    s->recent_next = (s->recent_next + 1) % SERIES_SMOOTH;
    s->n++;
    if (s->n <= s->rule->skip)
        return;
    s->smooth = smoothed(s);
    if (s->open) {
        follow_rise(s, value);
        return;
    }
    if (leaves_band(s)) {
        open_rise(s, s->level + threshold(s));
        return;
    }
    series_window_add(&s->before, value);
    if (s->before.n < SERIES_WINDOW || s->n % REFRESH_EVERY == 0)
        refresh_level(s);
}

bool series_beyond(const struct series *s, const struct sample *p)
{
    return s->before.n > 0 && p->value > s->level + threshold(s);
}

const struct sample *series_recent(const struct series *s, uint32_t i)
{
    return i < recent_count(s) ? recent_at(s, i) : NULL;
}

bool series_precedes(const struct series *s, const struct signal *step)
{
    return s->n > 0 && recent_at(s, 0)->step != STEP_NONE &&
           step->step.step > recent_at(s, 0)->step;
}

int64_t series_level_after(const struct series *s)
{
    return s->open && s->after.n ? series_median(s->after.v, s->after.n) : NUMBER_NONE;
}
