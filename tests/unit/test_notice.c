/* SPDX-License-Identifier: Apache-2.0 */

/* What the webhook says. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "action/notice.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static struct notice make(uint64_t seq, enum action action, enum mode mode)
{
    struct notice n = {.seq = seq,
                       .at = (usec_t)seq * USEC_PER_SEC,
                       .attempt = 2,
                       .class = CLASS_CRASH,
                       .cause = CAUSE_NETWORK,
                       .action = action,
                       .mode = mode};

    STR_PRINTF(n.label, "%d_7", (int)seq);
    STR_COPY(n.name, "train");
    STR_COPY(n.user, "alice");
    STR_COPY(n.partition, "gpu");
    STR_COPY(n.rule, "retry");
    STR_COPY(n.why, "1 of 3");
    STR_COPY(n.summary, "a link went down");
    return n;
}

static char *text_of(const struct notice *n, size_t count, uint64_t more)
{
    json_t *j = notice_message("alpha", n, count, more);
    const char *text;
    size_t i;
    json_t *block;
    char *copy;

    assert_non_null(j);
    text = json_string_value(json_object_get(j, "text"));
    assert_non_null(text);
    copy = strdup(text);
    json_array_foreach (json_object_get(j, "blocks"), i, block) {
        const json_t *t = json_object_get(block, "text");

        assert_string_equal(json_string_value(json_object_get(t, "type")), "plain_text");
        assert_true(json_string_length(json_object_get(t, "text")) <= (i == 0 ? 150 : 3000));
    }
    json_decref(j);
    return copy;
}

static void assert_says(const struct notice *n, size_t count, uint64_t more, const char *what)
{
    char *text = text_of(n, count, more);

    if (!strstr(text, what))
        fail_msg("'%s' is not in '%s'", what, text);
    free(text);
}

static void test_one(void **state)
{
    struct notice n = make(17, ACTION_RESTART_EXCLUDING, MODE_ACT);

    n.n_nodes = 2;
    STR_COPY(n.nodes[0], "n7");
    STR_COPY(n.nodes[1], "n9");
    assert_says(&n, 1, 0, "alpha - job 17_7 is restarted without n7, n9\n");
    assert_says(&n, 1, 0, "train, alice, gpu, attempt 2\nnetwork (crash)\na link went down\n");
    assert_says(&n, 1, 0, "reknit explain 17_7");
    STR_COPY(n.path, "/home/<alice>/train-1.log");
    n.line = 7;
    assert_says(&n, 1, 0, "a link went down\n/home/&lt;alice&gt;/train-1.log, line 7\n1 of 3");
    n = make(17, ACTION_STOP, MODE_OBSERVE);
    assert_says(&n, 1, 0, "job 17_7 would be stopped");
    n = make(17, ACTION_RESTART, MODE_PROPOSE);
    n.proposal_life = 240 * USEC_PER_SEC;
    assert_says(&n, 1, 0, "may be restarted, if somebody approves");
    assert_says(&n, 1, 0, "reknit approve 17_7, or reject, within 4min");
}

static void test_a_request(void **state)
{
    struct notice n = {.kind = NOTICE_REQUEST, .request = REQUEST_FREEZE};

    STR_COPY(n.who, "bob");
    STR_COPY(n.why, "a new switch");
    assert_says(&n, 1, 0, "Reknit is frozen by bob");
    assert_says(&n, 1, 0, "a new switch");
}

static void test_a_failure(void **state)
{
    static const struct {
        enum intent failed;
        const char *says;
    } rows[] = {
        {INTENT_REQUEUE, "alpha - job 17_7 was not restarted\n"},
        {INTENT_START, "alpha - job 17_7 was not seen to run again\n"},
        {INTENT_AMEND, "alpha - job 17_7 is restarted, but not without n7\n"},
        {INTENT_CANCEL, "alpha - job 17_7 could not be stopped\n"},
        {INTENT_HOLD, "alpha - job 17_7 could not be held for people to look at\n"},
    };
    struct notice n = make(17, ACTION_RESTART, MODE_ACT);

    n.kind = NOTICE_FAILURE;
    n.n_nodes = 1;
    STR_COPY(n.nodes[0], "n7");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        n.failed = rows[i].failed;
        assert_says(&n, 1, 0, rows[i].says);
        assert_says(&n, 1, 0, "train, alice, gpu, attempt 2\n1 of 3\nreknit explain 17_7");
    }
    n = make(17, ACTION_RESTART, MODE_ACT);
    STR_COPY(n.rule, "start-failed");
    assert_says(&n, 1, 0, "job 17_7 could not be restarted, and is tried again\n");
    n.action = ACTION_STOP;
    assert_says(&n, 1, 0, "job 17_7 could not be restarted\n");
    n = make(17, ACTION_RESTART, MODE_PROPOSE);
    n.lapsed = true;
    assert_says(&n, 1, 0, "could have been restarted, but nobody approved\n");
}

/* Among many decisions, those that failed are named. */
static void test_failures_of_many(void **state)
{
    struct notice n[6];

    for (size_t i = 0; i < ARRAY_SIZE(n); i++)
        n[i] = make(100 + i, ACTION_RESTART, MODE_ACT);
    n[4].kind = NOTICE_FAILURE;
    n[4].failed = INTENT_REQUEUE;
    n[5].action = ACTION_STOP;
    STR_COPY(n[5].rule, "start-refused");
    assert_says(n, 6, 0, "alpha - 6 events within 5");
    assert_says(n, 6, 0, "decided: restart 4, restart failed 2\n");
    assert_says(n, 6, 0,
                "failed: 104_7 (alice), 105_7 (alice)\nfirst of them: 100_7 (alice), 101_7");
}

static void test_many(void **state)
{
    struct notice n[7];

    for (size_t i = 0; i < ARRAY_SIZE(n); i++)
        n[i] = make(100 + i, i < 5 ? ACTION_RESTART_EXCLUDING : ACTION_STOP, MODE_ACT);
    for (size_t i = 0; i < 4; i++) {
        n[i].n_nodes = 1;
        STR_PRINTF(n[i].nodes[0], "n%d", i < 3 ? 1 : 2);
    }
    assert_says(n, 7, 13, "alpha - 20 decisions within 6");
    assert_says(n, 7, 0, "decided: restart 5, stop 2\n");
    assert_says(n, 7, 0, "causes: network 7\n");
    assert_says(n, 7, 0, "nodes at fault: n1 3, n2 1\n");
    assert_says(n, 7, 0, "first of them: 100_7 (alice), 101_7 (alice), 102_7");
}

static void test_a_node(void **state)
{
    struct notice n[2] = {{.kind = NOTICE_NODE, .mode = MODE_ACT, .n_nodes = 1},
                          {.kind = NOTICE_NODE, .mode = MODE_ACT, .at = USEC_PER_SEC}};

    STR_COPY(n[0].nodes[0], "n7");
    STR_COPY(n[0].why, "GPU 0000:9b:00 has fallen off the bus (Xid 79)");
    assert_says(n, 1, 0, "alpha - node n7 is to be drained\nGPU 0000:9b:00 has fallen off the bus");
    assert_says(n, 1, 0, "\nreknit nodes n7");
    n[0].mode = MODE_OBSERVE;
    assert_says(n, 1, 0, "alpha - node n7 would be drained");
    STR_COPY(n[1].rule, "shared");
    assert_says(n + 1, 1, 0, "alpha - nodes: shared");
    assert_says(n, 2, 0, "alpha - 2 events within 1");
    assert_says(n, 2, 0, "decided: node to drain 1, nodes 1\nnodes at fault: - 1, n7 1");
}

static void test_escape(void **state)
{
    static const char *const rows[][2] = {
        {"plain n7: 3 of 4", "plain n7: 3 of 4"},
        {"<!channel>", "&lt;!channel&gt;"},
        {"a & b", "a &amp; b"},
        {"@here", "@\xe2\x80\x8bhere"},
        {"http://x", "http:\xe2\x80\x8b//x"},
        {"[a](b) `c`", "(a)(b) 'c'"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_strbuf_ struct strbuf b = {0};

        notice_escape(&b, rows[i][0]);
        assert_string_equal(strbuf_str(&b), rows[i][1]);
    }
}

/* However long its parts are, a message stays within what Slack takes, and no entity is cut. */
static void test_long(void **state)
{
    struct notice n = make(1, ACTION_RESTART_EXCLUDING, MODE_ACT);
    char *text;

    memset(n.name, '&', sizeof(n.name) - 1);
    memset(n.label, '<', sizeof(n.label) - 1);
    memset(n.summary, '&', sizeof(n.summary) - 1);
    memset(n.why, '>', sizeof(n.why) - 1);
    text = text_of(&n, 1, 0);
    for (const char *p = text; (p = strchr(p, '&')); p++)
        assert_true(str_startswith(p, "&amp;") || str_startswith(p, "&lt;") ||
                    str_startswith(p, "&gt;"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),       cmocka_unit_test(test_a_request),
        cmocka_unit_test(test_a_failure), cmocka_unit_test(test_failures_of_many),
        cmocka_unit_test(test_many),      cmocka_unit_test(test_escape),
        cmocka_unit_test(test_long),      cmocka_unit_test(test_a_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
