/* SPDX-License-Identifier: Apache-2.0 */

/* A job that prints 10,000 lines a second makes as many changes. After each batch of them the
 * descriptor is left alone for a while; meanwhile the kernel gathers what comes, and when that is
 * too much says so (IN_Q_OVERFLOW), which means that anything may have changed. */

#include "reader/notice.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/timer.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#define PAUSE_US (100 * USEC_PER_MSEC)

struct watch {
    int number;
    unsigned users;
};

struct notice {
    struct notice_handlers handlers;
    void *ctx;
    int fd;
    VEC(struct watch) watches; /* the kernel makes one of all that watch the same file */
    sd_event_source *readable, *pause;
};

static int on_pause(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct notice *n = userdata;

    sd_event_source_set_enabled(n->readable, SD_EVENT_ON);
    return 0;
}

static void take(struct notice *n, const struct inotify_event *e)
{
    if (e->mask & IN_Q_OVERFLOW)
        n->handlers.changed(n->ctx, NOTICE_NONE);
    else if (!(e->mask & IN_IGNORED))
        n->handlers.changed(n->ctx, e->wd);
}

static int on_readable(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
    struct notice *n = userdata;
    char buffer[65536] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t len = read(fd, buffer, sizeof(buffer));

    for (ssize_t at = 0; at < len;) {
        const struct inotify_event *e = (const void *)(buffer + at);

        take(n, e);
        at += (ssize_t)(sizeof(*e) + e->len);
    }
    sd_event_source_set_enabled(n->readable, SD_EVENT_OFF);
    timer_arm(n->pause, mono_us() + PAUSE_US);
    n->handlers.settled(n->ctx);
    return 0;
}

struct notice *notice_new(sd_event *event, const struct notice_handlers *handlers, void *ctx)
{
    struct notice *n = xnew(struct notice);

    n->handlers = *handlers;
    n->ctx = ctx;
    n->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (n->fd < 0 || timer_new(event, on_pause, n, &n->pause) < 0 ||
        sd_event_add_io(event, &n->readable, n->fd, EPOLLIN, on_readable, n) < 0)
        return notice_free(n);
    return n;
}

struct notice *notice_free(struct notice *n)
{
    if (!n)
        return NULL;
    sd_event_source_disable_unref(n->readable);
    sd_event_source_disable_unref(n->pause);
    closep(&n->fd);
    VEC_DONE(&n->watches);
    free(n);
    return NULL;
}

static int add(struct notice *n, const char *path, uint32_t mask)
{
    int number = inotify_add_watch(n->fd, path, mask | IN_MASK_ADD);
    struct watch *w;

    if (number < 0)
        return NOTICE_NONE;
    VEC_FOREACH (&n->watches, known)
        if (known->number == number) {
            known->users++;
            return number;
        }
    w = VEC_PUSH(&n->watches);
    *w = (struct watch){number, 1};
    return number;
}

int notice_file(struct notice *n, int fd)
{
    char path[40];

    if (!n || fd < 0)
        return NOTICE_NONE;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd); /* that very file, whatever its name */
    return add(n, path, IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF);
}

int notice_folder(struct notice *n, const char *path)
{
    return n ? add(n, path, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) : NOTICE_NONE;
}

void notice_drop(struct notice *n, int number)
{
    if (!n || number == NOTICE_NONE)
        return;
    for (size_t i = 0; i < n->watches.n; i++) {
        if (n->watches.v[i].number != number)
            continue;
        if (--n->watches.v[i].users == 0) {
            inotify_rm_watch(n->fd, number);
            VEC_REMOVE(&n->watches, i);
        }
        return;
    }
}
