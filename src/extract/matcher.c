/* SPDX-License-Identifier: Apache-2.0 */

/* A prefilter holds a word of every expression, and tells for a line which few of them to try. A
 * line may be very long (several ranks, a bar that never ends). Expressions are tried in a window
 * around each word that was found, so that the cost of a line grows with its length and not with
 * its square. */

#include "extract/matcher.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/vec.h"
#include "extract/cover.h"
#include "extract/literals.h"
#include "extract/prefilter.h"
#include "extract/rarity.h"

#include <assert.h>
#include <string.h>

#define WINDOW_BYTES   4096 /* lines up to this length are searched as a whole */
#define CANDIDATES_MAX 256  /* of one line */
#define REPEATS_MAX    8    /* of one expression in one window */

struct expression {
    const struct entry *entry;
    struct pattern *pattern;
    const char *text;
    bool wordless;
    unsigned fields, n_fields; /* indices of the entry's `fields` in matcher.fields */
};

struct matcher {
    const struct catalog *catalog;
    VEC(struct expression) expressions; /* in the order of the catalogue */
    VEC(struct pattern *) fields;
    VEC(unsigned) wordless;             /* expressions to try always */
    VEC(struct cover_literal) literals; /* of entries that are more than ordinary */
    struct prefilter *words;
    struct prefilter *triggers;
    struct pattern_space *space;
    struct stances *stances;
};

static int complain(const struct entry *entry, const char *text, struct err *e)
{
    return err_prefix(e, -EINVAL, "%s:%u: %s: pattern '%s'", entry->file, entry->line, entry->id,
                      text);
}

static int add_entry(struct matcher *m, const struct entry *entry, struct err *e)
{
    unsigned first_field = (unsigned)m->fields.n;

    for (unsigned i = 0; i < entry->fields.n; i++)
        if (pattern_new(entry->fields.v[i], VEC_PUSH(&m->fields), e) < 0)
            return complain(entry, entry->fields.v[i], e);
    for (unsigned i = 0; i < entry->patterns.n; i++) {
        struct expression *x = VEC_PUSH(&m->expressions);

        x->entry = entry;
        x->text = entry->patterns.v[i];
        x->fields = first_field;
        x->n_fields = entry->fields.n;
        if (pattern_new(entry->patterns.v[i], &x->pattern, e) < 0)
            return complain(entry, entry->patterns.v[i], e);
    }
    return 0;
}

/* Whether lines of this role are ordinary: sampled, or of no meaning by themselves. */
static bool is_ordinary(enum role role)
{
    return role == ROLE_PROGRESS || role == ROLE_NOISE;
}

void matcher_learn_examples(const struct matcher *m, struct rarity *progress,
                            struct rarity *ordinary)
{
    for (size_t i = 0; i < catalog_size(m->catalog); i++) {
        const struct entry *e = catalog_entry(m->catalog, i);

        for (unsigned j = 0; j < e->match.n && is_ordinary(e->role); j++) {
            rarity_learn(ordinary, e->match.v[j], strlen(e->match.v[j]));
            if (e->role == ROLE_PROGRESS)
                rarity_learn(progress, e->match.v[j], strlen(e->match.v[j]));
        }
    }
}

static unsigned score_literal(void *ctx, const char *s, size_t len)
{
    size_t at, n;

    return rarity_best_window(ctx, s, len, &at, &n);
}

static void add_words(struct matcher *m, unsigned index, const char *text, struct rarity *ordinary,
                      struct literal_set *set)
{
    struct expression *x = &m->expressions.v[index];

    if (!literals_required(text, score_literal, ordinary, set)) {
        x->wordless = true;
        *VEC_PUSH(&m->wordless) = index;
        return;
    }
    for (unsigned i = 0; i < set->n; i++) {
        size_t at = 0, n = 0;

        rarity_best_window(ordinary, set->v[i].s, set->v[i].len, &at, &n);
        prefilter_add(m->words, set->v[i].s + at, n, set->caseless, index);
        if (!is_ordinary(x->entry->role))
            *VEC_PUSH(&m->literals) = (struct cover_literal){set->v[i], set->caseless};
    }
}

static int build_prefilter(struct matcher *m, struct err *e)
{
    _cleanup_(freep) struct rarity *progress = xnew(struct rarity), *ordinary = xnew(struct rarity);
    _cleanup_(freep) struct literal_set *set = xnew(struct literal_set);
    unsigned index = 0;

    m->words = prefilter_new();
    matcher_learn_examples(m, progress, ordinary);
    for (size_t i = 0; i < catalog_size(m->catalog); i++) {
        const struct entry *entry = catalog_entry(m->catalog, i);

        for (unsigned j = 0; j < entry->patterns.n; j++)
            add_words(m, index++, entry->patterns.v[j], ordinary, set);
    }
    return prefilter_compile(m->words, e);
}

int matcher_new(const struct catalog *c, struct matcher **ret, struct err *e)
{
    _cleanup_(matcher_freep) struct matcher *m = xnew(struct matcher);
    int r;

    m->catalog = c;
    m->space = pattern_space_new();
    for (size_t i = 0; i < catalog_size(c); i++) {
        r = add_entry(m, catalog_entry(c, i), e);
        if (r < 0)
            return r;
    }
    r = stances_new(&m->stances, e);
    if (r >= 0)
        r = build_prefilter(m, e);
    if (r < 0)
        return r;
    *ret = TAKE(m);
    return 0;
}

struct matcher *matcher_free(struct matcher *m)
{
    if (!m)
        return NULL;
    stances_free(m->stances);
    pattern_space_free(m->space);
    prefilter_free(m->words);
    prefilter_free(m->triggers);
    VEC_DONE(&m->literals);
    VEC_DONE(&m->wordless);
    VEC_FOREACH (&m->fields, p)
        pattern_free(*p);
    VEC_DONE(&m->fields);
    VEC_FOREACH (&m->expressions, x)
        pattern_free(x->pattern);
    VEC_DONE(&m->expressions);
    free(m);
    return NULL;
}

struct prefilter *matcher_triggers(const struct matcher *m)
{
    return m->triggers;
}

void matcher_keep_triggers(struct matcher *m, struct prefilter *p)
{
    prefilter_free(m->triggers);
    m->triggers = prefilter_ref(p);
}

const struct catalog *matcher_catalog(const struct matcher *m)
{
    return m->catalog;
}

const struct prefilter *matcher_words(const struct matcher *m)
{
    return m->words;
}

const char *matcher_wordless(const struct matcher *m, const struct entry *e)
{
    VEC_FOREACH (&m->expressions, x)
        if (x->entry == e && x->wordless)
            return x->text;
    return NULL;
}

/* An expression to try, because its word ends at `at`. */
struct candidate {
    unsigned expression;
    unsigned times; /* the word was found */
    size_t at;
};

struct candidates {
    size_t line_len;
    size_t n;
    struct candidate v[CANDIDATES_MAX];
};

static bool add_candidate(void *ctx, unsigned expression, size_t at)
{
    struct candidates *c = ctx;

    for (size_t i = c->n; i > 0; i--) {
        struct candidate *old = &c->v[i - 1];

        if (old->expression == expression &&
            (c->line_len <= WINDOW_BYTES || at < old->at + WINDOW_BYTES / 2)) {
            old->times++;
            return true;
        }
    }
    if (c->n == CANDIDATES_MAX)
        return false;
    c->v[c->n++] = (struct candidate){expression, 1, at};
    return true;
}

/* By the order of the catalogue, then by place; n is small and mostly in order. */
static void sort_candidates(struct candidates *c)
{
    for (size_t i = 1; i < c->n; i++) {
        struct candidate moved = c->v[i];
        size_t j = i;

        for (; j > 0 && (c->v[j - 1].expression > moved.expression ||
                         (c->v[j - 1].expression == moved.expression && c->v[j - 1].at > moved.at));
             j--)
            c->v[j] = c->v[j - 1];
        c->v[j] = moved;
    }
}

/* A line being matched. */
struct work {
    struct matcher *m;
    const char *line;
    size_t len;
    struct line_hit *hits;
    size_t n;
};

static size_t distance(size_t a, size_t b)
{
    return a < b ? b - a : a - b;
}

/* Whether the entry has hit already around there, by an earlier pattern of its own. */
static bool has_hit(const struct work *w, const struct expression *x, size_t at)
{
    for (size_t i = w->n; i > 0; i--)
        if (w->hits[i - 1].entry == x->entry && distance(w->hits[i - 1].start, at) < WINDOW_BYTES)
            return true;
    return false;
}

/* Values of the entry's `fields`, from the same window. */
static void search_fields(const struct work *w, const struct expression *x, const char *window,
                          size_t len, size_t from, bool whole, struct line_hit *hit)
{
    size_t start, end;

    for (unsigned i = 0; i < x->n_fields; i++) {
        struct pattern *p = w->m->fields.v[x->fields + i];

        if (pattern_match(p, w->m->space, window, len, from, whole, &start, &end))
            pattern_captures(p, w->m->space, window, hit->fields);
    }
}

/* Adds the hits of one expression in the window around its word. */
static void try_expression(struct work *w, unsigned index, size_t at, unsigned times)
{
    const struct expression *x = &w->m->expressions.v[index];
    bool whole = w->len <= WINDOW_BYTES;
    size_t begin = whole || at < WINDOW_BYTES / 2 ? 0 : at - WINDOW_BYTES / 2;
    size_t len = whole || w->len - begin < WINDOW_BYTES ? w->len - begin : WINDOW_BYTES;
    const char *window = w->line + begin;
    size_t from = 0, start, end;

    if (is_ordinary(x->entry->role) || times > REPEATS_MAX)
        times = is_ordinary(x->entry->role) ? 1 : REPEATS_MAX;
    for (; times > 0 && from < len && w->n < LINE_HITS_MAX; times--, from = end) {
        struct line_hit *hit = &w->hits[w->n];

        if (!pattern_match(x->pattern, w->m->space, window, len, from, whole, &start, &end))
            return;
        *hit = (struct line_hit){
            .entry = x->entry, .pattern = x->text, .start = begin + start, .end = begin + end};
        pattern_captures(x->pattern, w->m->space, window, hit->fields);
        search_fields(w, x, window, len, from > 0 ? start : 0, whole, hit);
        w->n++;
        if (end == start)
            return;
    }
}

/* What is far apart on a long line does not concern each other. */
static bool are_near(const struct line_hit *a, const struct line_hit *b)
{
    return a->entry != b->entry && distance(a->start, b->start) < WINDOW_BYTES;
}

static void settle_hides(struct line_hit *hits, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (are_near(&hits[i], &hits[j]) && !hits[j].dropped_by && !hits[i].dropped_by &&
                entry_hides(hits[j].entry, hits[i].entry))
                hits[i].dropped_by = hits[j].entry;
}

/* Decides about hit i once all that it yields to are decided; false: not yet. */
static bool settle_one(struct line_hit *hits, const bool *decided, size_t n, size_t i)
{
    const struct entry *by = NULL;

    for (size_t j = 0; j < n; j++) {
        if (!are_near(&hits[i], &hits[j]) || hits[j].dropped_by ||
            !entry_yields_to(hits[i].entry, hits[j].entry))
            continue;
        if (!decided[j])
            return false;
        by = by ? by : hits[j].entry;
    }
    hits[i].dropped_by = by;
    return true;
}

/* Lets hides and yields_to speak: an entry that is itself dropped drops nothing. Entries that
 * yield to each other in a circle all stay. */
static void settle(struct line_hit *hits, size_t n)
{
    bool decided[LINE_HITS_MAX] = {false}, again = true;

    assert(n <= LINE_HITS_MAX);
    settle_hides(hits, n);
    for (size_t i = 0; i < n; i++)
        decided[i] = hits[i].dropped_by;
    while (again) {
        again = false;
        for (size_t i = 0; i < n; i++) {
            if (decided[i])
                continue;
            decided[i] = settle_one(hits, decided, n, i);
            again |= decided[i];
        }
    }
}

/* By place; at the same place in the order of the catalogue, in which they are. */
static void sort_hits(struct line_hit *hits, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct line_hit moved = hits[i];
        size_t j = i;

        for (; j > 0 && hits[j - 1].start > moved.start; j--)
            hits[j] = hits[j - 1];
        hits[j] = moved;
    }
}

static bool is_of_machines(const struct entry *e)
{
    return e->layer == LAYER_KERNEL || e->layer == LAYER_SCHEDULER || e->blame == BLAME_NODE ||
           e->cause == CAUSE_GPU_HARDWARE || e->cause == CAUSE_NODE_HARDWARE ||
           e->cause == CAUSE_NODE_FAILURE;
}

/* A hit that is silent for what its line says of it keeps others silent as before: they speak of
 * the same words. */
static void read_stances(struct work *w)
{
    for (size_t i = 0; i < w->n; i++) {
        struct line_hit *hit = &w->hits[i];

        if (hit->dropped_by || !entry_tells_of_failure(hit->entry))
            continue;
        hit->stance = stance_of(w->m->stances, w->m->space, w->line, w->len, hit->start, hit->end);
        if (is_of_machines(hit->entry) &&
            stance_quotes_data(w->m->stances, w->m->space, w->line, hit->start))
            hit->stance = STANCE_QUOTES;
    }
}

size_t matcher_line(struct matcher *m, const char *line, size_t len,
                    struct line_hit hits[LINE_HITS_MAX])
{
    struct candidates found;
    struct work w = {m, line, len, hits, 0};

    found.line_len = len;
    found.n = 0;
    prefilter_scan(m->words, line, len, add_candidate, &found);
    VEC_FOREACH (&m->wordless, index)
        add_candidate(&found, *index, 0);
    sort_candidates(&found);
    for (size_t i = 0; i < found.n; i++) {
        const struct candidate *c = &found.v[i];

        if (!has_hit(&w, &m->expressions.v[c->expression], c->at))
            try_expression(&w, c->expression, c->at, c->times);
    }
    if (w.n > 1) {
        settle(hits, w.n);
        sort_hits(hits, w.n);
    }
    read_stances(&w);
    return w.n;
}

struct relevance {
    const struct matcher *m;
    bool matters;
};

static bool is_relevant(void *ctx, unsigned expression, size_t at)
{
    struct relevance *r = ctx;

    (void)at;
    r->matters = !is_ordinary(r->m->expressions.v[expression].entry->role);
    return !r->matters;
}

bool matcher_may_matter(struct matcher *m, const char *raw, size_t len)
{
    struct relevance r = {.m = m};

    prefilter_scan(m->words, raw, len, is_relevant, &r);
    return r.matters;
}

const struct cover_literal *matcher_literals(const struct matcher *m, size_t *ret_n)
{
    *ret_n = m->literals.n;
    return m->literals.v;
}
