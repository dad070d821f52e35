/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MODEL_SCHED_H
#define REKNIT_CORE_MODEL_SCHED_H

/* What a scheduler says about a job, and what reknit may ask of it. The words are those of any
 * batch scheduler; an adapter translates its own (docs/ADAPTER.md). */

#include "base/names.h"
#include "base/time.h"
#include "core/model/signal.h"

#define KEPT_OUT_MAX       16 /* nodes that one job is kept away from */
#define REASON_LEN         64
#define REQUIRED_LEN       1024 /* of the nodes that a job must have, as hostlist_copy() cuts it */
#define RESERVATION_LEN    48
#define RESERVATION_PREFIX "reknit-" /* then the job's number, a dash, and its restarts */
#define LAYOUT_LEN         4096      /* of a compressed list of hosts: hostlist_copy() */

/* So long a hold of ours may last when nobody lengthens it: reknit release-stale frees it then. */
#define GUARD_LIFE (10 * USEC_PER_MIN)

enum sched_state {
    SCHED_NONE, /* no scheduler, or nothing seen of it yet */
    SCHED_PENDING,
    SCHED_RUNNING, /* nodes are allocated, a prolog may still run on them */
    SCHED_SUSPENDED,
    SCHED_COMPLETED, /* from here on: it has ended, so */
    SCHED_FAILED,
    SCHED_TIMEOUT,
    SCHED_NODE_FAIL,
    SCHED_OUT_OF_MEMORY,
    SCHED_PREEMPTED,
    SCHED_CANCELLED,
    SCHED_BOOT_FAIL,
    SCHED_FORGOTTEN, /* the scheduler does not know it any more */
    SCHED_MAX,
    SCHED_INVALID = -EINVAL,
};
DECLARE_NAMES(sched_state, enum sched_state);

static inline bool sched_has_ended(enum sched_state s)
{
    return s >= SCHED_COMPLETED;
}

/* It waits or runs. */
static inline bool sched_lives(enum sched_state s)
{
    return s != SCHED_NONE && !sched_has_ended(s);
}

#define SUCCESSORS_MAX 4

/* One look at a job. Fed to core when it differs from the one before, and after each action. */
struct look_facts {
    enum sched_state state;
    bool completing;  /* ended, but some of its processes or nodes are not given back yet */
    bool held;        /* somebody keeps it from starting */
    bool noted;       /* ... reknit, as a note says that it left */
    bool constrained; /* it waits for nodes that cannot come together (BadConstraints) */
    bool requeueable; /* the scheduler would start it again: a batch job that did not refuse it */
    bool successor;   /* jobs that started because it failed, or one of the same user and name that
                         waits, would run beside a restarted one */
    /* Who they are, as long as none of them was withdrawn; none in what older releases recorded. */
    uint32_t successors[SUCCESSORS_MAX];
    uint32_t n_successors;
    bool stranded;           /* jobs that waited for its success were told that it never comes */
    bool outranked;          /* it was queued again, and another that waits comes before it */
    char label[32];          /* as people write its number now; "" = as when it was seen */
    char partition[64];      /* where it runs, or ran last; "" as long as it has no nodes */
    char reason[REASON_LEN]; /* the scheduler's own word for why it waits or ended */
    uint32_t restarts;       /* how often it was requeued */
    uint32_t tasks;          /* of its present step, 0 = not known */
    usec_t submitted;        /* of this attempt: a requeue may set it anew */
    usec_t begin;            /* not before; 0 = at once */
    usec_t noted_until;      /* the hold lasts no longer, as its note says; 0 = not known */
    usec_t started, ended;   /* 0 = not yet */
    char nodes[LAYOUT_LEN];  /* where it runs, or ran last */
    char lost_node[NODE_NAME_LEN]; /* one of those that does not answer: what ran there may still
                                      run, whatever the scheduler thinks; "" = none */
    char required[REQUIRED_LEN];   /* nodes that its user wants it to have: never without them */
    uint32_t n_kept_out;           /* of the nodes that reknit asked to keep out, those that are */
    char kept_out[KEPT_OUT_MAX][NODE_NAME_LEN];
};

/* How fast reknit may act, over all jobs. 0 = no limit. */
struct brakes {
    uint32_t actions_per_hour;
    uint32_t actions_per_partition_hour;
    uint32_t actions_per_user_hour;    /* so that no user's jobs use up what is there for all */
    uint32_t exclusions_per_node_hour; /* jobs that one node is kept away from */
    uint32_t max_excluded;             /* nodes that are kept out of anything at once */
    uint32_t storm_jobs;               /* interrupted within storm_window: one event, not many */
    usec_t storm_window;
    uint32_t storm_per_minute; /* actions while a storm lasts */
    usec_t proposal_life;      /* until a proposal expires: below what the scheduler remembers */
    usec_t early_start;    /* least time between a requeue and the next start: 2 s + clock skew */
    usec_t exclusion_life; /* how long a node is kept away from a job */
};

#endif
