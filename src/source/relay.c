/* SPDX-License-Identifier: Apache-2.0 */

/* A job that prints 10,000 unbuffered lines a second wakes a plain relay 10,000 times. This one
 * works in one of two ways:
 *
 *   awake   the loop wakes for each write of the job; right for people watching
 *   paced   beyond AWAKE_MAX small reads a second: a timer every 4 ms reads whatever has come
 *
 * The pipes are enlarged to 1 MiB, so that a paced pipe fills only beyond 250 MB/s; long before
 * that the reads are large and awake is right again.
 *
 * What the reader does not take is owed to it (outlet.c). While the job lives, its stream is not
 * read meanwhile: the job feels what it would feel without us. When its first process has ended,
 * what is in the pipes tells why, and that must not wait for a reader that pauses: they are read
 * ahead of it, and when every process is gone, at once and to the end. */

#include "source/relay.h"

#include "base/timer.h"
#include "base/vec.h"
#include "source/outlet.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define READ_BYTES     65536
#define READS_PER_TURN 16 /* of one stream, so that it cannot starve the loop */
#define PIPE_BYTES     (1 << 20)
#define PACE_US        4000
#define FLUSH_US       (50 * USEC_PER_MSEC)
#define WINDOW_US      (100 * USEC_PER_MSEC) /* over which the rate is judged */
#define AWAKE_MAX      50                    /* small reads in a window: above, pace */
#define PACED_MIN      8                     /* ticks with data in a window: below, be awake */
#define SMALL_READ     2048                  /* bytes, on average */
#define LARGE_TICK     32768
#define FINISH_BYTES   (64 << 20)
#define AHEAD_BYTES    (1 << 20) /* read ahead of the reader while processes are left */

struct stream {
    struct relay *relay;
    unsigned number;
    int in;
    struct outlet out;
    bool paced; /* read by the timer, not watched */
    bool mid_line;
    bool told_gone;    /* that nobody reads was reported */
    bool told_refused; /* that a file takes nothing was */
    bool chunky;       /* a terminal: hands out 4 KiB at a time, a short read does not mean empty */
    unsigned reads;    /* with data, in the window */
    sd_event_source *readable, *writable;
};

struct relay {
    sd_event *event;
    struct relay_handlers handlers;
    void *ctx;
    struct stream streams[RELAY_STREAMS_MAX];
    unsigned n, open;
    bool ahead;     /* of the reader */
    bool finishing; /* the end of data is the end of the stream */
    bool paced;
    int timer; /* timerfd of the pace */
    sd_event_source *pace, *flush;
    usec_t window; /* its begin */
    unsigned reads, ticks;
    size_t bytes; /* in the window */
    char buffer[READ_BYTES];
};

static void set_enabled(sd_event_source *s, bool on)
{
    if (s)
        sd_event_source_set_enabled(s, on ? SD_EVENT_ON : SD_EVENT_OFF);
}

/* Whether the stream is to be read, or has to wait for its reader first. */
static bool may_read(const struct stream *s)
{
    const struct relay *r = s->relay;

    return s->out.len == 0 || r->finishing || (r->ahead && s->out.len < AHEAD_BYTES);
}

/* Which of a stream's two sides is watched follows from what it waits for. */
static void update_sources(struct stream *s)
{
    set_enabled(s->readable, may_read(s) && !s->paced);
    set_enabled(s->writable, s->out.len > 0);
}

static void report_trouble(struct stream *s)
{
    const struct relay *r = s->relay;

    if (s->out.gone && !s->told_gone) {
        s->told_gone = true;
        r->handlers.reader_gone(r->ctx);
    }
    if (s->out.refused > 0 && !s->told_refused) {
        s->told_refused = true;
        r->handlers.refused(r->ctx, s->out.target, s->out.error);
    }
}

static int on_flush(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct relay *r = userdata;

    r->handlers.flush(r->ctx);
    return 0;
}

static void arm_flush(struct relay *r)
{
    if (!timer_is_armed(r->flush))
        timer_arm(r->flush, mono_us() + FLUSH_US);
}

static void take_data(struct stream *s, const char *data, size_t len)
{
    struct relay *r = s->relay;
    bool owed = s->out.len > 0;

    outlet_write(&s->out, data, len);
    report_trouble(s);
    s->mid_line = data[len - 1] != '\n';
    if (owed || s->out.len > 0)
        update_sources(s);
    r->handlers.data(r->ctx, s->number, data, len);
    arm_flush(r);
}

static void close_stream(struct stream *s)
{
    struct relay *r = s->relay;

    if (s->in < 0)
        return;
    s->readable = sd_event_source_disable_unref(s->readable);
    close(take_fd(&s->in));
    if (--r->open > 0)
        return;
    r->handlers.flush(r->ctx);
    r->handlers.ended(r->ctx);
}

/* One read; returns its length, 0 when there is nothing (more) now. May close the stream. */
static size_t read_once(struct stream *s)
{
    struct relay *r = s->relay;
    ssize_t n;

    if (s->in < 0 || !may_read(s))
        return 0;
    n = read(s->in, r->buffer, READ_BYTES);
    if (n > 0) {
        r->bytes += (size_t)n;
        take_data(s, r->buffer, (size_t)n);
        return (size_t)n;
    }
    if (n < 0 && errno == EINTR)
        return 0;
    if (n < 0 && errno == EAGAIN && !r->finishing)
        return 0;
    close_stream(s); /* EOF; EIO of a terminal whose last process closed it */
    return 0;
}

/* Returns the bytes read. While finishing, to the end: what fits into a pipe, unless a stranger got
 * hold of its other side and goes on writing. */
static size_t read_stream(struct stream *s)
{
    size_t sum = 0;

    for (int i = 0; i < READS_PER_TURN || s->relay->finishing; i++) {
        size_t n = read_once(s);

        sum += n;
        if (sum >= FINISH_BYTES) {
            close_stream(s);
            break;
        }
        if (n == 0 || (n < READ_BYTES && !s->chunky && !s->relay->finishing))
            break;
    }
    return sum;
}

static void begin_window(struct relay *r, usec_t now)
{
    r->window = now;
    r->reads = r->ticks = 0;
    r->bytes = 0;
    for (unsigned i = 0; i < r->n; i++)
        r->streams[i].reads = 0;
}

/* A stream that is silent stays watched: reading it at each tick would find nothing. */
static void set_pace(struct relay *r, bool paced)
{
    struct itimerspec every = {0};

    if (paced)
        every.it_value.tv_nsec = every.it_interval.tv_nsec = PACE_US * 1000;
    timerfd_settime(r->timer, 0, &every, NULL);
    r->paced = paced;
    set_enabled(r->pace, paced);
    for (unsigned i = 0; i < r->n; i++) {
        r->streams[i].paced = paced && r->streams[i].reads >= PACED_MIN;
        update_sources(&r->streams[i]);
    }
    begin_window(r, mono_us());
}

static size_t read_paced(struct relay *r)
{
    size_t sum = 0;

    for (unsigned i = 0; i < r->n; i++)
        if (r->streams[i].paced)
            sum += read_stream(&r->streams[i]);
    return sum;
}

static int on_pace(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct relay *r = userdata;
    uint64_t expirations;
    size_t sum;

    if (read(fd, &expirations, sizeof(expirations)) < 0)
        return 0;
    sum = read_paced(r);
    r->reads += sum > 0;
    r->ticks++;
    if (sum >= LARGE_TICK)
        set_pace(r, false);
    else if (r->ticks >= WINDOW_US / PACE_US && r->reads < PACED_MIN)
        set_pace(r, false);
    else if (r->ticks >= WINDOW_US / PACE_US)
        begin_window(r, mono_us());
    return 0;
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct stream *s = userdata;
    struct relay *r = s->relay;
    usec_t now = mono_us();

    if (!r->paced && now - r->window > WINDOW_US)
        begin_window(r, now);
    read_paced(r); /* what came before goes before */
    read_stream(s);
    if (r->finishing)
        return 0;
    if (r->paced) { /* beside a paced one: when it is as busy, it joins it */
        s->paced = ++s->reads >= PACED_MIN;
        if (s->paced)
            update_sources(s);
        return 0;
    }
    s->reads++;
    if (++r->reads > AWAKE_MAX && r->bytes < r->reads * (size_t)SMALL_READ)
        set_pace(r, true);
    return 0;
}

static bool owes_anything(const struct relay *r)
{
    for (unsigned i = 0; i < r->n; i++)
        if (r->streams[i].out.len > 0)
            return true;
    return false;
}

static int on_writable(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct stream *s = userdata;
    struct relay *r = s->relay;

    outlet_resume(&s->out);
    report_trouble(s);
    update_sources(s);
    if (r->open == 0 && !owes_anything(r))
        r->handlers.delivered(r->ctx);
    return 0;
}

static void done_stream(struct stream *s)
{
    sd_event_source_disable_unref(s->readable);
    sd_event_source_disable_unref(s->writable);
    if (s->in >= 0)
        close(s->in);
    outlet_done(&s->out);
}

int relay_add(struct relay *r, int in, int out)
{
    struct stream *s = &r->streams[r->n];
    int e;

    assert(r->n < RELAY_STREAMS_MAX);
    *s = (struct stream){.relay = r, .number = r->n, .in = in, .chunky = isatty(in)};
    fcntl(in, F_SETFL, O_NONBLOCK);
    fcntl(in, F_SETPIPE_SZ, PIPE_BYTES); /* refused for terminals and beyond the user's limit */
    outlet_init(&s->out, out);
    e = sd_event_add_io(r->event, &s->readable, in, EPOLLIN, on_readable, s);
    if (e >= 0 && s->out.kind != OUTLET_PLAIN) {
        e = sd_event_add_io(r->event, &s->writable, s->out.fd, EPOLLOUT, on_writable, s);
        set_enabled(s->writable, false);
    }
    if (e < 0) {
        done_stream(s);
        return e;
    }
    r->n++;
    r->open++;
    return (int)s->number;
}

void relay_read_ahead(struct relay *r)
{
    r->ahead = true;
    for (unsigned i = 0; i < r->n; i++)
        update_sources(&r->streams[i]);
}

void relay_finish(struct relay *r)
{
    if (r->finishing)
        return;
    r->finishing = true;
    set_pace(r, false);
    for (unsigned i = 0; i < r->n; i++)
        read_stream(&r->streams[i]);
}

void relay_inherit(struct relay *r, struct relay *old)
{
    for (unsigned i = 0; i < r->n; i++)
        for (unsigned k = 0; k < old->n; k++)
            if (r->streams[i].out.target == old->streams[k].out.target) {
                outlet_inherit(&r->streams[i].out, &old->streams[k].out);
                r->streams[i].told_gone |= old->streams[k].told_gone;
                update_sources(&r->streams[i]);
                update_sources(&old->streams[k]);
            }
}

bool relay_is_blocked(const struct relay *r)
{
    return owes_anything(r);
}

size_t relay_owed(const struct relay *r)
{
    size_t sum = 0;

    for (unsigned i = 0; i < r->n; i++)
        sum += r->streams[i].out.len;
    return sum;
}

uint64_t relay_refused(const struct relay *r)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < r->n; i++)
        sum += r->streams[i].out.refused;
    return sum;
}

uint64_t relay_dropped(const struct relay *r)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < r->n; i++)
        sum += r->streams[i].out.dropped;
    return sum;
}

bool relay_at_line_start(const struct relay *r, unsigned stream)
{
    return stream >= r->n || !r->streams[stream].mid_line;
}

struct relay *relay_new(sd_event *event, const struct relay_handlers *handlers, void *ctx)
{
    struct relay *r = xnew(struct relay);

    r->event = sd_event_ref(event);
    r->handlers = *handlers;
    r->ctx = ctx;
    r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (r->timer < 0 || sd_event_add_io(event, &r->pace, r->timer, EPOLLIN, on_pace, r) < 0 ||
        timer_new(event, on_flush, r, &r->flush) < 0)
        return relay_free(r);
    set_enabled(r->pace, false);
    return r;
}

struct relay *relay_free(struct relay *r)
{
    if (!r)
        return NULL;
    for (unsigned i = 0; i < r->n; i++)
        done_stream(&r->streams[i]);
    sd_event_source_disable_unref(r->flush);
    sd_event_source_disable_unref(r->pace);
    if (r->timer >= 0)
        close(r->timer);
    sd_event_unref(r->event);
    free(r);
    return NULL;
}
