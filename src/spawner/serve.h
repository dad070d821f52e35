/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SPAWNER_SERVE_H
#define REKNIT_SPAWNER_SERVE_H

/* Listens, believes only whom it should, starts and ends children. */

#include "base/err.h"

#include <sys/types.h>

struct spawner_options {
    int listening;                /* SOCK_SEQPACKET, owned from now on */
    uid_t user;                   /* who may ask, besides root */
    uid_t slurm_user;             /* whom the adapter runs as */
    uid_t uid_min;                /* of those that readers run as */
    gid_t gid_min;                /* likewise */
    const char *reader, *adapter; /* their programs, absolute */
    const char *slurm_conf;       /* for the adapter; NULL = where Slurm looks by itself */
};

/* Until SIGTERM. Negative errno with text. */
int spawner_serve(const struct spawner_options *o, struct err *e);

#endif
