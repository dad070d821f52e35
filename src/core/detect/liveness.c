/* SPDX-License-Identifier: Apache-2.0 */

/* The second signal: what the kernel says about the processes of a job whose log is silent. A log
 * may be silent because it is buffered, or its file system is; CPU time and I/O are counted on
 * another path. */

#include "core/detect/detect.h"

#include "base/str.h"

#define STILL_FACTOR 5 /* times hang.timeout_min */

/* Who does I/O uses CPU time for it, if only a little: none at all over a long time says as much,
 * where the I/O may not be read. */
static bool is_still(const struct model *m, const struct job *j, usec_t span)
{
    usec_t still = j->attempt.streaks.still;

    return still >= span && still >= STILL_FACTOR * policy_of(m, j)->hang.timeout_min;
}

enum liveness liveness_of(const struct model *m, const struct job *j, usec_t span)
{
    const struct attempt *a = &j->attempt;
    const struct streaks *s = &a->streaks;

    /* A sampler that went quiet proves nothing. */
    if (s->sampled == USEC_NEVER || m->now - s->sampled > 2 * s->last.interval + USEC_PER_SEC)
        return LIVENESS_UNKNOWN;
    if (s->stopped >= span)
        return LIVENESS_STOPPED;
    if (s->blocked >= span)
        return LIVENESS_BLOCKED;
    if (s->idle >= span || is_still(m, j, span))
        return LIVENESS_IDLE;
    if (s->veiled > 0)
        return LIVENESS_UNKNOWN;
    if (s->spinning >= span && m->now - silent_since(a, a->last_output) >= span)
        return LIVENESS_SPINNING;
    return s->observed >= span ? LIVENESS_BUSY : LIVENESS_UNKNOWN;
}

void liveness_text(const struct job *j, enum liveness l, char *ret, size_t size)
{
    const struct streaks *s = &j->attempt.streaks;
    char span[DURATION_TEXT_MAX];

    switch (l) {
    case LIVENESS_UNKNOWN:
        if (s->veiled > 0)
            str_printf(ret, size,
                       "its processes use little CPU time, but their I/O cannot be seen");
        else
            str_printf(ret, size, "too little is known about its processes");
        return;
    case LIVENESS_BUSY:
        str_printf(ret, size, "its processes are busy");
        return;
    case LIVENESS_SPINNING:
        str_printf(ret, size,
                   "its processes use CPU time, but neither read, write nor print for %s",
                   duration_format(s->spinning, span));
        return;
    case LIVENESS_IDLE:
        if (s->veiled > 0)
            str_printf(ret, size, "its processes used no CPU time at all for %s",
                       duration_format(s->still, span));
        else
            str_printf(ret, size, "its processes used no CPU time and did no I/O for %s",
                       duration_format(s->idle, span));
        return;
    case LIVENESS_STOPPED:
        str_printf(ret, size, "%d of its %d processes stopped for %s", s->last.stopped,
                   s->last.processes, duration_format(s->stopped, span));
        return;
    case LIVENESS_BLOCKED:
        str_printf(ret, size, "%d of its %d processes blocked in the kernel for %s",
                   s->last.blocked, s->last.processes, duration_format(s->blocked, span));
        return;
    }
}
