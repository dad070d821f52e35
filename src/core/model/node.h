/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MODEL_NODE_H
#define REKNIT_CORE_MODEL_NODE_H

/* What is known of a node, whatever runs on it: facts that a privileged witness saw there, as its
 * agent tells them. No text of a job is ever one. */

#include "core/model/signal.h"

/* What a fact asks for about its node, by itself. Ordered: each is more than the one before. */
enum isolation {
    ISOLATION_NONE,     /* of interest, and blames no node by itself */
    ISOLATION_REPEATED, /* a program's fault, unless the same device shows it again and again */
    ISOLATION_EXCLUDE,  /* keep the next attempt of that job away from the node, no more */
    ISOLATION_DRAIN,    /* no new job there */
    ISOLATION_RESET,    /* ... until its GPU was reset */
    ISOLATION_REBOOT,   /* ... until it was booted anew */
    ISOLATION_MAX,
    ISOLATION_INVALID = -EINVAL,
};
DECLARE_NAMES(isolation, enum isolation);

struct node_fact {
    char node[NODE_NAME_LEN];
    uint32_t job; /* the scheduler's number of the job whose process it is about; 0 = of none, or
                     not known */
    enum isolation isolation; /* as the catalogue says of the signature, or of the code */
    int32_t code;             /* number of the Xid or SXid; 0 = none */
    uint32_t count;           /* how often, within the burst that it stands for; from 1 */
    bool cleared;             /* the trouble of that device and signature is over */
    struct signal signal; /* SIGNAL_HIT of a privileged provenance; who.node is `node`, who.device
                             the GPU, who.peer a server or the like that others share */
};

#endif
