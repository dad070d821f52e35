/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_CORE_H
#define REKNIT_CORE_CORE_H

/* The pure heart: state and the two ways to change it. No clock, descriptor, thread or global.
 *
 *   live     core_step(core, &input, &out)   judges; appends the derived events to out, folded in
 *   restart  core_fold(core, &event)         for every journaled event, inputs and derived alike
 *   replay   core_step() for the inputs of a journal; out is compared with what stands there
 *
 * Time reaches core only as event.time_us. When core wants to be called without any input it says
 * so by core_deadline(); the pump then feeds an EVENT_TICK. Intents in `out` are to be carried
 * out by the pump after the transaction that holds them; on a restart, core_pending() lists those
 * without a result. */

#include "base/cleanup.h"
#include "base/vec.h"
#include "core/model/event.h"

struct core;
struct model;

struct core_output {
    VEC(struct event) events; /* derived, in order; seq is set by the pump when it appends */
};

struct core *core_new(void);
struct core *core_free(struct core *c);
DEFINE_CLEANUP(struct core *, core_free);

/* input->seq and time_us are set. Derived events get consecutive seqs from input->seq + 1 on. */
void core_step(struct core *c, const struct event *input, struct core_output *out);
void core_fold(struct core *c, const struct event *event);
void core_output_done(struct core_output *out);

/* Earliest time at which an EVENT_TICK is wanted, USEC_NEVER = none. Cheap: it may be asked after
 * every step. A tick is for the jobs whose time has come; the others are not looked at. */
usec_t core_deadline(const struct core *c);

/* Calls fn for every intent that has no result yet, oldest first. A START is void as soon as its
 * job has a newer decision or has ended, what was asked of a scheduler as soon as the next attempt
 * runs: then it is no longer among them, and must not be carried out any more. */
void core_pending(const struct core *c, void (*fn)(void *ctx, const struct event *intent),
                  void *ctx);

/* The state, to look at: core/state/state.h. */
const struct model *core_model(const struct core *c);

#endif
