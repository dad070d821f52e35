/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_STATE_OBSERVE_H
#define REKNIT_CORE_STATE_OBSERVE_H

#include "core/state/state.h"

/* Parts of model_apply(); nobody else calls them. */

/* NULL: the model is full of jobs that live. */
struct job *model_add_job(struct model *m, const char *name);

/* Forgets everything that belongs to one attempt. */
void attempt_reset(struct attempt *a);
void attempt_begin(struct job *j, uint32_t number, usec_t now);
void attempt_observe(struct job *j, const struct signal *s, usec_t now);
/* Told by a node, not by its output. */
void attempt_observe_fact(struct attempt *a, const struct signal *s, usec_t now);
/* Nobody knows what it did so far, since its logs are read again; or it could do nothing, since it
 * was suspended. */
void attempt_counts_anew(struct attempt *a, usec_t now);

#endif
