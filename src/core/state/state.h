/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_STATE_STATE_H
#define REKNIT_CORE_STATE_STATE_H

/* The state, made of events by model_apply() and of nothing else. Everybody else in core reads it
 * through a const pointer. */

#include "core/attribute/attribute.h"
#include "core/model/event.h"
#include "core/model/mode.h"
#include "core/state/ledger.h"
#include "core/state/log_names.h"
#include "core/state/nodes.h"
#include "core/state/timing.h"

#include "base/vec.h"

#define JOBS_MAX    4096
#define PENDING_MAX 16   /* intents without a result, per job */
#define FENCED_MAX  32   /* nodes of one attempt that are known to be so */
#define NODES_TRIES 4    /* to have nodes kept out; then they are not */
#define WISH_TRIES  3    /* of most else that is asked for; then it is given up */
#define DEEDS_MAX   1024 /* of each kind, of the last hour, that the brakes remember */

/*                         ┌──────────────── attempt-started ───────────────┐
 *                         ▼                                                │
 *   new ──started──► running ──interrupted──► ending ──verdict──► judged   │
 *    │                    └─────exit 0──────────▲                   │      │
 *    │                                                           decision  │
 *    └──────────────decision─────────────────────────────────────►  ▼      │
 *                                              ended ◄──ended── decided ──start──► starting
 *                                                │                 ▲ ▲              │
 *                                                └─job-seen─► new  └─┘◄──decision───┘
 *
 * A job that a scheduler starts may also run again without having been asked to, by the scheduler
 * itself or by a person: from decided, and from ended. And what was decided may be overtaken by
 * events before anything is done about it: the attempt gets on again. In every state that
 * lasts such a job may be let go, when it is not to be watched any more: then it has ended for
 * reknit, though it may run on, and the same attempt may be followed again later.
 *
 * ending: the attempt makes no more progress; its last lines are awaited, its processes ended.
 * decided: the decision is made; processes of the attempt may remain, and nothing is started
 * before they are gone. A decision may be replaced: the user interrupts, nothing can be killed. */
enum job_state {
    JOB_NEW,
    JOB_RUNNING,
    JOB_ENDING,
    JOB_JUDGED,
    JOB_DECIDED,
    JOB_STARTING,
    JOB_ENDED,
    JOB_STATE_MAX,
    JOB_STATE_INVALID = -EINVAL,
};
DECLARE_NAMES(job_state, enum job_state);
bool job_may_enter(enum job_state from,
                   enum job_state next); /* whether the diagram has the arrow */

/* How far the suspicion of a hang has gone since the last sign of progress. */
enum suspicion {
    SUSPICION_NONE,
    SUSPICION_RAISED,
    SUSPICION_EXTENDED,
    SUSPICION_UNPROVEN,
};

/* What the samples of the processes' activity showed without a break, up to the last of them and
 * since the last sign of progress. Lengths are sums of sampled time, so a clock that jumps or a
 * machine that slept adds nothing. */
struct streaks {
    usec_t observed; /* whatever they did */
    usec_t idle;     /* almost no CPU time, almost no I/O */
    usec_t veiled;   /* almost no CPU time, and I/O that may not be read */
    usec_t still;    /* likewise, but no CPU time at all */
    usec_t spinning; /* CPU time, but almost no I/O */
    usec_t stopped;  /* at least one process in state T */
    usec_t blocked;  /* at least one process in state D all the time, almost no CPU time */
    usec_t sampled;  /* time of the last sample, USEC_NEVER = none in this attempt */
    struct activity_fact last;
};

struct attempt {
    uint32_t number; /* 0 = none yet */
    usec_t started;

    /* progress */
    int64_t steps_seen, first_step, last_step, highest_step; /* STEP_NONE: none, or no number */
    int64_t checkpoint_step, loaded_step;
    bool numbers_reset;
    usec_t new_from;     /* when it got beyond what earlier attempts keep; USEC_NEVER */
    usec_t new_until;    /* its last step beyond that */
    usec_t saved_at;     /* its last checkpoint beyond that; USEC_NEVER */
    int32_t leader_rank; /* whose step numbers are compared: those of the first to show any */
    uint32_t leader_file;
    usec_t first_step_at;          /* USEC_NEVER */
    usec_t last_progress;          /* step, checkpoint, end of a phase; at first the start */
    usec_t last_output;            /* any line */
    usec_t last_step_at;           /* at first the start */
    usec_t held_up;                /* by phases since then: no part of the rhythm */
    usec_t phase_began[PHASE_MAX]; /* USEC_NEVER = not open */
    usec_t finished_at;            /* the job says that its work is done; USEC_NEVER */

    /* What a privileged witness saw of single tasks, while the job lived on */
    uint32_t tasks_ended; /* of the present step */
    usec_t task_died_at;  /* the first that failed, since the last progress; USEC_NEVER */
    char task_death[128];
    bool node_failed; /* a privileged source says that a node of it is gone */

    /* detectors */
    enum suspicion suspicion;
    bool progressed;   /* since the suspicion or the root line: to be announced */
    bool inspected;    /* evidence was asked for since the suspicion */
    usec_t storage_at; /* storage that does not answer was reported since the last progress */
    usec_t root_at;    /* first root line since the last progress, USEC_NEVER */
    char root[SIGNATURE_MAX];
    uint32_t recoveries; /* root lines that progress followed and that were announced */
    struct streaks streaks;
    bool hung;       /* found */
    bool crashed;    /* found, while its first process still ran */
    bool end_found;  /* found, because its first process ended */
    char found[384]; /* the last finding, in words */

    /* the end */
    usec_t interrupted_at; /* or ended with status 0; USEC_NEVER */
    bool exited, gone, drained, lost;
    usec_t exited_at, gone_at;
    bool unread;      /* nobody reads its logs; once it ends, soon somebody will */
    usec_t unread_at; /* when that came to be, last; 0 */
    usec_t read_at;   /* since when its silence counts: somebody was there again, or it ran on; 0 */
    struct exit_fact exit;
    usec_t killed_at;    /* the first KILL was asked for; USEC_NEVER */
    uint32_t kills;      /* how often */
    bool kill_due_again; /* a KILL failed */
    struct incident incident;
    struct decision_facts decision;
    usec_t decided_at;
    struct evidence *evidence; /* NULL once judged */
    log_names logs;            /* none once the job has ended */
};

/* A node that is to be kept out of a job's attempts. */
struct keep_out {
    char node[NODE_NAME_LEN];
    usec_t until;
    bool asked;   /* the scheduler was */
    bool counted; /* among the deeds */
};

/* What is known and asked of a job that a scheduler starts. */
struct sched {
    uint32_t id, uid; /* as in job_facts */
    char label[32], user[64], name[64], account[64], qos[64];
    bool interactive;
    char partition[64]; /* where it ran last; "a,b": those that it waits in for the first time */
    struct mode_words words;
    enum mode mode;         /* what follows from them; MODE_OFF: nobody was heard yet, too */
    bool unwatched;         /* it was said to be off: what reknit holds of it is taken back */
    bool let_go;            /* ... and was; until an attempt of it is followed again */
    bool resumed;           /* it is to be watched again: only what begins, or runs, from now on */
    uint32_t undoes;        /* how often amendments were asked to be taken back since */
    struct look_facts look; /* the last; state SCHED_NONE: none yet */
    bool succeeded;         /* a look showed a successor that was not withdrawn since */
    bool over;              /* it had ended before anybody looked at it, and lives no more */
    bool look_due;          /* something was asked for, answered, and not looked for since */
    usec_t pending_since;   /* as the present attempt was first seen to wait; USEC_NEVER */
    bool requeue_to_come;   /* a requeue is not answered, or granted, and no look shows it yet */
    uint32_t doubts;        /* so many were not answered: they may yet be done, long after */
    usec_t doubt_until;     /* ... until then; counted from the look behind the answer */
    bool unwanted;          /* it is back by one of them, although it was cancelled */

    /* Of the last attempt */
    uint32_t base_restarts;  /* more of them, and it was requeued since */
    char ran_on[LAYOUT_LEN]; /* its nodes */
    bool node_lost;          /* the scheduler lost one of them */
    bool in_storm;           /* its last attempt was interrupted in one, beside many others */
    uint32_t n_fenced;       /* of its nodes that were lost, those on which nothing runs any more */
    char fenced[FENCED_MAX][NODE_NAME_LEN];
    usec_t returned_at;    /* ... or that answered again, last; 0 = none */
    usec_t fence_asked_at; /* USEC_NEVER = not yet */
    bool guarded;          /* it is held, by reknit, so as not to start by itself */
    usec_t guarded_at;     /* that was asked for last */
    uint32_t guards;       /* how often, anew */
    uint32_t releases;     /* how often it was asked to be released since */
    usec_t released_at;    /* ... last */
    uint32_t arms;         /* how often it was asked for */
    bool arm_due;          /* it may be asked for (again); likewise below */
    bool arm_granted;      /* the next look shows whether it came about */
    uint32_t arm_doubts;   /* so many were not answered: they may yet be done */
    usec_t arming_until;   /* ... until then */
    bool armed;            /* it may be requeued, and that was granted to us; whichever attempt */
    uint32_t disarms;      /* how often that was asked to be taken back */
    bool disarm_due;

    /* Its place in the queue, and those behind it */
    char reservation[RESERVATION_LEN]; /* that keeps its nodes, as far as is known; "" = none */
    usec_t reserved_at;                /* asked for last */
    uint32_t reserves;                 /* of the present attempt */
    uint32_t unreserves;               /* since it was asked for */
    usec_t unreserved_at;              /* asked for last */
    bool is_first;                     /* it was put before the others, and has not begun since */
    bool raised;                       /* it still is, as far as is known */
    uint32_t yields;
    bool requeued_by_us; /* ... since the last verdict */
    uint32_t mends;      /* of the present attempt, and the one that follows it */
    bool mend_due, yield_due;

    /* Of the last decision */
    uint64_t decision; /* its seq */
    bool of_verdict;   /* not of what became of an earlier one */
    bool approved, rejected;
    struct {
        uint64_t of; /* seq of a decision; 0 = nobody has */
        bool approved;
        usec_t at;
        char who[64];
    } answer; /* what a person said last of a proposal */
    bool requeue_asked;
    usec_t requeue_answered_at; /* USEC_NEVER = it was not */
    bool requeue_refused;       /* the one before, too: wait a while */
    uint32_t voids;             /* how often nothing was done, because things had changed */
    bool not_while_completing;  /* was the answer */
    uint32_t amends, reverts, cancels, holds; /* how often it was asked for */
    bool amend_due, cancel_due;
    bool held_for_people; /* as it was asked for */
    bool amended;         /* it was asked for since */
    bool unheeded;        /* ... and no look has shown it, nor for the decision before */
    usec_t amended_at;    /* asked for last, also for an earlier decision */
    usec_t asked_begin;   /* by it; before it, what the scheduler itself gave it */
    usec_t given_begin;   /* the one before that */
    usec_t own_begin;     /* as the present attempt was first seen to wait */
    uint32_t tries;       /* to have nodes kept out that are not yet */
    uint32_t hasty;       /* amendments in a row, each soon after the one before */
    uint32_t firsts;      /* how often it was to be put before the others */
    bool in_force;        /* the exclusions were: what is missing later is somebody else's wish */
    bool nodes_refused;   /* they cannot be kept out: too few would be left */

    uint32_t n_kept;
    struct keep_out kept[KEPT_OUT_MAX];
};

struct job {
    char name[JOB_NAME_LEN];
    enum job_state state;
    usec_t seen_at;
    usec_t asked_at;        /* when its stages were last asked because of an event of its own */
    struct attempt attempt; /* the present or last one */
    uint32_t nodes, gpus;   /* of the whole job, 0 = not known */
    uint32_t n_devices;     /* that its attempts can use on this machine, 0 = not known */
    char devices[DEVICES_MAX][DEVICE_NAME_LEN];
    uint32_t n_without; /* ... of which these are kept out */
    char without[DEVICES_MAX][DEVICE_NAME_LEN];
    struct timing timing; /* outlives attempts, and lives of the job */
    struct ledger ledger;
    bool scheduled;
    struct sched sched;
    bool has_policy; /* its own; otherwise that of the model */
    struct policy policy;

    bool requested; /* the user asked for the end */
    int32_t request_signal;
    uint32_t starts_failed;           /* in a row */
    bool start_failed, start_unknown; /* of the START that was asked for last */
    bool start_refused;               /* a scheduler said no, at once */
    bool start_final;                 /* ... and will not say yes */
    char start_detail[256];

    VEC(struct event) pending;
};

/* Something that was done, or happened, to one of all jobs: for the brakes. */
enum deed_kind {
    DEED_INTERRUPTED,
    DEED_ACTED,     /* a requeue or a cancel was asked for, in a partition */
    DEED_ACTED_FOR, /* ... for a user */
    DEED_EXCLUDED,  /* a node was kept out */
    DEED_CONVICTED, /* a node, so that it is to be drained; by the rule of that name */
    DEED_DRAINED,   /* that was asked for */
    DEED_MAX,
};
struct deed {
    usec_t at;
    char name[NODE_NAME_LEN]; /* of the partition, the user, the node, or the rule */
};
typedef VEC(struct deed) deeds; /* ascending times, none older than an hour */

struct model {
    usec_t now;      /* of the newest event; never goes back */
    usec_t asked_at; /* of the newest event that concerned all jobs */
    uint64_t seq;
    struct policy policy;
    struct brakes brakes;
    bool frozen; /* an operator said so: nothing is done for any job */
    deeds deeds[DEED_MAX];
    struct nodes nodes;
    uint64_t refused;       /* events that did not fit the state */
    VEC(struct job *) jobs; /* by name */
    uint64_t generation;    /* of that list: which jobs it has, and where */
};

struct model *model_new(void);
struct model *model_free(struct model *m);
DEFINE_CLEANUP(struct model *, model_free);

struct job *model_job(const struct model *m, const char *name); /* NULL = not known */
size_t model_find(const struct model *m, const char *name);     /* in jobs; SIZE_MAX = not known */

/* The only writer. Returns whether the event fits the state; one that does not changes nothing but
 * the time and the count of those refused; one with impossible numbers not even the time. Stray
 * inputs are the world's fault, not a bug. */
bool model_apply(struct model *m, const struct event *e);

/* When the job's stages were last asked: what was due then is done, or was not wanted. A due time
 * that is over once it was asked for must be measured by this, never by `now`, which the events of
 * other jobs move as well. */
usec_t job_asked_at(const struct model *m, const struct job *j);

/* The policy that holds for the job. */
const struct policy *policy_of(const struct model *m, const struct job *j);

/* From when on fewer than `limit` deeds of the kind lie in the span before; m->now: at once. name:
 * only those of that one, NULL: of all. limit 0 = no limit. */
usec_t model_room_at(const struct model *m, enum deed_kind kind, const char *name, usec_t span,
                     uint32_t limit);

/* How many there were within the last hour, as far as they are kept. */
uint32_t model_deeds_of_hour(const struct model *m, enum deed_kind kind);

/* Until when so many were interrupted at once that it is one event; m->now: it is none. */
usec_t model_storm_until(const struct model *m);

/* Whether an intent of this kind has no result yet. */
bool job_awaits(const struct job *j, enum intent intent);

/* Likewise that very one, of a job or of a node. */
bool model_awaits(const struct model *m, const struct event *intent);

/* Whether what happens in that attempt still matters: it is the last, and no other is on its way.
 */
bool job_hears(const struct job *j, uint32_t attempt);

/* Whether the attempt's output does: it runs, or its last lines are awaited, or it is only thought
 * to be dead. Behind that, what comes to the same files is the next attempt's. */
bool job_listens(const struct job *j, uint32_t attempt);

/* It is not to be watched any more, and nothing is done for it but to take back what shows late. */
bool sched_is_let_go(const struct job *j);

/* The scheduler keeps it from running for now, and its processes are stopped: then what it does not
 * do says nothing. When it runs again, all that is waited for begins anew. */
bool sched_is_suspended(const struct job *j);

/* Whether the scheduler has queued the job again since its last attempt. */
bool sched_was_requeued(const struct job *j);

/* From when on a requeue that was asked for counts as not granted, since no look shows it;
 * USEC_NEVER = there is none such. */
usec_t sched_requeue_limit(const struct job *j);

/* It begins when the scheduler itself said, or we: not by somebody else's wish. */
bool sched_begins_as_it_was(const struct job *j);

/* Its start is later than the scheduler itself gave it, and by reknit's wish. */
bool sched_start_is_moved(const struct model *m, const struct job *j);

/* A node that is to be kept out is not, as far as the last look shows. */
bool sched_lacks_exclusions(const struct job *j);

/* The k-th of its nodes to be kept out is now, or will be in a moment: not only thought of, and of
 * a job that lives. */
bool sched_keeps_out(const struct model *m, const struct job *j, uint32_t k);
/* Pairs of a job and a node that it is kept out of. */
uint32_t sched_kept_out(const struct model *m);

/* Its user does not want it requeued (Slurm's --no-requeue), and as it has ended, that cannot be
 * changed any more. */
bool sched_is_forbidden(const struct job *j);

/* The job must have that node, whatever is wrong with it. */
bool sched_requires(const struct job *j, const char *node);

/* Whether a requeue that was asked for may yet be done. */
bool sched_is_in_doubt(const struct model *m, const struct job *j);

/* It gets on again after all, and nothing was done about it yet. */
bool sched_has_recovered(const struct job *j);

/* It may be requeued by our word alone, or that may yet show. */
bool sched_may_be_armed(const struct model *m, const struct job *j);

/* Nothing of its last attempt runs on that node, which was lost, as somebody could prove. */
bool sched_is_fenced(const struct job *j, const char *node);

/* The node on which what is left of the last attempt may still run: nothing may be started before
 * it answers again, or is fenced. NULL = none. */
const char *sched_lost_node(const struct job *j);

/* What the ledger wants to know of the job's attempt. */
struct attempt_account attempt_account(const struct model *m, const struct job *j);

/* How long the attempt may take until its first step. */
usec_t startup_allowance(const struct model *m, const struct job *j);

/* From when on processes that were told to end count as impossible to end; USEC_NEVER: none are
 * left, or none were told. */
usec_t kill_limit(const struct model *m, const struct job *j);

#endif
