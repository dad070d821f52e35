/* SPDX-License-Identifier: Apache-2.0 */

/* The words that stand for patterns: which they are, and that they are found wherever they stand.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/vec.h"
#include "extract/cover.h"
#include "extract/literals.h"
#include "extract/matcher.h"
#include "extract/pattern.h"
#include "extract/prebuilt.h"
#include "extract/prefilter.h"
#include "extract/trigger.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static unsigned score_by_length(void *ctx, const char *s, size_t len)
{
    return (unsigned)len;
}

static void assert_literals(const char *pattern, const char *want)
{
    struct literal_set *set = xnew(struct literal_set);
    struct strbuf got = {0};

    if (literals_required(pattern, score_by_length, NULL, set))
        for (unsigned i = 0; i < set->n; i++)
            strbuf_addf(&got, "%s%.*s", i ? "|" : "", set->v[i].len, set->v[i].s);
    if (set->caseless)
        strbuf_adds(&got, " (caseless)");
    if (!streq(strbuf_str(&got), want))
        fail_msg("'%s' gives '%s', not '%s'", pattern, strbuf_str(&got), want);
    strbuf_done(&got);
    free(set);
}

static void a_pattern_has_words_it_cannot_do_without(void **state)
{
    assert_literals("CUDA out of memory", "CUDA out of memory");
    assert_literals("Xid \\(PCI:(?<device>[0-9a-f:.]+)\\): (?<xid>\\d+)", "Xid (PCI:");
    assert_literals("[Uu]ncorrectable", "Uncorrectable|uncorrectable");
    assert_literals("(?:torch|cuda)\\.OutOfMemory", "torch.OutOfMemory|cuda.OutOfMemory");
    assert_literals("Value(?:s)?Error", "ValuesError|ValueError");
    assert_literals("ab+cde", "bcde");
    assert_literals("iteration +(?<step>\\d+)", "iteration ");
    assert_literals("a.*bcd|xyz", "bcd|xyz");
    assert_literals("^\\s*Killed\\s*$", "Killed");
    assert_literals("(?i)segfault", "segfault (caseless)");
    assert_literals("foo(?=barbaz)quux", "fooquux");
    assert_literals("tasks?: (?:one|two)", "tasks: one|tasks: two|task: one|task: two");
    assert_literals("x{3}abcd", "xabcd");
    assert_literals("x{0,2}abcd", "abcd");
    assert_literals("\\x41BCD\\t", "ABCD\t");
    assert_literals("(?<rank>\\d+) failed(?: hard)?", " failed hard| failed");
    /* Nothing that every match contains. */
    assert_literals("\\d+", "");
    assert_literals("ab", "");
    assert_literals("abcdef|\\d+", "");
    assert_literals("(?:abcdef)*", "");
    assert_literals("[^a]bc", "");
    assert_literals("\\Qabcdef\\E", "");
}

/* A line that a pattern matches contains one of its words: on all examples of the catalogue. */
static void every_example_contains_a_word_of_its_pattern(void **state)
{
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    struct pattern_space *space = pattern_space_new();
    struct literal_set *set = xnew(struct literal_set);
    unsigned tried = 0;

    assert_int_equal(catalog_load(NULL, 0, &c, NULL), 0);
    for (size_t i = 0; i < catalog_size(c); i++) {
        const struct entry *e = catalog_entry(c, i);

        for (unsigned j = 0; j < e->patterns.n; j++) {
            struct pattern *p = NULL;

            assert_int_equal(pattern_new(e->patterns.v[j], &p, NULL), 0);
            for (unsigned k = 0; k < e->match.n; k++) {
                const char *line = e->match.v[k];
                bool contained = false;
                size_t start, end;

                if (!literals_required(e->patterns.v[j], score_by_length, NULL, set) ||
                    !pattern_match(p, space, line, strlen(line), 0, true, &start, &end))
                    continue;
                for (unsigned l = 0; l < set->n; l++) {
                    char word[LITERAL_BYTES_MAX + 1];

                    str_copy_n(word, sizeof(word), set->v[l].s, set->v[l].len);
                    contained |=
                        set->caseless ? strcasestr(line, word) != NULL : strstr(line, word) != NULL;
                }
                if (!contained)
                    fail_msg("%s: '%s' is not in '%s'", e->id, e->patterns.v[j], line);
                tried++;
            }
            pattern_free(p);
        }
    }
    assert_true(tried > 300);
    free(set);
    pattern_space_free(space);
}

struct found {
    unsigned owner, n;
    size_t end;
};

static bool count_word(void *ctx, unsigned owner, size_t end)
{
    struct found *f = ctx;

    f->n += owner == f->owner && end == f->end;
    return true;
}

/* vectorscan 5.4.9 overlooks words near the end of a buffer when there are few of them. */
static void words_are_found_at_every_place(void **state)
{
    static const char *const words[] = {"able ECC", "step", "ValueErr", "abc", "Xid (PCI", "nccl"};
    char buf[300];

    for (unsigned n = 1; n <= ARRAY_SIZE(words); n++) {
        _cleanup_(prefilter_freep) struct prefilter *p = prefilter_new();

        for (unsigned i = 0; i < n; i++)
            prefilter_add(p, words[i], strlen(words[i]), false, i);
        assert_int_equal(prefilter_compile(p, NULL), 0);
        for (unsigned i = 0; i < n; i++)
            for (size_t len = strlen(words[i]); len < sizeof(buf); len++)
                for (size_t at = 0; at + strlen(words[i]) <= len; at += 1 + len / 100) {
                    struct found f = {.owner = i, .end = at + strlen(words[i])};

                    memset(buf, '.', len);
                    memcpy(buf + at, words[i], strlen(words[i]));
                    prefilter_scan(p, buf, len, count_word, &f);
                    assert_int_equal(f.n, 1);
                }
    }
}

static void words_of_either_case_are_found(void **state)
{
    _cleanup_(prefilter_freep) struct prefilter *p = prefilter_new();
    struct found f = {.owner = 4, .end = 9};

    prefilter_add(p, "segfault", 8, true, 4);
    prefilter_add(p, "segfault", 8, true, 4);
    prefilter_add(p, "SEGFAULT", 8, false, 5);
    assert_int_equal(prefilter_compile(p, NULL), 0);
    prefilter_scan(p, " SegFault", 9, count_word, &f);
    assert_int_equal(f.n, 1);
    f.owner = 5;
    prefilter_scan(p, " SegFault", 9, count_word, &f);
    assert_int_equal(f.n, 1);
}

/* What would be looked at in a large log: every example of an entry that is more than ordinary. */
static void every_failure_of_the_catalogue_triggers(void **state)
{
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    _cleanup_(matcher_freep) struct matcher *m = NULL;
    _cleanup_(trigger_set_freep) struct trigger_set *t = NULL;
    struct triggers *found = xnew(struct triggers);
    unsigned silent = 0, all = 0;

    assert_int_equal(catalog_load(NULL, 0, &c, NULL), 0);
    assert_int_equal(matcher_new(c, &m, NULL), 0);
    t = trigger_set_new(m, NULL);
    assert_non_null(t);
    for (size_t i = 0; i < catalog_size(c); i++) {
        const struct entry *e = catalog_entry(c, i);

        if (e->role != ROLE_ROOT && e->role != ROLE_SYMPTOM && e->role != ROLE_CASCADE)
            continue;
        for (unsigned j = 0; j < e->match.n; j++) {
            trigger_set_scan(t, e->match.v[j], strlen(e->match.v[j]), found);
            all++;
            if (found->n > 0)
                continue;
            print_message("silent in large logs: %s: %s\n", e->id, e->match.v[j]);
            silent++;
        }
    }
    /* What has only words of progress lines: a loss that is not a number. */
    assert_true(silent * 100 <= all * 2);
    free(found);
}

/* One short word makes the search for all others slower: use a longer one in the pattern. */
static void no_word_of_the_catalogue_is_short(void **state)
{
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    _cleanup_(matcher_freep) struct matcher *m = NULL;
    const struct cover_literal *literals;
    size_t n;

    assert_int_equal(catalog_load(NULL, 0, &c, NULL), 0);
    assert_int_equal(matcher_new(c, &m, NULL), 0);
    literals = matcher_literals(m, &n);
    assert_true(n > 1000);
    for (size_t i = 0; i < n; i++)
        if (literals[i].text.len < LITERAL_BYTES_OK)
            fail_msg("'%.*s' is short", literals[i].text.len, literals[i].text.s);
}

static void codes_make_a_block_dirty_wherever_they_stand(void **state)
{
    static const struct {
        const char *s;
        size_t len;
    } codes[] = {{"\0", 1}, {"\033", 1}, {"[0m", 3}, {"[39m", 4}, {"#033", 4}};
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    _cleanup_(matcher_freep) struct matcher *m = NULL;
    _cleanup_(trigger_set_freep) struct trigger_set *t = NULL;
    struct triggers *found = xnew(struct triggers);
    char block[128];

    assert_int_equal(catalog_load(NULL, 0, &c, NULL), 0);
    assert_int_equal(matcher_new(c, &m, NULL), 0);
    t = trigger_set_new(m, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        for (size_t at = 0; at + codes[i].len <= sizeof(block); at++) {
            memset(block, '[', sizeof(block));
            trigger_set_scan(t, block, sizeof(block), found);
            assert_false(found->dirty);
            memcpy(block + at, codes[i].s, codes[i].len);
            trigger_set_scan(t, block, sizeof(block), found);
            assert_true(found->dirty);
        }
    free(found);
}

struct covered {
    const struct cover_literal *literals;
    size_t n;
    bool *has_word;
};

static void mark_literals(void *ctx, const char *word, size_t len, bool caseless)
{
    struct covered *c = ctx;

    for (size_t i = 0; i < c->n; i++) {
        const struct cover_literal *l = &c->literals[i];

        for (size_t at = 0; l->caseless == caseless && at + len <= l->text.len; at++)
            c->has_word[i] |= caseless ? strncasecmp(l->text.s + at, word, len) == 0
                                       : memcmp(l->text.s + at, word, len) == 0;
    }
}

/* What no common text is known of is found by a word in it, whatever it is. */
static void every_literal_is_covered(void **state)
{
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    _cleanup_(matcher_freep) struct matcher *m = NULL;
    _cleanup_(freep) struct rarity *nothing = xnew(struct rarity), *ordinary = xnew(struct rarity);
    struct covered covered = {0};

    assert_int_equal(catalog_load(NULL, 0, &c, NULL), 0);
    assert_int_equal(matcher_new(c, &m, NULL), 0);
    covered.literals = matcher_literals(m, &covered.n);
    covered.has_word = xcalloc(covered.n, sizeof(*covered.has_word));
    cover_literals(covered.literals, covered.n, nothing, ordinary, mark_literals, &covered);
    for (size_t i = 0; i < covered.n; i++)
        if (!covered.has_word[i])
            fail_msg("'%.*s' has no word", covered.literals[i].text.len,
                     covered.literals[i].text.s);
    free(covered.has_word);
}

/* Else every start of the program would pay for compiling them. */
static void the_words_of_the_catalogue_are_prebuilt(void **state)
{
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    _cleanup_(matcher_freep) struct matcher *m = NULL;
    _cleanup_(trigger_set_freep) struct trigger_set *t = NULL;
    _cleanup_(catalog_freep) struct catalog *of_kernel = NULL;
    _cleanup_(matcher_freep) struct matcher *agents = NULL;
    const struct prefilter *sets[3];

    assert_int_equal(catalog_load(NULL, 0, &c, NULL), 0);
    assert_int_equal(matcher_new(c, &m, NULL), 0);
    assert_int_equal(catalog_load(NULL, 0, &of_kernel, NULL), 0);
    catalog_keep(of_kernel, LAYER_KERNEL);
    assert_int_equal(matcher_new(of_kernel, &agents, NULL), 0);
    t = trigger_set_new(m, NULL);
    sets[0] = matcher_words(m);
    sets[1] = trigger_set_words(t);
    sets[2] = matcher_words(agents);
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
        assert_true(prefilter_is_prebuilt(sets[i]));
    assert_int_equal(prebuilt_sets[ARRAY_SIZE(sets)].len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_has_words_it_cannot_do_without),
        cmocka_unit_test(every_example_contains_a_word_of_its_pattern),
        cmocka_unit_test(words_are_found_at_every_place),
        cmocka_unit_test(words_of_either_case_are_found),
        cmocka_unit_test(every_failure_of_the_catalogue_triggers),
        cmocka_unit_test(no_word_of_the_catalogue_is_short),
        cmocka_unit_test(codes_make_a_block_dirty_wherever_they_stand),
        cmocka_unit_test(every_literal_is_covered),
        cmocka_unit_test(the_words_of_the_catalogue_are_prebuilt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
