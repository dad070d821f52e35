/* SPDX-License-Identifier: Apache-2.0 */

/* What stands between the job and the rest: thinning of signals, the kept log, and what
 * is seen of processes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/proctree.h"
#include "base/str.h"
#include "source/activity.h"
#include "source/attempt_log.h"
#include "source/coalesce.h"
#include "source/sched_job.h"
#include "until.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Signals that came out. */
struct sink {
    VEC(struct signal) got;
};

static void take(void *ctx, const struct signal *s)
{
    struct sink *sink = ctx;

    *VEC_PUSH(&sink->got) = *s;
}

static struct signal step(int64_t n)
{
    struct signal s = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);

    s.step.step = n;
    return s;
}

static struct signal hit(const char *signature)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);

    s.role = ROLE_ROOT;
    STR_COPY(s.signature, signature);
    STR_COPY(s.text, "text");
    return s;
}

/* ---- coalesce ---- */

static void steps_come_once_a_second(void **state)
{
    struct sink sink = {0};
    struct coalesce *c = coalesce_new(take, &sink);

    (void)state;
    for (int64_t i = 0; i < 5000; i++) { /* 1,000 a second */
        struct signal s = step(i);

        coalesce_signal(c, &s, i * USEC_PER_MSEC);
    }
    assert_int_equal(sink.got.n, 5);
    assert_int_equal(sink.got.v[0].step.step, 0); /* the first at once */
    assert_int_equal(sink.got.v[4].step.step, 4000);
    assert_int_equal(coalesce_flush(c, 4999 * USEC_PER_MSEC, false), 5000 * USEC_PER_MSEC);
    assert_int_equal(coalesce_flush(c, 5000 * USEC_PER_MSEC, false), USEC_NEVER);
    assert_int_equal(sink.got.v[5].step.step, 4999); /* and the last is not lost */
    assert_int_equal(sink.got.v[0].step.more, 0);
    assert_int_equal(sink.got.v[4].step.more, 999);
    assert_int_equal(sink.got.v[5].step.more, 998);
    coalesce_free(c);
    VEC_DONE(&sink.got);
}

static void a_step_of_many_ranks_counts_once(void **state)
{
    struct sink sink = {0};
    struct coalesce *c = coalesce_new(take, &sink);

    (void)state;
    for (int64_t i = 0; i < 40; i++) { /* 8 ranks, of which every other is a step behind */
        struct signal s = step(1 + i / 8 + i % 2);

        coalesce_signal(c, &s, i * USEC_PER_MSEC);
    }
    coalesce_flush(c, USEC_PER_SEC, true);
    assert_int_equal(sink.got.n, 2);
    assert_int_equal(sink.got.v[1].step.more, 4);
    coalesce_free(c);
    VEC_DONE(&sink.got);
}

static void nothing_overtakes_a_step(void **state)
{
    struct sink sink = {0};
    struct coalesce *c = coalesce_new(take, &sink);
    struct signal one = step(1), two = step(2), error = hit("cuda.oom");

    (void)state;
    coalesce_signal(c, &one, 0);
    coalesce_signal(c, &two, 10);
    coalesce_signal(c, &error, 20);
    assert_int_equal(sink.got.n, 3);
    assert_int_equal(sink.got.v[1].step.step, 2);
    assert_string_equal(sink.got.v[2].signature, "cuda.oom");
    coalesce_free(c);
    VEC_DONE(&sink.got);
}

static void the_first_nan_is_not_swallowed(void **state)
{
    struct sink sink = {0};
    struct coalesce *c = coalesce_new(take, &sink);

    (void)state;
    for (int64_t i = 0; i < 10; i++) {
        struct signal s = step(i);

        s.step.loss = i < 5 ? 1 : METRIC_NAN;
        coalesce_signal(c, &s, i);
    }
    coalesce_flush(c, 10, true);
    assert_int_equal(sink.got.n, 3); /* the first, the last with a loss, the last without */
    assert_int_equal(sink.got.v[1].step.step, 4);
    assert_int_equal(sink.got.v[2].step.loss, METRIC_NAN);
    coalesce_free(c);
    VEC_DONE(&sink.got);
}

static void a_flood_of_errors_is_counted(void **state)
{
    struct sink sink = {0};
    struct coalesce *c = coalesce_new(take, &sink);
    struct signal rare = hit("cuda.ecc");
    size_t before;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        struct signal s = hit("nccl.timeout");

        coalesce_signal(c, &s, i);
    }
    before = sink.got.n;
    assert_true(before >= 50 && before <= 60);
    coalesce_signal(c, &rare, 10001); /* another kind still goes through */
    assert_int_equal(sink.got.n, before + 1);
    assert_string_equal(sink.got.v[before].signature, "cuda.ecc");
    assert_int_equal(coalesce_flush(c, 10002, false), USEC_PER_SEC);
    assert_int_equal(coalesce_flush(c, USEC_PER_SEC, false), USEC_NEVER);
    assert_int_equal(sink.got.n, before + 2);
    assert_string_equal(sink.got.v[before + 1].text, "text [9949 like this in a second]");
    coalesce_free(c);
    VEC_DONE(&sink.got);
}

static void a_count_does_not_cut_a_character(void **state)
{
    struct sink sink = {0};
    struct coalesce *c = coalesce_new(take, &sink);
    struct signal s = hit("x");
    char clean[EXCERPT_LEN];

    (void)state;
    for (size_t i = 0; i + 3 < sizeof(s.text); i += 3)
        memcpy(s.text + i, "\xe2\x82\xac", 3);
    s.text[sizeof(s.text) - 1] = '\0';
    for (int i = 0; i < 100; i++)
        coalesce_signal(c, &s, i);
    coalesce_flush(c, 100, true);
    str_sanitize(clean, sizeof(clean), sink.got.v[sink.got.n - 1].text,
                 strlen(sink.got.v[sink.got.n - 1].text));
    assert_string_equal(clean, sink.got.v[sink.got.n - 1].text);
    assert_non_null(strstr(clean, "like this in a second]"));
    coalesce_free(c);
    VEC_DONE(&sink.got);
}

static void output_only_breaks_silence(void **state)
{
    struct sink sink = {0};
    struct coalesce *c = coalesce_new(take, &sink);
    struct signal out = signal_make(SIGNAL_OUTPUT, PROVENANCE_JOB_TEXT), one = step(1);

    (void)state;
    for (int i = 0; i < 100; i++)
        coalesce_signal(c, &out, i * 30 * USEC_PER_MSEC);
    assert_int_equal(sink.got.n, 3);
    coalesce_signal(c, &one, 3500 * USEC_PER_MSEC);
    coalesce_signal(c, &out, 3900 * USEC_PER_MSEC);
    assert_int_equal(sink.got.n, 4);
    coalesce_free(c);
    VEC_DONE(&sink.got);
}

/* ---- attempt_log ---- */

static char folder[64];
static char path[128];

static int make_folder(void **state)
{
    (void)state;
    STR_COPY(folder, "/tmp/reknit-test-source-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/log", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char name[160];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "%s%s", path, (const char *[]){"", ".1", ".2"}[i]);
        unlink(name);
    }
    return rmdir(folder);
}

static char *read_file(const char *suffix)
{
    static char text[1 << 20];
    char name[160];
    ssize_t n;
    int fd;

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    fd = open(name, O_RDONLY);
    if (fd < 0)
        return NULL;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n < 0 ? 0 : n] = '\0';
    return text;
}

static void cr_lf_of_a_terminal_becomes_lf(void **state)
{
    static const char *const pieces[] = {"a\r\nb\r", "\nbar 1\rbar 2\r", "bar 3\r\n", "\r\r\n",
                                         "c\r"};
    struct attempt_log *l = NULL;

    (void)state;
    assert_int_equal(attempt_log_open(path, 1 << 20, true, &l, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
        attempt_log_write(l, pieces[i], strlen(pieces[i]));
    attempt_log_free(l);
    assert_string_equal(read_file(""), "a\nb\nbar 1\rbar 2\rbar 3\n\r\nc\r");
}

static void a_long_log_keeps_beginning_and_end(void **state)
{
    struct attempt_log *l = NULL;
    char line[64];
    struct stat st;
    off_t sum = 0;

    (void)state;
    assert_int_equal(attempt_log_open(path, 1 << 20, false, &l, NULL), 0);
    for (int i = 0; i < 400000; i++) { /* 8 MB */
        int n = snprintf(line, sizeof(line), "line number %07d\n", i);

        attempt_log_write(l, line, (size_t)n);
    }
    attempt_log_free(l);
    assert_non_null(strstr(read_file(""), "line number 0000000\n"));
    assert_non_null(strstr(read_file(""), "goes on in"));
    assert_non_null(strstr(read_file(".1"), "line number 0399999\n"));
    assert_non_null(strstr(read_file(".1"), "the beginning is in"));
    for (size_t i = 0; i < 3; i++) {
        char name[160];

        snprintf(name, sizeof(name), "%s%s", path, (const char *[]){"", ".1", ".2"}[i]);
        assert_int_equal(stat(name, &st), 0);
        sum += st.st_size;
    }
    assert_true(sum < (1 << 20) + 4 * 32768 + 2048);
}

static void a_log_that_cannot_be_written_is_counted(void **state)
{
    struct attempt_log *l = NULL;
    struct err e = {0};

    (void)state;
    assert_int_equal(attempt_log_open("/no/such/folder/log", 1 << 20, false, &l, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/no/such/folder/log"));
    assert_int_equal(symlink("/dev/full", path), 0);
    assert_int_equal(attempt_log_open(path, 1 << 20, false, &l, NULL), -ELOOP);
}

static void without_a_next_part_the_rest_is_counted_as_lost(void **state)
{
    static const char line[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n";
    struct attempt_log *l = NULL;
    char next[160];
    struct stat st;
    uint64_t lost;

    (void)state;
    snprintf(next, sizeof(next), "%s.1", path);
    assert_int_equal(mkdir(next, 0700), 0);
    assert_int_equal(attempt_log_open(path, 1 << 20, false, &l, NULL), 0);
    for (int i = 0; i < 1 << 15; i++) /* 2 MiB */
        attempt_log_write(l, line, sizeof(line) - 1);
    attempt_log_flush(l);
    lost = attempt_log_lost(l);
    assert_int_equal(attempt_log_error(l), -EISDIR);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal((uint64_t)st.st_size + lost, 2 << 20);
    assert_int_equal(st.st_size, 1 << 19); /* its half of the limit, and no notice */
    assert_int_equal(rmdir(next), 0);
    attempt_log_write(l, line, sizeof(line) - 1); /* there is room for one again */
    attempt_log_flush(l);
    assert_int_equal(attempt_log_lost(l), lost);
    attempt_log_free(l);
    assert_non_null(strstr(read_file(".1"), line));
}

/* ---- processes ---- */

/* A child that has RANK in the environment it was started with, and what it does. */
static pid_t start_ranked(const char *rank, const char *script)
{
    char variable[32];
    char *env[] = {variable, NULL};
    char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, xstrdup(script), NULL};
    pid_t pid;
    int ready[2];
    char c;

    snprintf(variable, sizeof(variable), "RANK=%s", rank);
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        dup2(ready[1], 1);
        close(ready[0]);
        close(ready[1]);
        execve("/bin/sh", argv, env);
        _exit(127);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1); /* it runs */
    close(ready[0]);
    free(argv[2]);
    return pid;
}

/* Until the child is stopped (WSTOPPED) or dead (WEXITED), without reaping it. */
static void await_state(pid_t pid, int what)
{
    siginfo_t info;

    assert_int_equal(waitid(P_PID, (id_t)pid, &info, what | WNOWAIT), 0);
}

static const struct signal *find_signal(const struct sink *sink, enum signal_kind kind,
                                        int32_t rank)
{
    VEC_FOREACH (&sink->got, s)
        if (s->kind == kind && s->who.rank == rank)
            return s;
    return NULL;
}

static void stopped_and_dead_ranks_are_named(void **state)
{
    pid_t stopped = start_ranked("3", "echo x; exec sleep 1000"),
          dead = start_ranked("5", "echo x; kill -STOP $$; exit 7"),
          busy = start_ranked("0", "echo x; while :; do :; done");
    struct sink sink = {0};
    struct activity *a = activity_new(take, &sink);
    const struct signal *s;

    (void)state;
    await_state(dead, WSTOPPED);
    activity_sample(a, getpid(), 0, USEC_PER_SEC);
    assert_int_equal(sink.got.n, 0); /* only the beginning */
    kill(dead, SIGCONT);
    kill(stopped, SIGSTOP);
    await_state(stopped, WSTOPPED);
    await_state(dead, WEXITED);
    activity_sample(a, getpid(), USEC_PER_SEC / 2, USEC_PER_SEC);
    s = find_signal(&sink, SIGNAL_ACTIVITY, 3);
    assert_non_null(s);
    assert_int_equal(s->activity.stopped, 1);
    assert_non_null(strstr(s->text, "rank 3"));
    s = find_signal(&sink, SIGNAL_EXIT, 5);
    assert_non_null(s);
    assert_int_equal(s->exit.code, 7);
    assert_int_equal(s->exit.pid, dead);
    s = &sink.got.v[sink.got.n - 1];
    assert_int_equal(s->who.rank, RANK_NONE);
    assert_int_equal(s->activity.interval, USEC_PER_SEC / 2);
    assert_int_equal(s->activity.stopped, 1);
    assert_true(s->activity.processes >= 2);
    sink.got.n = 0;
    activity_sample(a, getpid(), USEC_PER_SEC, USEC_PER_SEC);
    assert_null(find_signal(&sink, SIGNAL_ACTIVITY, 3)); /* told once */
    assert_null(find_signal(&sink, SIGNAL_EXIT, 5));
    assert_int_equal(sink.got.n, 1);
    activity_forget(a);
    activity_sample(a, getpid(), 3 * USEC_PER_SEC / 2, USEC_PER_SEC);
    assert_non_null(find_signal(&sink, SIGNAL_ACTIVITY, 3)); /* it still holds */
    sink.got.n = 1;
    activity_sample(a, getpid(), 10 * USEC_PER_SEC, USEC_PER_SEC);
    assert_int_equal(sink.got.n, 1); /* too long ago: a new beginning */
    kill(stopped, SIGKILL);
    kill(busy, SIGKILL);
    waitpid(stopped, NULL, 0);
    waitpid(dead, NULL, 0);
    waitpid(busy, NULL, 0);
    activity_free(a);
    VEC_DONE(&sink.got);
}

static void cpu_time_is_counted(void **state)
{
    pid_t busy = start_ranked("0", "echo x; while :; do :; done");
    struct sink sink = {0};
    struct activity *a = activity_new(take, &sink);
    struct proc p = {0};
    usec_t before;

    (void)state;
    activity_sample(a, getpid(), 0, USEC_PER_SEC);
    assert_int_equal(proc_read(busy, &p), 0);
    before = p.cpu;
    UNTIL(p.cpu >= before + 50 * USEC_PER_MSEC, {
        sched_yield();
        assert_int_equal(proc_read(busy, &p), 0);
    });
    activity_sample(a, getpid(), USEC_PER_SEC, USEC_PER_SEC);
    assert_int_equal(sink.got.n, 1);
    assert_true(sink.got.v[0].activity.cpu >= 50 * USEC_PER_MSEC);
    kill(busy, SIGKILL);
    waitpid(busy, NULL, 0);
    activity_free(a);
    VEC_DONE(&sink.got);
}

/* As another user than root, of a child that is not dumpable. Returns what a sample tells. */
static int64_t io_of_hidden_child(bool hidden)
{
    struct sink sink = {0};
    struct activity *a = activity_new(take, &sink);
    int ready[2];
    pid_t child;
    char c;

    if (pipe(ready) < 0 || (child = fork()) < 0)
        return -2;
    if (child == 0) {
        prctl(PR_SET_DUMPABLE, hidden ? 0 : 1);
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(0);
    }
    if (read(ready[0], &c, 1) != 1)
        return -2;
    activity_sample(a, getpid(), 0, USEC_PER_SEC);
    activity_sample(a, getpid(), USEC_PER_SEC, USEC_PER_SEC);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return sink.got.n == 1 ? sink.got.v[0].activity.io : -2;
}

static void io_that_may_not_be_read_is_unknown(void **state)
{
    pid_t pid = fork();
    int status;

    (void)state;
    if (pid == 0) {
        if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
            _exit(2);
        prctl(PR_SET_DUMPABLE, 1);
        _exit(io_of_hidden_child(false) != 0 ? 3 : io_of_hidden_child(true) != NUMBER_NONE ? 4 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void a_pid_that_was_given_away_is_not_signalled(void **state)
{
    pid_t pid = start_ranked("0", "echo x; exec sleep 1000");
    struct proc p, other;
    int status;

    (void)state;
    assert_int_equal(proc_read(pid, &p), 0);
    other = p;
    other.start--; /* as if that process had ended and its number been given away */
    assert_int_equal(proc_signal(&other, SIGKILL), 0);
    assert_int_equal(proc_signal(&p, SIGTERM), 0); /* the first deadly signal is what it dies of */
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    assert_int_equal(proc_signal(&p, SIGKILL), 0); /* gone is fine */
}

static _Noreturn void *never_ends(void *arg)
{
    for (;;)
        pause();
}

/* The first thread lies dead at once, as that of a killed process does while another one of it is
 * stuck in the kernel. */
static pid_t start_headless(void)
{
    pthread_t other;
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pthread_create(&other, NULL, never_ends, NULL) != 0)
            _exit(1);
        pthread_exit(NULL);
    }
    assert_true(pid > 0);
    return pid;
}

static void a_process_is_alive_while_any_of_its_threads_is(void **state)
{
    pid_t pid = start_headless();
    struct proc p = {0};

    UNTIL(p.state == 'Z', {
        sched_yield();
        assert_int_equal(proc_read(pid, &p), 0);
    });
    assert_false(proc_is_dead(&p));
    assert_int_equal(proc_lives(&p), 1);
    assert_int_equal(proc_signal(&p, SIGKILL), 0);
    UNTIL(proc_is_dead(&p), {
        sched_yield();
        assert_int_equal(proc_read(pid, &p), 0);
    });
    assert_int_equal(proc_lives(&p), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(proc_lives(&p), 0);
}

/* With room for `more` open files. */
static void limit_files(int more, struct rlimit *before)
{
    int next = dup(STDOUT_FILENO);
    struct rlimit limit;

    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
    limit = (struct rlimit){(rlim_t)(next + more), before->rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void what_cannot_be_looked_at_has_not_ended(void **state)
{
    struct proc_list all = {0}, tree = {0};
    struct rlimit before;
    struct proc self;
    int listed, told, lives, sent;

    assert_int_equal(proc_read(getpid(), &self), 0);
    limit_files(1, &before); /* for /proc itself, and none for what is in there */
    listed = proc_list_all(&all);
    told = proc_list_tree(getppid(), &tree);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    limit_files(0, &before);
    lives = proc_lives(&self);
    sent = proc_signal(&self, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(listed, -EMFILE);
    assert_int_equal(told, -EMFILE);
    assert_int_equal(all.procs.n + tree.procs.n, 0);
    assert_int_equal(lives, -EMFILE);
    assert_int_equal(sent, -EMFILE);
}

/* Children of children, and many of them: each once, parents before children, nobody else. */
static void a_tree_is_listed_from_its_root(void **state)
{
    _cleanup_proc_list_ struct proc_list tree = {0};
    int gate[2], ready[2], n = 0;
    char c;

    (void)state;
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    for (int i = 0; i < 40; i++)
        if (fork() == 0) {
            close(gate[1]);
            if (fork() == 0 && write(ready[1], "", 1) != 1)
                _exit(1);
            _exit(read(gate[0], &c, 1) == 0 && wait(NULL) > 0 ? 0 : 1);
        }
    for (int i = 0; i < 40; i++)
        assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(proc_list_tree(getpid(), &tree), 0);
    assert_int_equal(tree.procs.n, 80);
    VEC_FOREACH (&tree.procs, p) {
        bool seen = p->ppid == getpid();

        for (struct proc *q = tree.procs.v; q < p; q++) {
            assert_int_not_equal(q->pid, p->pid);
            seen |= q->pid == p->ppid;
        }
        assert_true(seen);
        assert_int_equal(p->session, getsid(0));
        n += p->ppid == getpid();
    }
    assert_int_equal(n, 40);
    close(gate[1]);
    while (wait(NULL) > 0)
        ;
    close(gate[0]);
    close(ready[0]);
    close(ready[1]);
}

static void an_environment_is_read_as_it_was_at_the_start(void **state)
{
    _cleanup_proc_environ_ struct proc_environ env = {0};
    char big[20000];
    int ready[2];
    pid_t pid;
    char c;

    (void)state;
    memset(big, 'x', sizeof(big) - 1);
    memcpy(big, "BIG=", 4);
    big[sizeof(big) - 1] = '\0';
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        dup2(ready[1], 1);
        execle("/bin/sh", "sh", "-c", "unset LAST; echo; kill -STOP $$", NULL,
               (char *[]){"EMPTY=", big, "LAST=one=two", NULL});
        _exit(1);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(proc_environ_read(pid, &env), 0);
    assert_string_equal(proc_environ_get(&env, "EMPTY"), "");
    assert_int_equal(strlen(proc_environ_get(&env, "BIG")), sizeof(big) - 5);
    assert_string_equal(proc_environ_get(&env, "LAST"), "one=two");
    assert_null(proc_environ_get(&env, "LAS"));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

static bool follows(const struct sched_job *r, uint32_t restarts, int64_t submit)
{
    struct sched_identity known = {
        .uid = 1000, .name = "llm", .restarts = restarts, .submit = submit};

    return sched_job_may_follow(r, &known);
}

static void a_requeue_is_the_same_job_and_a_number_given_again_is_not(void **state)
{
    char llm[] = "llm", other[] = "other";
    struct sched_job r = {.id = 7, .uid = 1000, .name = llm, .submit = 200, .restarts = 1};

    assert_true(follows(&r, 0, 100));
    assert_true(follows(&r, 1, 190)); /* it was requeued while it ran */
    assert_true(follows(&r, 1, 200));
    assert_false(follows(&r, 2, 100));
    assert_false(follows(&r, 1, 201));
    r.uid = 1001; /* nobody gives his job away */
    assert_false(follows(&r, 0, 100));
    assert_false(follows(&r, 1, 200));
    r.uid = 1000;
    r.name = other; /* it may have been renamed, if nothing else has happened to it */
    assert_false(follows(&r, 0, 100));
    assert_true(follows(&r, 1, 200));
    r.name = llm;
    r.restarts = 0;
    assert_true(follows(&r, 0, 200));
    assert_false(follows(&r, 0, 100));
}

static void a_job_that_is_requeued_and_renamed_between_two_looks_is_the_same(void **state)
{
    char llm[] = "llm", other[] = "other";
    struct sched_job before = {.id = 7, .uid = 1000, .name = llm, .submit = 100, .restarts = 2};
    struct sched_job after = {.id = 7, .uid = 1000, .name = other, .submit = 200, .restarts = 3};

    assert_true(sched_job_is_same(&before, &after));
    after.uid = 1001;
    assert_false(sched_job_is_same(&before, &after));
    after.uid = 1000;
    after.restarts = 0;
    assert_false(sched_job_is_same(&before, &after));
    before.restarts = 0;
    assert_false(sched_job_is_same(&before, &after));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_requeue_is_the_same_job_and_a_number_given_again_is_not),
        cmocka_unit_test(a_job_that_is_requeued_and_renamed_between_two_looks_is_the_same),
        cmocka_unit_test(steps_come_once_a_second),
        cmocka_unit_test(a_step_of_many_ranks_counts_once),
        cmocka_unit_test(nothing_overtakes_a_step),
        cmocka_unit_test(the_first_nan_is_not_swallowed),
        cmocka_unit_test(a_flood_of_errors_is_counted),
        cmocka_unit_test(a_count_does_not_cut_a_character),
        cmocka_unit_test(output_only_breaks_silence),
#define WITH_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
        WITH_FOLDER(cr_lf_of_a_terminal_becomes_lf),
        WITH_FOLDER(a_long_log_keeps_beginning_and_end),
        WITH_FOLDER(a_log_that_cannot_be_written_is_counted),
        WITH_FOLDER(without_a_next_part_the_rest_is_counted_as_lost),
        cmocka_unit_test(stopped_and_dead_ranks_are_named),
        cmocka_unit_test(cpu_time_is_counted),
        cmocka_unit_test(io_that_may_not_be_read_is_unknown),
        cmocka_unit_test(a_process_is_alive_while_any_of_its_threads_is),
        cmocka_unit_test(what_cannot_be_looked_at_has_not_ended),
        cmocka_unit_test(a_tree_is_listed_from_its_root),
        cmocka_unit_test(an_environment_is_read_as_it_was_at_the_start),
        cmocka_unit_test(a_pid_that_was_given_away_is_not_signalled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
