/* SPDX-License-Identifier: Apache-2.0 */

/* Rules that look at more than the retries of one failure: what the job's time led to, how large it
 * is, at which step it fails. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core_world.h"

#include "base/str.h"

#include <string.h>

#define S    USEC_PER_SEC
#define MIN  USEC_PER_MIN
#define HOUR USEC_PER_HOUR

/* An attempt that starts for `idle`, completes one step a minute from `from` to `to` and saves the
 * last, then does nothing useful for `lost` and fails. */
static void long_attempt(struct world *w, usec_t idle, int64_t from, int64_t to, usec_t lost,
                         enum cause cause)
{
    world_start(w);
    world_wait(w, idle);
    for (int64_t step = from; step <= to; step++) {
        world_step(w, step);
        if (step < to)
            world_wait(w, MIN);
    }
    world_checkpoint(w, EDGE_END, to);
    world_wait(w, lost);
    world_root(w, cause_name(cause), cause);
    world_die(w, 1);
}

/* Nothing else shall stop the job, and nothing but processes' own death end an attempt. */
static struct policy generous(void)
{
    struct policy p;

    policy_default(&p);
    p.max_restarts = p.max_without_progress = p.max_without_step = 1000;
    p.max_restarts_per_day = RESTARTS_PER_DAY_MAX;
    p.hang.enabled = false;
    for (int c = 0; c < CAUSE_MAX; c++)
        p.cause[c].retries = 1000;
    return p;
}

static void time_that_leads_to_nothing_stops_even_a_job_that_advances(void **state)
{
    struct world *w = *state;
    struct policy p = generous();

    world_policy(w, &p);
    for (int64_t i = 0; i < 5; i++) { /* 1 h lost to 30 min kept, each time */
        long_attempt(w, 0, 31 * i, 31 * i + 30, HOUR, CAUSE_NETWORK);
        world_check_restart(w, "advanced", (uint32_t)i + 1, 1000);
    }
    long_attempt(w, 0, 31 * 5, 31 * 5 + 30, HOUR, CAUSE_NETWORK);
    world_check_stop(w, "waste", 66, 50);
    assert_string_equal(world_decision(w)->why,
                        "in the last 24 h it ran for 9h 00min, 6h 00min of it for nothing: 66 % of "
                        "its GPU time; the limit is 50 %");
}

static void below_the_floor_or_the_share_nothing_is_wasted(void **state)
{
    struct world *w = *state;
    struct policy p = generous();
    int64_t step = 1;

    p.waste_floor = 2 * HOUR;
    world_policy(w, &p);
    long_attempt(w, HOUR, step, step, 50 * MIN, CAUSE_NETWORK); /* nearly all, but only 1h 50 min */
    world_check_restart(w, "advanced", 1, 1000);
    long_attempt(w, 0, step + 1, step + 240, 20 * MIN, CAUSE_NETWORK); /* 2h 10min of 6h 10min */
    world_check_restart(w, "advanced", 2, 1000);
}

static void the_limit_itself_is_not_above_it_and_none_is_none(void **state)
{
    static const uint32_t no_limits[] = {0, 100};
    struct world *w = *state;
    struct policy p = generous();

    p.waste_floor = 0;
    world_policy(w, &p);
    long_attempt(w, 0, 0, 60, HOUR, CAUSE_NETWORK);
    world_check_restart(w, "advanced", 1, 1000); /* 50 % */
    for (size_t i = 0; i < ARRAY_SIZE(no_limits); i++) {
        p.max_waste = no_limits[i];
        world_policy(w, &p);
        long_attempt(w, 10 * HOUR, 100, 100, HOUR, CAUSE_NETWORK);
        assert_int_equal(world_decision(w)->action, ACTION_RESTART);
    }
}

static void waste_of_yesterday_is_forgotten(void **state)
{
    struct world *w = *state;
    struct policy p = generous();

    world_policy(w, &p);
    long_attempt(w, 5 * HOUR, 1, 1, 30 * MIN, CAUSE_NETWORK);
    world_wait(w, 20 * HOUR);
    long_attempt(w, 0, 2, 2, 50 * MIN, CAUSE_NETWORK); /* 24 h ago it had 4h 10min to go */
    world_check_restart(w, "advanced", 2, 1000);
    assert_true(ledger_waste(&world_job(w)->ledger, w->now).lost < 6 * HOUR);
}

static void what_is_no_failure_or_cannot_be_told_is_no_waste(void **state)
{
    struct world *w = *state;
    struct policy p = generous();

    p.waste_floor = 0;
    world_policy(w, &p);
    long_attempt(w, HOUR, 1, 1, HOUR, CAUSE_PREEMPTION);
    world_check_restart(w, "not-its-fault", 1, RESTARTS_PER_DAY_MAX);
    assert_int_equal(ledger_waste(&world_job(w)->ledger, w->now).lost, 0);
    assert_int_equal(ledger_waste(&world_job(w)->ledger, w->now).ran, 2 * HOUR);
    long_attempt(w, HOUR, 1, 1, HOUR, CAUSE_EXTERNAL_SERVICE); /* patience */
    world_check_restart(w, "patience", 1, 1000);
    assert_int_equal(ledger_waste(&world_job(w)->ledger, w->now).lost, 0);
    world_start(w); /* steps of which no number is known */
    world_wait(w, HOUR);
    assert_int_equal(ledger_waste(&world_job(w)->ledger, w->now).ran, 4 * HOUR);
}

static void steps_that_had_been_done_and_saved_before_are_waste(void **state)
{
    struct world *w = *state;
    struct policy p = generous();

    world_policy(w, &p);
    long_attempt(w, 0, 0, 60, 0, CAUSE_NETWORK);
    world_start(w);
    for (int64_t step = 31; step <= 120; step++) { /* from an older checkpoint */
        world_wait(w, MIN);
        world_step(w, step);
    }
    world_checkpoint(w, EDGE_END, 120);
    world_die(w, 1);
    assert_int_equal(ledger_waste(&world_job(w)->ledger, w->now).ran, 150 * MIN);
    assert_int_equal(ledger_waste(&world_job(w)->ledger, w->now).lost, 30 * MIN);
}

static void time_counts_as_often_as_devices_spend_it(void **state)
{
    struct ledger l;
    struct policy p;
    struct incident i = {.class = CLASS_CRASH, .cause = CAUSE_NETWORK};
    struct attempt_account a = {.began = 0,
                                .ended = HOUR,
                                .steps_seen = 1,
                                .highest_step = 1,
                                .last_step = 1,
                                .checkpoint_step = STEP_NONE,
                                .loaded_step = STEP_NONE,
                                .new_from = 0,
                                .new_until = HOUR,
                                .saved_at = USEC_NEVER,
                                .devices = 8};
    struct waste w;

    policy_default(&p);
    ledger_init(&l);
    ledger_judge(&l, &p, &i, &a);
    a = (struct attempt_account){.began = HOUR,
                                 .ended = 2 * HOUR,
                                 .steps_seen = 1,
                                 .highest_step = 1,
                                 .last_step = 1,
                                 .checkpoint_step = STEP_NONE,
                                 .loaded_step = STEP_NONE,
                                 .new_from = USEC_NEVER,
                                 .new_until = USEC_NEVER,
                                 .saved_at = USEC_NEVER,
                                 .devices = 2};
    ledger_judge(&l, &p, &i, &a);
    w = ledger_waste(&l, 2 * HOUR);
    assert_int_equal(w.ran, 2 * HOUR);
    assert_int_equal(w.lost, HOUR);
    assert_int_equal(w.devices_ran, 10 * HOUR);
    assert_int_equal(w.devices_lost, 2 * HOUR);
    for (int n = 0; n < SPANS_MAX; n++) /* the first two give way */
        ledger_judge(&l, &p, &i, &a);
    assert_int_equal(ledger_waste(&l, 2 * HOUR).devices_ran, SPANS_MAX * 2 * HOUR);
}

/* Size */

static void many_nodes_are_restarted_in_vain_less_often(void **state)
{
    static const struct {
        uint32_t nodes, restarts, used;
    } rows[] = {{1, 9, 0}, {300, 2, 600}, {641, 1, 641}, {UINT32_MAX, 1, UINT32_MAX}};
    struct world *w = *state;
    struct policy p = generous();

    world_policy(w, &p);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct job_facts facts = {.nodes = rows[i].nodes};

        if (i > 0) { /* a new run of it */
            if (world_job(w)->state != JOB_ENDED)
                world_interrupt(w, 2);
            world_seen(w, &facts);
        }
        w->attempt = 0;
        for (uint32_t n = 1; n <= rows[i].restarts; n++) {
            world_attempt(w, 1, 0, "nccl", CAUSE_NETWORK);
            world_check_restart(w, "retry", n, 1000);
        }
        world_attempt(w, 1, 0, "nccl", CAUSE_NETWORK);
        if (rows[i].used > 0)
            world_check_stop(w, "fleet", rows[i].used, 640);
    }
}

static void restarts_that_lead_on_cost_the_fleet_nothing(void **state)
{
    const struct job_facts facts = {.nodes = 640};
    struct world *w = *state;
    struct policy p = generous();

    world_policy(w, &p);
    world_seen(w, &facts);
    world_attempt(w, 1, 0, "nccl", CAUSE_NETWORK);
    world_check_restart(w, "retry", 1, 1000);
    for (uint32_t n = 1; n <= 5; n++) {
        world_attempt(w, n, n + 1, "nccl", CAUSE_NETWORK);
        world_check_restart(w, "advanced", n + 1, 1000);
    }
    world_attempt(w, 1, 0, "nccl", CAUSE_NETWORK);
    world_check_stop(w, "fleet", 640, 640);
    p.max_node_restarts_per_day = 0;
    world_seen(w, &facts);
    w->attempt = 0;
    world_policy(w, &p);
    for (uint32_t n = 1; n <= 5; n++)
        world_attempt(w, 1, 0, "nccl", CAUSE_NETWORK);
    world_check_restart(w, "retry", 5, 1000);
}

static void a_large_job_is_held_when_nobody_knows_why_it_fails(void **state)
{
    const struct job_facts large = {.nodes = 128, .gpus = 1024}, small = {.gpus = 1023};
    struct world *w = *state;
    struct policy p = generous();

    world_policy(w, &p);
    world_seen(w, &small);
    for (uint32_t n = 1; n <= 3; n++)
        world_attempt(w, 1, 0, "mute", CAUSE_UNKNOWN);
    world_check_restart(w, "retry", 3, 1000);
    world_interrupt(w, 2);
    world_seen(w, &large);
    w->attempt = 0;
    world_attempt(w, 1, 5, "mute", CAUSE_UNKNOWN);
    world_attempt(w, 6, 9, "mute", CAUSE_UNKNOWN); /* progress in between */
    world_check_restart(w, "advanced", 2, 1000);
    world_attempt(w, 1, 9, "nccl", CAUSE_NETWORK); /* explained */
    world_check_restart(w, "retry", 1, 1000);
    world_attempt(w, 1, 8, "mute", CAUSE_UNKNOWN);
    world_check_stop(w, "unexplained", 2, 2);
    assert_string_equal(world_decision(w)->why,
                        "2 failures without progress whose cause is not known, on 1024 GPUs: look "
                        "before it takes them again");
}

static void no_job_is_large_when_the_policy_says_so(void **state)
{
    const struct job_facts huge = {.nodes = 1, .gpus = 100000};
    struct world *w = *state;
    struct policy p = generous();

    p.large_job = 0;
    world_policy(w, &p);
    world_seen(w, &huge);
    for (uint32_t n = 1; n <= 4; n++)
        world_attempt(w, 1, 0, "mute", CAUSE_UNKNOWN);
    world_check_restart(w, "retry", 4, 1000);
}

/* The same step */

static void the_same_step_twice_is_told_to_the_job(void **state)
{
    struct world *w = *state;

    world_attempt(w, 1, 5, "nan", CAUSE_NUMERICAL);
    world_check_restart(w, "advanced", 1, 20);
    assert_int_equal(world_intent(w, INTENT_START)->intended.after_step, STEP_NONE);
    world_attempt(w, 1, 5, "nan", CAUSE_NUMERICAL);
    world_check_restart(w, "same-step", 2, 2);
    assert_string_equal(world_decision(w)->why,
                        "numerical after step 5 again: retry 2 of 2 for this "
                        "failure, and the job is told the step");
    assert_int_equal(world_decision(w)->after_step, 5);
    assert_int_equal(world_intent(w, INTENT_START)->intended.after_step, 5);
    world_attempt(w, 1, 5, "nan", CAUSE_NUMERICAL);
    world_check_stop(w, "same-step", 2, 2);
    assert_string_equal(
        world_decision(w)->why,
        "numerical after step 5 again, 2 of 2 retries used: it is what comes there, "
        "not chance; leave out its data, or go on from an older checkpoint");
}

static void a_start_that_failed_forgets_no_step(void **state)
{
    struct world *w = *state;

    world_attempt(w, 1, 5, "nan", CAUSE_NUMERICAL);
    world_attempt(w, 1, 5, "nan", CAUSE_NUMERICAL);
    world_result(w, world_intent(w, INTENT_START)->seq, OUTCOME_FAILED, "no memory");
    world_check_restart(w, "start-failed", 1, 3);
    assert_int_equal(world_intent(w, INTENT_START)->intended.after_step, 5);
}

static void bad_data_of_the_program_gets_as_many_retries(void **state)
{
    struct world *w = *state;
    struct policy p;

    world_attempt(w, 1, 5, "index", CAUSE_USER_CODE);
    world_attempt(w, 1, 5, "index", CAUSE_USER_CODE);
    world_check_restart(w, "same-step", 2, 2); /* user-code alone has 1 */
    world_attempt(w, 1, 4, "index", CAUSE_USER_CODE);
    world_check_stop(w, "same-failure", 2, 1); /* elsewhere: not the data of that step */
    policy_default(&p);
    p.same_step_retries = 0;
    world_policy(w, &p);
    world_seen(w, &(struct job_facts){0});
    w->attempt = 0;
    world_attempt(w, 1, 5, "index", CAUSE_USER_CODE);
    world_attempt(w, 1, 5, "index", CAUSE_USER_CODE);
    world_check_stop(w, "same-step", 1, 1);
}

static void memory_is_no_matter_of_the_data(void **state)
{
    struct world *w = *state;

    world_attempt(w, 1, 5, "oom", CAUSE_GPU_OOM);
    world_attempt(w, 1, 5, "oom", CAUSE_GPU_OOM);
    world_check_stop(w, "same-step", 1, 1);
    assert_null(strstr(world_decision(w)->why, "leave out its data"));
}

static void a_step_is_no_cause_of_a_broken_network(void **state)
{
    struct world *w = *state;

    for (uint32_t n = 1; n <= 2; n++)
        world_attempt(w, 1, 5, "nccl", CAUSE_NETWORK);
    world_check_restart(w, "retry", 2, 3);
    assert_int_equal(world_intent(w, INTENT_START)->intended.after_step, STEP_NONE);
}

static void another_failure_at_the_same_step_is_another(void **state)
{
    struct world *w = *state;

    world_attempt(w, 1, 5, "nan", CAUSE_NUMERICAL);
    world_attempt(w, 1, 5, "index", CAUSE_USER_CODE);
    world_check_restart(w, "retry", 1, 1);
    assert_int_equal(world_decision(w)->after_step, STEP_NONE);
    world_attempt(w, 1, 5, "nan", CAUSE_NUMERICAL); /* but the first one again is the same */
    world_check_restart(w, "same-step", 2, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(time_that_leads_to_nothing_stops_even_a_job_that_advances),
        WORLD_TEST(below_the_floor_or_the_share_nothing_is_wasted),
        WORLD_TEST(the_limit_itself_is_not_above_it_and_none_is_none),
        WORLD_TEST(waste_of_yesterday_is_forgotten),
        WORLD_TEST(what_is_no_failure_or_cannot_be_told_is_no_waste),
        WORLD_TEST(steps_that_had_been_done_and_saved_before_are_waste),
        cmocka_unit_test(time_counts_as_often_as_devices_spend_it),
        WORLD_TEST(many_nodes_are_restarted_in_vain_less_often),
        WORLD_TEST(restarts_that_lead_on_cost_the_fleet_nothing),
        WORLD_TEST(a_large_job_is_held_when_nobody_knows_why_it_fails),
        WORLD_TEST(no_job_is_large_when_the_policy_says_so),
        WORLD_TEST(the_same_step_twice_is_told_to_the_job),
        WORLD_TEST(a_start_that_failed_forgets_no_step),
        WORLD_TEST(bad_data_of_the_program_gets_as_many_retries),
        WORLD_TEST(memory_is_no_matter_of_the_data),
        WORLD_TEST(a_step_is_no_cause_of_a_broken_network),
        WORLD_TEST(another_failure_at_the_same_step_is_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
