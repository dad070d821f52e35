/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_CHILDREN_H
#define REKNIT_SOURCE_CHILDREN_H

/* The programs that the daemon talks to: they are started by reknit-spawner, as whoever they must
 * be, or, without one, by us, as whoever we are. Either way there is a socket to the child's
 * standard input and output, its end is told, and it ends when we do. */

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#define CHILDREN_MAX 1024 /* readers at a time */

enum child_kind {
    CHILD_ADAPTER, /* reknit-slurm, as SlurmUser */
    CHILD_READER,  /* reknit-reader, as the owner of jobs */
};

struct children_config {
    const char *spawner;  /* its socket; NULL or "" = none */
    const char *programs; /* folder of the programs where there is no spawner */
    uint32_t readers_max; /* readers at a time; 0 = CHILDREN_MAX, and no more than that */
};

/* Both are called from the loop, never from within child_start(). */
struct child_handlers {
    /* fd: a stream socket, not blocking, the callee's from now on. */
    void (*started)(void *ctx, int fd);
    /* Once, and last: it could not be started, or has ended. text says how, for people. */
    void (*ended)(void *ctx, const char *text);
};

struct children;
struct child;

struct children *children_new(sd_event *event, const struct children_config *c);
struct children *children_free(struct children *c); /* ends all of them */

/* For those that are started from now on. */
void children_limit(struct children *c, uint32_t readers_max);

/* Never NULL; what goes wrong is told by ended(). gid: for a uid that this host does not know. */
struct child *child_start(struct children *c, enum child_kind kind, uid_t uid, gid_t gid,
                          const struct child_handlers *handlers, void *ctx);

/* Kills it (SIGKILL), whatever it does. Nothing more is told of it, and the pointer is gone. */
struct child *child_drop(struct child *child);

#endif
