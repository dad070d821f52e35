/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/fault.h"

static const char *const fault_names[FAULT_MAX] = {
    [FAULT_NONE] = "none",
    [FAULT_NO_SUCH_JOB] = "no-such-job",
    [FAULT_ALREADY_DONE] = "already-done",
    [FAULT_CHANGED] = "changed",
    [FAULT_NOT_ALLOWED] = "not-allowed",
    [FAULT_INVALID_REQUEST] = "invalid",
    [FAULT_UNREACHABLE] = "unreachable",
    [FAULT_UNKNOWN] = "unknown",
    [FAULT_FAILED] = "failed",
};
DEFINE_NAMES(fault, enum fault, fault_names);
