/* SPDX-License-Identifier: Apache-2.0 */

/* What pickles and JSON of a flight recorder say, byte for byte; what comes of whole folders of
 * them is in tests/system/test_flight_recorder.py. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "flight/dump.h"
#include "flight/json_text.h"
#include "flight/pickle.h"

#include <errno.h>

#define READ(bytes, t, ret, e) pickle_read(bytes, sizeof(bytes) - 1, t, ret, e)

static int64_t number(const char *bytes, size_t len)
{
    _cleanup_(tree_done) struct tree t = {0};
    struct tree_value v;

    assert_int_equal(pickle_read(bytes, len, &t, &v, NULL), 0);
    assert_int_equal(v.kind, TREE_INT);
    return v.number;
}
#define NUMBER(bytes) number(bytes, sizeof(bytes) - 1)

static void numbers_are_what_python_wrote(void **state)
{
    assert_int_equal(NUMBER("K\xff."), 255);
    assert_int_equal(NUMBER("M\x01\x02."), 513);
    assert_int_equal(NUMBER("J\xfe\xff\xff\xff."), -2);
    assert_int_equal(NUMBER("I-12\n."), -12);
    assert_int_equal(NUMBER("L12L\n."), 12);
    assert_int_equal(NUMBER("\x8a\x00."), 0);
    assert_int_equal(NUMBER("\x8a\x01\xff."), -1);
    assert_int_equal(NUMBER("\x8a\x02\x00\x80."), -32768);
    assert_int_equal(NUMBER("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."), INT64_MIN);
    assert_int_equal(NUMBER("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00."), INT64_MAX);
    assert_int_equal(NUMBER("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00."), INT64_MAX);
    assert_int_equal(NUMBER("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\xff."), INT64_MIN);
    assert_int_equal(NUMBER("\x8b\x02\x00\x00\x00\x01\x01."), 257);
}

static void lists_are_filled_through_what_was_remembered(void **state)
{
    _cleanup_(tree_done) struct tree t = {0};
    struct tree_value v;

    /* a = []; two = [a, a]; a.append(7); two */
    assert_int_equal(READ("](]q\x05h\x05"
                          "e]h\x05K\x07"
                          "a00.",
                          &t, &v, NULL),
                     0);
    assert_int_equal(tree_count(&t, &v), 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(tree_at(&t, tree_at(&t, &v, i), 0)->number, 7);
}

static void keys_are_found_and_others_are_absent(void **state)
{
    _cleanup_(tree_done) struct tree t = {0};
    struct tree_value v;

    assert_int_equal(READ("}(U\x01"
                          "aK\x01X\x02\x00\x00\x00"
                          "bcK\x02u.",
                          &t, &v, NULL),
                     0);
    assert_int_equal(tree_int(tree_get(&t, &v, "a"), 0), 1);
    assert_int_equal(tree_int(tree_get(&t, &v, "bc"), 0), 2);
    assert_int_equal(tree_get(&t, &v, "b")->kind, TREE_ABSENT);
    assert_int_equal(tree_get(&t, tree_get(&t, &v, "a"), "a")->kind, TREE_ABSENT);
}

static void boxes_that_are_filled_in_turn_keep_what_they_have(void **state)
{
    _cleanup_(tree_done) struct tree t = {0};
    struct tree_value box[3], one = {.kind = TREE_INT};

    for (int i = 0; i < 3; i++)
        assert_int_equal(tree_new_box(&t, TREE_LIST, &box[i], NULL), 0);
    for (int i = 0; i < 3000; i++) {
        one.number = i;
        assert_int_equal(tree_add(&t, box[i % 3].box, &one, 1, NULL), 0);
    }
    for (size_t i = 0; i < 3000; i++)
        assert_int_equal(tree_at(&t, &box[i % 3], i / 3)->number, i);
    assert_true(t.items.n < 10000);
}

static const struct {
    const char *bytes, *name;
} objects[] = {
    {"cos\nsystem\n.", "GLOBAL"}, {"NR.", "REDUCE"},        {"Nb.", "BUILD"},
    {"(ios\nsystem\n.", "INST"},  {"(o.", "OBJ"},           {"Px\n.", "PERSID"},
    {"NQ.", "BINPERSID"},         {"\x81.", "NEWOBJ"},      {"\x82\x01.", "EXT1"},
    {"\x83\x01\x01.", "EXT2"},    {"\x84.", "EXT4"},        {"\x92.", "NEWOBJ_EX"},
    {"\x93.", "STACK_GLOBAL"},    {"\x97.", "NEXT_BUFFER"}, {"\x98.", "READONLY_BUFFER"},
};

static void what_is_no_data_is_refused_by_name(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
        _cleanup_(tree_done) struct tree t = {0};
        struct tree_value v;
        struct err e = {0};
        char want[64];

        assert_int_equal(pickle_read(objects[i].bytes, strlen(objects[i].bytes), &t, &v, &e),
                         -EPERM);
        STR_PRINTF(want, "opcode %s ", objects[i].name);
        assert_non_null(strstr(e.text, want));
    }
}

static const struct {
    const char *bytes;
    size_t len;
    int code;
} broken[] = {
#define BROKEN(bytes, code)                                                                        \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, code                                                             \
    }
    BROKEN("", -EBADMSG),
    BROKEN(".", -EBADMSG),
    BROKEN("0.", -EBADMSG),
    BROKEN("N", -EBADMSG),
    BROKEN("N0.", -EBADMSG),
    BROKEN("e.", -EBADMSG),
    BROKEN("NNa.", -EBADMSG),
    BROKEN("}NN(Nu.", -EBADMSG),
    BROKEN("}(Nu.", -EBADMSG),
    BROKEN("(Nd.", -EBADMSG),
    BROKEN("h\x01.", -EBADMSG),
    BROKEN("q\x01.", -EBADMSG),
    BROKEN("Nr\xff\xff\xff\xff.", -E2BIG),
    BROKEN("X\xff\xff\xff\xff"
           "a.",
           -EBADMSG),
    BROKEN("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
           "a.",
           -EBADMSG),
    BROKEN("U\x04"
           "abc",
           -EBADMSG),
    BROKEN("NU\x02.", -EBADMSG),
    BROKEN("\x8a\x02.", -EBADMSG),
    BROKEN("\x95\xff\xff\xff\xff\xff\xff\xff\xffN.", -EBADMSG),
    BROKEN("\x80\x06N.", -EBADMSG),
    BROKEN("I1x\n.", -EBADMSG),
    BROKEN("Ix\n.", -EBADMSG),
    BROKEN("S'a\n.", -EBADMSG),
    BROKEN("\x01.", -EBADMSG),
};

static void what_is_broken_is_refused_where_it_is(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
        _cleanup_(tree_done) struct tree t = {0};
        struct tree_value v;
        struct err e = {0};
        int r = pickle_read(broken[i].bytes, broken[i].len, &t, &v, &e);

        assert_int_equal(r, broken[i].code);
        assert_true(str_startswith(e.text, "at byte "));
    }
}

static void json_says_the_same(void **state)
{
    static const char text[] = " {\"a\": [1, -2.5, \"x\\\"y\", null, NaN, true, []], \"b\": {}} ";
    _cleanup_(tree_done) struct tree t = {0};
    const struct tree_value *a;
    struct tree_value v;

    assert_int_equal(json_text_read(text, strlen(text), &t, &v, NULL), 0);
    a = tree_get(&t, &v, "a");
    assert_int_equal(tree_count(&t, a), 7);
    assert_int_equal(tree_int(tree_at(&t, a, 0), 0), 1);
    assert_int_equal(tree_at(&t, a, 1)->kind, TREE_REAL);
    assert_int_equal(tree_at(&t, a, 2)->len, 4);
    assert_int_equal(tree_at(&t, a, 3)->kind, TREE_NONE);
    assert_int_equal(tree_at(&t, a, 4)->kind, TREE_NONE);
    assert_true(tree_true(tree_at(&t, a, 5)));
    assert_int_equal(tree_count(&t, tree_at(&t, a, 6)), 0);
    assert_int_equal(tree_get(&t, &v, "b")->kind, TREE_MAP);
}

static void every_beginning_of_json_is_refused(void **state)
{
    static const char text[] = "{\"a\": [1, {\"b\": \"c\"}, true], \"d\": null}";
    _cleanup_(tree_done) struct tree t = {0};
    struct tree_value v;
    struct err e;

    for (size_t n = 0; n < strlen(text); n++) {
        assert_int_equal(json_text_read(text, n, &t, &v, &e), -EBADMSG);
        assert_true(str_startswith(e.text, "at byte "));
    }
    assert_int_equal(json_text_read("{} x", 4, &t, &v, &e), -EBADMSG);
    assert_int_equal(json_text_read("[1 2]", 5, &t, &v, &e), -EBADMSG);
    assert_int_equal(json_text_read("{1: 2}", 6, &t, &v, &e), -EBADMSG);
}

static void a_word_is_one_word_whatever_a_release_calls_it(void **state)
{
    static const char text[] =
        "{\"entries\": [{\"process_group\": [\"0\", \"d\"], \"profiling_name\": "
        "\"nccl:_allgather_base\", \"collective_seq_id\": 1}, {\"process_group\": \"0\", "
        "\"profiling_name\": \"nccl:_all_gather_base\", \"collective_seq_id\": 2}, {\"pg_id\": 0, "
        "\"profiling_name\": \"nccl:send 1->2\", \"collective_seq_id\": 3}]}";
    _cleanup_(tree_done) struct tree t = {0};
    struct flight f = {0};
    struct flight_rank *r = flight_add_rank(&f, 5);

    assert_null(flight_add_rank(&f, 5));
    assert_int_equal(dump_read(text, strlen(text), &t, &f, r, NULL), 0);
    assert_int_equal(r->places.n, 1);
    assert_int_equal(r->ops.n, 3);
    assert_int_equal(r->ops.v[0].what, r->ops.v[1].what);
    assert_string_equal(flight_word(&f, r->ops.v[0].what), "all_gather_base");
    assert_true(r->ops.v[2].p2p && r->ops.v[2].sends);
    assert_int_equal(r->ops.v[2].peer, 2);
    assert_string_equal(flight_word(&f, r->ops.v[2].what), "send");
    flight_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_what_python_wrote),
        cmocka_unit_test(lists_are_filled_through_what_was_remembered),
        cmocka_unit_test(keys_are_found_and_others_are_absent),
        cmocka_unit_test(boxes_that_are_filled_in_turn_keep_what_they_have),
        cmocka_unit_test(what_is_no_data_is_refused_by_name),
        cmocka_unit_test(what_is_broken_is_refused_where_it_is),
        cmocka_unit_test(json_says_the_same),
        cmocka_unit_test(every_beginning_of_json_is_refused),
        cmocka_unit_test(a_word_is_one_word_whatever_a_release_calls_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
