/* SPDX-License-Identifier: Apache-2.0 */

/* What the numbers of the step lines say: losses, gradients, step times. */

#include "attribute_world.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void losses(struct story *s, int64_t from, int n, int64_t first, int64_t last)
{
    for (int i = 0; i < n; i++) {
        struct signal x;

        s->now += USEC_PER_SEC;
        x = make(s, SIGNAL_STEP, "step", ROLE_PROGRESS);
        x.step.step = from + i;
        x.step.loss = first + (last - first) * i / n + (i % 7 - 3) * 10000;
        evidence_add(s->e, &x);
    }
}

static void test_a_loss_that_rises_and_stays_is_numerical(void **state)
{
    struct story *s = *state;

    losses(s, 1, 100, 2800000, 2750000);
    losses(s, 101, 20, 4700000, 4720000);
    judge(s);
    assert_int_equal(s->in.class, CLASS_CRASH);
    assert_int_equal(s->in.cause, CAUSE_NUMERICAL);
    assert_int_equal(s->in.evidence[1].line, 101);
}

static void test_a_loss_spike_that_comes_back_is_healthy(void **state)
{
    struct story *s = *state;

    losses(s, 1, 100, 2800000, 2750000);
    losses(s, 101, 40, 5700000, 2800000);
    losses(s, 141, 100, 2800000, 2700000);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
}

static void test_a_slow_climb_of_the_loss_is_numerical(void **state)
{
    struct story *s = *state;

    losses(s, 1, 1000, 2800000, 2000000);
    losses(s, 1001, 5000, 2000000, 3500000);
    judge(s);
    assert_int_equal(s->in.class, CLASS_CRASH);
    assert_int_equal(s->in.cause, CAUSE_NUMERICAL);
}

static void test_steps_that_become_slow_and_stay_so_are_a_straggler(void **state)
{
    struct story *s = *state;

    steps(s, 1, 300, 78 * USEC_PER_SEC);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
    steps(s, 301, 450, 83 * USEC_PER_SEC);
    judge(s);
    assert_int_equal(s->in.class, CLASS_STRAGGLER);
    assert_int_equal(s->in.culprits.n_nodes, 0);
    assert_int_equal(s->in.evidence[1].line, 301);
    steps(s, 451, 500, 78 * USEC_PER_SEC);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
}

static void test_slow_steps_now_and_then_are_checkpoints(void **state)
{
    for (int64_t i = 0; i < 20; i++) {
        steps(*state, 50 * i + 1, 50 * i + 48, USEC_PER_SEC);
        steps(*state, 50 * i + 49, 50 * i + 50, 40 * USEC_PER_SEC);
    }
    assert_int_equal(judge(*state)->class, CLASS_HEALTHY);
}

static void test_a_gradient_that_stays_nan_is_numerical(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    for (int i = 51; i <= 80; i++) {
        struct signal x = make(s, SIGNAL_STEP, "step", ROLE_PROGRESS);

        x.step.step = i;
        x.step.loss = 0;
        x.step.grad_norm = METRIC_NAN;
        evidence_add(s->e, &x);
    }
    judge(s);
    assert_int_equal(s->in.class, CLASS_CRASH);
    assert_int_equal(s->in.cause, CAUSE_NUMERICAL);
    assert_int_equal(s->in.evidence[0].line, 51);
}

static void test_values_below_a_step_belong_to_it(void **state)
{
    struct story *s = *state;

    for (int i = 1; i <= 120; i++) {
        struct signal x = make(s, SIGNAL_STEP, "step", ROLE_PROGRESS);

        x.step.step = i;
        evidence_add(s->e, &x);
        x = make(s, SIGNAL_STEP, "below", ROLE_PROGRESS);
        x.step.loss = i > 100 ? 7500000 : 2600000;
        evidence_add(s->e, &x);
    }
    judge(s);
    assert_int_equal(s->in.cause, CAUSE_NUMERICAL);
    assert_int_equal(s->in.evidence[1].line, 201); /* the line of step 101 */
    assert_int_equal(s->in.progress.last_step, 120);
}

static void test_what_throttles_while_the_job_is_slow_is_named(void **state)
{
    struct story *s = *state;
    struct signal x;

    steps(s, 1, 300, 20 * USEC_PER_SEC);
    for (int i = 0; i < 6; i++) {
        steps(s, 301 + 20 * i, 320 + 20 * i, 28 * USEC_PER_SEC);
        x = hit(s, "gpu.throttled", ROLE_CONFIRM, CAUSE_GPU_HARDWARE, 40);
        STR_COPY(x.who.device, "0000:87:00");
        STR_COPY(x.who.node, "n14");
        evidence_add(s->e, &x);
    }
    judge(s);
    assert_int_equal(s->in.class, CLASS_STRAGGLER);
    assert_int_equal(s->in.cause, CAUSE_GPU_HARDWARE);
    assert_string_equal(s->in.culprits.devices[0], "0000:87:00");
    assert_string_equal(s->in.culprits.nodes[0], "n14");
    assert_int_equal(s->in.advice, ADVICE_RESTART_EXCLUDING);
}

static void test_step_numbers_at_the_end_of_the_range(void **state)
{
    static const int64_t numbers[] = {NUMBER_MAX, 0, NUMBER_MAX, 1, STEP_NONE, 5};
    struct story *s = *state;

    for (int64_t i = 0; i < 600; i++) {
        struct signal x;

        s->now += USEC_PER_MIN;
        x = make(s, SIGNAL_STEP, i < 300 ? "jumps" : "counts", ROLE_PROGRESS);
        x.step.step = i < 300 ? numbers[i % 6] : NUMBER_MAX - 600 + i;
        x.step.duration = i < 450 ? USEC_PER_SEC : NUMBER_MAX;
        x.step.loss = i < 450 ? METRIC_SCALE : INT64_MAX / 4;
        evidence_add(s->e, &x);
        if (i % 50 == 0)
            judge(s);
    }
    judge(s);
    assert_int_equal(s->in.progress.last_step, NUMBER_MAX - 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        STORY_TEST(test_a_loss_that_rises_and_stays_is_numerical),
        STORY_TEST(test_a_loss_spike_that_comes_back_is_healthy),
        STORY_TEST(test_a_slow_climb_of_the_loss_is_numerical),
        STORY_TEST(test_steps_that_become_slow_and_stay_so_are_a_straggler),
        STORY_TEST(test_slow_steps_now_and_then_are_checkpoints),
        STORY_TEST(test_a_gradient_that_stays_nan_is_numerical),
        STORY_TEST(test_values_below_a_step_belong_to_it),
        STORY_TEST(test_what_throttles_while_the_job_is_slow_is_named),
        STORY_TEST(test_step_numbers_at_the_end_of_the_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
