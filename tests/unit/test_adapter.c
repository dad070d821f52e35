/* SPDX-License-Identifier: Apache-2.0 */

/* What of an adapter knows no scheduler: requests and answers, preconditions, comments shared with
 * others, differences of lists, hostile text. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "slurm/comment.h"
#include "slurm/diff.h"
#include "slurm/lines.h"
#include "slurm/log_path.h"
#include "slurm/expect.h"
#include "slurm/protocol.h"
#include "slurm/text.h"

#include <stdlib.h>
#include <string.h>

static json_t *parse(const char *text)
{
    json_t *j = json_loads(text, JSON_DECODE_ANY, NULL);

    assert_non_null(j);
    return j;
}

static void test_every_word_is_found_again(void **state)
{
    for (int i = 0; i < FAULT_MAX; i++)
        assert_int_equal(fault_from_name(fault_name((enum fault)i)), i);
    for (int i = 0; i < SLURM_STATE_MAX; i++)
        assert_int_equal(slurm_state_from_name(slurm_state_name((enum slurm_state)i)), i);
    assert_int_equal(fault_from_name("nonsense"), FAULT_INVALID);
    assert_int_equal(slurm_state_from_name("nonsense"), SLURM_STATE_INVALID);
}

static void test_a_request_is_read(void **state)
{
    const char *line = "{\"id\":7,\"op\":\"jobs\",\"diff\":true,\"deadline_ms\":2500,\"new\":1}";
    _cleanup_request_ struct request r = {0};
    bool diff = false, other = true;
    struct err e = {0};

    assert_int_equal(request_parse(line, strlen(line), &r, &e), 0);
    assert_int_equal(r.id, 7);
    assert_string_equal(r.op, "jobs");
    assert_int_equal(r.deadline_ms, 2500);
    assert_int_equal(request_flag(&r, "diff", &diff, &e), 0);
    assert_true(diff);
    assert_int_equal(request_flag(&r, "absent", &other, &e), -ENOENT);
    assert_true(other);
    assert_int_equal(request_flag(&r, "op", &other, &e), -EINVAL);
}

static void test_what_is_no_request_is_refused_with_the_id_it_has(void **state)
{
    static const struct {
        const char *line;
        int64_t id;
    } cases[] = {
        {"", REQUEST_ID_NONE},
        {"nonsense", REQUEST_ID_NONE},
        {"[1]", REQUEST_ID_NONE},
        {"{\"op\":\"jobs\"}", REQUEST_ID_NONE},
        {"{\"id\":\"7\",\"op\":\"jobs\"}", REQUEST_ID_NONE},
        {"{\"id\":-7,\"op\":\"jobs\"}", REQUEST_ID_NONE},
        {"{\"id\":7}", 7},
        {"{\"id\":7,\"op\":{}}", 7},
        {"{\"id\":7,\"op\":\"jobs\",\"deadline_ms\":5}", 7},
        {"{\"id\":7,\"op\":\"jobs\",\"deadline_ms\":\"long\"}", 7},
        {"{\"id\":7,\"op\":\"jobs\",\"id\":8}", REQUEST_ID_NONE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_request_ struct request r = {0};
        struct err e = {0};

        assert_int_equal(request_parse(cases[i].line, strlen(cases[i].line), &r, &e), -EINVAL);
        assert_int_equal(r.id, cases[i].id);
        assert_true(e.text[0] != '\0');
    }
}

static void test_an_answer_is_one_line(void **state)
{
    _cleanup_answer_ struct answer good = {0}, bad = {0};
    _cleanup_strbuf_ struct strbuf out = {0};

    answer_set(&good, "time", json_integer(5));
    strbuf_adds(&good.list, "\"jobs\":[]");
    answer_write(&good, 1, &out);
    answer_fail(&bad, FAULT_CHANGED, 2024, "named \"%s\"", "a\n\xff|");
    bad.now = parse("{\"id\":\"4\"}");
    answer_write(&bad, REQUEST_ID_NONE, &out);
    assert_string_equal(out.s,
                        "{\"id\":1,\"ok\":true,\"time\":5,\"jobs\":[]}\n"
                        "{\"id\":null,\"ok\":false,\"error\":\"changed\",\"text\":\"named "
                        "\\\"a \xef\xbf\xbd|\\\"\",\"errno\":2024,\"now\":{\"id\":\"4\"}}\n");
}

static void test_lines_come_in_pieces(void **state)
{
    _cleanup_lines_ struct lines l = {.max = 5};
    const char *pieces[] = {"ab", "c\nde", "f\n", "123456789", "0\n\ngh", "\n"};
    const char *want[] = {"abc", "def", NULL, "", "gh"};
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        const char *line;
        size_t len;
        int r;

        lines_add(&l, pieces[i], strlen(pieces[i]));
        while ((r = lines_next(&l, &line, &len)) != 0) {
            assert_true(n < ARRAY_SIZE(want));
            assert_int_equal(r, want[n] ? 1 : -E2BIG);
            if (want[n]) {
                assert_int_equal(len, strlen(want[n]));
                assert_memory_equal(line, want[n], len);
            }
            n++;
        }
    }
    assert_int_equal(n, ARRAY_SIZE(want));
}

static int check(const char *expect, bool demand, struct err *e)
{
    const struct job_look look = {
        .restarts = 2,
        .uid = 1000,
        .submit = 1796035193,
        .state = SLURM_STATE_TIMEOUT,
        .held = true,
        .requeue = true,
        .name = "train",
        .dependency = "afterok:7(failed)",
    };
    json_t *j = expect ? parse(expect) : NULL;
    int r = expect_holds(&look, j, demand, e);

    json_decref(j);
    return r;
}

#define DEMANDED "\"restarts\":2,\"submit\":1796035193,\"states\":[\"failed\",\"timeout\"]"

static void test_preconditions(void **state)
{
    static const struct {
        const char *expect;
        int result;
        const char *text;
    } cases[] = {
        {"{" DEMANDED "}", 0, ""},
        {"{" DEMANDED ",\"uid\":1000,\"name\":\"train\",\"held\":true,\"completing\":false,"
         "\"user_cancelled\":false,\"requeue\":true}",
         0, ""},
        {"{\"restarts\":1,\"submit\":1796035193,\"states\":[\"timeout\"]}", -ESTALE,
         "restarts is 2, not 1"},
        {"{\"restarts\":2,\"submit\":1,\"states\":[\"timeout\"]}", -ESTALE,
         "submit is 1796035193, not 1"},
        {"{\"restarts\":2,\"submit\":1796035193,\"states\":[\"failed\"]}", -ESTALE,
         "state is timeout"},
        {"{" DEMANDED ",\"held\":false}", -ESTALE, "held is true"},
        {"{" DEMANDED ",\"requeue\":false}", -ESTALE, "requeue is true"},
        {"{" DEMANDED ",\"name\":\"other\"}", -ESTALE, "name is another"},
        {"{" DEMANDED ",\"dependency\":\"afterok:7(failed)\"}", 0, ""},
        {"{" DEMANDED ",\"dependency\":\"afterok:7\"}", -ESTALE, "dependency is another"},
        {"{" DEMANDED ",\"user_cancelled\":true}", -ESTALE, "user_cancelled is false"},
        /* What is not understood comes before what does not hold. */
        {"{" DEMANDED ",\"held\":false,\"partition\":\"a\"}", -EINVAL,
         "expect.partition is no condition that is known"},
        {"{\"restarts\":1,\"submit\":1796035193,\"states\":[\"timeout\",\"tired\"]}", -EINVAL,
         "expect.states has what is no state"},
        {"{\"restarts\":1,\"submit\":\"x\",\"states\":[\"timeout\"]}", -EINVAL,
         "expect.submit is no integer"},
        {"{" DEMANDED ",\"held\":1}", -EINVAL, "expect.held is neither true nor false"},
        {"{\"restarts\":2,\"submit\":1796035193,\"states\":[]}", -EINVAL,
         "expect.states is no list of states"},
        {"{\"restarts\":2,\"submit\":1796035193}", -EINVAL, "expect.states is missing"},
        {"{}", -EINVAL, "expect.restarts is missing"},
        {"[]", -EINVAL, "expect is no object"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};

        assert_int_equal(check(cases[i].expect, true, &e), cases[i].result);
        assert_string_equal(e.text, cases[i].text);
    }
    assert_int_equal(check(NULL, true, NULL), -EINVAL);
    assert_int_equal(check(NULL, false, NULL), 0);
    assert_int_equal(check("{\"held\":true}", false, NULL), 0);
}

static void test_a_comment_keeps_what_others_wrote(void **state)
{
    static const struct {
        const char *there, *value;
        int result;
        const char *want;
    } cases[] = {
        {NULL, "{\"a\":1}", 0, "{\"reknit\":{\"a\":1}}"},
        {"  ", "{}", 0, "{\"reknit\":{}}"},
        {"{\"APS\":{\"max\":1},\"x\":[2]}", "{\"a\":\"\\\"|\"}", 0,
         "{\"APS\":{\"max\":1},\"x\":[2],\"reknit\":{\"a\":\"\\\"|\"}}"},
        {"{\"reknit\":{\"b\":2},\"x\":1}", "{\"a\":1}", 0, "{\"reknit\":{\"a\":1},\"x\":1}"},
        {"{\"reknit\":{\"b\":2},\"x\":1}", "null", 0, "{\"x\":1}"},
        {"{\"reknit\":{\"b\":2}}", "null", 0, ""},
        /* nothing of ours: it stays, whatever it says */
        {"{\"x\":1}", "null", 0, NULL},
        {"{\"x\":1", "null", 0, NULL},
        {"looked at", "null", 0, NULL},
        {NULL, "null", 0, NULL},
        {"reknit", "{\"a\":1}", -EEXIST, NULL},
        {"[1]", "{\"a\":1}", -EEXIST, NULL},
        {"{\"x\":1,\"x\":2}", "{\"a\":1}", -EEXIST, NULL}, /* one of them would be lost */
        {"{\"x\":1", "{\"a\":1}", -EEXIST, NULL},
        {"{}", "\"text\"", -EINVAL, NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_t *value = parse(cases[i].value);
        struct err e = {0};
        char *merged = NULL;

        assert_int_equal(comment_merge(cases[i].there, value, &merged, &e), cases[i].result);
        if (cases[i].want)
            assert_string_equal(merged, cases[i].want);
        else
            assert_null(merged);
        free(merged);
        json_decref(value);
    }
}

static void test_a_comment_has_a_bound(void **state)
{
    char *long_text = xmalloc(COMMENT_MAX + 1), *merged = NULL;
    json_t *value;

    memset(long_text, 'a', COMMENT_MAX);
    long_text[COMMENT_MAX] = '\0';
    value = json_pack("{s:s}", "a", long_text);
    assert_int_equal(comment_merge("", value, &merged, NULL), -E2BIG);
    assert_null(merged);
    json_decref(value);
    free(long_text);
}

/* A list of records as "id:value id:value". */
static const char *told(struct diff *d, const char *records, struct strbuf *out)
{
    char copy[256], *at = copy;

    STR_COPY(copy, records);
    strbuf_reset(out);
    diff_begin(d, "jobs", out);
    while (*at) {
        char *colon = strchr(at, ':'), *end = strchrnul(at, ' ');
        json_t *record;

        *colon = '\0';
        if (*end)
            *end++ = '\0';
        record = json_pack("{s:s, s:s}", "id", at, "v", colon + 1);
        diff_add(d, at, record, out);
        json_decref(record);
        at = end;
    }
    if (!diff_end(d, out))
        return "";
    return strbuf_str(out);
}

static void test_only_differences_are_told(void **state)
{
    struct diff *d = diff_new();
    _cleanup_strbuf_ struct strbuf out = {0};

    assert_string_equal(
        told(d, "1:a 2:b", &out),
        "\"full\":true,\"jobs\":[{\"id\":\"1\",\"v\":\"a\"},{\"id\":\"2\",\"v\":\"b\"}]");
    assert_string_equal(told(d, "2:b 1:a", &out), "");
    assert_string_equal(told(d, "1:a 2:c 3:d", &out),
                        "\"full\":false,\"jobs\":[{\"id\":\"2\",\"v\":\"c\"},{\"id\":\"3\",\"v\":"
                        "\"d\"}],\"gone\":[]");
    told(d, "3:d", &out);
    assert_true(str_startswith(out.s, "\"full\":false,\"jobs\":[],\"gone\":["));
    assert_true(strstr(out.s, "\"1\"") && strstr(out.s, "\"2\""));
    /* One that comes back is new. */
    assert_string_equal(told(d, "3:d 1:a", &out),
                        "\"full\":false,\"jobs\":[{\"id\":\"1\",\"v\":\"a\"}],\"gone\":[]");
    told(d, "", &out);
    assert_int_equal(str_count(out.s, out.len, '"') / 2 - 3, 2);
    /* None at all is an answer too, and not a full list again. */
    assert_string_equal(told(d, "", &out), "");
    diff_forget(d);
    assert_string_equal(told(d, "3:d", &out),
                        "\"full\":true,\"jobs\":[{\"id\":\"3\",\"v\":\"d\"}]");
    assert_string_equal(told(NULL, "3:d", &out),
                        "\"full\":true,\"jobs\":[{\"id\":\"3\",\"v\":\"d\"}]");
    diff_free(d);
}

static void test_many_records_are_kept_apart(void **state)
{
    struct diff *d = diff_new();
    _cleanup_strbuf_ struct strbuf out = {0};
    char id[16];

    for (int round = 0; round < 3; round++) {
        strbuf_reset(&out);
        diff_begin(d, "jobs", &out);
        /* The second round is the first again, the third lacks every other. */
        for (int i = 0; i < 5000; i += round == 2 ? 2 : 1) {
            json_t *record = json_pack("{s:i}", "v", i);

            STR_PRINTF(id, "%d", i);
            diff_add(d, id, record, &out);
            json_decref(record);
        }
        assert_int_equal(diff_end(d, &out), round != 1);
        assert_int_equal(str_count(out.s, out.len, '{'), round == 0 ? 5000 : 0);
        if (round == 2)
            assert_int_equal(str_count(out.s, out.len, '"') / 2 - 3, 2500);
    }
    diff_free(d);
}

static void assert_text(const char *s, size_t max, const char *want)
{
    json_t *j = text_json(s, max);

    assert_string_equal(json_string_value(j), want);
    json_decref(j);
}

static void test_hostile_text_becomes_json(void **state)
{
    assert_text(NULL, 10, "");
    assert_text("a\"b\\c\n\x01|", 10, "a\"b\\c\n\x01|"); /* JSON has an escape for each */
    assert_text("ab\xff"
                "cd",
                10,
                "ab\xef\xbf\xbd"
                "cd");
    assert_text("abcdef", 3, "abc");
    assert_text("ab\xc3\xa9", 3, "ab"); /* no half letter */
    assert_text("\xed\xa0\x80", 10, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

static void test_log_paths(void **state)
{
    static const struct {
        const char *pattern, *name, *dir, *want;
        bool in_array;
    } cases[] = {
        {NULL, "train", "/home/a", "/home/a/slurm-42.out"},
        {"", "train", "/home/a", "/home/a/slurm-40_7.out", true},
        {"/l/%x-%u-%j.log", "train", "/home/a", "/l/train-alice-42.log"},
        {"%A-%a-%b-%4j-%99j", "train", "/d", "/d/40-7-7-0042-0000000042", true},
        {"%A-%a-%b", "train", "/d", "/d/42-4294967294-4"},
        /* What differs in each step, node or task, and what is no replacement, is left. */
        {"/%N-%n-%t-%s-%J-%3t-%q-%5", "train", "/d", "/%N-%n-%t-%s-%J-%3t-%q-%5"},
        /* A percent sign that is meant stays one, wherever it comes from. */
        {"/%%j-%%%j-%", "train", "/d", "/%%j-%%42-%"},
        {"%x.%t", "100%t", "/d%j", "/d%%j/100%%t.%t"},
        /* A backslash switches everything off, so none may get in. */
        {"/l/\\%x-%j", "train", "/d", "/l/\\%x-%j"},
        {"/l/%x-%j", "a\\b", "/d", "/l/%x-42"},
        {"o-%j", "train", "/d\\e", "o-42"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct log_path_job job = {
            .numbers = {42, 40, cases[i].in_array ? 7 : LOG_NO_TASK},
            .name = cases[i].name,
            .user = "alice",
            .work_dir = cases[i].dir,
        };
        _cleanup_strbuf_ struct strbuf path = {0};

        log_path_add(cases[i].pattern, &job, &path);
        assert_string_equal(path.s, cases[i].want);
    }
}

static void test_words(void **state)
{
    json_t *w = text_words_json(",a,,b\xff,"), *none = text_words_json(NULL);

    assert_int_equal(json_array_size(w), 2);
    assert_string_equal(json_string_value(json_array_get(w, 0)), "a");
    assert_string_equal(json_string_value(json_array_get(w, 1)), "b\xef\xbf\xbd");
    assert_int_equal(json_array_size(none), 0);
    json_decref(w);
    json_decref(none);
}

static void test_gpus_are_counted(void **state)
{
    static const struct {
        const char *text;
        long want;
    } tres[] = {
        {NULL, 0},
        {"cpu=4,mem=1G,node=2,billing=4", 0},
        {"cpu=4,gres/gpu=16,node=2", 16},
        {"gres/gpu=16,gres/gpu:a100=16", 16},
        {"gres/gpu:a100=8,gres/gpu:h100=4", 12},
        {"gres/gpumem=80G,gres/gpuutil=5", 0},
        {"gres/gpu=-5", 0},
    };
    static const struct {
        const char *text;
        long want;
    } gres[] = {
        {NULL, 0},
        {"(null)", 0},
        {"gpu:8", 8},
        {"gpu", 1},
        {"gpu:a100:8(S:0-1)", 8},
        {"gpu:a100:4(S:0,2),nic:2,gpu:h100:2", 6},
        {"gpumem:5,nic:gpu:2", 0},
        {"gpu:a100", 1},
        {"gpu:8(S:0", 8},
    };

    for (size_t i = 0; i < ARRAY_SIZE(tres); i++)
        assert_int_equal(text_tres_gpus(tres[i].text), tres[i].want);
    for (size_t i = 0; i < ARRAY_SIZE(gres); i++)
        assert_int_equal(text_gres_gpus(gres[i].text), gres[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_word_is_found_again),
        cmocka_unit_test(test_a_request_is_read),
        cmocka_unit_test(test_what_is_no_request_is_refused_with_the_id_it_has),
        cmocka_unit_test(test_an_answer_is_one_line),
        cmocka_unit_test(test_lines_come_in_pieces),
        cmocka_unit_test(test_preconditions),
        cmocka_unit_test(test_a_comment_keeps_what_others_wrote),
        cmocka_unit_test(test_a_comment_has_a_bound),
        cmocka_unit_test(test_only_differences_are_told),
        cmocka_unit_test(test_many_records_are_kept_apart),
        cmocka_unit_test(test_hostile_text_becomes_json),
        cmocka_unit_test(test_log_paths),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_gpus_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
