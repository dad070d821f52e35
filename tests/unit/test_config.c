/* SPDX-License-Identifier: Apache-2.0 */

/* Policies from YAML: what is said, what is left out, what is wrong and where. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "config/policy_file.h"
#include "core/model/event_fields.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static int parse(const char *text, struct policy *ret, struct err *e)
{
    return policy_parse(text, strlen(text), "p.yaml", ret, e);
}

static void check_equal(const struct policy *a, const struct policy *b)
{
    char where[128];

    assert_string_equal(fields_differ(event_body(EVENT_POLICY)->sub, a, b, where, sizeof(where)),
                        "");
}

static void the_shipped_file_is_the_default(void **state)
{
    struct policy p, built_in;
    struct err e = {0};

    if (policy_load(POLICY_YAML, &p, &e) < 0)
        fail_msg("%s", e.text);
    policy_default(&built_in);
    check_equal(&p, &built_in);
}

/* "Every key below": so that the file is also the manual of the keys. */
static void the_shipped_file_names_every_key(void **state)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    _cleanup_(fclosep) FILE *f = fopen(POLICY_YAML, "re");
    struct policy p;
    char block[4096], *shipped;
    size_t n;

    assert_non_null(f);
    while ((n = fread(block, 1, sizeof(block), f)) > 0)
        strbuf_add(&text, block, n);
    shipped = strdup(strbuf_str(&text));
    strbuf_reset(&text);
    policy_default(&p);
    policy_format(&p, &text);
    for (char *save, *line = strtok_r(text.s, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        while (*line == ' ')
            line++;
        line[strcspn(line, "'")] = '\0'; /* the name is quoted here */
        if (!strstr(shipped, line))
            fail_msg("conf/policy.yaml lacks '%s'", line);
    }
    free(shipped);
}

static void what_is_written_is_read_again(void **state)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    struct policy p, again;

    policy_default(&p);
    STR_COPY(p.name, "it's: #odd");
    p.kill_grace = 1500 * USEC_PER_MSEC;
    p.verdict_wait = 0;
    p.hang.enabled = false;
    for (uint32_t c = 1; c < CAUSE_MAX; c++)
        p.cause[c] = (struct cause_policy){c, c, c + 7 * USEC_PER_HOUR, c * USEC_PER_DAY};
    policy_format(&p, &text);
    assert_int_equal(parse(strbuf_str(&text), &again, NULL), 0);
    check_equal(&p, &again);
}

static void what_is_left_out_stays_as_built_in(void **state)
{
    struct policy p, built_in;

    policy_default(&built_in);
    assert_int_equal(parse("kill_grace: 3s\nhang:\n  timeout_min: 30s\ncauses:\n  network:\n"
                           "    retries: 9\n",
                           &p, NULL),
                     0);
    assert_int_equal(p.kill_grace, 3 * USEC_PER_SEC);
    assert_int_equal(p.hang.timeout_min, 30 * USEC_PER_SEC);
    assert_int_equal(p.cause[CAUSE_NETWORK].retries, 9);
    p.kill_grace = built_in.kill_grace;
    p.hang.timeout_min = built_in.hang.timeout_min;
    p.cause[CAUSE_NETWORK].retries = 3;
    check_equal(&p, &built_in);
}

static void a_file_that_says_nothing_is_the_default(void **state)
{
    static const char *const nothing[] = {"", "# nothing\n", "{}\n", "hang: {}\n",
                                          "causes:\n  network: {}\n"};
    struct policy built_in;

    policy_default(&built_in);
    for (size_t i = 0; i < ARRAY_SIZE(nothing); i++) {
        struct policy p = {0};
        struct err e = {0};

        if (parse(nothing[i], &p, &e) < 0)
            fail_msg("'%s': %s", nothing[i], e.text);
        check_equal(&p, &built_in);
    }
}

static void faults_are_named_with_their_line(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"hang:\n  enable: true\n",
         "p.yaml:2: hang: there is no key 'enable'; did you mean 'enabled'? Keys: enabled, "
         "timeout_min, timeout_max, factor, first_step, checkpoint, evaluation, compilation, "
         "shutdown"},
        {"\n\nkill_grace: 5 bananas\n",
         "p.yaml:3: kill_grace: '5 bananas' is no duration: write a number with its unit, as "
         "90s, 5m, 1h 30m"},
        {"kill_grace: 10\n", "p.yaml:1: kill_grace: '10' is no duration: write a number with its "
                             "unit, as 90s, 5m, 1h 30m"},
        {"max_restarts: many\n", "p.yaml:1: max_restarts: 'many' is no whole number"},
        {"max_restarts: -1\n", "p.yaml:1: max_restarts: '-1' is no whole number"},
        {"max_restarts: 5000000000\n", "p.yaml:1: max_restarts: 5000000000 is too large"},
        {"max_restarts: 2000000\n", "p.yaml:1: max_restarts must lie between 0 and 1000000"},
        {"max_restarts_per_day: 257\n",
         "p.yaml:1: max_restarts_per_day must lie between 0 and 256"},
        {"max_without_progress: 0\n",
         "p.yaml:1: max_without_progress must lie between 1 and 1000000"},
        {"max_without_step: 0\n", "p.yaml:1: max_without_step must lie between 1 and 1000000"},
        {"verdict_wait: 400d\n", "p.yaml:1: verdict_wait must lie between 0ms and 365d"},
        {"verdict_wait: 99999999999999d\n",
         "p.yaml:1: verdict_wait: '99999999999999d' is too long"},
        {"hang:\n  enabled: maybe\n", "p.yaml:2: hang.enabled: 'maybe' is neither true nor false"},
        {"hang:\n  first_step: 0s\n", "p.yaml:2: hang.first_step must lie between 1.0s and 365d"},
        {"hang:\n  factor: 0\n", "p.yaml:2: hang.factor must lie between 1 and 1000"},
        {"hang:\n  timeout_max: 2h\n  timeout_min: 3h\n",
         "p.yaml:3: hang.timeout_min must not be above hang.timeout_max"},
        {"causes:\n  gpu-oom: {retries: 1}\n  network: {backoff: 1h}\n",
         "p.yaml:3: causes.network: backoff must not be above backoff_max"},
        {"causes:\n  # network: {retries: x}\n  gpu-oom: {retries: 1}\n  network:\n"
         "    backoff: 5s\n    retries: x\n",
         "p.yaml:6: causes.network.retries: 'x' is no whole number"},
        {"causes:\n  network: {retry: 3}\n",
         "p.yaml:2: causes.network: there is no key 'retry'; did you mean 'retries'? Keys: "
         "retries, backoff, backoff_max, patience"},
        {"causes:\n  none: {retries: 3}\n",
         "p.yaml:2: causes: there is no key 'none'; keys: unknown, gpu-hardware, network, "
         "node-hardware, node-failure, storage, gpu-oom, host-oom, framework, user-code, "
         "user-config, numerical, external-service, time-limit, preemption, cancelled"},
        {"name: 0123456789012345678901234567890123456789012345678901234567890123\n",
         "p.yaml:1: name: longer than 63 bytes"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct policy p = {.max_restarts = 77};
        struct err e = {0};

        assert_int_equal(parse(cases[i].text, &p, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].error);
        assert_int_equal(p.max_restarts, 77);
    }
}

struct doubts {
    unsigned n;
    char text[512];
};

static void collect(void *ctx, const char *text)
{
    struct doubts *d = ctx;

    d->n++;
    STR_COPY(d->text, text);
}

static void values_without_effect_are_named(void **state)
{
    static const struct {
        const char *text, *doubt; /* "" = none */
    } cases[] = {
        {"name: x\n", ""},
        {"hang:\n  first_step: 1m\n",
         "hang.first_step (1min 00s) is below hang.timeout_min (2min 00s), a start may then take "
         "less than a step"},
        {"hang:\n  enabled: false\n  first_step: 1m\n", ""},
        {"hang:\n  checkpoint: 30s\n",
         "hang.checkpoint (30.0s) is below hang.timeout_min (2min 00s), which holds meanwhile too"},
        {"max_restarts: 5\nmax_without_progress: 1\n", ""},
        {"max_restarts: 5\nmax_restarts_per_day: 6\n",
         "max_restarts_per_day (6) is above max_restarts (5), which stops before"},
        {"causes:\n  network:\n    retries: 9\n",
         "causes.network.retries (9) is above max_without_progress (3), which stops before"},
        {"causes:\n  network:\n    retries: 9\n    patience: 1h\n", ""},
        {"same_step_retries: 4\n",
         "same_step_retries (4) is above max_without_progress (3), which stops before"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct doubts d = {0};
        struct policy p;

        assert_int_equal(parse(cases[i].text, &p, NULL), 0);
        policy_doubts(&p, collect, &d);
        assert_string_equal(d.text, cases[i].doubt);
        assert_int_equal(d.n, cases[i].doubt[0] != '\0');
    }
}

/* Whatever is wrong with the form: an error with a line, no crash. */
static void broken_yaml_is_refused(void **state)
{
    static const char *const broken[] = {
        "hang: [1, 2]\n",
        "- a\n- b\n",
        "hang: 3\n",
        "\tname: x\n",
        "name: {a: b}\n",
        "name: 'x\n",
        "a\n",
        "name: [a]\n",
        "causes: {gpu-oom: 3}\n",
        "\x01\x02",
        "name: &a x\nhang: *a\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
        struct policy p;
        struct err e = {0};

        if (parse(broken[i], &p, &e) != -EINVAL)
            fail_msg("'%s' was accepted", broken[i]);
        assert_memory_equal(e.text, "p.yaml:", 7);
        assert_true(strlen(e.text) > strlen("p.yaml:1: "));
    }
}

static void files_that_cannot_be_read_are_named(void **state)
{
    struct policy p;
    struct err e = {0};

    assert_int_equal(policy_load("/nonexistent/p.yaml", &p, &e), -ENOENT);
    assert_string_equal(e.text, "/nonexistent/p.yaml: No such file or directory");
    assert_int_equal(policy_load("/dev/zero", &p, &e), -EINVAL);
    assert_int_equal(policy_load("/", &p, &e), -EISDIR);
}

static void a_policy_is_looked_for(void **state)
{
    char dir[] = "/tmp/reknit-config-XXXXXX", path[512], found[512];

    assert_non_null(mkdtemp(dir));
    setenv("XDG_CONFIG_HOME", dir, 1);
    assert_true(policy_find(found, sizeof(found)) == -ENOENT || strstr(found, "/etc/") == found);
    STR_PRINTF(path, "%s/reknit", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    STR_PRINTF(path, "%s/reknit/policy.yaml", dir);
    fclose(fopen(path, "we"));
    assert_int_equal(policy_find(found, sizeof(found)), 0);
    assert_string_equal(found, path);
    unlink(path);
    STR_PRINTF(path, "%s/reknit", dir);
    rmdir(path);
    rmdir(dir);

    unsetenv("XDG_CONFIG_HOME");
    setenv("HOME", "/nonexistent", 1);
    assert_true(policy_find(found, sizeof(found)) == -ENOENT || strstr(found, "/etc/") == found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shipped_file_is_the_default),
        cmocka_unit_test(the_shipped_file_names_every_key),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(what_is_left_out_stays_as_built_in),
        cmocka_unit_test(a_file_that_says_nothing_is_the_default),
        cmocka_unit_test(faults_are_named_with_their_line),
        cmocka_unit_test(values_without_effect_are_named),
        cmocka_unit_test(broken_yaml_is_refused),
        cmocka_unit_test(files_that_cannot_be_read_are_named),
        cmocka_unit_test(a_policy_is_looked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
