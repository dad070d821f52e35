/* SPDX-License-Identifier: Apache-2.0 */

/* Files that are not of the form they should have: what a person is told. */

#include "base/form.h"

#include "base/str.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct dish {
    char *name;
    int *minutes;
};

struct menu {
    char *title;
    struct dish *dishes;
    unsigned dishes_count;
    struct dish *special;
};

static const cyaml_schema_field_t dish_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct dish, name, 0, 8),
    CYAML_FIELD_INT_PTR("minutes", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct dish, minutes),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t dish_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct dish, dish_fields),
};
static const cyaml_schema_field_t menu_fields[] = {
    CYAML_FIELD_STRING_PTR("title", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct menu, title, 0,
                           8),
    CYAML_FIELD_SEQUENCE("dishes", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct menu, dishes,
                         &dish_schema, 0, 2),
    CYAML_FIELD_MAPPING_PTR("special", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct menu,
                            special, dish_fields),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t menu_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct menu, menu_fields),
};

static int load(const char *text, void **ret, struct err *e)
{
    struct form_text t = {"m.yaml", text, strlen(text)};

    return form_load(&t, &menu_schema, ret, e);
}

static void what_is_right_is_loaded(void **state)
{
    static const char *const texts[] = {
        "title: a\ndishes:\n  - name: soup\n    minutes: 5\n  - {name: pie}\n",
        "---\ntitle: a\ndishes: [{name: soup, minutes: 5}, {name: pie}]\n...\n",
        "# --- a remark\n\n%YAML 1.1\n---\ntitle: a\ndishes: [{name: soup, minutes: 5}, {name: x}]",
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct menu *m;
        void *object;
        struct err e = {0};

        if (load(texts[i], &object, &e) < 0)
            fail_msg("%s", e.text);
        m = object;
        assert_string_equal(m->title, "a");
        assert_int_equal(m->dishes_count, 2);
        assert_int_equal(*m->dishes[0].minutes, 5);
        form_free(&menu_schema, object);
    }
}

static void nothing_is_no_fault(void **state)
{
    static const char *const texts[] = {"", "\n", "# nothing\n"};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct err e = {0};
        void *object = &e;

        if (load(texts[i], &object, &e) < 0)
            fail_msg("'%s': %s", texts[i], e.text);
        assert_null(object);
        form_free(&menu_schema, object);
    }
}

static void faults_are_told_in_plain_words(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"titel: a\n",
         "1: there is no key 'titel'; did you mean 'title'? Keys: title, dishes, special"},
        {"# frob: 1\ntitle: a\nfrob: 1\n",
         "3: there is no key 'frob'; keys: title, dishes, special"},
        {"dishes:\n  - name: soup\n  - name: pie\n    minute: 3\n",
         "4: dishes[2]: there is no key 'minute'; did you mean 'minutes'? Keys: name, minutes"},
        {"special:\n  nmae: pie\n",
         "2: special: there is no key 'nmae'; did you mean 'name'? Keys: name, minutes"},
        {"special:\n  minutes: 3\n", "2: special: 'name' is missing"},
        {"dishes:\n  - minutes: 3\n", "2: dishes[1]: 'name' is missing"},
        {"title: a\ntitle: b\n", "2: title: is given twice"},
        {"title: [a]\n", "1: title: wants a single value, not a list (- item)"},
        {"title: {a: b}\n", "1: title: wants a single value, not keys with values (key: value)"},
        {"dishes: soup\n", "1: dishes: wants a list (- item), not a single value"},
        {"dishes:\n  - soup\n",
         "2: dishes[1]: wants keys with values (key: value), not a single value"},
        {"- a\n", "1: the file wants keys with values (key: value), not a list (- item)"},
        {"hello", "1: the file wants keys with values (key: value), not a single value"},
        {"special: {name: a, minutes: soon}\n",
         "1: special.minutes: 'soon' is no whole number, or too large"},
        {"special: {name: a, minutes: 99999999999}\n",
         "1: special.minutes: '99999999999' is no whole number, or too large"},
        {"title: 0123456789\n", "1: title: longer than 8 bytes"},
        {"dishes: [{name: a}, {name: b}, {name: c}]\n", "1: dishes[2]: more than 2 entries"},
        {"title: &a b\nspecial: *a\n",
         "2: special: aliases (*name) are not understood: write the value out"},
        {"title: a\n---\ntitle: b\n", "2: a second document begins ('---'): there may be only one"},
        {"title: a\n  b: c\n",
         "2: is no YAML: a ':' too many, or a line that is indented more than "
         "those it belongs to"},
        {"special:\n\tname: a\n",
         "2: is no YAML: a character stands here that cannot begin anything, such as a tab or %: "
         "YAML is indented with blanks"},
        {"title: \"a\n", "2: is no YAML: a quote that was opened is not closed"},
        {"dishes: [{name: a}\n",
         "2: is no YAML: a bracket that was opened is not closed, or a comma is missing"},
        {"title: a\nspecial: {name: \xff}\n", "2: is no text in UTF-8"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err e = {0};
        void *object = &e;
        char want[400];

        STR_PRINTF(want, "m.yaml:%s", rows[i].error);
        assert_int_equal(load(rows[i].text, &object, &e), -EINVAL);
        assert_string_equal(e.text, want);
        assert_null(object);
    }
}

static void hostile_text_is_made_harmless(void **state)
{
    static const char *const texts[] = {"? [a]\n: b\n",
                                        "\"x\\e]0;owned\\a\": 1\n",
                                        "'",
                                        "{",
                                        "[",
                                        "{{{{{{{{",
                                        "a: !!str",
                                        "title: !!binary |\n  x",
                                        "&a [*a]\n",
                                        "%",
                                        "\xef\xbb\xbf-",
                                        "|\n a\n b"};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct err e = {0};
        void *object;

        if (load(texts[i], &object, &e) == 0) {
            form_free(&menu_schema, object);
            continue;
        }
        assert_true(str_startswith(e.text, "m.yaml:"));
        assert_null(strchr(e.text, '\033'));
        assert_null(strstr(e.text, "yaml:0"));
        assert_null(strstr(e.text + 7, "yaml"));
    }
}

static void keys_are_found_where_they_stand(void **state)
{
    static const char text[] = "# b: 1\na: {b: 1}\nc:\n  b: 2\n  'd': 3\n";
    struct form_text t = {"m.yaml", text, sizeof(text) - 1};

    assert_int_equal(form_line_of(&t, "a.b"), 2);
    assert_int_equal(form_line_of(&t, "c.b"), 4);
    assert_int_equal(form_line_of(&t, "c.d"), 5);
    assert_int_equal(form_line_of(&t, "c.x"), 3);
    assert_int_equal(form_line_of(&t, "x"), 1);
}

static void entries_are_found_where_they_stand(void **state)
{
    static const char text[] =
        "a:\n# - x: 0\n- x: 1\n\n  y:\n    - x: 2\n- x: 3\n  y: [{x: 4}]\nb:\n"
        "  - x: 5\n    y: 6\nc: 7\n- x: 8\n";
    struct form_text t = {"m.yaml", text, sizeof(text) - 1};

    assert_int_equal(form_line_of(&t, "a[1]"), 3);
    assert_int_equal(form_line_of(&t, "a[1].y"), 5);
    assert_int_equal(form_line_of(&t, "a[1].y[1].x"), 6);
    assert_int_equal(form_line_of(&t, "a[2].x"), 7);
    assert_int_equal(form_line_of(&t, "a[2].y[1].x"), 8);
    assert_int_equal(form_line_of(&t, "a[3]"), 1);
    assert_int_equal(form_line_of(&t, "b[1].y"), 11);
    assert_int_equal(form_line_of(&t, "c[1]"), 13);
    assert_int_equal(form_line_of(&t, "b[2]"), 9);
}

static void known_keys_are_counted(void **state)
{
    static const struct {
        const char *text;
        unsigned n;
    } cases[] = {
        {"", 0},
        {"title", 0},
        {"- title: a\n", 0},
        {"title: a\n", 1},
        {"x: title\nspecial: {title: b}\n'dishes': [{dishes: 1}]\n", 2},
        {"{title: [], x: *y, dishes: 1}\n", 2},
        {"title: a\nspecial: [\n", 2},
        {"title: a\n---\ndishes: []\n", 1},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct form_text t = {"m.yaml", cases[i].text, strlen(cases[i].text)};

        if (form_known_keys(&t, menu_fields) != cases[i].n)
            fail_msg("'%s': %u", cases[i].text, form_known_keys(&t, menu_fields));
    }
}

static void words_that_are_alike_are_near(void **state)
{
    assert_int_equal(str_distance("", ""), 0);
    assert_int_equal(str_distance("", "abc"), 3);
    assert_int_equal(str_distance("title", "titel"), 1);
    assert_int_equal(str_distance("retries", "retry"), 3);
    assert_int_equal(str_distance("role", "rol"), 1);
    assert_int_equal(str_distance("abcd", "badc"), 2);
    assert_int_equal(str_distance("kitten", "sitting"), 3);
    assert_int_equal(str_tolerance("ab"), 1);
    assert_int_equal(str_tolerance("a_long_word"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_right_is_loaded),
        cmocka_unit_test(nothing_is_no_fault),
        cmocka_unit_test(faults_are_told_in_plain_words),
        cmocka_unit_test(hostile_text_is_made_harmless),
        cmocka_unit_test(keys_are_found_where_they_stand),
        cmocka_unit_test(entries_are_found_where_they_stand),
        cmocka_unit_test(known_keys_are_counted),
        cmocka_unit_test(words_that_are_alike_are_near),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
