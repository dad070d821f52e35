/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_TRIGGER_H
#define REKNIT_EXTRACT_TRIGGER_H

/* Where in a block of raw text there may be lines that matter: much faster than matching. */

#include "extract/matcher.h"
#include "extract/rarity.h"

#define TRIGGERS_MAX 4096

struct triggers {
    bool dirty;         /* escape codes may hide more: clean the records and look again */
    bool overflow;      /* there are more */
    uint64_t line_ends; /* in the block; not known if it is dirty or there was an overflow */
    size_t n;
    uint32_t at[TRIGGERS_MAX]; /* ascending offsets of bytes within records to be looked at */
};

struct trigger_set;

/* `common` = text that this log is full of, whose words cannot serve; NULL = none known. */
struct trigger_set *trigger_set_new(struct matcher *m, const struct rarity *common);
struct trigger_set *trigger_set_free(struct trigger_set *t);
DEFINE_CLEANUP(struct trigger_set *, trigger_set_free);

const struct prefilter *trigger_set_words(const struct trigger_set *t);

/* In a block that is not dirty, every record has a trigger on which an entry matches that is more
 * than progress or noise; but for entries all of whose words are in the common text. */
void trigger_set_scan(struct trigger_set *t, const char *block, size_t len, struct triggers *ret);

#endif
