/* SPDX-License-Identifier: Apache-2.0 */

/* The device gives one record with each read, and EPIPE once when it has overwritten what was to
 * come next; numbers that are missing say how much that was. A record is its first line; lines
 * that begin with a blank are properties of the device that it is about. A FIFO may give several
 * records at once, or half of one.
 *
 * Of a burst no more is read at once than takes some milliseconds, so that nothing else waits; the
 * loop comes back at once. */

#include "agent/kmsg.h"

#include "base/alloc.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TURN_READS 256

struct kmsg {
    int fd;
    bool device;
    sd_event_source *readable;
    struct kmsg_handlers handlers;
    void *ctx;
    int64_t last, told;
    bool waited; /* all that there was has been read before */
    struct kmsg_counts counts;
    size_t n;
    bool cut; /* what was too long for a record is left out up to its end */
    char line[4 * KMSG_RECORD_BYTES];
    struct kmsg_record record;
};

static void note_number(struct kmsg *k, uint64_t seq)
{
    int64_t before = k->last > k->told ? k->last : k->told;

    if (before >= 0 && seq > (uint64_t)before + 1) {
        k->counts.gaps++;
        k->counts.lost += seq - (uint64_t)before - 1;
        k->handlers.gap(k->ctx, seq - (uint64_t)before - 1);
    }
    if ((int64_t)seq > k->last)
        k->last = (int64_t)seq;
}

static void take_line(struct kmsg *k, const char *line, size_t len)
{
    if (len == 0 || line[0] == ' ')
        return;
    if (kmsg_record_parse(line, len, &k->record) < 0) {
        k->counts.foreign++;
        return;
    }
    if ((int64_t)k->record.seq <= k->told || (int64_t)k->record.seq <= k->last)
        return;
    note_number(k, k->record.seq);
    if (!k->record.by_kernel) {
        k->counts.foreign++;
        return;
    }
    k->counts.records++;
    k->handlers.record(k->ctx, &k->record, k->waited);
}

static void take_lines(struct kmsg *k)
{
    char *from = k->line, *end = k->line + k->n, *lf;

    while ((lf = memchr(from, '\n', (size_t)(end - from)))) {
        if (!k->cut)
            take_line(k, from, (size_t)(lf - from));
        k->cut = false;
        from = lf + 1;
    }
    k->n = (size_t)(end - from);
    memmove(k->line, from, k->n);
    if (k->n < sizeof(k->line))
        return;
    if (!k->cut)
        take_line(k, k->line, k->n);
    k->cut = true;
    k->n = 0;
}

/* It would be woken for it again and again. */
static void fail(struct kmsg *k, int error)
{
    k->counts.error = error;
    sd_event_source_set_enabled(k->readable, SD_EVENT_OFF);
}

/* Whether to go on. */
static bool read_some(struct kmsg *k)
{
    ssize_t n = read(k->fd, k->line + k->n, sizeof(k->line) - k->n);

    if (n < 0 && (errno == EPIPE || errno == EINTR))
        return true;
    if (n < 0 && errno == EAGAIN)
        k->waited = true;
    if (n < 0 && errno != EAGAIN)
        fail(k, errno);
    if (n <= 0)
        return false;
    k->n += (size_t)n;
    take_lines(k);
    if (k->device) { /* a record is whole, whatever it ends with */
        take_line(k, k->line, k->n);
        k->n = 0;
    }
    return true;
}

static int on_readable(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
    struct kmsg *k = userdata;

    for (int n = 0; n < TURN_READS && read_some(k); n++)
        ;
    k->handlers.turn(k->ctx);
    return 0;
}

static int open_there(struct kmsg *k, const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return -errno;
    if (!S_ISCHR(st.st_mode) && !S_ISFIFO(st.st_mode))
        return -EINVAL;
    k->device = S_ISCHR(st.st_mode);
    /* A FIFO that we hold open for writing, too, does not end with its writer. */
    k->fd = open(path, (k->device ? O_RDONLY : O_RDWR) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (k->fd < 0)
        return -errno;
    k->waited = poll(&(struct pollfd){k->fd, POLLIN, 0}, 1, 0) == 0;
    return 0;
}

int kmsg_open(sd_event *event, const char *path, int64_t told, const struct kmsg_handlers *handlers,
              void *ctx, struct kmsg **ret, struct err *e)
{
    _cleanup_(kmsg_freep) struct kmsg *k = xnew(struct kmsg);
    int r;

    k->fd = -1;
    k->last = -1;
    k->told = told;
    k->handlers = *handlers;
    k->ctx = ctx;
    r = open_there(k, path);
    if (r == 0)
        r = sd_event_add_io(event, &k->readable, k->fd, EPOLLIN, on_readable, k);
    if (r == 0)
        r = sd_event_source_set_priority(k->readable, SD_EVENT_PRIORITY_IDLE);
    if (r < 0)
        return err_set(e, r, "%s: %s", path,
                       r == -EINVAL ? "neither a device nor a FIFO" : strerror(-r));
    *ret = TAKE(k);
    return 0;
}

struct kmsg *kmsg_free(struct kmsg *k)
{
    if (!k)
        return NULL;
    sd_event_source_disable_unref(k->readable);
    closep(&k->fd);
    free(k);
    return NULL;
}

int64_t kmsg_last(const struct kmsg *k)
{
    return k->last > k->told ? k->last : k->told;
}

const struct kmsg_counts *kmsg_counts(const struct kmsg *k)
{
    return &k->counts;
}
