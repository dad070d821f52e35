/* SPDX-License-Identifier: Apache-2.0 */

/* A job's folder: one run at a time, and what a killed run left is found and ended. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/holder.h"
#include "cli/home.h"
#include "cli/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64];

static int set_up(void **state)
{
    STR_COPY(root, "/tmp/reknit-test-state-XXXXXX");
    assert_non_null(mkdtemp(root));
    return setenv("REKNIT_STATE_DIR", root, 1);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static int tear_down(void **state)
{
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void open_home(struct job_home *h)
{
    struct err e = {0};

    *h = (struct job_home){.lock = -1};
    assert_int_equal(job_home_open("train", h, &e), 0);
}

/* As SIGKILL leaves it: the lock is free, and still says who had it. */
static void lose(struct job_home *h)
{
    close(h->lock);
    h->lock = -1;
}

/* A process that sleeps with such an environment, in a session of its own or in ours. */
static pid_t start_sleeper(const char *variable, bool own_session)
{
    char *argv[] = {(char[]){"sleep"}, (char[]){"1000"}, NULL}, *env[] = {xstrdup(variable), NULL};
    int ready[2];
    pid_t pid;
    char c;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        if (own_session)
            setsid();
        execve("/bin/sleep", argv, env);
        _exit(127);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 0); /* closed by its exec */
    close(ready[0]);
    free(env[0]);
    return pid;
}

/* Two processes in a session whose leader has ended; they become our children. */
static void start_orphans(const char *first, const char *second, pid_t ret[2])
{
    const size_t size = 2 * sizeof(pid_t);
    int told[2];
    pid_t leader;

    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    leader = fork();
    if (leader == 0) {
        setsid();
        ret[0] = start_sleeper(first, false);
        ret[1] = start_sleeper(second, false);
        _exit(write(told[1], ret, size) != (ssize_t)size);
    }
    close(told[1]);
    assert_int_equal(read(told[0], ret, size), size);
    close(told[0]);
    assert_int_equal(waitpid(leader, NULL, 0), leader);
}

/* As it was recorded when the leader lived. */
static void note_session_of(struct job_home *h, pid_t member)
{
    struct holder holder;

    assert_true(holder_read(h->lock, &holder));
    holder.session = (struct holder_number){.pid = getsid(member), .start = 1};
    holder_place(holder.place);
    holder_write(h->lock, &holder);
}

static bool was_killed(pid_t pid)
{
    int status = 0;

    return waitpid(pid, &status, WNOHANG) == pid && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGKILL;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void a_job_has_one_run_at_a_time(void **state)
{
    struct job_home first, second = {.lock = -1};
    struct err e = {0};
    char holder[32];

    open_home(&first);
    assert_int_equal(first.run, 1);
    assert_int_equal(job_home_open("train", &second, &e), -EBUSY);
    snprintf(holder, sizeof(holder), "process %d", (int)getpid());
    assert_non_null(strstr(e.text, holder));
    assert_int_equal(second.lock, -1);
    assert_int_equal(job_home_open("other", &second, &e), 0);
    job_home_close(&second);
    job_home_close(&first);
    open_home(&second);
    assert_int_equal(second.run, 2);
    assert_int_equal(second.leftovers, 0);
    job_home_close(&second);
}

static void a_lock_that_was_deleted_is_not_held(void **state)
{
    struct job_home h;
    char lock[256];
    int fd;

    open_home(&h);
    assert_true(job_home_is_held(&h));
    STR_PRINTF(lock, "%s/lock", h.path);
    assert_int_equal(unlink(lock), 0);
    assert_false(job_home_is_held(&h));
    fd = open(lock, O_RDWR | O_CREAT, 0600); /* another's */
    assert_true(fd >= 0);
    assert_false(job_home_is_held(&h));
    close(fd);
    job_home_close(&h);
}

/* reknit dies, and the next run of the job ends what is the job's and nothing else. */
static void check_next_run_kills(struct job_home *h, pid_t ours, pid_t other)
{
    lose(h);
    open_home(h);
    assert_int_equal(h->leftovers, 1);
    assert_true(was_killed(ours));
    assert_false(was_killed(other));
    end(other);
    job_home_close(h);
}

static void leftovers_are_found_by_their_environment(void **state)
{
    struct job_home h;
    char variable[64];
    pid_t ours, other;

    open_home(&h);
    snprintf(variable, sizeof(variable), "REKNIT_RUN=%s", h.run_id);
    ours = start_sleeper(variable, true);
    other = start_sleeper("REKNIT_RUN=0123456789abcdef", true);
    check_next_run_kills(&h, ours, other);
}

static void leftovers_are_found_by_their_session(void **state)
{
    struct job_home h;
    pid_t ours, other;

    open_home(&h);
    ours = start_sleeper("FORGOT=all", true);
    other = start_sleeper("FORGOT=all", false);
    job_home_note_attempt(&h, "", 0, ours);
    check_next_run_kills(&h, ours, other);
}

/* It may be ours, or of a session that got the number since: only a person can tell. */
static void a_session_without_leader_is_let_alone_and_named(void **state)
{
    struct job_home h, next = {.lock = -1};
    struct err e = {0};
    char pid_text[32], lock[256];
    pid_t pids[2];

    open_home(&h);
    start_orphans("FORGOT=all", "REKNIT_RUN=0123456789abcdef", pids);
    note_session_of(&h, pids[0]);
    lose(&h);
    assert_int_equal(job_home_open("train", &next, &e), -EBUSY);
    assert_false(was_killed(pids[0]) || was_killed(pids[1]));
    STR_PRINTF(pid_text, ": %d %d;", (int)pids[0], (int)pids[1]);
    assert_non_null(strstr(e.text, pid_text));
    assert_non_null(strstr(e.text, "rm '"));
    STR_PRINTF(lock, "%s/lock", h.path);
    assert_int_equal(unlink(lock), 0); /* as it says */
    open_home(&next);
    assert_false(was_killed(pids[0]) || was_killed(pids[1]));
    end(pids[0]);
    end(pids[1]);
    job_home_close(&next);
}

static void a_session_with_a_proven_member_is_ours(void **state)
{
    struct job_home h;
    char variable[64];
    pid_t pids[2];

    open_home(&h);
    snprintf(variable, sizeof(variable), "REKNIT_RUN=%s", h.run_id);
    start_orphans("FORGOT=all", variable, pids);
    note_session_of(&h, pids[0]);
    lose(&h);
    open_home(&h);
    assert_int_equal(h.leftovers, 2);
    assert_true(was_killed(pids[0]) && was_killed(pids[1]));
    job_home_close(&h);
}

/* Its number says nothing here, and neither does that of its holder. */
static void a_session_of_another_container_is_let_alone(void **state)
{
    pid_t pid = start_sleeper("FORGOT=all", true);
    struct job_home h;
    struct holder holder;
    size_t len;

    open_home(&h);
    job_home_note_attempt(&h, "", 0, pid);
    assert_true(holder_read(h.lock, &holder));
    assert_true(holder_is_here(&holder) && holder_is_alive(&holder));
    len = strlen(holder.place);
    assert_true(len > 0);
    holder.place[len - 1] ^= 1; /* another digit */
    holder_write(h.lock, &holder);
    assert_false(holder_is_here(&holder) || holder_is_alive(&holder));
    lose(&h);
    open_home(&h);
    assert_int_equal(h.leftovers, 0);
    assert_false(was_killed(pid));
    end(pid);
    job_home_close(&h);
}

/* The number of the session was given away since; or it is of another boot. */
static void a_session_of_somebody_else_is_let_alone(void **state)
{
    for (int i = 0; i < 2; i++) {
        pid_t pid = start_sleeper("FORGOT=all", true);
        struct job_home h;
        char text[256], which[128], lock[256];
        unsigned long long start = 0;
        FILE *f;

        open_home(&h);
        job_home_note_attempt(&h, "", 0, pid);
        STR_PRINTF(lock, "%s/lock", h.path);
        f = fopen(lock, "r");
        assert_non_null(fgets(text, sizeof(text), f));
        fclose(f);
        assert_int_equal(sscanf(text, "%*d %*s %*s %*s %*d %llu", &start), 1);
        if (i == 0)
            snprintf(which, sizeof(which), "%d 1", (int)pid);
        else
            snprintf(which, sizeof(which), "%d %llu 01234567-89ab-cdef-0123-456789abcdef", (int)pid,
                     start);
        f = fopen(lock, "w");
        fprintf(f, "%d 1 %s - %s\n", (int)getpid(), h.run_id, which);
        fclose(f);
        lose(&h);
        open_home(&h);
        assert_int_equal(h.leftovers, 0);
        assert_false(was_killed(pid));
        end(pid);
        job_home_close(&h);
    }
}

/* With room for so many more open files. */
static int open_home_with(rlim_t more, struct job_home *h)
{
    struct rlimit before, few;
    struct err e = {0};
    int r, next = dup(STDOUT_FILENO);

    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){(rlim_t)next + more, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    *h = (struct job_home){.lock = -1};
    r = job_home_open("train", h, &e);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    return r;
}

/* Two copies must never run: with however little it looks, it goes on only if it has found them. */
static void leftovers_that_cannot_be_looked_for_may_be_there(void **state)
{
    struct job_home h;
    char variable[64];
    pid_t ours;

    open_home(&h);
    snprintf(variable, sizeof(variable), "REKNIT_RUN=%s", h.run_id);
    ours = start_sleeper(variable, true);
    lose(&h);
    for (rlim_t more = 0; open_home_with(more, &h) < 0; more++)
        assert_true(more < 16);
    assert_int_equal(h.leftovers, 1);
    assert_true(was_killed(ours));
    job_home_close(&h);
}

static void a_journal_is_put_aside_with_its_wal(void **state)
{
    static const char *const names[] = {"journal.db", "journal.db-wal", "journal.db-shm",
                                        "journal.db-last"};
    struct job_home h;
    char path[256];

    open_home(&h);
    job_home_close(&h);
    open_home(&h);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        STR_PRINTF(path, "%s/%s", h.path, names[i]);
        close(open(path, O_WRONLY | O_CREAT, 0600));
    }
    STR_PRINTF(path, "%s/journal.db", h.path);
    runs_archive(h.path, h.run, path);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        STR_PRINTF(path, "%s/%s", h.path, names[i]);
        assert_int_equal(access(path, F_OK), -1);
        STR_PRINTF(path, "%s/run-1/%s", h.path, names[i]);
        assert_int_equal(access(path, F_OK), 0);
    }
    job_home_close(&h);
}

static bool is_there(const char *job, const char *name)
{
    char path[300];

    STR_PRINTF(path, "%s/%s", job, name);
    return access(path, F_OK) == 0;
}

static void the_last_runs_are_kept(void **state)
{
    char job[80], path[PATH_MAX] = "", name[100];
    unsigned number = 0;

    STR_PRINTF(job, "%s/train", root);
    assert_int_equal(mkdir(job, 0700), 0);
    for (unsigned i = 1; i <= RUNS_KEPT + 3; i++) {
        assert_int_equal(runs_begin(job, &number, path, NULL), 0);
        assert_int_equal(number, i);
        STR_PRINTF(name, "%s/attempt-1.log", path);
        close(open(name, O_WRONLY | O_CREAT, 0600));
    }
    STR_PRINTF(name, "%s/run-%d", job, RUNS_KEPT + 3);
    assert_string_equal(path, name);
    assert_false(is_there(job, "run-3"));
    assert_true(is_there(job, "run-4/attempt-1.log"));
}

static void what_only_looks_like_a_run_does_not_count(void **state)
{
    static const char *const names[] = {"run-x",  "run-0",          "run--4",
                                        "run-7b", "run-4294967295", "rerun-9"};
    char job[80], path[PATH_MAX];
    unsigned number = 0;

    STR_PRINTF(job, "%s/train", root);
    for (size_t i = 0; i <= ARRAY_SIZE(names); i++) {
        STR_PRINTF(path, "%s/%s", job, i == 0 ? "." : names[i - 1]);
        assert_int_equal(mkdir(i == 0 ? job : path, 0700), 0);
    }
    assert_int_equal(runs_begin(job, &number, path, NULL), 0);
    assert_int_equal(number, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(a_job_has_one_run_at_a_time),
        TEST(a_lock_that_was_deleted_is_not_held),
        TEST(leftovers_are_found_by_their_environment),
        TEST(leftovers_are_found_by_their_session),
        TEST(a_session_without_leader_is_let_alone_and_named),
        TEST(a_session_with_a_proven_member_is_ours),
        TEST(a_session_of_another_container_is_let_alone),
        TEST(a_session_of_somebody_else_is_let_alone),
        TEST(leftovers_that_cannot_be_looked_for_may_be_there),
        TEST(a_journal_is_put_aside_with_its_wal),
        TEST(the_last_runs_are_kept),
        TEST(what_only_looks_like_a_run_does_not_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
