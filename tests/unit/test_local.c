/* SPDX-License-Identifier: Apache-2.0 */

/* The keeper and its other side. This program is its own keeper: local_start() executes
 * /proc/self/exe, and main() does then what reknit's does. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "action/keeper.h"
#include "action/local.h"
#include "base/proctree.h"
#include "base/str.h"
#include "until.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct attempt {
    sd_event *event;
    struct local *local;
    int said;     /* what the job prints */
    size_t heard; /* bytes of it */
    pid_t first;
    bool started, exited, unkept, gone, lost;
    int code, signal, start_error;
};

static void on_started(void *ctx, pid_t pid)
{
    struct attempt *a = ctx;

    a->started = true;
    a->first = pid;
}

static void on_start_failed(void *ctx, int error)
{
    ((struct attempt *)ctx)->start_error = error;
}

static void on_exited(void *ctx, pid_t pid, int code, int sig, bool unkept)
{
    struct attempt *a = ctx;

    assert_false(a->exited);
    assert_int_equal(pid, a->first);
    a->exited = true;
    a->code = code;
    a->signal = sig;
    a->unkept = unkept;
}

static void on_stuck(void *ctx, unsigned count, pid_t pid)
{
}

/* The proof that is promised: nothing descends from us any more. */
static void on_gone(void *ctx, bool keeper_lost)
{
    struct attempt *a = ctx;
    _cleanup_proc_list_ struct proc_list tree = {0};

    assert_false(a->gone);
    assert_true(a->exited);
    assert_int_equal(proc_list_tree(getpid(), &tree), 0);
    VEC_FOREACH (&tree.procs, p)
        assert_true(proc_is_dead(p) || streq(p->comm, "job-keeper"));
    a->gone = true;
    a->lost = keeper_lost;
    sd_event_exit(a->event, 0);
}

static const struct local_handlers handlers = {.started = on_started,
                                               .start_failed = on_start_failed,
                                               .exited = on_exited,
                                               .stuck = on_stuck,
                                               .gone = on_gone};

/* Returns whether there may be more. */
static bool listen_on(struct attempt *a)
{
    char text[64];
    ssize_t n = read(a->said, text, sizeof(text));

    a->heard += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static int on_said(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
    return listen_on(userdata) ? 0 : sd_event_source_set_enabled(s, SD_EVENT_OFF);
}

static void start(struct attempt *a, char *script)
{
    char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, script, NULL}, *env[] = {NULL};
    struct local_spec spec = {.argv = argv,
                              .env = env,
                              .in = open("/dev/null", O_RDWR | O_CLOEXEC),
                              .err = STDERR_FILENO,
                              .terminal = -1,
                              .restore = -1,
                              .cgroup_name = "reknit-test-local"};
    struct err e = {0};
    sigset_t mask, before;
    int out[2];

    *a = (struct attempt){0};
    assert_true(sd_event_new(&a->event) >= 0);
    a->local = local_new(a->event, &handlers, a);
    assert_non_null(a->local);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    a->said = out[0];
    assert_true(sd_event_add_io(a->event, NULL, a->said, EPOLLIN, on_said, a) >= 0);
    spec.out = out[1];
    spec.lock = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT); /* as reknit has it by then; it did not begin so */
    sigprocmask(SIG_BLOCK, &mask, &before);
    assert_int_equal(local_start(a->local, &spec, &e), 0);
    sigprocmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(local_start(a->local, &spec, &e), -EBUSY);
    close(spec.in);
    close(spec.lock);
    close(out[1]);
}

/* Runs the loop until the job has printed so many bytes in all. */
static void await(struct attempt *a, size_t bytes)
{
    UNTIL(a->heard >= bytes, assert_true(sd_event_run(a->event, USEC_PER_SEC) >= 0));
}

static void finish(struct attempt *a)
{
    assert_int_equal(sd_event_loop(a->event), 0);
    assert_true(a->gone);
    while (listen_on(a))
        ;
    assert_true(local_is_idle(a->local));
    local_free(a->local);
    sd_event_unref(a->event);
    close(a->said);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    assert_int_equal(errno, ECHILD);
}

static void a_job_that_ends_is_told_as_it_ended(void **state)
{
    struct attempt a;

    start(&a, (char[]){"exit 7"});
    finish(&a);
    assert_true(a.started);
    assert_int_equal(a.code, 7);
    assert_false(a.lost);
}

static void what_is_left_is_killed_in_the_end(void **state)
{
    struct attempt a;

    start(&a, (char[]){"trap '' TERM; (setsid sh -c 'trap \"\" TERM; echo; sleep 1000' &); echo; "
                       "sleep 1000; sleep 1000"});
    await(&a, 2);
    local_kill(a.local, LOCAL_GROUP, SIGTERM, 50 * USEC_PER_MSEC);
    finish(&a);
    assert_int_equal(a.signal, SIGKILL);
    assert_false(a.lost);
}

#define REST "while :; do sleep 0.01; done"

/* Each of them, in whatever group and session, gets the signal, and time to act on it. */
static void a_kill_of_all_asks_every_process_first(void **state)
{
    struct attempt a;

    start(&a, (char[]){"exec 2>/dev/null; trap 'echo; exit 3' TERM; "
                       "setsid sh -c 'trap \"echo; exit\" TERM; echo; " REST "' & echo; " REST});
    await(&a, 2);
    local_kill(a.local, LOCAL_ALL, SIGTERM, USEC_PER_HOUR);
    finish(&a);
    assert_int_equal(a.code, 3);
    assert_int_equal(a.heard, 4);
}

static void a_kill_of_all_ends_what_does_not_listen(void **state)
{
    struct attempt a;

    start(&a, (char[]){"exec 2>/dev/null; trap 'exit 3' TERM; "
                       "setsid sh -c 'trap \"\" TERM; echo; " REST "' & echo; " REST});
    await(&a, 2);
    local_kill(a.local, LOCAL_ALL, SIGTERM, USEC_PER_SEC);
    finish(&a);
    assert_int_equal(a.code, 3);
}

/* Its children become ours, and we do what it would have done. */
static void a_keeper_that_is_killed_is_replaced(void **state)
{
    struct attempt a;

    start(&a, (char[]){"trap '' TERM HUP; (setsid sh -c 'trap \"\" TERM; echo; sleep 1000' &); "
                       "sleep 1000 & echo; wait; sleep 1000"});
    await(&a, 2);
    kill(local_keeper(a.local), SIGKILL);
    finish(&a);
    assert_true(a.lost);
    assert_true(a.unkept);
    assert_int_equal(a.signal, SIGKILL);
    assert_int_equal(a.code, -1);
}

static void a_keeper_that_is_killed_early_leaves_nothing(void **state)
{
    for (int i = 0; i < 20; i++) {
        struct attempt a;

        usec_t then;

        start(&a, (char[]){"setsid sleep 1000 & sleep 1000"});
        then = mono_us() + i * USEC_PER_MSEC; /* somewhere between fork and exec, here or there */
        UNTIL(mono_us() >= then, sched_yield());
        kill(local_keeper(a.local), SIGKILL);
        finish(&a);
        assert_true(a.lost);
    }
}

/* Ctrl-C, just when an attempt begins: reknit hears it, and ends the job; its keeper stays. */
static void a_signal_ends_no_keeper_however_early(void **state)
{
    for (int i = 0; i < 20; i++) {
        struct attempt a;
        usec_t then;

        start(&a, (char[]){"exit 7"});
        then = mono_us() + i * 200;
        UNTIL(mono_us() >= then, sched_yield());
        kill(local_keeper(a.local), SIGINT);
        finish(&a);
        assert_false(a.lost);
        assert_int_equal(a.code, 7);
    }
}

/* As when reknit is killed: the end of the socket is an order. */
static void the_end_of_the_socket_ends_the_job(void **state)
{
    struct attempt a;
    struct pollfd p;
    char c;

    start(&a, (char[]){"trap '' TERM; echo; sleep 1000; sleep 1000"});
    await(&a, 1);
    local_free(a.local);
    p = (struct pollfd){.fd = a.said, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 30000), 1);
    assert_int_equal(read(a.said, &c, 1), 0); /* nobody holds its output any more */
    close(a.said);
    sd_event_unref(a.event);
    while (waitpid(-1, NULL, 0) > 0)
        ;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_ends_is_told_as_it_ended),
        cmocka_unit_test(what_is_left_is_killed_in_the_end),
        cmocka_unit_test(a_kill_of_all_asks_every_process_first),
        cmocka_unit_test(a_kill_of_all_ends_what_does_not_listen),
        cmocka_unit_test(a_keeper_that_is_killed_is_replaced),
        cmocka_unit_test(a_keeper_that_is_killed_early_leaves_nothing),
        cmocka_unit_test(a_signal_ends_no_keeper_however_early),
        cmocka_unit_test(the_end_of_the_socket_ends_the_job),
    };

    if (argc > 1 && streq(argv[1], KEEPER_VERB))
        return keeper_main(argc - 1, argv + 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
