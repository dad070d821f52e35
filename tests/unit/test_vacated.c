/* SPDX-License-Identifier: Apache-2.0 */

/* What an agent says of processes that are gone, and when that is a fence. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "daemon/daemon.h"
#include "wire/node_message.h"

#include "model_tell.h"

#define KEY     "42-1700000000"
#define STARTED (1700000000 * USEC_PER_SEC)

/* What vacated.c asks the rest of the daemon, and tells it. */
static struct {
    struct model *model;
    struct sched_job record;
    bool watched;
    unsigned parts; /* further ones: 43, 44, ... */
    unsigned fenced, pokes;
    struct event last;
} world;

const struct model *pump_model(const struct pump *p)
{
    return world.model;
}

uint64_t pump_input(struct pump *p, const struct event *e)
{
    assert_int_equal(e->kind, EVENT_FENCED);
    world.fenced++;
    world.last = *e;
    return 1;
}

void sched_watch_poke(struct sched_watch *w)
{
    world.pokes++;
}

const struct sched_job *sched_watch_find(const struct sched_watch *w, uint32_t id,
                                         const char **ret_key)
{
    *ret_key = world.watched ? KEY : "";
    return id >= 42 && id <= 42 + world.parts ? &world.record : NULL;
}

void sched_watch_each_part(const struct sched_watch *w, const struct sched_job *r,
                           void (*fn)(void *ctx, const struct sched_job *part), void *ctx)
{
    for (unsigned i = 1; i <= world.parts; i++) {
        struct sched_job part = {.id = 42 + i};

        fn(ctx, &part);
    }
}

const struct sched_job *sched_watch_record(const struct sched_watch *w, const char *key)
{
    return streq(key, KEY) ? &world.record : NULL;
}

/* Our monotonic clock, as it happens, is the scheduler's here. */
bool node_watch_is_older(const struct daemon *d, const struct node_message *m, const char *key)
{
    assert_string_equal(key, KEY);
    return m->mono_us < STARTED;
}

static void apply(enum event_kind kind, uint32_t attempt)
{
    model_tell(world.model, KEY, kind, attempt, STARTED);
}

static struct job *the_job(void)
{
    return model_job(world.model, KEY);
}

static int set_up(void **state)
{
    static struct daemon d;

    memset(&world, 0, sizeof(world));
    world.model = model_new();
    world.watched = true;
    world.record.state = SCHED_RUNNING;
    apply(EVENT_JOB_SEEN, 0);
    apply(EVENT_ATTEMPT_STARTED, 1);
    *state = vacated_new(&d);
    return 0;
}

static int tear_down(void **state)
{
    vacated_free(*state);
    model_free(world.model);
    return 0;
}

static void say_of(struct vacated *v, uint32_t part, enum node_message_kind kind, const char *node,
                   uint32_t restart)
{
    struct node_message m = {
        .kind = kind, .job = part, .restart = restart, .mono_us = STARTED + USEC_PER_MIN};

    STR_COPY(m.node, node);
    vacated_message(v, &m);
}

static void say(struct vacated *v, enum node_message_kind kind, const char *node, uint32_t restart)
{
    say_of(v, 42, kind, node, restart);
}

static void gone(struct vacated *v, const char *node)
{
    say(v, NODE_MESSAGE_GONE, node, 0);
}

static void assert_fenced(const char *node)
{
    assert_int_equal(world.fenced, 1);
    assert_int_equal(world.pokes, 1);
    assert_string_equal(world.last.job, KEY);
    assert_int_equal(world.last.attempt, 1);
    assert_string_equal(world.last.fenced.node, node);
}

/* While the scheduler has the attempt run, another step of it may begin there. */
static void it_is_no_fence_before_the_attempt_is_over(void **state)
{
    gone(*state, "n7");
    assert_false(vacated_fences(*state, KEY, "n7"));
    assert_int_equal(world.fenced, 0);
    world.record.state = SCHED_FAILED;
    assert_true(vacated_fences(*state, KEY, "n7"));
    assert_fenced("n7");
}

static void an_attempt_is_over_when_the_job_was_queued_again(void **state)
{
    gone(*state, "n7");
    world.record.state = SCHED_PENDING;
    assert_false(vacated_fences(*state, KEY, "n7"));
    world.record.restarts = 1;
    assert_true(vacated_fences(*state, KEY, "n7"));
    assert_fenced("n7");
}

/* Of the node that the job waits for it is told as soon as it is heard. */
static void who_is_waited_for_is_told_at_once(void **state)
{
    world.record.state = SCHED_PENDING;
    world.record.restarts = 1;
    gone(*state, "n7");
    assert_int_equal(world.fenced, 0);
    STR_COPY(the_job()->sched.look.lost_node, "n8");
    gone(*state, "n8");
    assert_fenced("n8");
}

static void another_node_or_job_is_not_vouched_for(void **state)
{
    world.record.state = SCHED_FAILED;
    gone(*state, "n7");
    assert_false(vacated_fences(*state, KEY, "n8"));
    assert_false(vacated_fences(*state, "43-1700000000", "n7"));
    assert_int_equal(world.fenced, 0);
}

/* The agent saw a process of it again. */
static void a_sign_of_life_takes_it_back(void **state)
{
    world.record.state = SCHED_FAILED;
    gone(*state, "n7");
    say(*state, NODE_MESSAGE_ACTIVITY, "n7", 0);
    assert_false(vacated_fences(*state, KEY, "n7"));
    gone(*state, "n7");
    assert_true(vacated_fences(*state, KEY, "n7"));
}

static void what_is_about_another_attempt_does_not_count(void **state)
{
    world.record.state = SCHED_FAILED;
    say(*state, NODE_MESSAGE_GONE, "n7", 1);
    assert_false(vacated_fences(*state, KEY, "n7"));
    gone(*state, "n7");
    say(*state, NODE_MESSAGE_ACTIVITY, "n7", 1); /* nor does this take it back */
    the_job()->attempt.number = 2;
    assert_false(vacated_fences(*state, KEY, "n7")); /* that was the first's */
}

/* A step of theirs may call itself by this job's number. */
static void what_is_of_another_users_processes_does_not_count(void **state)
{
    world.record.state = SCHED_FAILED;
    world.record.uid = 1000;
    gone(*state, "n7");
    assert_false(vacated_fences(*state, KEY, "n7"));
    world.record.uid = 0;
    gone(*state, "n7");
    world.record.uid = 1000;
    say(*state, NODE_MESSAGE_ACTIVITY, "n7", 0); /* nor does this take it back */
    assert_true(vacated_fences(*state, KEY, "n7"));
}

/* The number may have been another job's before. */
static void what_is_older_than_the_job_does_not_count(void **state)
{
    struct node_message m = {
        .kind = NODE_MESSAGE_GONE, .job = 42, .mono_us = STARTED - 5 * USEC_PER_MIN};

    world.record.state = SCHED_FAILED;
    STR_COPY(m.node, "n7");
    vacated_message(*state, &m);
    assert_false(vacated_fences(*state, KEY, "n7"));
}

static void nobody_is_fenced_for_a_job_that_is_not_watched(void **state)
{
    world.watched = false;
    world.record.state = SCHED_FAILED;
    gone(*state, "n7");
    assert_false(vacated_fences(*state, KEY, "n7"));
}

static void what_was_forgotten_is_no_fence(void **state)
{
    world.record.state = SCHED_FAILED;
    gone(*state, "n7");
    vacated_forget(*state, KEY);
    assert_false(vacated_fences(*state, KEY, "n7"));
}

/* Of too many the oldest goes: it must be said anew, which is the safe side. */
static void what_is_remembered_has_a_bound(void **state)
{
    char node[16];

    world.record.state = SCHED_FAILED;
    gone(*state, "first");
    gone(*state, "second");
    for (int i = 0; i < 4095; i++) {
        STR_PRINTF(node, "n%d", i);
        gone(*state, node);
    }
    assert_false(vacated_fences(*state, KEY, "first"));
    assert_true(vacated_fences(*state, KEY, "second"));
}

/* Two parts of one job share the node, and one of them runs on. */
static void no_part_vouches_for_another(void **state)
{
    world.parts = 2;
    STR_COPY(the_job()->sched.look.lost_node, "n7");
    say_of(*state, 43, NODE_MESSAGE_START, "n7", 0);
    say_of(*state, 44, NODE_MESSAGE_ACTIVITY, "n7", 0);
    world.record.state = SCHED_FAILED;
    say_of(*state, 43, NODE_MESSAGE_GONE, "n7", 0);
    assert_false(vacated_fences(*state, KEY, "n7"));
    assert_int_equal(world.fenced, 0);
    say_of(*state, 44, NODE_MESSAGE_GONE, "n7", 0);
    assert_fenced("n7");
    say_of(*state, 43, NODE_MESSAGE_ACTIVITY, "n7", 0);
    assert_false(vacated_fences(*state, KEY, "n7"));
}

/* Who is not remembered may live. */
static void too_many_parts_are_not_vouched_for(void **state)
{
    char node[16];

    world.parts = 1;
    for (int i = 0; i <= 4096; i++) {
        STR_PRINTF(node, "n%d", i);
        say_of(*state, 43, NODE_MESSAGE_START, node, 0);
    }
    world.record.state = SCHED_FAILED;
    gone(*state, "n4096");
    assert_false(vacated_fences(*state, KEY, "n4096"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(it_is_no_fence_before_the_attempt_is_over),
        TEST(an_attempt_is_over_when_the_job_was_queued_again),
        TEST(who_is_waited_for_is_told_at_once),
        TEST(another_node_or_job_is_not_vouched_for),
        TEST(a_sign_of_life_takes_it_back),
        TEST(what_is_about_another_attempt_does_not_count),
        TEST(what_is_of_another_users_processes_does_not_count),
        TEST(what_is_older_than_the_job_does_not_count),
        TEST(nobody_is_fenced_for_a_job_that_is_not_watched),
        TEST(what_was_forgotten_is_no_fence),
        TEST(what_is_remembered_has_a_bound),
        TEST(no_part_vouches_for_another),
        TEST(too_many_parts_are_not_vouched_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
