/* SPDX-License-Identifier: Apache-2.0 */

/* What of a story counts: what was survived, what is over, what finished, whose clock tells. */

#include "attribute_world.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_root_that_was_survived_is_no_incident(void **state)
{
    steps(*state, 1, 50, USEC_PER_SEC);
    say(*state, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95, 3);
    steps(*state, 51, 60, USEC_PER_SEC);
    assert_int_equal(judge(*state)->class, CLASS_HEALTHY);
}

static void test_what_could_not_be_read_may_tell_of_a_failure(void **state)
{
    struct story *s = *state;
    int32_t before;
    struct signal done;

    steps(s, 1, 50, USEC_PER_SEC);
    before = judge(s)->confidence;
    evidence_add_gap(s->e);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
    assert_in_range(s->in.confidence, 1, before / 2);
    assert_non_null(strstr(s->in.summary, "not all of the input could be read"));
    done = make(s, SIGNAL_HIT, "finish", ROLE_FINISH);
    evidence_add(s->e, &done);
    assert_in_range(judge(s)->confidence, before / 2, before);
    assert_true(s->in.finished);
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

/* What the program makes of the signal that was passed on to it adds nothing to who asked. */
static void test_who_asked_for_the_end_says_how_sure_the_cancel_is(void **state)
{
    struct story *s = *state;

    steps(s, 1, 3, USEC_PER_SEC);
    attribute(s->e, ENDING_BY_USER, &s->in);
    assert_int_equal(s->in.confidence, 95);
    say(s, "python.keyboard", ROLE_ROOT, CAUSE_CANCELLED, 60, 0);
    attribute(s->e, ENDING_BY_USER, &s->in);
    assert_int_equal(s->in.class, CLASS_INTERRUPTED);
    assert_int_equal(s->in.cause, CAUSE_CANCELLED);
    assert_int_equal(s->in.confidence, 95);
    assert_string_equal(s->in.summary,
                        "The job was ended on request after step 3; nothing failed before.");
    attribute(s->e, ENDING_REQUESTED, &s->in);
    assert_int_equal(s->in.cause, CAUSE_CANCELLED);
    assert_int_equal(s->in.confidence, 60);
}

static void test_a_crash_in_tear_down_says_that_the_work_was_done(void **state)
{
    struct story *s = *state;
    struct signal x = make(s, SIGNAL_HIT, "finished", ROLE_FINISH);

    steps(s, 1, 3, USEC_PER_SEC);
    evidence_add(s->e, &x);
    say(s, "python.value", ROLE_ROOT, CAUSE_USER_CODE, 70, 1);
    attribute(s->e, ENDING_EXITED, &s->in);
    assert_int_equal(s->in.class, CLASS_CRASH);
    assert_non_null(strstr(s->in.summary, " after its work was done (step 3)"));
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

/* NVRx: on any task, others end with 1. */
static void test_a_launcher_that_gave_up_is_not_started_again(void **state)
{
    static const int codes[] = {1, 93, 1};
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    say(s, "cuda.ecc", ROLE_ROOT, CAUSE_GPU_HARDWARE, 95, 3);
    for (int i = 0; i < 3; i++) {
        struct signal x = make(s, SIGNAL_EXIT, "slurm.task_exit", ROLE_CONFIRM);

        x.exit.code = codes[i];
        x.who.rank = i;
        evidence_add(s->e, &x);
        assert_int_equal(judge(s)->no_restart, i > 0);
        assert_int_equal(s->in.cause, CAUSE_GPU_HARDWARE);
        assert_int_equal(s->in.advice == ADVICE_STOP, i > 0);
    }
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

/* Its log may be read after the scheduler was asked; what it wrote before it was killed is no sign
 * that it was not. A line of the job's own says less. */
static void test_the_schedulers_word_of_a_limit_outlives_later_lines(void **state)
{
    struct story *s = *state;
    struct signal x;

    steps(s, 1, 50, USEC_PER_SEC);
    x = hit(s, "slurm.timeout", ROLE_ROOT, CAUSE_TIME_LIMIT, 95);
    x.provenance = PROVENANCE_SCHEDULER;
    x.layer = LAYER_SCHEDULER;
    evidence_add(s->e, &x);
    steps(s, 51, 900, USEC_PER_SEC);
    assert_int_equal(judge(s)->class, CLASS_INTERRUPTED);
    assert_int_equal(s->in.cause, CAUSE_TIME_LIMIT);
}

static struct signal fact(struct story *s, const char *id, enum cause cause, const char *text)
{
    struct signal x = hit(s, id, ROLE_ROOT, cause, 98);

    x.provenance = PROVENANCE_SCHEDULER;
    x.layer = LAYER_SCHEDULER;
    x.line = 0;
    STR_COPY(x.text, text);
    return x;
}

/* No line of a file is behind it; others that have none are others. */
static void test_what_a_scheduler_says_is_shown_once(void **state)
{
    struct story *s = *state;
    struct signal x = fact(s, "scheduler.preempted", CAUSE_PREEMPTION, "it was preempted");

    steps(s, 1, 50, USEC_PER_SEC);
    evidence_add(s->e, &x);
    assert_int_equal(judge(s)->n_evidence, 1);
    x = fact(s, "scheduler.node_fail", CAUSE_NODE_FAILURE, "n1 failed");
    evidence_add(s->e, &x);
    assert_int_equal(judge(s)->n_evidence, 2);
}

static void test_a_limit_that_only_the_job_speaks_of_is_survived(void **state)
{
    struct story *s = *state;

    steps(s, 1, 50, USEC_PER_SEC);
    say(s, "slurm.timeout", ROLE_ROOT, CAUSE_TIME_LIMIT, 95, RANK_NONE);
    steps(s, 51, 900, USEC_PER_SEC);
    assert_int_equal(judge(s)->class, CLASS_HEALTHY);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        STORY_TEST(test_root_that_was_survived_is_no_incident),
        STORY_TEST(test_what_could_not_be_read_may_tell_of_a_failure),
        STORY_TEST(test_other_ranks_printing_the_same_step_is_no_progress),
        STORY_TEST(test_late_step_is_forgiven_when_the_launcher_tells_a_failure),
        STORY_TEST(test_raised_exception_of_uncertain_cause_is_a_crash),
        STORY_TEST(test_exception_behind_the_last_step_is_clearing_up),
        STORY_TEST(test_a_server_that_answers_again_is_no_evidence),
        STORY_TEST(test_only_what_is_over_is_forgotten),
        STORY_TEST(test_old_kernel_lines_do_not_explain_a_later_end),
        STORY_TEST(test_a_clock_from_boot_places_nothing_beside_a_date),
        STORY_TEST(test_an_error_that_explains_itself_outweighs_one_of_unknown_time),
        STORY_TEST(test_a_fact_of_unknown_time_does_not_undo_finished_work),
        STORY_TEST(test_a_soft_fact_of_unknown_time_is_no_reason_to_see_trouble),
        STORY_TEST(test_a_kernel_log_alone_is_judged_by_its_own_clock),
        STORY_TEST(test_exit_status_zero_outweighs_scary_lines),
        STORY_TEST(test_who_asked_for_the_end_says_how_sure_the_cancel_is),
        STORY_TEST(test_a_crash_in_tear_down_says_that_the_work_was_done),
        STORY_TEST(test_taken_down_without_a_failure_is_a_cancel),
        STORY_TEST(test_a_launcher_that_gave_up_is_not_started_again),
        STORY_TEST(test_a_traceback_after_the_last_step_is_a_crash),
        STORY_TEST(test_the_schedulers_word_of_a_limit_outlives_later_lines),
        STORY_TEST(test_what_a_scheduler_says_is_shown_once),
        STORY_TEST(test_a_limit_that_only_the_job_speaks_of_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
