/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_RARITY_H
#define REKNIT_EXTRACT_RARITY_H

/* How rare a word is in logs where nothing is wrong. Learned from the
 * examples of progress, phase and noise entries, and from the log that is read. */

#include <stddef.h>
#include <stdint.h>

#define RARITY_BITS     (1u << 18)
#define RARITY_WINDOW   8  /* bytes of a word that are compared; more make a scan no faster */
#define RARITY_TEXT_MAX 64 /* bytes of a text that is asked about */

struct rarity {
    uint64_t seen[RARITY_BITS / 64]; /* three bytes in a row, hashed */
};

void rarity_learn(struct rarity *r, const char *text, size_t len);

void rarity_merge(struct rarity *r, const struct rarity *other);

/* How many triples of s were never learned. */
unsigned rarity_unseen(const struct rarity *r, const char *s, size_t len);

/* The rarest window of at most RARITY_WINDOW bytes in s, and its score: 1 = ordinary, more is
 * better. */
unsigned rarity_best_window(const struct rarity *r, const char *s, size_t len, size_t *ret_at,
                            size_t *ret_len);

#endif
