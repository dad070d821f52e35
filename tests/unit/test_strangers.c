/* SPDX-License-Identifier: Apache-2.0 */

/* Who makes room for whom, of those who have proven nothing; and what is known of addresses. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "source/strangers.h"

static char who[8]; /* their addresses are all that counts */

static void the_oldest_goes_and_one_that_did_not_greet_before_others(void **state)
{
    strangers s = {0};

    (void)state;
    assert_null(strangers_first(&s));
    for (int i = 0; i < 4; i++)
        strangers_add(&s, &who[i], "10.0.0.1", false);
    assert_ptr_equal(strangers_first(&s), &who[0]);
    strangers_greeted(&s, &who[0]);
    strangers_greeted(&s, &who[2]);
    assert_ptr_equal(strangers_first(&s), &who[1]);
    strangers_remove(&s, &who[1]);
    assert_ptr_equal(strangers_first(&s), &who[3]);
    strangers_remove(&s, &who[3]);
    assert_ptr_equal(strangers_first(&s), &who[0]); /* all have */
    strangers_remove(&s, &who[7]);                  /* is none of them */
    strangers_greeted(&s, &who[7]);
    strangers_remove(&s, &who[0]);
    strangers_remove(&s, &who[2]);
    assert_null(strangers_first(&s));
    strangers_done(&s);
}

static void only_those_from_there_and_of_the_same_kind_count(void **state)
{
    strangers s = {0};

    (void)state;
    strangers_add(&s, &who[0], "10.0.0.1", true);
    strangers_add(&s, &who[1], "10.0.0.2", false);
    strangers_add(&s, &who[2], "10.0.0.1", false);
    strangers_add(&s, &who[3], "10.0.0.1", false);
    assert_null(strangers_crowd(&s, "10.0.0.1", false, 3));
    assert_ptr_equal(strangers_crowd(&s, "10.0.0.1", false, 2), &who[2]);
    assert_ptr_equal(strangers_crowd(&s, "10.0.0.1", true, 1), &who[0]);
    assert_null(strangers_crowd(&s, "10.0.0.2", true, 1));
    assert_null(strangers_crowd(&s, "10.0.0.3", false, 1));
    assert_ptr_equal(strangers_first(&s), &who[0]); /* from anywhere */
    strangers_done(&s);
}

static void learn(struct node_addresses *a, const char *answer, usec_t now)
{
    json_t *j = answer ? json_loads(answer, 0, NULL) : NULL;

    node_addresses_learn(a, j, now);
    json_decref(j);
}

static void addresses_hold_until_others_are_found(void **state)
{
    struct node_addresses a = {0};
    usec_t now = USEC_PER_DAY;

    (void)state;
    assert_true(node_addresses_are_due(&a, now));
    learn(&a, "{\"addresses\":[\"10.0.0.1\",\"fd00::1\",7]}", now);
    assert_true(node_addresses_has(&a, "10.0.0.1") && node_addresses_has(&a, "fd00::1"));
    assert_false(node_addresses_has(&a, "10.0.0.2"));
    assert_false(node_addresses_are_due(&a, now + 299 * USEC_PER_SEC));
    assert_true(node_addresses_are_due(&a, now += 300 * USEC_PER_SEC));
    a.asked = true;
    assert_false(node_addresses_are_due(&a, now));
    a.asked = false;
    learn(&a, "{\"error\":\"Temporary failure\"}", now);
    assert_true(node_addresses_has(&a, "10.0.0.1"));
    assert_false(node_addresses_are_due(&a, now + 29 * USEC_PER_SEC));
    assert_true(node_addresses_are_due(&a, now += 30 * USEC_PER_SEC));
    learn(&a, NULL, now);
    assert_true(node_addresses_has(&a, "10.0.0.1"));
    learn(&a, "{\"addresses\":[\"10.0.0.2\"]}", now);
    assert_true(node_addresses_has(&a, "10.0.0.2"));
    assert_false(node_addresses_has(&a, "10.0.0.1"));
}

static void addresses_are_so_many_at_most(void **state)
{
    struct node_addresses a = {0};
    json_t *list = json_array(), *answer;

    (void)state;
    for (int i = 0; i <= NODE_ADDRESSES_MAX; i++)
        json_array_append_new(list, json_sprintf("10.0.0.%d", i));
    answer = json_pack("{s:o}", "addresses", list);
    node_addresses_learn(&a, answer, 0);
    assert_int_equal(a.n, NODE_ADDRESSES_MAX);
    assert_false(node_addresses_has(&a, "10.0.0.16"));
    json_decref(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_goes_and_one_that_did_not_greet_before_others),
        cmocka_unit_test(only_those_from_there_and_of_the_same_kind_count),
        cmocka_unit_test(addresses_hold_until_others_are_found),
        cmocka_unit_test(addresses_are_so_many_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
