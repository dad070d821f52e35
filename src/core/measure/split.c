/* SPDX-License-Identifier: Apache-2.0 */
#include "core/measure/split.h"

/* A launch line opens a new attempt only when the current one has made steps or was told to have
 * ended: with many nodes every node's launcher prints such a line, and a late one must not hide
 * the failure of an early node. For the same reason a launch within seconds of the end belongs to
 * the old attempt.
 *
 * Launchers that restart quietly show only in the step counter: after a failure it falls back to
 * a checkpoint. Without a failure a falling counter is a new epoch. */

#define SAME_START (10 * USEC_PER_SEC)

void split_init(struct split *s)
{
    *s = (struct split){.last = STEP_NONE, .ended_us = USEC_UNKNOWN, .time_us = USEC_UNKNOWN};
}

static bool ends_attempt(const struct signal *s)
{
    if (s->kind == SIGNAL_EXIT)
        return s->exit.code != 0 || s->exit.signal != 0;
    return s->kind == SIGNAL_HIT && (s->role == ROLE_CONFIRM || s->role == ROLE_TEARDOWN ||
                                     (s->layer == LAYER_SCHEDULER && s->role != ROLE_NOISE));
}

static bool shows_failure(const struct signal *s)
{
    return s->kind == SIGNAL_COLLECTIVE ||
           (s->kind == SIGNAL_HIT &&
            (s->role == ROLE_ROOT || s->role == ROLE_SYMPTOM || s->role == ROLE_CASCADE));
}

static bool is_late_starter(const struct split *s, const struct signal *signal)
{
    return !s->progressed && s->ended_us != USEC_UNKNOWN && signal->time_us != USEC_UNKNOWN &&
           signal->time_us - s->ended_us < SAME_START;
}

static bool begins(const struct split *s, const struct signal *signal)
{
    if (signal->role == ROLE_LAUNCH)
        return (s->progressed || s->ended) && !is_late_starter(s, signal);
    if (signal->kind == SIGNAL_STEP && signal->step.step != STEP_NONE)
        return s->ended && s->failed && s->last != STEP_NONE && signal->step.step + 1 < s->last;
    return false;
}

static void take(struct split *s, const struct signal *signal)
{
    s->any = true;
    if (signal->time_us != USEC_UNKNOWN)
        s->time_us = signal->time_us;
    if (signal->kind == SIGNAL_STEP) {
        s->progressed = true;
        if (signal->step.step != STEP_NONE)
            s->last = signal->step.step;
    }
    s->failed |= shows_failure(signal);
    if (ends_attempt(signal)) {
        s->ended = true;
        s->ended_us = s->time_us;
    }
}

bool split_add(struct split *s, const struct signal *signal)
{
    bool fresh = begins(s, signal);

    if (fresh)
        split_init(s);
    take(s, signal);
    return fresh;
}
