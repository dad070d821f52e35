/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes between two sockets: none is lost, whoever is slow, and last words arrive. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/ferry.h"
#include "base/time.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "until.h"

#define MUCH (3 << 20)

struct world {
    sd_event *event;
    struct ferry *ferry;
    int a, b; /* our ends */
    unsigned ended;
};

static void on_ended(void *ctx)
{
    struct world *w = ctx;

    w->ended++;
    w->ferry = ferry_free(w->ferry);
}

static void begin(struct world *w)
{
    int a[2], b[2];

    *w = (struct world){0};
    assert_true(sd_event_new(&w->event) >= 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, a), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, b), 0);
    w->a = a[0];
    w->b = b[0];
    w->ferry = ferry_new(w->event, a[1], b[1], on_ended, w);
    assert_non_null(w->ferry);
}

static void end(struct world *w)
{
    ferry_free(w->ferry);
    sd_event_unref(w->event);
    close(w->a);
    close(w->b);
}

static void turn(struct world *w)
{
    assert_true(sd_event_run(w->event, 5 * USEC_PER_MSEC) >= 0);
}

/* As many of the bytes from `sent` on as are taken. */
static size_t put(int fd, size_t sent, size_t max)
{
    unsigned char text[1000];
    ssize_t n;

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (unsigned char)((sent + i) % 251);
    n = send(fd, text, max < sizeof(text) ? max : sizeof(text), MSG_NOSIGNAL);
    return n > 0 ? (size_t)n : 0;
}

static size_t get(int fd, size_t got)
{
    unsigned char text[700];
    ssize_t n = recv(fd, text, sizeof(text), 0);

    for (ssize_t i = 0; i < n; i++)
        assert_int_equal(text[i], (got + (size_t)i) % 251);
    return n > 0 ? (size_t)n : 0;
}

static void test_all_of_it_arrives_both_ways(void **state)
{
    struct world w;
    size_t sent[2] = {0}, got[2] = {0};

    begin(&w);
    UNTIL(got[0] == MUCH && got[1] == MUCH, {
        for (int i = 0; i < 40; i++) {
            sent[0] += put(w.a, sent[0], MUCH - sent[0]);
            sent[1] += put(w.b, sent[1], MUCH - sent[1]);
        }
        turn(&w);
        for (int i = 0; i < 40; i++) {
            got[0] += get(w.b, got[0]);
            got[1] += get(w.a, got[1]);
        }
    });
    assert_int_equal(w.ended, 0);
    end(&w);
}

/* Who takes nothing holds up who speaks, at a bound. */
static void test_a_slow_side_holds_the_other_up(void **state)
{
    struct world w;
    size_t sent = 0, before = 1;

    begin(&w);
    while (sent != before) {
        before = sent;
        for (int i = 0; i < 10; i++) {
            sent += put(w.a, sent, 1000);
            turn(&w);
        }
    }
    assert_in_range(sent, 1, 4 << 20);
    end(&w);
}

static void test_last_words_arrive_and_then_it_ends(void **state)
{
    struct world w;
    size_t sent = 0, got = 0, n;

    begin(&w);
    while ((n = put(w.a, sent, 1000)) > 0) /* more than it holds at once */
        sent += n;
    close(w.a);
    w.a = -1;
    UNTIL(w.ended > 0, {
        turn(&w);
        for (int i = 0; i < 200; i++)
            got += get(w.b, got);
    });
    while ((n = get(w.b, got)) > 0)
        got += n;
    assert_int_equal(got, sent);
    assert_int_equal(w.ended, 1);
    end(&w);
}

/* A program that died without reading what it was asked, but said why. */
static void test_who_hears_nothing_is_heard(void **state)
{
    struct world w;
    char text[8] = "";

    begin(&w);
    assert_int_equal(send(w.b, "why", 3, MSG_NOSIGNAL), 3);
    close(w.b);
    w.b = -1;
    assert_int_equal(send(w.a, "question", 8, MSG_NOSIGNAL), 8);
    UNTIL(w.ended > 0, turn(&w));
    assert_int_equal(recv(w.a, text, sizeof(text), 0), 3);
    assert_string_equal(text, "why");
    end(&w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_it_arrives_both_ways),
        cmocka_unit_test(test_a_slow_side_holds_the_other_up),
        cmocka_unit_test(test_last_words_arrive_and_then_it_ends),
        cmocka_unit_test(test_who_hears_nothing_is_heard),
    };

    return cmocka_run_group_tests_name("ferry", tests, NULL, NULL);
}
