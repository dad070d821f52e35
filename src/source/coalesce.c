/* SPDX-License-Identifier: Apache-2.0 */

/* Three rules, by kind:
 *
 *   step      the newest is held until a second after the last that was handed on, and counts those
 *             that it stands for: what the job survived must not depend on how its output was read.
 *             One that shows something else than the held one (loss not a number, a skipped update)
 *             is not swallowed by it: the held one goes first. That is bounded like the hits.
 *   output    says only "it printed something": dropped when anything was handed on within the
 *             last second
 *   the rest  RATE_MAX a second go through. Beyond that, of each signature the first in a second
 *             goes through and the others are counted; the last of them follows when the second
 *             is over, with the count in its text.
 *
 * Nothing overtakes: whatever is handed on pushes a held step out before it. */

#include "source/coalesce.h"

#include "base/alloc.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPAN_US     USEC_PER_SEC
#define RATE_MAX    50
#define CROWDED_MAX 32 /* signatures that are counted at a time; more share the last place */

struct crowd {
    uint32_t dropped;
    struct signal last;
};

struct coalesce {
    coalesce_sink_fn sink;
    void *ctx;
    struct signal step; /* held */
    bool has_step;
    int64_t highest; /* number of those that it stands for */
    usec_t step_at;  /* when the last step was handed on */
    usec_t any_at;   /* when anything was */
    usec_t window;   /* begin of the second in which `rate` was counted */
    unsigned rate, n_crowds;
    struct crowd *crowds; /* CROWDED_MAX, allocated when first needed */
};

struct coalesce *coalesce_new(coalesce_sink_fn sink, void *ctx)
{
    struct coalesce *c = xnew(struct coalesce);

    c->sink = sink;
    c->ctx = ctx;
    c->step_at = c->any_at = c->window = -SPAN_US;
    return c;
}

struct coalesce *coalesce_free(struct coalesce *c)
{
    if (!c)
        return NULL;
    free(c->crowds);
    free(c);
    return NULL;
}

static void push_step(struct coalesce *c, usec_t now)
{
    if (!c->has_step)
        return;
    c->has_step = false;
    c->step_at = c->any_at = now;
    c->sink(c->ctx, &c->step);
}

static void hand_on(struct coalesce *c, const struct signal *s, usec_t now)
{
    push_step(c, now);
    c->any_at = now;
    c->sink(c->ctx, s);
}

static bool is_odd(int64_t metric)
{
    return metric == METRIC_NAN || metric == METRIC_INF;
}

static bool shows_else(const struct step_fact *a, const struct step_fact *b)
{
    return is_odd(a->loss) != is_odd(b->loss) || is_odd(a->grad_norm) != is_odd(b->grad_norm) ||
           a->skipped != b->skipped;
}

/* The second is over: the last of each crowd, with what it stands for. */
static void push_crowds(struct coalesce *c, usec_t now)
{
    for (unsigned i = 0; i < c->n_crowds; i++) {
        struct crowd *crowd = &c->crowds[i];
        char count[48];
        size_t at = strlen(crowd->last.text), room = sizeof(crowd->last.text), n;

        if (crowd->dropped == 0)
            continue;
        if (crowd->dropped > 1) {
            n = (size_t)snprintf(count, sizeof(count), " [%u like this in a second]",
                                 crowd->dropped);
            if (at + n >= room)
                at = room - n - 1;
            while (at > 0 && ((unsigned char)crowd->last.text[at] & 0xc0) == 0x80)
                at--; /* not into a character */
            memcpy(crowd->last.text + at, count, n + 1);
        }
        hand_on(c, &crowd->last, now);
    }
    c->n_crowds = 0;
}

static void next_window(struct coalesce *c, usec_t now)
{
    if (now - c->window < SPAN_US)
        return;
    push_crowds(c, now);
    c->window = now;
    c->rate = 0;
}

static struct crowd *find_crowd(struct coalesce *c, const char *signature)
{
    if (!c->crowds)
        c->crowds = xcalloc(CROWDED_MAX, sizeof(c->crowds[0]));
    for (unsigned i = 0; i < c->n_crowds; i++)
        if (streq(c->crowds[i].last.signature, signature))
            return &c->crowds[i];
    return c->n_crowds == CROWDED_MAX ? &c->crowds[CROWDED_MAX - 1] : NULL;
}

static void bounded(struct coalesce *c, const struct signal *s, usec_t now)
{
    struct crowd *crowd;

    if (c->rate++ < RATE_MAX) {
        hand_on(c, s, now);
        return;
    }
    crowd = find_crowd(c, s->signature);
    if (!crowd) {
        c->crowds[c->n_crowds++] = (struct crowd){.last = *s};
        hand_on(c, s, now);
        return;
    }
    crowd->dropped++;
    crowd->last = *s;
}

/* How many steps the newest stands for beside itself. What another rank says of the same step, or
 * of one before it, is none. */
static int64_t left_out(const struct coalesce *c, const struct step_fact *newest)
{
    bool forward =
        c->highest == STEP_NONE || newest->step == STEP_NONE || newest->step > c->highest;

    return c->step.step.more + (forward ? 1 : 0);
}

static void take_step(struct coalesce *c, const struct signal *s, usec_t now)
{
    struct signal newest = *s;

    if (c->has_step && shows_else(&c->step.step, &s->step) && c->rate++ < RATE_MAX)
        push_step(c, now);
    if (c->has_step)
        newest.step.more = left_out(c, &s->step);
    if (!c->has_step || s->step.step > c->highest)
        c->highest = s->step.step;
    c->step = newest;
    c->has_step = true;
    if (now - c->step_at >= SPAN_US)
        push_step(c, now);
}

void coalesce_signal(struct coalesce *c, const struct signal *s, usec_t now)
{
    next_window(c, now);
    if (s->kind == SIGNAL_STEP)
        take_step(c, s, now);
    else if (s->kind != SIGNAL_OUTPUT)
        bounded(c, s, now);
    else if (!c->has_step && now - c->any_at >= SPAN_US)
        hand_on(c, s, now);
}

usec_t coalesce_flush(struct coalesce *c, usec_t now, bool all)
{
    usec_t due = USEC_NEVER;

    if (all)
        push_crowds(c, now);
    else
        next_window(c, now);
    if (c->has_step && (all || now - c->step_at >= SPAN_US))
        push_step(c, now);
    if (c->has_step)
        due = c->step_at + SPAN_US;
    if (c->n_crowds > 0 && c->window + SPAN_US < due)
        due = c->window + SPAN_US;
    return due;
}
