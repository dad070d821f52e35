/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MEASURE_SPLIT_H
#define REKNIT_CORE_MEASURE_SPLIT_H

/* Where in one stream of signals a new attempt begins: a file may hold several. */

#include "core/model/signal.h"

struct split {
    bool progressed; /* steps were seen in the current attempt */
    bool failed;     /* it shows a failure */
    bool ended;      /* its launcher or the scheduler told its end */
    int64_t last;    /* step */
    bool any;        /* anything at all was seen */
    usec_t ended_us, time_us;
};

void split_init(struct split *s);

/* Whether a new attempt begins with this signal. Takes the signal in either case. */
bool split_add(struct split *s, const struct signal *signal);

#endif
