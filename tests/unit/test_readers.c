/* SPDX-License-Identifier: Apache-2.0 */

/* The daemon's side of readers: real ones that are killed and stopped, and one that lies. */

#include "base/cleanup.h"
#include "base/proctree.h"
#include "base/str.h"
#include "base/vec.h"
#include "source/readers.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "listens.h"
#include "until.h"

#define JOB "7-1700000000"
#define RUN_UNTIL(event, condition)                                                                \
    UNTIL(condition, assert_true(sd_event_run(event, 100 * USEC_PER_MSEC) >= 0))

struct world {
    sd_event *event;
    struct children *children;
    struct readers *readers;
    char dir[64], log[96], state[96]; /* state: as src/source/reader_state.c names it */
    int folder;
    const char *spawner; /* its socket, or NULL */
    uid_t uid;           /* of the job */
    const char *job;     /* of which signals come */
    usec_t started;      /* the attempt that is followed next; 0 = now */
    VEC(uint64_t) lines; /* of root signals, in the order they came */
    unsigned signals, gaps, drained, running, states, read, unread, named;
    uint32_t named_file;
    size_t roots_before; /* it was named */
    struct signal last;
    char last_gap[256], last_state[256], last_file[256], last_trouble[256];
    char last_named[256];
};

static void on_signal(void *ctx, const char *job, uint32_t attempt, const struct signal *s)
{
    struct world *w = ctx;

    assert_string_equal(job, w->job);
    assert_int_equal(s->provenance, PROVENANCE_JOB_TEXT);
    w->signals++;
    w->last = *s;
    if (s->role == ROLE_ROOT)
        *VEC_PUSH(&w->lines) = s->line;
}

static void on_gap(void *ctx, const char *job, uint32_t attempt, const char *text)
{
    struct world *w = ctx;

    w->gaps++;
    STR_COPY(w->last_gap, text);
}

static void on_drained(void *ctx, const char *job, uint32_t attempt)
{
    ((struct world *)ctx)->drained++;
}

static void on_read(void *ctx, const char *job, uint32_t attempt, bool is_read)
{
    struct world *w = ctx;
    bool meant = strcmp(job, w->job) == 0;

    w->read += meant && is_read;
    w->unread += meant && !is_read;
}

static void on_file(void *ctx, const char *job, uint32_t attempt, uint32_t file, const char *path,
                    const char *trouble)
{
    struct world *w = ctx;

    STR_COPY(w->last_file, path);
    STR_COPY(w->last_trouble, trouble ? trouble : "");
}

static void on_named(void *ctx, const char *job, uint32_t attempt, uint32_t file, const char *path,
                     const char *trouble)
{
    struct world *w = ctx;

    assert_null(trouble);
    w->named++;
    w->roots_before = w->lines.n;
    w->named_file = file;
    STR_COPY(w->last_named, path);
}

static void on_state(void *ctx, uid_t uid, const char *node, const char *text)
{
    struct world *w = ctx;

    w->states++;
    w->running += streq(text, "running");
    STR_COPY(w->last_state, text);
}

static const struct readers_handlers handlers = {.signal = on_signal,
                                                 .gap = on_gap,
                                                 .drained = on_drained,
                                                 .read = on_read,
                                                 .file = on_file,
                                                 .named = on_named,
                                                 .reader_state = on_state};

static void open_readers(struct world *w, const char *programs)
{
    struct children_config cc = {.programs = programs, .spawner = w->spawner};
    struct readers_config c = {
        .state_dir = w->folder, .ping_every = 100 * USEC_PER_MSEC, .ping_patience = USEC_PER_SEC};

    w->children = children_new(w->event, &cc);
    c.children = w->children;
    w->readers = readers_new(w->event, &c, &handlers, w);
    assert_non_null(w->readers);
}

static void close_readers(struct world *w)
{
    w->readers = readers_free(w->readers);
    w->children = children_free(w->children);
}

static void begin(struct world *w, const char *programs)
{
    *w = (struct world){.dir = "/tmp/reknit-readers-XXXXXX", .uid = getuid(), .job = JOB};
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->log, sizeof(w->log), "%s/slurm-7.out", w->dir);
    snprintf(w->state, sizeof(w->state), "%s/offsets", w->dir);
    w->folder = open(w->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_return_code(w->folder, errno);
    assert_true(sd_event_new(&w->event) >= 0);
    open_readers(w, programs);
}

static void end(struct world *w)
{
    close_readers(w);
    sd_event_unref(w->event);
    VEC_DONE(&w->lines);
    unlink(w->log);
    unlink(w->state);
    close(w->folder);
    rmdir(w->dir);
}

static int follow(struct world *w, uint32_t attempt)
{
    struct log_paths p = {
        .work_dir = w->dir, .job_id = 7, .array_task_id = LOG_NO_TASK, .started_us = now_us()};

    if (w->started > 0)
        p.started_us = w->started;
    return readers_follow(w->readers, w->uid, (gid_t)-1, JOB, attempt, &p);
}

/* A line that is a failure by itself, no two alike. */
static void print(struct world *w, int from, int to)
{
    FILE *f = fopen(w->log, "a");

    assert_non_null(f);
    for (int i = from; i < to; i++)
        fprintf(f, "RuntimeError: CUDA error: uncorrectable ECC error encountered (%d)\n", i);
    fclose(f);
}

static void check_lines(const struct world *w, size_t n)
{
    assert_int_equal(w->lines.n, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(w->lines.v[i], i + 1);
}

/* sig 0: only counts them. */
static unsigned signal_readers(int sig)
{
    _cleanup_proc_list_ struct proc_list l = {0};
    unsigned n = 0;

    assert_int_equal(proc_list_tree(getpid(), &l), 0);
    VEC_FOREACH (&l.procs, p)
        if (streq(p->comm, "reknit-reader") && !proc_is_dead(p)) {
            if (sig != 0)
                assert_int_equal(proc_signal(p, sig), 0);
            n++;
        }
    return n;
}

/* One that was killed has closed its socket a moment before it is dead. */
static void signal_reader(int sig)
{
    UNTIL(signal_readers(0) <= 1, sched_yield());
    assert_int_equal(signal_readers(sig), 1);
}

static void test_signals_and_drain(void **state)
{
    struct world w;

    begin(&w, READER_FOLDER);
    assert_int_equal(follow(&w, 1), 0);
    print(&w, 0, 3);
    RUN_UNTIL(w.event, w.lines.n == 3);
    assert_string_equal(w.last_file, w.log);
    assert_string_equal(w.last_trouble, "");
    print(&w, 3, 5);
    readers_drain(w.readers, JOB, 1);
    RUN_UNTIL(w.event, w.drained == 1);
    check_lines(&w, 5);
    assert_int_equal(w.gaps, 0);
    end(&w);
}

static void test_killed_reader_is_replaced_without_loss_or_repetition(void **state)
{
    struct world w;

    begin(&w, READER_FOLDER);
    assert_int_equal(follow(&w, 1), 0);
    print(&w, 0, 5);
    for (size_t n = 5; n <= 15; n += 5) {
        RUN_UNTIL(w.event, w.lines.n >= n && w.running == n / 5);
        signal_reader(SIGKILL);
        print(&w, (int)n, (int)n + 5);
    }
    RUN_UNTIL(w.event, w.lines.n >= 20);
    readers_drain(w.readers, JOB, 1);
    RUN_UNTIL(w.event, w.drained == 1);
    check_lines(&w, 20);
    end(&w);
}

static void test_stopped_reader_hangs_and_is_replaced(void **state)
{
    struct readers_counts c;
    struct world w;

    begin(&w, READER_FOLDER);
    assert_int_equal(follow(&w, 1), 0);
    print(&w, 0, 2);
    RUN_UNTIL(w.event, w.lines.n == 2);
    signal_reader(SIGSTOP);
    print(&w, 2, 4);
    RUN_UNTIL(w.event, strstr(w.last_state, "hung"));
    readers_counts(w.readers, &c);
    assert_int_equal(c.hung, 1);
    RUN_UNTIL(w.event, w.lines.n == 4);
    RUN_UNTIL(w.event, (readers_counts(w.readers, &c), c.hung == 0));
    assert_int_equal(c.running, 1);
    assert_int_equal(c.replaced, 1);
    check_lines(&w, 4);
    end(&w);
}

static void check_read(const struct world *w, unsigned unread, unsigned read)
{
    assert_int_equal(w->unread, unread);
    assert_int_equal(w->read, read);
}

static void test_who_waits_for_the_end_knows_whether_anybody_reads(void **state)
{
    struct world w;

    begin(&w, READER_FOLDER);
    assert_int_equal(follow(&w, 1), 0);
    check_read(&w, 1, 0); /* its first reader is being started */
    readers_drain(w.readers, JOB, 1);
    readers_drain(w.readers, JOB, 1);
    check_read(&w, 2, 0);
    RUN_UNTIL(w.event, w.drained == 1);
    check_read(&w, 2, 1);

    assert_int_equal(follow(&w, 2), 0);
    check_read(&w, 2, 2);
    signal_reader(SIGSTOP);
    readers_drain(w.readers, JOB, 2);
    check_read(&w, 2, 3);
    print(&w, 0, 3);
    signal_reader(SIGKILL);
    RUN_UNTIL(w.event, w.unread == 3);
    check_read(&w, 3, 3);
    RUN_UNTIL(w.event, w.drained == 2);
    check_read(&w, 3, 4);
    check_lines(&w, 3);
    end(&w);
}

static void test_who_takes_silence_for_a_sign_knows_whether_anybody_reads(void **state)
{
    struct world w;

    begin(&w, READER_FOLDER);
    assert_int_equal(follow(&w, 1), 0);
    RUN_UNTIL(w.event, w.read == 1);
    check_read(&w, 1, 1);
    signal_reader(SIGSTOP); /* it hangs */
    RUN_UNTIL(w.event, w.unread == 2);
    RUN_UNTIL(w.event, w.read == 2);
    signal_reader(SIGKILL);
    RUN_UNTIL(w.event, w.unread == 3);
    RUN_UNTIL(w.event, w.read == 3);
    readers_add_file(w.readers, JOB, 1, "/proc/version", NULL); /* no look, and nothing new */
    assert_int_equal(follow(&w, 1), 0);
    check_read(&w, 3, 3);
    end(&w);
}

static void test_next_daemon_goes_on(void **state)
{
    struct world w;

    begin(&w, READER_FOLDER);
    assert_int_equal(follow(&w, 1), 0);
    print(&w, 0, 3);
    readers_drain(w.readers, JOB, 1);
    RUN_UNTIL(w.event, w.drained == 1);
    close_readers(&w);
    print(&w, 3, 6);
    open_readers(&w, READER_FOLDER);
    assert_int_equal(follow(&w, 1), 0);
    readers_drain(w.readers, JOB, 1);
    RUN_UNTIL(w.event, w.drained == 2);
    check_lines(&w, 6);
    end(&w);
}

/* What a node has told of is read on by the next daemon, though no node told that one. */
static void test_files_as_they_are(void **state)
{
    _cleanup_(freep) char *path = NULL;
    struct world w;

    begin(&w, READER_FOLDER);
    path = xasprintf("%s/%%j 100%%\\t", w.dir);
    assert_int_equal(readers_add_file(w.readers, JOB, 1, path, NULL), -ENOENT);
    assert_int_equal(follow(&w, 1), 0);
    assert_int_equal(readers_add_file(w.readers, JOB, 2, path, NULL), -ENOENT);
    assert_int_equal(readers_add_file(w.readers, JOB, 1, "no path", NULL), -EINVAL);
    assert_int_equal(readers_add_file(w.readers, JOB, 1, path, NULL), 0);
    STR_COPY(w.log, path);
    print(&w, 0, 2);
    RUN_UNTIL(w.event, w.lines.n == 2);
    assert_int_equal(readers_add_file(w.readers, JOB, 1, path, NULL), 0);
    readers_drain(w.readers, JOB, 1);
    RUN_UNTIL(w.event, w.drained == 1);
    close_readers(&w);
    print(&w, 2, 4);
    open_readers(&w, READER_FOLDER);
    assert_int_equal(follow(&w, 1), 0);
    readers_drain(w.readers, JOB, 1);
    RUN_UNTIL(w.event, w.drained == 2);
    check_lines(&w, 4);
    end(&w);
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "a");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* Once, and not of a file that only shows that it is there. */
static void test_a_file_that_tells_of_something_has_a_name(void **state)
{
    _cleanup_(freep) char *path = NULL;
    struct world w;

    begin(&w, READER_FOLDER);
    path = xasprintf("%s/train-1.log", w.dir);
    assert_int_equal(follow(&w, 1), 0);
    assert_int_equal(readers_add_file(w.readers, JOB, 1, path, NULL), 0);
    write_text(path, "[rank3]: hello\n");
    RUN_UNTIL(w.event, w.signals > 0);
    assert_int_equal(w.named, 0);
    STR_COPY(w.log, path);
    print(&w, 0, 1);
    RUN_UNTIL(w.event, w.lines.n == 1);
    assert_int_equal(w.named, 1);
    assert_int_equal(w.roots_before, 0);
    assert_int_equal(w.named_file, w.last.file);
    assert_string_equal(w.last_named, path);
    signal_reader(SIGKILL);
    print(&w, 1, 3);
    RUN_UNTIL(w.event, w.lines.n == 3);
    assert_int_equal(w.named, 1);
    assert_int_equal(w.named_file, w.last.file);
    end(&w);
}

/* The last word of a job may stand in a file that was told of a moment before. */
static void test_a_file_that_is_told_of_before_the_drain(void **state)
{
    struct world w;

    begin(&w, READER_FOLDER);
    assert_int_equal(follow(&w, 1), 0);
    readers_drain(w.readers, JOB, 1);
    RUN_UNTIL(w.event, w.drained == 1);
    snprintf(w.log, sizeof(w.log), "%s/told", w.dir);
    print(&w, 0, 3);
    assert_int_equal(readers_add_file(w.readers, JOB, 1, w.log, NULL), 0);
    readers_drain(w.readers, JOB, 1);
    RUN_UNTIL(w.event, w.drained == 2);
    check_lines(&w, 3);
    end(&w);
}

static void test_files_have_a_bound(void **state)
{
    struct world w;
    char path[128];

    begin(&w, READER_FOLDER);
    for (uint32_t attempt = 1; attempt <= 2; attempt++) {
        assert_int_equal(follow(&w, attempt), 0);
        for (int i = 0; i < LOG_FILES_MAX + 2; i++) {
            snprintf(path, sizeof(path), "%s/%d", w.dir, i);
            assert_int_equal(readers_add_file(w.readers, JOB, attempt, path, NULL),
                             i < LOG_FILES_MAX ? 0 : -E2BIG);
        }
        assert_int_equal(readers_add_file(w.readers, JOB, attempt, path, NULL), -E2BIG);
        snprintf(path, sizeof(path), "%s/0", w.dir);
        assert_int_equal(readers_add_file(w.readers, JOB, attempt, path, NULL), 0);
        assert_int_equal(w.gaps, attempt); /* said once */
        assert_non_null(strstr(w.last_gap, "only 512 are read"));
    }
    end(&w);
}

static void test_a_job_that_there_was_no_room_for(void **state)
{
    enum { ROOM = 4096 }; /* jobs of one reader */
    struct world w;
    char key[32];

    begin(&w, READER_FOLDER);
    for (int i = 0; i <= ROOM; i++) {
        struct log_paths p = {.std_out = i < ROOM ? "none" : "slurm-7.out",
                              .work_dir = w.dir,
                              .job_id = 7,
                              .array_task_id = LOG_NO_TASK};

        if (i == ROOM) { /* the last to be asked for, too */
            RUN_UNTIL(w.event, w.running > 0);
            w.job = key;
        }
        snprintf(key, sizeof(key), "%d-1", i);
        assert_int_equal(readers_follow(w.readers, w.uid, (gid_t)-1, key, 1, &p), 0);
    }
    print(&w, 0, 3);
    RUN_UNTIL(w.event, w.gaps == 1);
    assert_non_null(strstr(w.last_gap, "so many others of its user"));
    check_read(&w, 1, 1); /* its reader is there, and has no room */
    readers_drain(w.readers, key, 1);
    assert_int_equal(w.drained, 0);
    readers_forget(w.readers, "17-1");
    check_read(&w, 1, 3); /* as one that waits for its end is told, and now */
    RUN_UNTIL(w.event, w.drained == 1);
    check_lines(&w, 3);
    end(&w);
}

/* Each of them appends to what the one before wrote, and nobody says so. */
static void test_jobs_in_one_log(void **state)
{
    static const char *const jobs[] = {"4444448-1700000000", "4444449-1700000001",
                                       "4444450-1700000002"};
    struct log_paths p = {.std_out = "slurm-7.out", .array_task_id = LOG_NO_TASK};
    struct world w;

    begin(&w, READER_FOLDER);
    p.work_dir = w.dir;
    for (int i = 0; i < 3; i++) {
        w.job = jobs[i];
        p.job_id = (uint32_t)(4444448 + i);
        p.started_us = now_us();
        print(&w, 10 * i, 10 * i + 1); /* before anybody reads */
        assert_int_equal(readers_follow(w.readers, getuid(), getgid(), jobs[i], 1, &p), 0);
        RUN_UNTIL(w.event, w.lines.n == (size_t)i * 2 + 1);
        print(&w, 10 * i + 1, 10 * i + 2);
        readers_drain(w.readers, jobs[i], 1);
        RUN_UNTIL(w.event, w.drained == (unsigned)i + 1);
        readers_forget(w.readers, jobs[i]);
        if (i == 1) { /* and the daemon after this one knows it too */
            close_readers(&w);
            open_readers(&w, READER_FOLDER);
        }
    }
    check_lines(&w, 6);
    assert_int_equal(w.gaps, 0);
    end(&w);
}

static void test_attempts(void **state)
{
    struct world w;

    begin(&w, READER_FOLDER);
    assert_int_equal(follow(&w, 1), 0);
    print(&w, 0, 3);
    readers_drain(w.readers, JOB, 1);
    RUN_UNTIL(w.event, w.drained == 1);
    assert_int_equal(follow(&w, 2), 0); /* appends: where the first one ended */
    print(&w, 3, 4);
    readers_drain(w.readers, JOB, 2);
    RUN_UNTIL(w.event, w.drained == 2);
    check_lines(&w, 4);

    w.started = now_us();                    /* before it prints, though nobody follows it yet */
    assert_int_equal(truncate(w.log, 0), 0); /* anew, and longer than it was */
    print(&w, 100, 110);
    w.lines.n = 0;
    assert_int_equal(follow(&w, 3), 0);
    readers_drain(w.readers, JOB, 3);
    RUN_UNTIL(w.event, w.drained == 3);
    check_lines(&w, 10);
    assert_int_equal(follow(&w, 2), -EINVAL);
    end(&w);
}

static void test_refusals(void **state)
{
    struct log_paths p = {.array_task_id = LOG_NO_TASK};
    struct world w;

    begin(&w, READER_FOLDER);
    assert_int_equal(follow(&w, 1), 0);
    assert_int_equal(readers_follow(w.readers, getuid() + 1, 0, JOB, 1, &p), -EPERM);
    assert_int_equal(readers_follow(w.readers, getuid(), 0, "a\nb", 1, &p), -EINVAL);
    assert_int_equal(readers_follow(w.readers, getuid(), 0, "", 1, &p), -EINVAL);
    assert_int_equal(follow(&w, 0), -EINVAL);
    readers_forget(w.readers, JOB);
    readers_forget(w.readers, JOB);
    readers_drain(w.readers, JOB, 1);
    end(&w);
}

/* ---- by the spawner ---- */

#define STRANGER 54321 /* a uid that no user has */

static void copy_program(const char *from, const char *to)
{
    _cleanup_(closep) int in = open(from, O_RDONLY | O_CLOEXEC);
    _cleanup_(closep) int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    ssize_t n;

    assert_true(in >= 0 && out >= 0);
    while ((n = sendfile(out, in, NULL, 1 << 20)) > 0)
        ;
    assert_int_equal(n, 0);
}

static pid_t start_spawner(const char *socket, const char *programs)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test fail, nothing is left of it */
        execl(SPAWNER, SPAWNER, "--socket", socket, "--programs", programs, "--user", "nobody",
              "--slurm-user", "daemon", (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    UNTIL(spawner_listens(socket), sched_yield());
    return pid;
}

static void end_spawner(pid_t pid, const char *socket)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    unlink(socket);
}

static void test_spawner_dies_and_comes_back(void **state)
{
    char dir[] = "/tmp/reknit-spawner-XXXXXX", socket[64], program[64];
    struct world w;
    pid_t pid;

    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0755), 0);
    snprintf(socket, sizeof(socket), "%s/socket", dir);
    snprintf(program, sizeof(program), "%s/reknit-reader", dir);
    copy_program(READER_FOLDER "/reknit-reader", program);
    pid = start_spawner(socket, dir);

    begin(&w, "/nonexistent");
    close_readers(&w);
    w.spawner = socket;
    w.uid = STRANGER;
    assert_int_equal(chmod(w.dir, 0755), 0);
    open_readers(&w, NULL);
    assert_int_equal(follow(&w, 1), 0);
    print(&w, 0, 3);
    RUN_UNTIL(w.event, w.lines.n == 3);
    end_spawner(pid, socket);
    print(&w, 3, 5);
    RUN_UNTIL(w.event, strstr(w.last_state, "cannot be reached"));
    pid = start_spawner(socket, dir);
    RUN_UNTIL(w.event, w.lines.n == 5);
    readers_drain(w.readers, JOB, 1);
    RUN_UNTIL(w.event, w.drained == 1);
    check_lines(&w, 5);

    readers_forget(w.readers, JOB);
    w.uid = 0; /* no reader runs as root */
    assert_int_equal(follow(&w, 1), 0);
    RUN_UNTIL(w.event, strstr(w.last_state, "as a user of the system"));
    end(&w);
    end_spawner(pid, socket);
    unlink(program);
    rmdir(dir);
}

/* A reader of which the user is master. */
static void write_liar(const char *dir, const char *says)
{
    _cleanup_(freep) char *path = xasprintf("%s/reknit-reader", dir);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fprintf(f, "#!/bin/sh\ncat <<'END'\n%s\nEND\nexec cat >/dev/null\n", says);
    assert_int_equal(fchmod(fileno(f), 0700), 0);
    fclose(f);
}

#define SIGNAL_OF(job, attempt, body)                                                              \
    "{\"kind\":\"signal\",\"job\":\"" job "\",\"attempt\":" #attempt ",\"signal\":" body "}\n"

static void test_lies(void **state)
{
    char dir[] = "/tmp/reknit-liar-XXXXXX";
    _cleanup_(freep) char *path = NULL;
    struct world w;

    assert_non_null(mkdtemp(dir));
    write_liar(
        dir, "{\"kind\":\"hello\",\"protocol\":1}\n"
             "not even JSON\n"
             "[1,2]\n" SIGNAL_OF("8-1700000000", 1, "{\"text\":\"another's job\"}")
                 SIGNAL_OF(JOB, 2, "{\"text\":\"another attempt\"}") SIGNAL_OF(
                     JOB, 1, "{\"kind\":\"activity\"}") SIGNAL_OF(JOB, 1, "{\"confidence\":100000}")
                     SIGNAL_OF(JOB, 1, "{\"kind\":\"wish\"}") SIGNAL_OF(
                         JOB, 1,
                         "{\"file\":4000000000}") "{\"kind\":\"drained\",\"job\":\"" JOB
                                                  "\",\"attempt\":1}\n"
                                                  "{\"kind\":\"marks\",\"job\":\"" JOB
                                                  "\",\"attempt\":1,\"marks\":[{\"path\":7},{"
                                                  "\"path\":\"/x\",\"print\":\"zz\","
                                                  "\"file\":-1}]}\n" SIGNAL_OF(
                                                      JOB, 1,
                                                      "{\"provenance\":\"kernel\",\"message\":4000,"
                                                      "\"text\":\"\\u001b]0;root\\u0007\"}"));
    begin(&w, dir);
    assert_int_equal(follow(&w, 1), 0);
    RUN_UNTIL(w.event, w.signals == 1);
    assert_int_equal(w.last.provenance, PROVENANCE_JOB_TEXT);
    assert_int_equal(w.last.message, 0);
    assert_null(strchr(w.last.text, '\033'));
    assert_non_null(strstr(w.last.text, "root"));
    assert_int_equal(w.gaps, 4);
    assert_int_equal(w.drained, 0);
    end(&w);
    path = xasprintf("%s/reknit-reader", dir);
    unlink(path);
    rmdir(dir);
}

static void test_flood_is_bounded(void **state)
{
    char dir[] = "/tmp/reknit-liar-XXXXXX";
    _cleanup_(freep) char *path = NULL;
    _cleanup_strbuf_ struct strbuf says = {0};
    struct world w;

    assert_non_null(mkdtemp(dir));
    strbuf_adds(&says, "{\"kind\":\"hello\",\"protocol\":1}\n");
    for (int i = 0; i < 5000; i++)
        strbuf_addf(&says,
                    "{\"kind\":\"signal\",\"job\":\"" JOB
                    "\",\"attempt\":1,\"signal\":{\"offset\":%d}}\n",
                    i);
    for (int i = 0; i < 1000; i++)
        strbuf_adds(&says, "{\"kind\":\"gap\",\"job\":\"" JOB "\",\"attempt\":1,\"text\":\"x\"}\n"
                           "{\"id\":1,\"ok\":false,\"text\":\"y\"}\n");
    strbuf_adds(&says, "{\"kind\":\"file\",\"job\":\"" JOB
                       "\",\"attempt\":1,\"file\":0,\"path\":\"/the/end\"}");
    write_liar(dir, strbuf_str(&says));
    begin(&w, dir);
    assert_int_equal(follow(&w, 1), 0);
    RUN_UNTIL(w.event, streq(w.last_file, "/the/end"));
    assert_in_range(w.signals, 500, 4000); /* 500 in each second that it took */
    assert_true(w.gaps >= 1);
    assert_in_range(w.gaps + w.states, 20, 300); /* 20 in each second, and ours */
    end(&w);
    path = xasprintf("%s/reknit-reader", dir);
    unlink(path);
    rmdir(dir);
}

static void test_missing_program_is_told(void **state)
{
    struct world w;

    begin(&w, "/nonexistent");
    assert_int_equal(follow(&w, 1), 0);
    readers_drain(w.readers, JOB, 1);
    RUN_UNTIL(w.event, strstr(w.last_state, "status 127"));
    check_read(&w, 2, 1); /* nobody need wait for it */
    assert_int_equal(follow(&w, 2), 0);
    check_read(&w, 3, 1); /* but it is not read */
    readers_drain(w.readers, JOB, 2);
    check_read(&w, 3, 2);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals_and_drain),
        cmocka_unit_test(test_killed_reader_is_replaced_without_loss_or_repetition),
        cmocka_unit_test(test_stopped_reader_hangs_and_is_replaced),
        cmocka_unit_test(test_who_waits_for_the_end_knows_whether_anybody_reads),
        cmocka_unit_test(test_who_takes_silence_for_a_sign_knows_whether_anybody_reads),
        cmocka_unit_test(test_next_daemon_goes_on),
        cmocka_unit_test(test_files_as_they_are),
        cmocka_unit_test(test_a_file_that_tells_of_something_has_a_name),
        cmocka_unit_test(test_a_file_that_is_told_of_before_the_drain),
        cmocka_unit_test(test_files_have_a_bound),
        cmocka_unit_test(test_a_job_that_there_was_no_room_for),
        cmocka_unit_test(test_jobs_in_one_log),
        cmocka_unit_test(test_attempts),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_flood_is_bounded),
        cmocka_unit_test(test_missing_program_is_told),
        cmocka_unit_test(test_spawner_dies_and_comes_back), /* root's: the last */
    };
    /* Left out, for cmocka tells one that is skipped as one that failed. */
    size_t n = ARRAY_SIZE(tests) - (geteuid() != 0);

    return _cmocka_run_group_tests("readers", tests, n, NULL, NULL);
}
