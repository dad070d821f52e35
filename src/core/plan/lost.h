/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_PLAN_LOST_H
#define REKNIT_CORE_PLAN_LOST_H

/* The part of plan/scheduled.c about jobs one of whose nodes does not answer. */

#include "core/state/state.h"

/* Queued again now, it would start as soon as the scheduler gives the node up, before its start
 * could be moved. */
bool lost_would_start_beside_itself(const struct job *j);

/* While a node is lost: not before, and when that is to be moved again. */
usec_t lost_start_time(const struct model *m, const struct job *j);
usec_t lost_move_due(const struct job *j);

/* When nothing can be left on those that answer again. */
usec_t lost_settled_at(const struct job *j);

/* Its start is, so that there is time to move it again. */
bool lost_is_far_away(const struct model *m, const struct job *j);

/* When the hold that keeps a running job from starting beside itself is to be asked for, or to be
 * lengthened. */
usec_t lost_guard_due(const struct model *m, const struct job *j);
/* When it is to be taken back. settled: there is nothing to amend about its start. */
usec_t lost_release_due(const struct model *m, const struct job *j, bool settled);

/* When to ask whether the node is fenced, of a job that is to be restarted. */
usec_t lost_fence_due(const struct model *m, const struct job *j);

#endif
