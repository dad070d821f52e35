/* SPDX-License-Identifier: Apache-2.0 */

/* Each area is looked at by a child of its own, all of them side by side, so that the whole takes
 * as long as the slowest and what hangs hides nothing else. A child writes what it has seen, line
 * by line, into a pipe; what came before it hung counts.
 *
 * A child that has not ended by the deadline is killed, and not waited for: in the kernel's
 * uninterruptible sleep it stays until what it hangs at answers, perhaps for ever. So that such do
 * not gather with every look, each holds a lock on a file for as long as it exists. Who finds it
 * held waits, for it may be that of another look which is under way; while it is held, nobody else
 * is sent there. */

#include "probe/look.h"

#include "probe/mountinfo.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hash.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define TASKS_MAX (AREA_MAX + LOOK_MOUNTS_MAX)
#define AGAIN     (50 * USEC_PER_MSEC) /* between two tries to get a lock */
#define PIPE_FD   3
/* Behind all others: a process that ends closes them in order, and may hang at any. */
#define LOCK_FD 500

struct task {
    enum area area;
    char subject[SUBJECT_LEN];
    pid_t pid;
    int fd; /* -1 = told to its end */
    usec_t began;
    struct strbuf got;
    bool ended; /* its ending was among what it said */
    bool waits; /* for its lock: there is no child yet */
};

struct looking {
    const struct look_config *config;
    look_fn fn;
    void *ctx;
    struct task tasks[TASKS_MAX];
    size_t n;
    usec_t deadline;
};

static const area_look_fn looks[AREA_MAX] = {
    [AREA_GPU] = area_gpu,
    [AREA_NIC] = area_nic,
    [AREA_DISK] = area_disk,
    [AREA_MOUNTS] = area_mount,
    [AREA_MEMORY] = area_memory,
    [AREA_CLOCK] = area_clock,
    [AREA_PROCESSES] = area_processes,
};

static void tell_ending(const struct looking *l, const struct task *t, enum ended how,
                        const char *why)
{
    struct ending e = {.area = t->area, .how = how, .took_us = mono_us() - t->began};
    struct strbuf line = {0};

    STR_COPY(e.subject, t->subject);
    STR_COPY(e.why, why);
    ending_write(&e, &line);
    l->fn(l->ctx, strbuf_str(&line));
    strbuf_done(&line);
}

static void write_line(int fd, struct strbuf *line)
{
    const char *at;
    size_t left;

    strbuf_addc(line, '\n');
    at = line->s;
    for (left = line->len; left > 0;) {
        ssize_t n = write(fd, at, left);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            _exit(1);
        at += n;
        left -= (size_t)n;
    }
    strbuf_done(line);
}

static void tell_observation(struct report *r, const struct observation *o)
{
    struct strbuf line = {0};

    observation_write(o, &line);
    write_line(r->fd, &line);
}

/* In the child. A library may print what it likes: nobody sees it. */
static _Noreturn void look_at(const struct looking *l, const struct task *t, int out, int lock)
{
    struct report r = {.tell = tell_observation, .fd = PIPE_FD};
    struct ending e = {.area = t->area};
    struct strbuf line = {0};
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    out = fcntl(out, F_DUPFD_CLOEXEC, LOCK_FD + 1);
    lock = lock >= 0 ? fcntl(lock, F_DUPFD_CLOEXEC, LOCK_FD + 1) : -1;
    if (out < 0 || dup3(out, PIPE_FD, O_CLOEXEC) < 0 ||
        (lock >= 0 && dup3(lock, LOCK_FD, O_CLOEXEC) < 0))
        _exit(1);
    for (int fd = 0; none >= 0 && fd < PIPE_FD; fd++)
        dup2(none, fd);
    syscall(SYS_close_range, PIPE_FD + 1, LOCK_FD - 1, 0);
    syscall(SYS_close_range, lock >= 0 ? LOCK_FD + 1 : LOCK_FD, ~0U, 0);
    STR_COPY(e.subject, t->subject);
    e.how = looks[t->area](&l->config->probe, t->subject, &r);
    e.took_us = mono_us() - t->began;
    if (e.how != ENDED_DONE)
        str_sanitize(e.why, sizeof(e.why), r.why, strlen(r.why));
    ending_write(&e, &line);
    write_line(PIPE_FD, &line);
    _exit(0);
}

/* -1: there are no locks; -EWOULDBLOCK: one of an earlier look hangs there still. */
static int take_lock(const struct looking *l, const struct task *t)
{
    _cleanup_(closep) int fd = -1;
    char path[PATH_MAX];

    if (!l->config->locks)
        return -1;
    STR_PRINTF(path, "%s/probe.%s.%016llx.lock", l->config->locks, area_name(t->area),
               (unsigned long long)hash_bytes(HASH_INIT, t->subject, strlen(t->subject)));
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return -EWOULDBLOCK;
    return take_fd(&fd);
}

static bool start(struct looking *l, struct task *t, int lock)
{
    int pair[2];

    t->fd = -1;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return false;
    t->pid = fork();
    if (t->pid == 0)
        look_at(l, t, pair[1], lock);
    close(pair[1]);
    if (t->pid < 0)
        close(pair[0]);
    else
        t->fd = pair[0];
    return t->pid > 0;
}

static void begin(struct looking *l, struct task *t)
{
    int lock = take_lock(l, t);

    t->waits = lock == -EWOULDBLOCK;
    if (!t->waits && !start(l, t, lock))
        tell_ending(l, t, ENDED_FAILED, "no child could be started");
    if (lock >= 0)
        close(lock); /* the child has it */
}

static void add(struct looking *l, enum area area, const char *subject)
{
    struct task *t = &l->tasks[l->n];

    assert(l->n < TASKS_MAX);
    *t = (struct task){.area = area, .began = mono_us(), .fd = -1};
    STR_COPY(t->subject, subject);
    l->n++;
    begin(l, t);
}

/* What is not looked at, for want of room, is told. */
static void add_mount(struct looking *l, const char *path, size_t *n)
{
    struct task left_out = {.area = AREA_MOUNTS, .began = mono_us()};

    if (*n < LOOK_MOUNTS_MAX && STR_COPY(left_out.subject, path)) {
        add(l, AREA_MOUNTS, path);
        (*n)++;
        return;
    }
    STR_COPY(left_out.subject, path);
    tell_ending(l, &left_out, ENDED_FAILED, "too many mounts, or too long a name");
}

static size_t add_named_mounts(struct looking *l)
{
    _cleanup_(freep) char *list = xstrdup(l->config->mounts);
    char *rest = list, *path;
    size_t n = 0;

    while ((path = strsep(&rest, ",")))
        if (path[0])
            add_mount(l, path, &n);
    return n;
}

static size_t add_remote_mounts(struct looking *l)
{
    _cleanup_(freep) struct mount_line *m = xcalloc(PROBE_SUBJECTS_MAX, sizeof(*m));
    size_t all = mounts_read(&l->config->probe, m, PROBE_SUBJECTS_MAX), n = 0;

    for (size_t i = 0; i < all; i++)
        if (mount_is_remote(&m[i]))
            add_mount(l, m[i].path, &n);
    return n;
}

static void add_mounts(struct looking *l)
{
    const struct task whole = {.area = AREA_MOUNTS, .began = mono_us()};
    size_t n = l->config->mounts ? add_named_mounts(l) : add_remote_mounts(l);

    tell_ending(l, &whole, n > 0 ? ENDED_DONE : ENDED_ABSENT,
                n > 0 ? "" : "nothing is mounted from another host");
}

/* What the child says passes on, line by line; its own view of its ending too. */
static void pass_on(struct looking *l, struct task *t)
{
    char *line = t->got.s, *newline;
    size_t left = t->got.len;
    struct probe_line parsed;

    while (left > 0 && (newline = memchr(line, '\n', left))) {
        *newline = '\0';
        if (probe_line_parse(line, (size_t)(newline - line), &parsed) == 0) {
            t->ended |= parsed.is_ending;
            l->fn(l->ctx, line);
        }
        left -= (size_t)(newline + 1 - line);
        line = newline + 1;
    }
    memmove(t->got.s, line, left);
    t->got.len = left;
}

static void close_task(struct task *t)
{
    close(t->fd);
    t->fd = -1;
    strbuf_done(&t->got);
}

/* Its end of the pipe is closed: it has ended, or is about to, unless it hangs at that. */
static bool has_ended(const struct looking *l, pid_t pid, int *ret_status)
{
    _cleanup_(closep) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (fd >= 0 && poll(&p, 1, poll_timeout(l->deadline)) < 0 && errno == EINTR)
        ;
    return waitpid(pid, ret_status, WNOHANG) > 0;
}

static void finish(struct looking *l, struct task *t)
{
    char why[80] = "the child says nothing more";
    int status = 0;

    if (!t->ended && has_ended(l, t->pid, &status))
        STR_PRINTF(why, "the child ended: %s %d", WIFSIGNALED(status) ? "signal" : "status",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    if (!t->ended)
        tell_ending(l, t, ENDED_FAILED, why);
    close_task(t);
}

static void take(struct looking *l, struct task *t)
{
    char buffer[16384];
    ssize_t n = read(t->fd, buffer, sizeof(buffer));

    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) {
        finish(l, t);
        return;
    }
    strbuf_add(&t->got, buffer, (size_t)n);
    pass_on(l, t);
    if (t->got.len > PROBE_LINE_MAX) {
        kill(t->pid, SIGKILL);
        tell_ending(l, t, ENDED_FAILED, "a line is too long");
        close_task(t);
    }
}

static size_t begin_waiting(struct looking *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        if (l->tasks[i].waits)
            begin(l, &l->tasks[i]);
        n += l->tasks[i].waits;
    }
    return n;
}

/* Waits for any of them; false: the deadline is over, or none is left. */
static bool wait_some(struct looking *l)
{
    struct pollfd p[TASKS_MAX];
    size_t waiting = begin_waiting(l), left = waiting;
    usec_t until = waiting > 0 ? usec_min(mono_us() + AGAIN, l->deadline) : l->deadline;

    for (size_t i = 0; i < l->n; i++) {
        p[i] = (struct pollfd){.fd = l->tasks[i].fd, .events = POLLIN};
        left += l->tasks[i].fd >= 0;
    }
    if (left == 0 || mono_us() >= l->deadline)
        return false;
    if (poll(p, l->n, poll_timeout(until)) <= 0)
        return true;
    for (size_t i = 0; i < l->n; i++)
        if (p[i].fd >= 0 && p[i].revents)
            take(l, &l->tasks[i]);
    return true;
}

static void give_up(struct looking *l, struct task *t)
{
    char text[DURATION_TEXT_MAX], why[80];

    STR_PRINTF(why, "no answer within %s", duration_format(l->config->deadline, text));
    if (t->waits) {
        tell_ending(l, t, ENDED_HUNG, "an earlier look hangs there still");
        return;
    }
    kill(t->pid, SIGKILL);
    if (!t->ended)
        tell_ending(l, t, ENDED_HUNG, why);
    close_task(t);
}

void look(const struct look_config *c, look_fn fn, void *ctx)
{
    _cleanup_(freep) struct looking *l = xnew(struct looking);

    *l = (struct looking){.config = c, .fn = fn, .ctx = ctx};
    l->deadline = mono_us() + c->deadline;
    for (int a = 0; a < AREA_MAX; a++)
        if (c->areas[a] && a != AREA_MOUNTS)
            add(l, (enum area)a, "");
    if (c->areas[AREA_MOUNTS])
        add_mounts(l);
    while (wait_some(l))
        ;
    for (size_t i = 0; i < l->n; i++)
        if (l->tasks[i].fd >= 0 || l->tasks[i].waits)
            give_up(l, &l->tasks[i]);
}
