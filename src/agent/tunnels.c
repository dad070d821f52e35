/* SPDX-License-Identifier: Apache-2.0 */

/* The way of a question: connect to reknitd → it proves anew that it is reknitd → say under our
 * seal which question this connection answers → reknitd says that it is so → only then the
 * reader is started, and from there on bytes go both ways (agent/ferry.c). Whichever end ends, the
 * other does.
 *
 *   greetings, see greet.h
 *   we:      {"sealed":"..."}            of {"kind":"reader","question":17,"trouble":"",...}
 *   reknitd: {"reader":17}               the bytes behind it are for the reader
 *
 * What cannot be done before that is told by the other connection; what comes to light after it
 * (the spawner does not start it) as a reader would say it.
 *
 * Nothing is freed from within what the lines call: there, it is noted what to do, and the timer
 * does it. */

#include "agent/tunnels.h"

#include "agent/dial.h"
#include "agent/ferry.h"
#include "agent/uplink.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/timer.h"
#include "base/vec.h"
#include "wire/lines.h"
#include "wire/node_message.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#define PATIENCE   (20 * USEC_PER_SEC) /* until reknitd has said that it is so */
#define LINE_BYTES 4096
#define DEAD_AFTER 60000 /* ms without a sign of reknitd's host */

struct tunnel {
    struct tunnels *all;
    struct tunnel_question question;
    struct helper *sealer;
    int fd; /* connecting, or waiting for the reader */
    sd_event_source *connected, *timer;
    struct lines *lines; /* until reknitd has said that it is so */
    struct greet_config greets;
    struct greet *greet;
    bool proven; /* that it is reknitd */
    bool sealing, accepted, orphan;
    struct child *child;
    struct ferry *ferry;
    char why[160]; /* it is over; "" = it is not */
};

struct tunnels {
    sd_event *event;
    char *node, *port;
    struct children *children; /* NULL = no spawner */
    void (*refused)(void *ctx, int64_t number, const char *why);
    void *ctx;
    VEC(struct tunnel *) list;
};

/* The sealer may still hold it. */
static void release(struct tunnel *t)
{
    struct tunnels *all = t->all;

    for (size_t i = 0; i < all->list.n; i++)
        if (all->list.v[i] == t) {
            VEC_REMOVE(&all->list, i);
            break;
        }
    t->connected = sd_event_source_disable_unref(t->connected);
    t->timer = sd_event_source_disable_unref(t->timer);
    t->greet = greet_free(t->greet);
    t->lines = lines_free(t->lines);
    t->ferry = ferry_free(t->ferry);
    t->child = child_drop(t->child);
    closep(&t->fd);
    t->fd = -1;
    t->orphan = true;
    if (!t->sealing)
        free(t);
}

/* Before reknitd has taken the connection for a reader's. */
static void refuse(struct tunnel *t, const char *why)
{
    struct tunnels *all = t->all;
    int64_t number = t->question.number;
    char text[sizeof(t->why)];

    STR_COPY(text, why); /* it may be the tunnel's own */
    release(t);
    all->refused(all->ctx, number, text);
}

static void end_soon(struct tunnel *t, const char *why)
{
    STR_COPY(t->why, why);
    timer_arm(t->timer, mono_us());
}

/* ---- the reader ---- */

static void on_ferry_ended(void *ctx)
{
    release(ctx);
}

static void on_started(void *ctx, int fd)
{
    struct tunnel *t = ctx;

    t->ferry = ferry_new(t->all->event, take_fd(&t->fd), fd, on_ferry_ended, t);
    if (!t->ferry)
        release(t);
}

/* Once there is a ferry, that has the last words of the reader, and knows of its end. */
static void on_reader_ended(void *ctx, const char *text)
{
    struct tunnel *t = ctx;
    _cleanup_(freep) char *said = NULL, *line = NULL;
    json_t *j;

    t->child = NULL;
    if (t->ferry)
        return;
    j = json_pack("{s:s,s:s}", "kind", "failed", "text", text);
    said = json_dumps(j, JSON_COMPACT);
    line = xasprintf("%s\n", said ? said : "");
    json_decref(j);
    send(t->fd, line, strlen(line), MSG_NOSIGNAL); /* if that fails, its end says enough */
    release(t);
}

static void find_the_dead(int fd)
{
    int idle = 30, between = 10, times = 3, longest = DEAD_AFTER;

    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof(between));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &longest, sizeof(longest));
}

static void start_reader(struct tunnel *t)
{
    static const struct child_handlers handlers = {.started = on_started, .ended = on_reader_ended};

    t->fd = lines_release(t->lines);
    if (t->fd < 0) {
        t->fd = -1;
        refuse(t, "reknitd says more than it should");
        return;
    }
    t->lines = NULL;
    t->greet = greet_free(t->greet);
    find_the_dead(t->fd);
    t->child =
        child_start(t->all->children, CHILD_READER, t->question.uid, t->question.gid, &handlers, t);
}

/* ---- the connection ---- */

static void on_sealed(void *ctx, const json_t *answer)
{
    struct tunnel *t = ctx;
    const char *sealed = json_string_value(json_object_get(answer, "sealed"));

    t->sealing = false;
    if (t->orphan)
        free(t);
    else if (!sealed)
        end_soon(t, "what the node says of it cannot be sealed");
    else if (t->lines)
        lines_send(t->lines, json_pack("{s:s}", "sealed", sealed));
}

static void prove(struct tunnel *t)
{
    struct node_message m = {.kind = NODE_MESSAGE_READER,
                             .time_us = now_us(),
                             .reader = {.question = t->question.number}};
    _cleanup_(freep) char *text = NULL;
    json_t *j;

    STR_COPY(m.node, t->all->node);
    j = uplink_envelope(greet_words(t->greet)->word, t->all->node, node_message_to_json(&m));
    text = json_dumps(j, JSON_COMPACT);
    json_decref(j);
    if (!text || helper_ask(t->sealer, uplink_sealing(text, t->greet), on_sealed, t) < 0)
        end_soon(t, "what the node says of it cannot be sealed now");
    else
        t->sealing = true;
}

static void on_greeted(void *ctx, const char *why)
{
    struct tunnel *t = ctx;

    t->proven = !why;
    if (why)
        end_soon(t, why);
    else
        prove(t);
}

static void on_object(void *ctx, const json_t *j)
{
    struct tunnel *t = ctx;

    if (*t->why || t->accepted || t->sealing)
        return;
    if (!t->proven) {
        greet_take(t->greet, j);
        return;
    }
    if (json_integer_value(json_object_get(j, "reader")) == t->question.number) {
        t->accepted = true;
        timer_arm(t->timer, mono_us());
    } else {
        end_soon(t, "reknitd does not want the connection");
    }
}

static void on_closed(void *ctx)
{
    refuse(ctx, "reknitd has closed the connection");
}

static int on_connected(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
    static const struct lines_options options = {.line_max = LINE_BYTES, .owed_max = 65536};
    static const struct lines_handlers handlers = {.object = on_object, .closed = on_closed};
    struct tunnel *t = userdata;
    int r = dial_done(fd);

    t->connected = sd_event_source_disable_unref(t->connected);
    if (r < 0) {
        refuse(t, strerror(-r));
        return 0;
    }
    t->fd = -1;
    t->lines = lines_new(t->all->event, fd, fd, &options, &handlers, t);
    if (t->lines)
        t->greet = greet_new(&t->greets, t->lines, fd, on_greeted, t);
    else
        refuse(t, "the event loop takes nothing more");
    return 0;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct tunnel *t = userdata;

    if (t->accepted && t->lines)
        start_reader(t);
    else
        refuse(t, *t->why ? t->why : "reknitd does not answer in time");
    return 0;
}

/* ---- all ---- */

void tunnels_open(struct tunnels *all, const struct tunnel_question *q, const char *address,
                  const struct greet_config *greets, struct helper *sealer)
{
    struct tunnel *t;

    if (!all->children) {
        all->refused(all->ctx, q->number, "no reader is started there (--spawner of reknit-agent)");
        return;
    }
    if (all->list.n >= TUNNELS_MAX) {
        all->refused(all->ctx, q->number, "the node has too many readers already");
        return;
    }
    t = xnew(struct tunnel);
    *t = (struct tunnel){.all = all, .question = *q, .greets = *greets, .sealer = sealer, .fd = -1};
    *VEC_PUSH(&all->list) = t;
    t->fd = dial(address, all->port);
    if (t->fd < 0 || timer_new(all->event, on_timer, t, &t->timer) < 0 ||
        sd_event_add_io(all->event, &t->connected, t->fd, EPOLLOUT, on_connected, t) < 0) {
        refuse(t, "the node cannot make a connection");
        return;
    }
    timer_arm(t->timer, mono_us() + PATIENCE);
}

size_t tunnels_count(const struct tunnels *all)
{
    return all->list.n;
}

struct tunnels *tunnels_new(sd_event *event, const struct tunnels_config *c,
                            void (*refused)(void *ctx, int64_t number, const char *why), void *ctx)
{
    struct tunnels *all = xnew(struct tunnels);
    struct children_config children = {.spawner = c->spawner, .readers_max = TUNNELS_MAX};

    all->event = event;
    all->node = xstrdup(c->node);
    all->port = xstrdup(c->port);
    all->refused = refused;
    all->ctx = ctx;
    if (*c->spawner) /* without one, children are whoever we are: root */
        all->children = children_new(event, &children);
    return all;
}

struct tunnels *tunnels_free(struct tunnels *all)
{
    if (!all)
        return NULL;
    while (all->list.n > 0)
        release(all->list.v[all->list.n - 1]);
    VEC_DONE(&all->list);
    children_free(all->children);
    free(all->node);
    free(all->port);
    free(all);
    return NULL;
}
