/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_READER_STREAM_H
#define REKNIT_READER_STREAM_H

/* One log of one attempt: a file's bytes become signals, and the place up to which that has been
 * done can be named, for another process to go on. */

#include "core/model/signal.h"
#include "extract/matcher.h"
#include "reader/tail.h"

enum stream_mode { STREAM_MODE_UNKNOWN, STREAM_MODE_TRUNCATE, STREAM_MODE_APPEND };

/* Where to begin in a file that is there already. */
struct stream_begin {
    struct tail_mark mark;   /* up to there this attempt's text was read; ino 0 = none of it was */
    struct tail_mark before; /* there the attempt before ended; likewise */
    struct tail_mark other;  /* there another job's text ended, should it fit; likewise */
    usec_t started_us;       /* of the attempt; 0 = not known */
    uid_t owner;             /* as in tail_new() */
    enum stream_mode mode;
    bool own;         /* by its name: no other attempt wrote it */
    bool unnamed;     /* nobody has called it a log: it may be data, and then is not read on */
    const char *node; /* that all of it was printed on, "" = not known; copied */
};

struct stream_handlers {
    void (*signal)(void *ctx, const struct signal *s);
    void (*gap)(void *ctx, const char *path, const char *text);
    void (*anew)(void *ctx, uint32_t file); /* offsets count from the beginning again */
    /* Whether it may be read: not if another stream reads the same file. */
    bool (*opened)(void *ctx, const char *path, uint64_t dev, uint64_t ino);
    void (*trouble)(void *ctx, uint32_t file, const char *path, const char *text); /* NULL: none */
};

struct stream;

struct stream *stream_new(struct matcher *m, uint32_t file, const char *path,
                          const struct stream_begin *begin, const struct stream_handlers *handlers,
                          void *ctx);
struct stream *stream_free(struct stream *s);

/* Reads some of what there is; whether there is more. `fresh` as in tail_look(). */
bool stream_read(struct stream *s, bool fresh);

/* All that was read is told, even a line that has no end yet. */
void stream_finish(struct stream *s);

/* Its scanner is put away until more comes. */
void stream_sleep(struct stream *s);
bool stream_is_awake(const struct stream *s);
usec_t stream_grew_at(const struct stream *s); /* mono_us(); 0 = never */

/* Everything before the mark has been told. Whether there is one, and it has changed since the
 * last call. */
bool stream_mark(struct stream *s, struct tail_mark *ret);

/* Where reading was at that time (of now_us()), as far back as is known; USEC_NEVER = where it is.
 * Whether there is such a place. */
bool stream_mark_at(const struct stream *s, usec_t when_us, struct tail_mark *ret);

bool stream_is_absent(const struct stream *s); /* when it was last looked for, it was not there */

uint32_t stream_file(const struct stream *s);
const char *stream_path(const struct stream *s);
const struct tail *stream_tail(const struct stream *s);

#endif
