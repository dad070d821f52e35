/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_READER_ATTEMPT_H
#define REKNIT_READER_ATTEMPT_H

/* All logs of one attempt of a job: found, read in turns, their signals thinned out. */

#include "core/model/event.h"
#include "reader/notice.h"
#include "reader/stream.h"

#define ATTEMPT_FILES_MAX    2048
#define ATTEMPT_PATTERNS_MAX 80

/* A place in one of the files. */
struct attempt_mark {
    uint32_t file;
    char *path; /* of whoever holds the mark */
    struct tail_mark mark;
};

struct attempt_handlers {
    void (*signal)(void *ctx, const struct signal *s);
    /* local: it is this host's alone. */
    void (*file)(void *ctx, uint32_t file, const char *path, const char *trouble, bool local);
    void (*gap)(void *ctx, const char *path, const char *text);
    void (*anew)(void *ctx, uint32_t file);
    void (*marks)(void *ctx); /* attempt_marks() has news, and all signals before are out */
    void (*drained)(void *ctx);
    /* On this host there is no such folder; once, until files of the attempt are found. */
    void (*nowhere)(void *ctx, const char *path);
    /* A file of attempt_add_file() is not there, and is looked for no more: see attempt_leave(). */
    void (*left)(void *ctx, const char *path);
    /* Whether another job's reading of that file is known, and where it was when this attempt
     * began; NULL = of none. */
    bool (*elsewhere)(void *ctx, const char *path, struct tail_mark *ret);
};

struct attempt_options {
    struct matcher *matcher;
    struct notice *notice; /* may be NULL */
    usec_t started_us;
    uid_t owner;         /* as in tail_new() */
    uint32_t own_number; /* a path with it has no other job's or attempt's text; 0 = none */
};

struct attempt;

struct attempt *attempt_new(const struct attempt_options *o,
                            const struct attempt_handlers *handlers, void *ctx);
struct attempt *attempt_free(struct attempt *a);

/* An expanded path (pattern.h); known ones are ignored. -E2BIG */
int attempt_add_path(struct attempt *a, const char *path, enum stream_mode mode);

/* A file as it is called; after all paths, as one of them may stand for it. */
void attempt_add_file(struct attempt *a, const char *path);
/* Whether such files are left to others when they are not there. */
void attempt_leave(struct attempt *a, bool leave);
/* The same of the files that an earlier process read of this attempt. */
void attempt_add_resumed(struct attempt *a);

/* What an earlier process read of this attempt, and where the attempt before ended. Before the
 * first attempt_run(). */
void attempt_resume(struct attempt *a, const struct attempt_mark *m);
void attempt_follow_up(struct attempt *a, const struct attempt_mark *m);
/* Where another job ended, that nobody reads any more. */
void attempt_beside(struct attempt *a, const struct attempt_mark *m);

void attempt_drain(struct attempt *a);

/* Does what is due; returns when to call again, at once if that is past. */
usec_t attempt_run(struct attempt *a, usec_t now);
/* Something of the notice; NOTICE_NONE: anything. Whether attempt_run() is to be called. */
bool attempt_changed(struct attempt *a, int number);

typedef void (*attempt_mark_fn)(void *ctx, const struct attempt_mark *m);
/* Its files that are being read, where that has changed since the last call. */
void attempt_marks(struct attempt *a, attempt_mark_fn fn, void *ctx);
/* Where it was when the next attempt began (of now_us(); 0 = not known): what was read since then
 * was that one's. */
void attempt_end(struct attempt *a, usec_t next_us, attempt_mark_fn fn, void *ctx);

/* Where its reading of that file was then (likewise). Whether there is such a place. */
bool attempt_was_at(const struct attempt *a, const char *path, usec_t when_us,
                    struct tail_mark *ret);

size_t attempt_files(const struct attempt *a);
size_t attempt_awake(const struct attempt *a);        /* scanners in memory */
void attempt_sleep(struct attempt *a, usec_t before); /* those that did not grow since */

#endif
