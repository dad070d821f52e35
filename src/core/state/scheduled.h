/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_STATE_SCHEDULED_H
#define REKNIT_CORE_STATE_SCHEDULED_H

#include "core/state/state.h"

/* Parts of model_apply() for jobs that a scheduler starts; nobody else calls them. Those that
 * return bool say whether the event fits. */

void sched_seen(struct job *j, const struct job_facts *f);
void sched_attempt_begun(struct model *m, struct job *j);
bool sched_look(struct model *m, struct job *j, const struct look_facts *look);
bool sched_launch_failed(struct job *j, const struct event *e);
void sched_mode(struct job *j, const struct mode_facts *f);
bool sched_fenced(struct job *j, const struct fence_facts *f);
void sched_interrupted(struct model *m, struct job *j);
void sched_decided(struct model *m, struct job *j, const struct event *e, enum job_state before);

/* An intent was made. It enters no state. */
bool sched_intent(struct model *m, struct job *j, const struct event *e);
void sched_result(struct model *m, struct job *j, const struct event *intent,
                  const struct result_facts *r);

void model_add_deed(struct model *m, enum deed_kind kind, const char *name);

/* place.c. Whether the intent is about its place, or that of others. */
bool sched_place_asked(struct sched *s, const struct intent_facts *f, usec_t now);
void sched_place_answered(struct sched *s, const struct intent_facts *f,
                          const struct result_facts *r);

#endif
