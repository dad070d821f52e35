/* SPDX-License-Identifier: Apache-2.0 */

/* When an attempt is gone from a node, with the processes of the node given by the test. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/attempts.h"
#include "agent/kin.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct attempt_id ours = {42, 1, 1000};

/* The one process that there is, besides those of steps. */
static struct {
    struct proc process;
    struct kin_fact fact;
    uid_t owner;
    int owner_error, list_error, lives;
    size_t hidden;
    uint64_t clock;
    bool step; /* `ours` has one */
    unsigned gone;
    struct attempt_id last;
} world;

int __wrap_proc_list_all(struct proc_list *ret);
int __wrap_proc_lives(const struct proc *p);
uint64_t __wrap_proc_clock(void);
int __wrap_kin_user(pid_t pid, uid_t *ret);
void __wrap_kin_look(const struct proc_list *processes, const char *node, bool restarts, kin_fn fn,
                     void *ctx);

int __wrap_proc_list_all(struct proc_list *ret)
{
    if (world.list_error < 0)
        return world.list_error;
    ret->hidden = world.hidden;
    if (world.process.pid > 0)
        *VEC_PUSH(&ret->procs) = world.process;
    return 0;
}

int __wrap_proc_lives(const struct proc *p)
{
    return world.lives;
}

uint64_t __wrap_proc_clock(void)
{
    return world.clock;
}

int __wrap_kin_user(pid_t pid, uid_t *ret)
{
    *ret = world.owner;
    return world.owner_error;
}

void __wrap_kin_look(const struct proc_list *processes, const char *node, bool restarts, kin_fn fn,
                     void *ctx)
{
    assert_string_equal(node, "n7");
    VEC_FOREACH (&processes->procs, p)
        fn(ctx, p, &world.fact);
}

static bool has_step(void *ctx, const struct attempt_id *id)
{
    return world.step && attempt_id_is(id, &ours);
}

static bool is_of_step(void *ctx, const struct proc_list *all, const struct proc *p)
{
    return false;
}

static void on_gone(void *ctx, const struct attempt_id *id)
{
    world.gone++;
    world.last = *id;
}

static const struct attempts_asks asks = {.has_step = has_step, .is_of_step = is_of_step};
static char path[64];

static int set_up(void **state)
{
    int fd;

    memset(&world, 0, sizeof(world));
    world.clock = 100;
    STR_COPY(path, "/tmp/reknit-attempts-XXXXXX");
    fd = mkstemp(path);
    assert_return_code(fd, errno);
    close(fd);
    *state = attempts_new("n7", path, &asks, NULL);
    assert_true(attempts_add(*state, &ours));
    return 0;
}

static int tear_down(void **state)
{
    attempts_free(*state);
    return unlink(path);
}

/* How often it was said by now. */
static unsigned look(struct attempts *l)
{
    attempts_look(l, on_gone);
    return world.gone;
}

static void there_is(enum kin kin, uint64_t start, uid_t owner)
{
    world.process = (struct proc){.pid = 77, .start = start};
    world.fact = (struct kin_fact){.kin = kin, .job = ours.job};
    world.owner = owner;
}

static void it_is_gone_without_steps_and_processes_and_that_is_said_once(void **state)
{
    world.step = true;
    assert_int_equal(look(*state), 0);
    world.step = false;
    there_is(KIN_JOB, 1, 1000);
    assert_int_equal(look(*state), 0);
    there_is(KIN_NONE, 1, 1000); /* somebody else's */
    assert_int_equal(look(*state), 1);
    assert_true(attempt_id_is(&world.last, &ours));
    assert_int_equal(look(*state), 1);
    assert_int_equal(attempts_count(*state), 0);
}

static void a_look_that_is_not_whole_says_nothing(void **state)
{
    static const int errors[] = {-EMFILE, -ENOMEM, -E2BIG};

    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        world.list_error = errors[i];
        assert_int_equal(look(*state), 0);
    }
    world.list_error = 0;
    world.hidden = 1;
    assert_int_equal(look(*state), 0);
    world.hidden = 0;
    assert_int_equal(look(*state), 1);
}

static void what_was_seen_counts_until_it_is_known_to_have_ended(void **state)
{
    _cleanup_proc_list_ struct proc_list seen = {0};

    *VEC_PUSH(&seen.procs) = (struct proc){.pid = 78, .start = 5};
    attempts_add_seen(*state, &ours, &seen);
    world.lives = 1;
    assert_int_equal(look(*state), 0);
    world.lives = -EMFILE;
    assert_int_equal(look(*state), 0);
    world.lives = 0;
    assert_int_equal(look(*state), 1);
}

static void what_cannot_be_read_counts_for_its_user(void **state)
{
    there_is(KIN_UNKNOWN, 500, 1000);
    assert_int_equal(look(*state), 0);
    world.owner_error = -ENOMEM; /* whose it is is not known either */
    there_is(KIN_UNKNOWN, 500, 1001);
    assert_int_equal(look(*state), 0);
    world.owner_error = 0;
    assert_int_equal(look(*state), 1);
}

static void who_exits_counts_if_it_can_have_been_begun_by_the_attempt(void **state)
{
    there_is(KIN_EXITING, 100, 1000);
    assert_int_equal(look(*state), 0);
    there_is(KIN_JOB, 100, 1000); /* which may begin another before it ends */
    assert_int_equal(look(*state), 0);
    world.clock = 200;
    there_is(KIN_EXITING, 150, 1000);
    assert_int_equal(look(*state), 0);
    world.clock = 300;
    world.list_error = -EMFILE;
    assert_int_equal(look(*state), 0);
    world.list_error = 0;
    world.clock = 400;
    there_is(KIN_EXITING, 350, 1000); /* for all that was seen since */
    assert_int_equal(look(*state), 0);
    world.clock = 500;
    there_is(KIN_EXITING, 450, 1000); /* somebody always exits */
    assert_int_equal(look(*state), 1);
}

static void the_same_number_of_another_user_is_another_attempt(void **state)
{
    const struct attempt_id theirs = {42, 3, 1001};
    struct attempt_id last = {.job = 42, .user = 1000};

    assert_true(attempts_add(*state, &theirs));
    assert_true(attempts_find_last(*state, &last));
    assert_int_equal(last.restart, 1);
    last.user = 1002;
    assert_false(attempts_find_last(*state, &last));
    world.step = true; /* of ours */
    assert_int_equal(look(*state), 1);
    assert_true(attempt_id_is(&world.last, &theirs));
    assert_true(attempts_has_user(*state, 1000) && attempts_has_user(*state, 1001)); /* a guest */
    assert_false(attempts_has_user(*state, 1002));
}

static void the_file_has_those_that_are_not_gone(void **state)
{
    const struct attempt_id more = {43, 0, 1001};
    struct attempts *again = attempts_new("n7", path, &asks, NULL);

    attempts_add(*state, &more);
    attempts_recall(again);
    assert_int_equal(attempts_count(again), 2);
    world.step = true;
    assert_int_equal(look(again), 1);
    assert_true(attempt_id_is(&world.last, &more));
    attempts_free(again);
    again = attempts_new("n7", path, &asks, NULL);
    attempts_recall(again);
    assert_int_equal(attempts_count(again), 1);
    attempts_free(again);
}

static void the_list_has_a_bound(void **state)
{
    for (uint32_t i = 1; i < ATTEMPTS_MAX; i++)
        assert_true(attempts_add(*state, &(struct attempt_id){42, 1 + i, 1000}));
    assert_false(attempts_add(*state, &(struct attempt_id){43, 0, 1000}));
    assert_true(attempts_add(*state, &ours));
    assert_int_equal(attempts_count(*state), ATTEMPTS_MAX);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(it_is_gone_without_steps_and_processes_and_that_is_said_once),
        TEST(a_look_that_is_not_whole_says_nothing),
        TEST(what_was_seen_counts_until_it_is_known_to_have_ended),
        TEST(what_cannot_be_read_counts_for_its_user),
        TEST(who_exits_counts_if_it_can_have_been_begun_by_the_attempt),
        TEST(the_same_number_of_another_user_is_another_attempt),
        TEST(the_file_has_those_that_are_not_gone),
        TEST(the_list_has_a_bound),
    };

    return cmocka_run_group_tests_name("attempts", tests, NULL, NULL);
}
