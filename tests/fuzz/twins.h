/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_TESTS_FUZZ_TWINS_H
#define REKNIT_TESTS_FUZZ_TWINS_H

/* Two cores with one history: `stepped` judges, `folded` is told what it derived, as after a
 * restart. What may never differ between them is asserted after each step. */

#include "core/core.h"
#include "core/state/state.h"

struct twins {
    struct core *stepped, *folded;
    uint64_t seq;
    void (*see)(const struct twins *t, const struct event *derived); /* each one, when folded */
};

void twins_init(struct twins *t, void (*see)(const struct twins *t, const struct event *derived));
/* e->seq is set here. */
void twins_step(struct twins *t, struct event *e);
/* Asserts that the same state came about both ways. */
void twins_done(struct twins *t);

/* Few distinct values, extremes among them. */
int64_t twins_number(uint8_t b);

#endif
