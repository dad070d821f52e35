/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_TESTS_SIM_SLURM_H
#define REKNIT_TESTS_SIM_SLURM_H

/* A Slurm in virtual time: jobs, nodes, a scheduler, and the traps of the real one. A requeued job
 * starts by itself 121 s later; a start right after the requeue may fail to launch; an ended job
 * can be requeued, a cancelled one too; what is excluded is not checked; a node that fails takes
 * its jobs down and queues them again at once; ended jobs are forgotten, and their numbers given
 * away again. A node that is silent may be dead, or only cut off: then what ran there lives on when
 * the node is given up and its jobs are queued again. It knows nothing of reknit. */

#include "history.h"

#include "base/vec.h"
#include "core/model/sched.h"

#define NODES         12
#define REQUEUE_DELAY (121 * USEC_PER_SEC)

typedef uint32_t nodeset; /* a bit a node */

enum by { BY_PEOPLE, BY_REKNIT, BY_SLURM };

enum answer {
    ANSWER_OK,
    ANSWER_ALREADY, /* it is so */
    ANSWER_REFUSED,
    ANSWER_NO_SUCH_JOB,
};

struct fake_job {
    uint32_t index, id, uid;
    char name[16];
    bool stubborn; /* says yes to every update of it, and does none */
    bool batch, may_requeue, held, completing, constrained, launch_failed;
    uint32_t need;                                 /* nodes */
    nodeset exclude, own_exclude, required, nodes; /* own: of its user */
    nodeset ran_on;                                /* the nodes of its last attempt */
    nodeset orphans;                               /* where ranks of an earlier one still live */
    enum sched_state state;
    uint32_t restarts;
    usec_t submit, begin, start, end;
    usec_t time_limit;
    int32_t exit_code;

    /* truth */
    uint64_t turn;         /* counts changes of state: what was meant for an earlier one is void */
    usec_t queued_at;      /* submitted, or queued again */
    usec_t completes_at;   /* USEC_NEVER: somebody must do something */
    usec_t constrained_at; /* USEC_NEVER */
    enum by queued_by, began_by; /* who queued it, whose word its start time is */
    bool cancelled;              /* the last word of people ... */
    bool cancel_shown;           /* ... which somebody else has seen, before it was undone */
    usec_t back_at;              /* since when it is back even so; 0 = it is not */
    usec_t foreign_at;           /* when others queued it again last */
    bool forgotten;
    bool guarded;              /* held by reknit, not by people */
    bool armed;                /* may be requeued, by reknit's word, not by people's */
    usec_t armed_at;           /* ... although reknit cares for it no more; 0 = not so */
    bool noted;                /* ... as its note says */
    bool no_room;              /* ... for which there is none: others write into its comment */
    usec_t needless_at;        /* held although no node of it is silent; 0 = not so */
    usec_t unwatched_at;       /* held although reknit watches it no more; 0 = not so */
    usec_t silent_at;          /* since when a node of it was silent; 0 = none is */
    uint32_t starts_of_reknit; /* attempts that would not have been without it */
};

struct slurm;

/* What the world outside makes of it. */
struct slurm_hooks {
    void (*begun)(void *ctx, struct fake_job *f);     /* an attempt runs */
    void (*forgotten)(void *ctx, struct fake_job *f); /* it is about to be */
};

struct slurm_traits {
    usec_t min_age;          /* an ended job is remembered so long */
    unsigned launch_trouble; /* percent */
    unsigned long_completing;
    bool refuses_while_completing;
};

struct slurm {
    struct rng *rng;
    usec_t now;
    struct slurm_traits traits;
    nodeset up;
    nodeset silent;              /* do not answer; given up or not */
    nodeset cut;                 /* ... but what runs there lives on */
    VEC(struct fake_job *) jobs; /* all there ever were */
    uint32_t next_id;
    uint64_t changes;
    const struct slurm_hooks *hooks;
    void *ctx;
};

void slurm_done(struct slurm *s);

struct fake_job *slurm_submit(struct slurm *s, const struct fake_job *like);
/* The job that has this number now; NULL = none. */
struct fake_job *slurm_find(const struct slurm *s, uint32_t id);

/* One turn of its scheduler; called every second. */
void slurm_turn(struct slurm *s);

/* The attempt ends by itself. */
void slurm_end(struct slurm *s, struct fake_job *f, enum sched_state state, int32_t code);
/* By slurm itself: preempted, or its node was lost. */
void slurm_requeue_at_once(struct slurm *s, struct fake_job *f, usec_t begin);
void slurm_lose_node(struct slurm *s, uint32_t node);
/* It falls silent, cut off or dead; is given up; answers again, and has ended what it was told to;
 * is switched off. */
void slurm_silence(struct slurm *s, uint32_t node, bool cut);
void slurm_give_up(struct slurm *s, uint32_t node);
void slurm_heal(struct slurm *s, uint32_t node);
void slurm_fence(struct slurm *s, uint32_t node);

enum answer slurm_requeue(struct slurm *s, struct fake_job *f, enum by by);
enum answer slurm_cancel(struct slurm *s, struct fake_job *f);
enum answer slurm_set_requeue(struct slurm *s, struct fake_job *f, bool may);
enum answer slurm_amend(struct slurm *s, struct fake_job *f, nodeset exclude, usec_t begin,
                        enum by by);
void slurm_hold(struct slurm *s, struct fake_job *f, bool held);

static inline bool slurm_runs(const struct fake_job *f)
{
    return f->state == SCHED_RUNNING;
}

static inline unsigned count_nodes(nodeset n)
{
    return (unsigned)__builtin_popcount(n);
}

#endif
