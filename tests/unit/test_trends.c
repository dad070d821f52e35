/* SPDX-License-Identifier: Apache-2.0 */

/* The detectors that look at one log: series, collectives, attempts. */

#include "base/str.h"
#include "core/measure/collective.h"
#include "core/measure/split.h"
#include "core/measure/trend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* ---- series ---- */

struct feed {
    struct series s;
    struct signal x;
};

static void feed_init(struct feed *f, const struct series_rule *rule)
{
    f->x = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);
    f->x.step.step = 0;
    series_init(&f->s, rule, &f->x);
}

/* n values from `from` to `to`, with a little regular noise of that size. */
static void feed(struct feed *f, int n, int64_t from, int64_t to, int64_t noise)
{
    for (int i = 0; i < n; i++) {
        f->x.step.step++;
        f->x.line++;
        snprintf(f->x.text, sizeof(f->x.text), "step %lld", (long long)f->x.step.step);
        series_add(&f->s, from + (to - from) * i / n + (i * 5 % 7 - 3) * noise / 3, &f->x);
    }
}

/* As many values are below the median as are above it, whatever their order and however often one
 * comes. */
static void test_median_of_any_values(void **state)
{
    int64_t v[SERIES_WINDOW];
    uint32_t random = 1;

    for (int round = 0; round < 20000; round++) {
        size_t n = 1 + (size_t)round % SERIES_WINDOW, below = 0, above = 0;
        int64_t median;

        for (size_t i = 0; i < n; i++) {
            random = random * 1664525 + 1013904223;
            v[i] = (int64_t)(random >> 16) % (1 + round % 50) - 20;
        }
        median = series_median(v, n);
        for (size_t i = 0; i < n; i++) {
            below += v[i] < median;
            above += v[i] > median;
        }
        assert_true(below <= n / 2 && above <= (n - 1) / 2);
        assert_true(below + above < n);
    }
}

static void test_rise_is_dated_to_its_first_line(void **state)
{
    struct feed f;

    feed_init(&f, &series_step_time);
    feed(&f, 200, 1000000, 1000000, 3000);
    assert_false(f.s.open);
    feed(&f, 30, 1200000, 1200000, 3000);
    assert_true(f.s.open);
    assert_int_equal(f.s.onset[0].line, 201);
    assert_string_equal(f.s.onset[0].text, "step 201");
    assert_int_equal(f.s.last_before.line, 200);
    assert_in_range(f.s.level, 995000, 1005000);
    assert_in_range(series_level_after(&f.s), 1195000, 1205000);
    feed(&f, 5, 1000000, 1000000, 3000);
    assert_false(f.s.open);
}

static void test_two_spikes_in_a_row_are_no_rise(void **state)
{
    struct feed f;

    feed_init(&f, &series_step_time);
    for (int i = 0; i < 50; i++) {
        feed(&f, 20, 1000000, 1000000, 3000);
        feed(&f, 2, 30000000, 30000000, 0);
        assert_false(f.s.open);
    }
}

static void test_noise_sets_the_bar(void **state)
{
    struct feed f;

    feed_init(&f, &series_step_time);
    feed(&f, 200, 1000000, 1000000, 300000);
    feed(&f, 100, 1100000, 1100000, 300000);
    assert_false(f.s.open);
}

static void test_slow_enough_and_long_enough(void **state)
{
    struct feed f;

    feed_init(&f, &series_step_time);
    feed(&f, 200, 20 * USEC_PER_SEC, 20 * USEC_PER_SEC, 30000);
    feed(&f, 15, 24 * USEC_PER_SEC, 24 * USEC_PER_SEC, 30000);
    assert_false(steps_slowed(&f.s, NULL));
    feed(&f, 10, 24 * USEC_PER_SEC, 24 * USEC_PER_SEC, 30000);
    assert_true(steps_slowed(&f.s, NULL));
}

static void test_short_steps_need_minutes(void **state)
{
    struct feed f;

    feed_init(&f, &series_step_time);
    feed(&f, 200, 10000, 10000, 30);
    feed(&f, 100, 12000, 12000, 30);
    assert_false(steps_slowed(&f.s, NULL));
}

static void test_longer_steps_at_equal_throughput_are_a_larger_batch(void **state)
{
    struct feed time, rate;

    feed_init(&time, &series_step_time);
    feed_init(&rate, &series_step_time);
    feed(&time, 200, 20 * USEC_PER_SEC, 20 * USEC_PER_SEC, 30000);
    feed(&time, 100, 40 * USEC_PER_SEC, 40 * USEC_PER_SEC, 30000);
    feed(&rate, 300, -5000000000, -5000000000, METRIC_SCALE);
    assert_true(steps_slowed(&time.s, NULL));
    assert_false(steps_slowed(&time.s, &rate.s));
}

static void test_a_rate_alone_falls(void **state)
{
    struct feed f;

    feed_init(&f, &series_step_time);
    feed(&f, 200, -5000000000, -5000000000, METRIC_SCALE);
    feed(&f, 15, -3000000000, -3000000000, METRIC_SCALE);
    assert_false(rate_fell(&f.s));
    feed(&f, 60, -3000000000, -3000000000, METRIC_SCALE);
    assert_true(rate_fell(&f.s));
    feed(&f, 60, -5000000000, -5000000000, METRIC_SCALE);
    assert_false(rate_fell(&f.s));
}

static void test_divergence_must_last(void **state)
{
    struct feed f;

    feed_init(&f, &series_loss);
    feed(&f, 100, 2800000, 2700000, 10000);
    feed(&f, 6, 4700000, 4700000, 10000);
    assert_int_equal(loss_diverged(&f.s, false), DIVERGENCE_NONE);
    assert_int_equal(loss_diverged(&f.s, true), DIVERGENCE_RISE);
    feed(&f, 4, 4700000, 4700000, 10000);
    assert_int_equal(loss_diverged(&f.s, false), DIVERGENCE_RISE);
}

static void test_a_spike_on_its_way_back_is_no_divergence(void **state)
{
    struct feed f;

    feed_init(&f, &series_loss);
    feed(&f, 100, 2800000, 2700000, 10000);
    feed(&f, 30, 6000000, 3600000, 10000);
    assert_true(f.s.open);
    assert_int_equal(loss_diverged(&f.s, false), DIVERGENCE_NONE);
}

static void test_nan_counts_only_at_the_end(void **state)
{
    struct feed f;

    feed_init(&f, &series_loss);
    feed(&f, 50, 2800000, 2700000, 10000);
    for (int i = 0; i < 5; i++)
        series_add(&f.s, METRIC_NAN, &f.x);
    assert_int_equal(loss_diverged(&f.s, false), DIVERGENCE_NAN);
    feed(&f, 1, 2700000, 2700000, 0);
    assert_int_equal(loss_diverged(&f.s, false), DIVERGENCE_NONE);
}

static void test_extreme_values_do_not_overflow(void **state)
{
    struct feed f;

    feed_init(&f, &series_loss);
    feed(&f, 40, 0, 0, 0);
    series_add(&f.s, INT64_MAX - 1, &f.x);
    series_add(&f.s, INT64_MIN + 2, &f.x);
    series_add(&f.s, NUMBER_NONE, &f.x);
    feed(&f, 40, 900000000000000, 900000000000000, 0);
    assert_int_equal(loss_diverged(&f.s, false), DIVERGENCE_RISE);
}

/* ---- collectives ---- */

static void wait_in(struct collectives *c, int32_t rank, const char *group, const char *op,
                    int64_t seq, int64_t enqueued)
{
    struct signal s = signal_make(SIGNAL_COLLECTIVE, PROVENANCE_JOB_TEXT);

    s.who.rank = rank;
    s.collective.seq = seq;
    s.collective.enqueued = enqueued;
    STR_COPY(s.collective.group, group);
    STR_COPY(s.collective.op, op);
    collectives_add(c, &s);
}

static void test_facts_of_one_rank_are_merged(void **state)
{
    struct collectives c = {0};

    wait_in(&c, 2, "", "ALLREDUCE", 7, NUMBER_NONE);
    wait_in(&c, 2, "default_pg", "", 7, 9);
    assert_int_equal(c.reporters, 1);
    assert_int_equal(c.rank[2]->n, 1);
    assert_string_equal(c.rank[2]->wait[0].fact.op, "ALLREDUCE");
    assert_string_equal(c.rank[2]->wait[0].fact.group, "default_pg");
    assert_int_equal(c.rank[2]->wait[0].fact.enqueued, 9);
    collectives_done(&c);
}

static void test_half_of_the_ranks_behind_blames_none(void **state)
{
    struct collectives c = {0};
    struct intset known = {0};
    struct holdup_finding f;

    for (int32_t r = 0; r < 8; r++)
        wait_in(&c, r, "", "ALLREDUCE", r < 4 ? 7 : 8, r < 4 ? 7 : 8);
    collectives_judge(&c, &known, &f);
    assert_int_equal(f.kind, HOLDUP_SPREAD);
    assert_int_equal(f.ranks.n, 0);
    intset_done(&f.ranks);
    collectives_done(&c);
}

static void test_a_rank_behind_in_one_group_that_waits_in_another_is_a_victim(void **state)
{
    struct collectives c = {0};
    struct intset known = {0};
    struct holdup_finding f;

    for (int32_t r = 0; r < 8; r++)
        wait_in(&c, r, "dp", "ALLREDUCE", r == 3 ? 7 : 8, r == 3 ? 7 : 8);
    wait_in(&c, 3, "tp", "ALLGATHER", 40, 40);
    collectives_judge(&c, &known, &f);
    assert_int_equal(f.ranks.n, 0);
    intset_done(&f.ranks);
    collectives_done(&c);
}

static void test_hostile_ranks_are_refused(void **state)
{
    struct collectives c = {0};

    wait_in(&c, INT32_MAX, "", "ALLREDUCE", 7, 7);
    wait_in(&c, -5, "", "ALLREDUCE", 7, 7);
    assert_int_equal(c.reporters, 0);
    assert_int_equal(c.refused, 2);
    wait_in(&c, COLLECTIVE_RANKS - 1, "", "ALLREDUCE", 7, 7);
    assert_int_equal(c.reporters, 1);
    collectives_done(&c);
}

/* ---- attempts ---- */

static struct signal step(int64_t n)
{
    struct signal s = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);

    s.role = ROLE_PROGRESS;
    s.step.step = n;
    return s;
}

static struct signal line(enum role role, usec_t time_us)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);

    s.role = role;
    s.time_us = time_us;
    return s;
}

static bool tell(struct split *s, struct signal x)
{
    return split_add(s, &x);
}

static void test_launch_after_progress_is_a_new_attempt(void **state)
{
    struct split s;

    split_init(&s);
    assert_false(tell(&s, line(ROLE_LAUNCH, USEC_UNKNOWN)));
    assert_false(tell(&s, line(ROLE_LAUNCH, USEC_UNKNOWN)));
    assert_false(tell(&s, step(1)));
    assert_true(tell(&s, line(ROLE_LAUNCH, USEC_UNKNOWN)));
    assert_false(tell(&s, line(ROLE_LAUNCH, USEC_UNKNOWN)));
}

static void test_late_launcher_of_another_node_opens_nothing(void **state)
{
    struct split s;

    split_init(&s);
    tell(&s, line(ROLE_LAUNCH, 100 * USEC_PER_SEC));
    tell(&s, line(ROLE_ROOT, 101 * USEC_PER_SEC));
    tell(&s, line(ROLE_CONFIRM, 101 * USEC_PER_SEC));
    assert_false(tell(&s, line(ROLE_LAUNCH, 103 * USEC_PER_SEC)));
    assert_true(tell(&s, line(ROLE_LAUNCH, 300 * USEC_PER_SEC)));
}

static void test_counter_that_falls_back_after_a_failure_is_a_new_attempt(void **state)
{
    struct split s;

    split_init(&s);
    tell(&s, step(900));
    assert_false(tell(&s, step(1)));
    tell(&s, step(900));
    tell(&s, line(ROLE_ROOT, USEC_UNKNOWN));
    tell(&s, line(ROLE_CONFIRM, USEC_UNKNOWN));
    assert_true(tell(&s, step(801)));
    assert_false(tell(&s, step(802)));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median_of_any_values),
        cmocka_unit_test(test_rise_is_dated_to_its_first_line),
        cmocka_unit_test(test_two_spikes_in_a_row_are_no_rise),
        cmocka_unit_test(test_noise_sets_the_bar),
        cmocka_unit_test(test_slow_enough_and_long_enough),
        cmocka_unit_test(test_short_steps_need_minutes),
        cmocka_unit_test(test_longer_steps_at_equal_throughput_are_a_larger_batch),
        cmocka_unit_test(test_a_rate_alone_falls),
        cmocka_unit_test(test_divergence_must_last),
        cmocka_unit_test(test_a_spike_on_its_way_back_is_no_divergence),
        cmocka_unit_test(test_nan_counts_only_at_the_end),
        cmocka_unit_test(test_extreme_values_do_not_overflow),
        cmocka_unit_test(test_facts_of_one_rank_are_merged),
        cmocka_unit_test(test_half_of_the_ranks_behind_blames_none),
        cmocka_unit_test(test_a_rank_behind_in_one_group_that_waits_in_another_is_a_victim),
        cmocka_unit_test(test_hostile_ranks_are_refused),
        cmocka_unit_test(test_launch_after_progress_is_a_new_attempt),
        cmocka_unit_test(test_late_launcher_of_another_node_opens_nothing),
        cmocka_unit_test(test_counter_that_falls_back_after_a_failure_is_a_new_attempt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
