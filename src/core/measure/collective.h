/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MEASURE_COLLECTIVE_H
#define REKNIT_CORE_MEASURE_COLLECTIVE_H

/* What the watchdogs of the ranks report when a collective does not end, and who holds it up
 * (algorithms b.4 (2)). Bounded: COLLECTIVE_RANKS ranks, a few process groups each. */

#include "base/intset.h"
#include "core/model/signal.h"

#define COLLECTIVE_RANKS    16384
#define COLLECTIVE_PER_RANK 3

struct wait_fact {
    struct collective_fact fact;
    uint32_t file;
    uint64_t line;
};

struct rank_waits {
    uint32_t n;
    struct wait_fact wait[COLLECTIVE_PER_RANK];
};

struct collectives {
    struct rank_waits **rank; /* by rank, NULL = that rank reported nothing */
    size_t n_rank;
    uint32_t reporters;
    uint32_t refused; /* facts beyond the bounds */
};

void collectives_done(struct collectives *c);
void collectives_forget(struct collectives *c, uint32_t file); /* what that file reported */
void collectives_add(struct collectives *c, const struct signal *s);

bool collectives_waits(const struct collectives *c, int32_t rank); /* whether it reported */

enum holdup {
    HOLDUP_UNKNOWN, /* every rank that reports stands at the same place */
    HOLDUP_SPREAD,  /* they stand at different places, which does not tell who is at fault */
    HOLDUP_DESYNC,  /* at one sequence number a few ranks run another operation */
    HOLDUP_BEHIND,  /* a few ranks have not launched what the others wait for */
    HOLDUP_STUCK,   /* a few ranks are still in what the others have finished */
    HOLDUP_APART,   /* a few ranks stand elsewhere in their program than the others */
    HOLDUP_SILENT,  /* the ranks that report wait for a few that say nothing */
};

struct holdup_finding {
    enum holdup kind;
    struct intset ranks; /* who holds it up; empty when unknown */
    int64_t seq;         /* at which number the others stand, or NUMBER_NONE */
    int64_t least;       /* HOLDUP_SPREAD: the lowest number in which a rank stands, and ... */
    int32_t least_rank;  /* ... which one */
    char op[24];         /* what they wait in */
};

/* known: every rank that has shown itself in the log. ret is initialised; free ret->ranks. */
void collectives_judge(const struct collectives *c, const struct intset *known,
                       struct holdup_finding *ret);

#endif
