/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/sched.h"

static const char *const sched_state_names[SCHED_MAX] = {
    [SCHED_NONE] = "none",
    [SCHED_PENDING] = "pending",
    [SCHED_RUNNING] = "running",
    [SCHED_SUSPENDED] = "suspended",
    [SCHED_COMPLETED] = "completed",
    [SCHED_FAILED] = "failed",
    [SCHED_TIMEOUT] = "timeout",
    [SCHED_NODE_FAIL] = "node-fail",
    [SCHED_OUT_OF_MEMORY] = "out-of-memory",
    [SCHED_PREEMPTED] = "preempted",
    [SCHED_CANCELLED] = "cancelled",
    [SCHED_BOOT_FAIL] = "boot-fail",
    [SCHED_FORGOTTEN] = "forgotten",
};
DEFINE_NAMES(sched_state, enum sched_state, sched_state_names);
