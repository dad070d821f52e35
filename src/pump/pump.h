/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_PUMP_PUMP_H
#define REKNIT_PUMP_PUMP_H

/* The one way from an input to an action (docs/ARCHITECTURE.md): stamp the input, let core judge
 * it, commit it with all that was derived from it, and only then arm timers and hand intents out.
 * Daemon and `reknit run` use the same pump. */

#include "base/cleanup.h"
#include "base/err.h"
#include "core/model/event.h"
#include "journal/journal.h"

#include <systemd/sd-event.h>

struct pump_handlers {
    /* Every event that the journal holds when the pump is made, in order; NULL: of no interest. */
    void (*past)(void *ctx, const struct event *e);
    /* Every event, inputs too, in order, once it was committed; while tilted also without. */
    void (*happened)(void *ctx, const struct event *e);
    /* To be carried out; the result comes back by pump_input(). Never called while tilted. */
    void (*intent)(void *ctx, const struct event *intent);
    /* 0, or a negative errno and why nothing may be written although it could be (not -EBUSY);
     * asked before each commit, and now and then. NULL: it may always be. */
    int (*may_write)(void *ctx, struct err *e);
    /* why: the journal cannot be written, so nothing is acted on; NULL: it can again. */
    void (*tilted)(void *ctx, const struct err *why);
    /* This input has a number that core does not compute with: it is left out, and is in no
     * journal, which could not be read again. NULL: of no interest. */
    void (*refused)(void *ctx, const struct event *e);
    /* The loop did not run for so long: stopped, starved, or the machine slept. */
    void (*stalled)(void *ctx, usec_t how_long);
    /* Jobs that ended so long ago are left out when the past is folded; 0 = none. */
    usec_t forget;
    bool sleeps; /* core is not asked at its times before pump_wake() */
};

struct model;
struct pump;

/* Folds what the journal holds; it must outlive the pump. Nothing of the past is repeated. */
int pump_new(sd_event *event, struct journal *j, const struct pump_handlers *handlers, void *ctx,
             struct pump **ret, struct err *e);
struct pump *pump_free(struct pump *p);
DEFINE_CLEANUP(struct pump *, pump_free);

/* Takes an input: kind, job, attempt and body are set, the rest is the pump's. It is judged at
 * once and committed at the end of this turn of the loop. May be called from handlers. Its number
 * in the journal; 0: it was refused. */
uint64_t pump_input(struct pump *p, const struct event *e);

/* Commits and hands out now; for inputs that do not come from the loop. */
void pump_settle(struct pump *p);

/* After the past was folded, core is asked at its times only once something came in, or not even
 * then, so that it decides nothing by a clock that ran on while nobody looked. From now on it is in
 * any case. */
void pump_wake(struct pump *p);

/* The pump's clock: wall time at its start, plus the time that its loop was alive. A clock that
 * is set, a suspended machine, a stopped process do not move it. */
usec_t pump_now(const struct pump *p);

/* From pump time to the loop's CLOCK_MONOTONIC. */
usec_t pump_to_mono(const struct pump *p, usec_t t);

bool pump_is_tilted(const struct pump *p);

/* Core's state, as of the last input. */
const struct model *pump_model(const struct pump *p);

/* Commits what is still open; for the end of a program. */
int pump_close(struct pump *p, struct err *e);

#endif
