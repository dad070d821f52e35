/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_PUMP_REPLAY_H
#define REKNIT_PUMP_REPLAY_H

/* Feeds the inputs of a journal to a fresh core and compares what it derives with what stands in
 * the journal. Of one that was thinned out (journal/thin.h), what is no longer whole cannot be
 * judged again: it is taken as recorded, as at a start of reknitd, and what comes after it is
 * compared. */

#include "journal/journal.h"

struct replay_result {
    uint64_t inputs, derived; /* that were compared */
    uint64_t strays;          /* events that did not fit the state, and changed nothing */
    uint64_t thinned;         /* events that are gone; 0 = it is whole */
    uint64_t upto;            /* ... the last that was not compared because of that */
    bool differs;
    uint64_t seq;   /* of the first difference */
    char where[96]; /* the member, "" = the event as a whole */
    bool has_recorded, has_derived;
    struct event recorded, fresh; /* the two sides, where there is one */
};

/* 0 also when there is a difference; negative errno when the journal cannot be read. */
int replay(struct journal *j, struct replay_result *ret, struct err *e);

#endif
