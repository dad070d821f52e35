/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_RELAY_H
#define REKNIT_SOURCE_RELAY_H

/* Passes the job's output on, unchanged and at once, and shows a copy to whoever wants it. */

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#define RELAY_STREAMS_MAX 2

struct relay_handlers {
    /* The bytes have been handed on; they are valid during the call only. */
    void (*data)(void *ctx, unsigned stream, const char *data, size_t len);
    void (*flush)(void *ctx); /* some 50 ms after data: a good moment to write and to judge it */
    void (*reader_gone)(void *ctx); /* nobody reads our output any more (EPIPE, EIO) */
    /* The file that a stream goes to does not take it (a full disk); said once. */
    void (*refused)(void *ctx, int target, int error);
    void (*ended)(void *ctx);     /* every stream was read to its end; flush came before */
    void (*delivered)(void *ctx); /* after that: the reader took all that was owed to it then */
};

struct relay;

struct relay *relay_new(sd_event *event, const struct relay_handlers *handlers, void *ctx);
struct relay *relay_free(struct relay *r);
DEFINE_CLEANUP(struct relay *, relay_free);

/* Everything that comes from `in` (owned from now on) goes to `out` (borrowed, kept in whatever
 * mode it is). Streams are numbered from 0. Returns the number or a negative errno. */
int relay_add(struct relay *r, int in, int out);

/* The job is ending: from now on a reader that pauses holds reading up only after 1 MiB. */
void relay_read_ahead(struct relay *r);

/* Nothing can write to the streams any more: what is in them is read at once, whether the reader
 * takes it or not, then they end. */
void relay_finish(struct relay *r);

/* What `old`, which has ended, still owes to its readers goes out before anything that r reads. */
void relay_inherit(struct relay *r, struct relay *old);

size_t relay_owed(const struct relay *r);      /* bytes that readers have not taken yet */
uint64_t relay_dropped(const struct relay *r); /* bytes that were too many to be owed */
uint64_t relay_refused(const struct relay *r); /* bytes that a file did not take */

/* The reader of `out` does not take what there is: the job may be waiting because of that. */
bool relay_is_blocked(const struct relay *r);

/* Whether the last byte that went to the stream's `out` ended a line, or none did go there. */
bool relay_at_line_start(const struct relay *r, unsigned stream);

#endif
