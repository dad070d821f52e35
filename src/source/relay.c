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
 * Our own output must never be made non-blocking: the open file belongs to others too (a shell).
 * Nor may a reader that stops (`| less`) stop our loop. So pipes and terminals are opened anew
 * through /proc/self/fd, and sockets get MSG_DONTWAIT. What the reader does not take waits in the
 * stream; meanwhile that stream is not read, and the job feels what it would feel without us. */

#include "source/relay.h"

#include "base/time.h"
#include "base/vec.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

enum out_kind {
    OUT_PLAIN,  /* write() never blocks for long: file, /dev/null */
    OUT_OWN,    /* opened by us, non-blocking */
    OUT_SOCKET, /* send() with MSG_DONTWAIT */
    OUT_SHARED, /* could not be opened anew: poll, then at most PIPE_BUF */
};

struct stream {
    struct relay *relay;
    unsigned number;
    int in, out;
    enum out_kind kind;
    bool mid_line;
    bool reader_gone;
    bool chunky; /* a terminal: hands out 4 KiB at a time, a short read does not mean empty */
    sd_event_source *readable, *writable;
    char *waiting; /* what the reader has not taken yet */
    size_t waiting_len, waiting_at;
};

struct relay {
    sd_event *event;
    struct relay_handlers handlers;
    void *ctx;
    struct stream streams[RELAY_STREAMS_MAX];
    unsigned n, open;
    bool finishing; /* the end of data is the end of the stream */
    bool paced;
    int timer; /* timerfd of the pace */
    sd_event_source *pace, *flush;
    bool flush_armed;
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

/* Which of a stream's two sides is watched follows from what it waits for. */
static void update_sources(struct stream *s)
{
    set_enabled(s->readable, s->waiting_len == 0 && !s->relay->paced);
    set_enabled(s->writable, s->waiting_len > 0);
}

static ssize_t write_shared(int fd, const char *data, size_t len)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    if (poll(&p, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(fd, data, len < PIPE_BUF ? len : PIPE_BUF);
}

static ssize_t write_some(const struct stream *s, const char *data, size_t len)
{
    switch (s->kind) {
    case OUT_SOCKET:
        return send(s->out, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    case OUT_SHARED:
        return write_shared(s->out, data, len);
    default:
        return write(s->out, data, len);
    }
}

/* Returns how much the reader took. A reader that is gone takes everything. */
static size_t pass_on(struct stream *s, const char *data, size_t len)
{
    size_t done = 0;

    while (done < len && !s->reader_gone) {
        ssize_t n = write_some(s, data + done, len - done);

        if (n >= 0) {
            done += (size_t)n;
        } else if (errno == EAGAIN) {
            return done;
        } else if (errno != EINTR) {
            /* ENOSPC of a file loses this piece, as it would lose the job's own write. */
            s->reader_gone = errno == EPIPE || errno == EIO || errno == ECONNRESET;
            if (s->reader_gone)
                s->relay->handlers.reader_gone(s->relay->ctx);
            break;
        }
    }
    return len;
}

static void keep_waiting(struct stream *s, const char *data, size_t len)
{
    assert(s->waiting_len == 0 && len <= READ_BYTES);
    if (!s->waiting)
        s->waiting = xmalloc(READ_BYTES);
    memcpy(s->waiting, data, len);
    s->waiting_at = 0;
    s->waiting_len = len;
    update_sources(s);
}

static int on_flush(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct relay *r = userdata;

    r->flush_armed = false;
    r->handlers.flush(r->ctx);
    return 0;
}

static void arm_flush(struct relay *r)
{
    if (r->flush_armed)
        return;
    r->flush_armed = true;
    if (!r->flush) {
        sd_event_add_time_relative(r->event, &r->flush, CLOCK_MONOTONIC, FLUSH_US, USEC_PER_MSEC,
                                   on_flush, r);
        return;
    }
    sd_event_source_set_time_relative(r->flush, FLUSH_US);
    sd_event_source_set_enabled(r->flush, SD_EVENT_ONESHOT);
}

static void take_data(struct stream *s, const char *data, size_t len)
{
    struct relay *r = s->relay;
    size_t taken = pass_on(s, data, len);

    s->mid_line = data[len - 1] != '\n';
    if (taken < len)
        keep_waiting(s, data + taken, len - taken);
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

    if (s->in < 0 || s->waiting_len > 0)
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

/* Returns the bytes read. While finishing, to the end. */
static size_t read_stream(struct stream *s)
{
    size_t sum = 0;

    for (int i = 0; i < READS_PER_TURN || s->relay->finishing; i++) {
        size_t n = read_once(s);

        sum += n;
        if (n == 0 || (n < READ_BYTES && !s->chunky && !s->relay->finishing))
            break;
    }
    return sum;
}

static void set_pace(struct relay *r, bool paced)
{
    struct itimerspec every = {0};

    if (paced)
        every.it_value.tv_nsec = every.it_interval.tv_nsec = PACE_US * 1000;
    timerfd_settime(r->timer, 0, &every, NULL);
    r->paced = paced;
    set_enabled(r->pace, paced);
    for (unsigned i = 0; i < r->n; i++)
        update_sources(&r->streams[i]);
}

static void begin_window(struct relay *r, usec_t now)
{
    r->window = now;
    r->reads = r->ticks = 0;
    r->bytes = 0;
}

static int on_pace(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct relay *r = userdata;
    uint64_t expirations;
    size_t sum = 0;

    if (read(fd, &expirations, sizeof(expirations)) < 0)
        return 0;
    for (unsigned i = 0; i < r->n; i++)
        sum += read_stream(&r->streams[i]);
    r->reads += sum > 0;
    r->ticks++;
    if (sum >= LARGE_TICK) {
        begin_window(r, mono_us());
        set_pace(r, false);
    } else if (r->ticks >= WINDOW_US / PACE_US) {
        if (r->reads < PACED_MIN)
            set_pace(r, false);
        begin_window(r, mono_us());
    }
    return 0;
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct stream *s = userdata;
    struct relay *r = s->relay;
    usec_t now = mono_us();

    if (now - r->window > WINDOW_US)
        begin_window(r, now);
    read_stream(s);
    if (++r->reads > AWAKE_MAX && r->bytes < r->reads * (size_t)SMALL_READ && !r->finishing) {
        begin_window(r, now);
        set_pace(r, true);
    }
    return 0;
}

static int on_writable(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct stream *s = userdata;
    size_t n = pass_on(s, s->waiting + s->waiting_at, s->waiting_len);

    s->waiting_at += n;
    s->waiting_len -= n;
    update_sources(s);
    if (s->waiting_len == 0 && s->relay->finishing)
        read_stream(s);
    return 0;
}

static void open_out(struct stream *s, int out)
{
    struct stat st;
    int own;

    s->out = out;
    if (fstat(out, &st) < 0)
        return;
    if (S_ISSOCK(st.st_mode)) {
        s->kind = OUT_SOCKET;
    } else if (S_ISFIFO(st.st_mode) || isatty(out)) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", out);
        own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        s->kind = own < 0 ? OUT_SHARED : OUT_OWN;
        if (own >= 0)
            s->out = own;
    }
}

static void done_stream(struct stream *s)
{
    sd_event_source_disable_unref(s->readable);
    sd_event_source_disable_unref(s->writable);
    if (s->in >= 0)
        close(s->in);
    if (s->kind == OUT_OWN)
        close(s->out);
    free(s->waiting);
}

int relay_add(struct relay *r, int in, int out)
{
    struct stream *s = &r->streams[r->n];
    int e;

    assert(r->n < RELAY_STREAMS_MAX);
    *s = (struct stream){.relay = r, .number = r->n, .in = in, .chunky = isatty(in)};
    fcntl(in, F_SETFL, O_NONBLOCK);
    fcntl(in, F_SETPIPE_SZ, PIPE_BYTES); /* refused for terminals and beyond the user's limit */
    open_out(s, out);
    e = sd_event_add_io(r->event, &s->readable, in, EPOLLIN, on_readable, s);
    if (e >= 0 && s->kind != OUT_PLAIN) {
        e = sd_event_add_io(r->event, &s->writable, s->out, EPOLLOUT, on_writable, s);
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

void relay_finish(struct relay *r)
{
    if (r->finishing)
        return;
    r->finishing = true;
    set_pace(r, false);
    for (unsigned i = 0; i < r->n; i++)
        read_stream(&r->streams[i]);
}

bool relay_is_blocked(const struct relay *r)
{
    for (unsigned i = 0; i < r->n; i++)
        if (r->streams[i].waiting_len > 0)
            return true;
    return false;
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
    if (r->timer < 0 || sd_event_add_io(event, &r->pace, r->timer, EPOLLIN, on_pace, r) < 0)
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
