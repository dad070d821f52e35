/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_SCANNER_H
#define REKNIT_EXTRACT_SCANNER_H

/* Bytes of one log in, signals out. Streaming, in constant memory, whatever the size of the log
 * or of a line; the signals do not depend on how the bytes are cut into calls. */

#include "extract/matcher.h"

struct scanner_options {
    uint32_t file;              /* for signal.file */
    enum provenance provenance; /* for signal.provenance */
    const struct entity *who;   /* prints the lines that do not say by whom they are; NULL */
    bool alone;                 /* it is the only log of its job: a clock may count from anything */
    uint64_t size;              /* of the log, where it is known beforehand; 0 = not known */
    usec_t now_us; /* gives clocks without a year one; USEC_UNKNOWN: they stay unknown */
};

struct scanner_counters {
    uint64_t bytes, lines; /* lines: LF, and text behind the last one */
};

struct scanner;
typedef void (*scanner_sink_fn)(void *ctx, const struct signal *s);

/* The matcher must outlive it and may be shared by scanners that are not fed at the same time. */
struct scanner *scanner_new(struct matcher *m, const struct scanner_options *o,
                            scanner_sink_fn sink, void *ctx);
struct scanner *scanner_free(struct scanner *s);
DEFINE_CLEANUP(struct scanner *, scanner_free);

/* Signals come out when a block is full, at scanner_flush() (all complete lines; for a live log,
 * by a timer), and at scanner_finish() (also what stands behind the last line end). */
void scanner_feed(struct scanner *s, const char *data, size_t len);
void scanner_flush(struct scanner *s);
void scanner_finish(struct scanner *s);

const struct scanner_counters *scanner_counters(const struct scanner *s);

#endif
