/* SPDX-License-Identifier: Apache-2.0 */

/* What the agent watches has a bound, and what is beyond it is counted: "gone" is said of nothing
 * that was not watched. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/attempts.h"
#include "agent/outputs.h"
#include "agent/watch.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "until.h"

struct fixture {
    sd_event *event;
    struct watch *watch;
    char path[64], folder[64];
    pid_t stepd, task;
    int children; /* of the task */
    bool deaf;
    struct node_message log; /* the last that was told */
    char first[NODE_PATH_LEN], last[NODE_PATH_LEN];
    unsigned logs;
};

static void on_gone(void *ctx, const struct node_message *m)
{
}

static bool on_activity(void *ctx, const struct node_message *m)
{
    return true;
}

static bool on_logs(void *ctx, const struct node_message *m)
{
    struct fixture *f = ctx;

    f->log = *m;
    for (const char *path = NULL; (path = node_paths_next(&m->paths, path));) {
        if (f->logs++ == 0)
            STR_COPY(f->first, path);
        STR_COPY(f->last, path);
    }
    return !f->deaf;
}

static const struct watch_handlers handlers = {
    .activity = on_activity, .logs = on_logs, .gone = on_gone};

static void write_to(const struct fixture *f, const char *name, int fd)
{
    char path[128];
    int file;

    snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || dup2(file, fd) < 0)
        _exit(1);
    close(file);
}

static const struct fixture *redirecting; /* in a task */

static void redirect(int sig)
{
    write_to(redirecting, "late.log", STDOUT_FILENO);
}

/* Its output is that of all, and each of its children has an own one for errors. */
static _Noreturn void be_task(struct fixture *f, int ready)
{
    char name[16];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    redirecting = f;
    signal(SIGUSR1, redirect);
    write_to(f, "all.log", STDOUT_FILENO);
    for (int i = 0; i < f->children; i++) {
        pid_t parent = getpid();

        if (fork() != 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        snprintf(name, sizeof(name), "%d.log", i);
        write_to(f, name, STDERR_FILENO);
        (void)!write(ready, "", 1);
        for (;;)
            pause();
    }
    (void)!write(ready, "", 1);
    for (;;)
        pause();
}

/* A process that is called as Slurm's is, and what it has started. */
static void start_step(struct fixture *f)
{
    int pair[2], ready[2];
    char c;

    assert_return_code(pipe(pair), errno);
    assert_return_code(pipe(ready), errno);
    f->stepd = fork();
    assert_return_code(f->stepd, errno);
    if (f->stepd == 0) {
        pid_t task;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "slurmstepd");
        task = fork();
        if (task == 0)
            be_task(f, ready[1]);
        (void)!write(pair[1], &task, sizeof(task));
        for (;;)
            pause();
    }
    assert_int_equal(read(pair[0], &f->task, sizeof(f->task)), sizeof(f->task));
    for (int i = 0; i <= f->children; i++)
        assert_int_equal(read(ready[0], &c, 1), 1);
    for (int i = 0; i < 2; i++) {
        close(pair[i]);
        close(ready[i]);
    }
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    int fd;

    f->children = *state ? *(const int *)*state : 0;
    *state = f;
    STR_COPY(f->folder, "/tmp/reknit-watch-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
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

static void remove_file(const struct fixture *f, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    unlink(path);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char name[16];

    kill(f->task, SIGKILL);
    kill(f->stepd, SIGKILL);
    waitpid(f->stepd, NULL, 0);
    watch_free(f->watch);
    sd_event_unref(f->event);
    unlink(f->path);
    remove_file(f, "all.log");
    remove_file(f, "late.log");
    for (int i = 0; i < f->children; i++) {
        snprintf(name, sizeof(name), "%d.log", i);
        remove_file(f, name);
    }
    assert_return_code(rmdir(f->folder), errno);
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

    remember_attempts(f, ATTEMPTS_MAX);
    watch_recover(f->watch); /* also what a real Slurm may run here */
    missed = watch_missed(f->watch);
    count = watch_count(f->watch);
    tell_task(f, 7);
    assert_int_equal(watch_missed(f->watch), missed + 1);
    assert_int_equal(watch_count(f->watch), count);
    tell_task(f, 1000 + ATTEMPTS_MAX - 1);
    assert_int_equal(watch_missed(f->watch), missed + 1);
    assert_int_equal(watch_count(f->watch), count + 1);
}

static void run_until_logs(struct fixture *f, unsigned n)
{
    UNTIL(f->logs >= n, assert_return_code(sd_event_run(f->event, 100 * USEC_PER_MSEC), 0));
    assert_int_equal(f->logs, n); /* a look tells all that it sees before the loop goes on */
}

static void assert_log(const struct fixture *f, const char *path, const char *name)
{
    char expected[128];

    snprintf(expected, sizeof(expected), "%s/%s", f->folder, name);
    assert_string_equal(path, expected);
}

static bool has_redirected(const struct fixture *f)
{
    char link[32], path[128] = "";

    snprintf(link, sizeof(link), "/proc/%d/fd/1", (int)f->task);
    return readlink(link, path, sizeof(path) - 1) > 0 && str_endswith(path, "/late.log");
}

static void logs_are_told_once_the_shared_first(void **state)
{
    struct fixture *f = *state;

    tell_task(f, 7);
    run_until_logs(f, 3);
    assert_int_equal(f->log.kind, NODE_MESSAGE_LOGS);
    assert_int_equal(f->log.job, 7);
    assert_string_equal(f->log.node, "n1");
    assert_log(f, f->first, "all.log");
    assert_log(f, f->last, "1.log");
    kill(f->task, SIGUSR1); /* a script redirects when it has begun */
    UNTIL(has_redirected(f), sched_yield());
    tell_task(f, 7); /* should that have taken until the later look was over */
    run_until_logs(f, 4);
    assert_log(f, f->last, "late.log");
    watch_repeat(f->watch);
    run_until_logs(f, 8);
}

/* More often than the looks behind the start of a task are. */
static void samples_tell_again_what_could_not_be_told(void **state)
{
    struct fixture *f = *state;

    watch_free(f->watch);
    f->watch = watch_new(f->event, "n1", f->path, 50 * USEC_PER_MSEC, &handlers, f);
    assert_non_null(f->watch);
    f->deaf = true;
    tell_task(f, 7);
    UNTIL(f->logs >= 5 * 3, assert_return_code(sd_event_run(f->event, 100 * USEC_PER_MSEC), 0));
    assert_log(f, f->last, "1.log");
}

static void more_logs_than_a_job_may_have_are_not_told(void **state)
{
    struct fixture *f = *state;

    tell_task(f, 7);
    run_until_logs(f, OUTPUTS_MAX);
    assert_log(f, f->first, "all.log");
}

static int open_in(const struct fixture *f, const char *name, int flags)
{
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    fd = open(path, flags | O_CLOEXEC, 0600);
    assert_return_code(fd, errno);
    return fd;
}

static int at_number(int fd, int number)
{
    assert_return_code(dup2(fd, number), errno);
    close(fd);
    return number;
}

/* It reads the script, and what it has open for both may be anything. */
static void of_srun_all_that_it_only_writes_counts(void **state)
{
    struct fixture *f = *state;
    _cleanup_strbuf_ struct strbuf text = {0};
    int fds[] = {open_in(f, "all.log", O_RDONLY),
                 at_number(open_in(f, "late.log", O_WRONLY | O_CREAT), 107),
                 open_in(f, "rw", O_RDWR | O_CREAT), open_in(f, "gone", O_WRONLY | O_CREAT),
                 open_in(f, "two\nlines", O_WRONLY | O_CREAT)};
    char name[17];

    remove_file(f, "rw");
    remove_file(f, "gone");
    assert_return_code(prctl(PR_GET_NAME, name), errno);
    assert_int_equal(outputs_read(getpid(), &text), 0);
    assert_null(memmem(strbuf_str(&text), text.len, "late.log", sizeof("late.log")));
    assert_return_code(prctl(PR_SET_NAME, "srun"), errno);
    strbuf_reset(&text);
    assert_int_equal(outputs_read(getpid(), &text), 0);
    assert_return_code(prctl(PR_SET_NAME, name), errno);
    assert_non_null(memmem(strbuf_str(&text), text.len, "late.log", sizeof("late.log")));
    for (size_t i = 0; i < text.len; i += strlen(text.s + i) + 1)
        assert_true(!str_startswith(text.s + i, f->folder) ||
                    str_endswith(text.s + i, "/late.log"));
    remove_file(f, "two\nlines");
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
}

int main(void)
{
    static int few = 2, many = 80;

#define TEST(f)       cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define TEST_OF(f, n) cmocka_unit_test_prestate_setup_teardown(f, set_up, tear_down, n)
    static const struct CMUnitTest tests[] = {
        TEST(a_step_is_watched_once),
        TEST(too_many_attempts_are_missed_and_counted),
        TEST_OF(logs_are_told_once_the_shared_first, &few),
        TEST_OF(samples_tell_again_what_could_not_be_told, &few),
        TEST_OF(more_logs_than_a_job_may_have_are_not_told, &many),
        TEST(of_srun_all_that_it_only_writes_counts),
    };

    if (geteuid() != 0) {
        printf("1..0 # SKIP the steps of Slurm are root's\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
