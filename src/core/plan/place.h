/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_PLAN_PLACE_H
#define REKNIT_CORE_PLAN_PLACE_H

/* The part of plan/scheduled.c about the place that a job gives up by being queued again. */

#include "core/state/state.h"

/* The next intent of it, if any. */
bool place_intent(const struct model *m, const struct job *j, struct intent_facts *ret);
usec_t place_due(const struct model *m, const struct job *j);

/* Whether anything is kept for it that can be given back. */
bool place_is_kept(const struct model *m, const struct job *j);

/* Whether the amendment of a waiting job should put it before the others. */
bool place_should_be_first(const struct model *m, const struct job *j);

#endif
