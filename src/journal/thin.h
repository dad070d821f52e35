/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_JOURNAL_THIN_H
#define REKNIT_JOURNAL_THIN_H

/* A journal that is written for months is kept within bounds, without losing what a restart needs.
 */

#include "journal/journal.h"

struct journal_keep {
    usec_t now;
    usec_t detail;   /* younger signals stay as they are */
    uint64_t newest; /* ... unless there are more of all events than so many */
    usec_t ended;    /* jobs that ended longer ago go as a whole */
};

/* A step of it, over so many events, in one transaction: wherever the process is killed, it is done
 * or not. 1: there is more to be done; 0: not for now. */
int journal_thin(struct journal *j, const struct journal_keep *k, unsigned events, struct err *e);

/* Up to which event it was thinned out so far; 0 = it is whole. */
int journal_thinned(struct journal *j, uint64_t *ret, struct err *e);
/* ... and how many events are gone by it. */
int journal_thinned_away(struct journal *j, uint64_t *ret, struct err *e);

#endif
