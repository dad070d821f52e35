/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_COVER_H
#define REKNIT_EXTRACT_COVER_H

/* Few words for many literals: the fewer and rarer the words, the faster a block is searched. */

#include "extract/literals.h"
#include "extract/rarity.h"

#define COVER_WORD_BYTES 5

struct cover_literal {
    struct literal text;
    bool caseless;
};

typedef void (*cover_word_fn)(void *ctx, const char *s, size_t len, bool caseless);

/* Calls fn with words such that each literal contains one of them. `common` knows the text of
 * progress lines: a literal of which every part is common gets no word, for it would be found on
 * every line. `ordinary` knows all harmless text; words out of it are avoided. */
void cover_literals(const struct cover_literal *literals, size_t n, const struct rarity *common,
                    const struct rarity *ordinary, cover_word_fn fn, void *ctx);

#endif
