/* SPDX-License-Identifier: Apache-2.0 */

/* Environments of processes, of which some cannot be read, or hang. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/environs.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "until.h"

#define HANGS 1 /* pid 1, as the linker has it: nobody can make a process hang at will */

int __real_proc_environ_read(pid_t pid, struct proc_environ *ret);
int __wrap_proc_environ_read(pid_t pid, struct proc_environ *ret);

int __wrap_proc_environ_read(pid_t pid, struct proc_environ *ret)
{
    while (pid == HANGS)
        pause();
    return __real_proc_environ_read(pid, ret);
}

static usec_t skipped; /* what the clock is ahead by */
static usec_t skip;    /* and what it gains each time that it is looked at */
int __real_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret);

int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
    int r = __real_clock_gettime(id, ret);

    skipped += skip;
    ret->tv_sec += skipped / USEC_PER_SEC;
    return r;
}

struct seen {
    size_t n, read, home;
};

static void on_environ(void *ctx, size_t i, const struct proc_environ *env)
{
    struct seen *s = ctx;

    assert_int_equal(i, s->n);
    s->n++;
    s->read += env != NULL;
    s->home += env && proc_environ_get(env, "REKNIT_TEST_HERE");
}

static void look(const pid_t *pids, size_t n, struct seen *ret)
{
    *ret = (struct seen){0};
    environs_read(pids, n, on_environ, ret);
    assert_int_equal(ret->n, n);
}

static pid_t start_process(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        char *argv[] = {(char *)"/bin/sleep", (char *)"1000", NULL};
        char *env[] = {(char *)"REKNIT_TEST_HERE=1", NULL};

        execve(argv[0], argv, env);
        _exit(127);
    }
    assert_true(pid > 0);
    for (;;) { /* until it is what it will be */
        struct proc p;

        assert_int_equal(proc_read(pid, &p), 0);
        if (strcmp(p.comm, "sleep") == 0)
            return pid;
        sched_yield();
    }
}

static void end_process(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_all_are_told_in_order(void **state)
{
    pid_t pid = start_process(), pids[200];
    struct seen seen = {0};

    for (size_t i = 0; i < 200; i++)
        pids[i] = i % 2 ? pid : INT32_MAX;           /* nobody's number */
    UNTIL(seen.home == 100, look(pids, 200, &seen)); /* a machine may be too busy to be in time */
    assert_int_equal(seen.read, 100);
    environs_read(NULL, 0, on_environ, &seen);
    assert_int_equal(seen.n, 200);
    end_process(pid);
}

/* It is the one process that is not known; and however many there are, it takes a bounded time. */
static void test_one_that_hangs_hides_no_other(void **state)
{
    pid_t pid = start_process(), pids[] = {pid, HANGS, pid};
    pid_t hanging[20] = {HANGS, HANGS, HANGS, HANGS, HANGS, HANGS, HANGS, HANGS, HANGS, HANGS,
                         HANGS, HANGS, HANGS, HANGS, HANGS, HANGS, HANGS, HANGS, HANGS, HANGS};
    struct seen seen = {0};
    usec_t begun;

    UNTIL(seen.home == 2, look(pids, 3, &seen));
    assert_int_equal(seen.read, 2);
    begun = mono_us();
    look(hanging, 20, &seen);
    assert_int_equal(seen.read, 0);
    assert_true(mono_us() - begun < 60 * USEC_PER_SEC); /* for ever, it would be */
    end_process(pid);
    while (waitpid(-1, NULL, 0) > 0) /* the readers were killed */
        ;
    assert_int_equal(errno, ECHILD);
}

/* A machine may be so busy that the time is over before the first wait. */
static void test_a_late_wait_is_no_endless_one(void **state)
{
    struct seen seen = {0};
    pid_t hanging[] = {HANGS};

    for (skip = USEC_PER_SEC / 8; skip < 10 * USEC_PER_SEC; skip *= 2) {
        alarm(60); /* ends the test, should one wait for ever */
        look(hanging, 1, &seen);
        assert_int_equal(seen.read, 0);
    }
    alarm(0);
    skip = 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_told_in_order),
        cmocka_unit_test(test_one_that_hangs_hides_no_other),
        cmocka_unit_test(test_a_late_wait_is_no_endless_one),
    };

    return cmocka_run_group_tests_name("environs", tests, NULL, NULL);
}
