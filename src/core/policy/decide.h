/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_POLICY_DECIDE_H
#define REKNIT_CORE_POLICY_DECIDE_H

#include "core/state/state.h"

/* Whether something is to be decided now: about a verdict, or again because the user interrupts,
 * reknit died, a start failed, processes cannot be killed. Fills *ret with the action, the rule,
 * its budget, and why. */
bool decide(const struct model *m, const struct job *j, struct decision_facts *ret);

#endif
