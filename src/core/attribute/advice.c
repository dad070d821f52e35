/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/judge.h"

/* What to do first, from what is known now; how often that may be repeated is the policy's
 * business. Restart is the default: a wrong stop idles a cluster all night, a needless restart
 * costs a bounded try. Stop is for what fails again in the same way, and for work that is done. */

/* After so many steps the job is known to fit: memory that ran out later leaked, or was taken by
 * something else, and comes back with a new start. */
#define STEPS_PROVE  20
#define SURE_TO_STOP 50 /* a guess is no reason to give up a job that worked for hours */

static enum advice of_cause(enum cause c)
{
    switch (c) {
    case CAUSE_GPU_HARDWARE:
    case CAUSE_NODE_HARDWARE:
    case CAUSE_NODE_FAILURE:
        return ADVICE_RESTART_EXCLUDING;
    case CAUSE_GPU_OOM:
    case CAUSE_HOST_OOM:
    case CAUSE_USER_CODE:
    case CAUSE_USER_CONFIG:
    case CAUSE_NUMERICAL:
        return ADVICE_STOP;
    case CAUSE_CANCELLED:
    case CAUSE_NONE:
        return ADVICE_NONE;
    default:
        return ADVICE_RESTART;
    }
}

/* Whether anything is known that can be kept out: a node, or what the runner can map to one. A
 * kernel log is itself from the node in question. */
static bool can_exclude(const struct judge *j)
{
    const struct culprits *c = &j->in->culprits;

    return c->n_nodes > 0 || c->n_devices > 0 ||
           (c->n_ranks > 0 && cause_is_hardware(j->in->cause)) ||
           (j->primary && j->primary->s.layer == LAYER_KERNEL && cause_is_hardware(j->in->cause));
}

static enum advice of_class(const struct judge *j)
{
    switch (j->in->class) {
    case CLASS_HEALTHY:
        return ADVICE_NONE;
    case CLASS_STRAGGLER: /* without a name another start changes nothing */
        return cause_is_hardware(j->in->cause) ? ADVICE_RESTART_EXCLUDING : ADVICE_NONE;
    case CLASS_HANG:
        if (j->in->finished || j->holdup.kind == HOLDUP_DESYNC || j->in->cause == CAUSE_USER_CONFIG)
            return ADVICE_STOP;
        return cause_is_hardware(j->in->cause) ? ADVICE_RESTART_EXCLUDING : ADVICE_RESTART;
    default:
        if (j->in->cause == CAUSE_HOST_OOM && j->in->progress.steps_seen >= STEPS_PROVE)
            return ADVICE_RESTART;
        if (j->primary && j->primary->s.advice != ADVICE_NONE)
            return j->primary->s.advice;
        if (j->in->confidence < SURE_TO_STOP && j->in->progress.steps_seen >= STEPS_PROVE &&
            of_cause(j->in->cause) == ADVICE_STOP)
            return ADVICE_RESTART;
        return of_cause(j->in->cause);
    }
}

void advice_choose(struct judge *j)
{
    enum advice a = of_class(j);

    if (a == ADVICE_RESTART_EXCLUDING && !can_exclude(j))
        a = ADVICE_RESTART;
    if (a == ADVICE_RESTART && j->in->culprits.n_nodes > 0 &&
        (j->in->cause == CAUSE_NETWORK || j->in->cause == CAUSE_STORAGE))
        a = ADVICE_RESTART_EXCLUDING;
    j->in->advice = j->in->no_restart ? ADVICE_STOP : a;
}
