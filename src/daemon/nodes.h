/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_DAEMON_NODES_H
#define REKNIT_DAEMON_NODES_H

/* Inside of struct node_watch: nodes.c says what the messages of agents mean, nodes_hear.c listens
 * for agents and knows which there are. */

#include "base/vec.h"
#include "daemon/daemon.h"
#include "daemon/held.h"
#include "source/agents.h"
#include "source/node_samples.h"

#include <sys/stat.h>

#define NODES_SAY_EVERY (60 * USEC_PER_SEC) /* what may come often */

struct sampled {
    char key[SCHED_KEY_LEN];
    uint32_t attempt;
    struct node_samples *samples;
};

/* The pump has it, the journal perhaps not yet. */
struct told {
    struct agent_receipt receipt;
    uint64_t seq;
};

/* By which the agents are heard. */
struct hearing {
    char listen[sizeof(((struct daemon_config *)0)->agents.listen)];
    bool by_key;
    char file[PATH_MAX]; /* the key, or munged's socket; "" = the usual one */
    struct timespec key_changed;
    ino_t key;
};

struct node_watch {
    struct daemon *d;
    struct agents *agents; /* NULL = not yet */
    sd_event_source *timer;
    VEC(struct sampled) jobs;
    struct held *held;     /* of attempts that core does not know yet */
    VEC(struct told) told; /* oldest first */
    struct hearing hearing;
    struct vacated *vacated;
    uint64_t foreign, turned_away; /* messages about jobs of other nodes; beyond HELD_MAX */
    usec_t said_refused, said_ignored, said_full; /* monotonic */
    bool failing;                                 /* said so */
};

/* A message of an agent; ctx is the node_watch. */
enum agent_taken nodes_take(void *ctx, const struct node_message *m, const struct agent_receipt *r);

int nodes_hear_init(struct node_watch *w);
void nodes_hear_done(struct node_watch *w);

#endif
