/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_ATTRIBUTE_ROSTER_H
#define REKNIT_CORE_ATTRIBUTE_ROSTER_H

/* Who takes part: which ranks showed themselves, on which node and device each runs. */

#include "base/intset.h"
#include "base/vec.h"
#include "core/model/signal.h"

#define ROSTER_RANKS      16384
#define ROSTER_NODES      4096
#define ROSTER_TASK_LISTS 1024

struct roster_place {
    int32_t node;                 /* index into nodes, -1 unknown */
    int32_t local_rank;           /* RANK_NONE unknown */
    int32_t task;                 /* of the scheduler, in which it runs; -1 unknown */
    char device[DEVICE_NAME_LEN]; /* "" unknown */
    int64_t pid;                  /* 0 unknown */
};

/* The tasks of the scheduler's step that run on a node. */
struct node_tasks {
    int32_t node;
    struct intset tasks;
};

/* A node's address, by its own word. */
struct own_address {
    char address[PEER_NAME_LEN];
    int32_t node;
};

struct roster {
    struct intset ranks;
    VEC(struct roster_place) places; /* by rank */
    VEC(char *) nodes;
    VEC(struct own_address) addresses;
    VEC(struct node_tasks) tasks;
    uint32_t task_lists; /* seen */
    int64_t step;        /* of the scheduler's own lists */
    int32_t n_tasks;     /* of that step; 0 = it did not say */
    bool has_locals;     /* a rank is not the first on its node */
    int32_t told_nodes;  /* how many a launcher says there are, 0 unknown */
};

void roster_done(struct roster *r);
void roster_add(struct roster *r, const struct entity *who);
void roster_add_size(struct roster *r, int32_t nodes); /* a launcher's word */
/* The scheduler's own list of the tasks on a node. */
void roster_add_layout(struct roster *r, const struct layout_fact *layout,
                       const struct entity *who);

/* Whether the scheduler's tasks are launchers, with ranks of their own numbers below them. */
bool roster_has_launchers(const struct roster *r);

bool roster_is_alone(const struct roster *r);                  /* no rank but the first is known */
const char *roster_node(const struct roster *r, int32_t rank); /* NULL unknown */
const char *roster_node_at(const struct roster *r, const char *address);
const char *roster_device(const struct roster *r, int32_t rank); /* NULL unknown */

/* Of whom a line tells: by its own words, else by what is known of the process or rank in it. A
 * task is a rank unless launchers are known; a local rank is the rank where there is one node, else
 * only where its node is known, too. */
int32_t roster_rank_of(const struct roster *r, const struct entity *who);
const char *roster_node_of(const struct roster *r, const struct entity *who); /* NULL unknown */

#endif
