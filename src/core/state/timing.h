/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_STATE_TIMING_H
#define REKNIT_CORE_STATE_TIMING_H

/* What a job's rhythm is: how long it takes between two signs of progress, until its first step,
 * for a checkpoint. Learned while it runs and kept from attempt to attempt. */

#include "core/model/event.h"

#define GAPS_MAX     512 /* the newest are kept */
#define RHYTHM_LEAST 5   /* gaps before a rhythm means anything */
#define GAP_LONGEST  (30 * USEC_PER_DAY)

/* Gaps between signs of progress, once in order of arrival and once by length. */
struct gaps {
    uint32_t n, next;
    usec_t ring[GAPS_MAX];
    usec_t sorted[GAPS_MAX];
};

struct rhythm {
    uint32_t n;    /* gaps it rests on; below RHYTHM_LEAST it means nothing */
    usec_t median; /* q50 */
    usec_t mad;    /* median absolute deviation from it */
    usec_t q99;    /* nearest rank */
    usec_t longest;
};

struct timing {
    struct gaps gaps;        /* of the present attempt */
    struct rhythm present;   /* what they say */
    struct rhythm learned;   /* from the attempts before, newest weighing half */
    usec_t first_step;       /* from start to first step, 0 = not known */
    usec_t phase[PHASE_MAX]; /* longest that each phase took, 0 = not known */
};

void timing_add_gap(struct timing *t, usec_t gap);
void timing_add_first_step(struct timing *t, usec_t took);
void timing_add_phase(struct timing *t, enum phase phase, usec_t took);
/* A new attempt begins: what the last one taught goes into `learned`. */
void timing_next_attempt(struct timing *t);

/* All that is known when an attempt is over, for the journal that comes after this one; and back.
 */
void timing_tell(const struct timing *t, struct learned_facts *ret);
void timing_take(struct timing *t, const struct learned_facts *f);

static inline bool rhythm_known(const struct rhythm *r)
{
    return r->n >= RHYTHM_LEAST;
}

#endif
