/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_AGENT_RECEIPTS_H
#define REKNIT_SOURCE_AGENT_RECEIPTS_H

/* Which messages of a node's spools were handed on, and which of them may be acked. An ack speaks
 * for all before it, so one that is not safe holds the others up. Not forgotten as long as this
 * process lives, for nothing must be told again. */

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

#define AGENT_ORIGINS_MAX 8    /* of one node; a spool has one for each start of its agent */
#define AGENT_OPEN_MAX    1024 /* not safe yet, of one node */

struct agent_told {
    int64_t origin, last;
};

/* Handed on, and not acked. */
struct agent_open {
    int64_t origin, id;
    int64_t before; /* the last of its origin before it */
    bool safe;
};

struct agent_receipts {
    struct agent_told told[AGENT_ORIGINS_MAX]; /* oldest first */
    size_t n_told;
    VEC(struct agent_open) open; /* in the order of the node's spool */
};

enum agent_receipt_kind {
    AGENT_RECEIPT_NEW,     /* to be handed on; it is noted as told */
    AGENT_RECEIPT_WAITS,   /* told before, and not safe yet, or one before it is not */
    AGENT_RECEIPT_SAFE,    /* told before, and it and all before it are safe */
    AGENT_RECEIPT_NO_ROOM, /* too many are not safe */
};

/* id: from 1 on. */
enum agent_receipt_kind agent_receipts_take(struct agent_receipts *r, int64_t origin, int64_t id);
/* The last that was taken as new was not handed on after all: it is to come again. */
void agent_receipts_untake(struct agent_receipts *r);

/* False: it is none of those that wait. */
bool agent_receipts_safe(struct agent_receipts *r, int64_t origin, int64_t id);
/* The last of those at the front that are safe, which are then forgotten; false: none are. */
bool agent_receipts_ack(struct agent_receipts *r, int64_t *ret_origin, int64_t *ret_id);

void agent_receipts_done(struct agent_receipts *r);

#endif
