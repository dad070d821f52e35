/* SPDX-License-Identifier: Apache-2.0 */

/* What many nodes do, put together. */

#include "core/model/event.h"
#include "source/node_samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SEC USEC_PER_SEC

static const struct activity_fact busy = {
    .interval = 10 * SEC, .cpu = 40 * SEC, .io = 1000, .processes = 4};
static const struct activity_fact idle = {
    .interval = 10 * SEC, .cpu = 0, .io = 0, .processes = 4, .stopped = 1, .blocked = 2};

static int set_up(void **state)
{
    *state = node_samples_new();
    return 0;
}

static int tear_down(void **state)
{
    node_samples_free(*state);
    return 0;
}

static void test_all_nodes_count_together(void **state)
{
    struct activity_fact f;

    assert_false(node_samples_add(*state, "n2", &idle, 3, 1, &f));
    assert_false(node_samples_add(*state, "n10", &busy, 3, 2, &f));
    assert_true(node_samples_add(*state, "n1", &idle, 3, 3, &f));
    assert_int_equal(f.interval, 10 * SEC);
    assert_int_equal(f.cpu, 40 * SEC);
    assert_int_equal(f.io, 1000);
    assert_int_equal(f.processes, 12);
    assert_int_equal(f.stopped, 2);
    assert_int_equal(f.blocked, 4);
    assert_false(node_samples_add(*state, "n1", &idle, 3, 4, &f)); /* another round */
}

static void test_a_silent_node_leaves_it_unknown(void **state)
{
    struct activity_fact f;

    for (usec_t now = 0; now < 10 * NODE_SAMPLES_AGE; now += 10 * SEC)
        assert_false(node_samples_add(*state, "n1", &idle, 2, now, &f));
    assert_false(node_samples_add(*state, "n1", &idle, 0, 0, &f)); /* of so many as nobody knows */
}

static void test_one_that_speaks_twice_is_not_busier(void **state)
{
    struct activity_fact f;

    node_samples_add(*state, "n1", &busy, 2, 1, &f);
    node_samples_add(*state, "n1", &busy, 2, 2, &f);
    assert_true(node_samples_add(*state, "n2", &busy, 2, 3, &f));
    assert_int_equal(f.cpu, 120 * SEC);
    assert_int_equal(f.interval, 15 * SEC);
    assert_int_equal(f.processes, 8);
}

static void test_old_samples_belong_to_no_new_ones(void **state)
{
    struct activity_fact f;

    node_samples_add(*state, "n1", &busy, 2, 0, &f);
    assert_false(node_samples_add(*state, "n2", &busy, 2, NODE_SAMPLES_AGE + 1, &f));
    assert_true(node_samples_add(*state, "n1", &idle, 2, NODE_SAMPLES_AGE + 2, &f));
    assert_int_equal(f.cpu, 40 * SEC);
}

static void test_io_that_nobody_may_read(void **state)
{
    struct activity_fact f = idle;

    f.io = NUMBER_NONE;
    node_samples_add(*state, "n1", &f, 2, 0, &f);
    assert_true(node_samples_add(*state, "n2", &busy, 2, 1, &f));
    assert_true(f.io == NUMBER_NONE);
}

/* A node may say any number that core would take, any number of times. */
static void test_no_sum_is_too_much_for_core(void **state)
{
    static const struct activity_fact most = {.interval = NUMBER_MAX,
                                              .cpu = NUMBER_MAX,
                                              .io = INT64_MAX,
                                              .processes = INT32_MAX,
                                              .stopped = INT32_MAX,
                                              .blocked = INT32_MAX};
    struct event e = {.kind = EVENT_SIGNAL,
                      .signal = signal_make(SIGNAL_ACTIVITY, PROVENANCE_AGENT)};

    for (int i = 0; i < 10000; i++)
        node_samples_add(*state, "n1", &most, 3, 0, &e.signal.activity);
    node_samples_add(*state, "n2", &most, 3, 0, &e.signal.activity);
    assert_true(node_samples_add(*state, "n3", &most, 3, 0, &e.signal.activity));
    assert_true(event_is_sane(&e));
    assert_int_equal(e.signal.activity.processes, INT32_MAX);
    assert_int_equal(e.signal.activity.cpu, NUMBER_MAX);
    assert_int_equal(e.signal.activity.io, NUMBER_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_nodes_count_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_silent_node_leaves_it_unknown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_that_speaks_twice_is_not_busier, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_old_samples_belong_to_no_new_ones, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_io_that_nobody_may_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_sum_is_too_much_for_core, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
