/* SPDX-License-Identifier: Apache-2.0 */

/* Goodput: which time of which attempt produced steps that were kept. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "cli/narrate.h"
#include "cli/story.h"

#include <string.h>

#define S USEC_PER_SEC

struct book {
    struct story story;
    uint64_t seq;
    uint32_t attempt;
    usec_t now;
};

static struct event *next(struct book *b, enum event_kind kind)
{
    static struct event e;

    memset(&e, 0, sizeof(e));
    e.seq = ++b->seq;
    e.kind = kind;
    e.time_us = b->now;
    e.attempt = b->attempt;
    STR_COPY(e.job, "job");
    return &e;
}

static void add(struct book *b, enum event_kind kind)
{
    story_add(&b->story, next(b, kind));
}

static void begin(struct book *b)
{
    *b = (struct book){.now = 1000 * S};
    add(b, EVENT_JOB_SEEN);
}

static void start(struct book *b)
{
    b->attempt++;
    add(b, EVENT_ATTEMPT_STARTED);
}

static void steps(struct book *b, int64_t first, int64_t last)
{
    for (int64_t i = first; i <= last; i++) {
        struct event *e;

        b->now += S;
        e = next(b, EVENT_SIGNAL);
        e->signal = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);
        e->signal.step.step = i;
        story_add(&b->story, e);
    }
}

static void checkpoint(struct book *b, enum edge edge, int64_t step)
{
    struct event *e = next(b, EVENT_SIGNAL);

    e->signal = signal_make(SIGNAL_CHECKPOINT, PROVENANCE_JOB_TEXT);
    e->signal.checkpoint = (struct checkpoint_fact){.edge = edge, .step = step};
    story_add(&b->story, e);
}

static void die(struct book *b, int code, int signal)
{
    struct event *e = next(b, EVENT_ATTEMPT_EXITED);

    e->exited = (struct exit_fact){.code = code, .signal = signal};
    story_add(&b->story, e);
    add(b, EVENT_ATTEMPT_GONE);
}

static void gone(struct book *b)
{
    die(b, 1, 0);
}

static struct story_run *end(struct book *b, enum action action)
{
    struct event *e = next(b, EVENT_JOB_ENDED);

    e->ended.action = action;
    story_add(&b->story, e);
    story_account(story_last_run(&b->story), b->now);
    return story_last_run(&b->story);
}

/* Whatever happened, useful and lost time of the attempts and the waits between them add up. */
static void check_sum(const struct story_run *run)
{
    usec_t sum = 0, useful = 0, before = run->began;

    VEC_FOREACH (&run->attempts, a) {
        assert_true(a->useful >= 0 && a->useful <= a->span);
        sum += a->started - before + a->span;
        before = a->ended;
        useful += a->useful;
    }
    assert_int_equal(useful, run->useful);
    assert_int_equal(sum, run->wall);
}

static void all_is_kept_when_it_ends_well(void **state)
{
    struct book b;
    struct story_run *run;

    (void)state;
    begin(&b);
    start(&b);
    b.now += 9 * S; /* start-up, then a second for each step */
    steps(&b, 1, 90);
    b.now += 5 * S;
    gone(&b);
    run = end(&b, ACTION_COMPLETE);
    assert_int_equal(run->wall, 104 * S);
    assert_int_equal(run->useful, 90 * S);
    check_sum(run);
    story_done(&b.story);
}

static void repeated_steps_are_lost_where_they_were_done_first(void **state)
{
    struct book b;
    struct story_run *run;

    (void)state;
    begin(&b);
    start(&b);
    steps(&b, 1, 50);
    gone(&b);
    b.now += 10 * S;
    start(&b);
    steps(&b, 41, 100);
    gone(&b);
    run = end(&b, ACTION_COMPLETE);
    assert_int_equal(run->attempts.v[0].useful, 40 * S);
    assert_int_equal(run->attempts.v[1].useful, 60 * S);
    assert_int_equal(run->wall, 120 * S);
    check_sum(run);
    story_done(&b.story);
}

static void the_checkpoint_that_was_loaded_tells_where_it_went_on(void **state)
{
    struct book b;
    struct story_run *run;

    (void)state;
    begin(&b);
    start(&b);
    steps(&b, 1, 50);
    gone(&b);
    start(&b);
    checkpoint(&b, EDGE_POINT, 30);
    b.now += 19 * S; /* shows every twentieth step only */
    steps(&b, 50, 50);
    gone(&b);
    run = end(&b, ACTION_COMPLETE);
    assert_int_equal(run->attempts.v[0].useful, 30 * S);
    check_sum(run);
    story_done(&b.story);
}

static void an_attempt_without_steps_keeps_nothing_and_takes_nothing(void **state)
{
    struct book b;
    struct story_run *run;

    (void)state;
    begin(&b);
    start(&b);
    steps(&b, 1, 50);
    gone(&b);
    start(&b);
    b.now += 7 * S;
    gone(&b);
    start(&b);
    steps(&b, 46, 60);
    gone(&b);
    run = end(&b, ACTION_COMPLETE);
    assert_int_equal(run->attempts.v[0].useful, 45 * S);
    assert_int_equal(run->attempts.v[1].useful, 0);
    assert_int_equal(run->attempts.v[2].useful, 15 * S);
    check_sum(run);
    story_done(&b.story);
}

static void a_job_that_was_stopped_keeps_its_last_checkpoint(void **state)
{
    struct book b;
    struct story_run *run;

    (void)state;
    begin(&b);
    start(&b);
    steps(&b, 1, 40);
    checkpoint(&b, EDGE_END, 40);
    steps(&b, 41, 55);
    gone(&b);
    run = end(&b, ACTION_STOP);
    assert_int_equal(run->useful, 40 * S);
    check_sum(run);
    story_done(&b.story);
    begin(&b); /* and without one, nothing */
    start(&b);
    steps(&b, 1, 40);
    gone(&b);
    run = end(&b, ACTION_STOP);
    assert_int_equal(run->useful, 0);
    check_sum(run);
    story_done(&b.story);
}

/* Whoever wanted the end: what ended with status 0 has nothing to do again. */
static void a_job_that_was_asked_to_end_and_did_keeps_its_steps(void **state)
{
    struct book b;

    (void)state;
    begin(&b);
    start(&b);
    steps(&b, 1, 50);
    die(&b, 0, 0);
    assert_int_equal(end(&b, ACTION_STOP)->useful, 50 * S);
    story_done(&b.story);
}

static void kill_it(struct book *b)
{
    struct event *e = next(b, EVENT_INTENT);

    e->intended.intent = INTENT_KILL;
    story_add(&b->story, e);
}

static void what_reknit_ended_did_not_end_well(void **state)
{
    struct book b;

    (void)state;
    begin(&b);
    start(&b);
    steps(&b, 1, 50);
    kill_it(&b);
    die(&b, 0, 0);
    assert_int_equal(end(&b, ACTION_STOP)->useful, 0);
    story_done(&b.story);
}

static void finish(struct book *b, enum incident_class class)
{
    struct event *e = next(b, EVENT_VERDICT);

    e->incident.class = class;
    e->incident.finished = true;
    story_add(&b->story, e);
}

/* Its last step may be one that nothing was saved of. */
static void what_crashed_after_its_last_step_did_not_end_well(void **state)
{
    struct book b;

    (void)state;
    begin(&b);
    start(&b);
    steps(&b, 1, 50);
    gone(&b);
    finish(&b, CLASS_CRASH);
    assert_int_equal(end(&b, ACTION_STOP)->useful, 0);
    story_done(&b.story);
    begin(&b);
    start(&b);
    steps(&b, 1, 50);
    die(&b, 0, 15);
    finish(&b, CLASS_INTERRUPTED);
    assert_int_equal(end(&b, ACTION_STOP)->useful, 50 * S);
    story_done(&b.story);
}

static void the_wait_for_the_next_attempt_is_no_time_of_this_one(void **state)
{
    struct book b;
    struct story_run *run;

    (void)state;
    begin(&b);
    start(&b);
    steps(&b, 1, 10);
    gone(&b);
    b.now += 7 * S;
    start(&b);
    steps(&b, 1, 10);
    gone(&b);
    run = end(&b, ACTION_COMPLETE);
    assert_int_equal(run->attempts.v[0].span, 10 * S);
    assert_int_equal(run->wall, 27 * S);
    check_sum(run);
    story_done(&b.story);
}

static bool is_forced(usec_t after, int signal, bool again)
{
    struct book b = {.now = 1000 * S, .story = {.policy = {.kill_grace = 10 * S}}};
    struct event *e;
    bool forced;

    add(&b, EVENT_JOB_SEEN);
    start(&b);
    for (int i = 0; i < (again ? 2 : 1); i++) {
        e = next(&b, EVENT_OPERATOR);
        e->request.signal = 15;
        story_add(&b.story, e);
    }
    b.now += after;
    die(&b, -1, signal);
    forced = story_last_attempt(story_last_run(&b.story))->forced;
    story_done(&b.story);
    return forced;
}

static void who_sent_the_last_signal_is_known(void **state)
{
    (void)state;
    assert_true(is_forced(10 * S, 9, false));
    assert_true(is_forced(1 * S, 9, true));
    assert_false(is_forced(9 * S, 9, false)); /* somebody else: the OOM killer */
    assert_false(is_forced(11 * S, 15, false));
}

static void numbers_that_begin_anew_prove_nothing(void **state)
{
    struct book b;
    struct story_run *run;

    (void)state;
    begin(&b);
    start(&b);
    steps(&b, 1, 20);
    checkpoint(&b, EDGE_END, STEP_NONE);
    steps(&b, 1, 20); /* the next epoch */
    gone(&b);
    start(&b);
    steps(&b, 15, 20);
    gone(&b);
    run = end(&b, ACTION_COMPLETE);
    /* until the checkpoint; how long the first step took cannot be told from such numbers */
    assert_int_equal(run->attempts.v[0].useful, 19 * S);
    check_sum(run);
    story_done(&b.story);
}

static void a_lost_run_ends_with_its_last_sign_of_life(void **state)
{
    struct book b;
    struct story_run *run;

    (void)state;
    begin(&b);
    start(&b);
    steps(&b, 1, 30);
    checkpoint(&b, EDGE_END, 30);
    b.now += 100000 * S;
    add(&b, EVENT_RUNNER_LOST);
    run = story_last_run(&b.story);
    assert_true(run->lost);
    story_account(run, b.now);
    assert_int_equal(run->wall, 30 * S);
    assert_int_equal(run->useful, 30 * S);
    check_sum(run);
    story_done(&b.story);
}

static void many_runs_and_steps_stay_bounded(void **state)
{
    struct book b;
    struct story_run *run;

    (void)state;
    begin(&b);
    for (int i = 0; i < 1100; i++) {
        b.attempt = 0;
        add(&b, EVENT_JOB_SEEN);
        start(&b);
        gone(&b);
        end(&b, ACTION_COMPLETE);
    }
    assert_int_equal(b.story.runs.n, STORY_RUNS_MAX);
    b.attempt = 0;
    add(&b, EVENT_JOB_SEEN);
    start(&b);
    steps(&b, 1, 100000);
    gone(&b);
    run = end(&b, ACTION_COMPLETE);
    assert_true(run->attempts.v[0].points.n <= STORY_POINTS_MAX);
    assert_true(run->useful > 99900 * S && run->useful <= 100000 * S);
    check_sum(run);
    story_done(&b.story);
}

static void attempts_beyond_the_bound_are_counted_and_told_of_nobody_else(void **state)
{
    struct book b;
    const struct story_run *run;

    (void)state;
    begin(&b);
    for (int i = 0; i < STORY_ATTEMPTS_MAX; i++)
        start(&b);
    steps(&b, 1, 3);
    for (int i = 0; i < 5; i++) {
        start(&b);
        steps(&b, 10, 12);
    }
    run = story_last_run(&b.story);
    assert_int_equal(run->attempts.n, STORY_ATTEMPTS_MAX);
    assert_int_equal(run->attempts_dropped, 5);
    assert_int_equal(run->attempts.v[STORY_ATTEMPTS_MAX - 1].last_step, 3);
    story_done(&b.story);
}

static void count_line(void *ctx, const char *text)
{
    unsigned *n = ctx;

    assert_true(strlen(text) < 200);
    (*n)++;
}

static void a_long_table_is_cut_in_the_middle(void **state)
{
    struct book b;
    unsigned lines = 0;

    (void)state;
    begin(&b);
    for (int i = 0; i < 500; i++) {
        start(&b);
        b.now += S;
        gone(&b);
    }
    narrate_summary(end(&b, ACTION_STOP), 72, count_line, &lines);
    assert_int_equal(lines, 1 + 5 + 1 + 10 + 1); /* head, first, dots, last, goodput */
    story_done(&b.story);
}

static void keep_line(void *ctx, const char *text)
{
    str_copy(ctx, 200, text);
}

static void without_steps_no_goodput_is_claimed(void **state)
{
    struct book b;
    char last[200];

    (void)state;
    begin(&b);
    start(&b);
    b.now += 4 * S;
    gone(&b);
    narrate_summary(end(&b, ACTION_COMPLETE), 72, keep_line, last);
    assert_string_equal(last, "goodput unknown: no steps seen in 4.0s");
    story_done(&b.story);
}

static void one_that_is_queued_again_at_once_has_ended(void **state)
{
    struct book b;
    struct event *seen = xnew(struct event), *exited = xnew(struct event);

    (void)state;
    begin(&b);
    *seen = (struct event){.kind = EVENT_JOB_SEEN, .time_us = b.now, .seen.scheduled = true};
    story_add(&b.story, seen);
    start(&b);
    steps(&b, 1, 5);
    *exited = (struct event){.kind = EVENT_ATTEMPT_EXITED, .time_us = b.now, .exited.code = 1};
    story_add(&b.story, exited);
    assert_true(story_last_attempt(story_last_run(&b.story))->ended == b.now);
    b.now += 3 * S;
    start(&b); /* and no word of the first one's processes */
    assert_true(story_last_run(&b.story)->attempts.v[0].ended == b.now - 3 * S);
    story_done(&b.story);
    free(seen);
    free(exited);
}

static void a_story_may_be_of_the_last_run_only(void **state)
{
    struct book b = {.now = 1000 * S, .story = {.last_run_only = true}};

    (void)state;
    for (int i = 0; i < 3; i++) {
        add(&b, EVENT_JOB_SEEN);
        start(&b);
        steps(&b, 1, 2 + i);
        assert_int_equal(b.story.runs.n, 1);
    }
    assert_int_equal(story_last_run(&b.story)->attempts.n, 1);
    assert_int_equal(story_last_attempt(story_last_run(&b.story))->last_step, 4);
    story_done(&b.story);
}

struct lines {
    unsigned n;
    char text[8][200];
};

static void collect(void *ctx, const char *text)
{
    struct lines *l = ctx;

    assert_true(l->n < 8);
    str_copy(l->text[l->n++], sizeof(l->text[0]), text);
}

static void verdict(struct book *b, enum incident_class class, enum cause cause, const char *text)
{
    struct event *e = next(b, EVENT_VERDICT);

    e->incident.class = class;
    e->incident.cause = cause;
    e->incident.confidence = 30;
    STR_COPY(e->incident.summary, text);
    story_add(&b->story, e);
}

/* Three attempts: died by a signal, ended by reknit, exited. */
static struct story_run *three_ends(struct book *b)
{
    begin(b);
    start(b);
    steps(b, 123456, 123460);
    die(b, -1, 11);
    verdict(b, CLASS_CRASH, CAUSE_UNKNOWN, "The job failed.");
    start(b);
    kill_it(b);
    die(b, -1, 15);
    verdict(b, CLASS_HANG, CAUSE_NODE_HARDWARE, "It hung.");
    story_last_attempt(story_last_run(&b->story))->incident->culprits =
        (struct culprits){.n_ranks = 5, .ranks = {1000, 1001, 1002, 1003, 1004}};
    start(b);
    b->now += 100 * USEC_PER_HOUR;
    die(b, 3, 0);
    return end(b, ACTION_STOP);
}

static void the_table_says_how_each_attempt_ended_and_fits(void **state)
{
    struct book b;
    struct lines l = {0};

    (void)state;
    narrate_summary(three_ends(&b), 72, collect, &l);
    assert_int_equal(l.n, 5);
    assert_non_null(strstr(l.text[0], "exit"));
    assert_non_null(strstr(l.text[1], "  SIGSEGV  unknown"));
    assert_non_null(strstr(l.text[2], "  -        hang: "));
    assert_non_null(strstr(l.text[2], "…"));
    assert_non_null(strstr(l.text[3], "  3        -"));
    for (unsigned i = 0; i < l.n; i++)
        assert_true(strlen(l.text[i]) <= 72 + 2); /* the ellipsis has three bytes */
    story_done(&b.story);
}

static void a_narrow_table_leaves_the_exit_out(void **state)
{
    struct book b;
    struct lines l = {0};

    (void)state;
    begin(&b);
    start(&b);
    steps(&b, 1, 9);
    gone(&b);
    narrate_summary(end(&b, ACTION_STOP), 42, collect, &l);
    assert_string_equal(l.text[0], "attempt  steps  time  cause  action  time lost");
    story_done(&b.story);
}

static void the_verdict_says_how_it_ended_unless_reknit_ended_it(void **state)
{
    struct book b;
    struct story_run *run = three_ends(&b);
    _cleanup_strbuf_ struct strbuf first = {0}, second = {0};

    (void)state;
    narrate_verdict(&run->attempts.v[0], &first);
    assert_string_equal(first.s, "attempt 1 crashed after step 123460, killed by SIGSEGV: The job "
                                 "failed (unknown, 30 %)");
    narrate_verdict(&run->attempts.v[1], &second);
    assert_null(strstr(second.s, "SIGTERM"));
    story_done(&b.story);
}

/* Read from somewhere in its middle, a journal still says where the job was. */
static void the_tail_of_a_journal_tells_where_it_was(void **state)
{
    struct story s = {.last_run_only = true};
    struct event e = {.kind = EVENT_SIGNAL, .attempt = 3, .time_us = 1000, .job = "train"};
    const struct story_attempt *a;

    (void)state;
    e.signal = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);
    e.signal.step.step = 4711;
    story_add_tail(&s, &e);
    e.time_us = 2000;
    e.signal.step.step = 4712;
    story_add_tail(&s, &e);
    a = story_last_attempt(story_last_run(&s));
    assert_non_null(a);
    assert_int_equal(a->number, 3);
    assert_int_equal(a->last_step, 4712);
    assert_int_equal(s.last_event, 2000);
    assert_string_equal(s.job, "train");
    assert_false(story_last_run(&s)->over);
    story_done(&s);
}

static void a_job_is_called_as_the_last_look_says(void **state)
{
    struct book b;
    struct event *e;

    begin(&b);
    e = next(&b, EVENT_LOOK);
    STR_COPY(e->look.label, "6_[2-3%2]");
    story_add(&b.story, e);
    start(&b);
    e = next(&b, EVENT_LOOK);
    STR_COPY(e->look.label, "6_3");
    story_add(&b.story, e);
    add(&b, EVENT_LOOK);
    assert_string_equal(story_last_run(&b.story)->seen.label, "6_3");
    story_done(&b.story);
}

static void said(struct book *b, struct mode_facts mode)
{
    struct event *e = next(b, EVENT_MODE);

    e->mode = mode;
    story_add(&b->story, e);
}

static void words_are(const struct story_attempt *a, size_t i, const char *expected)
{
    _cleanup_strbuf_ struct strbuf b = {0};

    narrate_scheduled(a->facts.v[i], &b);
    assert_string_equal(strbuf_str(&b), expected);
}

static void the_mode_is_what_follows_from_all_that_was_said(void **state)
{
    struct mode_facts rules = {.mode = MODE_ACT, .why = "opted in"};
    struct mode_facts lower = {.mode = MODE_OBSERVE, .why = "not more"};
    struct mode_facts wish = {
        .mode = MODE_ACT, .why = "asked for by alice", .asked = true, .owner = true};
    struct mode_facts order = {.mode = MODE_PROPOSE, .why = "asked for by root", .asked = true};
    struct mode_facts back = {
        .mode = MODE_OBSERVE, .why = "root took it back", .asked = true, .withdrawn = true};
    const struct story_attempt *a;
    struct book b;

    (void)state;
    begin(&b);
    said(&b, rules);
    start(&b);
    said(&b, wish);
    said(&b, lower);
    said(&b, wish);
    said(&b, order);
    said(&b, rules);
    said(&b, back);
    assert_int_equal(story_last_run(&b.story)->mode.mode, MODE_ACT);
    a = story_last_attempt(story_last_run(&b.story));
    assert_int_equal(a->facts.n, 6);
    words_are(a, 0, "mode act from here on: asked for by alice");
    words_are(a, 1, "mode observe from here on: not more");
    words_are(a, 2,
              "mode observe from here on: not act (asked for by alice), for no more is allowed");
    words_are(a, 3, "mode propose from here on: asked for by root");
    words_are(a, 4, "mode propose from here on: not act (opted in), as a person asked");
    words_are(a, 5, "mode act from here on: root took it back");
    story_done(&b.story);
}

static void logged(struct book *b, const char *path, const char *trouble)
{
    struct event *e = next(b, EVENT_LOG_NAMED);

    STR_COPY(e->log.path, path);
    STR_COPY(e->log.trouble, trouble);
    story_add(&b->story, e);
}

static void a_log_that_is_not_read_is_named_once(void **state)
{
    const struct story_attempt *a;
    struct book b;

    (void)state;
    begin(&b);
    start(&b);
    logged(&b, "/a", "");
    for (int i = 0; i < 3; i++) /* reknitd is started again */
        logged(&b, "/b", "it is no regular file");
    logged(&b, "/b", "");
    logged(&b, "/b", "");
    a = story_last_attempt(story_last_run(&b.story));
    assert_int_equal(a->facts.n, 2);
    words_are(a, 0, "its log /b is not read: it is no regular file");
    words_are(a, 1, "its log /b is read after all");
    story_done(&b.story);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_called_as_the_last_look_says),
        cmocka_unit_test(all_is_kept_when_it_ends_well),
        cmocka_unit_test(repeated_steps_are_lost_where_they_were_done_first),
        cmocka_unit_test(the_checkpoint_that_was_loaded_tells_where_it_went_on),
        cmocka_unit_test(an_attempt_without_steps_keeps_nothing_and_takes_nothing),
        cmocka_unit_test(a_job_that_was_stopped_keeps_its_last_checkpoint),
        cmocka_unit_test(a_job_that_was_asked_to_end_and_did_keeps_its_steps),
        cmocka_unit_test(what_reknit_ended_did_not_end_well),
        cmocka_unit_test(the_table_says_how_each_attempt_ended_and_fits),
        cmocka_unit_test(a_narrow_table_leaves_the_exit_out),
        cmocka_unit_test(the_verdict_says_how_it_ended_unless_reknit_ended_it),
        cmocka_unit_test(what_crashed_after_its_last_step_did_not_end_well),
        cmocka_unit_test(the_wait_for_the_next_attempt_is_no_time_of_this_one),
        cmocka_unit_test(who_sent_the_last_signal_is_known),
        cmocka_unit_test(numbers_that_begin_anew_prove_nothing),
        cmocka_unit_test(a_lost_run_ends_with_its_last_sign_of_life),
        cmocka_unit_test(many_runs_and_steps_stay_bounded),
        cmocka_unit_test(attempts_beyond_the_bound_are_counted_and_told_of_nobody_else),
        cmocka_unit_test(a_long_table_is_cut_in_the_middle),
        cmocka_unit_test(without_steps_no_goodput_is_claimed),
        cmocka_unit_test(one_that_is_queued_again_at_once_has_ended),
        cmocka_unit_test(a_story_may_be_of_the_last_run_only),
        cmocka_unit_test(the_tail_of_a_journal_tells_where_it_was),
        cmocka_unit_test(a_log_that_is_not_read_is_named_once),
        cmocka_unit_test(the_mode_is_what_follows_from_all_that_was_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
