/* SPDX-License-Identifier: Apache-2.0 */

/* vectorscan's literal engine: about 3 GB/s with 500 words, if none is shorter than four bytes.
 * Compiling them takes some 20 ms, and 70 ms for all words of the catalogue; those sets that are
 * known beforehand are compiled when the program is built (prebuilt.h).
 *
 * For few words vectorscan takes another engine (Teddy), which in release 5.4.9, that of Debian 12,
 * overlooks words in the last 31 bytes of a buffer. So a small set is filled up with words that no
 * text contains. tests/unit/test_extract_words.c looks for words at the end of buffers. */

#include "extract/prefilter.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/vec.h"
#include "extract/prebuilt.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <hs/hs.h>
#include <stdint.h>
#include <string.h>

struct word {
    char *s;
    size_t len;
    bool caseless;
    unsigned next; /* word of the same hash, counted from 1; 0 = none */
    VEC(unsigned) owners;
};

#define WORDS_MIN 128
#define HASHES    4096

struct prefilter {
    VEC(struct word) words;
    unsigned by_hash[HASHES]; /* the last such word, likewise */
    hs_database_t *db;
    hs_scratch_t *scratch;
    bool prebuilt;
    unsigned refs; /* beyond the first */
};

struct prefilter *prefilter_new(void)
{
    return xnew(struct prefilter);
}

struct prefilter *prefilter_ref(struct prefilter *p)
{
    p->refs++;
    return p;
}

void prefilter_each(const struct prefilter *p, void (*fn)(void *ctx, const char *s, size_t len),
                    void *ctx)
{
    VEC_FOREACH (&p->words, w)
        fn(ctx, w->s, w->len);
}

struct prefilter *prefilter_free(struct prefilter *p)
{
    if (!p || p->refs-- > 0)
        return NULL;
    hs_free_scratch(p->scratch);
    hs_free_database(p->db);
    VEC_FOREACH (&p->words, w) {
        free(w->s);
        VEC_DONE(&w->owners);
    }
    VEC_DONE(&p->words);
    free(p);
    return NULL;
}

static struct word *find_word(struct prefilter *p, const char *s, size_t len, bool caseless,
                              unsigned first)
{
    for (unsigned i = first; i > 0; i = p->words.v[i - 1].next) {
        struct word *w = &p->words.v[i - 1];

        if (w->len == len && w->caseless == caseless && memcmp(w->s, s, len) == 0)
            return w;
    }
    return NULL;
}

void prefilter_add(struct prefilter *p, const char *s, size_t len, bool caseless, unsigned owner)
{
    unsigned *first = &p->by_hash[hash_bytes(HASH_INIT, s, len) % HASHES];
    struct word *word = find_word(p, s, len, caseless, *first);

    assert(len > 0);
    if (!word) {
        word = VEC_PUSH(&p->words);
        *word = (struct word){xmemdup(s, len), len, caseless, *first};
        *first = (unsigned)p->words.n;
    }
    for (size_t i = 0; i < word->owners.n; i++)
        if (word->owners.v[i] == owner)
            return;
    *VEC_PUSH(&word->owners) = owner;
}

static void fill_up(struct prefilter *p)
{
    uint32_t random = 1;

    for (size_t n = p->words.n; n < WORDS_MIN; n++) {
        struct word *w = VEC_PUSH(&p->words);

        w->len = 8;
        w->s = xmalloc(w->len);
        for (size_t i = 0; i < w->len; i++) {
            random = random * 1664525 + 1013904223;
            w->s[i] = (char)(14 + (random >> 24) % 13); /* control codes other than line ends */
        }
    }
}

static uint64_t hash_words(const struct prefilter *p)
{
    uint64_t h = HASH_INIT;

    VEC_FOREACH (&p->words, w) {
        h = hash_bytes(h, &w->len, sizeof(w->len));
        h = hash_bytes(h, &w->caseless, sizeof(w->caseless));
        h = hash_bytes(h, w->s, w->len);
    }
    return h;
}

/* Whether these words were compiled when the program was built. */
static bool take_prebuilt(struct prefilter *p)
{
    uint64_t words = hash_words(p);

    for (const struct prebuilt *set = prebuilt_sets; set->len > 0; set++)
        if (set->words == words)
            return hs_deserialize_database(set->db, set->len, &p->db) == HS_SUCCESS;
    return false;
}

static int compile_words(struct prefilter *p, struct err *e)
{
    /* No feature of a processor is asked for: the search takes what it finds when it runs. */
    static const hs_platform_info_t any = {.tune = HS_TUNE_FAMILY_GENERIC};
    size_t n = p->words.n;
    _cleanup_(freep) const char **text = xcalloc(n + 1, sizeof(*text));
    _cleanup_(freep) size_t *len = xcalloc(n + 1, sizeof(*len));
    _cleanup_(freep) unsigned *flags = xcalloc(n + 1, sizeof(*flags));
    _cleanup_(freep) unsigned *ids = xcalloc(n + 1, sizeof(*ids));
    hs_compile_error_t *error = NULL;

    assert(!p->db);
    for (size_t i = 0; i < n; i++) {
        text[i] = p->words.v[i].s;
        len[i] = p->words.v[i].len;
        flags[i] = p->words.v[i].caseless ? HS_FLAG_CASELESS : 0;
        ids[i] = (unsigned)i;
    }
    if (hs_compile_lit_multi(text, flags, ids, len, (unsigned)n, HS_MODE_BLOCK, &any, &p->db,
                             &error) != HS_SUCCESS) {
        err_set(e, -EINVAL, "vectorscan: %s", error ? error->message : "cannot compile");
        hs_free_compile_error(error);
        return -EINVAL;
    }
    return 0;
}

int prefilter_compile(struct prefilter *p, struct err *e)
{
    int r = 0;

    if (p->words.n == 0)
        return 0;
    fill_up(p);
    p->prebuilt = take_prebuilt(p);
    if (!p->prebuilt)
        r = compile_words(p, e);
    if (r == 0 && hs_alloc_scratch(p->db, &p->scratch) != HS_SUCCESS)
        r = err_set(e, -ENOMEM, "vectorscan: no memory");
    return r;
}

bool prefilter_is_prebuilt(const struct prefilter *p)
{
    return p->prebuilt;
}

int prefilter_serialize(const struct prefilter *p, uint64_t *ret_words, char **ret, size_t *ret_len)
{
    if (hs_serialize_database(p->db, ret, ret_len) != HS_SUCCESS)
        return -ENOMEM;
    *ret_words = hash_words(p);
    return 0;
}

struct scan {
    const struct prefilter *p;
    prefilter_fn fn;
    void *ctx;
};

static int found_word(unsigned id, unsigned long long from, unsigned long long to, unsigned flags,
                      void *ctx)
{
    const struct scan *scan = ctx;
    const struct word *w = &scan->p->words.v[id];

    (void)from;
    (void)flags;
    for (size_t i = 0; i < w->owners.n; i++)
        if (!scan->fn(scan->ctx, w->owners.v[i], (size_t)to))
            return 1;
    return 0;
}

void prefilter_scan(const struct prefilter *p, const char *data, size_t len, prefilter_fn fn,
                    void *ctx)
{
    struct scan scan = {p, fn, ctx};
    hs_error_t r;

    if (!p->db || len == 0)
        return;
    assert(len <= UINT_MAX);
    r = hs_scan(p->db, data, (unsigned)len, 0, p->scratch, found_word, &scan);
    assert(r == HS_SUCCESS || r == HS_SCAN_TERMINATED); /* else the arguments were wrong */
    (void)r;
}
