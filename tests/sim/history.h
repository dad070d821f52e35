/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_TESTS_SIM_HISTORY_H
#define REKNIT_TESTS_SIM_HISTORY_H

/* What every simulation needs: chance that can be repeated, and the journal of a run. */

#include "core/core.h"

struct rng {
    uint64_t state;
};
uint64_t rng_next(struct rng *r);
int64_t rng_in(struct rng *r, int64_t least, int64_t most); /* both included */
bool rng_chance(struct rng *r, unsigned percent);

/* Events as a journal holds them, in no more bytes than each needs. */
struct journal {
    VEC(struct event *) events;
};
void journal_add(struct journal *j, const struct event *e);
void journal_get(const struct journal *j, size_t i, struct event *ret);
void journal_done(struct journal *j);

struct core *journal_fold(const struct journal *j);
/* Whether its inputs alone make the same events again; if not, ret says what is different. */
bool journal_replays(const struct journal *j, char ret[160]);

#endif
