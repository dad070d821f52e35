/* SPDX-License-Identifier: Apache-2.0 */

/* Judgement on hand-made signals: one job's story a test, told as the scanner would tell it. */

#include "base/alloc.h"
#include "base/str.h"
#include "core/attribute/attribute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define T0 ((usec_t)1700000000 * USEC_PER_SEC)

struct story {
    struct evidence *e;
    uint64_t line;
    usec_t now;
    struct incident in;
};

static int begin(void **state)
{
    struct story *s = xnew(struct story);

    s->e = evidence_new();
    s->now = T0;
    *state = s;
    return 0;
}

static int end(void **state)
{
    struct story *s = *state;

    evidence_free(s->e);
    free(s);
    return 0;
}

static struct signal make(struct story *s, enum signal_kind kind, const char *id, enum role role)
{
    struct signal x = signal_make(kind, PROVENANCE_JOB_TEXT);

    x.role = role;
    x.line = ++s->line;
    x.time_us = s->now;
    STR_COPY(x.signature, id);
    STR_COPY(x.text, id);
    return x;
}

static void steps(struct story *s, int64_t from, int64_t to, usec_t each)
{
    for (int64_t i = from; i <= to; i++) {
        struct signal x;

        s->now += each;
        x = make(s, SIGNAL_STEP, "step", ROLE_PROGRESS);
        x.step.step = i;
        x.step.duration = each;
        evidence_add(s->e, &x);
    }
}

static struct signal hit(struct story *s, const char *id, enum role role, enum cause cause,
                         int32_t confidence)
{
    struct signal x = make(s, SIGNAL_HIT, id, role);

    x.cause = cause;
    x.confidence = confidence;
    return x;
}

static void say(struct story *s, const char *id, enum role role, enum cause cause,
                int32_t confidence, int32_t rank)
{
    struct signal x = hit(s, id, role, cause, confidence);

    x.who.rank = rank;
    evidence_add(s->e, &x);
}

static void wait_in(struct story *s, int32_t rank, const char *op, int64_t seq, int64_t enqueued)
{
    struct signal x = make(s, SIGNAL_COLLECTIVE, "watchdog", ROLE_SYMPTOM);

    x.who.rank = rank;
    x.collective.seq = seq;
    x.collective.enqueued = enqueued;
    STR_COPY(x.collective.op, op);
    evidence_add(s->e, &x);
}

static const struct incident *judge(struct story *s)
{
    attribute(s->e, ENDING_UNKNOWN, &s->in);
    return &s->in;
}

static void test_empty_is_healthy(void **state)
{
    const struct incident *in = judge(*state);

    assert_int_equal(in->class, CLASS_HEALTHY);
    assert_int_equal(in->cause, CAUSE_NONE);
    assert_int_equal(in->advice, ADVICE_NONE);
    assert_non_null(strstr(in->summary, "Nothing to judge"));
}

static void test_steps_alone_are_healthy(void **state)
{
    const struct incident *in;

    steps(*state, 1, 200, USEC_PER_SEC);
    in = judge(*state);
    assert_int_equal(in->class, CLASS_HEALTHY);
    assert_int_equal(in->progress.first_step, 1);
    assert_int_equal(in->progress.last_step, 200);
    assert_int_equal(in->progress.median_step, USEC_PER_SEC);
}

static void test_root_that_was_survived_is_no_incident(void **state)
{
    steps(*state, 1, 50, USEC_PER_SEC);
    say(*state, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95, 3);
    steps(*state, 51, 60, USEC_PER_SEC);
    assert_int_equal(judge(*state)->class, CLASS_HEALTHY);
}

static void test_other_ranks_printing_the_same_step_is_no_progress(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    say(s, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95, 3);
    steps(s, 49, 50, 0);
    assert_int_equal(judge(s)->class, CLASS_CRASH);
    assert_int_equal(s->in.cause, CAUSE_GPU_HARDWARE);
}

static void test_late_step_is_forgiven_when_the_launcher_tells_a_failure(void **state)
{
    struct story *s = *state;
    struct signal x;

    steps(s, 1, 50, USEC_PER_SEC);
    say(s, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95, 3);
    steps(s, 51, 51, USEC_PER_SEC);
    x = make(s, SIGNAL_EXIT, "torchrun.exit", ROLE_CONFIRM);
    x.exit.code = 1;
    evidence_add(s->e, &x);
    assert_int_equal(judge(s)->cause, CAUSE_GPU_HARDWARE);
}

/* How sure a line is of the cause says nothing about whether anything failed. */
static void test_raised_exception_of_uncertain_cause_is_a_crash(void **state)
{
    struct story *s = *state;
    struct signal x;

    steps(s, 1, 50, USEC_PER_SEC);
    say(s, "cuda.launch", ROLE_SYMPTOM, CAUSE_USER_CODE, 40, 3);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
    x = hit(s, "cuda.launch", ROLE_SYMPTOM, CAUSE_USER_CODE, 40);
    x.raised = true;
    x.who.rank = 5;
    evidence_add(s->e, &x);
    assert_int_equal(judge(s)->class, CLASS_CRASH);
    assert_int_equal(s->in.cause, CAUSE_USER_CODE);
    steps(s, 51, 60, USEC_PER_SEC);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
}

static void test_exception_behind_the_last_step_is_clearing_up(void **state)
{
    struct story *s = *state;
    struct signal x;

    steps(s, 1, 50, USEC_PER_SEC);
    x = make(s, SIGNAL_HIT, "done", ROLE_FINISH);
    evidence_add(s->e, &x);
    x = hit(s, "net.reset", ROLE_SYMPTOM, CAUSE_NETWORK, 40);
    x.raised = true;
    evidence_add(s->e, &x);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
}

static void test_first_error_wins_over_the_loud_ones(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    say(s, "python.name", ROLE_ROOT, CAUSE_USER_CODE, 80, 5);
    s->now += 30 * USEC_PER_SEC;
    for (int32_t r = 0; r < 200; r++)
        say(s, "nccl.remote", ROLE_CASCADE, CAUSE_NETWORK, 40, r);
    s->now += 30 * USEC_PER_SEC;
    say(s, "cuda.driver", ROLE_ROOT, CAUSE_NODE_HARDWARE, 80, 7);
    judge(s);
    assert_int_equal(s->in.class, CLASS_CRASH);
    assert_int_equal(s->in.cause, CAUSE_USER_CODE);
    assert_int_equal(s->in.advice, ADVICE_STOP);
    assert_int_equal(s->in.culprits.n_ranks, 1);
    assert_int_equal(s->in.culprits.ranks[0], 5);
    assert_string_equal(s->in.evidence[0].signature, "python.name");
}

static void say_at(struct story *s, const char *id, uint32_t file, usec_t at)
{
    struct signal x = hit(s, id, ROLE_ROOT, CAUSE_USER_CODE, 90);

    x.file = file;
    x.time_us = at;
    evidence_add(s->e, &x);
}

static void test_lines_with_and_without_clocks_have_one_order(void **state)
{
    struct story *s = *state;

    say_at(s, "late", 0, T0 + 10 * USEC_PER_MIN);
    say_at(s, "timeless", 1, USEC_UNKNOWN);
    say_at(s, "early", 2, T0 + 5 * USEC_PER_MIN);
    assert_string_equal(judge(s)->signature, "early");
    say_at(s, "first", 3, T0);
    assert_string_equal(judge(s)->signature, "first");
}

static void test_lines_before_any_clock_come_first(void **state)
{
    struct story *s = *state;

    say_at(s, "timeless", 1, USEC_UNKNOWN);
    say_at(s, "late", 0, T0 + 10 * USEC_PER_MIN);
    assert_string_equal(judge(s)->signature, "timeless");
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

static void say_server(struct story *s, const char *id, const char *clears, const char *peer)
{
    struct signal x = hit(s, id, *clears ? ROLE_NOISE : ROLE_SYMPTOM, CAUSE_STORAGE, 70);

    x.layer = LAYER_KERNEL;
    STR_COPY(x.clears, clears);
    STR_COPY(x.who.peer, peer);
    evidence_add(s->e, &x);
}

static void test_a_server_that_answers_again_is_no_evidence(void **state)
{
    say_server(*state, "storage.nfs_silent", "", "10.0.0.5");
    assert_int_equal(judge(*state)->class, CLASS_CRASH);
    say_server(*state, "storage.nfs_back", "storage.nfs_silent", "10.0.0.9");
    assert_int_equal(judge(*state)->class, CLASS_CRASH);
    say_server(*state, "storage.nfs_back", "storage.*", "10.0.0.5");
    assert_int_equal(judge(*state)->class, CLASS_HEALTHY);
    say_server(*state, "storage.nfs_silent", "", "10.0.0.5");
    assert_int_equal(judge(*state)->class, CLASS_CRASH);
}

static void test_a_line_of_passing_waits_is_a_wait_when_it_comes_again_and_again(void **state)
{
    struct story *s = *state;
    struct signal x = hit(s, "no_room_yet", ROLE_SYMPTOM, CAUSE_USER_CONFIG, 25);

    x.hang = true;
    for (int i = 0; i < 7; i++) {
        x.line = ++s->line;
        evidence_add(s->e, &x);
        assert_int_equal(judge(s)->class, CLASS_HEALTHY);
    }
    x.line = ++s->line;
    evidence_add(s->e, &x);
    assert_int_equal(judge(s)->class, CLASS_HANG);
    assert_int_equal(s->in.advice, ADVICE_STOP);
    steps(s, 1, 3, USEC_PER_SEC);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
}

static void test_only_what_is_over_is_forgotten(void **state)
{
    struct story *s = *state;
    struct signal x = hit(s, "storage.back", ROLE_NOISE, CAUSE_NONE, 0);

    for (int32_t rank = 0; rank < 6; rank++) {
        struct signal y = hit(s, rank % 2 ? "disk.slow" : "storage.gone", ROLE_ROOT, CAUSE_STORAGE,
                              rank % 2 ? 80 : 90);

        y.layer = LAYER_KERNEL;
        y.who.rank = rank;
        evidence_add(s->e, &y);
    }
    STR_COPY(x.clears, "storage.gone");
    x.file = 1; /* another node's log: its server is another one */
    evidence_add(s->e, &x);
    assert_string_equal(judge(s)->signature, "storage.gone");
    x.file = 0;
    evidence_add(s->e, &x);
    judge(s);
    assert_string_equal(s->in.signature, "disk.slow");
    for (uint32_t i = 0; i < s->in.n_evidence; i++)
        assert_string_equal(s->in.evidence[i].signature, "disk.slow");
    for (int32_t rank = 1; rank < 6; rank += 2) { /* those that stay are found again, not doubled */
        struct signal y = hit(s, "disk.slow", ROLE_ROOT, CAUSE_STORAGE, 80);

        y.layer = LAYER_KERNEL;
        y.who.rank = rank;
        evidence_add(s->e, &y);
    }
    STR_COPY(x.clears, "*");
    evidence_add(s->e, &x);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
}

static void test_hardware_without_a_name_cannot_be_excluded(void **state)
{
    say(*state, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95, RANK_NONE);
    assert_int_equal(judge(*state)->advice, ADVICE_RESTART);
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
    assert_int_equal(s->in.culprits.n_nodes, 1);
    assert_string_equal(s->in.culprits.nodes[0], "n7");
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
    assert_int_equal(s->in.culprits.n_nodes, 1);
    assert_string_equal(s->in.culprits.nodes[0], "n7");
}

static void test_more_than_a_quarter_behind_is_no_minority(void **state)
{
    struct story *s = *state;

    for (int32_t r = 0; r < 8; r++)
        wait_in(s, r, "ALLREDUCE", r < 3 ? 99 : 100, r < 3 ? 99 : 100);
    judge(s);
    assert_int_equal(s->in.class, CLASS_HANG);
    assert_int_equal(s->in.culprits.n_ranks, 0);
}

static void test_ranks_at_the_same_place_blame_none(void **state)
{
    struct story *s = *state;

    for (int32_t r = 0; r < 8; r++)
        wait_in(s, r, "ALLREDUCE", 100, 102);
    judge(s);
    assert_int_equal(s->in.class, CLASS_HANG);
    assert_int_equal(s->in.cause, CAUSE_UNKNOWN);
    assert_int_equal(s->in.culprits.n_ranks, 0);
}

static void test_another_operation_at_the_same_number_is_a_desync(void **state)
{
    struct story *s = *state;

    for (int32_t r = 0; r < 32; r++)
        wait_in(s, r, r == 21 ? "BROADCAST" : "ALLREDUCE", 100, 100);
    judge(s);
    assert_int_equal(s->in.class, CLASS_HANG);
    assert_int_equal(s->in.cause, CAUSE_USER_CODE);
    assert_int_equal(s->in.culprits.n_ranks, 1);
    assert_int_equal(s->in.culprits.ranks[0], 21);
    assert_int_equal(s->in.advice, ADVICE_STOP);
}

static void test_the_rank_that_has_not_launched_is_behind(void **state)
{
    struct story *s = *state;

    for (int32_t r = 0; r < 16; r++)
        wait_in(s, r, "ALLREDUCE", r == 4 ? 99 : 100, r == 4 ? 99 : 100);
    judge(s);
    assert_int_equal(s->in.culprits.n_ranks, 1);
    assert_int_equal(s->in.culprits.ranks[0], 4);
}

static void test_a_silent_rank_holds_the_others_up(void **state)
{
    struct story *s = *state;

    for (int32_t r = 0; r < 16; r++)
        say(s, "nccl.init", ROLE_NOISE, CAUSE_NONE, 0, r);
    for (int32_t r = 0; r < 16; r++)
        if (r != 11)
            wait_in(s, r, "ALLREDUCE", 100, 100);
    judge(s);
    assert_int_equal(s->in.class, CLASS_HANG);
    assert_int_equal(s->in.culprits.n_ranks, 1);
    assert_int_equal(s->in.culprits.ranks[0], 11);
}

static void test_a_root_before_the_timeouts_wins(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    say(s, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95, 3);
    s->now += 10 * USEC_PER_MIN;
    for (int32_t r = 0; r < 8; r++)
        if (r != 3)
            wait_in(s, r, "ALLREDUCE", 100, 100);
    judge(s);
    assert_int_equal(s->in.class, CLASS_CRASH);
    assert_int_equal(s->in.cause, CAUSE_GPU_HARDWARE);
}

static void limit(struct story *s)
{
    struct signal x = hit(s, "slurm.timelimit", ROLE_ROOT, CAUSE_TIME_LIMIT, 95);

    x.layer = LAYER_SCHEDULER;
    evidence_add(s->e, &x);
}

static void test_time_limit_amid_progress_interrupts(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    s->now += USEC_PER_SEC;
    limit(s);
    say(s, "python.keyboard", ROLE_ROOT, CAUSE_USER_CODE, 70, 2);
    judge(s);
    assert_int_equal(s->in.class, CLASS_INTERRUPTED);
    assert_int_equal(s->in.cause, CAUSE_TIME_LIMIT);
    assert_int_equal(s->in.advice, ADVICE_RESTART);
    assert_int_equal(s->in.culprits.n_ranks, 0);
}

static void test_time_limit_long_after_the_last_step_is_a_hang(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    s->now += 2 * USEC_PER_HOUR + 20 * USEC_PER_MIN;
    limit(s);
    assert_int_equal(judge(s)->class, CLASS_HANG);
}

static void test_time_limit_hours_apart_by_time_zone_interrupts(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    s->now += 7 * USEC_PER_HOUR + USEC_PER_SEC;
    limit(s);
    assert_int_equal(judge(s)->class, CLASS_INTERRUPTED);
}

static void test_time_limit_after_a_root_is_the_root(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    say(s, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95, 3);
    s->now += USEC_PER_HOUR;
    limit(s);
    judge(s);
    assert_int_equal(s->in.class, CLASS_CRASH);
    assert_int_equal(s->in.cause, CAUSE_GPU_HARDWARE);
}

static void test_finished_and_never_exits_is_a_hang(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    say(s, "megatron.done", ROLE_FINISH, CAUSE_NONE, 0, RANK_NONE);
    s->now += 9 * USEC_PER_MIN;
    limit(s);
    judge(s);
    assert_int_equal(s->in.class, CLASS_HANG);
    assert_int_equal(s->in.cause, CAUSE_FRAMEWORK);
    assert_int_equal(s->in.advice, ADVICE_STOP);
    assert_true(s->in.finished);
}

static void test_status_lines_without_steps_are_a_hang(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, 80 * USEC_PER_SEC);
    for (int i = 0; i < 6; i++) {
        struct signal x;

        s->now += USEC_PER_HOUR;
        x = make(s, SIGNAL_OUTPUT, "", ROLE_NOISE);
        evidence_add(s->e, &x);
    }
    assert_int_equal(judge(s)->class, CLASS_HANG);
}

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

static void test_old_kernel_lines_do_not_explain_a_later_end(void **state)
{
    struct story *s = *state;
    struct signal x;

    steps(s, 1, 3000, USEC_PER_SEC);
    x = hit(s, "gpu.xid.79", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95);
    x.layer = LAYER_KERNEL;
    x.file = 1;
    x.time_us = T0;
    evidence_add(s->e, &x);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
    x.time_us = s->now + USEC_PER_SEC;
    evidence_add(s->e, &x);
    assert_int_equal(judge(s)->class, CLASS_CRASH);
}

/* A kernel log whose clock counts from boot, as the second file of the job. */
static void kernel_says(struct story *s, const char *id, enum role role, int32_t confidence,
                        usec_t uptime)
{
    struct signal x = hit(s, id, role, CAUSE_GPU_HARDWARE, confidence);

    x.layer = LAYER_KERNEL;
    x.file = 1;
    x.time_us = uptime;
    x.uptime = true;
    STR_COPY(x.who.device, "0000:61:00");
    evidence_add(s->e, &x);
}

static void assert_said(const struct incident *in, const char *what, const char *why)
{
    for (uint32_t i = 0; i < in->n_ruled_out; i++)
        if (strcmp(in->ruled_out[i].what, what) == 0 && strstr(in->ruled_out[i].why, why))
            return;
    fail_msg("nothing says of %s: %s", what, why);
}

/* Whichever file is read first. */
static void test_a_clock_from_boot_places_nothing_beside_a_date(void **state)
{
    for (int kernel_first = 0; kernel_first < 2; kernel_first++) {
        struct story *s = *state;
        const struct incident *in;

        evidence_free(s->e);
        s->e = evidence_new();
        if (kernel_first)
            kernel_says(s, "gpu.xid.79", ROLE_ROOT, 95, 900 * USEC_PER_SEC);
        steps(s, 1, 50, USEC_PER_SEC);
        wait_in(s, 0, "ALLREDUCE", 50, 50);
        if (!kernel_first)
            kernel_says(s, "gpu.xid.79", ROLE_ROOT, 95, 900 * USEC_PER_SEC);
        in = judge(s);
        assert_int_equal(in->class, CLASS_CRASH);
        assert_int_equal(in->cause, CAUSE_GPU_HARDWARE);
        assert_in_range(in->confidence, 50, 70);
        assert_non_null(strstr(in->summary, "can't be compared"));
        assert_null(strstr(in->summary, "after step"));
    }
}

static void test_an_error_that_explains_itself_outweighs_one_of_unknown_time(void **state)
{
    struct story *s = *state;

    kernel_says(s, "gpu.xid.79", ROLE_ROOT, 95, 900 * USEC_PER_SEC);
    steps(s, 1, 50, USEC_PER_SEC);
    say(s, "python.import", ROLE_ROOT, CAUSE_USER_CONFIG, 90, 0);
    assert_int_equal(judge(s)->cause, CAUSE_USER_CONFIG);
    assert_int_equal(s->in.culprits.n_devices, 0);
    assert_said(&s->in, "gpu.xid.79", "can't be compared");
}

static void test_a_fact_of_unknown_time_does_not_undo_finished_work(void **state)
{
    struct story *s = *state;
    struct signal done;

    kernel_says(s, "gpu.xid.79", ROLE_ROOT, 95, 900 * USEC_PER_SEC);
    steps(s, 1, 50, USEC_PER_SEC);
    assert_int_equal(judge(s)->class, CLASS_CRASH);
    done = make(s, SIGNAL_HIT, "finish", ROLE_FINISH);
    evidence_add(s->e, &done);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
    assert_said(&s->in, "gpu.xid.79", "shows no trouble");
}

static void test_a_soft_fact_of_unknown_time_is_no_reason_to_see_trouble(void **state)
{
    struct story *s = *state;

    kernel_says(s, "gpu.xid.31", ROLE_SYMPTOM, 60, 900 * USEC_PER_SEC);
    steps(s, 1, 50, USEC_PER_SEC);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
}

/* Within one file the clock is as good as any. */
static void test_a_kernel_log_alone_is_judged_by_its_own_clock(void **state)
{
    struct story *s = *state;

    for (int i = 0; i < 4; i++)
        kernel_says(s, "gpu.xid.31", ROLE_SYMPTOM, 30, (usec_t)(100 + 1000 * i) * USEC_PER_SEC);
    assert_int_equal(judge(s)->cause, CAUSE_GPU_HARDWARE);
    assert_int_equal(s->in.culprits.n_devices, 1);
}

static void test_exit_status_zero_outweighs_scary_lines(void **state)
{
    struct story *s = *state;
    struct signal x;

    say(s, "python.value", ROLE_ROOT, CAUSE_USER_CODE, 70, 1);
    x = signal_make(SIGNAL_EXIT, PROVENANCE_AGENT);
    evidence_add(s->e, &x);
    attribute(s->e, ENDING_EXITED, &s->in);
    assert_int_equal(s->in.class, CLASS_HEALTHY);
    assert_true(s->in.finished);
}

static void test_a_stopped_process_is_the_culprit_of_a_hang(void **state)
{
    struct story *s = *state;
    struct signal x = signal_make(SIGNAL_ACTIVITY, PROVENANCE_AGENT);

    steps(s, 1, 50, USEC_PER_SEC);
    x.who.rank = 2;
    x.activity.processes = x.activity.stopped = 1;
    evidence_add(s->e, &x);
    attribute(s->e, ENDING_HUNG, &s->in);
    assert_int_equal(s->in.class, CLASS_HANG);
    assert_int_equal(s->in.culprits.n_ranks, 1);
    assert_int_equal(s->in.culprits.ranks[0], 2);
    assert_int_equal(s->in.advice, ADVICE_RESTART);
}

static void test_a_dead_process_is_the_culprit_of_a_hang(void **state)
{
    struct story *s = *state;
    struct signal x = signal_make(SIGNAL_EXIT, PROVENANCE_AGENT);

    steps(s, 1, 50, USEC_PER_SEC);
    x.who.rank = 3;
    x.exit.code = -1;
    x.exit.signal = 9;
    evidence_add(s->e, &x);
    attribute(s->e, ENDING_HUNG, &s->in);
    assert_int_equal(s->in.class, CLASS_HANG);
    assert_int_equal(s->in.culprits.n_ranks, 1);
    assert_int_equal(s->in.culprits.ranks[0], 3);
}

static void test_a_process_that_goes_on_is_no_culprit(void **state)
{
    struct story *s = *state;
    struct signal x = signal_make(SIGNAL_ACTIVITY, PROVENANCE_AGENT);

    x.who.rank = 2;
    x.activity.stopped = 1;
    evidence_add(s->e, &x);
    x.who.rank = RANK_NONE;
    x.activity.stopped = 0;
    evidence_add(s->e, &x);
    attribute(s->e, ENDING_HUNG, &s->in);
    assert_int_equal(s->in.culprits.n_ranks, 0);
}

static void test_a_barrier_names_who_did_not_come(void **state)
{
    struct story *s = *state;
    struct signal x = hit(s, "pt.monitored_barrier", ROLE_CONFIRM, CAUSE_UNKNOWN, 55);

    x.hang = true;
    x.blame = BLAME_RANK;
    x.who.rank = 6;
    evidence_add(s->e, &x);
    judge(s);
    assert_int_equal(s->in.class, CLASS_HANG);
    assert_int_equal(s->in.culprits.n_ranks, 1);
    assert_int_equal(s->in.culprits.ranks[0], 6);
}

static void test_a_preemption_notice_before_a_failed_barrier_interrupts(void **state)
{
    struct story *s = *state;
    struct signal x;

    steps(s, 1, 50, USEC_PER_SEC);
    say(s, "jax.preempted", ROLE_ROOT, CAUSE_PREEMPTION, 90, RANK_NONE);
    s->now += 30 * USEC_PER_SEC;
    x = hit(s, "jax.barrier", ROLE_SYMPTOM, CAUSE_UNKNOWN, 40);
    x.hang = true;
    evidence_add(s->e, &x);
    judge(s);
    assert_int_equal(s->in.class, CLASS_INTERRUPTED);
    assert_int_equal(s->in.cause, CAUSE_PREEMPTION);
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
    assert_int_equal(s->in.culprits.n_nodes, 1);
    assert_string_equal(s->in.culprits.nodes[0], "n7");
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

static void test_a_program_that_goes_on_writing_is_not_silent(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    for (int i = 0; i < 600; i++) {
        struct signal x;

        s->now += 20 * USEC_PER_SEC;
        x = make(s, SIGNAL_OUTPUT, "", ROLE_NOISE);
        evidence_add(s->e, &x);
    }
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
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

static void test_taken_down_without_a_failure_is_a_cancel(void **state)
{
    struct story *s = *state;
    struct signal x;

    steps(s, 1, 50, USEC_PER_SEC);
    x = hit(s, "slurm.step_cancelled", ROLE_TEARDOWN, CAUSE_CANCELLED, 0);
    x.layer = LAYER_SCHEDULER;
    evidence_add(s->e, &x);
    judge(s);
    assert_int_equal(s->in.class, CLASS_INTERRUPTED);
    assert_int_equal(s->in.cause, CAUSE_CANCELLED);
    x = make(s, SIGNAL_EXIT, "slurm.task_exit", ROLE_CONFIRM);
    x.exit.code = 1;
    evidence_add(s->e, &x);
    judge(s);
    assert_int_equal(s->in.class, CLASS_CRASH);
    assert_int_equal(s->in.cause, CAUSE_UNKNOWN);
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

static void test_a_traceback_after_the_last_step_is_a_crash(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    say(s, "python.traceback", ROLE_CONFIRM, CAUSE_UNKNOWN, 20, RANK_NONE);
    assert_int_equal(judge(s)->class, CLASS_CRASH);
    assert_int_equal(s->in.cause, CAUSE_UNKNOWN);
    assert_int_equal(s->in.advice, ADVICE_RESTART);
    steps(s, 51, 52, USEC_PER_SEC);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
}

static void test_fingerprint_ignores_who_and_when(void **state)
{
    struct story *s = *state;
    char first[17];
    struct signal x = hit(s, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95);

    STR_COPY(x.text, "rank 3 on n17: uncorrectable ECC error at 0x7f00aa");
    evidence_add(s->e, &x);
    STR_COPY(first, judge(s)->fingerprint);
    evidence_free(s->e);
    s->e = evidence_new();
    STR_COPY(x.text, "rank 12 on n4: uncorrectable ECC error at 0x7ffe10");
    evidence_add(s->e, &x);
    assert_string_equal(judge(s)->fingerprint, first);
    evidence_free(s->e);
    s->e = evidence_new();
    STR_COPY(x.text, "rank 12 on n4: unspecified launch failure");
    evidence_add(s->e, &x);
    assert_string_not_equal(judge(s)->fingerprint, first);
}

static void test_memory_stays_bounded_and_the_first_error_kept(void **state)
{
    struct story *s = *state;

    say(s, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95, 3);
    for (int32_t i = 0; i < 100000; i++) {
        char id[32];

        snprintf(id, sizeof(id), "noise.%d", i % 700);
        say(s, id, ROLE_CASCADE, CAUSE_NETWORK, 10, i);
    }
    judge(s);
    assert_string_equal(s->in.signature, "cuda.ecc");
    assert_int_equal(s->in.culprits.ranks[0], 3);
}

static void fill_table(struct story *s)
{
    for (int32_t i = 0; i < 3000; i++) {
        char id[32];

        snprintf(id, sizeof(id), "noise.%d", i % 60);
        say(s, id, ROLE_CASCADE, CAUSE_NETWORK, 10, i);
    }
}

static void test_a_full_table_makes_room_for_an_error(void **state)
{
    struct story *s = *state;

    fill_table(s);
    say(s, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95, 3);
    assert_string_equal(judge(s)->signature, "cuda.ecc");
    steps(s, 1, 2, USEC_PER_SEC);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
    fill_table(s);
    say(s, "cuda.oom", ROLE_ROOT, CAUSE_GPU_OOM, 95, 4);
    assert_string_equal(judge(s)->signature, "cuda.oom");
}

static void test_files_beyond_the_bound_share_a_place(void **state)
{
    struct story *s = *state;
    struct signal x = make(s, SIGNAL_STEP, "step", ROLE_PROGRESS);

    x.file = 3 * 4096; /* STREAMS_MAX */
    x.step.step = 1;
    evidence_add(s->e, &x);
    x = signal_make(SIGNAL_EXIT, PROVENANCE_JOB_TEXT);
    x.file = 2 * 4096;
    x.who.rank = 4;
    x.exit.code = 7;
    evidence_add(s->e, &x);
    attribute(s->e, ENDING_EXITED, &s->in);
    assert_int_equal(s->in.class, CLASS_CRASH);
    assert_int_equal(s->in.culprits.ranks[0], 4);
    x.kind = SIGNAL_STEP; /* another file in the same place goes on: that end was survived */
    x.file = 4096;
    x.step = make(s, SIGNAL_STEP, "step", ROLE_PROGRESS).step;
    x.step.step = 2;
    evidence_add(s->e, &x);
    attribute(s->e, ENDING_UNKNOWN, &s->in);
    assert_int_equal(s->in.class, CLASS_HEALTHY);
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

/* Any order of any signals must give a verdict that keeps the promises of its form. */
static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static struct signal random_signal(uint64_t *r)
{
    struct signal x = signal_make((enum signal_kind)(next_random(r) % SIGNAL_MAX),
                                  (enum provenance)(next_random(r) % PROVENANCE_MAX));

    x.file = (uint32_t)(next_random(r) % 5);
    x.line = next_random(r) % 100000;
    if (next_random(r) % 3)
        x.time_us = T0 + (usec_t)(next_random(r) % 100000) * USEC_PER_SEC;
    snprintf(x.signature, sizeof(x.signature), "sig.%d", (int)(next_random(r) % 400));
    snprintf(x.text, sizeof(x.text), "text %d", (int)(next_random(r) % 400));
    x.layer = (enum layer)(next_random(r) % LAYER_MAX);
    x.role = (enum role)(next_random(r) % ROLE_MAX);
    x.cause = (enum cause)(next_random(r) % CAUSE_MAX);
    x.blame = (enum blame)(next_random(r) % BLAME_MAX);
    x.confidence = (int32_t)(next_random(r) % 101);
    x.hang = next_random(r) % 20 == 0;
    x.who.rank = (int32_t)(next_random(r) % 40) - 1;
    snprintf(x.who.node, sizeof(x.who.node), "n%d", (int)(next_random(r) % 9));
    snprintf(x.who.peer, sizeof(x.who.peer), "n%d<9>", (int)(next_random(r) % 9));
    if (x.kind == SIGNAL_STEP) {
        x.step.step = (int64_t)(next_random(r) % 1000) - 1;
        x.step.loss = (int64_t)next_random(r) - 1000000;
        x.step.duration = (usec_t)next_random(r);
    } else if (x.kind == SIGNAL_COLLECTIVE) {
        x.collective.seq = (int64_t)(next_random(r) % 9);
    }
    return x;
}

static void assert_well_formed(const struct incident *in)
{
    const struct culprits *c = &in->culprits;

    assert_in_range(in->class, 0, CLASS_MAX - 1);
    assert_in_range(in->cause, 0, CAUSE_MAX - 1);
    assert_in_range(in->confidence, 0, 100);
    assert_true((in->class == CLASS_HEALTHY) == (in->cause == CAUSE_NONE));
    assert_true(c->n_nodes <= CULPRIT_NODES_MAX && c->n_ranks <= CULPRIT_RANKS_MAX);
    if (in->class == CLASS_HEALTHY) {
        assert_int_equal(c->n_nodes + c->n_ranks + c->n_devices, 0);
        assert_int_equal(in->advice, ADVICE_NONE);
    }
    assert_int_equal(strlen(in->fingerprint), 16);
    assert_true(*in->summary);
}

static void test_any_signals_give_a_well_formed_verdict(void **state)
{
    struct story *s = *state;
    uint64_t r = 1;

    for (int run = 0; run < 60; run++) {
        for (int i = 0; i < 40 * run; i++) {
            struct signal x = random_signal(&r);

            evidence_add(s->e, &x);
        }
        for (enum ending end_as = ENDING_UNKNOWN; end_as < ENDING_MAX; end_as++) {
            attribute(s->e, end_as, &s->in);
            assert_well_formed(&s->in);
        }
        evidence_free(s->e);
        s->e = evidence_new();
    }
}

#define STORY(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        STORY(test_empty_is_healthy),
        STORY(test_steps_alone_are_healthy),
        STORY(test_root_that_was_survived_is_no_incident),
        STORY(test_other_ranks_printing_the_same_step_is_no_progress),
        STORY(test_late_step_is_forgiven_when_the_launcher_tells_a_failure),
        STORY(test_raised_exception_of_uncertain_cause_is_a_crash),
        STORY(test_exception_behind_the_last_step_is_clearing_up),
        STORY(test_first_error_wins_over_the_loud_ones),
        STORY(test_lines_with_and_without_clocks_have_one_order),
        STORY(test_lines_before_any_clock_come_first),
        STORY(test_concurrent_hardware_explains_an_exception),
        STORY(test_a_server_that_answers_again_is_no_evidence),
        STORY(test_a_line_of_passing_waits_is_a_wait_when_it_comes_again_and_again),
        STORY(test_only_what_is_over_is_forgotten),
        STORY(test_hardware_without_a_name_cannot_be_excluded),
        STORY(test_the_same_error_on_all_ranks_blames_none),
        STORY(test_a_program_error_says_which_rank_printed_it),
        STORY(test_victims_alone_are_an_unknown_crash_without_culprit),
        STORY(test_two_reporters_on_different_nodes_convict_a_peer),
        STORY(test_peers_named_nearly_as_often_convict_none),
        STORY(test_more_than_a_quarter_behind_is_no_minority),
        STORY(test_ranks_at_the_same_place_blame_none),
        STORY(test_another_operation_at_the_same_number_is_a_desync),
        STORY(test_the_rank_that_has_not_launched_is_behind),
        STORY(test_a_silent_rank_holds_the_others_up),
        STORY(test_a_root_before_the_timeouts_wins),
        STORY(test_time_limit_amid_progress_interrupts),
        STORY(test_time_limit_long_after_the_last_step_is_a_hang),
        STORY(test_time_limit_hours_apart_by_time_zone_interrupts),
        STORY(test_time_limit_after_a_root_is_the_root),
        STORY(test_finished_and_never_exits_is_a_hang),
        STORY(test_status_lines_without_steps_are_a_hang),
        STORY(test_a_loss_that_rises_and_stays_is_numerical),
        STORY(test_a_loss_spike_that_comes_back_is_healthy),
        STORY(test_a_slow_climb_of_the_loss_is_numerical),
        STORY(test_steps_that_become_slow_and_stay_so_are_a_straggler),
        STORY(test_slow_steps_now_and_then_are_checkpoints),
        STORY(test_old_kernel_lines_do_not_explain_a_later_end),
        STORY(test_a_clock_from_boot_places_nothing_beside_a_date),
        STORY(test_an_error_that_explains_itself_outweighs_one_of_unknown_time),
        STORY(test_a_fact_of_unknown_time_does_not_undo_finished_work),
        STORY(test_a_soft_fact_of_unknown_time_is_no_reason_to_see_trouble),
        STORY(test_a_kernel_log_alone_is_judged_by_its_own_clock),
        STORY(test_exit_status_zero_outweighs_scary_lines),
        STORY(test_a_stopped_process_is_the_culprit_of_a_hang),
        STORY(test_a_dead_process_is_the_culprit_of_a_hang),
        STORY(test_a_process_that_goes_on_is_no_culprit),
        STORY(test_a_barrier_names_who_did_not_come),
        STORY(test_a_preemption_notice_before_a_failed_barrier_interrupts),
        STORY(test_a_voted_address_is_given_its_node),
        STORY(test_hearsay_names_nobody_where_connections_broke),
        STORY(test_a_program_that_goes_on_writing_is_not_silent),
        STORY(test_a_gradient_that_stays_nan_is_numerical),
        STORY(test_values_below_a_step_belong_to_it),
        STORY(test_what_throttles_while_the_job_is_slow_is_named),
        STORY(test_taken_down_without_a_failure_is_a_cancel),
        STORY(test_soft_faults_again_and_again_convict_the_device),
        STORY(test_a_traceback_after_the_last_step_is_a_crash),
        STORY(test_fingerprint_ignores_who_and_when),
        STORY(test_any_signals_give_a_well_formed_verdict),
        STORY(test_a_full_table_makes_room_for_an_error),
        STORY(test_files_beyond_the_bound_share_a_place),
        STORY(test_step_numbers_at_the_end_of_the_range),
        STORY(test_memory_stays_bounded_and_the_first_error_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
