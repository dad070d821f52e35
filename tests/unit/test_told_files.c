/* SPDX-License-Identifier: Apache-2.0 */

/* What nodes tell of files is asked for once, and whose they are is known for as long as it
 * matters.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "source/told_files.h"

#include <errno.h>
#include <stdio.h>

static int set_up(void **state)
{
    *state = told_files_new();
    return 0;
}

static int tear_down(void **state)
{
    told_files_free(*state);
    return 0;
}

/* As who reads them does it: what is news is added. */
static bool tell(struct told_files *f, const char *path, const char *node, const char *here)
{
    json_t *tellers;

    if (told_files_hear(f, path, node, here))
        return false;
    tellers = node ? json_pack("[s]", node) : json_array();
    assert_int_equal(told_files_add(f, path, tellers), 0);
    json_decref(tellers);
    return true;
}

static void check_list(json_t *list, const char *const *names, size_t n)
{
    assert_int_equal(json_array_size(list), n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(json_string_value(json_array_get(list, i)), names[i]);
    json_decref(list);
}

static void a_path_is_news_once(void **state)
{
    struct told_files *f = *state;
    json_t *q = json_object();

    assert_false(told_files_are_new(f));
    assert_true(tell(f, "/x", "n1", ""));
    assert_false(tell(f, "/x", "n2", ""));
    assert_false(tell(f, "/x", "n2", ""));
    assert_false(tell(f, "/x", NULL, ""));
    assert_true(told_files_are_new(f));
    told_files_ask(f, q);
    assert_false(told_files_are_new(f));
    assert_int_equal(json_array_size(json_object_get(q, "files")), 1);
    assert_true(json_is_true(json_object_get(q, "leave"))); /* a node may have what is not here */
    json_decref(q);
    assert_int_equal(told_files_count(f), 1);
    told_files_clear(f);
    assert_int_equal(told_files_count(f), 0);
    assert_true(tell(f, "/x", "n1", ""));
}

static void what_nobody_has_told_of_is_not_left_to_anybody(void **state)
{
    struct told_files *f = *state;
    json_t *q = json_object();

    assert_true(tell(f, "/x", NULL, ""));
    told_files_ask(f, q);
    assert_null(json_object_get(q, "leave"));
    json_decref(q);
}

static void what_is_not_there_is_left_to_those_who_told_of_it(void **state)
{
    static const char *const both[] = {"n1", "n2"};
    struct told_files *f = *state;

    tell(f, "/x", "n1", "");
    tell(f, "/x", "n2", "");
    assert_null(told_files_leave(f, "/y"));
    check_list(told_files_leave(f, "/x"), both, 2);
    assert_int_equal(told_files_count(f), 0);
}

/* On a file system that all have: nobody else is asked for it any more. */
static void one_file_is_that_of_all_who_tell_of_it(void **state)
{
    static const char *const one[] = {"n1"};
    struct told_files *f = *state;

    tell(f, "/x", "n1", "");
    check_list(told_files_settle(f, "/x", false), one, 1);
    assert_null(told_files_settle(f, "/x", false));
    assert_null(told_files_leave(f, "/x"));
    assert_false(tell(f, "/x", "n2", ""));
}

/* On the disk of a node: another that has the same path has another file. */
static void one_path_may_be_many_files(void **state)
{
    static const char *const one[] = {"n1"};
    struct told_files *f = *state;

    tell(f, "/tmp/x", "n1", "n1");
    check_list(told_files_settle(f, "/tmp/x", true), one, 1);
    assert_true(told_files_hear(f, "/tmp/x", "n1", "n1"));
    assert_false(told_files_hear(f, "/tmp/x", "n2", "n1"));
}

static void who_tells_is_bounded_and_a_path_is_text(void **state)
{
    struct told_files *f = *state;
    json_t *tellers = json_array();
    char node[16];

    for (int i = 0; i < 2 * TOLD_FILES_TELLERS_MAX; i++) {
        STR_PRINTF(node, "n%d", i);
        tell(f, "/x", node, "");
    }
    assert_int_equal(told_files_add(f, "/\xff", tellers), -EINVAL);
    json_decref(tellers);
    tellers = told_files_leave(f, "/x");
    assert_int_equal(json_array_size(tellers), TOLD_FILES_TELLERS_MAX);
    json_decref(tellers);
}

static void those_of_another_are_added_to_what_is_known(void **state)
{
    struct told_files *f = *state, *other = told_files_new();

    tell(f, "/x", "n1", "");
    json_decref(told_files_settle(f, "/x", false));
    tell(other, "/x", "n2", "n2");
    tell(other, "/y", "n2", "n2");
    told_files_take_over(f, other);
    told_files_free(other);
    assert_int_equal(told_files_count(f), 2);
    assert_null(told_files_leave(f, "/x")); /* that it is there is known */
    json_decref(told_files_leave(f, "/y"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(a_path_is_news_once),
        TEST(what_nobody_has_told_of_is_not_left_to_anybody),
        TEST(what_is_not_there_is_left_to_those_who_told_of_it),
        TEST(one_file_is_that_of_all_who_tell_of_it),
        TEST(one_path_may_be_many_files),
        TEST(who_tells_is_bounded_and_a_path_is_text),
        TEST(those_of_another_are_added_to_what_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
