/* SPDX-License-Identifier: Apache-2.0 */

/* What the next reader repeats is known, and nothing else is taken for it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "source/reader_seen.h"

/* Whether it is news. */
static bool take(struct reader_seen *s, uint64_t offset)
{
    if (reader_seen_is_repeated(s, offset))
        return false;
    reader_seen_note(s, offset);
    return true;
}

static void test_nothing_is_repeated_within_one_reader(void **state)
{
    struct reader_seen s = {0};

    assert_true(take(&s, 10));
    assert_true(take(&s, 10)); /* two signals of one line */
    assert_true(take(&s, 30));
    assert_true(take(&s, 20)); /* a report ends later than a line within it */
    assert_true(take(&s, 30));
}

static void test_the_next_reader_begins_before(void **state)
{
    struct reader_seen s = {0};

    assert_true(take(&s, 10) && take(&s, 20) && take(&s, 20));
    reader_seen_expect(&s);
    assert_false(take(&s, 10) || take(&s, 20) || take(&s, 20));
    assert_true(take(&s, 20)); /* a third of that line */
    assert_true(take(&s, 30));
}

static void test_it_dies_before_it_is_there(void **state)
{
    struct reader_seen s = {0};

    assert_true(take(&s, 10) && take(&s, 20));
    reader_seen_expect(&s);
    assert_false(take(&s, 10));
    reader_seen_expect(&s); /* and the next */
    assert_false(take(&s, 10) || take(&s, 20));
    assert_true(take(&s, 21));
}

static void test_a_file_that_begins_anew_repeats_nothing(void **state)
{
    struct reader_seen s = {.number = 7};

    assert_true(take(&s, 10));
    reader_seen_expect(&s);
    reader_seen_forget(&s);
    assert_true(take(&s, 5));
    assert_int_equal(s.number, 7);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_repeated_within_one_reader),
        cmocka_unit_test(test_the_next_reader_begins_before),
        cmocka_unit_test(test_it_dies_before_it_is_there),
        cmocka_unit_test(test_a_file_that_begins_anew_repeats_nothing),
    };

    return cmocka_run_group_tests_name("reader_seen", tests, NULL, NULL);
}
