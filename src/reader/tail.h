/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_READER_TAIL_H
#define REKNIT_READER_TAIL_H

/* One file, read while it is written: bytes out, and what else happens to such a file (it is cut,
 * written anew, replaced, removed) noticed. It opens regular files only, and any call may hang as
 * long as the file system does. */

#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TAIL_PRINT_MAX 32

/* A place in a file, that can be found again by another process. */
struct tail_mark {
    uint64_t ino, offset;
    uint64_t line;                       /* in which the next byte stands, from 1 */
    uint8_t n_print;                     /* bytes used of: */
    unsigned char print[TAIL_PRINT_MAX]; /* what stands before the offset */
};

struct tail;

/* owner: of the job, who need not be whom this process runs as: reknitd without a spawner reads as
 * root. */
struct tail *tail_new(const char *path, uid_t owner);
struct tail *tail_free(struct tail *t);

enum tail_look {
    TAIL_ABSENT,   /* there is no file yet */
    TAIL_SAME,     /* nothing happened that reading would not show */
    TAIL_OPENED,   /* it can be read now: place the tail */
    TAIL_ANEW,     /* its text begins anew: the tail was placed there */
    TAIL_REPLACED, /* another file has its name: read this one to its end, then tail_switch() */
};

/* Looks at the file, anew where a network file system would answer from memory. A negative errno
 * is trouble that may pass; -EMEDIUMTYPE: it is no regular file; -EPERM, -EMLINK: somebody else may
 * have put it there, as it is not the owner's, or is a link. */
int tail_look(struct tail *t, bool fresh);

/* Leaves the file that was replaced, with 0 like tail_look(). */
int tail_switch(struct tail *t);

/* As after a TAIL_ABSENT. */
void tail_close(struct tail *t);

/* The next bytes; 0 = that was all for now. */
ssize_t tail_read(struct tail *t, char *buffer, size_t size);

/* A file can be longer than any disk, and be a hole: goes to the next byte that was written, or
 * to the end. Whether it was in one. */
bool tail_skip_hole(struct tail *t);

/* Of the open file: */
uint64_t tail_offset(const struct tail *t); /* of the next byte */
uint64_t tail_ino(const struct tail *t);    /* 0 = none is open */
uint64_t tail_dev(const struct tail *t);
uint64_t tail_size(const struct tail *t);  /* when it was last looked at */
usec_t tail_written(const struct tail *t); /* likewise, by the file's clock */
usec_t tail_born(const struct tail *t);    /* USEC_UNKNOWN where that is not kept */
uint64_t tail_lost(const struct tail *t);  /* bytes known to have been there that nobody read */
bool tail_is_remote(const struct tail *t);
int tail_fd(const struct tail *t);

void tail_place(struct tail *t, uint64_t offset);
bool tail_knows(const struct tail *t, const struct tail_mark *m); /* it is a place in this text */
void tail_mark(const struct tail *t, uint64_t offset, uint64_t line, struct tail_mark *ret);
/* Of where reading is, by what was read, whatever has become of the file since. */
void tail_here(const struct tail *t, uint64_t line, struct tail_mark *ret);

#endif
