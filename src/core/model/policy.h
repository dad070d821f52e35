/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MODEL_POLICY_H
#define REKNIT_CORE_MODEL_POLICY_H

/* The policy: what may be done for which cause, how often, how fast. Loaded from YAML by
 * src/config, journaled as an input (so that a replay judges with the policy of its day). */

#include "base/err.h"
#include "base/time.h"
#include "core/model/kinds.h"

#define RESTARTS_PER_DAY_MAX 256 /* so many times are remembered */

struct cause_policy {
    uint32_t retries; /* of the same failure without progress in between; 0 = stop at once */
    usec_t backoff;   /* before the first retry; doubles with every failure without progress */
    usec_t backoff_max;
    usec_t patience; /* a failure without progress is not counted against `retries` and
                        max_without_*, until it has come back for so long */
};

/* Hang detection: algorithm b.3. T = clamp(max(factor*q99, q50 + 10*1.4826*MAD, 1.5*max gap)). */
struct hang_policy {
    bool enabled;
    usec_t timeout_min; /* T is never below */
    usec_t timeout_max; /* ... or above */
    uint32_t factor;    /* kappa */
    usec_t first_step;  /* until the first step of a job whose start-up time is not known */
    usec_t checkpoint;  /* least time a checkpoint may take */
    usec_t evaluation;  /* ... an evaluation */
    usec_t compilation; /* added when the job says that it compiles */
    usec_t shutdown;    /* from the end of the work to the end of the processes */
};

struct policy {
    char name[64];
    uint32_t max_restarts;          /* in the life of the job */
    uint32_t max_restarts_per_day;  /* in any 24 h */
    uint32_t max_without_progress;  /* consecutive attempts of any cause without progress */
    uint32_t max_without_step;      /* consecutive attempts that completed no step at all */
    uint32_t same_step_retries;     /* of a failure of the program or its numbers that comes back at
                                       one step, if that is more than its cause's retries */
    bool continue_after_time_limit; /* of a scheduler: queue it again for the rest of its work */
    enum keep_place keep_place;     /* of a scheduler: what is done about the place that a requeue
                                       gives up */
    bool hold_on_stop;  /* of a scheduler: a job that is stopped waits, held, to be looked at */
    uint32_t max_waste; /* percent of the GPU time of the last 24 h that may lead to nothing; 0, 100
                           = all of it */
    usec_t waste_floor; /* ... looked at from so much of it on */
    uint32_t max_node_restarts_per_day; /* nodes x restarts after an attempt that led nowhere, in
                                           any 24 h; the first is always allowed; 0 = no limit */
    uint32_t large_job;                 /* from so many GPUs on; 0 = no job is large */
    uint32_t max_unexplained; /* of a large job: failures of unknown cause in a row, without
                                 progress */
    bool exclude_devices; /* whether a GPU that is proven bad may be kept out of the next attempt */
    uint32_t min_devices; /* ... as long as so many are left on the machine; 0 = 1 */
    usec_t verdict_wait;  /* log text lags behind the exit: wait at most so long */
    usec_t kill_grace;    /* between TERM and KILL */
    struct hang_policy hang;
    struct cause_policy cause[CAUSE_MAX];
};

/* The built-in default, sound without any file. */
void policy_default(struct policy *ret);

/* Whether every value lies where the rest of core can compute with it and people can mean it: 0 or
 * -EINVAL, with the name of the value in ret_err. */
int policy_check(const struct policy *p, struct err *ret_err);

/* Calls fn for each value other than the built-in one that another keeps from having any effect:
 * sound, but surely not meant. */
void policy_doubts(const struct policy *p, void (*fn)(void *ctx, const char *text), void *ctx);

#endif
