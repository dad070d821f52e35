/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_POLICY_EXCLUDE_H
#define REKNIT_CORE_POLICY_EXCLUDE_H

#include "core/state/state.h"

/* A restart has been decided: keeps out of it what has been kept out before, and what the incident
 * proves guilty, if the policy lets it and enough is left. Otherwise the decision says why not. */
void exclude_culprits(const struct model *m, const struct job *j, struct decision_facts *d);

#endif
