/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_LOOK_H
#define REKNIT_SLURM_LOOK_H

/* What a job is like now, and whether that is what a caller expects: the precondition of every
 * action. Knows no scheduler. */

#include "base/err.h"
#include "base/names.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum sched_state {
    SCHED_UNKNOWN,
    SCHED_PENDING,
    SCHED_CONFIGURING,
    SCHED_RUNNING,
    SCHED_SUSPENDED,
    SCHED_COMPLETED,
    SCHED_FAILED,
    SCHED_TIMEOUT,
    SCHED_NODE_FAIL,
    SCHED_OUT_OF_MEMORY,
    SCHED_PREEMPTED,
    SCHED_CANCELLED,
    SCHED_DEADLINE,
    SCHED_BOOT_FAIL,
    SCHED_SPECIAL_EXIT,
    SCHED_REQUEUED,
    SCHED_MAX,
    SCHED_INVALID = -EINVAL,
};
DECLARE_NAMES(sched_state, enum sched_state);

static inline bool sched_state_is_end(enum sched_state s)
{
    return s >= SCHED_COMPLETED && s <= SCHED_BOOT_FAIL;
}

struct job_look {
    uint32_t restarts, uid;
    int64_t submit; /* seconds since 1970 */
    enum sched_state state;
    bool completing, held;
    const char *name;
};

/* Whether the job is as `expect` says (NULL = says nothing). demand: expect must tell which attempt
 * of which job is meant. 0; -EINVAL = not understood, -ESTALE = the job is not so; e says why. */
int look_check(const struct job_look *look, const json_t *expect, bool demand, struct err *e);

#endif
