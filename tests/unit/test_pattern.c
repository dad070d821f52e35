/* SPDX-License-Identifier: Apache-2.0 */

/* Names of log files: every replacement of Slurm, and which files they stand for. */

#include "base/cleanup.h"
#include "reader/pattern.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct pattern_names plain = {
    .numbers.job = 4242, .numbers.array_task = LOG_NO_TASK, .job_name = "llm", .user_name = "ada"};
static const struct pattern_names task = {.numbers.job = 4250,
                                          .numbers.array_job = 4243,
                                          .numbers.array_task = 17,
                                          .job_name = "llm",
                                          .user_name = "ada"};

static void check(const struct pattern_names *n, const char *pattern, const char *want)
{
    _cleanup_strbuf_ struct strbuf path = {0}, literal = {0};

    assert_int_equal(pattern_expand(pattern, "/work/dir", n, &path), 0);
    assert_false(pattern_is_wild(strbuf_str(&path)));
    pattern_literal(strbuf_str(&path), path.len, &literal);
    assert_string_equal(strbuf_str(&literal), want);
}

static void test_replacements(void **state)
{
    check(&plain, "/logs/%x-%j.out", "/logs/llm-4242.out");
    check(&plain, "%A.out", "/work/dir/4242.out");
    check(&plain, log_pattern_default(&plain.numbers), "/work/dir/slurm-4242.out");
    check(&plain, "%u/%6j", "/work/dir/ada/004242");
    check(&plain, "%2j", "/work/dir/4242");
    check(&plain, "%99j", "/work/dir/0000004242");
    check(&plain, "100%%_%j", "/work/dir/100%_4242");
    check(&plain, "%q%", "/work/dir/%q%");
    check(&plain, "%5", "/work/dir/%5");
    check(&plain, "%5u", "/work/dir/ada");
    check(&plain, "\x01%j",
          "/work/dir/\x01"
          "4242");
    check(&task, "%A_%a.out", "/work/dir/4243_17.out");
    check(&task, log_pattern_default(&task.numbers), "/work/dir/slurm-4243_17.out");
    check(&task, "%A_%4a_%j", "/work/dir/4243_0017_4250");
    check(&task, "%b/%a", "/work/dir/7/17");
}

static void test_backslash_switches_off(void **state)
{
    check(&plain, "\\%j.out", "/work/dir/%j.out");
    check(&plain, "a\\\\b%j", "/work/dir/a\\b%j");
    check(&plain, "%x\\%j\\", "/work/dir/%x%j");
    check(&plain, "/\\as it\\\\is/%j", "/as it\\is/%j");
}

static bool fits(const char *pattern, const struct pattern_names *n, const char *name)
{
    _cleanup_strbuf_ struct strbuf path = {0};

    assert_int_equal(pattern_expand(pattern, "/d", n, &path), 0);
    assert_true(pattern_is_wild(strbuf_str(&path)));
    return pattern_fits(strbuf_str(&path) + 3, path.len - 3, name);
}

static void test_places(void **state)
{
    struct pattern_names anonymous = {.numbers.job = 7, .numbers.array_task = LOG_NO_TASK};

    assert_true(fits("out.%t", &plain, "out.0"));
    assert_true(fits("out.%t", &plain, "out.1023"));
    assert_false(fits("out.%t", &plain, "out."));
    assert_false(fits("out.%t", &plain, "out.1.bak"));
    assert_false(fits("out.%t", &plain, "out.x"));
    assert_true(fits("r%3t.log", &plain, "r007.log"));
    assert_true(fits("r%3t.log", &plain, "r1234.log"));
    assert_false(fits("r%3t.log", &plain, "r07.log"));
    assert_true(fits("%N-%t.log", &plain, "gpu-node-17-3.log"));
    assert_false(fits("%N-%t.log", &plain, "-3.log"));
    assert_true(fits("%N%n", &plain, "n12"));
    assert_true(fits("%j.%s.out", &plain, "4242.0.out"));
    assert_true(fits("%j.%s.out", &plain, "4242.4294967291.out"));
    assert_true(fits("%j.%s.out", &plain, "4242.batch.out"));
    assert_false(fits("%j.%s.out", &plain, "4242.other.out"));
    assert_true(fits("%J.out", &plain, "4242.out"));
    assert_true(fits("%J.out", &plain, "4242.3.out"));
    assert_false(fits("%J.out", &plain, "42421.out"));
    assert_true(fits("%x.out", &anonymous, "any name.out"));
    assert_false(fits("%x.out", &anonymous, ".out"));
}

static void check_host(const char *pattern, const char *file, const char *want)
{
    _cleanup_strbuf_ struct strbuf path = {0};
    char host[64];

    assert_int_equal(pattern_expand(pattern, "/d", &plain, &path), 0);
    pattern_host(strbuf_str(&path), file, host, sizeof(host));
    assert_string_equal(host, want);
}

static void test_hosts(void **state)
{
    check_host("%x/%N.%t.out", "/d/llm/gpu-7.3.out", "gpu-7");
    check_host("logs/%N/%t.out", "/d/logs/n3/0.out", "n3");
    check_host("/d//%N/out", "/d/n3/out", "n3");
    check_host("%j-%N", "/d/4242-a-b", "a-b");
    check_host("%N", "/d/other/n3", "");
    check_host("%N/out", "/d/n3/err", "");
    check_host("%t.out", "/d/3.out", "");
}

static void test_bounds(void **state)
{
    _cleanup_strbuf_ struct strbuf path = {0}, hard = {0};
    struct pattern_names anonymous = {.numbers.array_task = LOG_NO_TASK};
    char name[256], *longer = calloc(1, PATH_MAX + 8);

    assert_int_equal(pattern_expand("", "/d", &plain, &path), -EINVAL);
    assert_int_equal(pattern_expand("a.out", NULL, &plain, &path), -EINVAL);
    assert_int_equal(pattern_expand("a.out", "relative", &plain, &path), -EINVAL);
    memset(longer, 'a', PATH_MAX + 4);
    assert_int_equal(pattern_expand(longer, "/d", &plain, &path), -EINVAL);
    free(longer);

    for (int i = 0; i < 60; i++) /* hopeless, in more ways than can be tried */
        strbuf_adds(&hard, "%x");
    strbuf_adds(&hard, "!");
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(pattern_expand(strbuf_str(&hard), "/d", &anonymous, &path), 0);
    assert_false(pattern_fits(strbuf_str(&path) + 3, path.len - 3, name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replacements), cmocka_unit_test(test_backslash_switches_off),
        cmocka_unit_test(test_places),       cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
