/* SPDX-License-Identifier: Apache-2.0 */

/* The life of a job: from start to end, through every row of the state machine. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core_world.h"

#include <signal.h>
#include <string.h>

static void exit_0_completes_the_job(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_root(w, "scary", CAUSE_GPU_HARDWARE);
    world_wait(w, 10 * USEC_PER_SEC);
    world_die(w, 0);
    assert_null(world_last(w, EVENT_INTERRUPTED));
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.class, CLASS_HEALTHY);
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "completed");
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.action, ACTION_COMPLETE);
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 0);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    assert_int_equal(core_deadline(w->core), USEC_NEVER);
    assert_null(world_intent(w, INTENT_KILL));
}

static void a_crash_is_interrupted_judged_decided_and_restarted(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_step(w, 1);
    world_exit(w, 1, 0);
    assert_string_equal(world_last(w, EVENT_FINDING)->finding.why, "it ended with status 1");
    assert_non_null(world_last(w, EVENT_INTERRUPTED));
    assert_null(world_last(w, EVENT_VERDICT)); /* its last lines are awaited */
    world_gone(w);
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.class, CLASS_CRASH);
    assert_int_equal(world_last(w, EVENT_DECISION)->decision.action, ACTION_RESTART);
    assert_int_equal(world_intent(w, INTENT_START)->attempt, 2);
    assert_int_equal(world_intent(w, INTENT_START)->intended.not_before,
                     w->now + 10 * USEC_PER_SEC);
    assert_int_equal(world_job(w)->state, JOB_STARTING);
    assert_null(world_intent(w, INTENT_KILL));
    world_wait(w, 10 * USEC_PER_SEC);
    world_start(w);
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
    world_die(w, 0);
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 0);
}

static void a_verdict_does_not_wait_for_logs_forever(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_exit(w, 1, 0);
    world_feed(w, (struct event){.kind = EVENT_ATTEMPT_GONE, .job = "train", .attempt = 1});
    world_wait(w, 2 * USEC_PER_SEC - 1);
    assert_null(world_last(w, EVENT_VERDICT));
    world_wait(w, 1);
    assert_non_null(world_last(w, EVENT_VERDICT));
}

/* The last lines are read in one go, later than the verdict was due: all of them count. */
static void late_lines_are_evidence_before_they_are_judged(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_exit(w, 1, 0);
    w->now += 5 * USEC_PER_SEC;
    world_step(w, 7);
    assert_null(world_last(w, EVENT_VERDICT));
    world_root(w, "cuda.oom", CAUSE_GPU_OOM);
    assert_null(world_last(w, EVENT_VERDICT));
    world_gone(w);
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.cause, CAUSE_GPU_OOM);
}

static void what_is_left_after_a_crash_is_killed(void **state)
{
    struct world *w = *state;
    const struct event *kill;

    world_start(w);
    world_exit(w, 1, 0);
    world_wait(w, 199 * USEC_PER_MSEC);
    assert_null(world_intent(w, INTENT_KILL));
    world_wait(w, USEC_PER_MSEC);
    kill = world_intent(w, INTENT_KILL);
    assert_int_equal(kill->intended.signal, SIGTERM);
    assert_int_equal(kill->intended.grace, 10 * USEC_PER_SEC);
    assert_int_equal(kill->attempt, 1);
    world_wait(w, 5 * USEC_PER_SEC);
    assert_int_equal(world_job(w)->state, JOB_DECIDED);
    assert_null(world_intent(w, INTENT_START)); /* never two copies */
    world_gone(w);
    assert_non_null(world_intent(w, INTENT_START));
    assert_int_equal(world_count_intents(w, INTENT_KILL), 1);
}

static void helpers_may_linger_after_exit_0(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_exit(w, 0, 0);
    world_wait(w, 10 * USEC_PER_SEC - 1);
    assert_null(world_intent(w, INTENT_KILL));
    assert_null(world_last(w, EVENT_JOB_ENDED));
    world_wait(w, 1);
    assert_non_null(world_intent(w, INTENT_KILL));
    world_gone(w);
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 0);
}

static void a_failed_kill_is_repeated_with_sigkill(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_exit(w, 1, 0);
    world_wait(w, USEC_PER_SEC);
    world_result(w, world_intent(w, INTENT_KILL)->seq, OUTCOME_FAILED, "no such luck");
    assert_int_equal(world_count_intents(w, INTENT_KILL), 2);
    assert_int_equal(world_intent(w, INTENT_KILL)->intended.signal, SIGKILL);
    assert_int_equal(world_intent(w, INTENT_KILL)->intended.grace, 0);
    world_result(w, world_intent(w, INTENT_KILL)->seq, OUTCOME_UNKNOWN, "timeout");
    world_result(w, world_intent(w, INTENT_KILL)->seq, OUTCOME_FAILED, "again");
    assert_int_equal(world_count_intents(w, INTENT_KILL), 3); /* bounded */
}

static void what_cannot_be_killed_stops_the_job(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_step(w, 1);
    world_exit(w, 1, 0);
    world_wait(w, 3 * USEC_PER_SEC);
    assert_int_equal(world_last(w, EVENT_DECISION)->decision.action, ACTION_RESTART);
    world_wait(w, 2 * USEC_PER_MIN);
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "unkillable");
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 75);
    assert_null(world_intent(w, INTENT_START));
    world_gone(w); /* later after all: changes nothing */
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    assert_null(world_intent(w, INTENT_START));
}

static void a_hang_that_cannot_be_killed_is_judged_and_stops(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_samples(w, 400, 5 * USEC_PER_SEC, IDLE_SAMPLE);
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.finding, FINDING_HANG);
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "unkillable");
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 75);
}

static void an_interrupt_ends_without_restart(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_interrupt(w, SIGINT);
    assert_int_equal(world_job(w)->state, JOB_RUNNING); /* the action forwards the signal */
    world_exit(w, 0, SIGINT);
    world_gone(w);
    assert_null(world_last(w, EVENT_FINDING));
    assert_non_null(world_last(w, EVENT_INTERRUPTED));
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.class, CLASS_INTERRUPTED);
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "requested");
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.why, "the user (Ctrl-C) ended it");
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.action, ACTION_STOP);
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 130);
}

static void an_interrupted_job_keeps_its_own_status(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_interrupt(w, SIGTERM);
    world_die(w, 3);
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.why,
                        "somebody or the scheduler (SIGTERM) ended it");
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 3);
}

static void an_interrupted_job_may_end_well(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_interrupt(w, SIGTERM);
    world_die(w, 0);
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "requested");
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 0);
}

static void a_wish_that_comes_when_the_work_is_done_changes_nothing(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_root(w, "all.done", CAUSE_NONE); /* so the judge of the tests finds it healthy */
    world_interrupt(w, SIGTERM);
    world_die(w, 0);
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "completed");
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.action, ACTION_COMPLETE);
}

static void an_interrupt_before_the_first_start(void **state)
{
    struct world *w = *state;

    world_interrupt(w, SIGINT);
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 130);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    world_interrupt(w, SIGINT); /* there is nothing left to end */
    assert_int_equal(world_count(w, EVENT_JOB_ENDED), 1);
}

static void count_pending(void *ctx, const struct event *intent)
{
    (*(int *)ctx)++;
}

static int pending(const struct world *w)
{
    int n = 0;

    core_pending(w->core, count_pending, &n);
    return n;
}

static void an_interrupt_during_the_backoff_voids_the_start(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_step(w, 1);
    world_die(w, 1);
    assert_int_equal(pending(w), 1);
    world_interrupt(w, SIGINT);
    assert_int_equal(pending(w), 0);
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "requested");
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 1);
}

static void an_interrupt_while_processes_remain(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_step(w, 1);
    world_exit(w, 1, 0);
    world_wait(w, 3 * USEC_PER_SEC);
    assert_int_equal(world_last(w, EVENT_DECISION)->decision.action, ACTION_RESTART);
    world_interrupt(w, SIGTERM);
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "requested");
    assert_null(world_last(w, EVENT_JOB_ENDED));
    world_gone(w);
    assert_non_null(world_last(w, EVENT_JOB_ENDED));
}

/* Somebody starts the attempt although the job has ended meanwhile. */
static void a_stray_start_is_killed(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_step(w, 1);
    world_die(w, 1);
    world_interrupt(w, SIGINT);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    world_start(w);
    assert_int_equal(world_intent(w, INTENT_KILL)->attempt, 2);
    assert_int_equal(world_job(w)->attempt.number, 1);
    assert_int_equal(pending(w), 1);
    world_gone(w);
    assert_int_equal(pending(w), 0);
}

static void a_second_copy_is_killed(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_feed(w, (struct event){.kind = EVENT_ATTEMPT_STARTED, .job = "train", .attempt = 2});
    assert_int_equal(world_intent(w, INTENT_KILL)->attempt, 2);
    assert_int_equal(world_job(w)->attempt.number, 1);
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
    world_feed(w, (struct event){.kind = EVENT_ATTEMPT_STARTED, .job = "train", .attempt = 1});
    assert_int_equal(world_count_intents(w, INTENT_KILL), 1); /* the same news twice */
}

static void the_runner_is_lost_with_a_running_job(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_step(w, 5);
    world_wait(w, USEC_PER_HOUR);
    world_feed(w, (struct event){.kind = EVENT_RUNNER_LOST});
    /* it did not crash by itself */
    assert_int_not_equal(world_last(w, EVENT_FINDING)->finding.finding, FINDING_CRASH);
    assert_non_null(world_last(w, EVENT_INTERRUPTED));
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.class, CLASS_INTERRUPTED);
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "runner-lost");
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 75);
    assert_int_equal(pending(w), 0);
}

static void the_runner_is_lost_at_any_other_time(void **state)
{
    struct world *w = *state;

    /* during the backoff */
    world_start(w);
    world_step(w, 5);
    world_die(w, 1);
    world_feed(w, (struct event){.kind = EVENT_RUNNER_LOST, .job = "train"});
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "runner-lost");
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    /* when it had ended: nothing to say */
    assert_int_equal(world_feed(w, (struct event){.kind = EVENT_RUNNER_LOST}), 0);
    /* a new life, lost before its first attempt */
    world_feed(w, (struct event){.kind = EVENT_JOB_SEEN, .job = "train"});
    assert_int_equal(world_job(w)->state, JOB_NEW);
    world_feed(w, (struct event){.kind = EVENT_RUNNER_LOST});
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    /* after it ended well, before that was judged */
    world_feed(w, (struct event){.kind = EVENT_JOB_SEEN, .job = "train"});
    w->attempt = 0;
    world_start(w);
    world_exit(w, 0, 0);
    world_feed(w, (struct event){.kind = EVENT_RUNNER_LOST});
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "completed");
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 0);
}

static void a_start_that_fails_is_tried_again_and_then_given_up(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_step(w, 1);
    world_die(w, 1);
    for (int i = 0; i < 3; i++) {
        world_result(w, world_intent(w, INTENT_START)->seq, OUTCOME_FAILED, "fork: no memory");
        assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "start-failed");
        assert_int_equal(world_last(w, EVENT_DECISION)->decision.action, ACTION_RESTART);
        assert_int_equal(world_job(w)->state, JOB_STARTING);
    }
    world_result(w, world_intent(w, INTENT_START)->seq, OUTCOME_FAILED, "fork: no memory");
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.why,
                        "it cannot be started: fork: no memory");
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 75);
}

static void starts_that_fail_count_in_the_caps(void **state)
{
    struct world *w = *state;
    struct policy p;

    policy_default(&p);
    p.max_restarts = 2;
    world_policy(w, &p);
    world_start(w);
    world_step(w, 1);
    world_die(w, 1);
    world_result(w, world_intent(w, INTENT_START)->seq, OUTCOME_FAILED, "no");
    world_result(w, world_intent(w, INTENT_START)->seq, OUTCOME_FAILED, "no");
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "max-restarts");
}

static void a_start_of_unknown_fate_stops(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_step(w, 1);
    world_die(w, 1);
    world_result(w, world_intent(w, INTENT_START)->seq, OUTCOME_UNKNOWN, "timeout");
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "start-unknown");
    world_start(w); /* it did run */
    assert_int_equal(world_intent(w, INTENT_KILL)->attempt, 2);
}

static void results_end_what_is_pending(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_exit(w, 1, 0);
    world_wait(w, USEC_PER_SEC);
    assert_int_equal(pending(w), 1);
    world_result(w, 4711, OUTCOME_DONE, ""); /* of no known intent */
    assert_int_equal(pending(w), 1);
    world_result(w, world_intent(w, INTENT_KILL)->seq, OUTCOME_DONE, "");
    assert_int_equal(pending(w), 0);
}

static void processes_that_vanish_are_a_crash(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_gone(w);
    assert_string_equal(world_last(w, EVENT_FINDING)->finding.why, "its processes vanished");
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.class, CLASS_CRASH);
}

static void a_new_life_begins_with_clean_books(void **state)
{
    struct world *w = *state;

    world_start(w);
    for (int i = 0; i < 20; i++) {
        world_wait(w, USEC_PER_SEC);
        world_step(w, i);
    }
    world_die(w, 0);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    world_feed(w, (struct event){.kind = EVENT_JOB_SEEN, .job = "train"});
    assert_int_equal(world_job(w)->ledger.judged, 0);
    assert_int_equal(world_job(w)->timing.learned.n, 19); /* what was learned stays */
    assert_int_equal(world_job(w)->attempt.number, 0);
    assert_int_equal(world_feed(w, (struct event){.kind = EVENT_JOB_SEEN, .job = "train"}), 0);
    w->attempt = 0;
    world_start(w);
    /* seen again while it lives: refused */
    world_feed(w, (struct event){.kind = EVENT_JOB_SEEN, .job = "train"});
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
}

/* A journal that was put aside leaves what it taught to the next. */
static void what_a_journal_taught_is_carried_over(void **state)
{
    struct world *w = *state;
    struct event e = {.kind = EVENT_LEARNED, .job = "train"};
    struct timing before, after;

    world_start(w);
    for (int64_t i = 1; i <= 20; i++) {
        world_wait(w, USEC_PER_MIN);
        world_step(w, i);
    }
    world_checkpoint(w, EDGE_BEGIN, 20);
    world_wait(w, 7 * USEC_PER_MIN);
    world_checkpoint(w, EDGE_END, 20);
    timing_tell(&world_job(w)->timing, &e.learned);
    assert_int_equal(e.learned.n, 19);
    assert_int_equal(e.learned.q99, USEC_PER_MIN);
    assert_int_equal(e.learned.phases[PHASE_CHECKPOINT], 7 * USEC_PER_MIN);
    assert_int_equal(world_feed(w, e), 0); /* an attempt runs: too late */
    world_die(w, 0);
    before = world_job(w)->timing;
    timing_next_attempt(&before);
    world_seen(w, &(struct job_facts){0});
    e.learned.longest = NUMBER_MAX; /* whatever a damaged journal says is bounded */
    world_feed(w, e);
    after = world_job(w)->timing;
    assert_int_equal(after.learned.longest, GAP_LONGEST);
    after.learned.longest = before.learned.longest;
    assert_memory_equal(&before.learned, &after.learned, sizeof(before.learned));
    assert_memory_equal(before.phase, after.phase, sizeof(before.phase));
    assert_int_equal(before.first_step, after.first_step);
}

/* Inputs that make no sense are refused, and change nothing but the count of them. */
static void senseless_inputs_are_refused(void **state)
{
    static const enum event_kind kinds[] = {
        EVENT_ATTEMPT_STARTED, EVENT_SIGNAL,       EVENT_ATTEMPT_EXITED,
        EVENT_ATTEMPT_GONE,    EVENT_LOGS_DRAINED, EVENT_RESULT,
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct event e = {.kind = kinds[i], .job = "nobody", .attempt = 1};
        uint64_t refused = core_model(w->core)->refused;

        e.signal = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);
        assert_int_equal(world_feed(w, e), 0);
        STR_COPY(e.job, "train");
        e.attempt = kinds[i] == EVENT_ATTEMPT_STARTED ? 0 : 9;
        assert_int_equal(world_feed(w, e), 0);
        assert_int_equal(core_model(w->core)->refused, refused + 2);
    }
    world_start(w);
    world_feed(w, (struct event){
                      .kind = EVENT_OPERATOR, .job = "train", .request = {.request = REQUEST_MAX}});
    assert_false(world_job(w)->requested);
    world_feed(w, (struct event){.kind = EVENT_JOB_SEEN});
    assert_int_equal(core_model(w->core)->jobs.n, 1);
    world_die(w, 0);
    world_exit(w, 1, 0);
    world_gone(w);
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 0);
}

/* A journal may hold derived events that this release would not derive: folding survives them. */
static void senseless_derived_events_are_refused_too(void **state)
{
    struct world *w = *state;

    for (int k = EVENT_FINDING; k < EVENT_MAX; k++) {
        struct event e = {.kind = (enum event_kind)k, .job = "train", .attempt = 3, .seq = 900};
        enum job_state before = world_job(w)->state;
        struct world copy = *w;

        copy.core = world_folded(w, w->log.n);
        core_fold(copy.core, &e);
        if (k == EVENT_DECISION) /* before the first attempt: the user may have interrupted */
            assert_int_equal(world_job(&copy)->state, JOB_DECIDED);
        else
            assert_int_equal(world_job(&copy)->state, before);
        e.kind = EVENT_FINDING;
        e.finding.finding = FINDING_MAX;
        core_fold(copy.core, &e);
        e.kind = EVENT_MAX;
        core_fold(copy.core, &e);
        e.kind = EVENT_INVALID;
        core_fold(copy.core, &e);
        core_free(copy.core);
    }
}

/* Folds e into the state of w and takes it away again; whether it was refused. */
static bool is_refused(const struct world *w, struct event e)
{
    _cleanup_(core_freep) struct core *c = world_folded(w, w->log.n);
    uint64_t before = core_model(c)->refused;

    STR_COPY(e.job, "train");
    e.seq = 900;
    e.time_us = w->now;
    core_fold(c, &e);
    return core_model(c)->refused == before + 1;
}

static void derived_events_fit_their_state_only(void **state)
{
    const struct event verdict = {.kind = EVENT_VERDICT, .attempt = 1},
                       decision = {.kind = EVENT_DECISION,
                                   .attempt = 1,
                                   .decision = {.action = ACTION_STOP, .after_step = STEP_NONE}},
                       interrupted = {.kind = EVENT_INTERRUPTED, .attempt = 1},
                       ended = {.kind = EVENT_JOB_ENDED},
                       start = {.kind = EVENT_INTENT,
                                .attempt = 2,
                                .intended = {.intent = INTENT_START, .after_step = STEP_NONE}},
                       nothing = {.kind = EVENT_INTENT, .intended = {.intent = INTENT_MAX}},
                       hang = {.kind = EVENT_FINDING,
                               .attempt = 1,
                               .finding = {.finding = FINDING_HANG}};
    struct world *w = *state;
    struct event other = hang;

    other.attempt = 2;
    world_start(w);
    assert_true(is_refused(w, verdict) && is_refused(w, decision) && is_refused(w, ended));
    assert_true(is_refused(w, start) && is_refused(w, nothing) && is_refused(w, other));
    assert_false(is_refused(w, interrupted) || is_refused(w, hang));
    world_exit(w, 1, 0); /* ending */
    assert_true(is_refused(w, hang) && is_refused(w, interrupted) && is_refused(w, ended));
    assert_true(is_refused(w, decision) && is_refused(w, start));
    assert_false(is_refused(w, verdict));
    world_gone(w); /* starting */
    assert_true(is_refused(w, verdict) && is_refused(w, start) && is_refused(w, hang));
    assert_false(is_refused(w, decision));
}

static void signals_after_the_next_was_asked_for_are_refused(void **state)
{
    struct event e = {.kind = EVENT_SIGNAL, .attempt = 1};
    struct world *w = *state;

    e.signal = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);
    world_start(w);
    assert_false(is_refused(w, e));
    world_exit(w, 1, 0);
    assert_false(is_refused(w, e)); /* its last lines */
    world_gone(w);
    assert_int_equal(world_job(w)->state, JOB_STARTING);
    assert_true(is_refused(w, e));
    world_interrupt(w, SIGINT);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    assert_true(is_refused(w, e));
}

static void an_unsound_policy_is_refused(void **state)
{
    struct world *w = *state;
    struct policy p;

    policy_default(&p);
    p.hang.timeout_max = -1;
    world_policy(w, &p);
    assert_int_equal(core_model(w->core)->policy.hang.timeout_max, USEC_PER_HOUR);
}

static void time_never_goes_back(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_wait(w, USEC_PER_MIN);
    world_step(w, 1);
    w->now -= 30 * USEC_PER_SEC;
    world_step(w, 2);
    assert_int_equal(world_job(w)->attempt.last_progress, w->now + 30 * USEC_PER_SEC);
    w->now += 30 * USEC_PER_SEC;
}

static void jobs_are_kept_apart(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_feed(w, (struct event){.kind = EVENT_JOB_SEEN, .job = "zebra"});
    world_feed(w, (struct event){.kind = EVENT_JOB_SEEN, .job = "ant"});
    world_feed(w, (struct event){.kind = EVENT_ATTEMPT_STARTED, .job = "ant", .attempt = 1});
    assert_string_equal(core_model(w->core)->jobs.v[0]->name, "ant");
    assert_string_equal(core_model(w->core)->jobs.v[2]->name, "zebra");
    world_exit(w, 0, SIGKILL);
    assert_int_equal(world_job(w)->state, JOB_ENDING);
    assert_int_equal(model_job(core_model(w->core), "ant")->state, JOB_RUNNING);
    assert_int_equal(model_job(core_model(w->core), "zebra")->state, JOB_NEW);
    /* one death of reknit ends all of them */
    world_feed(w, (struct event){.kind = EVENT_RUNNER_LOST});
    assert_int_equal(world_count(w, EVENT_JOB_ENDED), 3);
}

static void the_number_of_jobs_is_bounded(void **state)
{
    _cleanup_(core_freep) struct core *c = core_new();
    struct core_output out = {0};
    struct event e = {.kind = EVENT_JOB_SEEN};

    for (uint64_t i = 0; i < JOBS_MAX + 2; i++) {
        e.seq = e.time_us = (int64_t)i + 1;
        STR_PRINTF(e.job, "job %d", (int)i);
        if (i == JOBS_MAX) { /* one has ended: it gives way */
            struct event end = {
                .kind = EVENT_OPERATOR, .seq = i, .time_us = (int64_t)i, .job = "job 7"};

            core_step(c, &end, &out);
        }
        core_step(c, &e, &out);
    }
    assert_int_equal(core_model(c)->jobs.n, JOBS_MAX);
    assert_null(model_job(core_model(c), "job 7"));
    assert_non_null(model_job(core_model(c), "job 4096"));
    assert_null(model_job(core_model(c), "job 4097")); /* all live: refused */
    core_output_done(&out);
}

static void pending_intents_are_bounded(void **state)
{
    struct world *w = *state;

    world_start(w);
    for (uint32_t i = 0; i < 2 * PENDING_MAX; i++)
        world_feed(w,
                   (struct event){.kind = EVENT_ATTEMPT_STARTED, .job = "train", .attempt = 7 + i});
    assert_int_equal(pending(w), PENDING_MAX);
}

static void every_state_has_a_name(void **state)
{
    for (int s = 0; s < JOB_STATE_MAX; s++)
        assert_int_equal(job_state_from_name(job_state_name((enum job_state)s)), s);
}

/* What is text says that all is well; how it ended is a fact. */
static void a_failure_is_one_whatever_the_log_says(void **state)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);
    struct world *w = *state;
    const struct incident *verdict;

    world_start(w);
    world_root(w, "all is well", CAUSE_NONE);
    world_die(w, 3);
    verdict = &world_last(w, EVENT_VERDICT)->incident;
    assert_int_equal(verdict->class, CLASS_CRASH);
    assert_int_equal(verdict->cause, CAUSE_UNKNOWN);
    assert_int_equal(verdict->advice, ADVICE_RESTART);
    assert_string_equal(verdict->summary, "it ended with status 3");
    world_wait(w, USEC_PER_MIN);
    world_start(w);
    s.role = ROLE_ROOT;
    s.confidence = 10; /* not enough to end it */
    world_signal(w, s);
    world_samples(w, 500, 5 * USEC_PER_SEC, IDLE_SAMPLE);
    world_exit(w, 0, SIGKILL);
    world_gone(w);
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.class, CLASS_HANG);
}

static void each_event_counts_once(void **state)
{
    static const enum event_kind kinds[] = {EVENT_ATTEMPT_STARTED, EVENT_ATTEMPT_EXITED,
                                            EVENT_LOGS_DRAINED, EVENT_ATTEMPT_GONE};
    struct world *w = *state;
    struct event e = {.job = "train", .attempt = 1};

    w->attempt = 1;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        uint64_t refused;

        e.kind = kinds[i];
        e.exited = (struct exit_fact){.pid = 1, .code = 1};
        world_feed(w, e);
        refused = core_model(w->core)->refused;
        world_feed(w, e);
        assert_int_equal(core_model(w->core)->refused, refused + 1);
    }
    assert_int_equal(world_count(w, EVENT_VERDICT), 1);
    assert_int_equal(world_count(w, EVENT_DECISION), 1);
    assert_int_equal(world_count_intents(w, INTENT_START), 1);
    assert_int_equal(world_count_intents(w, INTENT_KILL), 0); /* it is no second copy */
}

static void news_may_come_in_any_order(void **state)
{
    struct world *w = *state;
    struct event e = {.kind = EVENT_LOGS_DRAINED, .job = "train", .attempt = 1};

    world_exit(w, 1, 0); /* before the start */
    world_start(w);
    world_feed(w, e);
    e.kind = EVENT_ATTEMPT_GONE;
    world_feed(w, e); /* before its first process ended */
    assert_string_equal(world_last(w, EVENT_FINDING)->finding.why, "its processes vanished");
    world_exit(w, 1, 0);
    assert_false(world_job(w)->attempt.exited);
    world_check_restart(w, "retry", 1, 3);
}

static void impossible_numbers_are_refused(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_ACTIVITY, PROVENANCE_AGENT);
    struct event e = {.kind = EVENT_OPERATOR, .job = "train"};
    uint64_t refused;

    world_start(w);
    refused = core_model(w->core)->refused;
    s.activity.interval = INT64_MAX;
    world_signal(w, s);
    s.activity.interval = -1;
    world_signal(w, s);
    s = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);
    s.step.step = INT64_MAX;
    world_signal(w, s);
    s = signal_make(SIGNAL_COLLECTIVE, PROVENANCE_JOB_TEXT);
    s.collective.waited = INT64_MAX;
    world_signal(w, s);
    e.request.signal = INT32_MAX;
    world_feed(w, e);
    world_exit(w, 0, 65);
    assert_int_equal(core_model(w->core)->refused, refused + 6);
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
    e = (struct event){.kind = EVENT_TICK, .time_us = EVENT_TIME_MAX + 1, .seq = w->log.n + 1};
    core_fold(w->core, &e);
    assert_int_equal(core_model(w->core)->now, w->now);
    *VEC_PUSH(&w->log) = e;
}

static void an_inspection_that_fails_holds_nothing_up(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_step(w, 1);
    world_samples(w, 300, 5 * USEC_PER_SEC, IDLE_SAMPLE);
    assert_non_null(world_intent(w, INTENT_INSPECT));
    world_result(w, world_intent(w, INTENT_INSPECT)->seq, OUTCOME_FAILED, "no such process");
    world_samples(w, 300, 5 * USEC_PER_SEC, IDLE_SAMPLE);
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.finding, FINDING_HANG);
}

static void nothing_is_freed_twice(void **state)
{
    assert_null(core_free(NULL));
    assert_null(model_free(NULL));
}

static void look(struct world *w, enum sched_state state, uint32_t restarts)
{
    struct event e = {.kind = EVENT_LOOK};

    STR_COPY(e.job, w->job);
    e.look = (struct look_facts){.state = state, .restarts = restarts, .requeueable = true};
    world_feed(w, e);
}

/* The scheduler, or a person, starts it again without having been asked to. */
static void a_scheduler_starts_jobs_of_its_own_accord(void **state)
{
    struct world *w = *state;

    world_interrupt(w, SIGTERM); /* the life before */
    world_seen(w, &(struct job_facts){.scheduled = true});
    look(w, SCHED_RUNNING, 0);
    world_start(w);
    world_die(w, 1);
    look(w, SCHED_FAILED, 0);
    assert_int_equal(world_job(w)->state, JOB_DECIDED);
    look(w, SCHED_RUNNING, 1);
    world_start(w);
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
    world_die(w, 0);
    look(w, SCHED_COMPLETED, 1);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    look(w, SCHED_RUNNING, 2);
    world_start(w);
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
    assert_int_equal(world_count(w, EVENT_INTENT), 0); /* it was only observed */
}

static void a_job_on_its_way_is_forgotten(void **state)
{
    struct world *w = *state;
    struct event mode = {.kind = EVENT_MODE, .mode = {.mode = MODE_ACT}};

    world_interrupt(w, SIGTERM);
    world_seen(w, &(struct job_facts){.scheduled = true});
    STR_COPY(mode.job, w->job);
    world_feed(w, mode);
    look(w, SCHED_RUNNING, 0);
    world_start(w);
    world_step(w, 1);
    world_die(w, 1);
    look(w, SCHED_FAILED, 0);
    assert_non_null(world_intent(w, INTENT_REQUEUE));
    assert_int_equal(world_job(w)->state, JOB_STARTING);
    look(w, SCHED_FORGOTTEN, 0);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
}

static void see_job(struct world *w)
{
    struct event mode = {.kind = EVENT_MODE, .mode = {.mode = MODE_ACT}};

    world_seen(w, &(struct job_facts){.scheduled = true});
    STR_COPY(mode.job, w->job);
    world_feed(w, mode);
}

static void let_go(struct world *w)
{
    struct event mode = {.kind = EVENT_MODE, .mode = {.mode = MODE_OFF}};

    STR_COPY(mode.job, w->job);
    world_feed(w, mode);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
}

/* What that means is in test_scheduled_letgo.c. */
static void a_job_is_let_go_wherever_it_is(void **state)
{
    struct world *w = *state;

    world_interrupt(w, SIGTERM);
    see_job(w);
    let_go(w);
    see_job(w);
    look(w, SCHED_RUNNING, 0);
    world_start(w);
    let_go(w);
    see_job(w);
    look(w, SCHED_RUNNING, 0);
    world_start(w);
    world_exit(w, 1, 0);
    assert_int_equal(world_job(w)->state, JOB_ENDING);
    let_go(w);
}

/* The last of all: the tests above are to take every arrow of the diagram. */
static void every_arrow_of_the_diagram_was_taken(void **state)
{
    char left[64];

    assert_string_equal(world_arrow_left(left), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(exit_0_completes_the_job),
        WORLD_TEST(a_crash_is_interrupted_judged_decided_and_restarted),
        WORLD_TEST(a_verdict_does_not_wait_for_logs_forever),
        WORLD_TEST(late_lines_are_evidence_before_they_are_judged),
        WORLD_TEST(what_is_left_after_a_crash_is_killed),
        WORLD_TEST(helpers_may_linger_after_exit_0),
        WORLD_TEST(a_failed_kill_is_repeated_with_sigkill),
        WORLD_TEST(what_cannot_be_killed_stops_the_job),
        WORLD_TEST(a_hang_that_cannot_be_killed_is_judged_and_stops),
        WORLD_TEST(an_interrupt_ends_without_restart),
        WORLD_TEST(an_interrupted_job_keeps_its_own_status),
        WORLD_TEST(an_interrupted_job_may_end_well),
        WORLD_TEST(what_a_journal_taught_is_carried_over),
        WORLD_TEST(a_wish_that_comes_when_the_work_is_done_changes_nothing),
        WORLD_TEST(an_interrupt_before_the_first_start),
        WORLD_TEST(an_interrupt_during_the_backoff_voids_the_start),
        WORLD_TEST(an_interrupt_while_processes_remain),
        WORLD_TEST(a_stray_start_is_killed),
        WORLD_TEST(a_second_copy_is_killed),
        WORLD_TEST(the_runner_is_lost_with_a_running_job),
        WORLD_TEST(the_runner_is_lost_at_any_other_time),
        WORLD_TEST(a_start_that_fails_is_tried_again_and_then_given_up),
        WORLD_TEST(starts_that_fail_count_in_the_caps),
        WORLD_TEST(a_start_of_unknown_fate_stops),
        WORLD_TEST(results_end_what_is_pending),
        WORLD_TEST(processes_that_vanish_are_a_crash),
        WORLD_TEST(a_new_life_begins_with_clean_books),
        WORLD_TEST(senseless_inputs_are_refused),
        WORLD_TEST(senseless_derived_events_are_refused_too),
        WORLD_TEST(an_unsound_policy_is_refused),
        WORLD_TEST(time_never_goes_back),
        WORLD_TEST(jobs_are_kept_apart),
        WORLD_TEST(the_number_of_jobs_is_bounded),
        WORLD_TEST(pending_intents_are_bounded),
        WORLD_TEST(every_state_has_a_name),
        WORLD_TEST(a_failure_is_one_whatever_the_log_says),
        WORLD_TEST(derived_events_fit_their_state_only),
        WORLD_TEST(signals_after_the_next_was_asked_for_are_refused),
        WORLD_TEST(each_event_counts_once),
        WORLD_TEST(news_may_come_in_any_order),
        WORLD_TEST(impossible_numbers_are_refused),
        WORLD_TEST(an_inspection_that_fails_holds_nothing_up),
        cmocka_unit_test(nothing_is_freed_twice),
        WORLD_TEST(a_scheduler_starts_jobs_of_its_own_accord),
        WORLD_TEST(a_job_on_its_way_is_forgotten),
        WORLD_TEST(a_job_is_let_go_wherever_it_is),
        cmocka_unit_test(every_arrow_of_the_diagram_was_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
