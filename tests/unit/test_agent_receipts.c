/* SPDX-License-Identifier: Apache-2.0 */

/* What reknitd keeps of a node's messages: which were told, and up to which one may be acked. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "source/agent_receipts.h"

static int64_t acked(struct agent_receipts *r)
{
    int64_t origin = 0, id = -1;

    return agent_receipts_ack(r, &origin, &id) ? origin * 10000 + id : -1;
}

static void what_is_not_safe_holds_up_what_is_behind_it(void **state)
{
    struct agent_receipts r = {0};

    (void)state;
    for (int64_t id = 1; id <= 4; id++)
        assert_int_equal(agent_receipts_take(&r, 5, id), AGENT_RECEIPT_NEW);
    assert_int_equal(acked(&r), -1);
    assert_true(agent_receipts_safe(&r, 5, 2));
    assert_true(agent_receipts_safe(&r, 5, 4));
    assert_int_equal(acked(&r), -1);
    assert_int_equal(agent_receipts_take(&r, 5, 2), AGENT_RECEIPT_WAITS);
    assert_true(agent_receipts_safe(&r, 5, 1));
    assert_int_equal(acked(&r), 50002);
    assert_int_equal(acked(&r), -1);
    assert_int_equal(agent_receipts_take(&r, 5, 2), AGENT_RECEIPT_SAFE);
    assert_int_equal(agent_receipts_take(&r, 5, 4), AGENT_RECEIPT_WAITS);
    assert_false(agent_receipts_safe(&r, 5, 2)); /* it waits no more */
    assert_false(agent_receipts_safe(&r, 5, 9));
    assert_true(agent_receipts_safe(&r, 5, 3));
    assert_int_equal(acked(&r), 50004);
    agent_receipts_done(&r);
}

static void one_that_there_was_no_room_for_is_new_again(void **state)
{
    struct agent_receipts r = {0};

    (void)state;
    agent_receipts_take(&r, 5, 1);
    agent_receipts_take(&r, 5, 7); /* what lies between was given up by the agent */
    agent_receipts_untake(&r);
    assert_int_equal(agent_receipts_take(&r, 5, 7), AGENT_RECEIPT_NEW);
    agent_receipts_untake(&r);
    assert_int_equal(agent_receipts_take(&r, 5, 1), AGENT_RECEIPT_WAITS);
    assert_int_equal(agent_receipts_take(&r, 5, 2), AGENT_RECEIPT_NEW);
    agent_receipts_done(&r);
}

static void too_many_that_are_not_safe_have_to_wait(void **state)
{
    struct agent_receipts r = {0};

    (void)state;
    for (int64_t id = 1; id <= AGENT_OPEN_MAX; id++)
        assert_int_equal(agent_receipts_take(&r, 5, id), AGENT_RECEIPT_NEW);
    assert_int_equal(agent_receipts_take(&r, 5, AGENT_OPEN_MAX + 1), AGENT_RECEIPT_NO_ROOM);
    assert_int_equal(agent_receipts_take(&r, 6, 1), AGENT_RECEIPT_NO_ROOM);
    assert_int_equal(agent_receipts_take(&r, 5, AGENT_OPEN_MAX), AGENT_RECEIPT_WAITS);
    agent_receipts_safe(&r, 5, 1);
    assert_int_equal(acked(&r), 50001);
    assert_int_equal(agent_receipts_take(&r, 5, AGENT_OPEN_MAX + 1), AGENT_RECEIPT_NEW);
    agent_receipts_done(&r);
}

/* An agent that was started again begins a spool, and sends what is left of the old ones. */
static void each_spool_counts_for_itself_and_the_oldest_is_forgotten(void **state)
{
    struct agent_receipts r = {0};

    (void)state;
    for (int64_t origin = 1; origin <= AGENT_ORIGINS_MAX; origin++) {
        assert_int_equal(agent_receipts_take(&r, origin, 3), AGENT_RECEIPT_NEW);
        agent_receipts_safe(&r, origin, 3);
        assert_int_equal(acked(&r), origin * 10000 + 3);
    }
    for (int64_t origin = 1; origin <= AGENT_ORIGINS_MAX; origin++)
        assert_int_equal(agent_receipts_take(&r, origin, 3), AGENT_RECEIPT_SAFE);
    agent_receipts_take(&r, 99, 1);
    assert_int_equal(agent_receipts_take(&r, 2, 3), AGENT_RECEIPT_SAFE);
    assert_int_equal(agent_receipts_take(&r, 1, 3), AGENT_RECEIPT_NEW);
    agent_receipts_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_safe_holds_up_what_is_behind_it),
        cmocka_unit_test(one_that_there_was_no_room_for_is_new_again),
        cmocka_unit_test(too_many_that_are_not_safe_have_to_wait),
        cmocka_unit_test(each_spool_counts_for_itself_and_the_oldest_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
