/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MODEL_OBSERVE_H
#define REKNIT_CORE_MODEL_OBSERVE_H

#include "core/model/state.h"

/* Only called by model_apply(). Resets everything that belongs to one attempt. */
void attempt_reset(struct attempt *a);
void attempt_begin(struct job *j, uint32_t number, usec_t now);
void attempt_observe(struct job *j, const struct signal *s, usec_t now);

#endif
