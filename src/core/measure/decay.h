/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MEASURE_DECAY_H
#define REKNIT_CORE_MEASURE_DECAY_H

#include "base/time.h"

/* What is left of 1 after that time. */
double decay(usec_t age, usec_t half_life);

/* A sum whose parts decay. Zeroed: nothing. */
struct decaying {
    double sum; /* as of then */
    usec_t at;
};
double decaying_now(const struct decaying *d, usec_t now, usec_t half_life);
void decaying_add(struct decaying *d, double v, usec_t now, usec_t half_life);

#endif
