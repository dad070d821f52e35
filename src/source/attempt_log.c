/* SPDX-License-Identifier: Apache-2.0 */

/* What matters in a log of many gigabytes is its beginning (configuration, start-up) and its end
 * (the failure). PATH holds the first half of the limit. When that is full, PATH.1 takes over as
 * a pair of quarters: it is started anew each time it is full, its predecessor stays as PATH.2.
 * A notice at the end of PATH and at the head of each new part says what is missing where. */

#include "source/attempt_log.h"

#include "base/alloc.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES 32768

struct attempt_log {
    char *path, *latest, *previous; /* PATH, PATH.1, PATH.2 */
    int fd;
    bool crlf, cr_pending;
    uint64_t limit;
    uint64_t written; /* to the file that is open now */
    uint64_t total;   /* bytes of output so far */
    unsigned parts;   /* 0: PATH itself is open */
    uint64_t lost;
    int error;
    size_t len;
    char buffer[BUFFER_BYTES];
};

static int open_part(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

    return fd < 0 ? -errno : fd;
}

static struct attempt_log *new_log(const char *path, uint64_t limit_bytes, bool crlf, int fd)
{
    struct attempt_log *l = xnew(struct attempt_log);

    l->path = xstrdup(path);
    l->latest = xasprintf("%s.1", path);
    l->previous = xasprintf("%s.2", path);
    l->fd = fd;
    l->crlf = crlf;
    l->limit = limit_bytes;
    return l;
}

int attempt_log_open(const char *path, uint64_t limit_bytes, bool crlf, struct attempt_log **ret,
                     struct err *e)
{
    int fd = open_part(path);

    if (fd < 0)
        return err_set(e, fd, "%s: %s", path, strerror(-fd));
    *ret = new_log(path, limit_bytes, crlf, fd);
    return 0;
}

struct attempt_log *attempt_log_open_later(const char *path, uint64_t limit_bytes, bool crlf)
{
    return new_log(path, limit_bytes, crlf, -1);
}

static void write_all(struct attempt_log *l, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(l->fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            l->error = n < 0 ? -errno : -EIO;
            l->lost += len;
            return;
        }
        l->written += (uint64_t)n;
        data += n;
        len -= (size_t)n;
    }
}

static void __attribute__((format(printf, 2, 3)))
notice(struct attempt_log *l, const char *format, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    write_all(l, text, strlen(text));
}

/* The open part is full: goes on in a new one. Until there is one, nothing more is kept. */
static int next_part(struct attempt_log *l)
{
    int fd;

    if (l->parts > 0)
        rename(l->latest, l->previous); /* the second time there is nothing to rename */
    fd = open_part(l->latest);
    if (fd < 0)
        return fd;
    if (l->parts == 0)
        notice(l, "\n[reknit: this part of the log is full, it goes on in %s]\n", l->latest);
    close(l->fd);
    l->fd = fd;
    l->written = 0;
    l->parts++;
    notice(l,
           "[reknit: the log goes on here at byte %" PRIu64 " of the output;"
           " the beginning is in %s, what came just before in %s]\n",
           l->total, l->path, l->parts > 1 ? l->previous : l->path);
    return 0;
}

void attempt_log_flush(struct attempt_log *l)
{
    int r = 0;

    if (l->len == 0)
        return;
    if (l->fd < 0)
        r = l->fd = open_part(l->path);
    else if (l->written >= (l->parts == 0 ? l->limit / 2 : l->limit / 4))
        r = next_part(l);
    if (r >= 0) {
        write_all(l, l->buffer, l->len);
    } else {
        l->error = r;
        l->lost += l->len;
    }
    l->len = 0;
}

static void buffer(struct attempt_log *l, const char *data, size_t len)
{
    while (len > 0) {
        size_t n = BUFFER_BYTES - l->len;

        if (n > len)
            n = len;
        memcpy(l->buffer + l->len, data, n);
        l->len += n;
        data += n;
        len -= n;
        if (l->len == BUFFER_BYTES)
            attempt_log_flush(l);
    }
}

/* Drops the CR of CR LF, also where the two come in different calls. */
static void buffer_crlf(struct attempt_log *l, const char *data, size_t len)
{
    while (len > 0) {
        const char *cr;
        size_t n;

        if (l->cr_pending && *data != '\n')
            buffer(l, "\r", 1);
        l->cr_pending = false;
        cr = memchr(data, '\r', len);
        n = cr ? (size_t)(cr - data) : len;
        buffer(l, data, n);
        if (!cr)
            return;
        l->cr_pending = true;
        data += n + 1;
        len -= n + 1;
    }
}

void attempt_log_write(struct attempt_log *l, const char *data, size_t len)
{
    l->total += len;
    if (l->crlf)
        buffer_crlf(l, data, len);
    else
        buffer(l, data, len);
}

uint64_t attempt_log_lost(const struct attempt_log *l)
{
    return l->lost;
}

int attempt_log_error(const struct attempt_log *l)
{
    return l->error;
}

struct attempt_log *attempt_log_free(struct attempt_log *l)
{
    if (!l)
        return NULL;
    if (l->cr_pending)
        buffer(l, "\r", 1);
    attempt_log_flush(l);
    if (l->fd >= 0)
        close(l->fd);
    free(l->path);
    free(l->latest);
    free(l->previous);
    free(l);
    return NULL;
}
