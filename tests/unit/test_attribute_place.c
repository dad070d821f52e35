/* SPDX-License-Identifier: Apache-2.0 */

/* Blame by place: when all that tells of a shared fault comes from one of
 * several nodes. */

#include "attribute_world.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Ranks 0 to 3 on n1, 4 to 7 on n2, at work. */
static void two_nodes_at_work(struct story *s)
{
    for (int32_t r = 0; r < 8; r++) {
        struct signal x = make(s, SIGNAL_OUTPUT, "", ROLE_NOISE);

        x.who.rank = r;
        STR_COPY(x.who.node, r < 4 ? "n1" : "n2");
        evidence_add(s->e, &x);
    }
    steps(s, 1, 50, USEC_PER_SEC);
}

static struct signal stale(struct story *s, int32_t rank)
{
    struct signal x = hit(s, "storage.stale", ROLE_ROOT, CAUSE_STORAGE, 85);

    x.who.rank = rank;
    return x;
}

static void fails(struct story *s, int32_t rank)
{
    struct signal x = stale(s, rank);

    evidence_add(s->e, &x);
}

static void kernel_says(struct story *s, const char *id, const char *node)
{
    struct signal x = hit(s, id, ROLE_SYMPTOM, CAUSE_STORAGE, 60);

    x.layer = LAYER_KERNEL;
    x.file = 1;
    STR_COPY(x.who.node, node);
    evidence_add(s->e, &x);
}

static void assert_blamed(struct story *s, const char *node)
{
    const struct incident *in = judge(s);

    assert_int_equal(in->cause, CAUSE_STORAGE);
    assert_int_equal(in->culprits.n_nodes, node != NULL);
    assert_int_equal(in->culprits.n_ranks, 0);
    if (node)
        assert_string_equal(in->culprits.nodes[0], node);
    assert_int_equal(in->advice, node ? ADVICE_RESTART_EXCLUDING : ADVICE_RESTART);
}

static void test_two_ranks_of_one_node_convict_it(void **state)
{
    two_nodes_at_work(*state);
    fails(*state, 4);
    fails(*state, 6);
    assert_blamed(*state, "n2");
}

static void test_one_rank_may_only_have_been_the_first(void **state)
{
    two_nodes_at_work(*state);
    fails(*state, 4);
    assert_blamed(*state, NULL);
}

static void test_one_rank_that_says_it_twice_is_one_witness(void **state)
{
    two_nodes_at_work(*state);
    fails(*state, 4);
    fails(*state, 4);
    assert_blamed(*state, NULL);
}

static void test_a_rank_and_the_kernel_of_its_node_convict_it(void **state)
{
    two_nodes_at_work(*state);
    fails(*state, 4);
    kernel_says(*state, "storage.nfs_silent", "n2");
    assert_blamed(*state, "n2");
}

static void test_ranks_of_two_nodes_convict_none(void **state)
{
    two_nodes_at_work(*state);
    fails(*state, 4);
    fails(*state, 6);
    fails(*state, 0);
    assert_blamed(*state, NULL);
}

static void test_the_kernel_of_another_node_acquits(void **state)
{
    two_nodes_at_work(*state);
    fails(*state, 4);
    fails(*state, 6);
    kernel_says(*state, "storage.nfs_silent", "n1");
    assert_blamed(*state, NULL);
}

static void test_a_rank_of_which_nobody_knows_the_node_acquits(void **state)
{
    two_nodes_at_work(*state);
    fails(*state, 4);
    fails(*state, 6);
    fails(*state, 17);
    assert_blamed(*state, NULL);
}

static void test_a_job_on_one_node_has_none_to_keep_out(void **state)
{
    struct story *s = *state;

    for (int32_t r = 0; r < 2; r++) {
        struct signal x = stale(s, r);

        STR_COPY(x.who.node, "n1");
        evidence_add(s->e, &x);
    }
    assert_blamed(s, NULL);
}

static void test_what_is_full_is_full_for_everybody(void **state)
{
    struct story *s = *state;

    two_nodes_at_work(s);
    for (int32_t r = 4; r < 6; r++) {
        struct signal x = stale(s, r);

        x.advice = ADVICE_STOP;
        evidence_add(s->e, &x);
    }
    judge(s);
    assert_int_equal(s->in.culprits.n_nodes, 0);
    assert_int_equal(s->in.advice, ADVICE_STOP);
}

static void test_what_came_back_by_itself_is_no_reason_to_keep_a_node_out(void **state)
{
    struct story *s = *state;
    struct signal ok;

    two_nodes_at_work(s);
    kernel_says(s, "storage.nfs_silent", "n2");
    ok = hit(s, "storage.nfs_ok", ROLE_NOISE, CAUSE_NONE, 0);
    ok.layer = LAYER_KERNEL;
    ok.file = 1;
    STR_COPY(ok.clears, "storage.nfs_silent");
    STR_COPY(ok.who.node, "n2");
    evidence_add(s->e, &ok);
    fails(s, 4);
    fails(s, 6);
    assert_blamed(s, NULL);
}

static void test_a_guess_is_no_witness(void **state)
{
    struct story *s = *state;
    struct signal x;

    two_nodes_at_work(s);
    fails(s, 4);
    x = stale(s, 6);
    x.confidence = 20;
    evidence_add(s->e, &x);
    assert_blamed(s, NULL);
}

static void test_errors_of_the_program_are_of_no_place(void **state)
{
    struct story *s = *state;

    two_nodes_at_work(s);
    say(s, "python.value", ROLE_ROOT, CAUSE_USER_CODE, 85, 4);
    say(s, "python.value", ROLE_ROOT, CAUSE_USER_CODE, 85, 6);
    judge(s);
    assert_int_equal(s->in.culprits.n_nodes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_TEST(test_two_ranks_of_one_node_convict_it),
        STORY_TEST(test_one_rank_may_only_have_been_the_first),
        STORY_TEST(test_one_rank_that_says_it_twice_is_one_witness),
        STORY_TEST(test_a_rank_and_the_kernel_of_its_node_convict_it),
        STORY_TEST(test_ranks_of_two_nodes_convict_none),
        STORY_TEST(test_the_kernel_of_another_node_acquits),
        STORY_TEST(test_a_rank_of_which_nobody_knows_the_node_acquits),
        STORY_TEST(test_a_job_on_one_node_has_none_to_keep_out),
        STORY_TEST(test_what_is_full_is_full_for_everybody),
        STORY_TEST(test_what_came_back_by_itself_is_no_reason_to_keep_a_node_out),
        STORY_TEST(test_a_guess_is_no_witness),
        STORY_TEST(test_errors_of_the_program_are_of_no_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
