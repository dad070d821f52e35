/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/gather.h"

#include "base/str.h"

/* Steps: whether they lead forward, how long they take, what their numbers say. A step that other
 * ranks print too, or later, is no progress; a counter that starts anew is. */

/* The job has made a step: over are the waits that the same file reported, and its end; and what
 * the samples said of ranks that are stopped or blocked, whichever file the step stands in. */
static void forget_survived(struct evidence *e, uint32_t file)
{
    if (e->waits.reporters > 0)
        collectives_forget(&e->waits, file);
    if (e->finished && e->finish.file == file)
        e->finished = false;
    intset_clear(&e->stopped);
    intset_clear(&e->blocked);
}

/* A log that was rotated, or begun anew by the next attempt, goes on in another file: what its
 * earlier part complains of at the end has been survived. */
static void continue_track(struct evidence *e, const struct signal *s)
{
    VEC_FOREACH (&e->tracks, t) {
        if (t->file == s->file || !streq(t->signature, s->signature) || t->file >= e->streams.n ||
            t->highest == STEP_NONE || s->step.step <= t->highest)
            continue;
        e->streams.v[t->file].advance++;
        e->advances++;
        forget_survived(e, t->file);
    }
}

static struct track *track_of(struct evidence *e, const struct signal *s)
{
    struct track *t;

    VEC_FOREACH (&e->tracks, have)
        if (have->file == s->file && streq(have->signature, s->signature))
            return have;
    if (e->tracks.n == TRACKS_MAX)
        return &e->tracks.v[TRACKS_MAX - 1];
    continue_track(e, s);
    t = VEC_PUSH(&e->tracks);
    *t = (struct track){.file = s->file, .highest = STEP_NONE, .total = NUMBER_NONE};
    STR_COPY(t->signature, s->signature);
    return t;
}

#define COARSE_CLOCK (5 * USEC_PER_SEC)
#define LATE_LINES   4 /* how far behind a slow rank may print the step that others have left */

/* Whether the step leads further than any rank has been. A counter that falls far back counts a
 * new epoch; one that is a little behind is another rank's line. */
static bool track_advances(struct track *t, int64_t step)
{
    int64_t stride = t->stride > 0 ? t->stride : 1;

    if (step == STEP_NONE || t->highest == STEP_NONE) {
        t->highest = step;
        return true;
    }
    if (step > t->highest) {
        t->stride = step - t->highest;
        t->highest = step;
        return true;
    }
    if (step >= t->highest - LATE_LINES * stride)
        return false;
    t->resets++;
    t->highest = step;
    return true;
}

static struct series *series_for(struct series **list, uint32_t *n, const struct series_rule *rule,
                                 const struct signal *s)
{
    for (uint32_t i = 0; i < *n; i++) {
        if (!streq(list[i]->signature, s->signature))
            continue;
        if (list[i]->rank != s->who.rank ||
            (list[i]->file != s->file && !series_precedes(list[i], s)))
            return NULL;
        list[i]->file = s->file;
        return list[i];
    }
    if (*n == SERIES_MAX)
        return NULL;
    list[*n] = xnew(struct series);
    series_init(list[*n], rule, s);
    return list[(*n)++];
}

static void feed_series(struct series **list, uint32_t *n, const struct series_rule *rule,
                        int64_t value, const struct signal *s)
{
    struct series *series;

    if (value == NUMBER_NONE)
        return;
    series = series_for(list, n, rule, s);
    if (series)
        series_add(series, value, s);
}

/* Lines may be far apart, or sampled: what is learned is the time of one step. Where programs do
 * not print it, it is measured by their clocks, whose seconds are too coarse for quick lines. */
static void note_gap(struct pace *p, const struct signal *s, usec_t now)
{
    usec_t gap;
    int64_t steps = 1;

    p->by_clock = NUMBER_NONE;
    if (now == USEC_UNKNOWN || p->last_us == USEC_UNKNOWN || now <= p->last_us)
        return;
    gap = now - p->last_us;
    if (s->step.step != STEP_NONE && p->last.step != STEP_NONE && s->step.step > p->last.step)
        steps = s->step.step - p->last.step;
    series_window_add(&p->gap, gap / steps);
    if (gap >= COARSE_CLOCK)
        p->by_clock = gap / steps;
    if (gap > p->max_gap)
        p->max_gap = gap;
}

/* Whether a progress line leads further than the last one: files of one job are read one after
 * the other, so across files only clocks or step numbers can tell. */
static bool is_latest(const struct pace *p, const struct signal *s, usec_t now)
{
    if (!p->any || s->file == p->last.file)
        return true;
    if (now != USEC_UNKNOWN && p->last_us != USEC_UNKNOWN)
        return now >= p->last_us;
    return s->step.step > p->last.step;
}

/* Silence is counted anew from the last sign of work. */
void gather_sign_of_work(struct evidence *e)
{
    e->silence_first_us = e->silence_end_us = USEC_UNKNOWN;
    e->silence_lines = 0;
}

static void note_progress_line(struct evidence *e, const struct signal *s, usec_t now)
{
    struct pace *p = &e->pace;

    if (!is_latest(p, s, now))
        return;
    note_gap(p, s, now);
    p->last = sample_of(s, METRIC_NAN);
    if (now != USEC_UNKNOWN)
        p->last_us = now;
    p->any = true;
    e->phase = PHASE_STEADY;
    gather_sign_of_work(e);
}

static void note_gradient(struct pace *p, const struct signal *s)
{
    bool nan = s->step.grad_norm == METRIC_NAN || s->step.grad_norm == METRIC_INF;

    if (s->step.grad_norm == NUMBER_NONE)
        return;
    if (nan && p->nan_run == 0)
        p->nan = sample_of(s, METRIC_NAN);
    p->nan_run = nan ? p->nan_run + 1 : 0;
}

static void note_step_numbers(struct pace *p, const struct step_fact *f, bool advanced)
{
    p->sum.steps_seen++;
    if (f->step != STEP_NONE) {
        if (p->sum.first_step == STEP_NONE)
            p->sum.first_step = f->step;
        if (advanced)
            p->sum.last_step = f->step;
    }
    if (f->total != NUMBER_NONE)
        p->sum.total_steps = f->total;
    p->skipped_run = f->skipped ? p->skipped_run + 1 : 0;
}

/* Some programs print the metrics of a step below it, one a line: they belong to that step. */
#define BELOW_LINES 12

static bool stands_below(const struct pace *p, const struct signal *s)
{
    return p->any && s->step.step == STEP_NONE && p->last.step != STEP_NONE &&
           s->file == p->last.file && s->line > p->last.line &&
           s->line - p->last.line <= BELOW_LINES;
}

static struct signal of_step_above(const struct pace *p, const struct signal *s)
{
    bool single = s->step.loss == NUMBER_NONE || s->step.grad_norm == NUMBER_NONE;
    struct signal whole = *s;

    whole.step.step = p->last.step;
    if (!single) /* it says enough to be shown itself */
        return whole;
    whole.line = p->last.line;
    whole.offset = p->last.offset;
    STR_COPY(whole.text, p->last.text);
    return whole;
}

static void feed_values(struct evidence *e, const struct signal *s)
{
    usec_t took = s->step.duration != NUMBER_NONE ? s->step.duration : e->pace.by_clock;

    note_gradient(&e->pace, s);
    if (s->step.duration != NUMBER_NONE)
        series_window_add(&e->pace.step, s->step.duration);
    feed_series(e->loss, &e->n_loss, &series_loss, s->step.loss, s);
    feed_series(e->time, &e->n_time, &series_step_time, took, s);
    if (s->step.rate != NUMBER_NONE && s->step.rate > 0)
        feed_series(e->rate, &e->n_rate, &series_step_time, -s->step.rate, s);
    e->pace.by_clock = NUMBER_NONE;
}

/* How many steps were made with this one. Of those that were left out before it, ranks may have
 * told more than once; there are no more than numbers between them. */
static int64_t steps_made(const struct track *t, const struct step_fact *f)
{
    int64_t between = f->step - t->highest - 1;

    if (f->step == STEP_NONE || t->highest == STEP_NONE || between < 0 || f->more < between)
        return 1 + f->more;
    return 1 + between;
}

void gather_step(struct evidence *e, const struct signal *s, struct stream *stream, usec_t now)
{
    struct track *t;
    int64_t made;
    bool advanced;

    if (stands_below(&e->pace, s)) {
        struct signal whole = of_step_above(&e->pace, s);

        feed_values(e, &whole);
        return;
    }
    t = track_of(e, s);
    made = steps_made(t, &s->step);
    advanced = track_advances(t, s->step.step);
    if (s->step.total != NUMBER_NONE)
        t->total = s->step.total;
    note_step_numbers(&e->pace, &s->step, advanced);
    if (!advanced)
        return;
    stream->advance += made;
    e->advances += (uint64_t)made;
    note_progress_line(e, s, now);
    forget_survived(e, s->file);
    feed_values(e, s);
}

void gather_silence(struct evidence *e, usec_t now)
{
    e->silence_lines++;
    if (e->silence_first_us == USEC_UNKNOWN)
        e->silence_first_us = e->silence_end_us = now;
    if (now > e->silence_end_us)
        e->silence_end_us = now;
}
