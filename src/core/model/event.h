/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MODEL_EVENT_H
#define REKNIT_CORE_MODEL_EVENT_H

/* Everything that is ever journaled. Inputs come from outside through the pump; derived events
 * are core's own. A restart folds both (event by event, deciding nothing); a replay feeds the
 * inputs alone and compares what core derives.
 *
 * Events are values. The field tables in event_fields.c describe every member once: the journal
 * encodes and decodes by them, `explain` prints by them. */

#include "core/model/incident.h"
#include "core/model/node.h"
#include "core/model/policy.h"
#include "core/model/sched.h"

#include <stddef.h>

#define JOB_NAME_LEN      128
#define EVENT_SEQ_MAX     ((uint64_t)INT64_MAX / 2)
#define EVENT_TIME_MAX    ((usec_t)100000000000000000) /* the year 5138 */
#define ATTEMPT_MAX       1000000000u
#define SIGNAL_NUMBER_MAX 64

enum event_kind {
    /* inputs */
    EVENT_POLICY,          /* the policy that holds from now on */
    EVENT_JOB_SEEN,        /* a job begins to exist for reknit */
    EVENT_ATTEMPT_STARTED, /* its processes run */
    EVENT_SIGNAL,          /* an observed fact about the running attempt */
    EVENT_ATTEMPT_EXITED,  /* its first process ended; some may still live */
    EVENT_ATTEMPT_GONE,    /* no process of it is left */
    EVENT_LOGS_DRAINED,    /* its output has been read to the end */
    EVENT_TICK,            /* core_deadline() has passed */
    EVENT_RESULT,          /* what became of an intent */
    EVENT_OPERATOR,        /* somebody asks for something */
    EVENT_RUNNER_LOST,     /* reknit itself died while the job ran, its processes with it */
    EVENT_LEARNED,         /* the rhythm of the job, from a journal before this one */
    EVENT_LOOK,            /* what the scheduler says about the job now: whenever that changes, and
                              once after every result of an intent */
    EVENT_LAUNCH_FAILED,   /* the scheduler could not start the attempt: it never ran */
    EVENT_MODE,            /* what may be done for the job from now on */
    EVENT_BRAKES,          /* how fast anything may be done from now on */
    EVENT_FENCED,          /* nothing of the job runs any more on a node that does not answer */
    EVENT_LOGS_UNREAD, /* nobody reads the output of the attempt; if it ended, soon somebody will */
    EVENT_LOG_NAMED,   /* the path of a file by whose number signals call it; or why none come */
    EVENT_LOGS_READ, /* somebody does, from where the last reader was; if it ended: or nobody can */
    EVENT_NODE_FACT, /* what a privileged witness saw on a node; of no job, as the others of nodes
                      */
    EVENT_NODE_TERMS, /* what may be done about nodes from now on */
    EVENT_NODE_LOOK,  /* what the scheduler says of a node of interest, whenever that is new */
    /* derived */
    EVENT_FINDING,      /* a detector's statement */
    EVENT_INTERRUPTED,  /* the attempt no longer makes useful progress: recorded at once */
    EVENT_VERDICT,      /* the incident, judged when the evidence is in */
    EVENT_DECISION,     /* what to do about it, by which rule, from which budget */
    EVENT_INTENT,       /* one idempotent step towards it */
    EVENT_JOB_ENDED,    /* nothing more will be done for this job */
    EVENT_NODE_VERDICT, /* what stands against a node, or does not any more */
    EVENT_MAX,
    EVENT_INVALID = -EINVAL,
};
DECLARE_NAMES(event_kind, enum event_kind);

static inline bool event_is_input(enum event_kind k)
{
    return k < EVENT_FINDING;
}

enum finding {
    FINDING_HANG_SUSPECTED, /* 0.6 T: collect evidence */
    FINDING_HANG_EXTENDED,  /* T passed, but the processes look busy: wait once more as long */
    FINDING_HANG_UNPROVEN,  /* that passed too: for people; ended once proven */
    FINDING_HANG,           /* T passed and a second signal agrees */
    FINDING_CRASH,
    FINDING_RECOVERED, /* progress again after a suspicion or a root line */
    FINDING_MAX,
    FINDING_INVALID = -EINVAL,
};
DECLARE_NAMES(finding, enum finding);

enum action {
    ACTION_NONE,
    ACTION_RESTART,
    ACTION_RESTART_EXCLUDING,
    ACTION_STOP,     /* give up: another try is pointless or not allowed */
    ACTION_COMPLETE, /* the job is done */
    ACTION_WAIT,     /* nothing: the scheduler goes on with it by itself, if it does */
    ACTION_MAX,
    ACTION_INVALID = -EINVAL,
};
DECLARE_NAMES(action, enum action);

enum intent {
    INTENT_INSPECT, /* collect evidence about the processes (states, stacks, ranks) */
    INTENT_KILL,    /* end every process of the attempt */
    INTENT_START,   /* start the next attempt, not before `not_before` */
    INTENT_REQUEUE, /* have the scheduler end what is left of the attempt, and queue it again */
    INTENT_AMEND,   /* of the queued attempt: keep it from `nodes`, begin at `not_before` */
    INTENT_CANCEL,  /* have the scheduler end the job */
    INTENT_ARM,     /* let the scheduler requeue it, should that become necessary */
    INTENT_DISARM,  /* the end of that: as its user had it */
    INTENT_FENCE, /* find out whether anything still runs on `nodes`; the result: FENCED, or not */
    INTENT_GUARD, /* of a running job: were it requeued now, let it not start by itself */
    INTENT_RELEASE,   /* the end of that */
    INTENT_RESERVE,   /* keep its nodes, but for `nodes`, free of jobs: by `reservation` */
    INTENT_UNRESERVE, /* the end of that */
    INTENT_YIELD,     /* it has begun: it goes before nobody any more */
    INTENT_MEND, /* those that wait for its success, and were told that it would never come: once
                    more */
    INTENT_HOLD, /* have the scheduler keep it, held, as a special case: for people */
    /* of no job: about the one node of `nodes` */
    INTENT_DRAIN,      /* nothing new shall start there, by `reason`; what runs goes on */
    INTENT_UNDRAIN,    /* the end of that, as long as the reason is still that */
    INTENT_CHECK_NODE, /* find out whether it is well again; the result: DONE, FAILED: it is not, or
                          UNKNOWN */
    INTENT_MAX,
    INTENT_INVALID = -EINVAL,
};
DECLARE_NAMES(intent, enum intent);

enum outcome {
    OUTCOME_DONE,
    OUTCOME_FAILED,
    OUTCOME_UNKNOWN, /* timed out: it may yet be done. Look before repeating */
    OUTCOME_VOID,    /* nothing was done: the job was not as the intent says, or nobody could be
                        asked. Look, and see whether it is still wanted */
    OUTCOME_MAX,
    OUTCOME_INVALID = -EINVAL,
};
DECLARE_NAMES(outcome, enum outcome);

enum request {
    REQUEST_INTERRUPT, /* SIGINT, SIGTERM, scancel: end the job, do not restart it */
    REQUEST_APPROVE,   /* the decision `of`, that was proposed */
    REQUEST_REJECT,    /* ... */
    REQUEST_FREEZE,    /* do nothing for any job until */
    REQUEST_THAW,
    REQUEST_RESUME, /* `node` is well: nothing stands against it, and what reknit drained is not */
    REQUEST_REARM,  /* rules about nodes that were stopped may convict again */
    REQUEST_MAX,
    REQUEST_INVALID = -EINVAL,
};
DECLARE_NAMES(request, enum request);

/* GPUs by their PCI names. */
#define DEVICES_MAX 32

struct job_facts {
    char command[512]; /* for people, quoted as for a shell; never executed from here */
    char directory[256];
    char user[64];
    char host[NODE_NAME_LEN];
    char program[64];     /* version of reknit */
    uint32_t run;         /* of this job, from 1, as its folders are named; 0 = not recorded */
    uint32_t nodes, gpus; /* that the whole job has; 0 = not known */
    uint32_t n_devices;   /* of this machine, that an attempt can use; 0 = not known */
    char devices[DEVICES_MAX][DEVICE_NAME_LEN];

    /* Of a job of a scheduler: */
    bool scheduled;
    char name[64], partition[64], account[64], qos[64];
    uint32_t id;      /* the scheduler's own number of it; may be given away again */
    char label[32];   /* as people write that: "25_3" of an array */
    uint32_t uid;     /* of its user; 0 = root, or not known */
    bool interactive; /* srun, salloc: nothing can start it again */
    bool over;        /* it had ended before reknit looked for the first time */
};

/* As in core/state/timing.h. */
struct learned_facts {
    uint32_t n; /* gaps that the rhythm rests on; 0 = not known, as the other zeros */
    usec_t median, mad, q99, longest;
    usec_t first_step;
    uint32_t n_phases;
    usec_t phases[PHASE_MAX]; /* the longest of each, in the order of enum phase */
};

struct attempt_facts {
    int64_t pid;
    uint64_t intent; /* seq of the INTENT_START that asked for it, 0 = the first */
    char log[256];   /* path of the kept output */
};

struct finding_facts {
    enum finding finding;
    usec_t timeout; /* T in force, 0 = not a timeout */
    usec_t silent;  /* since the last progress */
    enum phase phase;
    char why[384];
};

static inline bool action_restarts(enum action a)
{
    return a == ACTION_RESTART || a == ACTION_RESTART_EXCLUDING;
}

struct decision_facts {
    enum action action;
    char rule[48]; /* name of the policy rule, as in docs/OPERATIONS.md */
    char why[400];
    uint32_t used, allowed; /* of the budget that the rule looked at */
    usec_t delay;           /* before the next attempt */
    int64_t after_step;     /* the same failure came twice behind this step, or STEP_NONE */
    uint32_t n_without;     /* devices that are kept out of the next attempt */
    char without[DEVICES_MAX][DEVICE_NAME_LEN];
    uint32_t n_nodes; /* likewise nodes, of a job that a scheduler starts */
    char nodes[KEPT_OUT_MAX][NODE_NAME_LEN];
    enum mode mode; /* that a scheduler's job was in: up to OBSERVE, nothing was done for it */
};

/* Adds to its `why`. */
void decision_add(struct decision_facts *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

struct intent_facts {
    enum intent intent;
    usec_t not_before;
    uint32_t signal;    /* INTENT_KILL: signal to begin with */
    usec_t grace;       /* INTENT_KILL: until SIGKILL */
    int64_t after_step; /* INTENT_START: as in the decision */
    uint32_t n_without; /* ... likewise */
    char without[DEVICES_MAX][DEVICE_NAME_LEN];
    uint32_t n_nodes; /* INTENT_AMEND: as in the decision */
    char nodes[KEPT_OUT_MAX][NODE_NAME_LEN];
    bool first;                        /* INTENT_AMEND: before the others that wait */
    char reservation[RESERVATION_LEN]; /* INTENT_RESERVE, UNRESERVE: its name */
    uint32_t restarts; /* of the scheduler's: what it says must still be so, or nothing is done */
    char reason[NODE_REASON_LEN]; /* INTENT_DRAIN, UNDRAIN */
};

struct result_facts {
    uint64_t intent; /* seq of the EVENT_INTENT */
    enum outcome outcome;
    bool final; /* FAILED, and it always will, whoever asks again */
    char detail[256];
};

struct request_facts {
    enum request request;
    int32_t signal;
    uint64_t of; /* seq of the decision that is approved or rejected */
    char node[NODE_NAME_LEN];
    char who[64];
    char why[128]; /* in that person's words; "" = not said */
};

struct mode_facts {
    enum mode mode;
    char why[640];  /* whose word that is: the configuration, the job's comment, a person; and what
                       was asked for in vain */
    bool asked;     /* a person's word about this job, not the configuration's with its comment */
    bool owner;     /* ... who is no operator */
    bool withdrawn; /* ... is taken back: `mode` is what followed from the others' words */
};

struct fence_facts {
    char node[NODE_NAME_LEN];
    char by[64]; /* whose word that is */
};

struct log_facts {
    uint32_t file;           /* as in signals of the attempt */
    char path[LOG_PATH_LEN]; /* too long ones begin with "..." */
    char trouble[160];       /* why nobody can read it; "" = it is read */
};

struct ended_facts {
    enum action action; /* COMPLETE, or STOP: whatever was decided, it will not go on; NONE:
                           it is not watched any more, and may go on */
    int32_t exit_code;  /* for the caller: the job's own, or 75 (EX_TEMPFAIL) when stopped */
};

struct event {
    uint64_t seq;    /* position in the journal, from 1; set by the pump before core_step */
    uint64_t parent; /* derived: seq of the input; inputs: 0 */
    usec_t time_us;  /* stamped by the pump */
    enum event_kind kind;
    char job[JOB_NAME_LEN]; /* "" = concerns all */
    uint32_t attempt;       /* from 1; 0 = concerns the job */
    union {
        struct policy policy;
        struct job_facts seen;
        struct attempt_facts started;
        struct signal signal;
        struct exit_fact exited;
        struct result_facts result;
        struct request_facts request;
        struct learned_facts learned;
        struct look_facts look;
        struct mode_facts mode;
        struct brakes brakes;
        struct fence_facts fenced;
        struct log_facts log;
        struct node_fact fact;
        struct node_terms node_terms;
        struct node_look node_look;
        struct finding_facts finding;
        struct incident incident;
        struct decision_facts decision;
        struct intent_facts intended;
        struct ended_facts ended;
        struct node_verdict node_verdict;
    };
};

/* Whether it is about nodes, and about no job: such events carry the node in their body. */
bool event_is_of_nodes(const struct event *e);

/* Whether core may compute with what it says: a damaged journal may hold any number. */
bool event_can_be_applied(const struct event *e);
/* ... and a journal may hold it. */
bool event_is_sane(const struct event *e);

#endif
