/* SPDX-License-Identifier: Apache-2.0 */

/* A question waits here for its answer, which is looked for by its number and its node: no node
 * answers for another. What goes wrong is told from the loop, by the timer, which also gives up
 * what is not answered. An answer that nobody waits for any more is closed, which ends what the
 * agent had started. */

#include "source/node_readers.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/timer.h"
#include "base/vec.h"
#include "core/model/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define PATIENCE   (30 * USEC_PER_SEC)
#define DEAD_AFTER 60000 /* ms without a sign of the node */

struct node_reader {
    struct node_readers *all;
    char node[NODE_NAME_LEN];
    int64_t question;
    struct child_handlers handlers;
    void *ctx;
    int fd; /* the answer, of which nothing has come yet */
    sd_event_source *speaks;
    usec_t due; /* monotonic: then it has ended, as `text` says */
    char text[200];
};

struct node_readers {
    sd_event *event;
    node_readers_ask_fn ask;
    void *ask_ctx;
    int64_t last;
    VEC(struct node_reader *) list;
    sd_event_source *timer;
};

static void set_timer(struct node_readers *all)
{
    usec_t due = USEC_NEVER;

    VEC_FOREACH (&all->list, r)
        due = (*r)->due < due ? (*r)->due : due;
    if (due == USEC_NEVER)
        timer_stop(all->timer);
    else
        timer_arm(all->timer, due);
}

struct node_reader *node_reader_drop(struct node_reader *r)
{
    if (!r)
        return NULL;
    for (size_t i = 0; i < r->all->list.n; i++)
        if (r->all->list.v[i] == r) {
            VEC_REMOVE(&r->all->list, i);
            break;
        }
    sd_event_source_disable_unref(r->speaks);
    closep(&r->fd);
    free(r);
    return NULL;
}

static void fail(struct node_reader *r, const char *why)
{
    STR_PRINTF(r->text, "on node %s: %s", r->node, why);
    r->due = mono_us();
    set_timer(r->all);
}

/* One in a turn: who is told may start and drop others. */
static int on_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct node_readers *all = userdata;
    usec_t now = mono_us();

    VEC_FOREACH (&all->list, r)
        if ((*r)->due <= now) {
            struct child_handlers handlers = (*r)->handlers;
            void *ctx = (*r)->ctx;
            char text[sizeof((*r)->text)];

            STR_COPY(text, (*r)->text);
            node_reader_drop(*r);
            handlers.ended(ctx, text);
            break;
        }
    set_timer(all);
    return 0;
}

struct node_reader *node_reader_start(struct node_readers *all, const char *node, uid_t uid,
                                      gid_t gid, const struct child_handlers *handlers, void *ctx)
{
    struct node_reader *r = xnew(struct node_reader);
    struct err e = {0};

    *r = (struct node_reader){.all = all,
                              .question = ++all->last,
                              .handlers = *handlers,
                              .ctx = ctx,
                              .fd = -1,
                              .due = mono_us() + PATIENCE};
    STR_COPY(r->node, node);
    STR_PRINTF(r->text, "on node %s: its agent does not answer", node);
    *VEC_PUSH(&all->list) = r;
    if (!all->ask)
        fail(r, "no agents are heard");
    else if (all->ask(all->ask_ctx, node, r->question, uid, gid, &e) < 0)
        fail(r, e.text);
    set_timer(all);
    return r;
}

static void set_up(int fd)
{
    int on = 1, idle = 30, between = 10, times = 3, longest = DEAD_AFTER;

    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof(between));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &longest, sizeof(longest));
}

static int on_speaks(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
    struct node_reader *r = userdata;
    struct child_handlers handlers = r->handlers;
    void *ctx = r->ctx;

    take_fd(&r->fd);
    node_reader_drop(r);
    handlers.started(ctx, fd);
    return 0;
}

void node_readers_answer(struct node_readers *all, const char *node, int64_t question, int fd,
                         const char *trouble)
{
    struct node_reader *r = NULL;

    VEC_FOREACH (&all->list, known)
        if ((*known)->question == question && streq((*known)->node, node))
            r = *known;
    if (!r || r->fd >= 0) {
        closep(&fd);
    } else if (fd < 0) {
        fail(r, trouble);
    } else {
        set_up(fd);
        r->fd = fd;
        if (sd_event_add_io(all->event, &r->speaks, fd, EPOLLIN, on_speaks, r) < 0)
            fail(r, "the event loop takes nothing more");
    }
}

void node_readers_lost(struct node_readers *all, const char *node, const char *why)
{
    VEC_FOREACH (&all->list, r)
        if (streq((*r)->node, node))
            fail(*r, why);
}

void node_readers_connect(struct node_readers *all, node_readers_ask_fn ask, void *ctx)
{
    all->ask = ask;
    all->ask_ctx = ctx;
}

struct node_readers *node_readers_new(sd_event *event)
{
    struct node_readers *all = xnew(struct node_readers);

    all->event = event;
    all->last = now_us(); /* an answer to who was here before is none to us */
    return timer_new(event, on_timer, all, &all->timer) < 0 ? node_readers_free(all) : all;
}

struct node_readers *node_readers_free(struct node_readers *all)
{
    if (!all)
        return NULL;
    while (all->list.n > 0)
        node_reader_drop(all->list.v[0]);
    VEC_DONE(&all->list);
    sd_event_source_disable_unref(all->timer);
    free(all);
    return NULL;
}
