/* SPDX-License-Identifier: Apache-2.0 */

/* Reading some files of /proc takes locks of the process that they are about: its environ that of
 * its memory map. A process that hangs in the kernel (its file system or its device does not
 * answer) may hold them for ever. Just such processes are looked for, by programs that must not
 * hang themselves. So a child of ours reads, and writes what it read into a pipe. When nothing has
 * come for a while it is killed, the process that it hung at counts as unreadable, and another
 * child goes on behind it.
 *
 * A child that hangs so that even SIGKILL does not end it is left to itself; when there are several
 * such, nothing is read any more until one has ended. */

#include "base/aside.h"

#include "base/cleanup.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE  (400 * USEC_PER_MSEC) /* for one of them */
#define TIME_MAX  USEC_PER_SEC          /* for all */
#define STUCK_MAX 4

struct head {
    size_t i;
    ssize_t len; /* -errno: it could not be read */
};

/* What the reader has written so far, and whom to tell. */
struct reading {
    aside_read_fn read;
    aside_fn fn;
    void *ctx;
    struct strbuf got;
    size_t next; /* the first that was not told */
};

static pid_t stuck[STUCK_MAX]; /* killed, and not gone; 0 = none */

static bool write_all(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = write(fd, at, len);

        if (n < 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* In the child. It has nothing but the pipe, should it stay for long. */
static _Noreturn void read_them(const struct reading *r, const pid_t *pids, size_t n, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    if (dup2(out, STDOUT_FILENO) < 0)
        _exit(1);
    close(STDIN_FILENO);
    syscall(SYS_close_range, STDERR_FILENO, ~0U, 0);
    for (size_t i = r->next; i < n; i++) {
        struct strbuf text = {0};
        int e = r->read(pids[i], &text);
        struct head h = {.i = i, .len = e < 0 ? e : (ssize_t)text.len};

        if (!write_all(STDOUT_FILENO, &h, sizeof(h)) ||
            (e >= 0 && !write_all(STDOUT_FILENO, strbuf_str(&text), text.len)))
            _exit(1);
        strbuf_done(&text);
    }
    _exit(0);
}

static pid_t start(const struct reading *r, const pid_t *pids, size_t n, int *ret_fd)
{
    int pair[2];
    pid_t pid;

    if (pipe2(pair, O_CLOEXEC) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        read_them(r, pids, n, pair[1]);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return -EAGAIN;
    }
    *ret_fd = pair[0];
    return pid;
}

/* Somebody of this program may wait for all its children: then it is gone as well. */
static bool is_reaped(pid_t pid, int flags)
{
    pid_t r;

    do
        r = waitpid(pid, NULL, flags);
    while (r < 0 && errno == EINTR);
    return r != 0;
}

/* Where one can be put that does not go; SIZE_MAX = there are too many already. */
static size_t find_place(void)
{
    size_t place = SIZE_MAX;

    for (size_t i = 0; i < STUCK_MAX; i++) {
        if (stuck[i] > 0 && is_reaped(stuck[i], WNOHANG))
            stuck[i] = 0;
        if (stuck[i] == 0)
            place = i;
    }
    return place;
}

/* Whole pieces are told. */
static void take_pieces(struct reading *r)
{
    size_t at = 0;
    struct head h;

    while (r->got.len - at >= sizeof(h)) {
        struct strbuf text = {0};

        memcpy(&h, r->got.s + at, sizeof(h));
        if (h.len > 0 && r->got.len - at - sizeof(h) < (size_t)h.len)
            break;
        at += sizeof(h);
        if (h.len > 0) {
            strbuf_add(&text, r->got.s + at, (size_t)h.len);
            at += (size_t)h.len;
        }
        r->fn(r->ctx, h.i, h.len < 0 ? NULL : &text);
        r->next = h.i + 1;
        strbuf_done(&text);
    }
    memmove(r->got.s, r->got.s + at, r->got.len - at);
    r->got.len -= at;
}

/* Until the reader has ended or keeps us waiting. Whether it has ended. */
static bool take(struct reading *r, int fd, usec_t deadline)
{
    char buffer[65536];

    for (;;) {
        usec_t patience = mono_us() + PATIENCE;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n;
        int ready = poll(&p, 1, poll_timeout(patience < deadline ? patience : deadline));

        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0 || mono_us() >= deadline)
            return false;
        n = read(fd, buffer, sizeof(buffer));
        if (n <= 0)
            return true;
        strbuf_add(&r->got, buffer, (size_t)n);
        take_pieces(r);
    }
}

/* One reader, from r->next on. Whether another may follow it. */
static bool read_on(struct reading *r, const pid_t *pids, size_t n, usec_t deadline)
{
    _cleanup_(closep) int fd = -1;
    size_t place = find_place();
    pid_t pid = place == SIZE_MAX ? -EBUSY : start(r, pids, n, &fd);
    bool ended;

    if (pid < 0)
        return false;
    strbuf_reset(&r->got);
    ended = take(r, fd, deadline);
    if (!ended)
        kill(pid, SIGKILL);
    if (!is_reaped(pid, ended ? 0 : WNOHANG))
        stuck[place] = pid;
    return true;
}

void aside_read(const pid_t *pids, size_t n, aside_read_fn read, aside_fn fn, void *ctx)
{
    struct reading r = {.read = read, .fn = fn, .ctx = ctx};
    usec_t deadline = mono_us() + TIME_MAX;
    bool on = true;

    while (r.next < n) {
        if (on)
            on = read_on(&r, pids, n, deadline) && mono_us() < deadline;
        if (r.next < n)
            fn(ctx, r.next++, NULL);
    }
    strbuf_done(&r.got);
}
