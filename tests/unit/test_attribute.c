/* SPDX-License-Identifier: Apache-2.0 */

/* The judgement as a whole: which error is the first, its fingerprint, its form, its bounds. */

#include "attribute_world.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        STORY_TEST(test_empty_is_healthy),
        STORY_TEST(test_steps_alone_are_healthy),
        STORY_TEST(test_first_error_wins_over_the_loud_ones),
        STORY_TEST(test_lines_with_and_without_clocks_have_one_order),
        STORY_TEST(test_lines_before_any_clock_come_first),
        STORY_TEST(test_fingerprint_ignores_who_and_when),
        STORY_TEST(test_memory_stays_bounded_and_the_first_error_kept),
        STORY_TEST(test_a_full_table_makes_room_for_an_error),
        STORY_TEST(test_files_beyond_the_bound_share_a_place),
        STORY_TEST(test_any_signals_give_a_well_formed_verdict),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
