/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/rarity.h"

#include <assert.h>
#include <stdbool.h>

/* Case and the value of digits are ignored: "Step 12" makes "step 9" ordinary, too. */
static unsigned fold(char c)
{
    if (c >= '0' && c <= '9')
        return '0';
    return c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A' + 'a') : (unsigned char)c;
}

static unsigned triple(const char *s)
{
    uint32_t v = fold(s[0]) | fold(s[1]) << 8 | fold(s[2]) << 16;

    return (v * UINT32_C(2654435761)) >> (32 - 18);
}

void rarity_learn(struct rarity *r, const char *text, size_t len)
{
    static_assert(RARITY_BITS == 1u << 18, "triple() yields 18 bits");
    for (size_t i = 0; i + 3 <= len; i++) {
        unsigned t = triple(text + i);

        r->seen[t / 64] |= UINT64_C(1) << t % 64;
    }
}

void rarity_merge(struct rarity *r, const struct rarity *other)
{
    for (size_t i = 0; i < RARITY_BITS / 64; i++)
        r->seen[i] |= other->seen[i];
}

static bool is_seen(const struct rarity *r, const char *s)
{
    unsigned t = triple(s);

    return r->seen[t / 64] >> t % 64 & 1;
}

/* Which triples of s were never learned: bit i for the one at s[i]. */
static uint64_t unseen_triples(const struct rarity *r, const char *s, size_t len)
{
    uint64_t unseen = 0;

    assert(len <= RARITY_TEXT_MAX);
    for (size_t i = 0; i + 3 <= len; i++)
        unseen |= (uint64_t)!is_seen(r, s + i) << i;
    return unseen;
}

unsigned rarity_unseen(const struct rarity *r, const char *s, size_t len)
{
    return (unsigned)__builtin_popcountll(unseen_triples(r, s, len));
}

/* Unseen triples make a word rare; those at its end help most, for the scan starts there. */
static unsigned score_window(uint64_t unseen, size_t len)
{
    unsigned score = 1 + (unsigned)len / 2;

    for (size_t i = 0; i + 3 <= len; i++)
        if (unseen >> i & 1)
            score += i + 5 > len ? 6 : 4;
    return score;
}

unsigned rarity_best_window(const struct rarity *r, const char *s, size_t len, size_t *ret_at,
                            size_t *ret_len)
{
    uint64_t unseen = unseen_triples(r, s, len);
    size_t n = len < RARITY_WINDOW ? len : RARITY_WINDOW;
    unsigned best = 0;

    for (size_t at = 0; at + n <= len; at++) {
        unsigned score = score_window(unseen >> at, n);

        if (score > best) {
            best = score;
            *ret_at = at;
            *ret_len = n;
        }
    }
    return best;
}
