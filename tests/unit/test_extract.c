/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/vec.h"
#include "extract/check.h"
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

static void a_log_gives_signals_with_place_and_facts(void **state)
{
    static const char text[] = "hello\n"
                               "[rank3]: RuntimeError: CUDA error: uncorrectable ECC error\n"
                               "NVRM: Xid (PCI:0000:4D:00): 79, pid=1";
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    _cleanup_(matcher_freep) struct matcher *m = builtin_matcher(&c);
    struct scanner_options o = {.file = 7, .node = "n1", .now_us = USEC_UNKNOWN};
    struct log log = {0};
    struct scanner *s = scanner_new(m, &o, collect, &log);

    for (size_t i = 0; i < sizeof(text) - 1; i++)
        scanner_feed(s, text + i, 1);
    scanner_finish(s);
    assert_int_equal(log.signals.n, 2);
    assert_string_equal(log.signals.v[0].signature, "cuda.ecc");
    assert_int_equal(log.signals.v[0].line, 2);
    assert_int_equal(log.signals.v[0].offset, 6);
    assert_int_equal(log.signals.v[0].who.rank, 3);
    assert_string_equal(log.signals.v[1].signature, "gpu.xid.79");
    assert_string_equal(log.signals.v[1].who.device, "0000:4d:00");
    assert_string_equal(log.signals.v[1].who.node, "n1");
    assert_int_equal(log.signals.v[1].file, 7);
    assert_int_equal(scanner_counters(s)->lines, 3);
    scanner_free(s);
    VEC_DONE(&log.signals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builtin_entries_agree_with_their_examples),
        cmocka_unit_test(a_log_gives_signals_with_place_and_facts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
