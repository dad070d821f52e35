/* SPDX-License-Identifier: Apache-2.0 */

/* Greedy set cover. Every window of COVER_WORD_BYTES bytes of every literal is a candidate; the
 * candidate that covers most literals for its cost is taken, until all are covered. Shared parts
 * of words ("rror", "Time") so stand for hundreds of literals. */

#include "extract/cover.h"

#include "base/alloc.h"
#include "base/vec.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* A window of a literal; equal ones stand together once sorted. */
struct window {
    char s[COVER_WORD_BYTES];
    unsigned char len;
    bool caseless;
    unsigned literal;
};

struct candidate {
    unsigned first, n; /* its windows */
    unsigned gain;     /* literals among them that are not covered yet */
    unsigned cost;     /* 0 = ordinary: not to be used */
};

struct cover {
    VEC(struct window) windows;
    VEC(struct candidate) candidates;
    const struct cover_literal *literals;
    const struct rarity *common, *ordinary;
    bool *covered, *fresh; /* of literals; fresh: by the word taken last */
};

static void add_windows(struct cover *c, unsigned literal)
{
    const struct literal *l = &c->literals[literal].text;
    bool caseless = c->literals[literal].caseless;
    size_t n = l->len < COVER_WORD_BYTES ? l->len : COVER_WORD_BYTES;

    for (size_t at = 0; at + n <= l->len; at++) {
        struct window *w = VEC_PUSH(&c->windows);

        w->len = (unsigned char)n;
        w->caseless = caseless;
        w->literal = literal;
        for (size_t i = 0; i < n; i++)
            w->s[i] = caseless ? (char)tolower((unsigned char)l->s[at + i]) : l->s[at + i];
    }
}

static int compare_text(const struct window *a, const struct window *b)
{
    int d = memcmp(a->s, b->s, sizeof(a->s));

    if (d == 0)
        d = a->len - b->len;
    return d == 0 ? a->caseless - b->caseless : d;
}

static int compare_windows(const void *va, const void *vb)
{
    const struct window *a = va, *b = vb;
    int d = compare_text(a, b);

    return d == 0 ? (a->literal > b->literal) - (a->literal < b->literal) : d;
}

/* 0 for what cannot be used. */
static unsigned cost_of(const struct cover *c, const struct window *w)
{
    static const unsigned costs[] = {12, 5, 3, 2};
    unsigned unseen = rarity_unseen(c->ordinary, w->s, w->len);

    if (w->len < LITERAL_BYTES_MIN || rarity_unseen(c->common, w->s, w->len) == 0)
        return 0;
    return costs[unseen < 3 ? unseen : 3];
}

static void group_windows(struct cover *c)
{
    qsort(c->windows.v, c->windows.n, sizeof(c->windows.v[0]), compare_windows);
    for (unsigned i = 0; i < c->windows.n; i++) {
        const struct window *w = &c->windows.v[i];

        if (i == 0 || compare_text(w, w - 1) != 0)
            *VEC_PUSH(&c->candidates) = (struct candidate){.first = i, .cost = cost_of(c, w)};
        c->candidates.v[c->candidates.n - 1].n++;
        c->candidates.v[c->candidates.n - 1].gain +=
            i == 0 || w->literal != w[-1].literal || compare_text(w, w - 1) != 0;
    }
}

static const struct candidate *best_candidate(const struct cover *c)
{
    const struct candidate *best = NULL;

    VEC_FOREACH (&c->candidates, k)
        if (k->cost > 0 && k->gain > 0 &&
            (!best || (uint64_t)k->gain * best->cost > (uint64_t)best->gain * k->cost))
            best = k;
    return best;
}

/* Takes what the new word covers off the gain of all others. */
static void mark_covered(struct cover *c, size_t n, const struct candidate *taken)
{
    memset(c->fresh, 0, n);
    for (unsigned i = taken->first; i < taken->first + taken->n; i++) {
        unsigned literal = c->windows.v[i].literal;

        if (!c->covered[literal])
            c->covered[literal] = c->fresh[literal] = true;
    }
    VEC_FOREACH (&c->candidates, k) {
        unsigned last = UINT32_MAX;

        for (unsigned i = k->first; i < k->first + k->n && k->gain > 0; i++) {
            if (c->fresh[c->windows.v[i].literal] && c->windows.v[i].literal != last)
                k->gain--;
            last = c->windows.v[i].literal;
        }
    }
}

void cover_literals(const struct cover_literal *literals, size_t n, const struct rarity *common,
                    const struct rarity *ordinary, cover_word_fn fn, void *ctx)
{
    struct cover c = {.literals = literals, .common = common, .ordinary = ordinary};
    const struct candidate *best;

    c.covered = xcalloc(n + 1, sizeof(*c.covered));
    c.fresh = xcalloc(n + 1, sizeof(*c.fresh));
    for (unsigned i = 0; i < n; i++)
        add_windows(&c, i);
    group_windows(&c);
    while ((best = best_candidate(&c))) {
        const struct window *w = &c.windows.v[best->first];

        fn(ctx, w->s, w->len, w->caseless);
        mark_covered(&c, n, best);
    }
    free(c.covered);
    free(c.fresh);
    VEC_DONE(&c.windows);
    VEC_DONE(&c.candidates);
}
