/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MEASURE_FLIGHT_H
#define REKNIT_CORE_MEASURE_FLIGHT_H

/* Flight recorders: what each rank of a job wrote down about its collectives when the job stood
 * still (PyTorch's dumps; src/flight/ reads them). flight_judge.h says from all of them together
 * who keeps the others waiting. Filled rank by rank; of each only what the judgement needs stays.
 */

#include "base/intset.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

#define FLIGHT_RANKS_MAX  INTSET_LIMIT
#define FLIGHT_PLACES_MAX 4096 /* groups of one rank */
#define FLIGHT_NAMES_MAX  65536
#define FLIGHT_OPEN_MAX   256 /* unfinished operations of one rank in one group: the first ones */
#define FLIGHT_DONE_MAX   32  /* ... and finished ones: the last */
#define FLIGHT_NONE       UINT32_MAX

#define FLIGHT_MEMBERS_MAX       65536       /* different lists of members, over all ranks */
#define FLIGHT_MEMBERS_BYTES_MAX (64U << 20) /* ... as text */

enum flight_state { FLIGHT_SCHEDULED, FLIGHT_STARTED, FLIGHT_COMPLETED };

struct flight_op {
    int64_t seq;                     /* counted by each rank for itself, from group to group anew */
    int64_t p2p_seq;                 /* likewise, of sends and receives */
    int64_t order;                   /* in which the rank asked for it, over all its groups */
    uint64_t shape;                  /* of what all ranks must agree on; 0: they need not */
    uint32_t place;                  /* of flight_rank.places */
    uint32_t what;                   /* names: the operation */
    int32_t peer;                    /* of a send or receive: place among the members; else -1 */
    uint8_t state;                   /* enum flight_state */
    bool p2p, sends, one_way, batch; /* batch: stands for all that share its number */
};

/* A rank in one of its groups. */
struct flight_place {
    uint32_t name, desc; /* names */
    uint32_t members;    /* of flight.members; FLIGHT_NONE: not told */
    int64_t local;       /* this process's own number of the group; -1: not told */
    uint32_t group;      /* of the judgement */
    bool mixed;          /* sends and receives have counted on the same number as collectives */
    int64_t enqueued, completed; /* the last ones; -1: none; FLIGHT_UNKNOWN */
};

#define FLIGHT_UNKNOWN INT64_MIN

struct flight_status {
    int64_t local, enqueued, started, completed;
};

struct flight_rank {
    int32_t rank;
    bool unread;     /* there is a dump, but it cannot be read: nothing is known */
    bool has_starts; /* it saw when operations start */
    VEC(struct flight_place) places;
    VEC(struct flight_status) status;
    VEC(struct flight_op) ops; /* by place, then number, then order */
};

struct flight_members {
    char *text; /* as dumps write it, not terminated */
    size_t len;
    struct intset ranks;
};

struct flight {
    VEC(struct flight_rank) ranks; /* ascending */
    VEC(struct flight_members) members;
    VEC(uint32_t) members_sorted; /* by length and text */
    size_t members_bytes;
    VEC(char *) names;
    VEC(uint32_t) names_sorted;
    uint32_t dropped; /* names, groups and lists of members beyond the limits */
};

void flight_done(struct flight *f);

/* In any order; NULL: that rank is there already, or is none. Valid until the next one. */
struct flight_rank *flight_add_rank(struct flight *f, int32_t rank);
const struct flight_rank *flight_find_rank(const struct flight *f, int32_t rank);

/* The number of a word; sanitised, at most 127 bytes. */
uint32_t flight_name(struct flight *f, const char *s, size_t len);
static inline const char *flight_word(const struct flight *f, uint32_t name)
{
    return name < f->names.n ? f->names.v[name] : "";
}
/* The number of a list of ranks as dumps write it, "[0, 1, 2]"; FLIGHT_NONE: it is none. */
uint32_t flight_members(struct flight *f, const char *text, size_t len);

/* The rank's group of that name: FLIGHT_NONE when it has too many already. */
uint32_t flight_add_place(struct flight *f, struct flight_rank *r, uint32_t name, uint32_t desc,
                          uint32_t members);
uint32_t flight_find_place(const struct flight_rank *r, uint32_t name);

/* After all of a rank was added: sorts it, finds out what is finished, and keeps what matters. */
void flight_rank_settle(const struct flight *f, struct flight_rank *r);
/* Which of the process's own numbers that group has; its status counts from now on. */
void flight_rank_place_is(struct flight_rank *r, uint32_t place, int64_t local);

#endif
