/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/vec.h"
#include "extract/check.h"
#include "extract/facts.h"
#include "extract/scanner.h"

#include <string.h>

struct log {
    VEC(struct signal) signals;
};

static void collect(void *ctx, const struct signal *s)
{
    struct log *l = ctx;

    *VEC_PUSH(&l->signals) = *s;
}

static struct matcher *builtin_matcher(struct catalog **ret_catalog)
{
    struct matcher *m = NULL;
    struct err e = {0};

    if (catalog_load(NULL, 0, ret_catalog, &e) < 0 || matcher_new(*ret_catalog, &m, &e) < 0)
        fail_msg("%s", e.text);
    return m;
}

static void complain(void *ctx, const struct entry *e, const char *complaint)
{
    print_error("%s:%u: %s: %s\n", e->file, e->line, e->id, complaint);
}

static void builtin_entries_agree_with_their_examples(void **state)
{
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    _cleanup_(matcher_freep) struct matcher *m = builtin_matcher(&c);

    assert_true(catalog_size(c) > 0);
    assert_int_equal(catalog_check(m, complain, NULL), 0);
}

struct complaints {
    size_t n;
    char first[1024];
};

static void note(void *ctx, const struct entry *e, const char *complaint)
{
    struct complaints *c = ctx;

    if (c->n++ == 0)
        snprintf(c->first, sizeof(c->first), "%s:%u: %s: %s", e->file, e->line, e->id, complaint);
}

#define ENTRY(id, more)                                                                            \
    "  - {id: " id ", role: root, cause: user-code, patterns: ['some words'], " more               \
    "examples: {match: ['some words']}}\n"

static void faults_are_found(void **state)
{
    static const struct {
        const char *entries, *complaint;
    } cases[] = {
        {ENTRY("a.x", ""), NULL},
        {ENTRY("a.x", "yields_to: [a.nobody], "), "t.yaml:2: a.x: yields_to names 'a.nobody'"},
        {ENTRY("a.x", "yields_to: ['nobody.*'], "), "yields_to names 'nobody.*'"},
        {ENTRY("a.x", "yields_to: ['*', gpu.xid.9], "), "yields_to names 'gpu.xid.9'"},
        {"  - {id: a.n, role: noise, hides: [a.nobody], patterns: ['some words'], "
         "examples: {match: ['some words']}}\n",
         "hides names 'a.nobody'"},
        {"  - {id: a.n, role: noise, clears: 'b.*', patterns: ['some words'], "
         "examples: {match: ['some words']}}\n",
         "clears names 'b.*'"},
        {ENTRY("a.x", "yields_to: [a.x], "), "leads back to itself"},
        {ENTRY("a.x", "yields_to: [a.y], ") ENTRY("a.y", "yields_to: [a.z], ")
             ENTRY("a.z", "yields_to: [a.x], "),
         "t.yaml:2: a.x: yields_to leads back"},
        {ENTRY("a.x", "fields: ['x(?=y)'], "), "'x(?=y)' has lookaround"},
        {ENTRY("a.x", "fields: ['(?<!z)x'], "), "has lookaround"},
        {ENTRY("a.x", "fields: ['(?>x)'], "), "an atomic group"},
        {"  - {id: a.x, layer: kernel, role: root, cause: storage, isolation: drain, "
         "patterns: [filesystem on fire now], examples: {match: "
         "[python says in a file that filesystem on fire now]}}\n",
         "may be anybody's words"},
        {ENTRY("a.x", "fields: ['(x)\\1'], "), "a back reference"},
        {ENTRY("a.x", "fields: ['x++'], "), "a possessive quantifier"},
        {ENTRY("a.x", "fields: ['[(?=\\]\\1++][[:alpha:]]\\(?=(?<node>x+)(?i:y)'], "), NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_(catalog_freep) struct catalog *c = NULL;
        _cleanup_(matcher_freep) struct matcher *m = NULL;
        struct complaints found = {0};
        struct err e = {0};
        char text[2048];

        snprintf(text, sizeof(text), "signatures:\n%s", cases[i].entries);
        if (catalog_load_text("t.yaml", text, strlen(text), &c, &e) < 0 ||
            matcher_new(c, &m, &e) < 0)
            fail_msg("%s: %s", text, e.text);
        catalog_check(m, note, &found);
        if (cases[i].complaint ? !strstr(found.first, cases[i].complaint) : found.n > 0)
            fail_msg("%s: %s", text, found.first);
    }
}

static void an_xid_is_told_once(void **state)
{
    static const char text[] = "xids:\n"
                               "  - {code: 79, role: root, cause: gpu-hardware}\n"
                               "  - {code: 79, role: symptom, cause: user-code}\n";
    struct catalog *c = NULL;
    struct err e = {0};

    (void)state;
    assert_int_equal(catalog_load_text("t.yaml", text, sizeof(text) - 1, &c, &e), -EINVAL);
    assert_non_null(strstr(e.text, "t.yaml"));
    assert_non_null(strstr(e.text, "xid 79: the code is used already"));
}

static enum isolation isolation_of(struct matcher *m, const char *line, int32_t *ret_code)
{
    struct line_hit hits[LINE_HITS_MAX];
    size_t n = matcher_line(m, line, strlen(line), hits);

    for (size_t i = 0; i < n; i++)
        if (hit_silence(&hits[i], false) == SILENCE_NONE)
            return facts_isolation(matcher_catalog(m), &hits[i], ret_code);
    fail_msg("nobody speaks on '%s'", line);
    return ISOLATION_INVALID;
}

#define XID(rest) "NVRM: Xid (PCI:0000:9b:00): " rest

/* What lines of the kernel ask for about their node. */
static void a_line_asks_for_isolation(void **state)
{
    static const struct {
        const char *line;
        int32_t code;
        enum isolation isolation;
    } lines[] = {
        {XID("79, pid=7, name=a, GPU has fallen off the bus."), 79, ISOLATION_REBOOT},
        {XID("48, pid=7, name=a, channel 0x5"), 48, ISOLATION_RESET},
        {XID("63, pid=7, name=a, Row Remapper: New row marked for remapping"), 63, ISOLATION_NONE},
        {XID("94, pid=7, name=a, Contained"), 94, ISOLATION_EXCLUDE},
        {XID("95, pid=7, name=a, Uncontained"), 95, ISOLATION_RESET},
        {XID("31, pid=7, name=a, MMU Fault"), 31, ISOLATION_REPEATED},
        {XID("13, pid=7, name=a, Graphics Exception"), 13, ISOLATION_REPEATED},
        {XID("45, pid=7, name=a, Ch 00000010"), 45, ISOLATION_NONE},
        {XID("119, pid=7, name=a, Timeout after 6s"), 119, ISOLATION_RESET},
        {XID("121, C2C Link corrected error"), 121, ISOLATION_NONE},
        {XID("999, of tomorrow"), 999, ISOLATION_NONE},
        {XID("37, pid=7, name=a, of firmware"), 37, ISOLATION_INVALID},
        {"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30", 20034,
         ISOLATION_REBOOT},
        {"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal", 12028, ISOLATION_NONE},
        {"EXT4-fs (nvme0n1p2): Remounting filesystem read-only", 0, ISOLATION_DRAIN},
        {"EXT4-fs (loop3): Remounting filesystem read-only", 0, ISOLATION_NONE},
        {"nfs: server 10.1.1.5 not responding, still trying", 0, ISOLATION_NONE},
        {"RuntimeError: CUDA error: uncorrectable ECC error", 0, ISOLATION_INVALID},
    };
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    _cleanup_(matcher_freep) struct matcher *m = builtin_matcher(&c);
    int32_t code;

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (isolation_of(m, lines[i].line, &code) != lines[i].isolation || code != lines[i].code)
            fail_msg("%s", lines[i].line);
    }
}

static void a_log_gives_signals_with_place_and_facts(void **state)
{
    static const char text[] = "hello\n"
                               "[rank3]: RuntimeError: CUDA error: uncorrectable ECC error\n"
                               "NVRM: Xid (PCI:0000:4D:00): 79, pid=1";
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    _cleanup_(matcher_freep) struct matcher *m = builtin_matcher(&c);
    struct entity n1 = {.rank = RANK_NONE, .local_rank = RANK_NONE, .node = "n1"};
    struct scanner_options o = {.file = 7, .who = &n1, .now_us = USEC_UNKNOWN};
    struct log log = {0};
    struct scanner *s = scanner_new(m, &o, collect, &log);

    for (size_t i = 0; i < sizeof(text) - 1; i++)
        scanner_feed(s, text + i, 1);
    scanner_finish(s);
    assert_int_equal(log.signals.n, 3);
    assert_int_equal(log.signals.v[0].kind, SIGNAL_OUTPUT); /* a node shows itself */
    assert_string_equal(log.signals.v[0].who.node, "n1");
    assert_string_equal(log.signals.v[1].signature, "cuda.ecc");
    assert_int_equal(log.signals.v[1].line, 2);
    assert_int_equal(log.signals.v[1].offset, 6);
    assert_int_equal(log.signals.v[1].who.rank, 3);
    assert_string_equal(log.signals.v[2].signature, "gpu.xid.79");
    assert_string_equal(log.signals.v[2].who.device, "0000:4d:00");
    assert_string_equal(log.signals.v[2].who.node, "n1");
    assert_int_equal(log.signals.v[2].file, 7);
    assert_int_equal(scanner_counters(s)->lines, 3);
    scanner_free(s);
    VEC_DONE(&log.signals);
}

static void a_driver_names_its_device(void **state)
{
    static const char text[] =
        "[Sat Jun 21 05:28:19 2025] mlx5_core 0000:9a:00.0: device's health compromised\n"
        "[Sat Jun 21 05:28:20 2025] mlx5_core cc:00.0: device's health compromised\n";
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    _cleanup_(matcher_freep) struct matcher *m = builtin_matcher(&c);
    struct scanner_options o = {.now_us = USEC_UNKNOWN};
    struct log log = {0};
    struct scanner *s = scanner_new(m, &o, collect, &log);

    (void)state;
    scanner_feed(s, text, sizeof(text) - 1);
    scanner_finish(s);
    assert_int_equal(log.signals.n, 2);
    assert_string_equal(log.signals.v[0].who.device, "0000:9a:00");
    assert_string_equal(log.signals.v[1].who.device, "");
    scanner_free(s);
    VEC_DONE(&log.signals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builtin_entries_agree_with_their_examples),
        cmocka_unit_test(faults_are_found),
        cmocka_unit_test(an_xid_is_told_once),
        cmocka_unit_test(a_line_asks_for_isolation),
        cmocka_unit_test(a_log_gives_signals_with_place_and_facts),
        cmocka_unit_test(a_driver_names_its_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
