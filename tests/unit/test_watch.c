/* SPDX-License-Identifier: Apache-2.0 */

/* What the agent watches has a bound, and what is beyond it is counted: "gone" is said of nothing
 * that was not watched. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/watch.h"
#include "base/str.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct fixture {
    sd_event *event;
    struct watch *watch;
    char path[64];
    pid_t stepd, task;
};

static void on_message(void *ctx, const struct node_message *m)
{
}

/* A process that is called as Slurm's is, and what it has started. */
static void start_step(struct fixture *f)
{
    int pair[2];

    assert_return_code(pipe(pair), errno);
    f->stepd = fork();
    assert_return_code(f->stepd, errno);
    if (f->stepd == 0) {
        pid_t task;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "slurmstepd");
        task = fork();
        if (task == 0)
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        else
            (void)!write(pair[1], &task, sizeof(task));
        for (;;)
            pause();
    }
    assert_int_equal(read(pair[0], &f->task, sizeof(f->task)), sizeof(f->task));
    close(pair[0]);
    close(pair[1]);
}

static int set_up(void **state)
{
    static const struct watch_handlers handlers = {.activity = on_message, .gone = on_message};
    struct fixture *f = calloc(1, sizeof(*f));
    int fd;

    *state = f;
    STR_COPY(f->path, "/tmp/reknit-watch-XXXXXX");
    fd = mkstemp(f->path);
    assert_return_code(fd, errno);
    close(fd);
    assert_return_code(sd_event_new(&f->event), 0);
    f->watch = watch_new(f->event, "n1", f->path, USEC_PER_HOUR, &handlers, f);
    assert_non_null(f->watch);
    start_step(f);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    kill(f->task, SIGKILL);
    kill(f->stepd, SIGKILL);
    waitpid(f->stepd, NULL, 0);
    watch_free(f->watch);
    sd_event_unref(f->event);
    unlink(f->path);
    free(f);
    return 0;
}

static void tell_task(struct fixture *f, uint32_t job)
{
    struct node_message m = {.kind = NODE_MESSAGE_START, .job = job};

    m.task.pid = f->task;
    watch_task(f->watch, &m);
}

/* As a run before left them; their numbers begin at 1000. */
static void remember_attempts(const struct fixture *f, int n)
{
    FILE *file = fopen(f->path, "w");

    assert_non_null(file);
    fprintf(file, "reknit-attempts 1\n");
    for (int i = 0; i < n; i++)
        fprintf(file, "%d 0 0\n", 1000 + i);
    fclose(file);
}

static void a_step_is_watched_once(void **state)
{
    struct fixture *f = *state;

    tell_task(f, 7);
    assert_int_equal(watch_count(f->watch), 1);
    tell_task(f, 7); /* another task of it */
    assert_int_equal(watch_count(f->watch), 1);
    assert_int_equal(watch_missed(f->watch), 0);
}

/* Of more attempts than fit it is said that they are missed; of those that are known steps go on
 * being watched. */
static void too_many_attempts_are_missed_and_counted(void **state)
{
    struct fixture *f = *state;
    uint64_t missed;
    size_t count;

    remember_attempts(f, WATCH_ATTEMPTS_MAX);
    watch_recover(f->watch); /* also what a real Slurm may run here */
    missed = watch_missed(f->watch);
    count = watch_count(f->watch);
    tell_task(f, 7);
    assert_int_equal(watch_missed(f->watch), missed + 1);
    assert_int_equal(watch_count(f->watch), count);
    tell_task(f, 1000 + WATCH_ATTEMPTS_MAX - 1);
    assert_int_equal(watch_missed(f->watch), missed + 1);
    assert_int_equal(watch_count(f->watch), count + 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(a_step_is_watched_once),
        TEST(too_many_attempts_are_missed_and_counted),
    };

    if (geteuid() != 0) {
        printf("1..0 # SKIP the steps of Slurm are root's\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
