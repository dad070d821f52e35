/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_STREAM_H
#define REKNIT_API_STREAM_H

/* Server-sent events. Nothing is queued for anybody: a stream is a place in the sequence of events,
 * and reads from the newest, which are kept once for all streams, or from the journal where it is
 * further behind. So a slow reader costs nothing, and one that comes back (Last-Event-ID) misses
 * nothing. */

#include "api/answer.h"
#include "api/store.h"

#include <sys/types.h>

#define STREAMS_MAX          64
#define STREAMS_PER_USER_MAX 8

struct streams;
struct stream;

struct streams *streams_new(struct store *store);
struct streams *streams_free(struct streams *s); /* all streams were freed before */

/* wake(ctx): something can be read, where stream_read() said 0. NULL: there are too many. */
struct stream *stream_new(struct streams *s, const struct asker *who, const struct stream_choice *c,
                          void (*wake)(void *ctx), void *ctx);
struct stream *stream_free(struct stream *st);

/* Bytes of text/event-stream; 0: nothing now; -ENOENT: the stream ends. */
ssize_t stream_read(struct stream *st, char *buf, size_t size);

void streams_happened(struct streams *s, const struct event *e);
void streams_beat(struct streams *s);  /* a sign of life to each that is quiet */
void streams_close(struct streams *s); /* all of them end */

#endif
