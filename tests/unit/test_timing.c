/* SPDX-License-Identifier: Apache-2.0 */

/* Order statistics kept up to date gap by gap, against sorting everything anew. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/state/timing.h"

#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    usec_t x = *(const usec_t *)a, y = *(const usec_t *)b;

    return x < y ? -1 : x > y;
}

/* The definitions, word for word. */
static struct rhythm plainly(const usec_t *newest, uint32_t n)
{
    usec_t v[GAPS_MAX];
    struct rhythm r = {.n = n};

    memcpy(v, newest, n * sizeof(v[0]));
    qsort(v, n, sizeof(v[0]), ascending);
    r.median = v[(n - 1) / 2];
    r.q99 = v[(n * 99 + 99) / 100 - 1];
    r.longest = v[n - 1];
    for (uint32_t i = 0; i < n; i++)
        v[i] = v[i] > r.median ? v[i] - r.median : r.median - v[i];
    qsort(v, n, sizeof(v[0]), ascending);
    r.mad = v[(n - 1) / 2];
    return r;
}

static void statistics_equal_those_of_sorting(void **state)
{
    static usec_t all[3 * GAPS_MAX];
    struct timing *t = test_calloc(1, sizeof(*t));
    unsigned seed = 12345;

    for (uint32_t i = 0; i < 3 * GAPS_MAX; i++) {
        uint32_t n = i + 1 < GAPS_MAX ? i + 1 : GAPS_MAX;
        struct rhythm r;

        seed = seed * 1103515245 + 12345;
        all[i] = seed >> 16 & (i % 3 == 0 ? 7 : 4095); /* many equal ones among them */
        timing_add_gap(t, all[i]);
        r = plainly(&all[i + 1 - n], n);
        assert_int_equal(t->present.n, r.n);
        assert_int_equal(t->present.median, r.median);
        assert_int_equal(t->present.mad, r.mad);
        assert_int_equal(t->present.q99, r.q99);
        assert_int_equal(t->present.longest, r.longest);
    }
    test_free(t);
}

static void absurd_gaps_are_bounded(void **state)
{
    struct timing *t = test_calloc(1, sizeof(*t));

    timing_add_gap(t, -5);
    timing_add_gap(t, INT64_MAX);
    assert_int_equal(t->present.median, 0);
    assert_int_equal(t->present.longest, GAP_LONGEST);
    test_free(t);
}

static void what_is_learned_rises_at_once_and_falls_by_halves(void **state)
{
    struct timing *t = test_calloc(1, sizeof(*t));

    timing_add_first_step(t, 100);
    assert_int_equal(t->first_step, 100);
    timing_add_first_step(t, 300);
    assert_int_equal(t->first_step, 300);
    timing_add_first_step(t, 100);
    assert_int_equal(t->first_step, 200);
    timing_add_phase(t, PHASE_CHECKPOINT, 0);
    assert_int_equal(t->phase[PHASE_CHECKPOINT], 1); /* known, although short */
    timing_add_phase(t, PHASE_CHECKPOINT, INT64_MAX);
    assert_true(t->phase[PHASE_CHECKPOINT] <= INT64_MAX / 5);
    test_free(t);
}

static void few_gaps_teach_nothing(void **state)
{
    struct timing *t = test_calloc(1, sizeof(*t));

    for (int i = 0; i < RHYTHM_LEAST - 1; i++)
        timing_add_gap(t, 10);
    timing_next_attempt(t);
    assert_false(rhythm_known(&t->learned));
    for (int i = 0; i < RHYTHM_LEAST; i++)
        timing_add_gap(t, 11);
    timing_next_attempt(t);
    assert_true(rhythm_known(&t->learned));
    assert_int_equal(t->learned.median, 11);
    assert_int_equal(t->present.n, 0);
    for (int i = 0; i < RHYTHM_LEAST; i++)
        timing_add_gap(t, 21);
    timing_next_attempt(t);
    assert_int_equal(t->learned.median, 16);
    timing_next_attempt(t); /* an attempt without a step */
    assert_int_equal(t->learned.median, 16);
    test_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_equal_those_of_sorting),
        cmocka_unit_test(absurd_gaps_are_bounded),
        cmocka_unit_test(what_is_learned_rises_at_once_and_falls_by_halves),
        cmocka_unit_test(few_gaps_teach_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
