/* SPDX-License-Identifier: Apache-2.0 */

/* Who is blamed for a failure, and who is not: ranks, nodes, devices. */

#include "attribute_world.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>

#include <cmocka.h>

/* Nobody else is to blame. */
static void check_node(const struct story *s, const char *node)
{
    assert_int_equal(s->in.culprits.n_nodes, 1);
    assert_string_equal(s->in.culprits.nodes[0], node);
}

static void test_concurrent_hardware_explains_an_exception(void **state)
{
    struct story *s = *state;
    struct signal x;

    steps(s, 1, 50, USEC_PER_SEC);
    say(s, "python.value", ROLE_ROOT, CAUSE_USER_CODE, 70, 3);
    s->now += USEC_PER_SEC;
    x = hit(s, "gpu.xid.48", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95);
    x.layer = LAYER_KERNEL;
    STR_COPY(x.who.device, "0000:c1:00");
    STR_COPY(x.who.node, "n9");
    evidence_add(s->e, &x);
    judge(s);
    assert_int_equal(s->in.cause, CAUSE_GPU_HARDWARE);
    assert_string_equal(s->in.culprits.nodes[0], "n9");
    assert_string_equal(s->in.culprits.devices[0], "0000:c1:00");
    assert_int_equal(s->in.advice, ADVICE_RESTART_EXCLUDING);
}

static void test_who_tells_of_a_lost_node_is_not_it(void **state)
{
    struct story *s = *state;
    struct signal x = hit(s, "slurm.node_fail", ROLE_ROOT, CAUSE_NODE_FAILURE, 96);

    x.blame = BLAME_NODE;
    STR_COPY(x.who.node, "n12");
    evidence_add(s->e, &x);
    x = hit(s, "slurm.node_fail_elsewhere", ROLE_ROOT, CAUSE_NODE_FAILURE, 95);
    STR_COPY(x.who.node, "n11");
    evidence_add(s->e, &x);
    judge(s);
    check_node(s, "n12");
}

static void test_hardware_without_a_name_cannot_be_excluded(void **state)
{
    say(*state, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95, RANK_NONE);
    assert_int_equal(judge(*state)->advice, ADVICE_RESTART);
}

static const struct culprits *judge_on(struct story *s, const char *node)
{
    attribute_on_node(s->e, ENDING_EXITED, node, &s->in);
    return &s->in.culprits;
}

/* A batch script without srun: neither a launcher nor the scheduler says where its lines are from,
 * but there was no other place. */
static void test_hardware_without_a_name_is_that_of_the_only_node(void **state)
{
    struct story *s = *state;

    say(s, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95, RANK_NONE);
    judge_on(s, "n3");
    check_node(s, "n3");
    assert_int_equal(s->in.advice, ADVICE_RESTART_EXCLUDING);
    assert_int_equal(judge_on(s, "")->n_nodes, 0);
    assert_int_equal(s->in.advice, ADVICE_RESTART);
}

static void test_a_rank_is_on_the_only_node(void **state)
{
    struct story *s = *state;

    say(s, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95, 5);
    assert_int_equal(judge_on(s, "n3")->n_nodes, 1);
    assert_int_equal(s->in.culprits.ranks[0], 5);
}

static void test_whose_name_is_told_is_not_the_only_node(void **state)
{
    struct story *s = *state;
    struct signal x = hit(s, "gpu.xid.79", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95);

    STR_COPY(x.who.node, "n9");
    evidence_add(s->e, &x);
    judge_on(s, "n3");
    check_node(s, "n9"); /* core says that it did not run there */
}

static void test_a_suspicion_does_not_blame_the_only_node(void **state)
{
    struct story *s = *state;

    say(s, "cuda.launch_failure", ROLE_SYMPTOM, CAUSE_GPU_HARDWARE, 50, RANK_NONE);
    assert_int_equal(judge_on(s, "n3")->n_nodes, 0);
}

static void test_the_faults_of_a_job_do_not_blame_its_only_node(void **state)
{
    static const enum cause own[] = {CAUSE_USER_CODE, CAUSE_USER_CONFIG, CAUSE_NUMERICAL,
                                     CAUSE_GPU_OOM,   CAUSE_STORAGE,     CAUSE_NETWORK};

    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        say(*state, "x.error", ROLE_ROOT, own[i], 95, RANK_NONE);
        assert_int_equal(judge_on(*state, "n3")->n_nodes, 0);
        story_teardown(state);
        story_setup(state);
    }
}

/* What else runs there holds the memory that the job should have. */
static void test_the_only_node_is_occupied(void **state)
{
    struct story *s = *state;
    struct signal x = hit(s, "cuda.oom_others", ROLE_ROOT, CAUSE_GPU_OOM, 90);

    x.blame = BLAME_NODE;
    evidence_add(s->e, &x);
    assert_int_equal(judge_on(s, "n3")->n_nodes, 1);
}

/* Who writes that a node is gone is not on it. */
static void test_text_of_a_lost_node_is_not_of_the_only_one(void **state)
{
    struct story *s = *state;
    struct signal x = hit(s, "slurm.node_fail", ROLE_ROOT, CAUSE_NODE_FAILURE, 96);

    x.blame = BLAME_NODE;
    x.provenance = PROVENANCE_JOB_TEXT;
    evidence_add(s->e, &x);
    assert_int_equal(judge_on(s, "n3")->n_nodes, 0);
    x.provenance = PROVENANCE_SCHEDULER;
    STR_COPY(x.signature, "scheduler.node_fail");
    evidence_add(s->e, &x);
    assert_int_equal(judge_on(s, "n3")->n_nodes, 1);
}

static void test_the_same_error_on_all_ranks_blames_none(void **state)
{
    struct story *s = *state;

    for (int32_t r = 0; r < 8; r++)
        say(s, "python.import", ROLE_ROOT, CAUSE_USER_CODE, 85, r);
    judge(s);
    assert_int_equal(s->in.class, CLASS_CRASH);
    assert_int_equal(s->in.culprits.n_ranks, 0);
}

static void test_a_program_error_says_which_rank_printed_it(void **state)
{
    struct story *s = *state;

    steps(s, 1, 20, USEC_PER_SEC);
    say(s, "cuda.oom", ROLE_ROOT, CAUSE_GPU_OOM, 90, 2);
    say(s, "pt.closed", ROLE_CASCADE, CAUSE_NETWORK, 10, 0);
    assert_non_null(strstr(judge(s)->summary, "rank 2"));
    say(s, "cuda.oom", ROLE_ROOT, CAUSE_GPU_OOM, 90, 5);
    assert_null(strstr(judge(s)->summary, "rank"));
}

static void test_victims_alone_are_an_unknown_crash_without_culprit(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    say(s, "nccl.recv", ROLE_CASCADE, CAUSE_NETWORK, 40, 9);
    judge(s);
    assert_int_equal(s->in.class, CLASS_CRASH);
    assert_int_equal(s->in.cause, CAUSE_UNKNOWN);
    assert_int_equal(s->in.advice, ADVICE_RESTART);
    assert_int_equal(s->in.culprits.n_ranks, 0);
    assert_int_equal(s->in.culprits.n_nodes, 0);
}

static void vote(struct story *s, const char *node, int32_t rank, const char *peer)
{
    struct signal x = hit(s, "nccl.recv", ROLE_CASCADE, CAUSE_NETWORK, 40);

    x.blame = BLAME_PEER;
    x.who.rank = rank;
    STR_COPY(x.who.node, node);
    STR_COPY(x.who.peer, peer);
    evidence_add(s->e, &x);
}

static void test_two_reporters_on_different_nodes_convict_a_peer(void **state)
{
    struct story *s = *state;

    vote(s, "n1", 1, "n7<4000>");
    vote(s, "n1", 2, "n7<4001>");
    judge(s);
    assert_int_equal(s->in.culprits.n_nodes, 0);
    vote(s, "n2", 9, "n7<4002>");
    judge(s);
    assert_int_equal(s->in.cause, CAUSE_NETWORK);
    check_node(s, "n7");
    assert_int_equal(s->in.advice, ADVICE_RESTART_EXCLUDING);
}

static void test_peers_named_nearly_as_often_convict_none(void **state)
{
    struct story *s = *state;

    vote(s, "n1", 1, "n7<4000>");
    vote(s, "n2", 9, "n7<4001>");
    vote(s, "n3", 17, "n7<4002>");
    vote(s, "n4", 25, "n8<4000>");
    vote(s, "n5", 33, "n8<4001>");
    assert_int_equal(judge(s)->culprits.n_nodes, 0);
    vote(s, "n6", 41, "n7<4003>");
    judge(s);
    check_node(s, "n7");
}

static void test_a_voted_address_is_given_its_node(void **state)
{
    struct story *s = *state;
    struct signal x = hit(s, "nccl.bootstrap", ROLE_NOISE, CAUSE_NONE, 0);

    STR_COPY(x.who.node, "n7");
    STR_COPY(x.who.address, "10.0.0.7");
    evidence_add(s->e, &x);
    vote(s, "n1", 1, "10.0.0.7<4000>");
    vote(s, "n2", 9, "10.0.0.7<4002>");
    judge(s);
    check_node(s, "n7");
}

static void test_hearsay_names_nobody_where_connections_broke(void **state)
{
    struct story *s = *state;
    struct signal x = hit(s, "mpi.first", ROLE_SYMPTOM, CAUSE_UNKNOWN, 55);

    x.blame = BLAME_RANK;
    x.who.rank = 4;
    evidence_add(s->e, &x);
    judge(s);
    assert_int_equal(s->in.class, CLASS_HEALTHY); /* one such line alone proves no end */
    say(s, "python.traceback", ROLE_CONFIRM, CAUSE_UNKNOWN, 20, 4);
    judge(s);
    assert_int_equal(s->in.culprits.n_ranks, 1);
    say(s, "nccl.recv", ROLE_CASCADE, CAUSE_NETWORK, 40, 12);
    judge(s);
    assert_int_equal(s->in.class, CLASS_CRASH);
    assert_int_equal(s->in.culprits.n_ranks, 0);
}

static void test_soft_faults_again_and_again_convict_the_device(void **state)
{
    struct story *s = *state;

    for (int i = 0; i < 4; i++) {
        struct signal x = hit(s, "gpu.xid.31", ROLE_SYMPTOM, CAUSE_USER_CODE, 45);

        x.layer = LAYER_KERNEL;
        STR_COPY(x.who.device, "0000:61:00");
        evidence_add(s->e, &x);
        assert_int_equal(judge(s)->culprits.n_devices, i >= 2 ? 1 : 0);
        s->now += USEC_PER_HOUR;
    }
    assert_int_equal(s->in.cause, CAUSE_GPU_HARDWARE);
}

/* A task is killed; the plugin tells of it, and srun, later. */
static void task_is_killed(struct story *s)
{
    struct signal x = make(s, SIGNAL_EXIT, "", ROLE_ROOT);

    steps(s, 1, 10, USEC_PER_SEC);
    x.provenance = PROVENANCE_SPANK;
    STR_COPY(x.who.tasks, "1");
    STR_COPY(x.who.node, "n2");
    x.exit = (struct exit_fact){.pid = 9, .code = -1, .signal = SIGKILL};
    evidence_add(s->e, &x);
    x = hit(s, "srun.killed", ROLE_SYMPTOM, CAUSE_UNKNOWN, 50);
    x.layer = LAYER_SCHEDULER;
    x.who.rank = 1;
    evidence_add(s->e, &x);
}

static void test_a_witness_is_quoted_before_srun(void **state)
{
    struct story *s = *state;

    task_is_killed(s);
    assert_non_null(
        strstr(judge(s)->summary, "task 1 on n2 was the first to end, killed by SIGKILL"));
    assert_null(strstr(s->in.summary, "srun.killed"));
}

static void test_what_explains_a_death_is_quoted_before_its_witness(void **state)
{
    struct story *s = *state;

    say(s, "python.error", ROLE_ROOT, CAUSE_USER_CODE, 90, 1);
    task_is_killed(s);
    say(s, "python.error", ROLE_ROOT, CAUSE_USER_CODE, 90, 1);
    assert_non_null(strstr(judge(s)->summary, "python.error"));
    assert_null(strstr(s->in.summary, "was the first to end"));
}

static void test_a_witness_is_quoted_before_the_wailing(void **state)
{
    struct story *s = *state;

    task_is_killed(s);
    say(s, "pt.gloo_closed", ROLE_CASCADE, CAUSE_NETWORK, 30, 0);
    assert_non_null(strstr(judge(s)->summary, "task 1 on n2 was the first to end"));
}

/* Tasks and ranks: one launcher a node, of two nodes with four ranks each. */

static void lay_out(struct story *s, const char *node, const char *tasks, int64_t all)
{
    struct signal x = signal_make(SIGNAL_LAYOUT, PROVENANCE_SCHEDULER);

    STR_COPY(x.who.node, node);
    STR_COPY(x.who.tasks, tasks);
    x.layout = (struct layout_fact){.tasks = all};
    evidence_add(s->e, &x);
}

static void task_ends(struct story *s, const char *node, const char *task, int32_t code)
{
    struct signal x = make(s, SIGNAL_EXIT, "", ROLE_CONFIRM);

    x.provenance = PROVENANCE_SPANK;
    STR_COPY(x.who.tasks, task);
    STR_COPY(x.who.node, node);
    x.exit = (struct exit_fact){.pid = 9, .code = code};
    evidence_add(s->e, &x);
    s->now += USEC_PER_SEC;
}

static void hardware_error(struct story *s, int32_t rank, uint32_t label)
{
    struct signal x = hit(s, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95);

    x.who.rank = rank;
    x.who.label = label;
    evidence_add(s->e, &x);
    say(s, "pt.gloo_closed", ROLE_CASCADE, CAUSE_NETWORK, 30, 6);
}

static void test_a_launchers_task_is_no_rank(void **state)
{
    struct story *s = *state;

    steps(s, 1, 10, USEC_PER_SEC);
    lay_out(s, "n1", "0", 2);
    lay_out(s, "n2", "1", 2);
    hardware_error(s, 1, 0); /* of node n1, whose launcher ends first */
    task_ends(s, "n1", "0", 1);
    task_ends(s, "n2", "1", 1);
    judge(s);
    assert_int_equal(s->in.culprits.n_nodes, 0); /* and not n2, where task 1 is */
    assert_int_equal(s->in.culprits.n_ranks, 1);
    assert_int_equal(s->in.culprits.ranks[0], 1);
}

static void test_no_rank_died_where_launchers_did(void **state)
{
    struct story *s = *state;

    steps(s, 1, 10, USEC_PER_SEC);
    say(s, "some.noise", ROLE_NOISE, CAUSE_UNKNOWN, 1, 7);
    say(s, "pt.gloo_closed", ROLE_CASCADE, CAUSE_UNKNOWN, 1, 7);
    lay_out(s, "n1", "0", 2);
    lay_out(s, "n2", "1", 2);
    task_ends(s, "n2", "1", 1);
    judge(s);
    assert_int_equal(s->in.culprits.n_ranks, 0);
}

static void test_a_label_says_whose_task_a_rank_is_in(void **state)
{
    struct story *s = *state;

    steps(s, 1, 10, USEC_PER_SEC);
    hardware_error(s, 5, 1 + 1); /* "1: [rank5]: ..." */
    lay_out(s, "n1", "0", 2);    /* told later than the line */
    lay_out(s, "n2", "1", 2);
    judge(s);
    check_node(s, "n2");
}

static void test_the_layout_says_where_ranks_are(void **state)
{
    struct story *s = *state;

    steps(s, 1, 10, USEC_PER_SEC);
    lay_out(s, "n1", "0-3", 8);
    lay_out(s, "n2", "4-7", 8);
    hardware_error(s, 5, 0);
    judge(s);
    check_node(s, "n2");
}

static void test_another_step_has_another_layout(void **state)
{
    struct story *s = *state;
    struct signal x = signal_make(SIGNAL_LAYOUT, PROVENANCE_SCHEDULER);

    lay_out(s, "n1", "0-3", 8);
    lay_out(s, "n2", "4-7", 8);
    STR_COPY(x.who.node, "n2");
    STR_COPY(x.who.tasks, "0-3");
    x.layout = (struct layout_fact){.step = 1, .tasks = 8};
    evidence_add(s->e, &x);
    steps(s, 1, 10, USEC_PER_SEC);
    hardware_error(s, 2, 0);
    judge(s);
    assert_string_equal(s->in.culprits.nodes[0], "n2");
}

/* Of some tasks alone, it cannot be said whether they are ranks: unless the one that spoke is the
 * one that died first. */
static void test_who_died_first_was_where_it_died(void **state)
{
    struct story *s = *state;

    steps(s, 1, 10, USEC_PER_SEC);
    lay_out(s, "n1", "0", 8);
    lay_out(s, "n3", "2", 8);
    hardware_error(s, 2, 0);
    assert_int_equal(judge(s)->culprits.n_nodes, 0);
    task_ends(s, "n3", "2", 1);
    task_ends(s, "n1", "0", 1);
    judge(s);
    check_node(s, "n3");
}

/* Two ranks, one a node: what is the matter with the second is not said yet. */
static void rank_of_n4_raises(struct story *s)
{
    struct signal x;

    steps(s, 1, 10, USEC_PER_SEC);
    lay_out(s, "n3", "0", 2);
    lay_out(s, "n4", "1", 2);
    say(s, "pt.gloo_closed", ROLE_CASCADE, CAUSE_UNKNOWN, 25, 0);
    x = hit(s, "python.traceback", ROLE_CONFIRM, CAUSE_UNKNOWN, 20);
    x.who.rank = 1;
    x.blame = BLAME_RANK;
    evidence_add(s->e, &x);
}

static void it_was_ecc_of_n4(struct story *s)
{
    say(s, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95, 1);
    judge(s);
    check_node(s, "n4");
}

/* Ranks and srun write into one file, in any order. */
static void test_what_srun_says_between_the_lines_of_a_rank_is_not_of_that_rank(void **state)
{
    struct story *s = *state;
    struct signal x;

    rank_of_n4_raises(s);
    x = make(s, SIGNAL_EXIT, "slurm.task_exit", ROLE_CONFIRM);
    x.layer = LAYER_SCHEDULER;
    STR_COPY(x.who.node, "n3");
    STR_COPY(x.who.tasks, "0");
    x.exit.code = 1;
    evidence_add(s->e, &x);
    it_was_ecc_of_n4(s);
}

/* "  host      : n3" begins the block of another launcher. */
static void test_what_a_launcher_says_behind_a_traceback_is_not_of_its_rank(void **state)
{
    struct story *s = *state;
    struct signal x;

    rank_of_n4_raises(s);
    x = hit(s, "torchrun.host", ROLE_CONFIRM, CAUSE_UNKNOWN, 30);
    STR_COPY(x.who.node, "n3");
    evidence_add(s->e, &x);
    it_was_ecc_of_n4(s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        STORY_TEST(test_concurrent_hardware_explains_an_exception),
        STORY_TEST(test_who_tells_of_a_lost_node_is_not_it),
        STORY_TEST(test_a_witness_is_quoted_before_srun),
        STORY_TEST(test_what_explains_a_death_is_quoted_before_its_witness),
        STORY_TEST(test_hardware_without_a_name_cannot_be_excluded),
        STORY_TEST(test_hardware_without_a_name_is_that_of_the_only_node),
        STORY_TEST(test_a_rank_is_on_the_only_node),
        STORY_TEST(test_whose_name_is_told_is_not_the_only_node),
        STORY_TEST(test_a_suspicion_does_not_blame_the_only_node),
        STORY_TEST(test_the_faults_of_a_job_do_not_blame_its_only_node),
        STORY_TEST(test_the_only_node_is_occupied),
        STORY_TEST(test_text_of_a_lost_node_is_not_of_the_only_one),
        STORY_TEST(test_the_same_error_on_all_ranks_blames_none),
        STORY_TEST(test_a_program_error_says_which_rank_printed_it),
        STORY_TEST(test_victims_alone_are_an_unknown_crash_without_culprit),
        STORY_TEST(test_two_reporters_on_different_nodes_convict_a_peer),
        STORY_TEST(test_peers_named_nearly_as_often_convict_none),
        STORY_TEST(test_a_voted_address_is_given_its_node),
        STORY_TEST(test_hearsay_names_nobody_where_connections_broke),
        STORY_TEST(test_soft_faults_again_and_again_convict_the_device),
        STORY_TEST(test_a_witness_is_quoted_before_the_wailing),
        STORY_TEST(test_a_launchers_task_is_no_rank),
        STORY_TEST(test_no_rank_died_where_launchers_did),
        STORY_TEST(test_a_label_says_whose_task_a_rank_is_in),
        STORY_TEST(test_the_layout_says_where_ranks_are),
        STORY_TEST(test_another_step_has_another_layout),
        STORY_TEST(test_who_died_first_was_where_it_died),
        STORY_TEST(test_what_srun_says_between_the_lines_of_a_rank_is_not_of_that_rank),
        STORY_TEST(test_what_a_launcher_says_behind_a_traceback_is_not_of_its_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
