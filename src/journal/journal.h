/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_JOURNAL_JOURNAL_H
#define REKNIT_JOURNAL_JOURNAL_H

/* The append-only record of every input and of everything derived from it. One writer; any number
 * of readers, also while it writes. */

#include "base/cleanup.h"
#include "base/err.h"
#include "core/model/event.h"

struct journal;

enum journal_mode {
    JOURNAL_WRITE, /* creates the file, or brings an older one to the present schema */
    JOURNAL_READ,
    JOURNAL_ASK, /* beside its writer, to look things up: no stock is taken of it */
};

/* -ENOENT, -EACCES, -ENOSPC, ...; -EBADMSG: no journal, or a damaged one; -EPROTO: written by a
 * newer release. The text of each error here and below begins with the name of the file. */
int journal_open(const char *path, enum journal_mode mode, struct journal **ret, struct err *e);
struct journal *journal_free(struct journal *j);
DEFINE_CLEANUP(struct journal *, journal_free);

/* Of many jobs each has a page of the index of its own, so every signal makes another one dirty.
 * Keeps so much of the file in memory, and lets the write-ahead log grow as long before its pages
 * are put in place: a page that changed often meanwhile is written once. */
int journal_use_memory(struct journal *j, unsigned mib, struct err *e);

const char *journal_path(const struct journal *j);

/* Whether its file still has the name that it was opened by. */
bool journal_is_in_place(const struct journal *j);

uint64_t journal_last_seq(const struct journal *j); /* 0 = empty */

/* How many events were committed and are not in it any more: a damaged or missing write-ahead log,
 * or the power was cut before they were on the disk. As of when it was opened. */
uint64_t journal_lost(const struct journal *j);

/* Events wait in a batch, encoded, until they are committed together. */
struct journal_batch;
struct journal_batch *journal_batch_new(void);
struct journal_batch *journal_batch_free(struct journal_batch *b);
DEFINE_CLEANUP(struct journal_batch *, journal_batch_free);
void journal_batch_add(struct journal_batch *b, const struct event *e);
size_t journal_batch_size(const struct journal_batch *b); /* events */

/* One transaction; on success the batch is empty, on failure as before (-ENOSPC, -EIO, ...; -EBUSY:
 * another process has it locked, which was waited for no longer than a loop may stand still).
 * durable: it is on the disk when this returns; otherwise a power cut may lose the latest. */
int journal_commit(struct journal *j, struct journal_batch *b, bool durable, struct err *e);

struct journal_cursor;

/* Events with a seq above `after`, ascending. */
int journal_read(struct journal *j, uint64_t after, struct journal_cursor **ret, struct err *e);
struct journal_cursor *journal_cursor_free(struct journal_cursor *c);
DEFINE_CLEANUP(struct journal_cursor *, journal_cursor_free);
/* 1 and the event, 0 at the end, negative errno. */
int journal_next(struct journal_cursor *c, struct event *ret, struct err *e);

/* Some of the events. Zeroed: all of them, ascending. */
struct journal_choice {
    const char *job;       /* of that job alone; NULL = of any, and of none */
    const char *id;        /* of jobs whose name is ID-anything */
    uint64_t kinds;        /* a bit for each kind; 0 = all */
    uint64_t after, below; /* seq, both exclusive; below 0 = to the end */
    bool newest_first;
    usec_t ended_before; /* without jobs that ended before then, and did not begin anew */
};
int journal_select(struct journal *j, const struct journal_choice *c, struct journal_cursor **ret,
                   struct err *e);

/* Hands over all events after that number. 0 or negative errno. */
int journal_each(struct journal *j, uint64_t after,
                 void (*fn)(void *ctx, const struct event *event), void *ctx, struct err *e);
int journal_each_of(struct journal *j, const struct journal_choice *c,
                    void (*fn)(void *ctx, const struct event *event), void *ctx, struct err *e);

#endif
