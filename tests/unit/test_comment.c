/* SPDX-License-Identifier: Apache-2.0 */

/* What a job's comment asks for: what is for Reknit, what is for others, what is neither. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "config/comment.h"

#include <string.h>

static void comments_are_read(void **state)
{
    static const struct {
        const char *text;
        bool opts_in;
        enum mode mode;
        const char *policy;
        uint32_t max_restarts;
        const char *notes;
    } cases[] = {
#define NONE MODE_INVALID, "", RESTARTS_NOT_SAID, ""
        /* not for Reknit */
        {NULL, false, NONE},
        {"", false, NONE},
        {"  \t", false, NONE},
        {"llama pretraining, third try", false, NONE},
        {"{", false, NONE},
        {"{\"owner\":\"me\"}", false, NONE},
        {"{\"APS\":null}", false, MODE_INVALID, "", RESTARTS_NOT_SAID,
         "APS: auto_resume_mode is not \"requeue\""},
        /* words */
        {"reknit", true, NONE},
        {" Reknit \n", true, NONE},
        {"project 7; reknit", true, NONE},
        {"reknit:big", true, MODE_INVALID, "big", RESTARTS_NOT_SAID, ""},
        {"a, reknit: big-1.x ,b", true, MODE_INVALID, "big-1.x", RESTARTS_NOT_SAID, ""},
        {"reknit:observe", true, MODE_OBSERVE, "", RESTARTS_NOT_SAID, ""},
        {"reknit:off", false, MODE_OFF, "", RESTARTS_NOT_SAID, ""},
        {"reknit:act", true, MODE_ACT, "", RESTARTS_NOT_SAID, ""},
        /* JSON */
        {"{\"reknit\":true}", true, NONE},
        {"{\"reknit\":{}}", true, NONE},
        {"{\"reknit\":false}", false, MODE_OFF, "", RESTARTS_NOT_SAID, ""},
        {"{\"reknit\":\"big\"}", true, MODE_INVALID, "big", RESTARTS_NOT_SAID, ""},
        {"{\"reknit\":\"observe\"}", true, MODE_OBSERVE, "", RESTARTS_NOT_SAID, ""},
        {"{\"other\":[1,{}],\"reknit\":{\"policy\":\"big\",\"mode\":\"propose\",\"max_restarts\":5}"
         "}",
         true, MODE_PROPOSE, "big", 5, ""},
        {"{\"reknit\":{\"max_restarts\":\"5\"}}", true, MODE_INVALID, "", 5, ""},
        {"{\"reknit\":{\"mode\":\"off\",\"policy\":\"big\"}}", false, MODE_OFF, "big",
         RESTARTS_NOT_SAID, ""},
        /* the other tool's */
        {"{\"APS\": {\"auto_resume_mode\": \"requeue\", \"max_requeue_times\": 1}}", true,
         MODE_INVALID, "", 1, ""},
        {"{\"APS\": {\"auto_resume_mode\": \"requeue\"}, \"reknit\": {\"mode\": \"observe\"}}",
         true, MODE_OBSERVE, "", RESTARTS_NOT_SAID, ""},
        /* meant for Reknit, and not understood */
        {"please reknit it", false, MODE_OBSERVE, "", RESTARTS_NOT_SAID,
         "it mentions Reknit, but not as 'reknit' or 'reknit:POLICY' alone or between commas"},
        {"reknit:", true, MODE_OBSERVE, "", RESTARTS_NOT_SAID, "'' is no name of a policy"},
        {"reknit:a/b", true, MODE_OBSERVE, "", RESTARTS_NOT_SAID, "'a/b' is no name of a policy"},
        {"{reknit}", false, MODE_OBSERVE, "", RESTARTS_NOT_SAID,
         "it begins like JSON and is none: at character 7: string or '}' expected near 'reknit'"},
        {"{\"reknit\":3}", false, MODE_OBSERVE, "", RESTARTS_NOT_SAID,
         "\"reknit\" wants true, false, a policy or {...}"},
        {"{\"tool\":\"reknit\"}", false, MODE_OBSERVE, "", RESTARTS_NOT_SAID,
         "it mentions Reknit, but has no member \"reknit\""},
        {"{\"reknit\":{\"mode\":\"atc\",\"max_restarts\":-1,\"policy\":[],\"x\\u001b[1m\":0}}",
         true, MODE_OBSERVE, "", RESTARTS_NOT_SAID,
         "mode is none of off, observe, propose, act; max_restarts is no number from 0 to 1000000; "
         "policy is no name; 'x\xef\xbf\xbd[1m' means nothing here"},
        {"{\"reknit\":{\"max_restarts\":4.5}}", true, MODE_OBSERVE, "", RESTARTS_NOT_SAID,
         "max_restarts is no number from 0 to 1000000"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct comment c;

        comment_read(cases[i].text, &c);
        if (c.opts_in != cases[i].opts_in || c.mode != cases[i].mode ||
            !streq(c.policy, cases[i].policy) || c.max_restarts != cases[i].max_restarts ||
            !streq(c.notes, cases[i].notes))
            fail_msg("%s: %s, mode %d, policy '%s', %u restarts, '%s'", cases[i].text,
                     c.opts_in ? "in" : "out", c.mode, c.policy, c.max_restarts, c.notes);
    }
}

static void logs_are_listed_within_bounds(void **state)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    struct comment c;

    comment_read("{\"reknit\":{\"logs\":[\"/a/%j.log\",\"rel/%x\",3,\"\"]}}", &c);
    assert_int_equal(c.n_logs, 2);
    assert_string_equal(c.logs[0], "/a/%j.log");
    assert_string_equal(c.logs[1], "rel/%x");
    assert_string_equal(c.notes, "logs: one is no path of 1 to 511 bytes; "
                                 "logs: one is no path of 1 to 511 bytes");
    comment_read("{\"reknit\":{\"logs\":\"/a\"}}", &c);
    assert_int_equal(c.n_logs, 1);
    comment_read("{\"reknit\":{\"logs\":{}}}", &c);
    assert_int_equal(c.n_logs, 0);
    assert_string_equal(c.notes, "logs is no list of paths");

    strbuf_adds(&b, "{\"reknit\":{\"logs\":[\"/0\"");
    for (int i = 1; i < 1000; i++)
        strbuf_addf(&b, ",\"/%d\"", i);
    strbuf_adds(&b, "]}}");
    comment_read(strbuf_str(&b), &c);
    assert_int_equal(c.n_logs, COMMENT_LOGS_MAX);
    assert_string_equal(c.notes, "logs: only the first 8 are read");
}

static void what_is_too_long_is_not_read(void **state)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    struct comment c;

    strbuf_adds(&b, "reknit,");
    while (b.len < COMMENT_MAX)
        strbuf_addc(&b, 'x');
    comment_read(strbuf_str(&b), &c);
    assert_true(c.opts_in);
    strbuf_addc(&b, 'x');
    comment_read(strbuf_str(&b), &c);
    assert_false(c.opts_in);
    assert_int_equal(c.mode, MODE_OBSERVE);
    assert_string_equal(c.notes, "longer than 64 KiB, it is not read");
}

/* A parser that calls itself for each bracket must not run out of stack. */
static void deep_nesting_is_refused(void **state)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    struct comment c;

    strbuf_adds(&b, "{\"reknit\":");
    while (b.len < COMMENT_MAX)
        strbuf_addc(&b, '[');
    comment_read(strbuf_str(&b), &c);
    assert_false(c.opts_in);
    assert_non_null(strstr(c.notes, "depth"));
}

static void notes_are_bounded_and_printable(void **state)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    struct comment c;

    strbuf_adds(&b, "{\"reknit\":{\"\xe2\x80\xaek\":0");
    for (int i = 0; i < 200; i++)
        strbuf_addf(&b, ",\"key%d\\n\":0", i);
    strbuf_adds(&b, "}}");
    comment_read(strbuf_str(&b), &c);
    assert_true(c.opts_in);
    assert_true(strlen(c.notes) < sizeof(c.notes));
    assert_null(strchr(c.notes, '\n'));
    assert_null(strstr(c.notes, "\xe2\x80\xae"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments_are_read),
        cmocka_unit_test(logs_are_listed_within_bounds),
        cmocka_unit_test(what_is_too_long_is_not_read),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(notes_are_bounded_and_printable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
