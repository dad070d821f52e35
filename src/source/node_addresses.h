/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_NODE_ADDRESSES_H
#define REKNIT_SOURCE_NODE_ADDRESSES_H

/* The addresses of a node, as they were last found. They hold until others are: without a name
 * server the nodes are known as before. Times are of a monotonic clock. */

#include "base/time.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define NODE_ADDRESSES_MAX 16
#define NODE_ADDRESS_LEN   64

struct node_addresses {
    char v[NODE_ADDRESSES_MAX][NODE_ADDRESS_LEN];
    size_t n;
    usec_t fresh_until;
    bool asked; /* somebody looks them up now */
};

bool node_addresses_has(const struct node_addresses *a, const char *address);

/* They are old, and nobody looks them up: whoever does then says so in `asked`. */
bool node_addresses_are_due(const struct node_addresses *a, usec_t now);

/* answer: {"addresses":[...]}, or anything else when none were found. */
void node_addresses_learn(struct node_addresses *a, const json_t *answer, usec_t now);

#endif
