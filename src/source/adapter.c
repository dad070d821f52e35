/* SPDX-License-Identifier: Apache-2.0 */

/* One process at a time, its standard input and output a socket pair: a child of ours, or one that
 * the spawner starts; what is asked of the latter before it is there waits in `out`. A request is
 * sent when the one before it was answered: so only the first that waits has a clock running, only
 * the first can have been begun when the process ends, and what waits behind a scheduler that takes
 * its time can still be taken back.
 *
 * Answers are called from the loop only: a request that cannot be sent is answered by a timer. So
 * nobody who asks is called back before adapter_ask() returns.
 *
 * wire/lines.c would not do: it ends a connection that cannot be written to, and one that has ended
 * at its deadline has said before what became of the request. */

#include "source/adapter.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/spawn.h"
#include "base/str.h"
#include "base/timer.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BACKOFF_MIN (200 * USEC_PER_MSEC)
#define BACKOFF_MAX (5 * USEC_PER_SEC)
#define READ_CHUNK  (64u * 1024)
#define ARGS_MAX    16
#define PAUSE       USEC_PER_SEC /* so late is a clock only if nothing of ours ran */
#define STRAYS_MAX  100          /* answers of one process that nobody waits for */

struct request {
    uint64_t id;
    char *line; /* NULL = it was sent */
    usec_t deadline;
    bool (*wanted)(void *ctx); /* NULL = always */
    adapter_reply_fn *reply;
    void *ctx;
};

struct adapter {
    sd_event *event;
    char *argv[ARGS_MAX + 1]; /* or: */
    struct children *children;
    struct adapter_handlers handlers;
    void *ctx;

    bool runs;           /* or is being started */
    pid_t pid;           /* 0 = none of ours */
    struct child *child; /* NULL = none of the spawner's */
    int fd;              /* -1 = none yet */
    bool greeted;
    sd_event_source *io;
    sd_event_source *clock; /* of the first that waits */
    sd_event_source *deny;  /* answers what could not be sent */
    sd_event_source *start;
    usec_t backoff;
    uint32_t restarts;
    usec_t heard_at; /* something came */
    uint32_t strays;

    uint64_t next_id;
    VEC(struct request) waiting; /* the first was sent */
    VEC(struct request) refused; /* could not be sent */
    VEC(char) in;
    size_t searched; /* of `in`: there is no end of a line before */
    VEC(char) out;
};

const char *adapter_error(const json_t *answer)
{
    const char *s = json_string_value(json_object_get(answer, "error"));

    return s ? s : "";
}

static enum adapter_outcome outcome_of(const json_t *answer)
{
    const char *error = adapter_error(answer);

    if (json_is_true(json_object_get(answer, "ok")) || streq(error, "already-done"))
        return ADAPTER_DONE;
    if (streq(error, "unknown"))
        return ADAPTER_UNKNOWN;
    return streq(error, "unreachable") ? ADAPTER_UNREACHABLE : ADAPTER_REFUSED;
}

static void wind_clock(struct adapter *a)
{
    if (a->waiting.n > 0)
        timer_arm(a->clock, mono_us() + a->waiting.v[0].deadline + ADAPTER_PATIENCE);
    else
        timer_stop(a->clock);
}

static void start_later(struct adapter *a)
{
    timer_arm(a->start, mono_us() + a->backoff);
    a->backoff = a->backoff * 2 < BACKOFF_MAX ? a->backoff * 2 : BACKOFF_MAX;
}

static int on_reaped(sd_event_source *s, const siginfo_t *si, void *ctx)
{
    return 0;
}

static void answer_first(struct adapter *a, enum adapter_outcome outcome, const char *text)
{
    struct request r = a->waiting.v[0];

    VEC_REMOVE(&a->waiting, 0);
    free(r.line);
    r.reply(r.ctx, outcome, NULL, text);
}

/* Of those that were asked, at most the first was begun. */
static void answer_all(struct adapter *a, bool was_there, const char *text)
{
    if (a->waiting.n > 0)
        answer_first(a, was_there ? ADAPTER_UNKNOWN : ADAPTER_UNREACHABLE, text);
    while (a->waiting.n > 0)
        answer_first(a, ADAPTER_UNREACHABLE, text);
}

/* It is not waited for: in state D it outlives its SIGKILL. */
static void end_process(struct adapter *a)
{
    spawn_kill(a->pid);
    if (sd_event_add_child(a->event, NULL, a->pid, WEXITED, on_reaped, NULL) < 0)
        waitpid(a->pid, NULL, WNOHANG);
    a->pid = 0;
}

/* What was asked of it first may have been done, unless it was never there. */
static void give_up(struct adapter *a, const char *text)
{
    bool was_there = a->fd >= 0;

    if (a->pid != 0)
        end_process(a);
    if (a->child)
        a->child = child_drop(a->child);
    a->io = sd_event_source_disable_unref(a->io);
    closep(&a->fd);
    a->fd = -1;
    a->runs = a->greeted = false;
    a->in.n = a->searched = a->out.n = 0;
    a->strays = 0;
    if (a->handlers.down)
        a->handlers.down(a->ctx, text);
    answer_all(a, was_there, text);
    wind_clock(a);
    start_later(a);
}

/* It is in the midst of an answer, or that waits to be read. */
static bool is_speaking(const struct adapter *a, usec_t now)
{
    struct pollfd p = {.fd = a->fd, .events = POLLIN};

    return a->fd >= 0 && (now - a->heard_at < ADAPTER_PATIENCE || poll(&p, 1, 0) > 0);
}

/* After a pause of our own the clock has run out although nobody listened. */
static int on_clock(sd_event_source *s, uint64_t due, void *ctx)
{
    struct adapter *a = ctx;
    usec_t now = mono_us();

    if (!a->runs)
        return 0;
    if (now - (usec_t)due > PAUSE || is_speaking(a, now))
        timer_arm(a->clock, now + ADAPTER_PATIENCE);
    else
        give_up(a, "it did not answer in time, and was killed");
    return 0;
}

static int on_deny(sd_event_source *s, uint64_t t, void *ctx)
{
    struct adapter *a = ctx;

    while (a->refused.n > 0) {
        struct request r = a->refused.v[0];

        VEC_REMOVE(&a->refused, 0);
        r.reply(r.ctx, ADAPTER_UNREACHABLE, NULL, "no adapter runs");
    }
    return 0;
}

static void write_out(struct adapter *a);

/* Of which nothing was sent yet: for want of a turn. */
static void send_first(struct adapter *a)
{
    struct request *r = &a->waiting.v[0];
    size_t n = strlen(r->line);

    VEC_GROW(&a->out, a->out.n + n + 1);
    memcpy(a->out.v + a->out.n, r->line, n);
    a->out.v[a->out.n + n] = '\n';
    a->out.n += n + 1;
    free(TAKE(r->line));
    wind_clock(a);
    write_out(a);
}

static void send_next(struct adapter *a)
{
    while (a->waiting.n > 0 && a->waiting.v[0].line) {
        const struct request *r = &a->waiting.v[0];

        if (!r->wanted || r->wanted(r->ctx))
            send_first(a);
        else
            answer_first(a, ADAPTER_UNREACHABLE, "it is not wanted any more");
    }
}

static bool take_stray(struct adapter *a)
{
    if (a->strays++ == 0 && a->handlers.stray)
        a->handlers.stray(a->ctx);
    return a->strays <= STRAYS_MAX;
}

static bool take_answer(struct adapter *a, const json_t *answer)
{
    json_t *id = json_object_get(answer, "id");
    struct request r;
    const char *text = json_string_value(json_object_get(answer, "text"));

    if (a->waiting.n == 0 || (uint64_t)json_integer_value(id) != a->waiting.v[0].id)
        return take_stray(a);
    r = a->waiting.v[0];
    VEC_REMOVE(&a->waiting, 0);
    a->backoff = BACKOFF_MIN;
    wind_clock(a);
    r.reply(r.ctx, outcome_of(answer), answer, text ? text : "");
    send_next(a);
    return true;
}

static bool take_hello(struct adapter *a, const json_t *hello)
{
    if (a->greeted || json_integer_value(json_object_get(hello, "protocol")) != ADAPTER_PROTOCOL)
        return false;
    a->greeted = true;
    if (a->handlers.hello)
        a->handlers.hello(a->ctx, hello);
    return true;
}

/* NULL, or why we cannot talk to it. */
static const char *take_line(struct adapter *a, const char *line, size_t n)
{
    json_t *j = json_loadb(line, n, 0, NULL), *hello = json_object_get(j, "hello");
    const char *fault = NULL;

    if (!json_is_object(j))
        fault = "it answers nonsense";
    else if (hello && !take_hello(a, hello))
        fault = "it speaks another protocol than we do";
    else if (!hello && !take_answer(a, j))
        fault = "it answers what it was not asked, and no end of it";
    json_decref(j);
    return fault;
}

/* Taking a line may end the process, and so empty the buffer. NULL, or why it must end. */
static const char *take_lines(struct adapter *a)
{
    for (;;) {
        char *end = a->in.n > a->searched
                        ? memchr(a->in.v + a->searched, '\n', a->in.n - a->searched)
                        : NULL;
        _cleanup_(freep) char *line = NULL;
        const char *fault;
        size_t n;

        if (!end) {
            a->searched = a->in.n;
            return a->in.n <= ADAPTER_ANSWER_MAX ? NULL : "its answer is too long";
        }
        n = (size_t)(end - a->in.v);
        line = xmalloc(n + 1);
        memcpy(line, a->in.v, n);
        memmove(a->in.v, end + 1, a->in.n - n - 1);
        a->in.n -= n + 1;
        a->searched = 0;
        fault = take_line(a, line, n);
        if (fault || !a->runs)
            return fault;
    }
}

static void write_out(struct adapter *a)
{
    ssize_t n;

    if (a->fd < 0)
        return;
    n = a->out.n > 0 ? send(a->fd, a->out.v, a->out.n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

    if (n > 0) {
        memmove(a->out.v, a->out.v + n, a->out.n - (size_t)n);
        a->out.n -= (size_t)n;
    }
    sd_event_source_set_io_events(a->io, EPOLLIN | (a->out.n > 0 ? EPOLLOUT : 0));
}

static int on_io(sd_event_source *s, int fd, uint32_t events, void *ctx)
{
    struct adapter *a = ctx;
    const char *fault;
    ssize_t n;

    if (events & EPOLLOUT)
        write_out(a);
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return 0;
    VEC_GROW(&a->in, a->in.n + READ_CHUNK);
    n = read(fd, a->in.v + a->in.n, READ_CHUNK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        give_up(a, "it ended");
        return 0;
    }
    a->in.n += (size_t)n;
    a->heard_at = mono_us();
    fault = take_lines(a);
    if (fault)
        give_up(a, fault);
    return 0;
}

static int take_fd_of(struct adapter *a, int fd)
{
    int r;

    a->fd = fd;
    r = sd_event_add_io(a->event, &a->io, fd, EPOLLIN, on_io, a);
    if (r >= 0)
        write_out(a);
    return r;
}

static void on_child(void *ctx, int fd)
{
    if (take_fd_of(ctx, fd) < 0)
        give_up(ctx, "the event loop takes nothing more");
}

static void on_child_end(void *ctx, const char *text)
{
    struct adapter *a = ctx;

    a->child = NULL;
    give_up(a, text);
}

static int start(struct adapter *a)
{
    static const struct child_handlers handlers = {on_child, on_child_end};
    int fds[2], r;

    if (a->children) {
        a->runs = true;
        a->child = child_start(a->children, CHILD_ADAPTER, 0, (gid_t)-1, &handlers, a);
        return 0;
    }

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    r = spawn_program(a->argv, fds[1], &a->pid);
    close(fds[1]);
    if (r < 0) {
        close(fds[0]);
        return r;
    }
    a->runs = true;
    return take_fd_of(a, fds[0]);
}

static int on_start(sd_event_source *s, uint64_t t, void *ctx)
{
    struct adapter *a = ctx;
    int r = start(a);

    a->restarts++;
    if (r >= 0)
        return 0;
    if (a->runs) {
        give_up(a, strerror(-r));
        return 0;
    }
    if (a->handlers.down)
        a->handlers.down(a->ctx, strerror(-r));
    start_later(a);
    return 0;
}

struct adapter *adapter_new(sd_event *event, const char *const argv[], struct children *children,
                            const struct adapter_handlers *handlers, void *ctx)
{
    struct adapter *a = xnew(struct adapter);

    *a = (struct adapter){.event = sd_event_ref(event),
                          .handlers = *handlers,
                          .ctx = ctx,
                          .children = argv ? NULL : children,
                          .fd = -1,
                          .next_id = 1,
                          .backoff = BACKOFF_MIN};
    for (size_t i = 0; argv && argv[i] && i < ARGS_MAX; i++)
        a->argv[i] = xstrdup(argv[i]);
    if (timer_new(event, on_clock, a, &a->clock) < 0 ||
        timer_new(event, on_deny, a, &a->deny) < 0 || timer_new(event, on_start, a, &a->start) < 0)
        return adapter_free(a);
    timer_arm(a->start, mono_us());
    return a;
}

struct adapter *adapter_free(struct adapter *a)
{
    if (!a)
        return NULL;
    a->handlers = (struct adapter_handlers){0};
    VEC_FOREACH (&a->waiting, r)
        free(r->line);
    a->waiting.n = 0;
    if (a->runs)
        give_up(a, "");
    sd_event_source_disable_unref(a->clock);
    sd_event_source_disable_unref(a->deny);
    sd_event_source_disable_unref(a->start);
    for (size_t i = 0; i < ARGS_MAX; i++)
        free(a->argv[i]);
    VEC_DONE(&a->waiting);
    VEC_DONE(&a->refused);
    VEC_DONE(&a->in);
    VEC_DONE(&a->out);
    sd_event_unref(a->event);
    free(a);
    return NULL;
}

void adapter_ask_if(struct adapter *a, json_t *request, usec_t deadline, bool (*wanted)(void *ctx),
                    adapter_reply_fn *reply, void *ctx)
{
    struct request r = {
        .id = a->next_id++, .deadline = deadline, .wanted = wanted, .reply = reply, .ctx = ctx};

    if (!a->runs || a->waiting.n >= ADAPTER_REQUESTS_MAX) {
        json_decref(request);
        *VEC_PUSH(&a->refused) = r;
        timer_arm(a->deny, mono_us());
        return;
    }
    json_object_set_new(request, "id", json_integer((json_int_t)r.id));
    json_object_set_new(request, "deadline_ms", json_integer(deadline / USEC_PER_MSEC));
    r.line = json_dumps(request, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(request);
    *VEC_PUSH(&a->waiting) = r;
    if (a->waiting.n == 1)
        send_first(a);
}

void adapter_ask(struct adapter *a, json_t *request, usec_t deadline, adapter_reply_fn *reply,
                 void *ctx)
{
    adapter_ask_if(a, request, deadline, NULL, reply, ctx);
}

bool adapter_is_up(const struct adapter *a)
{
    return a->runs && a->greeted;
}

size_t adapter_waiting(const struct adapter *a)
{
    return a->waiting.n + a->refused.n;
}

uint32_t adapter_restarts(const struct adapter *a)
{
    return a->restarts > 0 ? a->restarts - 1 : 0;
}
