/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_READER_SEEN_H
#define REKNIT_SOURCE_READER_SEEN_H

/* How far signals of a file came: what the next reader repeats of them is known by it. */

#include <stdbool.h>
#include <stdint.h>

struct unread_log;

struct reader_seen {
    uint64_t path; /* hash: another reader may number the files in another order */
    uint64_t offset;
    uint32_t at; /* signals of that offset */
    /* While a new reader repeats what the last one told: */
    uint64_t skip_to;
    uint32_t skip_at;
    uint32_t number; /* of the file in its attempt, from 1; 0 = as the reader counts */
    char *untold;    /* the path or its end, until somebody was told; whoever has this frees it */
    bool in_trouble; /* and that was told */
    bool unread;     /* it cannot be read now */
    struct unread_log *why; /* ... to be shown; NULL = there are too many. Freed as the above */
};

/* A new reader will begin at the marks, which stand before this. */
void reader_seen_expect(struct reader_seen *s);
/* Of a signal at that offset. */
bool reader_seen_is_repeated(struct reader_seen *s, uint64_t offset);
void reader_seen_note(struct reader_seen *s, uint64_t offset);
/* The file is another, or begins anew. */
void reader_seen_forget(struct reader_seen *s);

#endif
