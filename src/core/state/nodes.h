/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_STATE_NODES_H
#define REKNIT_CORE_STATE_NODES_H

/* The books of the nodes that something is known of: what privileged witnesses saw there, what
 * that comes to, and what was asked of the scheduler. A node that is well is not in them. Made by
 * model_apply() alone; what follows from them is in core/policy/nodes.h and core/plan/nodes.h. */

#include "core/measure/decay.h"
#include "core/model/event.h"

#include "base/vec.h"

#define LEDGER_NODES_MAX 8192 /* who was silent longest gives way */
#define NODE_SEEN_MAX    32   /* facts of a node, for people */
#define TROUBLES_MAX     32   /* of a node; the least of them gives way */
#define TROUBLE_TIMES    3
#define TROUBLE_JOBS     4
#define SHARED_MAX       32
#define STOPPED_MAX      32

#define NODE_INCIDENTS_MAX 32
#define LEMON_HALF_LIFE    (14 * USEC_PER_DAY)

/* The driver says the same thing many times within moments: one time. */
#define NODE_BURST (20 * USEC_PER_SEC)

/* A fact as people are shown it. */
struct node_seen {
    usec_t at; /* when it happened, as the node says, if that can be */
    uint64_t seq;
    enum isolation isolation;
    enum cause cause;
    int32_t code;
    uint32_t count, job;
    bool cleared;
    char signature[SIGNATURE_MAX];
    char device[DEVICE_NAME_LEN];
    char text[EXCERPT_LEN];
};

/* What stands against a node: facts of one signature, code, and part of a device. */
struct node_trouble {
    char signature[SIGNATURE_MAX];
    char device[DEVICE_NAME_LEN];
    char unit[24];            /* of the device; "" = not said */
    char peer[PEER_NAME_LEN]; /* the server, or the like, that others share */
    int32_t code;
    enum isolation isolation;
    enum cause cause;
    usec_t first, last;       /* as it happened */
    usec_t noted;             /* as the last was told */
    usec_t at[TROUBLE_TIMES]; /* bursts, the newest first; 0 = none */
    uint32_t n_jobs;          /* that ran there then, the last of them, by hash; each once */
    uint64_t jobs[TROUBLE_JOBS];
};

/* Something of a job, or of nobody's, failed there. */
struct node_incident {
    usec_t at;
    uint32_t weight; /* in thousandths */
    uint32_t uid;
    uint64_t job; /* by hash; 0 = none ran there */
};

struct node_ledger {
    char name[NODE_NAME_LEN];
    usec_t heard;               /* of it, last */
    VEC(struct node_seen) seen; /* oldest first */
    VEC(struct node_trouble) troubles;
    struct node_look look; /* the last; node "": none yet */

    struct node_verdict verdict; /* that stands; of isolation NONE: none */
    usec_t judged_at;
    uint64_t judged; /* its seq */

    VEC(struct node_incident) incidents; /* oldest first */
    struct decaying used;                /* node-days, as those below */

    bool drained; /* by us, as far as is known */
    usec_t drained_at;
    char reason[NODE_REASON_LEN]; /* that we gave */
    uint32_t tries;               /* to have it drained, for this verdict */
    usec_t retry_at;              /* nothing is asked of the scheduler before */
    bool resume;                  /* it is to be given back */
    bool check_due;               /* it may be well again */
    VEC(struct event) pending;
};

/* Trouble of what several nodes share. */
struct shared_fault {
    char signature[SIGNATURE_MAX];
    char peer[PEER_NAME_LEN];
    usec_t at; /* when it was told */
};

struct nodes {
    struct node_terms terms;
    struct decaying used;           /* of all nodes */
    VEC(struct node_ledger *) list; /* by name */
    VEC(struct shared_fault) shared;
    uint32_t n_stopped; /* rules that want too much; until an operator says otherwise */
    char stopped[STOPPED_MAX][sizeof(((struct node_verdict *)0)->rule)];
    usec_t asked_at; /* of the newest event that concerned nodes, or all jobs */
};

struct model;
struct job;

void nodes_clear(struct nodes *n);
struct node_ledger *nodes_find(const struct nodes *n, const char *name); /* NULL = none */
/* ... or a new one; NULL: there is no room. */
struct node_ledger *nodes_open(struct model *m, const char *name);

/* Nothing stands against it, and nothing is asked for. */
bool node_is_quiet(const struct node_ledger *l);

/* Whether the fact says something about that job: it runs there, or the fact names it. */
bool nodes_fact_concerns(const struct model *m, const struct node_fact *f, const struct job *j);

bool nodes_rule_is_stopped(const struct nodes *n, const char *rule);
/* Told lately of what the trouble is about; NULL = it was not. */
const struct shared_fault *nodes_shared(const struct nodes *n, const struct node_trouble *t,
                                        usec_t now);
/* How many are drained by us, or soon will be. */
uint32_t nodes_drained(const struct nodes *n);
/* How many nodes what stands against them asks so much for. */
void nodes_count(const struct nodes *n, uint32_t ret[ISOLATION_MAX]);
/* Whether the intent of that number has no result yet. */
bool nodes_await(const struct nodes *n, uint64_t intent);

/* Parts of model_apply(). Whether the event fits. */
bool nodes_apply(struct model *m, const struct event *e);

#endif
