/* SPDX-License-Identifier: Apache-2.0 */

/* Greedy set cover. Every window of COVER_WORD_BYTES bytes of every literal is a candidate; the
 * candidate that covers most literals for its cost is taken, until all are covered. Shared parts
 * of words ("rror", "Time") so stand for hundreds of literals.
 *
 * What a candidate gains only becomes less as others are taken. So candidates wait in a heap by
 * what they gained when last counted, and only the one on top is counted again: while it is still
 * the best, it is the best of all. */

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
    unsigned gain;     /* literals among them that were not covered when it was last counted */
    unsigned cost;
};

struct cover {
    VEC(struct window) windows;
    VEC(struct candidate) heap; /* best first; equally good ones in the order of their text */
    const struct cover_literal *literals;
    const struct rarity *common, *ordinary;
    bool *covered; /* of literals */
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

/* Literals of the candidate that are not covered; a literal may have the same window twice. */
static unsigned count_gain(const struct cover *c, const struct candidate *k)
{
    unsigned gain = 0, last = UINT32_MAX;

    for (unsigned i = k->first; i < k->first + k->n; i++) {
        unsigned literal = c->windows.v[i].literal;

        gain += !c->covered[literal] && literal != last;
        last = literal;
    }
    return gain;
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
    uint64_t x = (uint64_t)a->gain * b->cost, y = (uint64_t)b->gain * a->cost;

    return x > y || (x == y && a->first < b->first);
}

/* Lets the candidate at i sink to its place. */
static void sift_down(struct cover *c, size_t i)
{
    struct candidate *v = c->heap.v, moved = v[i];

    for (size_t child; (child = 2 * i + 1) < c->heap.n; i = child) {
        if (child + 1 < c->heap.n && is_better(&v[child + 1], &v[child]))
            child++;
        if (!is_better(&v[child], &moved))
            break;
        v[i] = v[child];
    }
    v[i] = moved;
}

static void drop_best(struct cover *c)
{
    c->heap.v[0] = c->heap.v[--c->heap.n];
    if (c->heap.n > 0)
        sift_down(c, 0);
}

static void group_windows(struct cover *c)
{
    qsort(c->windows.v, c->windows.n, sizeof(c->windows.v[0]), compare_windows);
    for (unsigned i = 0, n; i < c->windows.n; i += n) {
        const struct window *w = &c->windows.v[i];
        struct candidate k = {.first = i, .cost = cost_of(c, w)};

        for (n = 1; i + n < c->windows.n && compare_text(w, w + n) == 0; n++)
            ;
        k.n = n;
        k.gain = count_gain(c, &k);
        if (k.cost > 0)
            *VEC_PUSH(&c->heap) = k;
    }
    for (size_t i = c->heap.n / 2; i-- > 0;)
        sift_down(c, i);
}

/* The candidate to take next, NULL = none gains anything. */
static const struct candidate *best_candidate(struct cover *c)
{
    while (c->heap.n > 0) {
        struct candidate *top = &c->heap.v[0];
        unsigned gain = count_gain(c, top);

        if (gain == top->gain)
            return top;
        top->gain = gain;
        if (gain == 0)
            drop_best(c);
        else
            sift_down(c, 0);
    }
    return NULL;
}

void cover_literals(const struct cover_literal *literals, size_t n, const struct rarity *common,
                    const struct rarity *ordinary, cover_word_fn fn, void *ctx)
{
    struct cover c = {.literals = literals, .common = common, .ordinary = ordinary};
    const struct candidate *best;

    c.covered = xcalloc(n + 1, sizeof(*c.covered));
    for (unsigned i = 0; i < n; i++)
        add_windows(&c, i);
    group_windows(&c);
    while ((best = best_candidate(&c))) {
        const struct window *w = &c.windows.v[best->first];

        fn(ctx, w->s, w->len, w->caseless);
        for (unsigned i = best->first; i < best->first + best->n; i++)
            c.covered[c.windows.v[i].literal] = true;
        drop_best(&c);
    }
    free(c.covered);
    VEC_DONE(&c.windows);
    VEC_DONE(&c.heap);
}
