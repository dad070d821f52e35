/* SPDX-License-Identifier: Apache-2.0 */

/* Hangs: ranks that wait for each other, time limits, silence, and who held the others up. */

#include "attribute_world.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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

static void wait_in_group(struct story *s, int32_t rank, const char *group, const char *op,
                          int64_t seq, int64_t enqueued)
{
    struct signal x = make(s, SIGNAL_COLLECTIVE, "watchdog", ROLE_SYMPTOM);

    x.who.rank = rank;
    x.collective.seq = seq;
    x.collective.enqueued = enqueued;
    STR_COPY(x.collective.op, op);
    STR_COPY(x.collective.group, group);
    evidence_add(s->e, &x);
}

/* Two or three of many: what proves who is behind is that they are of one group. */
static void test_the_one_that_is_behind_among_few_is_named(void **state)
{
    static const struct {
        const char *group, *op;
        int64_t seq[3], enqueued[3]; /* -1: that rank does not report */
        bool named;
        const char *said;
    } rows[] = {
        {"0(default_pg)", "ALLREDUCE", {73, 71, 73}, {75, 72, 74}, true, "has not reached"},
        {"0(default_pg)", "ALLREDUCE", {73, 71, -1}, {73, 71, -1}, true, "has not reached"},
        {"0(default_pg)", "ALLREDUCE", {73, 71, 72}, {73, 71, 72}, false, "of at least 64"},
        {"0(default_pg)", "ALLREDUCE", {73, 71, 73}, {80, 80, 80}, true, "is still in"},
        {"0(default_pg)", "ALLREDUCE", {73, 71, 71}, {73, 71, 71}, false, "rank 1 in number 71"},
        {"5(mesh_tp)", "_ALLGATHER_BASE", {73, 71, -1}, {73, 71, -1}, true, "has not reached"},
        {"5(mesh_pp)", "SEND", {73, 71, -1}, {73, 71, -1}, false, "does not prove"},
        {"3", "ALLREDUCE", {73, 71, -1}, {73, 71, -1}, false, "does not prove"},
        {"", "ALLREDUCE", {73, 71, 73}, {73, 71, 73}, false, "in ALLREDUCE number 73"},
        {"0(default_pg)", "ALLREDUCE", {73, 73, 73}, {73, 73, 73}, false, "none of them is behind"},
        {"0(default_pg)", "ALLREDUCE", {73, -1, -1}, {73, -1, -1}, false, "one rank reports"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct story *s = *state;
        const struct incident *in;

        evidence_free(s->e);
        s->e = evidence_new();
        steps(s, 1, 50, USEC_PER_SEC);
        for (int32_t rank = 0; rank < 64; rank++) {
            struct signal x = make(s, SIGNAL_OUTPUT, "", ROLE_NOISE);

            x.who.rank = rank;
            evidence_add(s->e, &x);
        }
        for (int32_t rank = 0; rank < 3; rank++)
            if (rows[i].seq[rank] >= 0)
                wait_in_group(s, rank, rows[i].group, rows[i].op, rows[i].seq[rank],
                              rows[i].enqueued[rank]);
        in = judge(s);
        assert_int_equal(in->class, CLASS_HANG);
        if (!strstr(in->summary, rows[i].said))
            fail_msg("row %zu: %s", i, in->summary);
        assert_int_equal(in->culprits.n_ranks, rows[i].named);
        assert_true(!rows[i].named || in->culprits.ranks[0] == 1);
    }
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
    evidence_add_gap(s->e); /* it may have said something there */
    assert_int_equal(judge(s)->culprits.n_ranks, 0);
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

static void test_time_limit_before_any_step_interrupts(void **state)
{
    limit(*state);
    assert_int_equal(judge(*state)->class, CLASS_INTERRUPTED);
}

static void test_time_limit_long_after_the_last_step_is_a_hang(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    s->now += 2 * USEC_PER_HOUR + 20 * USEC_PER_MIN;
    limit(s);
    assert_int_equal(judge(s)->class, CLASS_HANG);
    assert_string_equal(s->in.summary, "The job stopped making progress after step 50; "
                                       "2h 20min later its time limit ended it.");
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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        STORY_TEST(test_a_line_of_passing_waits_is_a_wait_when_it_comes_again_and_again),
        STORY_TEST(test_more_than_a_quarter_behind_is_no_minority),
        STORY_TEST(test_ranks_at_the_same_place_blame_none),
        STORY_TEST(test_the_one_that_is_behind_among_few_is_named),
        STORY_TEST(test_another_operation_at_the_same_number_is_a_desync),
        STORY_TEST(test_the_rank_that_has_not_launched_is_behind),
        STORY_TEST(test_a_silent_rank_holds_the_others_up),
        STORY_TEST(test_a_root_before_the_timeouts_wins),
        STORY_TEST(test_time_limit_amid_progress_interrupts),
        STORY_TEST(test_time_limit_before_any_step_interrupts),
        STORY_TEST(test_time_limit_long_after_the_last_step_is_a_hang),
        STORY_TEST(test_time_limit_hours_apart_by_time_zone_interrupts),
        STORY_TEST(test_time_limit_after_a_root_is_the_root),
        STORY_TEST(test_finished_and_never_exits_is_a_hang),
        STORY_TEST(test_status_lines_without_steps_are_a_hang),
        STORY_TEST(test_a_stopped_process_is_the_culprit_of_a_hang),
        STORY_TEST(test_a_dead_process_is_the_culprit_of_a_hang),
        STORY_TEST(test_a_process_that_goes_on_is_no_culprit),
        STORY_TEST(test_a_barrier_names_who_did_not_come),
        STORY_TEST(test_a_preemption_notice_before_a_failed_barrier_interrupts),
        STORY_TEST(test_a_program_that_goes_on_writing_is_not_silent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
