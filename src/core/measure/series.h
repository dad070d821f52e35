/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MEASURE_SERIES_H
#define REKNIT_CORE_MEASURE_SERIES_H

/* One measured series of an attempt (loss, time of a step), watched for a rise that stays.
 * Constant memory; the lines at which the rise began are kept for the evidence. */

#include "core/model/signal.h"

#include <stdbool.h>

#define SERIES_WINDOW 64 /* values that make the level before, and after, a rise */
#define SERIES_SMOOTH 5  /* single spikes vanish in a median of so many */
#define SERIES_ONSET  6  /* first lines of a rise that are kept */

/* A step's line, with the value that was read in it. */
struct sample {
    int64_t value, step;
    usec_t time_us;
    uint32_t file;
    uint64_t line, offset;
    char text[EXCERPT_LEN];
};

/* What counts as a rise. Per mille of the level before it. */
struct series_rule {
    uint32_t skip;   /* values at the start that are no measure */
    uint32_t before; /* values needed before a rise can be seen */
    uint32_t few;    /* ... before a leap can */
    int32_t leap;    /* above level * (1 + leap/1000), and twice the noise that a rise must pass */
    int32_t open;    /* a rise begins above level * (1 + open/1000) ... */
    int32_t sigmas;  /* ... and above level + sigmas * robust deviation */
    int64_t least;   /* ... and above level + least */
    bool climbs;     /* look for a slow climb too */
};

struct series_window {
    int64_t v[SERIES_WINDOW];
    uint32_t n, next;
};

void series_window_add(struct series_window *w, int64_t value);

/* value: METRIC_NAN where none belongs to the line. */
struct sample sample_of(const struct signal *from, int64_t value);

struct series {
    const struct series_rule *rule;
    char signature[SIGNATURE_MAX]; /* of the lines it is read from */
    uint32_t file;                 /* ... of one file, or of those that a log was rotated into */
    int32_t rank;                  /* ... and of one rank */
    uint64_t n;                    /* values seen */
    struct series_window before, after;
    int64_t level, deviation; /* of `before`, refreshed now and then */
    struct sample recent[SERIES_SMOOTH];
    uint32_t recent_next;

    bool open; /* a rise goes on */
    uint64_t open_n;
    int64_t smooth, peak;
    struct sample onset[SERIES_ONSET]; /* onset[0]: the first line above the threshold */
    uint32_t n_onset;
    struct sample last_before; /* the line before it; value METRIC_NAN: none */

    int64_t best;     /* lowest level so far */
    bool climbing;    /* the level has left it, slowly */
    uint64_t climb_n; /* value number at which it did */
    struct sample climb;

    uint32_t nan_run; /* consecutive nan or inf at the end */
    struct sample nan;
};

extern const struct series_rule series_loss, series_step_time;

void series_init(struct series *s, const struct series_rule *rule, const struct signal *from);
void series_add(struct series *s, int64_t value, const struct signal *from);

/* Whether the series ends before the step: another file goes on where its own ended. */
bool series_precedes(const struct series *s, const struct signal *step);

int64_t series_level_after(const struct series *s); /* of the rise that goes on, or NUMBER_NONE */

bool series_beyond(const struct series *s, const struct sample *p); /* above the band */
/* i-th last value, 0 = the newest; NULL: not kept. */
const struct sample *series_recent(const struct series *s, uint32_t i);

/* Median of at most SERIES_WINDOW values; n > 0. */
int64_t series_median(const int64_t *v, size_t n);

#endif
