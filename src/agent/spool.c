/* SPDX-License-Identifier: Apache-2.0 */

/* The file is a head line, "reknit-spool ORIGIN FIRST", and then one message a line. What was
 * delivered stays in it until it is written anew: emptied, when nothing waits and it is not small,
 * or with what still waits, when it has reached its bound. So after a crash some messages may go
 * out twice; reknitd knows them by origin and number. A new number or head never goes back: a file
 * that cannot be read gets another origin. It is not synced: who loses the power loses the job too.
 */

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

#define LINE_BYTES_MAX 4096
#define SMALL_BYTES    65536

struct spool {
    char *path, *path_new;
    int fd; /* -1: could not be opened anew; only memory counts */
    size_t size;
    usec_t origin;
    uint64_t first;
    VEC(char *) texts; /* the one with number `first`, and so on */
    size_t waiting;    /* bytes of them, as in the file */
    uint64_t dropped;
};

static void forget(struct spool *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        s->waiting -= strlen(s->texts.v[i]) + 1;
        free(s->texts.v[i]);
    }
    if (n > 0)
        memmove(s->texts.v, s->texts.v + n, (s->texts.n - n) * sizeof(*s->texts.v));
    s->texts.n -= n;
    s->first += n;
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
    if (n > 0 && ftruncate(s->fd, (off_t)s->size) < 0) { /* half a line must not stay */
        close(s->fd);
        s->fd = -1;
    }
    return n < 0 ? -errno : -ENOSPC;
}

/* The file anew, with what waits. The old one stays when that fails. */
static int rewrite(struct spool *s)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    int old = s->fd, r;
    size_t old_size = s->size;

    s->fd = open(s->path_new, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    s->size = 0;
    strbuf_addf(&text, "reknit-spool %" PRId64 " %" PRIu64 "\n", s->origin, s->first);
    VEC_FOREACH (&s->texts, t)
        strbuf_addf(&text, "%s\n", *t);
    r = s->fd < 0 ? -errno : put(s, text.s, text.len);
    if (r == 0 && rename(s->path_new, s->path) < 0)
        r = -errno;
    if (r < 0) {
        closep(&s->fd);
        s->fd = old;
        s->size = old_size;
        return r;
    }
    closep(&old);
    return 0;
}

/* Half of the file's bound at most, so that it is seldom written anew. */
static void append(struct spool *s, const char *text)
{
    *VEC_PUSH(&s->texts) = xstrdup(text);
    s->waiting += strlen(text) + 1;
    while (s->texts.n > SPOOL_MESSAGES_MAX || s->waiting > SPOOL_BYTES_MAX / 2) {
        forget(s, 1);
        s->dropped++;
    }
}

/* Lines of the file, but for the head. The last may have been cut by a crash. */
static void take_up(struct spool *s, FILE *f)
{
    char line[LINE_BYTES_MAX + 2];

    while (fgets(line, sizeof(line), f)) {
        size_t len = strlen(line);

        if (len == 0 || line[len - 1] != '\n')
            return;
        line[len - 1] = '\0';
        append(s, line);
    }
}

static void read_file(struct spool *s)
{
    _cleanup_(fclosep) FILE *f = fopen(s->path, "re");
    int64_t origin;
    uint64_t first;

    if (!f || fscanf(f, "reknit-spool %" SCNd64 " %" SCNu64, &origin, &first) != 2 ||
        fgetc(f) != '\n' || origin <= 0 || first == 0 || first > INT64_MAX / 2)
        return;
    s->origin = origin;
    s->first = first;
    take_up(s, f);
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
    VEC_FOREACH (&s->texts, t)
        free(*t);
    VEC_DONE(&s->texts);
    closep(&s->fd);
    free(s->path);
    free(s->path_new);
    free(s);
    return NULL;
}

int spool_add(struct spool *s, const char *text)
{
    _cleanup_(freep) char *line = xasprintf("%s\n", text);
    size_t len = strlen(line);

    assert(len <= LINE_BYTES_MAX && !strchr(text, '\n'));
    append(s, text);
    if (s->fd < 0 || s->size + len > SPOOL_BYTES_MAX)
        return rewrite(s);
    return put(s, line, len);
}

uint64_t spool_first(const struct spool *s)
{
    return s->first;
}

uint64_t spool_end(const struct spool *s)
{
    return s->first + s->texts.n;
}

const char *spool_get(const struct spool *s, uint64_t id)
{
    assert(id >= s->first && id < spool_end(s));
    return s->texts.v[id - s->first];
}

void spool_ack(struct spool *s, uint64_t id)
{
    if (id < s->first || id >= spool_end(s))
        return;
    forget(s, (size_t)(id - s->first + 1));
    if (s->texts.n == 0 && s->size > SMALL_BYTES)
        rewrite(s); /* should it fail, the file keeps what nobody needs */
}

usec_t spool_origin(const struct spool *s)
{
    return s->origin;
}

uint64_t spool_dropped(const struct spool *s)
{
    return s->dropped;
}
