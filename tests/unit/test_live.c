/* SPDX-License-Identifier: Apache-2.0 */

/* The same output has the same verdict, however it is read: whole, as a dead log, or live, in reads
 * of any length at any time, with the end of the job seen before or after its last lines. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "core/attribute/attribute.h"
#include "extract/scanner.h"
#include "source/coalesce.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char catalogue[] =
    "signatures:\n"
    "  - {id: t.step, role: progress, patterns: ['^step (?<step>\\d+) loss (?<loss>[0-9.]+)']}\n"
    "  - {id: t.cancelled, layer: scheduler, role: symptom, cause: cancelled, confidence: 60,\n"
    "     patterns: ['CANCELLED AT '], fields: ['CANCELLED AT (?<time>[0-9T:.-]{19,})']}\n"
    "  - {id: t.signal, role: symptom, cause: unknown, confidence: 50,\n"
    "     patterns: ['Segmentation fault']}\n"
    "  - {id: t.exit, role: confirm, patterns: ['task exited with code (?<code>-?\\d+)']}\n"
    "  - {id: t.oom, role: root, cause: gpu-oom, confidence: 90, patterns: ['OutOfMemory']}\n";

#define READINGS 300
#define NOTICE   "JOB 4242 CANCELLED AT once\n" /* without a clock */
#define CANCEL   "slurmstepd: error: *** JOB 4242 ON node17 CANCELLED AT 2024-05-01T10:00:00 ***\n"

struct reading {
    struct coalesce *coalesce;
    struct evidence *evidence;
    usec_t now;
    uint32_t random;
};

static struct matcher *matcher;
static struct catalog *catalog;

static int open_catalogue(void **state)
{
    struct err e = {0};

    (void)state;
    if (catalog_load_text("test.yaml", catalogue, sizeof(catalogue) - 1, &catalog, &e) < 0 ||
        matcher_new(catalog, &matcher, &e) < 0)
        fail_msg("%s", e.text);
    return 0;
}

static int close_catalogue(void **state)
{
    (void)state;
    matcher_free(matcher);
    catalog_free(catalog);
    return 0;
}

static uint32_t below(struct reading *r, uint32_t limit)
{
    r->random = r->random * 1664525 + 1013904223;
    return (r->random >> 8) % limit;
}

static void keep(void *ctx, const struct signal *s)
{
    struct reading *r = ctx;

    evidence_add(r->evidence, s);
}

static void thin_out(void *ctx, const struct signal *s)
{
    struct reading *r = ctx;

    if (s->kind != SIGNAL_HIT || s->role != ROLE_NOISE)
        coalesce_signal(r->coalesce, s, r->now);
}

static void add_end(struct reading *r, const struct exit_fact *end)
{
    struct signal s = signal_make(SIGNAL_EXIT, PROVENANCE_AGENT);

    s.exit = *end;
    evidence_add(r->evidence, &s);
}

static struct incident read_whole(const char *text, const struct exit_fact *end)
{
    static const struct scanner_options o = {.now_us = USEC_UNKNOWN};
    struct reading r = {.evidence = evidence_new()};
    struct scanner *s = scanner_new(matcher, &o, keep, &r);
    struct incident in;

    scanner_feed(s, text, strlen(text));
    scanner_finish(s);
    scanner_free(s);
    add_end(&r, end);
    attribute(r.evidence, ENDING_EXITED, &in);
    evidence_free(r.evidence);
    return in;
}

static struct incident read_live(const char *text, const struct exit_fact *end, uint32_t seed)
{
    static const struct scanner_options o = {.now_us = USEC_UNKNOWN};
    struct reading r = {.evidence = evidence_new(), .random = seed};
    struct scanner *s = scanner_new(matcher, &o, thin_out, &r);
    size_t len = strlen(text), end_at = below(&r, (uint32_t)len + 1);
    uint32_t most = 1 + below(&r, 200), pause = 1 + below(&r, 2 * USEC_PER_SEC);
    struct incident in;

    r.coalesce = coalesce_new(keep, &r);
    for (size_t at = 0, n; at < len; at += n) {
        n = 1 + below(&r, most);
        n = n < len - at ? n : len - at;
        scanner_feed(s, text + at, n);
        if (below(&r, 2) == 0)
            scanner_flush(s);
        coalesce_flush(r.coalesce, r.now, false);
        r.now += below(&r, pause);
        if (at <= end_at && end_at < at + n)
            add_end(&r, end);
    }
    scanner_finish(s);
    coalesce_flush(r.coalesce, r.now, true);
    if (end_at == len)
        add_end(&r, end);
    attribute(r.evidence, ENDING_EXITED, &in);
    coalesce_free(r.coalesce);
    scanner_free(s);
    evidence_free(r.evidence);
    return in;
}

/* A job of some steps, a word, and some more steps, and what it says last. */
static const char *tell(int before, const char *word, int after, const char *last)
{
    static char text[8192];
    size_t n = 0;

    for (int i = 1; i <= before + after; i++) {
        if (i == before + 1)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", word);
        n += (size_t)snprintf(text + n, sizeof(text) - n, "step %d loss 2\n", i);
    }
    snprintf(text + n, sizeof(text) - n, "%s%s", after == 0 ? word : "", last);
    return text;
}

static void check_all_readings(const char *text, struct exit_fact end, enum incident_class class,
                               enum cause cause)
{
    struct incident whole = read_whole(text, &end);

    assert_int_equal(whole.class, class);
    assert_int_equal(whole.cause, cause);
    for (uint32_t seed = 0; seed < READINGS; seed++) {
        struct incident live = read_live(text, &end, seed);

        assert_int_equal(live.class, class);
        assert_int_equal(live.cause, cause);
        assert_int_equal(live.confidence, whole.confidence);
        assert_int_equal(live.progress.last_step, whole.progress.last_step);
        assert_string_equal(live.signature, whole.signature);
        assert_string_equal(live.summary, whole.summary);
        assert_int_equal(live.n_evidence, whole.n_evidence);
    }
}

static void who_dies_of_a_fault_was_not_cancelled(void **state)
{
    const char *text = tell(5, CANCEL, 3, "Segmentation fault\n");

    (void)state;
    check_all_readings(text, (struct exit_fact){.code = -1, .signal = SIGSEGV}, CLASS_CRASH,
                       CAUSE_UNKNOWN);
    check_all_readings(text, (struct exit_fact){.code = 128 + SIGSEGV}, CLASS_CRASH, CAUSE_UNKNOWN);
}

static void who_is_ended_after_the_word_was_cancelled(void **state)
{
    const char *text = tell(5, CANCEL, 3, "cleaning up\n");

    (void)state;
    check_all_readings(text, (struct exit_fact){.code = -1, .signal = SIGTERM}, CLASS_INTERRUPTED,
                       CAUSE_CANCELLED);
    check_all_readings(text, (struct exit_fact){.code = 1}, CLASS_INTERRUPTED, CAUSE_CANCELLED);
}

/* How many steps it survived is counted in steps, and not in those that were handed on. */
static void what_many_steps_followed_is_forgotten(void **state)
{
    (void)state;
    check_all_readings(tell(5, NOTICE, 30, "task exited with code 3\n"),
                       (struct exit_fact){.code = 3}, CLASS_CRASH, CAUSE_UNKNOWN);
    check_all_readings(tell(5, "OutOfMemory\n", 10, "task exited with code 3\n"),
                       (struct exit_fact){.code = 3}, CLASS_CRASH, CAUSE_UNKNOWN);
    check_all_readings(tell(5, "OutOfMemory\n", 2, "task exited with code 3\n"),
                       (struct exit_fact){.code = 3}, CLASS_CRASH, CAUSE_GPU_OOM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_dies_of_a_fault_was_not_cancelled),
        cmocka_unit_test(who_is_ended_after_the_word_was_cancelled),
        cmocka_unit_test(what_many_steps_followed_is_forgotten),
    };

    return cmocka_run_group_tests(tests, open_catalogue, close_catalogue);
}
