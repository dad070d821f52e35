/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MODEL_SIGNAL_H
#define REKNIT_CORE_MODEL_SIGNAL_H

/* A signal is one observed fact: what extract makes of a log line, what a source sees of a
 * process. It carries what the catalogue says about its signature, so that core never needs the
 * catalogue itself, and a replayed journal judges with the catalogue of its day.
 *
 * Fixed-size fields: a signal is a value, copied freely, owned by whoever holds it. All text is
 * sanitised UTF-8 (str_sanitize) before it gets in here. */

#include "base/time.h"
#include "core/model/kinds.h"

#include <stdbool.h>
#include <stdint.h>

#define SIGNATURE_MAX   48
#define NODE_NAME_LEN   128
#define DEVICE_NAME_LEN 24 /* PCI "domain:bus:device", lower case, as "0000:4d:00" */
#define PEER_NAME_LEN   64
#define TASK_LIST_LEN   64
#define EXCERPT_LEN     400

#define RANK_NONE    (-1)
#define STEP_NONE    (-1)
#define NUMBER_NONE  INT64_MIN                   /* a number that the line did not give */
#define NUMBER_MAX   ((int64_t)1000000000000000) /* of counts and durations, either sign */
#define METRIC_NAN   (INT64_MIN + 1)             /* the line gave nan */
#define METRIC_INF   INT64_MAX                   /* ... or inf */
#define METRIC_SCALE 1000000                     /* loss and the like are stored in millionths */

enum signal_kind {
    SIGNAL_HIT,        /* a catalogue signature matched a line; no numbers */
    SIGNAL_STEP,       /* training steps were completed */
    SIGNAL_CHECKPOINT, /* a checkpoint began, became durable, or was loaded */
    SIGNAL_PHASE,      /* a phase in which silence is normal began or ended */
    SIGNAL_COLLECTIVE, /* a watchdog's view of one rank's collectives */
    SIGNAL_EXIT,       /* a process of the job ended */
    SIGNAL_ACTIVITY,   /* what the job's processes did since the last sample */
    SIGNAL_LAYOUT, /* which tasks of the scheduler's step run on one node (who.node, who.tasks) */
    SIGNAL_OUTPUT, /* output was seen, without other meaning; at most one a second and file,
                      and one when a rank or node shows itself for the first time (who) */
    SIGNAL_MAX,
    SIGNAL_INVALID = -EINVAL,
};
DECLARE_NAMES(signal_kind, enum signal_kind);

enum phase {
    PHASE_STEADY, /* no special phase */
    PHASE_STARTUP,
    PHASE_CHECKPOINT,
    PHASE_EVALUATION,
    PHASE_LOADING,
    PHASE_COMPILATION,
    PHASE_SHUTDOWN,
    PHASE_MAX,
    PHASE_INVALID = -EINVAL,
};
DECLARE_NAMES(phase, enum phase);

enum edge {
    EDGE_POINT, /* neither begin nor end: the fact itself */
    EDGE_BEGIN,
    EDGE_END,
    EDGE_MAX,
    EDGE_INVALID = -EINVAL,
};
DECLARE_NAMES(edge, enum edge);

/* Whom the line names, or whose process printed it. Unknown: RANK_NONE, "". */
struct entity {
    int32_t rank; /* global rank, JAX task, MPI process number */
    int32_t local_rank;
    char node[NODE_NAME_LEN];
    char device[DEVICE_NAME_LEN];
    char peer[PEER_NAME_LEN];    /* other end of a connection: address or node name */
    char address[PEER_NAME_LEN]; /* under which the others know the node that printed the line */
    char tasks[TASK_LIST_LEN];   /* of the scheduler's step that run on `node`: "4-5,7" */
    uint32_t label; /* 1 + the task that printed the line, as srun -l says; 0 = unknown */
    int64_t pid;    /* on `node`; 0 = unknown */
};

struct step_fact {
    int64_t step;      /* STEP_NONE: a step of unknown number */
    int64_t total;     /* planned steps, or NUMBER_NONE */
    usec_t duration;   /* of one step, as the line says, or NUMBER_NONE */
    int64_t loss;      /* in 1/METRIC_SCALE; NUMBER_NONE, METRIC_NAN, METRIC_INF */
    int64_t grad_norm; /* likewise */
    int64_t rate;      /* throughput (tokens/s, samples/s, TFLOP/s: whatever grows when the job is
                          faster) in 1/METRIC_SCALE, or NUMBER_NONE */
    bool skipped;      /* the optimizer skipped the update (overflow) */
    int64_t more;      /* steps before it, of which it stands for the last (source/coalesce.h) */
};

struct checkpoint_fact {
    enum edge edge; /* BEGIN: saving; END: durable; POINT: loaded for a resume */
    int64_t step;   /* or STEP_NONE */
};

struct phase_fact {
    enum phase phase;
    enum edge edge;
};

#define COLLECTIVE_STACKS "stacks" /* group: what is told is where in its program a rank stands */

struct collective_fact {
    char group[40];    /* process group, "" unknown */
    char op[24];       /* "ALLREDUCE", "" unknown */
    int64_t seq;       /* sequence number that timed out, or NUMBER_NONE */
    int64_t numel;     /* elements in, or NUMBER_NONE */
    int64_t enqueued;  /* last enqueued, or NUMBER_NONE */
    int64_t completed; /* last completed, or NUMBER_NONE */
    usec_t waited;     /* how long it ran, or NUMBER_NONE */
};

struct exit_fact {
    int64_t pid;
    int32_t code;   /* exit status, or -1 when a signal ended it */
    int32_t signal; /* 0: exited by itself */
    int32_t error;  /* errno of the exec that failed: its program never ran; 0 = it did */
    int32_t unkept; /* 1: killed because its keeper was */
};

/* Of all processes; with who.rank set, of that rank alone, which is newly stopped or blocked. */
struct activity_fact {
    usec_t interval; /* length of the sample */
    usec_t cpu;      /* user + system time of all processes in it */
    int64_t io;      /* bytes read and written by system calls in it (/proc/PID/io); NUMBER_NONE: of
                        some that may not be read */
    int32_t processes;
    int32_t stopped; /* in state T or t */
    int32_t blocked; /* in state D during the whole sample */
};

struct layout_fact {
    int64_t step;  /* the scheduler's number: a new one makes the lists of another void */
    int64_t tasks; /* of all nodes */
};

struct signal {
    enum signal_kind kind;
    enum provenance provenance;
    usec_t time_us; /* the source's own clock, USEC_UNKNOWN when it shows none */
    bool uptime;    /* that clock counts from the boot of its machine, no other file's does */
    uint32_t file;  /* index into the attempt's list of inputs */
    uint64_t line;  /* from 1; 0 = not from a text */
    uint64_t offset;

    /* From the catalogue entry (kind HIT and all the others that a line caused). */
    char signature[SIGNATURE_MAX];
    enum layer layer;
    enum role role;
    enum cause cause;
    enum blame blame;
    enum advice advice;         /* ADVICE_NONE: leave it to the cause */
    int32_t confidence;         /* percent that this line alone proves its cause */
    bool hang;                  /* tells of waiting, not of dying: what it anchors is a hang */
    bool straggler;             /* tells who is slow, or that a device is held back */
    bool raised;                /* an exception that nobody caught, as far as the line shows */
    bool cut;                   /* the log ends within this line */
    char clears[SIGNATURE_MAX]; /* signature or family ("storage.*") whose trouble is over, "" none
                                 */

    int32_t nodes; /* how many the job runs on, by a launcher's word; 0 = it does not say */
    struct entity who;
    union {
        struct step_fact step;
        struct checkpoint_fact checkpoint;
        struct phase_fact phase;
        struct collective_fact collective;
        struct exit_fact exit;
        struct activity_fact activity;
        struct layout_fact layout;
    };
    uint32_t message;       /* where in text the message begins: behind clock, rank, host */
    char text[EXCERPT_LEN]; /* the cleaned line around the match */
};

/* Its clock, where that can be compared with the one of any other signal. */
static inline usec_t signal_time(const struct signal *s)
{
    return s->uptime ? USEC_UNKNOWN : s->time_us;
}

/* An empty signal of the kind: every field "unknown". */
struct signal signal_make(enum signal_kind kind, enum provenance provenance);

/* `pattern` is a signature, or stands for all that begin like it ("storage.*", "*"). */
bool signature_matches(const char *pattern, const char *signature);

#endif
