/* SPDX-License-Identifier: Apache-2.0 */

/* Lines that are alike, and that searching only one of them overlooks nothing. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "extract/alike.h"
#include "extract/prefilter.h"
#include "extract/trigger.h"

#include <ctype.h>
#include <string.h>

#define ROOM 16 /* behind a line */

/* How many lines of the text, followed by other text, are skipped. */
static uint64_t skipped(struct alike *a, const char *text)
{
    char data[4096];
    size_t len = strlen(text), n;
    uint64_t lines = 0;

    assert_true(len + ROOM <= sizeof(data));
    memcpy(data, text, len);
    memset(data + len, 'x', ROOM);
    n = alike_skip(a, data, len + ROOM, &lines);
    assert_int_equal(str_count(data, n, '\n'), lines);
    assert_true(n == 0 || data[n - 1] == '\n');
    return lines;
}

static bool remember(struct alike *a, const char *line)
{
    return alike_remember(a, line, strlen(line));
}

static void lines_that_differ_in_digits_are_alike(void **state)
{
    struct alike *a = alike_new();

    assert_int_equal(skipped(a, "step 12 loss 2.50\n"), 0);
    assert_true(remember(a, "step 12 loss 2.50\n"));
    assert_int_equal(skipped(a, "step 12 loss 2.50\n"), 1);
    assert_int_equal(skipped(a, "step 99 loss 0.00\nstep 13 loss 2.49\n"), 2);
    assert_int_equal(skipped(a, "step 99 loss 0.00\nstep 13 loss  nan\nstep 13 loss 2.49\n"), 1);
    assert_int_equal(skipped(a, "step 120 loss 2.50\n"), 0);
    assert_int_equal(skipped(a, "step 12 loss 2.50 \n"), 0);
    assert_int_equal(skipped(a, "step 12 loss 2.5\n"), 0);
    alike_free(a);
}

static void every_byte_counts(void **state)
{
    /* Three rounds, and none of a whole number of lanes. */
    static const char line[] =
        "[2026-03-01 10:00:00] iteration     1200/ 5000000 | elapsed time per "
        "iteration (ms): 812.5 | lm loss: 2.104422E+00 | grad norm: 0.143 |\n";
    struct alike *a = alike_new();

    assert_true(remember(a, line));
    for (size_t at = 0; at < sizeof(line) - 1; at++)
        for (int c = 1; c <= UINT8_MAX; c++) {
            bool same = line[at] == (char)c || (isdigit((unsigned char)line[at]) && isdigit(c));
            char other[sizeof(line)];

            memcpy(other, line, sizeof(line));
            other[at] = (char)c;
            if (skipped(a, other) != same)
                fail_msg("byte %d at %zu", c, at);
        }
    alike_free(a);
}

static void lines_that_may_hold_a_word_are_not_remembered(void **state)
{
    struct alike *a = alike_new();

    alike_refuse(a, "[39m", 4);
    alike_refuse(a, "EZ30", 4);
    alike_refuse(a, "plain", 5);
    assert_false(remember(a, "a[12m\n"));
    assert_false(remember(a, "ez99 went away\n"));
    assert_false(remember(a, "EZ300\n"));
    assert_true(remember(a, "a[1m EZ3\n"));
    assert_true(remember(a, "plain\n"));
    alike_free(a);
}

static void long_lines_are_not_remembered(void **state)
{
    char line[ALIKE_BYTES_MAX + 1];
    struct alike *a = alike_new();

    memset(line, 'x', sizeof(line));
    line[ALIKE_BYTES_MAX] = '\n';
    assert_false(alike_remember(a, line, sizeof(line)));
    line[ALIKE_BYTES_MAX - 1] = '\n';
    assert_true(alike_remember(a, line, ALIKE_BYTES_MAX));
    line[ALIKE_BYTES_MAX] = '\0';
    assert_int_equal(skipped(a, line), 1);
    alike_free(a);
}

/* The line number i of many that are not alike. */
static const char *line_number(int i, char line[32])
{
    str_printf(line, 32, "%c%c 0.5\n", 'a' + i % 26, 'a' + i / 26);
    return line;
}

static void the_line_that_was_not_seen_for_longest_is_forgotten(void **state)
{
    struct alike *a = alike_new();
    char line[32];

    for (int i = 0; i < ALIKE_LINES_MAX; i++)
        assert_true(remember(a, line_number(i, line)));
    assert_int_equal(skipped(a, line_number(0, line)), 1);
    assert_true(remember(a, line_number(ALIKE_LINES_MAX, line)));
    for (int i = 0; i <= ALIKE_LINES_MAX; i++)
        assert_int_equal(skipped(a, line_number(i, line)), i != 1);
    alike_free(a);
}

static void there_must_be_room_behind_a_line(void **state)
{
    char *data = xmalloc(200);
    struct alike *a = alike_new();
    uint64_t lines = 0;
    size_t n;

    /* As many bytes as there are: the sanitizer sees any more being read. */
    for (int i = 0; i < 20; i++)
        memcpy(data + 10L * i, "loss 0.25\n", 10);
    assert_true(alike_remember(a, data, 10));
    n = alike_skip(a, data, 200, &lines);
    assert_int_equal(n, 10 * lines);
    assert_in_range(lines, 12, 20);
    free(data);
    alike_free(a);
}

static bool expect_trigger(void *ctx, unsigned owner, size_t end)
{
    struct triggers *t = ctx;

    if (t->n == 0 || t->at[t->n - 1] < end - 1)
        t->at[t->n++] = (uint32_t)(end - 1);
    return t->n < TRIGGERS_MAX;
}

struct block {
    char s[1 << 16];
    size_t len;
    uint32_t random;
};

static uint32_t chance(struct block *b, uint32_t below)
{
    b->random = b->random * 1664525 + 1013904223;
    return (b->random >> 8) % below;
}

/* The line with other digits, several times. */
static void add_lines(struct block *b, const char *line)
{
    size_t n = strlen(line);

    for (uint32_t times = 1 + chance(b, 20); times > 0 && b->len + n < sizeof(b->s); times--) {
        for (size_t i = 0; i < n; i++)
            b->s[b->len++] =
                isdigit((unsigned char)line[i]) ? (char)('0' + chance(b, 10)) : line[i];
        b->s[b->len++] = '\n';
    }
}

/* Every example of the catalogue, many times and with all kinds of digits, among progress: what is
 * found must be what a search of all the text finds. */
static void what_is_skipped_has_no_triggers(void **state)
{
    static const char progress[] = "step: 12/5000 loss: 2.5041 grad_norm: 0.143 lr: 5.85E-05";
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    _cleanup_(matcher_freep) struct matcher *m = NULL;
    _cleanup_(trigger_set_freep) struct trigger_set *t = NULL;
    struct triggers *found = xnew(struct triggers), *want = xnew(struct triggers);
    struct block *b = xnew(struct block);

    assert_int_equal(catalog_load(NULL, 0, &c, NULL), 0);
    assert_int_equal(matcher_new(c, &m, NULL), 0);
    t = trigger_set_new(m, NULL);
    for (size_t i = 0; i < catalog_size(c); i++) {
        const struct entry *e = catalog_entry(c, i);

        b->len = want->n = 0;
        for (unsigned j = 0; b->len < sizeof(b->s) * 3 / 4; j++) {
            add_lines(b, progress);
            if (e->match.n > 0)
                add_lines(b, e->match.v[j % e->match.n]);
        }
        trigger_set_scan(t, b->s, b->len, found);
        if (found->dirty || found->overflow)
            continue;
        prefilter_scan(trigger_set_words(t), b->s, b->len, expect_trigger, want);
        assert_int_equal(found->n, want->n);
        assert_memory_equal(found->at, want->at, found->n * sizeof(found->at[0]));
        assert_int_equal(found->line_ends, str_count(b->s, b->len, '\n'));
    }
    free(b);
    free(want);
    free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_differ_in_digits_are_alike),
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(lines_that_may_hold_a_word_are_not_remembered),
        cmocka_unit_test(long_lines_are_not_remembered),
        cmocka_unit_test(the_line_that_was_not_seen_for_longest_is_forgotten),
        cmocka_unit_test(there_must_be_room_behind_a_line),
        cmocka_unit_test(what_is_skipped_has_no_triggers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
