/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/state/state.h"
#include "source/sched_nodes.h"
#include "source/succession.h"

static void take(struct sched_nodes *t, const char *json)
{
    json_t *j = json_loads(json, 0, NULL);

    assert_non_null(j);
    sched_nodes_take(t, j);
    json_decref(j);
}

static struct sched_nodes *four(void)
{
    struct sched_nodes *t = sched_nodes_new();

    take(t, "{\"full\":true,\"nodes\":["
            "{\"name\":\"n3\",\"address\":\"10.0.0.3\",\"state\":\"idle\",\"flags\":[],"
            "\"usable\":true,\"partitions\":[\"a\"]},"
            "{\"name\":\"n1\",\"address\":\"10.0.0.1\",\"state\":\"idle\",\"flags\":[],"
            "\"usable\":true,\"partitions\":[\"a\",\"b\"]},"
            "{\"name\":\"n2\",\"state\":\"down\",\"flags\":[],\"usable\":false,"
            "\"partitions\":[\"a\"]},"
            "{\"name\":\"n4\",\"state\":\"idle\",\"flags\":[\"not-responding\"],\"usable\":false,"
            "\"partitions\":[\"a\"]}]}");
    return t;
}

static void test_who_is_in_trouble(void **state)
{
    struct sched_nodes *t = four();

    assert_int_equal(sched_nodes_count(t), 4);
    assert_string_equal(sched_nodes_down_of(t, "n[1-4]"), "n2");
    assert_string_equal(sched_nodes_silent_of(t, "n[1-4]", NULL), "n4");
    assert_string_equal(sched_nodes_down_of(t, "n[3-4]"), "");
    assert_string_equal(sched_nodes_silent_of(t, "", NULL), "");
    assert_string_equal(sched_nodes_address(t, "n3"), "10.0.0.3");
    assert_null(sched_nodes_address(t, "n5"));
    sched_nodes_free(t);
}

/* Whom the job lost, as the last look at it said. */
static const struct job *job_without(const char *node)
{
    static struct job j;

    STR_COPY(j.sched.look.lost_node, node);
    return &j;
}

static void test_who_is_not_known_to_answer(void **state)
{
    struct sched_nodes *t = sched_nodes_new();

    /* before the first answer, as after a restart */
    assert_string_equal(sched_nodes_silent_of(t, "n[1-4]", job_without("n4")), "n4");
    assert_string_equal(sched_nodes_silent_of(t, "n[1-4]", job_without("")), "");
    sched_nodes_free(t);

    t = four();
    assert_string_equal(sched_nodes_silent_of(t, "n[1-3]", job_without("n3")), ""); /* is back */
    assert_string_equal(sched_nodes_silent_of(t, "n[1-3]", job_without("n4")),
                        ""); /* not its own */
    /* the cluster has lost it */
    assert_string_equal(sched_nodes_silent_of(t, "n[1,9]", job_without("n9")), "n9");
    /* a list that was cut: n4 may have stood there */
    assert_string_equal(sched_nodes_silent_of(t, "n[1-3],...", NULL), "n4");
    assert_string_equal(sched_nodes_down_of(t, "n[1,3],..."), "");
    sched_nodes_free(t);
}

static void test_news(void **state)
{
    struct sched_nodes *t = four();

    assert_true(sched_nodes_news_of(t, "n[2,4]"));
    assert_false(sched_nodes_news_of(t, "n[1,3]"));
    sched_nodes_news_done(t);
    assert_false(sched_nodes_has_news(t));

    /* what does not concern a job that runs there is none */
    take(t, "{\"full\":false,\"nodes\":[{\"name\":\"n1\",\"state\":\"allocated\",\"flags\":"
            "[\"drain\"],\"usable\":false,\"partitions\":[\"a\"]}]}");
    assert_false(sched_nodes_has_news(t));

    take(t, "{\"full\":false,\"nodes\":[{\"name\":\"n1\",\"state\":\"allocated\",\"flags\":"
            "[\"fail\"],\"usable\":false}],\"gone\":[\"n2\",\"n9\"]}");
    assert_true(sched_nodes_news_of(t, "n1"));
    assert_true(sched_nodes_news_of(t, "n2"));
    assert_false(sched_nodes_news_of(t, "n[3-4]"));
    assert_string_equal(sched_nodes_down_of(t, "n[1-4]"), "n1");
    sched_nodes_news_done(t);

    take(t, "{\"unchanged\":true}");
    assert_false(sched_nodes_has_news(t));
    assert_int_equal(sched_nodes_count(t), 3);
    sched_nodes_free(t);
}

/* A new list tells of those that are not in it any more, as a difference does. */
static void test_a_new_list(void **state)
{
    struct sched_nodes *t = four();

    sched_nodes_news_done(t);
    take(t, "{\"full\":true,\"nodes\":[{\"name\":\"n4\",\"state\":\"idle\",\"flags\":"
            "[\"not-responding\"]},{\"name\":\"n5\",\"state\":\"down\"}]}");
    assert_int_equal(sched_nodes_count(t), 2);
    assert_true(sched_nodes_news_of(t, "n2"));
    assert_true(sched_nodes_news_of(t, "n5"));
    assert_false(sched_nodes_news_of(t, "n4"));
    assert_string_equal(sched_nodes_down_of(t, "n[1-5]"), "n5");
    assert_string_equal(sched_nodes_silent_of(t, "n[1-5]", NULL), "n4");
    sched_nodes_free(t);
}

/* More news than are kept one by one concern everybody. */
static void test_an_outage(void **state)
{
    struct sched_nodes *t = sched_nodes_new();
    json_t *list = json_array(), *answer;
    char name[16];

    for (int i = 0; i < 2000; i++) {
        STR_PRINTF(name, "m%d", i);
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", name, "state", "down"));
    }
    answer = json_pack("{s:b, s:o}", "full", 1, "nodes", list);
    sched_nodes_take(t, answer);
    json_decref(answer);
    assert_true(sched_nodes_news_of(t, "m1999"));
    assert_string_equal(sched_nodes_down_of(t, "m1999"), "m1999");
    sched_nodes_news_done(t);
    assert_false(sched_nodes_news_of(t, "m1999"));
    sched_nodes_free(t);
}

static void test_usable(void **state)
{
    struct sched_nodes *t = four(), *none = sched_nodes_new();
    struct intent_facts without = {0};
    json_t *exclude = json_pack("[s]", "n3"), *nobody = json_array();

    assert_int_equal(sched_nodes_usable(none, "a", nobody, &without), -1);
    assert_int_equal(sched_nodes_usable(t, "a", nobody, &without), 2);
    assert_int_equal(sched_nodes_usable(t, "b", nobody, &without), 1);
    assert_int_equal(sched_nodes_usable(t, "a", exclude, &without), 1);
    /* all of a job run in one of the partitions that it waits in */
    assert_int_equal(sched_nodes_usable(t, "a,b", nobody, &without), 2);
    assert_int_equal(sched_nodes_usable(t, "b,a", nobody, &without), 2);
    assert_int_equal(sched_nodes_usable(t, "c,b", exclude, &without), 1);
    without.n_nodes = 1;
    STR_COPY(without.nodes[0], "n1");
    assert_int_equal(sched_nodes_usable(t, "a", exclude, &without), 0);
    json_decref(exclude);
    json_decref(nobody);
    sched_nodes_free(t);
    sched_nodes_free(none);
}

static struct sched_job *job(const char *json)
{
    json_t *j = json_loads(json, 0, NULL);
    struct sched_job *r = NULL;

    assert_int_equal(sched_job_parse(j, &r, NULL), 0);
    json_decref(j);
    return r;
}

#define NAMESAKE "\"name\":\"x\",\"uid\":7,\"submit\":200"

static void test_succession(void **state)
{
    static const struct {
        const char *next;
        bool succeeds;
    } cases[] = {
        {"{\"id\":\"26\",\"state\":\"pending\",\"dependency\":\"afterany:25\"}", true},
        {"{\"id\":\"26\",\"state\":\"running\",\"dependency\":\"afternotok:7:25\"}", true},
        {"{\"id\":\"26\",\"state\":\"pending\",\"dependency\":\"afternotok:25_*\"}", false},
        {"{\"id\":\"26\",\"state\":\"pending\",\"dependency\":\"afterany:250\"}", false},
        {"{\"id\":\"26\",\"state\":\"pending\",\"dependency\":\"afterok:25\"}", false},
        /* of the same user, and what it waits for is not known whole */
        {"{\"id\":\"26\",\"state\":\"pending\",\"dependency\":\"afterany:7\",\"uid\":7,"
         "\"cut\":[\"dependency\"]}",
         true},
        {"{\"id\":\"26\",\"state\":\"pending\",\"dependency\":\"afterany:7\",\"uid\":8,"
         "\"cut\":[\"dependency\"]}",
         false},
        {"{\"id\":\"26\",\"state\":\"pending\",\"name\":\"x\",\"uid\":7,\"submit\":200}", true},
        {"{\"id\":\"26\",\"state\":\"pending\",\"name\":\"x\",\"uid\":8,\"submit\":200}", false},
        {"{\"id\":\"26\",\"state\":\"running\"," NAMESAKE ",\"start\":299}", false},
        {"{\"id\":\"26\",\"state\":\"failed\"," NAMESAKE ",\"start\":250}", false},
        {"{\"id\":\"26\",\"state\":\"running\"," NAMESAKE ",\"start\":300}", true},
        {"{\"id\":\"26\",\"state\":\"completed\"," NAMESAKE ",\"start\":310}", true},
        {"{\"id\":\"26\",\"state\":\"pending\",\"name\":\"x\",\"uid\":7,\"submit\":200,"
         "\"restarts\":1}",
         false},
    };
    struct sched_job *r = job("{\"id\":\"25\",\"state\":\"failed\",\"name\":\"x\",\"uid\":7,"
                              "\"submit\":100,\"start\":110,\"end\":300}");
    struct sched_job *brief = job("{\"id\":\"25\",\"state\":\"failed\",\"name\":\"x\",\"uid\":7,"
                                  "\"submit\":100,\"start\":300,\"end\":300}");
    struct sched_job *runs = job("{\"id\":\"25\",\"state\":\"running\",\"name\":\"x\",\"uid\":7,"
                                 "\"submit\":100,\"start\":110}");
    struct sched_job *waits = job("{\"id\":\"26\",\"state\":\"pending\"," NAMESAKE "}");
    struct sched_job *beside =
        job("{\"id\":\"26\",\"state\":\"running\"," NAMESAKE ",\"start\":300}");

    assert_false(sched_job_succeeds(r, r));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct sched_job *next = job(cases[i].next);

        if (sched_job_succeeds(next, r) != cases[i].succeeds)
            fail_msg("%s", cases[i].next);
        sched_job_free(next);
    }
    assert_false(sched_job_succeeds(waits, runs)); /* it may yet run beside it */
    assert_true(sched_job_succeeds(waits, brief));
    assert_false(sched_job_succeeds(beside, brief)); /* both began in one second */
    sched_job_free(r);
    sched_job_free(brief);
    sched_job_free(runs);
    sched_job_free(waits);
    sched_job_free(beside);
}

/* Task 3 of the array 25, which has a number of its own; task 9 has the array's. */
static void test_of_an_array_a_task_is_meant_alone(void **state)
{
    static const struct {
        const char *dependency;
        bool third, last;
    } cases[] = {
        {"afterany:25_*", true, true},          {"afterany:25", true, true},
        {"afterany:25_3", true, false},         {"afternotok:25_3(failed)", true, false},
        {"afterany:25_9", false, true},         {"afterany:7:25_30,afterok:25_3", false, false},
        {"afterany:25_30:25_93", false, false}, {"afterany:24_*:250_*", false, false},
        {"afterany:22", true, false},
    };
    struct sched_job *third = job("{\"id\":\"22\",\"state\":\"failed\",\"array\":{\"job\":\"25\","
                                  "\"task\":3}}");
    struct sched_job *last = job("{\"id\":\"25\",\"state\":\"failed\",\"array\":{\"job\":\"25\","
                                 "\"task\":9}}");

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct sched_job *next = job("{\"id\":\"40\",\"name\":\"next\",\"state\":\"pending\"}");

        free(next->dependency);
        next->dependency = xstrdup(cases[i].dependency);
        if (sched_job_succeeds(next, third) != cases[i].third ||
            sched_job_succeeds(next, last) != cases[i].last)
            fail_msg("%s", cases[i].dependency);
        sched_job_free(next);
    }
    sched_job_free(third);
    sched_job_free(last);
}

#define STRANDED "\"reason_kind\":\"dependency-never\",\"uid\":7,\"state\":\"pending\""

/* Who is given his dependency anew once 25 waits again: those of the same user that waited for its
 * success and were told that it would never come. */
static void test_who_is_stranded(void **state)
{
    static const struct {
        const char *next;
        bool stranded;
    } cases[] = {
        {"{\"id\":\"26\"," STRANDED ",\"dependency\":\"afterok:25(failed)\"}", true},
        {"{\"id\":\"26\"," STRANDED ",\"dependency\":\"aftercorr:25(failed)\"}", true},
        {"{\"id\":\"26\"," STRANDED ",\"dependency\":\"afterok:7(unfulfilled):25(failed)\"}", true},
        {"{\"id\":\"26\"," STRANDED ",\"dependency\":\"afterany:7,afterok:25(failed)\"}", true},
        {"{\"id\":\"26\"," STRANDED ",\"dependency\":\"afterok:250(failed)\"}", false},
        {"{\"id\":\"26\"," STRANDED ",\"dependency\":\"afterok:7(failed),afterany:25\"}", false},
        {"{\"id\":\"26\"," STRANDED ",\"dependency\":\"\"}", false},
        /* it still waits, runs, or is somebody else's */
        {"{\"id\":\"26\",\"reason_kind\":\"dependency\",\"uid\":7,\"state\":\"pending\","
         "\"dependency\":\"afterok:25(unfulfilled)\"}",
         false},
        {"{\"id\":\"26\",\"reason_kind\":\"dependency-never\",\"uid\":7,\"state\":\"running\","
         "\"dependency\":\"afterok:25(failed)\"}",
         false},
        {"{\"id\":\"26\",\"reason_kind\":\"dependency-never\",\"uid\":8,\"state\":\"pending\","
         "\"dependency\":\"afterok:25(failed)\"}",
         false},
    };
    struct sched_job *r = job("{\"id\":\"25\",\"state\":\"pending\",\"uid\":7}");

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct sched_job *next = job(cases[i].next);

        if (sched_job_is_stranded(next, r) != cases[i].stranded)
            fail_msg("%s", cases[i].next);
        sched_job_free(next);
    }
    sched_job_free(r);
}

/* An array's tasks are waited for by the number of the array too. */
static void test_who_waits_for_an_array_is_stranded_by_a_task(void **state)
{
    struct sched_job *r = job("{\"id\":\"30\",\"state\":\"pending\",\"uid\":7,"
                              "\"array\":{\"job\":\"25\",\"task\":3}}");
    struct sched_job *next =
        job("{\"id\":\"26\"," STRANDED ",\"dependency\":\"afterok:25_*(failed)\"}");

    assert_true(r->array_id == 25 && sched_job_is_stranded(next, r));
    sched_job_free(next);
    sched_job_free(r);
}

static void test_a_dependency_is_asked_for_as_it_was(void **state)
{
    static const char *const cases[][2] = {
        {"afterok:25(failed)", "afterok:25"},
        {"afterok:25(failed):7_*(unfulfilled)", "afterok:25:7_*"},
        {"afterok:25(failed),singleton(unfulfilled)", "afterok:25,singleton"},
        {"afterany:7(unfulfilled)?afterok:25(failed)", "afterany:7?afterok:25"},
        {"after:25+10(unfulfilled)", "after:25+10"},
        {"afterok:25", "afterok:25"},
        {"afterok:25(fail", "afterok:25"},
        {"", ""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_strbuf_ struct strbuf out = {0};
        json_t *j =
            json_pack("{s:s, s:s, s:s}", "id", "26", "state", "pending", "dependency", cases[i][0]);
        struct sched_job *next = NULL;

        assert_int_equal(sched_job_parse(j, &next, NULL), 0);
        sched_job_dependency_anew(next, &out);
        assert_string_equal(strbuf_str(&out), cases[i][1]);
        sched_job_free(next);
        json_decref(j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_in_trouble),
        cmocka_unit_test(test_who_is_not_known_to_answer),
        cmocka_unit_test(test_news),
        cmocka_unit_test(test_a_new_list),
        cmocka_unit_test(test_an_outage),
        cmocka_unit_test(test_usable),
        cmocka_unit_test(test_succession),
        cmocka_unit_test(test_of_an_array_a_task_is_meant_alone),
        cmocka_unit_test(test_who_is_stranded),
        cmocka_unit_test(test_who_waits_for_an_array_is_stranded_by_a_task),
        cmocka_unit_test(test_a_dependency_is_asked_for_as_it_was),
    };

    return cmocka_run_group_tests_name("sched_nodes", tests, NULL, NULL);
}
