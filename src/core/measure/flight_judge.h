/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MEASURE_FLIGHT_JUDGE_H
#define REKNIT_CORE_MEASURE_FLIGHT_JUDGE_H

/* Who keeps the others waiting, from the flight recorders of all ranks. */

#include "base/names.h"
#include "core/measure/flight.h"

enum flight_verdict {
    FLIGHT_COMPLETE, /* nothing is unfinished: the job did not stand still in a collective */
    FLIGHT_STALL,    /* ranks that others wait for, and that wait for nobody */
    FLIGHT_DESYNC,   /* ranks asked for different things under one number: the program */
    FLIGHT_DEADLOCK, /* ranks that wait for each other in a circle: the program */
    FLIGHT_INSIDE,   /* all have come, none has got through: network, or a GPU within it */
    FLIGHT_UNCLEAR,  /* what is there proves nothing */
    FLIGHT_VERDICT_MAX,
    FLIGHT_VERDICT_INVALID = -EINVAL,
};
DECLARE_NAMES(flight_verdict, enum flight_verdict);

enum flight_reason {
    FLIGHT_CPU,    /* never asked for what the others are in */
    FLIGHT_GPU,    /* asked for it; its GPU is still at something before */
    FLIGHT_NODUMP, /* wrote nothing down */
    FLIGHT_DIFFERS,
    FLIGHT_REASON_MAX,
    FLIGHT_REASON_INVALID = -EINVAL,
};
DECLARE_NAMES(flight_reason, enum flight_reason);

enum flight_stand {
    FLIGHT_AHEAD, /* through with it already */
    FLIGHT_WAITS, /* in what the furthest are in */
    FLIGHT_BEHIND,
    FLIGHT_UNTOLD,
};

struct flight_member {
    int32_t rank;
    uint32_t at, place;            /* of flight.ranks, of its places; FLIGHT_NONE */
    const struct flight_op *first; /* the first collective that is unfinished; NULL: none */
    int64_t enqueued;
    uint8_t stand;  /* enum flight_stand */
    uint8_t reason; /* why behind */
    bool blamed;    /* behind, and by nobody else's fault */
};

struct flight_group {
    uint32_t name, desc, members;
    VEC(struct flight_member) ranks;
    int64_t front; /* number of the collective that the furthest are in; -1: nobody is in one */
    uint32_t what; /* names: that collective */
    uint32_t waiting, behind;
    int64_t differs_at; /* where ranks asked for different things; -1: nowhere */
    bool inside;        /* all have come to it, with nothing before it */
    bool root;          /* what holds it up holds up the rest */
};

struct flight_culprit {
    int32_t rank;
    enum flight_reason reason;
    uint32_t group; /* of the judgement; FLIGHT_NONE: only a send or receive waits for it */
    uint32_t what;  /* names: what the others are in, of FLIGHT_DIFFERS its own */
    int64_t seq;    /* its number */
    int64_t own;    /* where the rank is: last enqueued or first unfinished; -1: not known */
    int32_t waiter; /* one that waits for it; -1 */
};

struct flight_judgement {
    enum flight_verdict verdict;
    VEC(struct flight_culprit) culprits; /* by rank */
    VEC(struct flight_group) groups;     /* of each: those where ranks stand come first */
    struct intset missing, unread, idle, circle;
    bool inside;  /* somewhere all have come to a collective, or both to a message */
    bool too_few; /* more than half of the dumps are missing: that proves nothing */
};

void flight_judgement_done(struct flight_judgement *j);
void flight_judge(struct flight *f, struct flight_judgement *ret);

#endif
