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
    struct signal signal; /* SIGNAL_HIT of a monitor or a privileged witness; who.node is `node`,
                             who.device the GPU, who.peer a server or the like that others share */
};

/* What may be done about nodes from now on. 0 = no limit. */
struct node_terms {
    enum mode mode;           /* OFF: nothing is judged; OBSERVE, PROPOSE: nothing is done; ACT */
    bool check;               /* there is a program that says whether a node is well again */
    uint32_t nodes;           /* of the cluster; 0 = not known */
    uint32_t max_drained;     /* by us, at once */
    uint32_t drains_per_hour; /* ... */
    uint32_t breaker_nodes;   /* one rule that convicts more of them within an hour is stopped */
};

#define NODE_REASON_LEN 192 /* why a node is out of service, as its scheduler has it */

/* What the scheduler says of a node of interest, whenever that is new. */
struct node_look {
    char node[NODE_NAME_LEN];
    bool out;   /* nothing new starts there, for whatever reason */
    bool drain; /* ... because somebody said so */
    char reason[NODE_REASON_LEN];
    usec_t booted; /* 0 = not known */
};

/* What core makes of the facts. */
struct node_verdict {
    char node[NODE_NAME_LEN]; /* "" = what several share is at fault, or a rule of ours */
    char device[DEVICE_NAME_LEN];
    enum isolation isolation; /* NONE: nothing stands against it any more */
    enum cause cause;
    char signature[SIGNATURE_MAX];
    char rule[64]; /* by which it was convicted, or which is stopped */
    char why[NODE_REASON_LEN - 16];
};

#endif
