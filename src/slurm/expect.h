/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_EXPECT_H
#define REKNIT_SLURM_EXPECT_H

/* What a job is like now, and whether that is what a caller expects: the precondition of every
 * action. Knows no scheduler. */

#include "base/err.h"
#include "base/names.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum slurm_state {
    SLURM_STATE_UNKNOWN,
    SLURM_STATE_PENDING,
    SLURM_STATE_CONFIGURING,
    SLURM_STATE_RUNNING,
    SLURM_STATE_SUSPENDED,
    SLURM_STATE_COMPLETED,
    SLURM_STATE_FAILED,
    SLURM_STATE_TIMEOUT,
    SLURM_STATE_NODE_FAIL,
    SLURM_STATE_OUT_OF_MEMORY,
    SLURM_STATE_PREEMPTED,
    SLURM_STATE_CANCELLED,
    SLURM_STATE_DEADLINE,
    SLURM_STATE_BOOT_FAIL,
    SLURM_STATE_SPECIAL_EXIT,
    SLURM_STATE_REQUEUED,
    SLURM_STATE_MAX,
    SLURM_STATE_INVALID = -EINVAL,
};
DECLARE_NAMES(slurm_state, enum slurm_state);

static inline bool slurm_state_is_end(enum slurm_state s)
{
    return s >= SLURM_STATE_COMPLETED && s <= SLURM_STATE_BOOT_FAIL;
}

struct job_look {
    uint32_t restarts, uid;
    int64_t submit; /* seconds since 1970 */
    enum slurm_state state;
    bool completing, held, requeue;
    const char *name, *dependency; /* never NULL */
};

/* Whether the job is as `expect` says (NULL = says nothing). demand: expect must tell which attempt
 * of which job is meant. 0; -EINVAL = not understood, -ESTALE = the job is not so; e says why. */
int expect_holds(const struct job_look *look, const json_t *expect, bool demand, struct err *e);

#endif
