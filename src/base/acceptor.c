/* SPDX-License-Identifier: Apache-2.0 */
#include "base/acceptor.h"

#include "base/alloc.h"
#include "base/timer.h"

#include <errno.h>

struct acceptor {
    acceptor_fn fn;
    void *ctx;
    sd_event_source *ready, *again;
};

/* What is over by itself: the connection was given up, or somebody else took it. */
static bool is_passing(int error)
{
    return error == EAGAIN || error == EINTR || error == ECONNABORTED;
}

static int on_ready(sd_event_source *s, int listening, uint32_t revents, void *ctx)
{
    struct acceptor *a = ctx;
    struct sockaddr_storage from = {0};
    socklen_t len = sizeof(from);
    int fd = accept4(listening, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0) {
        a->fn(a->ctx, fd, (struct sockaddr *)&from, len);
    } else if (!is_passing(errno)) {
        sd_event_source_set_enabled(a->ready, SD_EVENT_OFF);
        timer_arm(a->again, mono_us() + ACCEPT_AGAIN_MS * USEC_PER_MSEC);
    }
    return 0;
}

static int on_again(sd_event_source *s, uint64_t usec, void *ctx)
{
    struct acceptor *a = ctx;

    sd_event_source_set_enabled(a->ready, SD_EVENT_ON);
    return 0;
}

int acceptor_new(sd_event *event, int listening, acceptor_fn fn, void *ctx, struct acceptor **ret)
{
    _cleanup_(acceptor_freep) struct acceptor *a = xnew(struct acceptor);
    int r = sd_event_add_io(event, &a->ready, listening, EPOLLIN, on_ready, a);

    if (r >= 0)
        r = timer_new(event, on_again, a, &a->again);
    if (r < 0)
        return r;
    a->fn = fn;
    a->ctx = ctx;
    *ret = TAKE(a);
    return 0;
}

struct acceptor *acceptor_free(struct acceptor *a)
{
    if (!a)
        return NULL;
    sd_event_source_disable_unref(a->ready);
    sd_event_source_disable_unref(a->again);
    free(a);
    return NULL;
}

void acceptor_set_priority(struct acceptor *a, int64_t priority)
{
    sd_event_source_set_priority(a->ready, priority);
}
