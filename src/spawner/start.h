/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SPAWNER_START_H
#define REKNIT_SPAWNER_START_H

/* Starts a program as somebody else, with nothing of ours but our standard error, and a reader
 * without that. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct start {
    const char *program;        /* absolute */
    const char *const *environ; /* all of it, ends with NULL */
    uid_t uid;
    gid_t gid;     /* of a uid that this host does not know; (gid_t)-1 = not said */
    gid_t gid_min; /* no gid of an unknown uid below it */
    /* It only reads: no file is written, no process started, memory is bounded, others go first. */
    bool confined;
};

/* 0 with its pid and a socket to its standard input and output, owned by the caller; negative
 * errno. What fails later, in the child, it says there as {"kind":"failed","text":"..."}. */
int start_child(const struct start *s, pid_t *ret_pid, int *ret_fd);

/* "UID_MIN" or "GID_MIN" of login.defs(5), 1000 where it does not say. */
uint32_t start_id_min(const char *login_defs, const char *key);

/* Whether a uid or gid may be a person's: neither the system's (below min), nor one that systemd
 * gives to services. nobody's may: what runs as nobody can read what everybody can. */
bool start_is_persons(uint32_t id, uint32_t min);

#endif
