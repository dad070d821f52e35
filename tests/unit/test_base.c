/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/intset.h"
#include "base/sig.h"
#include "base/spawn.h"
#include "base/str.h"
#include "base/time.h"
#include "base/vec.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void durations_parse_and_refuse(void **state)
{
    usec_t us;

    assert_int_equal(duration_parse("90s", &us), 0);
    assert_int_equal(us, 90 * USEC_PER_SEC);
    assert_int_equal(duration_parse("1h 30m", &us), 0);
    assert_int_equal(us, 90 * USEC_PER_MIN);
    assert_int_equal(duration_parse("1.5s", &us), 0);
    assert_int_equal(us, 1500 * USEC_PER_MSEC);
    us = 7;
    assert_int_equal(duration_parse("90", &us), -EINVAL);
    assert_int_equal(duration_parse("", &us), -EINVAL);
    assert_int_equal(duration_parse("-5s", &us), -EINVAL);
    assert_int_equal(duration_parse("5 fortnights", &us), -EINVAL);
    assert_int_equal(duration_parse("99999999999999d", &us), -ERANGE);
    assert_int_equal(us, 7);
}

static void durations_format(void **state)
{
    char buf[DURATION_TEXT_MAX];

    assert_string_equal(duration_format(850 * USEC_PER_MSEC, buf), "850ms");
    assert_string_equal(duration_format(1400 * USEC_PER_MSEC, buf), "1.4s");
    assert_string_equal(duration_format(123 * USEC_PER_SEC, buf), "2min 03s");
    assert_string_equal(duration_format(200 * USEC_PER_MIN, buf), "3h 20min");
    assert_string_equal(duration_format(USEC_NEVER, buf), "never");
}

static void a_wait_is_never_endless(void **state)
{
    int wait;

    assert_int_equal(poll_timeout(USEC_UNKNOWN), 0);
    assert_int_equal(poll_timeout(mono_us()), 0);
    assert_int_equal(poll_timeout(mono_us() - USEC_PER_DAY), 0);
    assert_int_equal(poll_timeout(USEC_NEVER), 3600 * 1000);
    wait = poll_timeout(mono_us() + USEC_PER_MIN);
    assert_true(wait > 0 && wait <= 60 * 1000);
}

static void timestamps_format(void **state)
{
    char buf[TIMESTAMP_TEXT_MAX];
    usec_t us = days_from_civil(2024, 2, 29) * USEC_PER_DAY + 3 * USEC_PER_HOUR + 4500;

    assert_string_equal(timestamp_format(us, buf), "2024-02-29T03:00:00.004Z");
    assert_string_equal(timestamp_format(-1000, buf), "1969-12-31T23:59:59.999Z");
    assert_int_equal(days_from_civil(1970, 1, 1), 0);
    assert_int_equal(days_from_civil(2000, 3, 1), 11017);
}

#define FFFD "\xef\xbf\xbd"

static void hostile_text_is_made_printable(void **state)
{
    char out[64];

    str_sanitize(out, sizeof(out), "a\tb\x1b[0m\xff", 8);
    assert_string_equal(out, "a b\xef\xbf\xbd[0m\xef\xbf\xbd");
    /* overlong encoding, surrogate */
    str_sanitize(out, sizeof(out), "\xc0\xaf\xed\xa0\x80x", 6);
    assert_string_equal(out, FFFD FFFD FFFD FFFD FFFD "x");
    /* never cut inside a sequence */
    assert_int_equal(str_sanitize(out, 4, "ab\xc3\xa9", 4), 2);
}

static void what_cannot_be_seen_is_seen(void **state)
{
    static const char *const unseen[] = {
        "\u00ad", "\u034f", "\u061c", "\u115f", "\u180e", "\u200b",     "\u200d",     "\u200f",
        "\u2028", "\u2029", "\u202a", "\u202e", "\u2060", "\u2066",     "\u206f",     "\u3164",
        "\ufe0f", "\ufeff", "\uffa0", "\ufff9", "\ufffb", "\U000e0041", "\U000e0fff",
    };
    static const char *const seen[] = {
        "\u00a9", "\u00e9", "\u0350", "\u061b", "\u05d0", "\u1161", "\u2027",     "\u2030",
        "\u2070", "\u3165", "\u4e2d", "\ufdf0", "\ufffd", "\ufffc", "\U0001f600",
    };
    char out[16], text[16];

    for (size_t i = 0; i < ARRAY_SIZE(unseen); i++) {
        STR_PRINTF(text, "a%sb", unseen[i]);
        str_sanitize(out, sizeof(out), text, strlen(text));
        assert_string_equal(out, "a" FFFD "b");
    }
    for (size_t i = 0; i < ARRAY_SIZE(seen); i++) {
        str_sanitize(out, sizeof(out), seen[i], strlen(seen[i]));
        assert_string_equal(out, seen[i]);
    }
}

static void copies_are_bounded(void **state)
{
    char out[4];

    assert_true(STR_COPY(out, "abc"));
    assert_false(STR_COPY(out, "abcd"));
    assert_string_equal(out, "abc");
    assert_false(STR_COPY(out, "ab\xc3\xa9"));
    assert_string_equal(out, "ab");
}

static void intsets_keep_order_and_round_trip(void **state)
{
    struct intset s = {0}, back = {0};
    _cleanup_strbuf_ struct strbuf text = {0};

    assert_int_equal(intset_parse(&s, "9,0-3,7"), 0);
    assert_true(intset_has(&s, 2));
    assert_false(intset_has(&s, 4));
    assert_false(intset_add(&s, 9));
    intset_format(&s, &text);
    assert_string_equal(strbuf_str(&text), "0-3,7,9");
    assert_int_equal(intset_parse(&back, "0-99999999"), -ERANGE);
    assert_int_equal(intset_parse(&back, "1,,2"), -EINVAL);
    intset_done(&s);
    intset_done(&back);
}

static void a_sorted_array_is_found_in_and_added_to(void **state)
{
    static const int given[] = {50, 10, 30, 20, 40, 30};
    static const int sorted[] = {10, 20, 30, 30, 40, 50};
    VEC(int) v = {0};

    assert_int_equal(VEC_BISECT(&v, p, *p < 1), 0); /* of none */
    for (size_t i = 0; i < ARRAY_SIZE(given); i++)
        *VEC_INSERT(&v, VEC_BISECT(&v, p, *p < given[i])) = given[i];
    assert_int_equal(v.n, ARRAY_SIZE(sorted));
    assert_memory_equal(v.v, sorted, sizeof(sorted));
    assert_int_equal(VEC_BISECT(&v, p, *p < 10), 0);
    assert_int_equal(VEC_BISECT(&v, p, *p < 30), 2); /* the first of its like */
    assert_int_equal(VEC_BISECT(&v, p, *p < 31), 4);
    assert_int_equal(VEC_BISECT(&v, p, *p < 51), v.n);
    assert_int_equal(*VEC_INSERT(&v, 2), 0); /* zeroed, whatever stood there */
    VEC_DONE(&v);
}

static void signals_have_one_name_and_many_words(void **state)
{
    static const struct {
        const char *word;
        int number;
    } words[] = {
        {"SIGTERM", SIGTERM},
        {"term", SIGTERM},
        {"Terminated", SIGTERM},
        {"Killed", SIGKILL},
        {"Segmentation fault", SIGSEGV},
        {"SIG", 0},
        {"", 0},
        {"TERMINAL", 0},
        {"SIGTerminated", 0},
        {"9", 0},
        {"SIGSYS", SIGSYS},
    };
    char name[SIG_NAME_LEN];

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        assert_int_equal(sig_from_word(words[i].word, strlen(words[i].word)), words[i].number);
    for (int sig = 1; sig < 32; sig++) {
        sig_name(sig, name);
        if (str_startswith(name, "SIG"))
            assert_int_equal(sig_from_word(name, strlen(name)), sig);
    }
    assert_string_equal(sig_name(SIGKILL, name), "SIGKILL");
    assert_string_equal(sig_name(35, name), "signal 35");
    assert_string_equal(sig_name(INT_MIN, name), "signal -2147483");
}

static void a_signal_tells_no_more_of_its_sender_than_it_can(void **state)
{
    char sender[SIG_SENDER_LEN];

    (void)state;
    assert_string_equal(sig_sender(SIGINT, sender), "the user (Ctrl-C)");
    assert_string_equal(sig_sender(SIGTERM, sender), "somebody or the scheduler (SIGTERM)");
    assert_string_equal(sig_sender(SIGHUP, sender), "somebody or the end of the terminal (SIGHUP)");
    assert_true(sig_is_of_key(SIGQUIT) && !sig_is_of_key(SIGTERM));
}

static void an_end_is_told_as_a_shell_tells_it(void **state)
{
    assert_int_equal(sig_status(3, 0), 3);
    assert_int_equal(sig_status(-1, SIGKILL), 137);
    assert_true(sig_ended(-1, SIGKILL, SIGKILL));
    assert_true(sig_ended(137, 0, SIGKILL));
    assert_false(sig_ended(137, SIGTERM, SIGKILL));
    assert_false(sig_ended(9, 0, SIGKILL));
}

static void text_is_cut_where_a_line_may_end(void **state)
{
    (void)state;
    assert_int_equal(str_fit("one two three", 80), 13);
    assert_int_equal(str_fit("one two three", 8), 7);
    assert_int_equal(str_fit("one two three", 7), 7);
    assert_int_equal(str_fit("one two three", 6), 3);
    assert_int_equal(str_fit("onetwothree", 4), 4); /* no blank: anywhere */
    assert_int_equal(str_fit("\xc3\xa9\xc3\xa9\xc3\xa9", 2), 4);
    assert_int_equal(str_fit("", 4), 0);
}

static void test_a_program_is_killed_with_what_it_started(void **state)
{
    char *argv[] = {"/bin/sh", "-c", "sleep 1000 & echo; wait", NULL};
    int fds[2], status;
    pid_t pid;
    char c;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(spawn_program(argv, fds[1], &pid), 0);
    close(fds[1]);
    assert_int_equal(read(fds[0], &c, 1), 1);
    spawn_kill(pid);
    assert_int_equal(read(fds[0], &c, 1), 0); /* none of them holds it any more */
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    close(fds[0]);
    argv[0] = "/proc/none";
    assert_int_equal(spawn_program(argv, -1, &pid), -ENOENT);
}

static void test_numbers_in_texts(void **state)
{
    assert_true(str_has_number("slurm-42.out", 42));
    assert_true(str_has_number("42", 42));
    assert_true(str_has_number("142/a42", 42));
    assert_false(str_has_number("slurm-420.out 142", 42));
    assert_false(str_has_number("", 0));
}

static void test_lists_that_overlap(void **state)
{
    static const struct {
        const char *a, *b;
        bool overlap;
    } cases[] = {
        {"a", "a", true},       {"a", "b", false},       {"a,b", "b", true}, {"a,b", "c,b", true},
        {"ab", "a,b", false},   {"a,b", "ab,ba", false}, {"a", "aa", false}, {"aa", "a", false},
        {"a,bb,c", "b", false}, {"", "", true},          {"", "a", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(str_lists_overlap(cases[i].a, cases[i].b), cases[i].overlap);
        assert_int_equal(str_lists_overlap(cases[i].b, cases[i].a), cases[i].overlap);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_program_is_killed_with_what_it_started),
        cmocka_unit_test(test_numbers_in_texts),
        cmocka_unit_test(test_lists_that_overlap),
        cmocka_unit_test(durations_parse_and_refuse),
        cmocka_unit_test(durations_format),
        cmocka_unit_test(a_wait_is_never_endless),
        cmocka_unit_test(timestamps_format),
        cmocka_unit_test(hostile_text_is_made_printable),
        cmocka_unit_test(what_cannot_be_seen_is_seen),
        cmocka_unit_test(copies_are_bounded),
        cmocka_unit_test(intsets_keep_order_and_round_trip),
        cmocka_unit_test(a_sorted_array_is_found_in_and_added_to),
        cmocka_unit_test(signals_have_one_name_and_many_words),
        cmocka_unit_test(a_signal_tells_no_more_of_its_sender_than_it_can),
        cmocka_unit_test(an_end_is_told_as_a_shell_tells_it),
        cmocka_unit_test(text_is_cut_where_a_line_may_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
