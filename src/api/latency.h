/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_LATENCY_H
#define REKNIT_API_LATENCY_H

/* How long each leg of a recovery took, measured between committed events:
 *
 *   a task or the attempt ends → interrupted      detection
 *   interrupted → verdict                         verdict
 *   verdict → decision                            decision
 *   decision → the requeue is done                action
 *   interrupted → the next attempt runs           recovery (queue time included)
 *   an intent → its result                        scheduler
 */

#include "base/vec.h"
#include "core/model/event.h"

enum leg {
    LEG_DETECTION,
    LEG_VERDICT,
    LEG_DECISION,
    LEG_ACTION,
    LEG_RECOVERY,
    LEG_SCHEDULER,
    LEG_MAX,
};

#define LATENCY_BUCKETS 13
extern const usec_t latency_bounds[LATENCY_BUCKETS]; /* ascending; beyond the last is +Inf */

struct histogram {
    uint64_t in[LATENCY_BUCKETS + 1]; /* not cumulative */
    uint64_t n;
    usec_t sum;
};

struct track;
struct latency {
    struct histogram leg[LEG_MAX];
    VEC(struct track) tracks; /* of jobs that something is measured of, by name */
};

void latency_done(struct latency *l);
void latency_happened(struct latency *l, const struct event *e);

#endif
