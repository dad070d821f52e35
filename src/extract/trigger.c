/* SPDX-License-Identifier: Apache-2.0 */

/* A prefilter with few words: parts that the catalogue's patterns share. Progress is left out, for
 * it is most of a log and is sampled; so is noise, which only matters where something else speaks.
 * Which words are good depends on the log: those in its progress lines are not. What is known
 * beforehand are the examples of the catalogue; the scanner learns the rest and asks for a new
 * set.
 *
 * Lines that were searched in vain are remembered, and those like them are not searched again. That
 * changes nothing of what is found: a line is not remembered if a word or code could come into it
 * by other digits. */

#include "extract/trigger.h"

#include "base/alloc.h"
#include "base/str.h"
#include "extract/alike.h"
#include "extract/cover.h"
#include "extract/prefilter.h"

#include <string.h>

#define REMEMBER_MAX 8 /* lines of one block */
#define PAUSE_BLOCKS 7 /* searched as a whole where few lines are alike */

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
    struct alike *plain; /* lines without a word or code */
    unsigned pause;      /* blocks to come of which no lines are compared */
};

static void add_entry_word(void *ctx, const char *s, size_t len, bool caseless)
{
    prefilter_add(ctx, s, len, caseless, OWNER_ENTRY);
}

static struct prefilter *choose_words(const struct matcher *m, const struct rarity *common)
{
    _cleanup_(freep) struct rarity *known = xnew(struct rarity), *ordinary = xnew(struct rarity);
    struct prefilter *words = prefilter_new();
    const struct cover_literal *literals;
    size_t n;

    matcher_learn_examples(m, known, ordinary);
    if (common) {
        rarity_merge(known, common);
        rarity_merge(ordinary, common);
    }
    literals = matcher_literals(m, &n);
    cover_literals(literals, n, known, ordinary, add_entry_word, words);
    for (size_t i = 0; i < ARRAY_SIZE(fixed_words); i++)
        prefilter_add(words, fixed_words[i].word, strlen(fixed_words[i].word), false,
                      fixed_words[i].owner);
    return prefilter_compile(words, NULL) < 0 ? prefilter_free(words) : words;
}

/* The choice takes some 50 ms, so logs that have taught nothing yet share one. */
static struct prefilter *words_for(struct matcher *m, const struct rarity *common)
{
    struct prefilter *words = common ? NULL : matcher_triggers(m);

    if (words)
        return prefilter_ref(words);
    words = choose_words(m, common);
    if (words && !common)
        matcher_keep_triggers(m, words);
    return words;
}

static void refuse_alike(void *ctx, const char *s, size_t len)
{
    alike_refuse(ctx, s, len);
}

struct trigger_set *trigger_set_new(struct matcher *m, const struct rarity *common)
{
    struct trigger_set *t = xnew(struct trigger_set);

    t->plain = alike_new();
    t->words = words_for(m, common);
    if (!t->words)
        return trigger_set_free(t);
    prefilter_each(t->words, refuse_alike, t->plain);
    alike_refuse(t->plain, SHORT_CODE, strlen(SHORT_CODE));
    return t;
}

struct trigger_set *trigger_set_free(struct trigger_set *t)
{
    if (!t)
        return NULL;
    alike_free(t->plain);
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

/* A stretch of whole lines being searched. */
struct search {
    const char *block;
    size_t from, to;
    size_t first; /* trigger that is not of an earlier stretch */
    struct triggers *found;
};

static bool add_trigger(void *ctx, unsigned owner, size_t end)
{
    const struct search *s = ctx;
    struct triggers *t = s->found;
    size_t at = s->from + end - 1;

    if (owner == OWNER_DIRT) {
        t->dirty = true;
        return false;
    }
    if (t->n == TRIGGERS_MAX) {
        t->overflow = true;
        return false;
    }
    if (t->n == 0 || t->at[t->n - 1] < at)
        t->at[t->n++] = (uint32_t)at;
    return true;
}

static void search(struct trigger_set *t, struct search *s)
{
    const char *data = s->block + s->from;
    size_t len = s->to - s->from;

    if (s->found->dirty || s->found->overflow)
        return;
    s->first = s->found->n;
    s->found->dirty = has_codes(data, len);
    if (!s->found->dirty)
        prefilter_scan(t->words, data, len, add_trigger, s);
    s->found->line_ends += str_count(data, len, '\n');
}

static size_t line_end(const char *block, size_t at, size_t to)
{
    const char *lf = memchr(block + at, '\n', to - at);

    return lf ? (size_t)(lf - block) + 1 : to;
}

/* Remembers lines of the stretch that have no trigger and are not like others; returns how many
 * more there may be. */
static unsigned remember(struct trigger_set *t, const struct search *s, unsigned most)
{
    const struct triggers *found = s->found;
    size_t next = s->first, end;
    uint64_t ignored;

    if (found->dirty || found->overflow)
        return 0;
    for (size_t at = s->from; at < s->to && most > 0; at = end) {
        end = line_end(s->block, at, s->to);
        while (next < found->n && found->at[next] < at)
            next++;
        if ((next < found->n && found->at[next] < end) || s->block[end - 1] != '\n' ||
            alike_skip(t->plain, s->block + at, s->to - at, &ignored) > 0)
            continue;
        alike_remember(t->plain, s->block + at, end - at);
        most--;
    }
    return most;
}

/* Searches what is not like lines that are known. */
static void search_unknown(struct trigger_set *t, const char *block, size_t len,
                           struct triggers *ret)
{
    struct search s = {.block = block, .found = ret};
    unsigned most = REMEMBER_MAX;
    size_t skipped = 0;

    for (size_t n = 0; s.to < len; s.from = s.to) {
        while (s.to < len &&
               (n = alike_skip(t->plain, block + s.to, len - s.to, &ret->line_ends)) == 0)
            s.to = line_end(block, s.to, len);
        search(t, &s);
        most = remember(t, &s, most);
        s.to += n;
        skipped += n;
    }
    if (skipped < len / 2)
        t->pause = PAUSE_BLOCKS;
}

void trigger_set_scan(struct trigger_set *t, const char *block, size_t len, struct triggers *ret)
{
    ret->dirty = ret->overflow = false;
    ret->line_ends = 0;
    ret->n = 0;
    if (t->pause == 0) {
        search_unknown(t, block, len, ret);
        return;
    }
    t->pause--;
    search(t, &(struct search){.block = block, .to = len, .found = ret});
}
