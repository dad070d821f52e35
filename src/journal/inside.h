/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_JOURNAL_INSIDE_H
#define REKNIT_JOURNAL_INSIDE_H

/* Inside of a journal, for the files of this folder only. */

#include "base/vec.h"
#include "journal/journal.h"

#include <sqlite3.h>

/* What thin.c found, so as not to look for it at each event; without it, more stays. */
struct thin_kept {
    uint64_t key; /* of a kind of signal of an attempt */
    usec_t at;    /* the last that stays */
};
struct thin_last {
    uint64_t key;    /* of an attempt */
    uint64_t before; /* signals up to that one are not of its last */
    uint64_t as_of;  /* last_seq when that was found; 0 = there is more to be found at once */
};

struct journal {
    sqlite3 *db;
    char *path; /* that errors name; NULL while it is being opened, whose caller does */
    sqlite3_stmt *insert;
    uint64_t last_seq;
    uint64_t lost;  /* events that were committed, and are not in it */
    int high_water; /* of a writer; -1 = none */
    bool full;      /* synchronous=FULL is set */
    bool empty;     /* for reading: its writer was killed before the first table was made */
    int version;    /* of its schema */
    VEC(struct thin_kept) kept;
    VEC(struct thin_last) last;
};

int journal_error(struct journal *j, struct err *e);
int journal_run(struct journal *j, const char *sql, struct err *e);
int journal_number(struct journal *j, const char *sql, int64_t *ret, struct err *e);

#endif
