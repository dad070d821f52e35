/* SPDX-License-Identifier: Apache-2.0 */

/* The file is a head line and then one message a line, "ORIGIN NUMBER TEXT". What was delivered
 * stays in it until nothing waits, when it is emptied, or until it has reached its bound, when it
 * is written anew with what waits. So after a crash some messages may go out twice; reknitd knows
 * them by origin and number.
 *
 * For that, no two messages may ever share both. Each start of the agent is an origin of its own
 * for what is new, with numbers from 1 in memory, and what was kept from earlier ones keeps theirs:
 * so it does not matter which lines a full disk or a power cut took from the file. It is not
 * synced: who loses the power loses the job too. While a message is in memory only, the file is
 * written anew with the next one. */

#include "agent/spool.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/vec.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define HEAD           "reknit-spool 2\n"
#define LINE_BYTES_MAX 4096 /* of a text, with its line feed */
#define NAME_BYTES_MAX 48   /* of origin and number */

struct spool {
    char *path, *path_new;
    int fd; /* -1: could not be opened anew; only memory counts */
    size_t size;
    bool behind;     /* the file lacks a message that waits */
    usec_t origin;   /* of this start */
    uint64_t number; /* the last that was given */
    uint64_t first;  /* place of the first that waits */
    VEC(struct spool_message) messages;
    size_t waiting; /* bytes of their texts */
    uint64_t dropped;
};

static void forget(struct spool *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        s->waiting -= strlen(s->messages.v[i].text) + 1;
        free(s->messages.v[i].text);
    }
    if (n > 0)
        memmove(s->messages.v, s->messages.v + n, (s->messages.n - n) * sizeof(*s->messages.v));
    s->messages.n -= n;
    s->first += n;
}

/* Half a line must not stay. */
static void cut_back(struct spool *s)
{
    if (ftruncate(s->fd, (off_t)s->size) < 0)
        closep(&s->fd);
}

static int put(struct spool *s, const char *text, size_t len)
{
    ssize_t n;

    if (s->fd < 0)
        return -EBADF;
    n = write(s->fd, text, len);
    if (n == (ssize_t)len) {
        s->size += len;
        return 0;
    }
    if (n < 0)
        return -errno;
    cut_back(s);
    return -ENOSPC;
}

static void add_line(struct strbuf *b, const struct spool_message *m)
{
    strbuf_addf(b, "%" PRId64 " %" PRIu64 " %s\n", m->origin, m->number, m->text);
}

/* The file anew, with what waits. The old one stays when that fails. */
static int rewrite(struct spool *s)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    int old = s->fd, r;
    size_t old_size = s->size;

    s->fd = open(s->path_new, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    s->size = 0;
    strbuf_adds(&text, HEAD);
    VEC_FOREACH (&s->messages, m)
        add_line(&text, m);
    r = s->fd < 0 ? -errno : put(s, text.s, text.len);
    if (r == 0 && rename(s->path_new, s->path) < 0)
        r = -errno;
    if (r < 0) {
        unlink(s->path_new); /* it may be what fills the disk */
        closep(&s->fd);
        s->fd = old;
        s->size = old_size;
        return r;
    }
    closep(&old);
    s->behind = false;
    return 0;
}

/* Half of the file's bound at most, so that it is seldom written anew. */
static void append(struct spool *s, usec_t origin, uint64_t number, const char *text)
{
    *VEC_PUSH(&s->messages) =
        (struct spool_message){.origin = origin, .number = number, .text = xstrdup(text)};
    s->waiting += strlen(text) + 1;
    while (s->messages.n > SPOOL_MESSAGES_MAX || s->waiting > SPOOL_BYTES_MAX / 2) {
        forget(s, 1);
        s->dropped++;
    }
}

/* What is new is of another origin than all that was kept, whatever the clock says now. */
static bool take_line(struct spool *s, const char *line)
{
    int64_t origin;
    uint64_t number;
    int text = 0;

    if (sscanf(line, "%" SCNd64 " %" SCNu64 " %n", &origin, &number, &text) != 2 || text == 0 ||
        origin <= 0 || origin > INT64_MAX / 2 || number == 0 || number > INT64_MAX / 2)
        return false;
    append(s, origin, number, line + text);
    if (s->origin <= origin)
        s->origin = origin + 1;
    return true;
}

/* As far as it is sound: the last line may have been cut by a crash. */
static void read_file(struct spool *s)
{
    _cleanup_(fclosep) FILE *f = fopen(s->path, "re");
    char line[NAME_BYTES_MAX + LINE_BYTES_MAX + 1];

    if (!f || !fgets(line, sizeof(line), f) || !streq(line, HEAD))
        return;
    while (fgets(line, sizeof(line), f)) {
        size_t len = strlen(line);

        if (len == 0 || line[len - 1] != '\n')
            return;
        line[len - 1] = '\0';
        if (!take_line(s, line))
            return;
    }
}

int spool_open(const char *path, usec_t now, struct spool **ret, struct err *e)
{
    _cleanup_(spool_freep) struct spool *s = xnew(struct spool);
    int r;

    s->fd = -1;
    s->path = xstrdup(path);
    s->path_new = xasprintf("%s.new", path);
    s->origin = now;
    s->first = 1;
    read_file(s);
    r = rewrite(s);
    if (r < 0)
        return err_set(e, r, "%s: %s", path, strerror(-r));
    *ret = TAKE(s);
    return 0;
}

struct spool *spool_free(struct spool *s)
{
    if (!s)
        return NULL;
    VEC_FOREACH (&s->messages, m)
        free(m->text);
    VEC_DONE(&s->messages);
    closep(&s->fd);
    free(s->path);
    free(s->path_new);
    free(s);
    return NULL;
}

int spool_add(struct spool *s, const char *text)
{
    _cleanup_strbuf_ struct strbuf line = {0};
    int r;

    assert(strlen(text) < LINE_BYTES_MAX && !strchr(text, '\n'));
    append(s, s->origin, ++s->number, text);
    add_line(&line, &s->messages.v[s->messages.n - 1]);
    if (s->fd < 0 || s->behind || s->size + line.len > SPOOL_BYTES_MAX)
        r = rewrite(s);
    else
        r = put(s, line.s, line.len);
    if (r < 0)
        s->behind = true;
    return r;
}

uint64_t spool_first(const struct spool *s)
{
    return s->first;
}

uint64_t spool_end(const struct spool *s)
{
    return s->first + s->messages.n;
}

const struct spool_message *spool_get(const struct spool *s, uint64_t place)
{
    assert(place >= s->first && place < spool_end(s));
    return &s->messages.v[place - s->first];
}

/* Should it fail, the file keeps what nobody needs. */
static void empty_file(struct spool *s)
{
    size_t len = strlen(HEAD);

    s->behind = false;
    if (s->fd >= 0 && ftruncate(s->fd, (off_t)len) == 0)
        s->size = len;
}

void spool_ack(struct spool *s, usec_t origin, uint64_t number)
{
    for (size_t i = 0; i < s->messages.n; i++) {
        if (s->messages.v[i].origin != origin || s->messages.v[i].number != number)
            continue;
        forget(s, i + 1);
        if (s->messages.n == 0)
            empty_file(s);
        return;
    }
}

uint64_t spool_dropped(const struct spool *s)
{
    return s->dropped;
}
