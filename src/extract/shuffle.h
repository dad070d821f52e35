/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_SHUFFLE_H
#define REKNIT_EXTRACT_SHUFFLE_H

/* Words that several processes wrote at the same time, character by character, into one file:
 * "VVaalluueeEErrrroorr", "KeyKEeryErrrooerr". */

#include <stdbool.h>
#include <stddef.h>

#define SHUFFLE_WORD_MIN 8 /* shorter words could be read out of anything */

/* Whether text may hold something of the kind; quick. */
bool shuffle_suspect(const char *text, size_t len);

/* How often each letter occurs in a text, for the question whether it can hold two copies of a word
 * at all. */
struct shuffle_letters {
    unsigned n[256];
};
void shuffle_count(const char *text, size_t len, struct shuffle_letters *ret);
bool shuffle_possible(const struct shuffle_letters *letters, const char *word, size_t word_len);

/* Finds two or more interleaved copies of word in text; returns their number and where the first
 * begins, 0 = there are none. Copies that only stand side by side do not count. */
unsigned shuffle_find(const char *text, size_t len, const char *word, size_t word_len,
                      size_t *ret_at);

#endif
