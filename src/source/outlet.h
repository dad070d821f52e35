/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_OUTLET_H
#define REKNIT_SOURCE_OUTLET_H

/* Where a stream's bytes go. Writing never waits: what the reader does not take now is owed to it,
 * in order, up to a limit; beyond that it is dropped and counted. A file that takes nothing now is
 * tried again with the next piece. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum outlet_kind {
    OUTLET_PLAIN,  /* write() never blocks for long: a file, /dev/null */
    OUTLET_OWN,    /* opened by us, non-blocking */
    OUTLET_SOCKET, /* send() with MSG_DONTWAIT */
    OUTLET_SHARED, /* could not be opened anew: poll, then at most PIPE_BUF */
};

#define OUTLET_OWED_MAX ((size_t)4 << 20)

struct outlet {
    enum outlet_kind kind;
    int fd;     /* to write and to poll; of OUTLET_OWN its own, else borrowed */
    int target; /* as it was given */
    bool gone;  /* nobody reads there any more (EPIPE, EIO): everything counts as taken */
    char *owed;
    size_t at, len, cap; /* of `owed`: its first byte, how many, room */
    uint64_t dropped;    /* more than may be owed */
    uint64_t refused;    /* what a file did not take: its disk is full */
    int error;           /* ... and why, the last time, negative errno */
};

void outlet_init(struct outlet *o, int target); /* borrowed, kept in whatever mode it is */
void outlet_done(struct outlet *o);

void outlet_write(struct outlet *o, const char *data, size_t len);
void outlet_resume(struct outlet *o); /* the reader takes more: what is owed goes on */

/* What `from` owes goes out of `o`, before anything else; then `from` owes nothing. */
void outlet_inherit(struct outlet *o, struct outlet *from);

#endif
