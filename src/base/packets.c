/* SPDX-License-Identifier: Apache-2.0 */

/* Errors are never told by the call that meets them: they close the socket, which closed() tells
 * from the loop, so that nobody who sends loses anything under his feet. */

#include "base/packets.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/vec.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#define TURN 64 /* packets that are read before it is another's turn */

/* Of one descriptor. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

struct packet {
    char *data;
    size_t len;
    int fd;
};

struct packets {
    struct packets_options options;
    struct packets_handlers handlers;
    void *ctx;
    int fd;
    bool closed;
    VEC(struct packet) owed;
    sd_event_source *io, *end;
};

static void packet_done(struct packet *k)
{
    free(k->data);
    closep(&k->fd);
}

static void drop_owed(struct packets *p)
{
    VEC_FOREACH (&p->owed, k)
        packet_done(k);
    VEC_DONE(&p->owed);
}

static void close_later(struct packets *p)
{
    if (p->closed)
        return;
    p->closed = true;
    drop_owed(p);
    p->io = sd_event_source_disable_unref(p->io);
    sd_event_source_set_enabled(p->end, SD_EVENT_ONESHOT);
}

static int on_end(sd_event_source *s, void *ctx)
{
    struct packets *p = ctx;

    p->handlers.closed(p->ctx);
    return 0;
}

/* ---- out ---- */

/* 0, -EAGAIN, or what has ended the conversation. */
static int put(int fd, const struct packet *k)
{
    union control control = {0};
    struct iovec iov = {k->data, k->len};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

    if (k->fd >= 0) {
        m.msg_control = &control;
        m.msg_controllen = sizeof(control.bytes);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &k->fd, sizeof(k->fd));
    }
    return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ? 0 : -errno;
}

static void write_owed(struct packets *p)
{
    size_t n = 0;
    bool owes;
    int r = 0;

    while (n < p->owed.n && (r = put(p->fd, &p->owed.v[n])) == 0)
        packet_done(&p->owed.v[n++]);
    if (n > 0)
        memmove(p->owed.v, p->owed.v + n, (p->owed.n - n) * sizeof(p->owed.v[0]));
    p->owed.n -= n;
    if (r < 0 && r != -EAGAIN && r != -EINTR) {
        close_later(p);
        return;
    }
    owes = p->owed.n > 0;
    sd_event_source_set_io_events(p->io, (owes && p->options.in_turn ? 0 : EPOLLIN) |
                                             (owes ? EPOLLOUT : 0));
}

void packets_send(struct packets *p, const char *data, size_t len, int fd)
{
    struct packet *k;
    bool owed = p->owed.n > 0;

    assert(len > 0 && len <= PACKET_MAX);
    if (p->closed || p->owed.n >= p->options.owed_max) {
        closep(&fd);
        close_later(p);
        return;
    }
    k = VEC_PUSH(&p->owed);
    *k = (struct packet){xmalloc(len), len, fd};
    memcpy(k->data, data, len);
    if (!owed)
        write_owed(p);
}

size_t packets_owed(const struct packets *p)
{
    return p->owed.n;
}

/* ---- in ---- */

static int received_fd(struct msghdr *m)
{
    struct cmsghdr *h = CMSG_FIRSTHDR(m);
    int fd = -1;

    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
        h->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(h), sizeof(fd));
    return fd;
}

/* Whether there may be more. */
static bool read_packet(struct packets *p)
{
    char data[PACKET_MAX];
    union control control;
    struct iovec iov = {data, sizeof(data)};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    if (p->options.takes_fds) { /* without room for them, the kernel closes them */
        m.msg_control = &control;
        m.msg_controllen = sizeof(control);
    }
    n = recvmsg(p->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        close_later(p);
        return false;
    }
    p->handlers.packet(p->ctx, data, (size_t)n, received_fd(&m));
    return !p->closed && !(p->options.in_turn && p->owed.n > 0);
}

static int on_io(sd_event_source *s, int fd, uint32_t events, void *ctx)
{
    struct packets *p = ctx;

    if (events & EPOLLOUT)
        write_owed(p);
    if (!p->closed && (events & EPOLLIN))
        for (int i = 0; i < TURN && read_packet(p); i++)
            ;
    else if (!p->closed && (events & (EPOLLHUP | EPOLLERR)))
        close_later(p);
    return 0;
}

/* ---- the whole ---- */

struct packets *packets_new(sd_event *event, int fd, const struct packets_options *o,
                            const struct packets_handlers *handlers, void *ctx)
{
    struct packets *p = xnew(struct packets);

    *p = (struct packets){.options = *o, .handlers = *handlers, .ctx = ctx, .fd = fd};
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (sd_event_add_io(event, &p->io, fd, EPOLLIN, on_io, p) < 0 ||
        sd_event_add_defer(event, &p->end, on_end, p) < 0 ||
        sd_event_source_set_enabled(p->end, SD_EVENT_OFF) < 0)
        return packets_free(p);
    return p;
}

struct packets *packets_free(struct packets *p)
{
    if (!p)
        return NULL;
    drop_owed(p);
    sd_event_source_disable_unref(p->io);
    sd_event_source_disable_unref(p->end);
    closep(&p->fd);
    free(p);
    return NULL;
}
