/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_PLAN_ARM_H
#define REKNIT_CORE_PLAN_ARM_H

/* The part of plan/scheduled.c about jobs that their users do not want requeued. */

#include "core/state/state.h"

/* Whether the scheduler is to be asked to let it be requeued, and no more to. */
bool arm_is_wanted(const struct model *m, const struct job *j);
bool arm_is_taken_back(const struct model *m, const struct job *j);

/* Whether it can still be requeued by our word alone, and that can be taken back. */
bool arm_is_left(const struct job *j);

#endif
