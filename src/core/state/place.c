/* SPDX-License-Identifier: Apache-2.0 */

/* A job's place in the queue, and those that gave way to it: what was asked for, and what came of
 * it. */

#include "core/state/scheduled.h"

#include "base/str.h"

bool sched_place_asked(struct sched *s, const struct intent_facts *f, usec_t now)
{
    switch (f->intent) {
    case INTENT_RESERVE:
        STR_COPY(s->reservation, f->reservation);
        s->reserved_at = now;
        s->reserves++;
        s->unreserves = 0;
        return true;
    case INTENT_UNRESERVE:
        s->unreserves++;
        s->unreserved_at = now;
        return true;
    case INTENT_YIELD:
        s->yields++;
        s->yield_due = false;
        return true;
    case INTENT_MEND:
        s->mends++;
        s->mend_due = false;
        return true;
    default:
        return false;
    }
}

/* What is not known to be gone counts as there: it is given back, and that may be done twice. */
void sched_place_answered(struct sched *s, const struct intent_facts *f,
                          const struct result_facts *r)
{
    bool done = r->outcome == OUTCOME_DONE;
    bool not_done = r->outcome == OUTCOME_FAILED || r->outcome == OUTCOME_VOID;

    if ((f->intent == INTENT_RESERVE && not_done) || (f->intent == INTENT_UNRESERVE && done))
        s->reservation[0] = '\0';
    if (f->intent == INTENT_AMEND && f->first) {
        s->is_first |= done;
        s->raised |= !not_done;
    }
    s->raised &= f->intent != INTENT_YIELD || !done;
}
