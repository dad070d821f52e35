/* SPDX-License-Identifier: Apache-2.0 */

/* What comes in gathers in one buffer until its line is whole; what does not go out at once is owed
 * and goes when the descriptor takes it. A turn reads one buffer full, so that a far side that
 * never stops leaves the loop to others. A line that is too long is skipped to its end. An idle
 * connection costs next to nothing: there may be ten thousand.
 *
 * Errors of writing are not told by lines_send(): they end the connection, which closed() tells
 * from the loop, so that a sender never loses its objects under its feet. */

#include "wire/lines.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES 65536

struct lines {
    struct lines_options options;
    struct lines_handlers handlers;
    void *ctx;
    int in, out;
    struct strbuf got;  /* of the line that has begun */
    struct strbuf owed; /* from `sent` on */
    size_t sent;
    bool skipping; /* the rest of a line that was too long */
    bool closed;
    sd_event_source *readable, *writable, *end;
};

static void bad(struct lines *l, const char *text)
{
    if (l->handlers.bad)
        l->handlers.bad(l->ctx, text);
}

static void take_line(struct lines *l, const char *text, size_t len)
{
    json_error_t error;
    json_t *j;

    if (l->skipping) {
        l->skipping = false;
        bad(l, "a line is too long");
        return;
    }
    j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(j))
        l->handlers.object(l->ctx, j);
    else
        bad(l, "a line is no JSON object");
    json_decref(j);
}

static void gather(struct lines *l, const char *data, size_t len)
{
    if (l->skipping || l->got.len + len > l->options.line_max) {
        l->skipping = true;
        strbuf_reset(&l->got);
        return;
    }
    strbuf_add(&l->got, data, len);
}

static void take_data(struct lines *l, const char *data, size_t len)
{
    const char *lf;

    while (!l->closed && (lf = memchr(data, '\n', len))) {
        size_t n = (size_t)(lf - data);

        if (l->got.len == 0 && !l->skipping && n <= l->options.line_max) {
            take_line(l, data, n);
        } else {
            gather(l, data, n);
            take_line(l, strbuf_str(&l->got), l->got.len);
            strbuf_reset(&l->got);
        }
        data = lf + 1;
        len -= n + 1;
    }
    if (!l->closed && len > 0)
        gather(l, data, len);
}

static int on_end(sd_event_source *s, void *userdata)
{
    struct lines *l = userdata;

    l->handlers.closed(l->ctx);
    return 0;
}

void lines_close(struct lines *l)
{
    if (l->closed)
        return;
    l->closed = true;
    strbuf_reset(&l->owed);
    l->sent = 0;
    l->readable = sd_event_source_disable_unref(l->readable);
    l->writable = sd_event_source_disable_unref(l->writable);
    sd_event_source_set_enabled(l->end, SD_EVENT_ONESHOT);
}

static int on_readable(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
    static char buffer[READ_BYTES]; /* of all: between two turns nothing is in it */
    struct lines *l = userdata;
    ssize_t n = read(fd, buffer, sizeof(buffer));

    if (n > 0)
        take_data(l, buffer, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        lines_close(l);
    return 0;
}

/* A socket whose other side is closed must not end us with SIGPIPE, nor may a pipe: the program
 * ignores that signal. */
static ssize_t put(int fd, const char *data, size_t len)
{
    ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

    return n < 0 && errno == ENOTSOCK ? write(fd, data, len) : n;
}

static void write_owed(struct lines *l)
{
    while (!l->closed && l->sent < l->owed.len) {
        ssize_t n = put(l->out, l->owed.s + l->sent, l->owed.len - l->sent);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            lines_close(l);
        if (n < 0)
            break;
        l->sent += (size_t)n;
    }
    if (l->closed)
        return;
    if (l->sent == l->owed.len) {
        strbuf_reset(&l->owed);
        l->sent = 0;
    } else if (l->sent > READ_BYTES && l->sent > l->owed.len / 2) {
        memmove(l->owed.s, l->owed.s + l->sent, l->owed.len - l->sent + 1);
        l->owed.len -= l->sent;
        l->sent = 0;
    }
    sd_event_source_set_enabled(l->writable, l->owed.len > 0 ? SD_EVENT_ON : SD_EVENT_OFF);
}

static int on_writable(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
    struct lines *l = userdata;

    write_owed(l);
    if (!l->closed && l->owed.len == 0 && l->handlers.relieved)
        l->handlers.relieved(l->ctx);
    return 0;
}

int lines_send(struct lines *l, json_t *j)
{
    _cleanup_(freep) char *text = json_dumps(j, JSON_COMPACT);
    bool was_owed = lines_owed(l) > 0;

    json_decref(j);
    assert(text);
    if (l->closed)
        return 0;
    if (lines_owed(l) > l->options.owed_max)
        return -ENOBUFS;
    strbuf_adds(&l->owed, text);
    strbuf_addc(&l->owed, '\n');
    if (!was_owed)
        write_owed(l);
    return 0;
}

size_t lines_owed(const struct lines *l)
{
    return l->owed.len - l->sent;
}

struct lines *lines_new(sd_event *event, int in, int out, const struct lines_options *o,
                        const struct lines_handlers *handlers, void *ctx)
{
    struct lines *l = xnew(struct lines);

    l->options = *o;
    l->handlers = *handlers;
    l->ctx = ctx;
    l->in = in;
    l->out = out;
    fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
    if (in == out) /* two interests of one descriptor are two descriptors to epoll */
        l->out = fcntl(out, F_DUPFD_CLOEXEC, 3);
    if (l->out < 0 || sd_event_add_io(event, &l->readable, in, EPOLLIN, on_readable, l) < 0 ||
        sd_event_add_io(event, &l->writable, l->out, EPOLLOUT, on_writable, l) < 0 ||
        sd_event_source_set_enabled(l->writable, SD_EVENT_OFF) < 0 ||
        sd_event_add_defer(event, &l->end, on_end, l) < 0 ||
        sd_event_source_set_enabled(l->end, SD_EVENT_OFF) < 0)
        return lines_free(l);
    return l;
}

int lines_release(struct lines *l)
{
    int fd = l->in;

    if (l->closed || lines_owed(l) > 0 || l->got.len > 0 || l->skipping)
        return -EBUSY;
    l->in = -1;
    lines_free(l);
    return fd;
}

struct lines *lines_free(struct lines *l)
{
    if (!l)
        return NULL;
    sd_event_source_disable_unref(l->readable);
    sd_event_source_disable_unref(l->writable);
    sd_event_source_disable_unref(l->end);
    closep(&l->in);
    closep(&l->out);
    strbuf_done(&l->got);
    strbuf_done(&l->owed);
    free(l);
    return NULL;
}
