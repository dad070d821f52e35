/* SPDX-License-Identifier: Apache-2.0 */

/* A prefilter with few words: parts that the catalogue's patterns share. Progress is left out, for
 * it is most of a log and is sampled; so is noise, which only matters where something else speaks.
 * Which words are good depends on the log: those in its progress lines are not. What is known
 * beforehand are the examples of the catalogue; the scanner learns the rest and asks for a new
 * set. */

#include "extract/trigger.h"

#include "base/alloc.h"
#include "base/str.h"
#include "extract/cover.h"
#include "extract/prefilter.h"

#include <string.h>

enum owner {
    OWNER_ENTRY,
    OWNER_DIRT,
};

/* Ends all colours, here without its ESC. Too short to be a word: one short word makes the search
 * for all others slower. */
#define SHORT_CODE "[0m"

/* What escape codes look like, also when a collector dropped or spelled out the ESC byte; and how
 * a traceback begins even when it is cut or glued to something. */
static const struct {
    const char *word;
    enum owner owner;
} fixed_words[] = {
    {"[39m", OWNER_DIRT}, {"[22m", OWNER_DIRT},       {"#033", OWNER_DIRT},
    {"#015", OWNER_DIRT}, {"Traceback", OWNER_ENTRY}, {"call last", OWNER_ENTRY},
};

struct trigger_set {
    struct prefilter *words;
};

static void add_word(void *ctx, const char *s, size_t len, bool caseless)
{
    prefilter_add(ctx, s, len, caseless, OWNER_ENTRY);
}

struct trigger_set *trigger_set_new(const struct matcher *m, const struct rarity *common)
{
    struct trigger_set *t = xnew(struct trigger_set);
    _cleanup_(freep) struct rarity *known = xnew(struct rarity), *ordinary = xnew(struct rarity);
    const struct cover_literal *literals;
    size_t n;

    t->words = prefilter_new();
    matcher_learn_examples(m, known, ordinary);
    if (common) {
        rarity_merge(known, common);
        rarity_merge(ordinary, common);
    }
    literals = matcher_literals(m, &n);
    cover_literals(literals, n, known, ordinary, add_word, t->words);
    for (size_t i = 0; i < ARRAY_SIZE(fixed_words); i++)
        prefilter_add(t->words, fixed_words[i].word, strlen(fixed_words[i].word), false,
                      fixed_words[i].owner);
    if (prefilter_compile(t->words, NULL) < 0)
        return trigger_set_free(t);
    return t;
}

struct trigger_set *trigger_set_free(struct trigger_set *t)
{
    if (!t)
        return NULL;
    prefilter_free(t->words);
    free(t);
    return NULL;
}

const struct prefilter *trigger_set_words(const struct trigger_set *t)
{
    return t->words;
}

/* Whether the block holds NUL, ESC or the short code. 16 bytes a round, in a lane that every
 * processor has. */
static bool has_codes(const char *block, size_t len)
{
    typedef signed char lane __attribute__((vector_size(16)));
    const size_t n = sizeof(lane), ahead = strlen(SHORT_CODE) - 1;
    size_t i = 0;

    for (; i + n + ahead <= len; i += n) {
        lane a, b, c;
        uint64_t found[2];

        memcpy(&a, block + i, n);
        memcpy(&b, block + i + 1, n);
        memcpy(&c, block + i + 2, n);
        a = (a == '\0') | (a == '\033') |
            ((a == SHORT_CODE[0]) & (b == SHORT_CODE[1]) & (c == SHORT_CODE[2]));
        memcpy(found, &a, n);
        if (found[0] | found[1])
            return true;
    }
    return memchr(block + i, '\0', len - i) || memchr(block + i, '\033', len - i) ||
           memmem(block + i, len - i, SHORT_CODE, strlen(SHORT_CODE));
}

static bool add_trigger(void *ctx, unsigned owner, size_t end)
{
    struct triggers *t = ctx;

    if (owner == OWNER_DIRT) {
        t->dirty = true;
        return false;
    }
    if (t->n == TRIGGERS_MAX) {
        t->overflow = true;
        return false;
    }
    if (t->n == 0 || t->at[t->n - 1] < end - 1)
        t->at[t->n++] = (uint32_t)(end - 1);
    return true;
}

void trigger_set_scan(struct trigger_set *t, const char *block, size_t len, struct triggers *ret)
{
    ret->dirty = has_codes(block, len);
    ret->overflow = false;
    ret->n = 0;
    if (!ret->dirty)
        prefilter_scan(t->words, block, len, add_trigger, ret);
}
