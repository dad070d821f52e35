/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_PLAN_SCHEDULED_H
#define REKNIT_CORE_PLAN_SCHEDULED_H

#include "core/state/state.h"

/* The same as in plan.h, for a job that a scheduler starts. */
bool plan_sched_intent(const struct model *m, const struct job *j, struct intent_facts *ret,
                       uint32_t *ret_attempt);
usec_t plan_sched_due(const struct model *m, const struct job *j);
bool plan_sched_ended(const struct model *m, const struct job *j);

/* Whether anything may be done for the job now, and if not, why not (in ret, may be NULL). */
bool plan_sched_may_act(const struct model *m, const struct job *j, char *ret, size_t size);

/* Whether it is in our care: in mode act, or what was decided may be done. */
bool plan_sched_cares(const struct model *m, const struct job *j);

/* From when on the brakes let a further job be requeued; m->now: at once. */
usec_t brakes_free_at(const struct model *m, const struct job *j);
/* How long to wait after a wish that came to nothing, the nth in a row, before it is repeated. */
usec_t brakes_pause(uint32_t n);
/* Whether so many jobs were interrupted at once that it is one event, not many. */
bool brakes_see_storm(const struct model *m);

#endif
