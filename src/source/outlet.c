/* SPDX-License-Identifier: Apache-2.0 */

/* Our own output must never be made non-blocking: the open file belongs to others too (a shell).
 * Nor may a reader that stops (`| less`) stop our loop. So pipes and terminals are opened anew
 * through /proc/self/fd, and sockets get MSG_DONTWAIT. */

#include "source/outlet.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CAP_FIRST 65536

void outlet_init(struct outlet *o, int target)
{
    struct stat st;
    char path[64];
    int own;

    *o = (struct outlet){.kind = OUTLET_PLAIN, .fd = target, .target = target};
    if (fstat(target, &st) < 0)
        return;
    if (S_ISSOCK(st.st_mode)) {
        o->kind = OUTLET_SOCKET;
    } else if (S_ISFIFO(st.st_mode) || isatty(target)) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", target);
        own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        o->kind = own < 0 ? OUTLET_SHARED : OUTLET_OWN;
        if (own >= 0)
            o->fd = own;
    }
}

void outlet_done(struct outlet *o)
{
    if (o->kind == OUTLET_OWN)
        close(o->fd);
    free(o->owed);
    *o = (struct outlet){.fd = -1, .target = -1};
}

static ssize_t write_shared(int fd, const char *data, size_t len)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    if (poll(&p, 1, 0) <= 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(fd, data, len < PIPE_BUF ? len : PIPE_BUF);
}

static ssize_t write_some(const struct outlet *o, const char *data, size_t len)
{
    switch (o->kind) {
    case OUTLET_SOCKET:
        return send(o->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    case OUTLET_SHARED:
        return write_shared(o->fd, data, len);
    default:
        return write(o->fd, data, len);
    }
}

/* ENOSPC of a file loses this piece, as it would lose the job's own write; only a reader can go. */
static void fail(struct outlet *o, int error, size_t left)
{
    o->gone = o->kind != OUTLET_PLAIN && (error == EPIPE || error == EIO || error == ECONNRESET);
    if (o->gone)
        return;
    o->error = -error;
    o->refused += left;
}

/* Returns how much is settled: taken or lost. A reader that is gone takes everything. */
static size_t pass_on(struct outlet *o, const char *data, size_t len)
{
    size_t done = 0;

    while (done < len && !o->gone) {
        ssize_t n = write_some(o, data + done, len - done);

        if (n >= 0)
            done += (size_t)n;
        else if (errno == EAGAIN)
            return done;
        else if (errno != EINTR) {
            fail(o, errno, len - done);
            break;
        }
    }
    return len;
}

static void owe(struct outlet *o, const char *data, size_t len)
{
    if (len > OUTLET_OWED_MAX - o->len) {
        o->dropped += len - (OUTLET_OWED_MAX - o->len);
        len = OUTLET_OWED_MAX - o->len;
    }
    if (o->at > 0 && o->at + o->len + len > o->cap) {
        memmove(o->owed, o->owed + o->at, o->len);
        o->at = 0;
    }
    if (o->len + len > o->cap) {
        o->cap = o->len + len + (o->cap > 0 ? o->cap : CAP_FIRST);
        o->owed = xreallocarray(o->owed, o->cap, 1);
    }
    memcpy(o->owed + o->at + o->len, data, len);
    o->len += len;
}

static void settle(struct outlet *o)
{
    free(o->owed);
    o->owed = NULL;
    o->at = o->len = o->cap = 0;
}

void outlet_write(struct outlet *o, const char *data, size_t len)
{
    size_t taken = o->len > 0 ? 0 : pass_on(o, data, len);

    if (taken < len)
        owe(o, data + taken, len - taken);
}

void outlet_resume(struct outlet *o)
{
    size_t n = pass_on(o, o->owed + o->at, o->len);

    o->at += n;
    o->len -= n;
    if (o->len == 0)
        settle(o);
}

void outlet_inherit(struct outlet *o, struct outlet *from)
{
    struct outlet own = *o;

    o->owed = from->owed;
    o->at = from->at;
    o->len = from->len;
    o->cap = from->cap;
    o->dropped += from->dropped;
    o->gone |= from->gone;
    from->owed = NULL;
    settle(from);
    if (own.len > 0)
        owe(o, own.owed + own.at, own.len);
    free(own.owed);
}
