/* SPDX-License-Identifier: Apache-2.0 */

/* Decisions: every rule of policy, and the books it reads. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched_world.h"

#include <signal.h>
#include <string.h>

static void a_user_error_before_the_first_step_gets_one_retry(void **state)
{
    struct world *w = *state;

    world_attempt(w, 1, 0, "py.import", CAUSE_USER_CODE);
    world_check_restart(w, "retry", 1, 1);
    assert_string_equal(world_decision(w)->why,
                        "user-code, no progress: retry 1 of 1 for this failure");
    world_attempt(w, 1, 0, "py.import", CAUSE_USER_CODE);
    world_check_stop(w, "same-failure", 1, 1);
    assert_string_equal(world_decision(w)->why,
                        "the same failure (user-code) again, and no progress in "
                        "between; 1 of 1 retries used");
}

static void a_certain_user_error_at_the_first_start_gets_none(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);

    s.role = ROLE_ROOT;
    s.cause = CAUSE_USER_CONFIG;
    s.confidence = 95;
    s.advice = ADVICE_STOP;
    STR_COPY(s.signature, "sh.not_found");
    world_start(w);
    world_signal(w, s);
    world_die(w, 127);
    world_check_stop(w, "hopeless", 0, 0);
}

static void what_cannot_be_run_is_not_run_again(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_root(w, "sh.not_found", CAUSE_USER_CONFIG);
    world_die(w, 127);
    world_check_stop(w, "hopeless", 0, 0);
}

static void certainty_of_other_causes_does_not_stop_at_once(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);

    s.role = ROLE_ROOT;
    s.cause = CAUSE_NUMERICAL;
    s.confidence = 95;
    s.advice = ADVICE_STOP;
    STR_COPY(s.signature, "num.nan");
    world_start(w);
    world_signal(w, s);
    world_die(w, 1);
    world_check_restart(w, "retry", 1, 2);
}

static void certainty_after_steps_or_other_attempts_is_not_certain(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);

    s.role = ROLE_ROOT;
    s.cause = CAUSE_USER_CODE;
    s.confidence = 95;
    s.advice = ADVICE_STOP;
    STR_COPY(s.signature, "py.exception");
    world_start(w);
    world_step(w, 1);
    world_signal(w, s);
    world_die(w, 1);
    world_check_restart(w, "advanced", 1, 20);
    world_wait(w, MIN);
    world_start(w);
    world_signal(w, s);
    world_die(w, 1);
    world_check_stop(w, "same-failure", 1, 1); /* the retry led nowhere */
}

static void two_attempts_without_a_step_stop_whatever_they_failed_of(void **state)
{
    struct world *w = *state;

    world_attempt(w, 1, 0, "nccl.timeout", CAUSE_NETWORK);
    world_check_restart(w, "retry", 1, 3);
    world_attempt(w, 1, 0, "py.exception", CAUSE_UNKNOWN);
    world_check_stop(w, "no-step", 2, 2);
}

/* Two attempts without a step; s names another device each time. */
static void die_on_two_devices(struct world *w, struct signal *s)
{
    for (int i = 0; i < 2; i++) {
        world_wait(w, 5 * MIN);
        world_start(w);
        STR_PRINTF(s->who.device, "0000:4%d:00", i);
        world_signal(w, *s);
        world_die(w, 1);
    }
}

static void hardware_proven_guilty_each_time_is_bad_luck(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL);

    s.role = ROLE_ROOT;
    s.cause = CAUSE_GPU_HARDWARE;
    s.confidence = 95;
    s.advice = ADVICE_RESTART_EXCLUDING;
    STR_COPY(s.signature, "gpu.xid.79");
    die_on_two_devices(w, &s);
    assert_int_equal(world_job(w)->ledger.without_step, 0);
    world_check_restart(w, "retry", 2, 3);
    assert_non_null(strstr(world_decision(w)->why, "GPU 0000:41:00 stays in"));
    world_wait(w, 5 * MIN);
    world_start(w);
    world_signal(w, s); /* the same device again */
    world_die(w, 1);
    assert_int_equal(world_job(w)->ledger.without_step, 1);
    world_check_stop(w, "no-progress", 3, 3);
}

static void a_device_named_by_a_program_proves_no_hardware(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);

    s.role = ROLE_ROOT;
    s.cause = CAUSE_UNKNOWN;
    s.confidence = 60;
    s.advice = ADVICE_RESTART;
    STR_COPY(s.signature, "py.exception");
    die_on_two_devices(w, &s);
    assert_int_equal(world_job(w)->ledger.without_step, 2);
    world_check_stop(w, "no-step", 2, 2);
}

static void three_attempts_without_progress_stop(void **state)
{
    struct world *w = *state;

    world_attempt(w, 1, 10, "a", CAUSE_UNKNOWN);
    world_check_restart(w, "advanced", 1, 20);
    world_attempt(w, 1, 10, "b", CAUSE_NETWORK);
    world_attempt(w, 1, 9, "c", CAUSE_STORAGE);
    world_check_restart(w, "retry", 1, 3);
    world_attempt(w, 1, 8, "d", CAUSE_UNKNOWN);
    world_check_stop(w, "no-progress", 3, 3);
}

static void the_same_failure_is_retried_as_often_as_its_cause_says(void **state)
{
    struct world *w = *state;
    struct policy p;

    policy_default(&p);
    p.max_without_progress = 100;
    world_policy(w, &p);
    world_attempt(w, 1, 5, "nan", CAUSE_NUMERICAL); /* advanced: the first of its kind */
    for (uint32_t i = 2; i <= 2; i++) {
        world_attempt(w, 1, 4, "nan", CAUSE_NUMERICAL);
        world_check_restart(w, "retry", i, 2);
    }
    world_attempt(w, 1, 3, "nan", CAUSE_NUMERICAL);
    world_check_stop(w, "same-failure", 2, 2);
}

static void a_job_that_advances_restarts_until_its_life_is_spent(void **state)
{
    struct world *w = *state;
    struct policy p;

    policy_default(&p);
    p.max_restarts_per_day = 100;
    p.cause[CAUSE_USER_CODE].retries = 1;
    world_policy(w, &p);
    for (uint32_t i = 1; i <= 20; i++) {
        world_attempt(w, i, i + 1, "py.exception", CAUSE_USER_CODE);
        world_check_restart(w, "advanced", i, 20);
    }
    world_attempt(w, 21, 22, "py.exception", CAUSE_USER_CODE);
    world_check_stop(w, "max-restarts", 20, 20);
}

static void ten_restarts_a_day_and_more_the_next(void **state)
{
    struct world *w = *state;

    for (int i = 1; i <= 10; i++)
        world_attempt(w, i, i + 1, "a", CAUSE_NETWORK);
    world_wait(w, USEC_PER_DAY - 10 * MIN); /* the first restarts lie more than a day back */
    world_attempt(w, 11, 12, "a", CAUSE_NETWORK);
    world_check_restart(w, "advanced", 11, 20);
}

static void the_eleventh_restart_of_a_day_is_not_made(void **state)
{
    struct world *w = *state;

    for (int i = 1; i <= 11; i++)
        world_attempt(w, i, i + 1, "a", CAUSE_NETWORK);
    world_check_stop(w, "max-restarts-per-day", 10, 10);
}

static void a_durable_checkpoint_is_the_measure_once_there_is_one(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_step(w, 10);
    world_checkpoint(w, EDGE_END, 10);
    world_step(w, 15);
    world_die(w, 1);
    world_check_restart(w, "advanced", 1, 20);
    world_wait(w, MIN);
    world_start(w);
    world_checkpoint(w, EDGE_POINT, 10); /* loaded */
    world_step(w, 11);
    world_step(w, 20); /* further, but nothing of it is kept */
    world_die(w, 1);
    world_check_restart(w, "retry", 2, 3); /* the second of this failure */
    assert_int_equal(world_job(w)->ledger.without_progress, 1);
    world_wait(w, MIN);
    world_start(w);
    world_step(w, 11);
    world_checkpoint(w, EDGE_END, STEP_NONE); /* of the last step */
    world_die(w, 1);
    world_check_restart(w, "advanced", 3, 20);
    assert_int_equal(world_job(w)->ledger.best_checkpoint, 11);
    assert_int_equal(world_job(w)->ledger.without_progress, 0);
}

static void a_checkpoint_of_an_earlier_life_is_no_progress(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_checkpoint(w, EDGE_POINT, 1000);
    world_step(w, 1001);
    world_checkpoint(w, EDGE_END, 900); /* an older one is written again? */
    world_die(w, 1);
    assert_int_equal(world_job(w)->ledger.advance, ADVANCE_NO);
}

static void numbers_that_go_back_tell_nothing(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 5; i++) {
        world_start(w);
        for (int64_t step = 0; step < 30; step++) {
            world_wait(w, S);
            world_step(w, step % 10); /* epochs */
        }
        world_root(w, "a", CAUSE_UNKNOWN);
        world_die(w, 1);
        world_check_restart(w, "progress-unknown", (uint32_t)i + 1, 20);
        world_wait(w, 5 * MIN);
    }
}

static void long_lives_without_readable_steps_tell_nothing(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 4; i++) {
        world_start(w);
        for (int k = 0; k < 60; k++) {
            world_wait(w, MIN);
            world_signal(w, signal_make(SIGNAL_OUTPUT, PROVENANCE_JOB_TEXT));
        }
        world_root(w, "a", CAUSE_NETWORK);
        world_die(w, 1);
        world_check_restart(w, "progress-unknown", (uint32_t)i + 1, 20);
        world_wait(w, MIN);
    }
    world_attempt(w, 1, 0, "a", CAUSE_NETWORK); /* but short ones do */
    world_check_restart(w, "retry", 1, 3);
}

static void hangs_before_the_first_step_are_no_long_lives(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 2; i++) {
        world_start(w);
        world_samples(w, 361, 5 * S, IDLE_SAMPLE);
        world_exit(w, 0, SIGTERM);
        world_gone(w);
        world_wait(w, MIN);
    }
    world_check_stop(w, "no-step", 2, 2);
}

static void time_limit_and_preemption_cost_nothing(void **state)
{
    struct world *w = *state;

    world_attempt(w, 1, 5, "slurm.time_limit", CAUSE_TIME_LIMIT);
    world_check_restart(w, "not-its-fault", 1, 10);
    assert_int_equal(world_decision(w)->delay, 10 * S); /* free, not at once */
    for (uint32_t i = 2; i <= 10; i++) {
        world_attempt(w, 1, 0, "slurm.preempted", CAUSE_PREEMPTION);
        world_check_restart(w, "not-its-fault", i, 10);
        assert_int_equal(world_decision(w)->delay, 10 * S);
    }
    assert_int_equal(world_job(w)->ledger.restarts, 0);
    assert_int_equal(world_job(w)->ledger.without_step, 0);
    /* anybody can print that line: bounded all the same */
    world_attempt(w, 1, 0, "slurm.preempted", CAUSE_PREEMPTION);
    world_check_stop(w, "interrupted-too-often", 10, 10);
}

static void what_is_cancelled_stays_cancelled(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_root(w, "slurm.cancelled", CAUSE_CANCELLED);
    world_exit(w, 0, SIGTERM);
    world_gone(w);
    assert_string_equal(world_decision(w)->rule, "cancelled");
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 143);
}

static void a_cause_without_retries_is_never_retried(void **state)
{
    struct world *w = *state;
    struct policy p;

    policy_default(&p);
    p.cause[CAUSE_GPU_OOM].retries = 0;
    world_policy(w, &p);
    world_attempt(w, 1, 100, "cuda.oom", CAUSE_GPU_OOM); /* although it advanced */
    world_check_stop(w, "never-retried", 0, 0);
}

static void an_external_service_gets_patience(void **state)
{
    struct world *w = *state;
    struct policy p;
    usec_t delay = 30 * S;

    policy_default(&p);
    p.max_restarts_per_day = 100;
    p.max_restarts = 100;
    world_policy(w, &p);
    for (uint32_t i = 1; w->now < world_job(w)->ledger.stalled_since ||
                         w->now - world_job(w)->ledger.stalled_since < 5 * USEC_PER_HOUR;
         i++) {
        world_attempt(w, 1, 0, "hub.503", CAUSE_EXTERNAL_SERVICE);
        world_check_restart(w, "patience", i, 100);
        assert_int_equal(world_decision(w)->delay, delay);
        delay = delay * 2 < 30 * MIN ? delay * 2 : 30 * MIN;
        world_wait(w, world_decision(w)->delay);
    }
    world_wait(w, USEC_PER_HOUR);
    world_attempt(w, 1, 0, "hub.503", CAUSE_EXTERNAL_SERVICE);
    world_check_restart(w, "retry", 1, 3);
    world_attempt(w, 1, 0, "hub.503", CAUSE_EXTERNAL_SERVICE);
    world_check_stop(w, "no-step", 2, 2);
}

static void backoff_doubles_without_progress_and_starts_over_with_it(void **state)
{
    struct world *w = *state;
    struct policy p;

    policy_default(&p);
    p.max_without_progress = p.max_without_step = 100;
    p.cause[CAUSE_NETWORK] = (struct cause_policy){100, 30 * S, 15 * MIN, 0};
    world_policy(w, &p);
    static const int expect[] = {30, 60, 120, 240, 480, 900, 900};
    for (size_t i = 0; i < sizeof(expect) / sizeof(expect[0]); i++) {
        world_attempt(w, 1, 0, "a", CAUSE_NETWORK);
        assert_int_equal(world_decision(w)->delay, expect[i] * S);
        assert_int_equal(world_intent(w, INTENT_START)->intended.not_before,
                         w->now + expect[i] * S);
    }
    world_attempt(w, 1, 5, "a", CAUSE_NETWORK);
    assert_int_equal(world_decision(w)->delay, 30 * S);
}

static void many_kinds_of_failure_are_remembered_within_bounds(void **state)
{
    struct world *w = *state;
    struct policy p;
    char name[16];

    policy_default(&p);
    p.max_without_progress = p.max_without_step = p.max_restarts = 1000;
    p.max_restarts_per_day = 256;
    world_policy(w, &p);
    for (int i = 0; i < FAILURES_MAX + 5; i++) {
        STR_PRINTF(name, "failure %d", i);
        world_attempt(w, 1, 0, name, CAUSE_UNKNOWN);
    }
    assert_int_equal(world_job(w)->ledger.n_failures, FAILURES_MAX);
    world_attempt(w, 1, 0, name, CAUSE_UNKNOWN);
    assert_int_equal(world_job(w)->ledger.same, 2);
    world_attempt(w, 1, 0, "failure 0", CAUSE_UNKNOWN); /* forgotten */
    assert_int_equal(world_job(w)->ledger.same, 1);
}

static void recent_restarts_are_counted_within_bounds(void **state)
{
    struct incident i = {.cause = CAUSE_UNKNOWN};
    struct ledger l;

    ledger_init(&l);
    for (int k = 0; k < RECENT_MAX + 10; k++)
        ledger_restart(&l, &i, k * S);
    assert_int_equal(l.paid.n, RECENT_MAX);
    assert_int_equal(l.restarts, RECENT_MAX + 10);
    assert_int_equal(ledger_recent(&l.paid, RECENT_MAX * S), RECENT_MAX);
    assert_int_equal(ledger_recent(&l.paid, USEC_PER_DAY + 10 * S), RECENT_MAX - 1);
    assert_int_equal(ledger_recent(&l.paid, 3 * USEC_PER_DAY), 0);
    assert_int_equal(ledger_recent(&l.free, 0), 0);
}

/* Limits that are lowered, of a scheduler's job */

static void limit_restarts(struct world *w, uint32_t n)
{
    struct event e = of_job(w, EVENT_POLICY);

    policy_default(&e.policy);
    e.policy.max_restarts = n;
    world_feed(w, e);
}

static void a_lower_limit_holds_for_what_was_only_decided(void **state)
{
    struct world *w = *state;

    operate(w, REQUEST_FREEZE, 0);
    fail_job(w);
    assert_true(action_restarts(world_decision(w)->action));
    limit_restarts(w, 0);
    assert_int_equal(world_decision(w)->action, ACTION_STOP);
    assert_string_equal(world_decision(w)->rule, "max-restarts");
    operate(w, REQUEST_THAW, 0);
    world_wait(w, MIN);
    assert_int_equal(asked_anything(w), 0);
}

static void what_is_under_way_goes_on(void **state)
{
    struct world *w = *state;

    fail_job(w);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    limit_restarts(w, 0);
    assert_true(action_restarts(world_decision(w)->action));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_user_error_before_the_first_step_gets_one_retry),
        WORLD_TEST(a_certain_user_error_at_the_first_start_gets_none),
        WORLD_TEST(what_cannot_be_run_is_not_run_again),
        WORLD_TEST(certainty_of_other_causes_does_not_stop_at_once),
        WORLD_TEST(certainty_after_steps_or_other_attempts_is_not_certain),
        WORLD_TEST(two_attempts_without_a_step_stop_whatever_they_failed_of),
        WORLD_TEST(hardware_proven_guilty_each_time_is_bad_luck),
        WORLD_TEST(a_device_named_by_a_program_proves_no_hardware),
        WORLD_TEST(three_attempts_without_progress_stop),
        WORLD_TEST(the_same_failure_is_retried_as_often_as_its_cause_says),
        WORLD_TEST(a_job_that_advances_restarts_until_its_life_is_spent),
        WORLD_TEST(ten_restarts_a_day_and_more_the_next),
        WORLD_TEST(the_eleventh_restart_of_a_day_is_not_made),
        WORLD_TEST(a_durable_checkpoint_is_the_measure_once_there_is_one),
        WORLD_TEST(a_checkpoint_of_an_earlier_life_is_no_progress),
        WORLD_TEST(numbers_that_go_back_tell_nothing),
        WORLD_TEST(long_lives_without_readable_steps_tell_nothing),
        WORLD_TEST(hangs_before_the_first_step_are_no_long_lives),
        WORLD_TEST(time_limit_and_preemption_cost_nothing),
        WORLD_TEST(what_is_cancelled_stays_cancelled),
        WORLD_TEST(a_cause_without_retries_is_never_retried),
        WORLD_TEST(an_external_service_gets_patience),
        WORLD_TEST(backoff_doubles_without_progress_and_starts_over_with_it),
        WORLD_TEST(many_kinds_of_failure_are_remembered_within_bounds),
        IN(act, a_lower_limit_holds_for_what_was_only_decided),
        IN(act, what_is_under_way_goes_on),
        cmocka_unit_test(recent_restarts_are_counted_within_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
