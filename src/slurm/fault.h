/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_FAULT_H
#define REKNIT_SLURM_FAULT_H

/* Why a request was not done, in the words of docs/ADAPTER.md. */

#include "base/names.h"

enum fault {
    FAULT_NONE,
    FAULT_NO_SUCH_JOB,
    FAULT_ALREADY_DONE,
    FAULT_CHANGED,
    FAULT_NOT_ALLOWED,
    FAULT_INVALID_REQUEST,
    FAULT_UNREACHABLE,
    FAULT_UNKNOWN,
    FAULT_FAILED,
    FAULT_MAX,
    FAULT_INVALID = -EINVAL,
};
DECLARE_NAMES(fault, enum fault);

#endif
