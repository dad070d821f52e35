/* SPDX-License-Identifier: Apache-2.0 */

/* A helper that answers, late, wrongly, or not at all: whoever asked is told so, once, in order. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "until.h"
#include "wire/helper.h"

#include <errno.h>
#include <stdlib.h>

#define ANSWERED_MAX 5000

struct fixture {
    sd_event *event;
    struct helper *helper;
    char answers[8][16]; /* of the first; "" = there was none */
    char error[100];     /* of the last */
    size_t n;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_return_code(sd_event_new(&f->event), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    helper_free(f->helper);
    sd_event_unref(f->event);
    free(f);
    return 0;
}

static void start(struct fixture *f, const char *script, usec_t patience)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};

    f->helper = helper_new(f->event, argv, patience);
    assert_non_null(f->helper);
}

static void on_answer(void *ctx, const json_t *answer)
{
    struct fixture *f = ctx;
    const char *word = json_string_value(json_object_get(answer, "word"));
    const char *error = json_string_value(json_object_get(answer, "error"));

    assert_true(f->n < ANSWERED_MAX);
    if (f->n < ARRAY_SIZE(f->answers))
        STR_COPY(f->answers[f->n], word ? word : "");
    STR_COPY(f->error, error ? error : "");
    f->n++;
}

static int ask(struct fixture *f, const char *word)
{
    return helper_ask(f->helper, json_pack("{s:s}", "word", word), on_answer, f);
}

static void await(struct fixture *f, size_t n)
{
    UNTIL(f->n >= n, sd_event_run(f->event, USEC_PER_SEC));
    assert_int_equal(f->n, n);
}

/* A process that was started a moment ago is not replaced: so the next that asks gets nothing, and
 * one a second later an answer. */
static void await_a_new_process(struct fixture *f)
{
    do {
        f->n = 0;
        assert_int_equal(ask(f, "anew"), 0);
        await(f, 1);
    } while (!f->answers[0][0]);
    assert_string_equal(f->answers[0], "anew");
}

static void answers_come_in_the_order_of_asking(void **state)
{
    struct fixture *f = *state;

    start(f, "exec cat", HELPER_PATIENCE);
    assert_int_equal(ask(f, "one"), 0);
    assert_int_equal(ask(f, "two"), 0);
    assert_int_equal(f->n, 0); /* never from within */
    await(f, 2);
    assert_string_equal(f->answers[0], "one");
    assert_string_equal(f->answers[1], "two");
}

/* An answer that cannot be read is lost; those that follow would be taken for the answers to other
 * questions, so nobody gets one of them. */
static void behind_a_lost_answer_none_is_believed(void **state)
{
    struct fixture *f = *state;

    start(f,
          "read a; read b; read c; echo \"$a\"; echo '{\"word\":'; echo \"$b\"; echo \"$c\";"
          "exec cat",
          HELPER_PATIENCE);
    ask(f, "one");
    ask(f, "two");
    ask(f, "three");
    await(f, 3);
    assert_string_equal(f->answers[0], "one");
    assert_string_equal(f->answers[1], "");
    assert_string_equal(f->answers[2], "");
}

static void who_does_not_answer_in_time_is_replaced(void **state)
{
    struct fixture *f = *state;
    char mark[] = "/tmp/reknit-helper-XXXXXX", script[128];
    int fd = mkstemp(mark);

    assert_return_code(fd, errno);
    STR_PRINTF(script, "if test -e %s; then rm %s; exec sleep 600; fi; exec cat", mark, mark);
    start(f, script, 300 * USEC_PER_MSEC);
    ask(f, "one");
    ask(f, "two");
    await(f, 2);
    assert_string_equal(f->answers[0], "");
    assert_string_equal(f->answers[1], "");
    await_a_new_process(f);
    close(fd);
}

static void who_ends_is_replaced(void **state)
{
    struct fixture *f = *state;

    start(f, "read a; echo \"$a\"; read b; case $b in *end*) exit 0;; esac; exit 1",
          HELPER_PATIENCE);
    ask(f, "one");
    ask(f, "end");
    await(f, 2);
    assert_string_equal(f->answers[0], "one");
    assert_string_equal(f->answers[1], "");
    await_a_new_process(f);
}

/* It is told apart from one that does not answer: another thing is to be mended. */
static void what_cannot_be_started_is_said(void **state)
{
    struct fixture *f = *state;
    const char *argv[] = {"/nowhere/at/all", NULL};

    f->helper = helper_new(f->event, argv, HELPER_PATIENCE);
    for (size_t n = 1; n <= 2; n++) { /* the second comes too soon for another try */
        assert_int_equal(ask(f, "one"), 0);
        assert_int_equal(f->n, n - 1);
        await(f, n);
        assert_string_equal(f->answers[n - 1], "");
        assert_string_equal(f->error, "all cannot be started: No such file or directory");
    }
}

static void too_many_questions_are_refused(void **state)
{
    struct fixture *f = *state;

    start(f, "exec sleep 600", HELPER_PATIENCE);
    for (int i = 0; i < HELPER_ASKED_MAX; i++)
        assert_int_equal(ask(f, "x"), 0);
    assert_int_equal(ask(f, "x"), -ENOBUFS);
    assert_int_equal(f->n, 0);
    f->helper = helper_free(f->helper); /* none is forgotten */
    assert_int_equal(f->n, HELPER_ASKED_MAX);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(answers_come_in_the_order_of_asking),     TEST(behind_a_lost_answer_none_is_believed),
        TEST(who_does_not_answer_in_time_is_replaced), TEST(who_ends_is_replaced),
        TEST(what_cannot_be_started_is_said),          TEST(too_many_questions_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
