/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_ATTRIBUTE_ROSTER_H
#define REKNIT_CORE_ATTRIBUTE_ROSTER_H

/* Who takes part: which ranks showed themselves, on which node and device each runs. */

#include "base/intset.h"
#include "base/vec.h"
#include "core/model/signal.h"

#define ROSTER_RANKS 16384
#define ROSTER_NODES 4096

struct place {
    int32_t node;                 /* index into nodes, -1 unknown */
    char device[DEVICE_NAME_LEN]; /* "" unknown */
};

/* A node's address, by its own word. */
struct own_address {
    char address[PEER_NAME_LEN];
    int32_t node;
};

struct roster {
    struct intset ranks;
    VEC(struct place) places; /* by rank */
    VEC(char *) nodes;
    VEC(struct own_address) addresses;
};

void roster_done(struct roster *r);
void roster_add(struct roster *r, const struct entity *who);

const char *roster_node(const struct roster *r, int32_t rank); /* NULL unknown */
const char *roster_node_at(const struct roster *r, const char *address);
const char *roster_device(const struct roster *r, int32_t rank); /* NULL unknown */

#endif
