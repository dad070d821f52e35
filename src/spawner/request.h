/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SPAWNER_REQUEST_H
#define REKNIT_SPAWNER_REQUEST_H

/* What may be asked of the spawner, a datagram of JSON each. */

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

#define REQUEST_MAX 4096 /* bytes */

enum request_op { REQUEST_START_ADAPTER, REQUEST_START_READER, REQUEST_KILL };

struct request {
    enum request_op op;
    int64_t id;
    uid_t uid;      /* of a reader */
    gid_t gid;      /* likewise, or (gid_t)-1 = not said */
    uint32_t child; /* to be killed */
};

/* -EBADMSG; the id is filled as far as there is one, else -1. */
int request_parse(const char *text, size_t len, struct request *ret, struct err *e);

#endif
