/* SPDX-License-Identifier: Apache-2.0 */

/* A reader is asked now and then whether it is alive; one that says nothing for long, or ends, is
 * replaced, at once and then ever more slowly, because what killed it may be in the log. */

#include "source/reader_process.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "base/timer.h"
#include "core/model/signal.h"
#include "wire/lines.h"

#define READER_PROTOCOL 1 /* reader/serve.c */
#define BACKOFF_MIN     (500 * USEC_PER_MSEC)
#define BACKOFF_MAX     USEC_PER_MIN
#define STEADY_AFTER    USEC_PER_MIN /* having run so long, it is replaced at once again */
#define START_PATIENCE  USEC_PER_MIN
#define OWED_BYTES_MAX  ((size_t)64 << 20)

enum state { STATE_WAITING, STATE_STARTING, STATE_RUNNING };

struct reader_process {
    sd_event *event;
    struct reader_process_config config;
    struct reader_process_handlers handlers;
    void *ctx;
    enum state state;
    bool misunderstood; /* it was said that a line was left out */
    char node[NODE_NAME_LEN];
    struct child *child;
    struct node_reader *remote; /* until it has started, or failed to */
    struct lines *lines;
    sd_event_source *timer; /* the next start, or the next question whether it lives */
    usec_t since, backoff;
    unsigned unheard; /* questions since it last said anything */
    bool hung;
    bool hopeless; /* it did not come to life the last time */
};

static void replace(struct reader_process *p, const char *why)
{
    usec_t now = mono_us();

    if (p->state == STATE_RUNNING && now - p->since > STEADY_AFTER)
        p->backoff = 0;
    p->lines = lines_free(p->lines);
    p->child = child_drop(p->child);
    p->remote = node_reader_drop(p->remote);
    p->hopeless = p->state == STATE_STARTING;
    p->state = STATE_WAITING;
    timer_arm(p->timer, now + p->backoff);
    p->backoff = p->backoff == 0 ? BACKOFF_MIN : 2 * p->backoff;
    if (p->backoff > BACKOFF_MAX)
        p->backoff = BACKOFF_MAX;
    p->handlers.ended(p->ctx, why);
}

static void take_hello(struct reader_process *p, const json_t *hello)
{
    if (json_integer_value(json_object_get(hello, "protocol")) != READER_PROTOCOL) {
        p->handlers.state(p->ctx, "its reader speaks another protocol than we do");
        lines_close(p->lines); /* and so it is replaced, ever more slowly */
    } else if (p->state == STATE_STARTING) {
        p->state = STATE_RUNNING;
        p->hopeless = false;
        p->handlers.state(p->ctx, "running");
        p->handlers.runs(p->ctx);
    }
}

static void on_object(void *ctx, const json_t *j)
{
    struct reader_process *p = ctx;
    const char *kind = json_string_value(json_object_get(j, "kind"));

    p->hung &= p->unheard == 0; /* it answers, and not only because it is new */
    p->unheard = 0;
    if (kind && streq(kind, "hello"))
        take_hello(p, j);
    else
        p->handlers.said(p->ctx, j);
}

/* It is not what it should be, or speaks another language: what it meant is not known. */
static void on_bad(void *ctx, const char *text)
{
    struct reader_process *p = ctx;

    if (!p->misunderstood)
        log_warning("a reader of user %u said what cannot be understood: %s", p->config.uid, text);
    p->misunderstood = true;
}

static void on_closed(void *ctx)
{
    struct reader_process *p = ctx;

    p->lines = lines_free(p->lines);
    if (!p->child) /* else its end is told, and how it was */
        replace(p, "its reader has ended");
    else
        timer_arm(p->timer, mono_us() + USEC_PER_SEC);
}

static void on_started(void *ctx, int fd)
{
    static const struct lines_options options = {.line_max = LINES_OF_READER_MAX,
                                                 .owed_max = OWED_BYTES_MAX};
    static const struct lines_handlers handlers = {
        .object = on_object, .bad = on_bad, .closed = on_closed};
    struct reader_process *p = ctx;

    p->remote = NULL; /* if it was, the socket is all there is of it */
    p->lines = lines_new(p->event, fd, fd, &options, &handlers, p);
    if (!p->lines) {
        replace(p, "its reader cannot be listened to");
        return;
    }
    p->unheard = 0;
    p->handlers.started(p->ctx);
}

static void on_ended(void *ctx, const char *text)
{
    struct reader_process *p = ctx;
    char why[300];

    p->child = NULL; /* gone already */
    p->remote = NULL;
    STR_PRINTF(why, "its reader: %s", text);
    replace(p, why);
}

static void start(struct reader_process *p)
{
    static const struct child_handlers handlers = {.started = on_started, .ended = on_ended};
    const struct reader_process_config *c = &p->config;

    p->state = STATE_STARTING;
    p->since = mono_us();
    p->unheard = 0;
    if (*p->node)
        p->remote = node_reader_start(c->node_readers, p->node, c->uid, c->gid, &handlers, p);
    else
        p->child = child_start(c->children, CHILD_READER, c->uid, c->gid, &handlers, p);
    timer_arm(p->timer, p->since + c->ping_every);
}

/* Questions are counted, not time: after a pause of our own loop its answers wait to be read. */
static void check_life(struct reader_process *p)
{
    const struct reader_process_config *c = &p->config;
    usec_t patience = c->ping_patience;
    bool hangs;

    if (p->state == STATE_STARTING && patience < START_PATIENCE)
        patience = START_PATIENCE;
    hangs = p->unheard * c->ping_every >= patience;
    if (hangs || (p->state == STATE_RUNNING && !p->lines)) {
        p->hung |= hangs;
        replace(p, hangs ? "its reader hung (a file system that does not answer?)"
                         : "its reader has closed the connection");
        return;
    }
    p->unheard++;
    reader_process_ask(p, json_pack("{s:s}", "op", "ping"));
    timer_arm(p->timer, mono_us() + c->ping_every);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct reader_process *p = userdata;

    if (p->state == STATE_WAITING)
        start(p);
    else
        check_life(p);
    return 0;
}

void reader_process_ask(struct reader_process *p, json_t *question)
{
    if (p->lines)
        lines_send(p->lines, question); /* one that takes nothing is soon found to be hung */
    else
        json_decref(question);
}

void reader_process_hurry(struct reader_process *p)
{
    if (p->state != STATE_WAITING)
        return;
    p->backoff = 0;
    timer_arm(p->timer, mono_us());
}

bool reader_process_is_running(const struct reader_process *p)
{
    return p->state == STATE_RUNNING;
}

bool reader_process_is_hopeless(const struct reader_process *p)
{
    return p->hopeless;
}

bool reader_process_is_hung(const struct reader_process *p)
{
    return p->hung;
}

struct reader_process *reader_process_new(sd_event *event, const struct reader_process_config *c,
                                          const struct reader_process_handlers *handlers, void *ctx)
{
    struct reader_process *p = xnew(struct reader_process);

    *p = (struct reader_process){
        .event = sd_event_ref(event), .config = *c, .handlers = *handlers, .ctx = ctx};
    STR_COPY(p->node, c->node ? c->node : "");
    if (timer_new(event, on_timer, p, &p->timer) < 0)
        return reader_process_free(p);
    timer_arm(p->timer, 0);
    return p;
}

struct reader_process *reader_process_free(struct reader_process *p)
{
    if (!p)
        return NULL;
    lines_free(p->lines);
    child_drop(p->child);
    node_reader_drop(p->remote);
    sd_event_source_disable_unref(p->timer);
    sd_event_unref(p->event);
    free(p);
    return NULL;
}
