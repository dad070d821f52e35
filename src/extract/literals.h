/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_LITERALS_H
#define REKNIT_EXTRACT_LITERALS_H

/* Which words must stand in a line before a pattern can match it. A regular expression is slow to
 * try, a few hundred words at once are not: so the scanner looks for words, and tries a pattern
 * only where one of its words is. */

#include <stdbool.h>
#include <stddef.h>

#define LITERAL_BYTES_MAX 32 /* of one literal; longer ones are cut */
#define LITERALS_MAX      48 /* alternatives of one pattern */
#define LITERAL_BYTES_MIN 3  /* shorter ones are everywhere */
#define LITERAL_BYTES_OK  4  /* one shorter word slows the search for all others down by a fifth */

struct literal {
    unsigned char len;
    char s[LITERAL_BYTES_MAX];
};

struct literal_set {
    unsigned n;
    bool caseless; /* letters stand for both cases */
    struct literal v[LITERALS_MAX];
};

/* How well a text tells the lines that matter from the others; 0 = useless. */
typedef unsigned (*literal_score_fn)(void *ctx, const char *s, size_t len);

/* Finds literals of which every match of the PCRE2 pattern contains at least one: of all such
 * sets the one whose worst member scores best. Understands the syntax that docs/CATALOG.md allows;
 * whatever it does not understand only makes it find less. Returns whether there is a set. */
bool literals_required(const char *pattern, literal_score_fn score, void *ctx,
                       struct literal_set *ret);

#endif
