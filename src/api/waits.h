/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_WAITS_H
#define REKNIT_API_WAITS_H

#include "core/state/state.h"

/* What a job that does not run waits for, in words: "a node that is free (Resources)". False: it
 * waits for nothing. What keeps reknit from acting at all, plan_sched_may_act() says. */
bool waits_for(const struct model *m, const struct job *j, usec_t now, char *ret, size_t size);

#endif
