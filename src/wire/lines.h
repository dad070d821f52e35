/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_WIRE_LINES_H
#define REKNIT_WIRE_LINES_H

/* JSON objects, one a line, over a pair of descriptors in an event loop: what our programs speak
 * with each other. The far side may be hostile, slow or gone; both directions are bounded. */

#include <jansson.h>
#include <stddef.h>
#include <systemd/sd-event.h>

/* Between reknitd and a reader: the marks of 2048 files whose paths are as long as paths can be. */
#define LINES_OF_READER_MAX ((size_t)16 << 20)

struct lines_options {
    size_t line_max; /* bytes; a longer line is bad */
    size_t owed_max; /* bytes that wait for the far side; with more, lines_send() refuses */
};

/* Only closed() may free the lines. */
struct lines_handlers {
    void (*object)(void *ctx, const json_t *j);
    void (*bad)(void *ctx, const char *text); /* a line was left out; NULL = nobody wants to know */
    void (*relieved)(void *ctx);              /* all that was owed has been taken; may be NULL */
    void (*closed)(void *ctx);                /* once, and last: end of data, or an error */
};

struct lines;

/* Both are owned from now on, and may be one. NULL when the loop refuses. */
struct lines *lines_new(sd_event *event, int in, int out, const struct lines_options *o,
                        const struct lines_handlers *handlers, void *ctx);
struct lines *lines_free(struct lines *l);

/* Takes j over. -ENOBUFS when too much is owed: nothing was sent. */
int lines_send(struct lines *l, json_t *j);
size_t lines_owed(const struct lines *l);

/* The descriptor, when `in` and `out` were one, nothing is owed and nothing has come in behind the
 * last line: it is the caller's, and the lines are free as by lines_free(). -EBUSY: they are not.
 * Never from within what they call. */
int lines_release(struct lines *l);

/* Nothing more is read or written; closed() follows from the loop. */
void lines_close(struct lines *l);

#endif
