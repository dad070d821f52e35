/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SPAWNER_START_H
#define REKNIT_SPAWNER_START_H

/* Starts a program as somebody else, with nothing of ours. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct start {
    const char *program;        /* absolute */
    const char *const *environ; /* all of it, ends with NULL */
    uid_t uid;
    gid_t gid;     /* of a uid that this host does not know; (gid_t)-1 = not said */
    uid_t uid_min; /* no uid below it, nor a gid of an unknown uid */
    bool confined; /* it only reads: no files are written, memory is bounded, others go first */
};

/* 0 with its pid and a socket to its standard input and output, owned by the caller; negative
 * errno. What fails later, in the child, it says there as {"kind":"failed","text":"..."}. */
int start_child(const struct start *s, pid_t *ret_pid, int *ret_fd);

/* UID_MIN of login.defs(5), 1000 where it does not say. */
uid_t start_uid_min(const char *login_defs);

#endif
