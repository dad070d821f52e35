/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MODEL_INCIDENT_H
#define REKNIT_CORE_MODEL_INCIDENT_H

/* An incident is the verdict about one attempt: what happened, why, who is at fault, how sure,
 * and the lines that prove it. attribute() makes it; policy and people read it. A value. */

#include "core/model/signal.h"

#define CULPRIT_NODES_MAX   16
#define CULPRIT_RANKS_MAX   64
#define CULPRIT_DEVICES_MAX 16
#define EVIDENCE_MAX        16
#define RULED_OUT_MAX       8
#define EVIDENCE_LOGS_MAX   6
#define LOG_PATH_LEN        256

struct culprits {
    uint32_t n_nodes, n_ranks, n_devices;
    char nodes[CULPRIT_NODES_MAX][NODE_NAME_LEN];
    int32_t ranks[CULPRIT_RANKS_MAX];
    char devices[CULPRIT_DEVICES_MAX][DEVICE_NAME_LEN];
};

struct evidence_line {
    uint32_t file; /* index into the attempt's list of inputs */
    uint64_t line, offset;
    uint64_t count; /* how often such a line was seen in the attempt */
    enum role role;
    char signature[SIGNATURE_MAX];
    char text[EXCERPT_LEN];
};

/* Which file that index means. */
struct evidence_log {
    uint32_t file;
    char path[LOG_PATH_LEN];
};

/* An explanation that was weighed and dropped: what it was and the fact against it. */
struct ruled_out {
    char what[96];
    char why[160];
};

struct progress_summary {
    int64_t first_step, last_step; /* STEP_NONE: none seen */
    int64_t total_steps;           /* NUMBER_NONE: not known */
    int64_t checkpoint_step;       /* last durable one, STEP_NONE: none seen */
    int64_t steps_seen;            /* number of step lines */
    usec_t median_step;            /* NUMBER_NONE: not known */
};

#define CONFIDENCE_UNTOLD 20 /* percent; of "healthy": no line says so, or the end is not known */

struct incident {
    enum incident_class class;
    enum cause cause;
    enum advice advice;
    int32_t confidence; /* percent */
    bool finished;      /* the log shows that the work was done */
    bool no_restart;    /* its launcher says that another start is pointless */
    struct culprits culprits;
    char signature[SIGNATURE_MAX]; /* of the decisive line, "" none */
    char fingerprint[17];          /* hex; equal = the same failure again (algorithm b.2.8):
                                      cause, signature and template, without rank, node, numbers */
    char summary[320];             /* one sentence */
    uint32_t n_evidence;
    struct evidence_line evidence[EVIDENCE_MAX]; /* decisive line first */
    uint32_t n_logs; /* in which the first of these lines stand, as far as that is known */
    struct evidence_log logs[EVIDENCE_LOGS_MAX];
    uint32_t n_ruled_out;
    struct ruled_out ruled_out[RULED_OUT_MAX];
    struct progress_summary progress;
    uint64_t dropped; /* lines that told of a failure, beyond what can be remembered */
};

/* Of the file in which the line stands; "" = not known, or it is no line of a file. */
const char *incident_path(const struct incident *in, const struct evidence_line *l);

#endif
