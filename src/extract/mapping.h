/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_MAPPING_H
#define REKNIT_EXTRACT_MAPPING_H

/* A launcher's list of all nodes, each with the ranks that run on it. */

#include "extract/line.h"

#include <stdbool.h>

#define MAPPING_NODES 4096

struct mapped_node {
    char name[NODE_NAME_LEN];
    int32_t first, last; /* ranks */
};

struct mapping {
    const char *at, *end;
    int32_t next; /* the rank with which the next node must begin */
};

/* Whether the line holds such a list; reads the nodes of one, in order. */
bool mapping_find(const struct line *l, struct mapping *ret);
bool mapping_next(struct mapping *m, struct mapped_node *ret);

#endif
