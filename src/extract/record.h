/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_RECORD_H
#define REKNIT_EXTRACT_RECORD_H

/* Looks closely at the records of one log: cleans them, finds out what they say, and tells it. */

#include "extract/scanner.h"

#define RECORD_BYTES ((size_t)64 << 10) /* of one record at most */

/* Where a record stands. */
struct place {
    uint64_t line, offset;
};

struct record_reader;

struct record_reader *record_reader_new(struct matcher *m, const struct scanner_options *o,
                                        scanner_sink_fn sink, void *ctx);
struct record_reader *record_reader_free(struct record_reader *r);

/* In the order of the log, though not without gaps. The first `seen` bytes have been looked at
 * before, as the end of another piece of the same record. */
void record_read(struct record_reader *r, const char *raw, size_t len, size_t seen,
                 const struct place *place);

/* What was held back to be understood together with what follows comes out. */
void record_flush(struct record_reader *r);

/* The log ends. */
void record_end(struct record_reader *r);

/* The log ends within this record: it may have been cut in the middle of a word. */
void record_read_last(struct record_reader *r, const char *raw, size_t len, size_t seen,
                      const struct place *place);

enum record_weight {
    RECORD_NONE,  /* nothing matches but progress or noise */
    RECORD_LIGHT, /* it alone matters */
    RECORD_GRAVE, /* its surroundings, too */
};

/* Without telling anything. */
enum record_weight record_weigh(struct record_reader *r, const char *raw, size_t len);

uint64_t record_steps(const struct record_reader *r); /* step signals so far */

#endif
