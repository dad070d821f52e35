/* SPDX-License-Identifier: Apache-2.0 */

/* Within a turn of the loop, inputs are judged as they come and collected; a deferred source, which
 * is armed by the first of them, commits them when the turn's handler has returned. Between the
 * judgement and the commit nothing leaves this process, so a crash in between is as if the input
 * had never arrived.
 *
 * TILT. When the journal cannot be written (a full disk), events are kept, no intent is handed
 * out, and the commit is tried again every RETRY_US. When it succeeds, the held intents go out
 * in order; those that have been overtaken have a result by then, or core will refuse their
 * result. When more than KEPT_MAX events wait, the journal is given up for this run: tilted for
 * good. The job does not notice any of it.
 *
 * A lock of another process (a backup, somebody with a database tool) is mostly gone in a moment:
 * so for BUSY_MAX the commit is only late, and tried again every BUSY_AGAIN while the loop goes on.
 * Neither is what happened told nor an intent handed out until then; after it, it is a TILT.
 *
 * Whoever made the pump may know a reason not to write: the state that the journal belongs to is
 * another's by now. That is a TILT too.
 *
 * Whatever an input says, the journal can be read again: one that a journal may not hold is refused
 * here, before core sees it.
 *
 * Stalls. A heartbeat tells how long the loop was not running. That time is taken out of the
 * pump's clock, because nobody watched the job in it: silence of the watcher is not silence of
 * the job. */

#include "pump/pump.h"

#include "base/timer.h"
#include "base/vec.h"
#include "core/core.h"

#include <assert.h>

#define KEPT_MAX   4096
#define RETRY_US   (5 * USEC_PER_SEC)
#define BUSY_AGAIN (250 * USEC_PER_MSEC)
#define BUSY_MAX   (5 * USEC_PER_SEC)
#define BEAT_US    (2 * USEC_PER_SEC)
#define STALL_US   (3 * USEC_PER_SEC) /* beyond the beat */
#define TICK_LEAST (10 * USEC_PER_MSEC)
#define TURN_MAX   64 /* events in a turn before they are committed in mid-turn */

typedef VEC(struct event) event_vec;

struct pump {
    sd_event *event;
    struct journal *journal;
    struct pump_handlers handlers;
    void *ctx;
    struct core *core;
    struct journal_batch *batch;
    event_vec turn; /* happened since the last commit */
    event_vec held; /* intents that wait for a commit */
    uint64_t next_seq;
    bool durable; /* the batch holds something that must be on the disk before it is acted on */
    bool tilted, given_up;
    bool asleep;
    usec_t retry_at;     /* monotonic */
    usec_t busy_since;   /* monotonic; USEC_NEVER = the commit is not late */
    usec_t clock_offset; /* pump time - monotonic */
    usec_t last_beat;    /* monotonic */
    sd_event_source *turn_over, *tick, *beat, *again;
};

usec_t pump_now(const struct pump *p)
{
    return mono_us() + p->clock_offset;
}

const struct model *pump_model(const struct pump *p)
{
    return core_model(p->core);
}

usec_t pump_to_mono(const struct pump *p, usec_t t)
{
    return t == USEC_NEVER ? USEC_NEVER : t - p->clock_offset;
}

bool pump_is_tilted(const struct pump *p)
{
    return p->tilted;
}

static void note(struct pump *p, const struct event *e)
{
    if (!p->given_up)
        journal_batch_add(p->batch, e);
    if (p->turn.n == 0)
        sd_event_source_set_enabled(p->turn_over, SD_EVENT_ONESHOT);
    *VEC_PUSH(&p->turn) = *e;
    if (e->kind == EVENT_INTENT)
        *VEC_PUSH(&p->held) = *e;
    p->durable |= e->kind == EVENT_INTENT || e->kind == EVENT_JOB_ENDED;
}

static void enter_tilt(struct pump *p, const struct err *why)
{
    p->retry_at = mono_us() + RETRY_US;
    if (journal_batch_size(p->batch) > KEPT_MAX) {
        p->given_up = true;
        p->batch = journal_batch_free(p->batch);
        p->held.n = 0;
    }
    if (p->tilted)
        return;
    p->tilted = true;
    p->handlers.tilted(p->ctx, why);
}

static void leave_tilt(struct pump *p)
{
    p->durable = false;
    p->busy_since = USEC_NEVER;
    if (!p->tilted)
        return;
    p->tilted = false;
    p->handlers.tilted(p->ctx, NULL);
}

/* The journal is locked, but not for long yet. */
static bool is_late(struct pump *p)
{
    usec_t now = mono_us();

    if (p->tilted)
        return false;
    if (p->busy_since == USEC_NEVER)
        p->busy_since = now;
    return now < p->busy_since + BUSY_MAX;
}

static int may_write(struct pump *p, struct err *e)
{
    return p->handlers.may_write ? p->handlers.may_write(p->ctx, e) : 0;
}

/* -EBUSY, and not tilted: to be tried again. */
static int commit(struct pump *p, struct err *e)
{
    int r;

    if (p->given_up)
        return -ENOSPC;
    r = may_write(p, e);
    if (r >= 0)
        r = journal_commit(p->journal, p->batch, p->durable, e);
    if (r == -EBUSY && is_late(p))
        timer_arm(p->again, mono_us() + BUSY_AGAIN);
    else if (r < 0)
        enter_tilt(p, e);
    else
        leave_tilt(p);
    return r;
}

/* Handlers may call pump_input(), which starts new lists; so each list is taken first. */
static void tell(struct pump *p, event_vec *events, void (*fn)(void *, const struct event *))
{
    event_vec taken = *events;

    *events = (event_vec){0};
    VEC_FOREACH (&taken, e)
        fn(p->ctx, e);
    VEC_DONE(&taken);
}

/* Core names the time at which it wants to be called. */
static void arm_tick(struct pump *p)
{
    usec_t due = pump_to_mono(p, core_deadline(p->core)), least = mono_us() + TICK_LEAST;

    if (due == USEC_NEVER || p->asleep) {
        timer_stop(p->tick);
        return;
    }
    timer_arm(p->tick, due > least ? due : least);
}

/* False: it is not over yet, for the commit is late. */
static bool turn_end(struct pump *p)
{
    struct err e = {0};
    bool retry = p->tilted && mono_us() >= p->retry_at;

    if (p->turn.n == 0 && !retry)
        return true;
    arm_tick(p);
    if ((!p->tilted || retry) && commit(p, &e) == -EBUSY && !p->tilted)
        return false;
    tell(p, &p->turn, p->handlers.happened);
    if (!p->tilted)
        tell(p, &p->held, p->handlers.intent);
    return true;
}

/* A commit that is late keeps the caller, not the loop, for as long as that may last. */
void pump_settle(struct pump *p)
{
    while (p->turn.n > 0)
        turn_end(p);
}

static int on_turn_over(sd_event_source *s, void *userdata)
{
    struct pump *p = userdata;

    while (p->turn.n > 0 && turn_end(p))
        ;
    return 0;
}

static int on_again(sd_event_source *s, uint64_t usec, void *userdata)
{
    return on_turn_over(s, userdata);
}

uint64_t pump_input(struct pump *p, const struct event *e)
{
    struct event input = *e;
    struct core_output out = {0};

    assert(event_is_input(e->kind));
    input.seq = p->next_seq;
    input.parent = 0;
    input.time_us = pump_now(p);
    if (!event_is_sane(&input)) {
        if (p->handlers.refused)
            p->handlers.refused(p->ctx, &input);
        return 0;
    }
    p->next_seq++;
    core_step(p->core, &input, &out);
    note(p, &input);
    VEC_FOREACH (&out.events, derived) {
        assert(derived->seq == p->next_seq && derived->parent == input.seq);
        p->next_seq++;
        note(p, derived);
    }
    core_output_done(&out);
    if (p->turn.n >= TURN_MAX && !p->tilted && p->held.n == 0 && p->busy_since == USEC_NEVER)
        turn_end(p);
    return input.seq;
}

static int on_tick(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct pump *p = userdata;
    struct event e = {.kind = EVENT_TICK};

    if (pump_now(p) >= core_deadline(p->core))
        pump_input(p, &e);
    else
        arm_tick(p); /* a stall moved the clock back under it */
    return 0;
}

static int on_beat(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct pump *p = userdata;
    usec_t now = mono_us(), late = now - p->last_beat - BEAT_US;
    struct err e = {0};

    p->last_beat = now;
    if (late > STALL_US) {
        p->clock_offset -= late;
        arm_tick(p);
        p->handlers.stalled(p->ctx, late);
    }
    if (p->tilted)
        turn_end(p);
    else if (may_write(p, &e) < 0)
        enter_tilt(p, &e);
    sd_event_source_set_time_relative(s, BEAT_US);
    sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
    return 0;
}

static void fold_event(void *ctx, const struct event *event)
{
    struct pump *p = ctx;

    core_fold(p->core, event);
    if (p->handlers.past)
        p->handlers.past(p->ctx, event);
    /* Time never runs backwards in a journal, whatever the wall clock did since. */
    if (event->time_us > pump_now(p))
        p->clock_offset += event->time_us - pump_now(p);
}

static int fold(struct pump *p, struct err *e)
{
    usec_t forget = p->handlers.forget;
    struct journal_choice c = {.ended_before = forget > 0 ? pump_now(p) - forget : 0};
    int r = journal_each_of(p->journal, &c, fold_event, p, e);

    p->next_seq = journal_last_seq(p->journal) + 1;
    return r;
}

static int add_sources(struct pump *p)
{
    int r = sd_event_add_defer(p->event, &p->turn_over, on_turn_over, p);

    if (r >= 0)
        r = sd_event_source_set_enabled(p->turn_over, SD_EVENT_OFF);
    if (r >= 0)
        r = sd_event_add_time_relative(p->event, &p->beat, CLOCK_MONOTONIC, BEAT_US,
                                       100 * USEC_PER_MSEC, on_beat, p);
    if (r >= 0)
        r = timer_new(p->event, on_tick, p, &p->tick);
    if (r >= 0)
        r = timer_new(p->event, on_again, p, &p->again);
    /* Data that waits to be read is older than a deadline that has passed. */
    if (r >= 0)
        r = sd_event_source_set_priority(p->tick, SD_EVENT_PRIORITY_NORMAL + 10);
    /* A stall must be noticed before anything else is judged. */
    if (r >= 0)
        r = sd_event_source_set_priority(p->beat, SD_EVENT_PRIORITY_IMPORTANT);
    return r;
}

int pump_new(sd_event *event, struct journal *j, const struct pump_handlers *handlers, void *ctx,
             struct pump **ret, struct err *e)
{
    _cleanup_(pump_freep) struct pump *p = xnew(struct pump);
    int r;

    p->event = sd_event_ref(event);
    p->journal = j;
    p->handlers = *handlers;
    p->asleep = handlers->sleeps;
    p->ctx = ctx;
    p->core = core_new();
    p->batch = journal_batch_new();
    p->busy_since = USEC_NEVER;
    p->last_beat = mono_us();
    p->clock_offset = now_us() - p->last_beat;
    r = fold(p, e);
    if (r < 0)
        return r;
    r = add_sources(p);
    if (r < 0)
        return err_set(e, r, "event loop: %s", strerror(-r));
    *ret = TAKE(p);
    return 0;
}

void pump_wake(struct pump *p)
{
    p->asleep = false;
    arm_tick(p);
}

struct pump *pump_free(struct pump *p)
{
    if (!p)
        return NULL;
    sd_event_source_disable_unref(p->turn_over);
    sd_event_source_disable_unref(p->tick);
    sd_event_source_disable_unref(p->beat);
    sd_event_source_disable_unref(p->again);
    sd_event_unref(p->event);
    VEC_DONE(&p->turn);
    VEC_DONE(&p->held);
    journal_batch_free(p->batch);
    core_free(p->core);
    free(p);
    return NULL;
}

int pump_close(struct pump *p, struct err *e)
{
    int r = 0;

    while (!p->given_up && journal_batch_size(p->batch) > 0) {
        r = commit(p, e);
        if (r != -EBUSY || p->tilted)
            break;
    }
    return r;
}
