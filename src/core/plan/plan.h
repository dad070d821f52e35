/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_PLAN_PLAN_H
#define REKNIT_CORE_PLAN_PLAN_H

#include "core/state/state.h"

/* The next intent that the state calls for, if any, and the attempt it concerns. An intent that
 * was made is in the state, so that it is made once. */
bool plan_intent(const struct model *m, const struct job *j, struct intent_facts *ret,
                 uint32_t *ret_attempt);
usec_t plan_due(const struct model *m, const struct job *j);

/* Whether nothing remains to be done for the job, and with which exit status it ends. */
bool plan_ended(const struct model *m, const struct job *j, struct ended_facts *ret);

#endif
