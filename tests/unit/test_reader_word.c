/* SPDX-License-Identifier: Apache-2.0 */

/* Whatever a reader says, what is taken of it has sound numbers, clean texts, and nobody else's
 * authority; and much of it is counted. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "source/reader_request.h"
#include "source/reader_word.h"
#include "wire/codec.h"

#include <string.h>

static struct event said; /* large */

static json_t *signal_json(const char *key, json_t *value)
{
    struct event e = {.kind = EVENT_SIGNAL, .job = "7-1700000000", .attempt = 1};
    json_t *j;

    e.signal = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL);
    STR_COPY(e.signal.text, "an error");
    j = codec_event_json(&e);
    if (key)
        json_object_set_new(json_object_get(j, "signal"), key, value);
    return j;
}

static bool take_signal(json_t *j)
{
    bool taken = reader_word_signal(j, &said);

    json_decref(j);
    return taken;
}

static void a_signal_is_the_jobs_own_word(void **state)
{
    assert_true(take_signal(signal_json(NULL, NULL)));
    assert_int_equal(said.signal.provenance, PROVENANCE_JOB_TEXT);
    assert_string_equal(said.signal.text, "an error");
}

static void what_is_no_signal_of_a_log_is_none(void **state)
{
    struct event end = {.kind = EVENT_ATTEMPT_GONE, .job = "7-1700000000", .attempt = 1};

    assert_false(take_signal(codec_event_json(&end)));
    assert_false(take_signal(json_object()));
    assert_false(take_signal(signal_json("file", json_integer(READER_FILES_MAX))));
    assert_false(take_signal(signal_json("confidence", json_integer(101))));
    assert_true(take_signal(signal_json("file", json_integer(READER_FILES_MAX - 1))));
}

static void texts_are_clean_and_places_in_them_exist(void **state)
{
    assert_true(take_signal(signal_json("text", json_string("red \x1b[31m"))));
    assert_null(strchr(said.signal.text, '\x1b'));
    assert_true(take_signal(signal_json("message", json_integer(200))));
    assert_int_equal(said.signal.message, 0);
}

static void a_file_has_a_number_and_a_clean_name(void **state)
{
    struct reader_file f = {.file = 7};
    json_t *j = json_pack("{s:i,s:s,s:s,s:b}", "file", 3, "path", "/a\nb", "trouble", "\x07gone",
                          "local", 1);

    assert_true(reader_word_file(j, &f));
    assert_int_equal(f.file, 3);
    assert_null(strchr(f.path, '\n'));
    assert_null(strchr(f.trouble, '\x07'));
    assert_true(f.local);
    json_object_set_new(j, "trouble", json_null());
    assert_true(reader_word_file(j, &f));
    assert_string_equal(f.trouble, "");
    json_object_set_new(j, "file", json_integer(-1));
    assert_false(reader_word_file(j, &f));
    json_object_set_new(j, "file", json_integer(READER_FILES_MAX));
    assert_false(reader_word_file(j, &f));
    json_decref(j);
}

static void how_many_there_are_is_counted_anew_each_second(void **state)
{
    struct reader_rate r = {0};
    usec_t now = 100 * USEC_PER_SEC;

    assert_int_equal(reader_rate_count(&r, now), 1);
    assert_int_equal(reader_rate_count(&r, now + USEC_PER_SEC - 1), 2);
    assert_int_equal(reader_rate_count(&r, now + USEC_PER_SEC), 1);
}

/* So that a reader that root runs knows whose files are the job's. */
static void a_reader_is_told_whose_job_it_is(void **state)
{
    struct log_paths p = {.std_out = "x", .job_id = 7};
    json_t *q = reader_request_new("7-1700000000", 1234, 1, &p);

    assert_int_equal(json_integer_value(json_object_get(q, "uid")), 1234);
    json_decref(q);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_is_the_jobs_own_word),
        cmocka_unit_test(what_is_no_signal_of_a_log_is_none),
        cmocka_unit_test(texts_are_clean_and_places_in_them_exist),
        cmocka_unit_test(a_file_has_a_number_and_a_clean_name),
        cmocka_unit_test(how_many_there_are_is_counted_anew_each_second),
        cmocka_unit_test(a_reader_is_told_whose_job_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
