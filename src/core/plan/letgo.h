/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_PLAN_LETGO_H
#define REKNIT_CORE_PLAN_LETGO_H

/* The part of plan/scheduled.c about jobs that are not to be watched any more. */

#include "core/state/state.h"

/* What is to be taken back next, if anything. */
bool letgo_intent(const struct model *m, const struct job *j, struct intent_facts *ret);
usec_t letgo_due(const struct model *m, const struct job *j);

/* Whether nothing is left that has to be taken back, or can be. */
bool letgo_is_done(const struct model *m, const struct job *j);

#endif
