/* SPDX-License-Identifier: Apache-2.0 */

/* The pump: commit, then act. While the journal cannot be written nothing is acted on, and nothing
 * is lost; what it holds is shown once and not repeated. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/vec.h"
#include "pump/pump.h"
#include "until.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SKIP (6 * USEC_PER_SEC) /* longer than the pause before a commit is tried again */

/* The linker puts these before the pump's. */
static bool disk_full, locked; /* locked: by another process */
static bool gone;              /* what else has to be there before anything is written */
static unsigned tries;
static usec_t skipped;

usec_t __real_mono_us(void);
usec_t __wrap_mono_us(void);
int __real_journal_commit(struct journal *j, struct journal_batch *b, bool durable, struct err *e);
int __wrap_journal_commit(struct journal *j, struct journal_batch *b, bool durable, struct err *e);

usec_t __wrap_mono_us(void)
{
    return __real_mono_us() + skipped;
}

int __wrap_journal_commit(struct journal *j, struct journal_batch *b, bool durable, struct err *e)
{
    tries++;
    if (locked)
        return err_set(e, -EBUSY, "another process has locked it");
    return disk_full ? err_set(e, -ENOSPC, "the disk is full")
                     : __real_journal_commit(j, b, durable, e);
}

struct fixture {
    char folder[64], path[128];
    sd_event *event;
    struct journal *journal;
    struct pump *pump;
    VEC(struct event) past, happened, intents;
    unsigned tilts, ends_of_tilt, stalls, refused;
    usec_t stalled;
    bool sleeps;
    char why[64];
};

static void on_past(void *ctx, const struct event *e)
{
    struct fixture *f = ctx;

    *VEC_PUSH(&f->past) = *e;
}

static void on_happened(void *ctx, const struct event *e)
{
    struct fixture *f = ctx;

    *VEC_PUSH(&f->happened) = *e;
}

static void on_intent(void *ctx, const struct event *intent)
{
    struct fixture *f = ctx;

    assert_false(pump_is_tilted(f->pump));
    assert_true(journal_last_seq(f->journal) >= intent->seq); /* it was committed before */
    *VEC_PUSH(&f->intents) = *intent;
}

static void on_tilted(void *ctx, const struct err *why)
{
    struct fixture *f = ctx;

    f->tilts += why != NULL;
    f->ends_of_tilt += why == NULL;
    if (why)
        STR_COPY(f->why, why->text);
}

static int may_write(void *ctx, struct err *e)
{
    return gone ? err_set(e, -ENOENT, "the lock is gone") : 0;
}

static void on_refused(void *ctx, const struct event *e)
{
    ((struct fixture *)ctx)->refused++;
}

static void on_stalled(void *ctx, usec_t how_long)
{
    struct fixture *f = ctx;

    f->stalls++;
    f->stalled = how_long;
    sd_event_exit(f->event, 0);
}

static const struct pump_handlers handlers = {.past = on_past,
                                              .happened = on_happened,
                                              .intent = on_intent,
                                              .may_write = may_write,
                                              .tilted = on_tilted,
                                              .refused = on_refused,
                                              .stalled = on_stalled};

static void open_pump(struct fixture *f)
{
    struct pump_handlers h = handlers;
    struct err e = {0};

    h.sleeps = f->sleeps;
    assert_int_equal(journal_open(f->path, JOURNAL_WRITE, &f->journal, &e), 0);
    assert_int_equal(pump_new(f->event, f->journal, &h, f, &f->pump, &e), 0);
}

static void close_pump(struct fixture *f)
{
    f->pump = pump_free(f->pump);
    f->journal = journal_free(f->journal);
}

static int set_up(void **state)
{
    struct fixture *f = xnew(struct fixture);

    disk_full = locked = gone = false;
    skipped = 0;
    STR_COPY(f->folder, "/tmp/reknit-test-pump-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof(f->path), "%s/journal.db", f->folder);
    assert_true(sd_event_new(&f->event) >= 0);
    open_pump(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char last[sizeof(f->path) + 8];

    close_pump(f);
    sd_event_unref(f->event);
    STR_PRINTF(last, "%s-last", f->path);
    unlink(last);
    unlink(f->path);
    VEC_DONE(&f->past);
    VEC_DONE(&f->happened);
    VEC_DONE(&f->intents);
    assert_int_equal(rmdir(f->folder), 0);
    free(f);
    return 0;
}

static void feed(struct fixture *f, enum event_kind kind)
{
    struct event e = {.kind = kind, .job = "train", .attempt = kind == EVENT_JOB_SEEN ? 0 : 1};

    if (kind == EVENT_ATTEMPT_EXITED)
        e.exited.code = 3;
    pump_input(f->pump, &e);
}

/* A job that runs and fails: core wants it started again. */
static void go_wrong(struct fixture *f)
{
    feed(f, EVENT_ATTEMPT_EXITED);
    feed(f, EVENT_ATTEMPT_GONE);
    feed(f, EVENT_LOGS_DRAINED);
    pump_settle(f->pump);
}

static void begin(struct fixture *f)
{
    feed(f, EVENT_JOB_SEEN);
    feed(f, EVENT_ATTEMPT_STARTED);
    pump_settle(f->pump);
}

static void nothing_is_done_before_it_is_written(void **state)
{
    struct fixture *f = *state;

    begin(f);
    go_wrong(f);
    assert_int_equal(f->intents.n, 1);
    assert_int_equal(f->intents.v[0].intended.intent, INTENT_START);
    assert_int_equal(journal_last_seq(f->journal), f->happened.n);
    for (size_t i = 0; i < f->happened.n; i++)
        assert_int_equal(f->happened.v[i].seq, i + 1);
}

/* The loop commits by itself, once the turn is over. */
static void a_turn_of_the_loop_commits(void **state)
{
    struct fixture *f = *state;

    feed(f, EVENT_JOB_SEEN);
    assert_int_equal(f->happened.n, 0);
    assert_true(sd_event_run(f->event, USEC_PER_SEC) >= 0);
    assert_int_equal(f->happened.n, 1);
    assert_int_equal(journal_last_seq(f->journal), 1);
}

/* Its pump is closed, and a verdict is due soon. */
static void leave_a_verdict_due(struct fixture *f)
{
    struct event e = {.kind = EVENT_POLICY};

    policy_default(&e.policy);
    e.policy.verdict_wait = 20 * USEC_PER_MSEC;
    pump_input(f->pump, &e);
    begin(f);
    feed(f, EVENT_ATTEMPT_EXITED);
    pump_settle(f->pump);
    close_pump(f);
    f->happened.n = 0;
}

static void expect_the_verdict(struct fixture *f, size_t before)
{
    for (int turns = 0; f->happened.n == before && turns < 100; turns++)
        assert_true(sd_event_run(f->event, 50 * USEC_PER_MSEC) >= 0);
    assert_true(f->happened.n > before + 1);
    assert_int_equal(f->happened.v[before].kind, EVENT_TICK);
    assert_int_equal(f->happened.v[before + 1].kind, EVENT_VERDICT);
}

static void what_was_due_follows_when_woken(void **state)
{
    struct fixture *f = *state;

    leave_a_verdict_due(f);
    open_pump(f);
    pump_wake(f->pump);
    expect_the_verdict(f, 0);
}

/* What comes in before is taken, but makes nothing due. */
static void who_sleeps_is_not_asked_before_it_is_woken(void **state)
{
    struct fixture *f = *state;
    struct event e = {.kind = EVENT_SIGNAL, .job = "train", .attempt = 1};

    leave_a_verdict_due(f);
    f->sleeps = true;
    open_pump(f);
    e.signal = signal_make(SIGNAL_OUTPUT, PROVENANCE_JOB_TEXT);
    pump_input(f->pump, &e);
    for (int turns = 0; turns < 4; turns++)
        assert_true(sd_event_run(f->event, 50 * USEC_PER_MSEC) >= 0);
    assert_int_equal(f->happened.n, 1);
    pump_wake(f->pump);
    expect_the_verdict(f, 1);
}

static void the_past_is_shown_once_and_not_repeated(void **state)
{
    struct fixture *f = *state;
    size_t n;

    begin(f);
    go_wrong(f);
    n = f->happened.n;
    assert_int_equal(f->past.n, 0);
    close_pump(f);
    open_pump(f);
    pump_settle(f->pump);
    assert_int_equal(f->past.n, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(f->past.v[i].kind, f->happened.v[i].kind);
    assert_int_equal(f->happened.n, n);
    assert_int_equal(f->intents.n, 1);
}

/* TILT: events are told, intents are held; when there is room again they go out. */
static void a_full_disk_holds_intents_back(void **state)
{
    struct fixture *f = *state;
    size_t before;

    begin(f);
    before = f->happened.n;
    disk_full = true;
    go_wrong(f);
    assert_true(pump_is_tilted(f->pump));
    assert_int_equal(f->tilts, 1);
    assert_string_equal(f->why, "the disk is full");
    assert_true(f->happened.n > before);
    assert_int_equal(f->intents.n, 0);
    assert_int_equal(journal_last_seq(f->journal), before);

    disk_full = false;
    feed(f, EVENT_TICK); /* too early to try again */
    pump_settle(f->pump);
    assert_int_equal(f->intents.n, 0);
    skipped += SKIP;
    feed(f, EVENT_TICK);
    pump_settle(f->pump);
    assert_false(pump_is_tilted(f->pump));
    assert_int_equal(f->ends_of_tilt, 1);
    assert_int_equal(f->intents.n, 1);
    assert_int_equal(journal_last_seq(f->journal), f->happened.n); /* all of it */
}

/* It is looked for before each commit, and also while nothing is to be written. */
static void what_has_to_be_there_is_looked_for(void **state)
{
    struct fixture *f = *state;
    uint64_t before;

    begin(f);
    before = journal_last_seq(f->journal);
    gone = true;
    for (int turns = 0; f->tilts == 0 && turns < 100; turns++)
        assert_true(sd_event_run(f->event, 50 * USEC_PER_MSEC) >= 0);
    assert_int_equal(f->tilts, 1);
    assert_string_equal(f->why, "the lock is gone");
    go_wrong(f);
    skipped += SKIP;
    feed(f, EVENT_TICK);
    pump_settle(f->pump);
    assert_int_equal(f->intents.n, 0);
    assert_int_equal(journal_last_seq(f->journal), before);
    gone = false;
    skipped += SKIP;
    feed(f, EVENT_TICK);
    pump_settle(f->pump);
    assert_int_equal(f->ends_of_tilt, 1);
    assert_int_equal(f->intents.n, 1);
}

static void nothing_is_written_where_something_is_missing(void **state)
{
    struct fixture *f = *state;
    uint64_t before;

    begin(f);
    before = journal_last_seq(f->journal);
    gone = true;
    go_wrong(f);
    assert_int_equal(f->tilts, 1);
    assert_int_equal(f->intents.n, 0);
    assert_int_equal(journal_last_seq(f->journal), before);
}

static void a_disk_that_stays_full_is_said_once(void **state)
{
    struct fixture *f = *state;

    begin(f);
    disk_full = true;
    for (int i = 0; i < 5; i++) {
        feed(f, EVENT_TICK);
        pump_settle(f->pump);
        skipped += SKIP;
    }
    assert_int_equal(f->tilts, 1);
    assert_int_equal(f->ends_of_tilt, 0);
}

/* What waits is bounded: beyond that the journal is given up, and never acted on again. */
static void a_journal_that_cannot_catch_up_is_given_up(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    uint64_t last;

    begin(f);
    last = journal_last_seq(f->journal);
    disk_full = true;
    for (int i = 0; i < 5000; i++) {
        feed(f, EVENT_TICK);
        if (i % 1000 == 999) {
            pump_settle(f->pump);
            skipped += SKIP;
        }
    }
    disk_full = false;
    skipped += SKIP;
    go_wrong(f);
    skipped += SKIP;
    feed(f, EVENT_TICK);
    pump_settle(f->pump);
    assert_true(pump_is_tilted(f->pump));
    assert_int_equal(f->intents.n, 0);
    assert_int_equal(f->tilts, 1);
    assert_int_equal(f->happened.v[f->happened.n - 1].kind, EVENT_TICK); /* still told */
    assert_int_equal(pump_close(f->pump, &e), 0);
    assert_int_equal(journal_last_seq(f->journal), last); /* no gap in it */
}

static void fail_in_the_loop(struct fixture *f)
{
    feed(f, EVENT_ATTEMPT_EXITED);
    feed(f, EVENT_ATTEMPT_GONE);
    feed(f, EVENT_LOGS_DRAINED);
    sd_event_run(f->event, 0);
}

/* Who holds the journal for a moment makes the commit late, and nothing else: neither is anything
 * told before it, nor is it a TILT, nor does the loop stand still. */
static void a_journal_that_is_locked_for_a_moment_is_waited_for(void **state)
{
    struct fixture *f = *state;
    size_t before;

    begin(f);
    before = f->happened.n;
    locked = true;
    tries = 0;
    fail_in_the_loop(f);
    for (int i = 0; i < 200; i++) {
        feed(f, EVENT_TICK);
        sd_event_run(f->event, 0);
    }
    assert_in_range(tries, 1, 5); /* not with each turn */
    assert_int_equal(f->happened.n, before);
    assert_int_equal(f->intents.n, 0);
    assert_int_equal(f->tilts, 0);
    locked = false;
    UNTIL(f->intents.n > 0, sd_event_run(f->event, USEC_PER_SEC)); /* by itself */
    assert_int_equal(f->tilts, 0);
    assert_int_equal(journal_last_seq(f->journal), f->happened.n);
    locked = true; /* the patience begins anew */
    skipped += SKIP;
    feed(f, EVENT_TICK);
    sd_event_run(f->event, 0);
    assert_int_equal(f->tilts, 0);
}

static void a_journal_that_stays_locked_is_a_tilt(void **state)
{
    struct fixture *f = *state;

    begin(f);
    locked = true;
    fail_in_the_loop(f);
    assert_int_equal(f->tilts, 0);
    skipped += SKIP;
    UNTIL(f->tilts > 0, sd_event_run(f->event, USEC_PER_SEC));
    assert_string_equal(f->why, "another process has locked it");
    assert_int_equal(f->happened.v[f->happened.n - 1].kind, EVENT_INTENT); /* told, */
    assert_int_equal(f->intents.n, 0);                                     /* not done */
    locked = false;
    skipped += SKIP;
    feed(f, EVENT_TICK);
    pump_settle(f->pump);
    assert_int_equal(f->ends_of_tilt, 1);
    assert_int_equal(f->intents.n, 1);
}

/* Time in which the loop did not run is taken out of the pump's clock. */
static void a_stall_is_no_time(void **state)
{
    struct fixture *f = *state;
    usec_t before = pump_now(f->pump), real = __real_mono_us();

    skipped += USEC_PER_HOUR;
    sd_event_loop(f->event);
    assert_int_equal(f->stalls, 1);
    assert_in_range(f->stalled, USEC_PER_HOUR - USEC_PER_SEC, USEC_PER_HOUR + 20 * USEC_PER_SEC);
    assert_in_range(pump_now(f->pump) - before, 0, __real_mono_us() - real + USEC_PER_SEC);
}

/* What comes from outside may say anything; the next start must be able to read it. */
static void what_no_journal_may_hold_is_refused(void **state)
{
    struct fixture *f = *state;
    struct event e = {.kind = EVENT_SIGNAL, .job = "train", .attempt = 1};
    uint64_t last;

    begin(f);
    e.signal = signal_make(SIGNAL_EXIT, PROVENANCE_SPANK);
    e.signal.exit.signal = SIGNAL_NUMBER_MAX + 36;
    pump_input(f->pump, &e);
    e.signal = signal_make(SIGNAL_ACTIVITY, PROVENANCE_AGENT);
    e.signal.activity.processes = -1;
    pump_input(f->pump, &e);
    assert_int_equal(f->refused, 2);
    go_wrong(f);
    last = journal_last_seq(f->journal);
    assert_int_equal(last, f->happened.n);
    close_pump(f);
    open_pump(f); /* it asserts that it can */
    assert_int_equal(f->past.n, last);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(nothing_is_done_before_it_is_written),
        TEST(a_turn_of_the_loop_commits),
        TEST(what_was_due_follows_when_woken),
        TEST(who_sleeps_is_not_asked_before_it_is_woken),
        TEST(the_past_is_shown_once_and_not_repeated),
        TEST(a_full_disk_holds_intents_back),
        TEST(what_has_to_be_there_is_looked_for),
        TEST(nothing_is_written_where_something_is_missing),
        TEST(a_disk_that_stays_full_is_said_once),
        TEST(a_journal_that_cannot_catch_up_is_given_up),
        TEST(a_journal_that_is_locked_for_a_moment_is_waited_for),
        TEST(a_journal_that_stays_locked_is_a_tilt),
        TEST(a_stall_is_no_time),
        TEST(what_no_journal_may_hold_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
