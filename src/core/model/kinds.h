/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MODEL_KINDS_H
#define REKNIT_CORE_MODEL_KINDS_H

/* The vocabulary: every closed set of words that is stored, shown or configured. */

#include "base/names.h"

#include <stdbool.h>

/* What happened to an attempt. */
enum incident_class {
    CLASS_HEALTHY, /* running, or finished well */
    CLASS_CRASH,
    CLASS_HANG, /* also: finished its work and never exits */
    CLASS_STRAGGLER,
    CLASS_INTERRUPTED, /* time limit, preemption, cancel: not a failure */
    CLASS_MAX,
    CLASS_INVALID = -EINVAL,
};
DECLARE_NAMES(incident_class, enum incident_class);

enum cause {
    CAUSE_NONE, /* only for healthy */
    CAUSE_UNKNOWN,
    CAUSE_GPU_HARDWARE,
    CAUSE_NETWORK,
    CAUSE_NODE_HARDWARE,
    CAUSE_NODE_FAILURE,
    CAUSE_STORAGE,
    CAUSE_GPU_OOM,
    CAUSE_HOST_OOM,
    CAUSE_FRAMEWORK,
    CAUSE_USER_CODE,
    CAUSE_USER_CONFIG,
    CAUSE_NUMERICAL,
    CAUSE_EXTERNAL_SERVICE,
    CAUSE_TIME_LIMIT,
    CAUSE_PREEMPTION,
    CAUSE_CANCELLED,
    CAUSE_MAX,
    CAUSE_INVALID = -EINVAL,
};
DECLARE_NAMES(cause, enum cause);

enum domain {
    DOMAIN_NONE,
    DOMAIN_UNKNOWN,
    DOMAIN_INFRASTRUCTURE,
    DOMAIN_WORKLOAD,
    DOMAIN_EXTERNAL,
    DOMAIN_SCHEDULER,
    DOMAIN_MAX,
    DOMAIN_INVALID = -EINVAL,
};
DECLARE_NAMES(domain, enum domain);
enum domain cause_domain(enum cause c);

enum advice {
    ADVICE_NONE,
    ADVICE_RESTART,
    ADVICE_RESTART_EXCLUDING, /* the culprit stays out of the next attempt */
    ADVICE_STOP,              /* another try is pointless */
    ADVICE_MAX,
    ADVICE_INVALID = -EINVAL,
};
DECLARE_NAMES(advice, enum advice);

/* What a signature's line may be used for. Only ROLE_ROOT anchors a verdict by itself. */
enum role {
    ROLE_ROOT,       /* names the first failure */
    ROLE_SYMPTOM,    /* a failure, but ambiguous: needs corroboration */
    ROLE_CASCADE,    /* the effect of another rank's failure */
    ROLE_CONFIRM,    /* adds facts to a root (rank, host, exit code) */
    ROLE_TEARDOWN,   /* printed while everything is being killed */
    ROLE_NOISE,      /* looks alarming, is harmless */
    ROLE_PROGRESS,   /* a step was completed */
    ROLE_CHECKPOINT, /* a checkpoint began, became durable, or was loaded */
    ROLE_PHASE,      /* evaluation, compilation, data loading: silence is expected */
    ROLE_LAUNCH,     /* an attempt begins here */
    ROLE_FINISH,     /* the work is done; what follows is tear-down */
    ROLE_MAX,
    ROLE_INVALID = -EINVAL,
};
DECLARE_NAMES(role, enum role);

/* Which stream a signature may be found in. */
enum layer {
    LAYER_JOB,       /* output of the job's processes */
    LAYER_KERNEL,    /* dmesg, journal, kmsg of a node */
    LAYER_SCHEDULER, /* slurmstepd, srun, slurmctld; also inside job output */
    LAYER_MAX,
    LAYER_INVALID = -EINVAL,
};
DECLARE_NAMES(layer, enum layer);

/* Who a matching line points at. */
enum blame {
    BLAME_NONE,
    BLAME_JOB,    /* code, configuration, data: no machine */
    BLAME_RANK,   /* the process that printed it, or the rank it names */
    BLAME_NODE,   /* the node that printed it, or the node it names */
    BLAME_DEVICE, /* the GPU it names, or that of the rank that printed it */
    BLAME_PEER,   /* the other end of a connection: a vote, never proof */
    BLAME_MAX,
    BLAME_INVALID = -EINVAL,
};
DECLARE_NAMES(blame, enum blame);

/* Who vouches for a signal. Ordered: everything from PROVENANCE_AGENT on is a privileged fact;
 * anybody can print anything into a job's log. */
enum provenance {
    PROVENANCE_JOB_TEXT,
    PROVENANCE_MONITOR, /* the site's own, as an alert: of nodes, and no fact by itself */
    PROVENANCE_AGENT,   /* reknit's own observation of processes it started or watches */
    PROVENANCE_SPANK,
    PROVENANCE_SCHEDULER,
    PROVENANCE_NVML,
    PROVENANCE_KERNEL,
    PROVENANCE_MAX,
    PROVENANCE_INVALID = -EINVAL,
};
DECLARE_NAMES(provenance, enum provenance);

/* How far Reknit goes. Ordered: each mode includes what the one before does. */
enum mode {
    MODE_OFF,     /* leave the job alone, read nothing of it */
    MODE_OBSERVE, /* decide and record, touch nothing */
    MODE_PROPOSE, /* a person approves each decision */
    MODE_ACT,
    MODE_MAX,
    MODE_INVALID = -EINVAL,
};
DECLARE_NAMES(mode, enum mode);

/* A requeue gives up the job's place; what is done about that on a full cluster. */
enum keep_place {
    KEEP_PLACE_NONE,
    KEEP_PLACE_PRIORITY,
    KEEP_PLACE_RESERVATION,
    KEEP_PLACE_MAX,
    KEEP_PLACE_INVALID = -EINVAL,
};
DECLARE_NAMES(keep_place, enum keep_place);

static inline bool provenance_is_privileged(enum provenance p)
{
    return p >= PROVENANCE_AGENT;
}

#endif
