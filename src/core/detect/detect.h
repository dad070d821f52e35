/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_DETECT_DETECT_H
#define REKNIT_CORE_DETECT_DETECT_H

/* Detectors: from the state of a running attempt to a finding. Each is a pair of functions of the
 * state alone: what it finds now (false: nothing), and the time at which it wants to be asked again
 * although nothing happens (USEC_NEVER: only when something happens). Whatever a finding says is
 * folded into the state, so no detector says the same thing twice. */

#include "core/state/state.h"

/* From when on a silence since `at` counts: while nobody read the attempt's logs, nobody knows
 * whether it was silent, and while it was suspended, it could be nothing else. As long as that
 * lasts, no silence is found at all. */
static inline usec_t silent_since(const struct attempt *a, usec_t at)
{
    return at > a->read_at ? at : a->read_at;
}

bool detect_recovery(const struct model *m, const struct job *j, struct finding_facts *ret);

bool detect_crash(const struct model *m, const struct job *j, struct finding_facts *ret);
usec_t crash_due(const struct model *m, const struct job *j);

bool detect_hang(const struct model *m, const struct job *j, struct finding_facts *ret);
usec_t hang_due(const struct model *m, const struct job *j);

/* How long something may take, and why: `rule` names what gave the number, in the words of the
 * policy, and `of` the measured time that it was made of. */
struct allowance {
    usec_t time;
    const char *rule;
    usec_t of; /* 0 = it is the policy's own number */
};

/* The silence that is allowed now: from `base` on for `timeout`, because of `phase`. */
struct window {
    usec_t base, timeout;
    enum phase phase;
    struct allowance why;
};
struct window hang_window(const struct model *m, const struct job *j);

/* The rhythm to go by: of this attempt, or what earlier ones taught; NULL = none known. */
const struct rhythm *best_rhythm(const struct job *j);

/* How long the open phase may take. */
usec_t phase_allowance(const struct model *m, const struct job *j, enum phase phase);

/* What the processes themselves say about a silence, apart from the log. */
enum liveness {
    LIVENESS_UNKNOWN, /* no fresh samples, or too few: no evidence for or against anything */
    LIVENESS_BUSY,
    LIVENESS_SPINNING, /* CPU time, but no I/O and no output: perhaps computing, perhaps not */
    LIVENESS_IDLE,
    LIVENESS_STOPPED,
    LIVENESS_BLOCKED,
};
/* Judged over at least `span` of unbroken samples. */
enum liveness liveness_of(const struct model *m, const struct job *j, usec_t span);
void liveness_text(const struct job *j, enum liveness l, char *ret, size_t size);

#endif
