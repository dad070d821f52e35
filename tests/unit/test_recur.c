/* SPDX-License-Identifier: Apache-2.0 */

/* What several attempts say together. Each is told as node and rank that failed. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "core/attribute/recur.h"

static struct incident failed(enum cause cause, int32_t rank, int32_t confidence)
{
    struct incident in = {.class = CLASS_CRASH, .cause = cause, .confidence = confidence};

    in.culprits.n_ranks = 1;
    in.culprits.ranks[0] = rank;
    return in;
}

/* The last attempt failed on n7 as rank 3; the two before as told, the latest first. */
static struct incident judge(int32_t rank1, const char *node1, int32_t rank2, const char *node2,
                             int32_t confidence)
{
    struct incident one = failed(CAUSE_USER_CODE, rank1, confidence);
    struct incident two = failed(CAUSE_UNKNOWN, rank2, confidence);
    struct incident last = failed(CAUSE_USER_CODE, 3, confidence);
    const struct recur_attempt before[] = {{&one, node1}, {&two, node2}};

    recur_judge(before, 2, "n7", &last);
    return last;
}

static void a_node_that_fails_under_every_rank_is_named(void **state)
{
    struct incident in = judge(11, "n7", 6, "n7", 40);

    (void)state;
    assert_int_equal(in.cause, CAUSE_NODE_HARDWARE);
    assert_int_equal(in.advice, ADVICE_RESTART_EXCLUDING);
    assert_int_equal(in.culprits.n_ranks, 0);
    assert_int_equal(in.culprits.n_nodes, 1);
    assert_string_equal(in.culprits.nodes[0], "n7");
}

static void the_same_rank_each_time_is_the_programs(void **state)
{
    (void)state;
    assert_int_equal(judge(3, "n7", 3, "n7", 40).cause, CAUSE_USER_CODE);
}

static void other_nodes_acquit_it(void **state)
{
    (void)state;
    assert_int_equal(judge(11, "n7", 6, "n8", 40).cause, CAUSE_USER_CODE);
    assert_int_equal(judge(11, "n8", 6, "n7", 40).cause, CAUSE_USER_CODE);
    assert_int_equal(judge(11, "n7", 6, "", 40).cause, CAUSE_USER_CODE);
}

static void an_error_that_explains_itself_needs_no_such_argument(void **state)
{
    (void)state;
    assert_int_equal(judge(11, "n7", 6, "n7", 90).cause, CAUSE_USER_CODE);
}

static void two_attempts_prove_nothing(void **state)
{
    struct incident one = failed(CAUSE_USER_CODE, 11, 40), last = failed(CAUSE_USER_CODE, 3, 40);
    const struct recur_attempt before[] = {{&one, "n7"}};

    (void)state;
    recur_judge(before, 1, "n7", &last);
    assert_int_equal(last.cause, CAUSE_USER_CODE);
    recur_judge(NULL, 0, "n7", &last);
    assert_int_equal(last.cause, CAUSE_USER_CODE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_fails_under_every_rank_is_named),
        cmocka_unit_test(the_same_rank_each_time_is_the_programs),
        cmocka_unit_test(other_nodes_acquit_it),
        cmocka_unit_test(an_error_that_explains_itself_needs_no_such_argument),
        cmocka_unit_test(two_attempts_prove_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
