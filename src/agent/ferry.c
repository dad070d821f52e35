/* SPDX-License-Identifier: Apache-2.0 */

/* A shore is read when nothing that it said is left to be carried, and written to while there is
 * something for it; so each way has one buffer, either being filled or being emptied. A shore that
 * takes nothing any more is written nothing, but heard to its end: a program that died may have
 * said why. */

#include "agent/ferry.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOLD_BYTES ((size_t)64 << 10)

struct shore {
    struct ferry *ferry;
    struct shore *other;
    int fd;
    sd_event_source *io;
    char *hold; /* what it said, */
    size_t from, to;
    bool ended; /* it says nothing more */
    bool deaf;
};

struct ferry {
    struct shore shores[2];
    void (*ended)(void *ctx);
    void *ctx;
    sd_event_source *end;
};

static void take_in(struct shore *s)
{
    ssize_t n = recv(s->fd, s->hold, HOLD_BYTES, 0);

    if (n > 0) {
        s->from = 0;
        s->to = (size_t)n;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        s->ended = true;
    }
}

static void hand_out(struct shore *s)
{
    struct shore *other = s->other;
    ssize_t n;

    if (s->from == s->to)
        return;
    n = other->deaf ? (ssize_t)(s->to - s->from)
                    : send(other->fd, s->hold + s->from, s->to - s->from, MSG_NOSIGNAL);
    if (n >= 0)
        s->from += (size_t)n;
    else if (errno != EAGAIN && errno != EINTR)
        other->deaf = true; /* the next turn drops it */
}

/* With no interest left, it must not be told of the end of the other side again and again. */
static void want(struct shore *s)
{
    uint32_t in = !s->ended && s->from == s->to ? EPOLLIN : 0;
    uint32_t out = s->other->from < s->other->to ? EPOLLOUT : 0;

    sd_event_source_set_io_events(s->io, in | out);
    sd_event_source_set_enabled(s->io, in | out ? SD_EVENT_ON : SD_EVENT_OFF);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct shore *s = userdata;
    struct ferry *f = s->ferry;

    if (!s->ended && s->from == s->to)
        take_in(s);
    for (unsigned i = 0; i < 2; i++) {
        hand_out(&f->shores[i]);
        if (f->shores[i].other->deaf)
            f->shores[i].from = f->shores[i].to;
    }
    for (unsigned i = 0; i < 2; i++)
        want(&f->shores[i]);
    for (unsigned i = 0; i < 2; i++)
        if (f->shores[i].ended && f->shores[i].from == f->shores[i].to)
            sd_event_source_set_enabled(f->end, SD_EVENT_ONESHOT);
    return 0;
}

static int on_end(sd_event_source *source, void *userdata)
{
    struct ferry *f = userdata;

    for (unsigned i = 0; i < 2; i++)
        sd_event_source_set_enabled(f->shores[i].io, SD_EVENT_OFF);
    f->ended(f->ctx);
    return 0;
}

static int open_shore(sd_event *event, struct ferry *f, unsigned i, int fd)
{
    struct shore *s = &f->shores[i];

    *s = (struct shore){.ferry = f, .other = &f->shores[1 - i], .fd = fd};
    s->hold = xmalloc(HOLD_BYTES);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return sd_event_add_io(event, &s->io, fd, EPOLLIN, on_io, s);
}

struct ferry *ferry_new(sd_event *event, int a, int b, void (*ended)(void *ctx), void *ctx)
{
    struct ferry *f = xnew(struct ferry);
    int r = open_shore(event, f, 0, a), q = open_shore(event, f, 1, b);

    f->ended = ended;
    f->ctx = ctx;
    if (r < 0 || q < 0 || sd_event_add_defer(event, &f->end, on_end, f) < 0 ||
        sd_event_source_set_enabled(f->end, SD_EVENT_OFF) < 0)
        return ferry_free(f);
    return f;
}

struct ferry *ferry_free(struct ferry *f)
{
    if (!f)
        return NULL;
    for (unsigned i = 0; i < 2; i++) {
        sd_event_source_disable_unref(f->shores[i].io);
        closep(&f->shores[i].fd);
        free(f->shores[i].hold);
    }
    sd_event_source_disable_unref(f->end);
    free(f);
    return NULL;
}
