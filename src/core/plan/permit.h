/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_PLAN_PERMIT_H
#define REKNIT_CORE_PLAN_PERMIT_H

#include "core/state/state.h"

/* Whether an intent that was made, and waits to be carried out, may still be. */
bool plan_sched_permits(const struct model *m, const struct job *j, const struct intent_facts *f);

#endif
