/* SPDX-License-Identifier: Apache-2.0 */

/* JSON lines: cut anywhere, too long, no JSON, more than the far side takes, the end. */

#include "base/alloc.h"
#include "base/str.h"
#include "wire/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "until.h"

#define LONGEST  1000
#define OWED_MAX 100000

struct side {
    sd_event *event;
    struct lines *lines;
    int far;
    unsigned objects, bad, relieved, closed;
    json_int_t sum;
    bool close_at_once;
};

static void on_object(void *ctx, const json_t *j)
{
    struct side *s = ctx;

    s->objects++;
    s->sum += json_integer_value(json_object_get(j, "n"));
    if (s->close_at_once)
        lines_close(s->lines);
}

static void on_bad(void *ctx, const char *text)
{
    ((struct side *)ctx)->bad++;
}

static void on_relieved(void *ctx)
{
    ((struct side *)ctx)->relieved++;
}

static void on_closed(void *ctx)
{
    ((struct side *)ctx)->closed++;
}

static void begin(struct side *s)
{
    static const struct lines_options options = {.line_max = LONGEST, .owed_max = OWED_MAX};
    static const struct lines_handlers handlers = {
        .object = on_object, .bad = on_bad, .relieved = on_relieved, .closed = on_closed};
    int pair[2];

    *s = (struct side){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_true(sd_event_new(&s->event) >= 0);
    s->far = pair[1];
    s->lines = lines_new(s->event, pair[0], pair[0], &options, &handlers, s);
    assert_non_null(s->lines);
}

static void end(struct side *s)
{
    lines_free(s->lines);
    sd_event_unref(s->event);
    if (s->far >= 0)
        close(s->far);
}

#define RUN_UNTIL(s, condition)                                                                    \
    UNTIL(condition, assert_true(sd_event_run((s)->event, 100 * USEC_PER_MSEC) >= 0))

static void say(struct side *s, const char *text, size_t len)
{
    assert_int_equal(write(s->far, text, len), (ssize_t)len);
}

static void test_cut_anywhere(void **state)
{
    static const char text[] = "{\"n\":1}\n{\"n\":2,\"t\":\"\xc3\xa4\"}\n\n{\"n\":4}\n";

    for (size_t at = 1; at < sizeof(text) - 1; at++) {
        struct side s;

        begin(&s);
        say(&s, text, at);
        while (sd_event_run(s.event, 0) > 0)
            ;
        say(&s, text + at, sizeof(text) - 1 - at);
        RUN_UNTIL(&s, s.objects == 3);
        assert_int_equal(s.sum, 7);
        assert_int_equal(s.bad, 1); /* the empty one */
        end(&s);
    }
}

static void test_what_is_no_object_is_left_out(void **state)
{
    static const char *const bad[] = {
        "nonsense", "[1]", "7", "{\"n\":1", "{\"n\":1,\"n\":2}", "{\"t\":\"\xff\"}"};
    char longer[LONGEST + 2];
    struct side s;

    begin(&s);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        say(&s, bad[i], strlen(bad[i]));
        say(&s, "\n", 1);
    }
    memset(longer, ' ', sizeof(longer));
    say(&s, "{", 1);
    say(&s, longer, sizeof(longer));
    say(&s, "}\n{\"n\":5}\n", 10);
    RUN_UNTIL(&s, s.objects == 1);
    assert_int_equal(s.sum, 5);
    assert_int_equal(s.bad, ARRAY_SIZE(bad) + 1);
    end(&s);
}

static void test_owed(void **state)
{
    char buffer[65536];
    unsigned sent = 0, seen = 0;
    struct side s;
    ssize_t n;

    begin(&s);
    while (lines_send(s.lines, json_pack("{s:i,s:s}", "n", 1, "t", "some text")) == 0)
        sent++;
    assert_in_range(lines_owed(s.lines), OWED_MAX, OWED_MAX + LONGEST);
    assert_int_equal(fcntl(s.far, F_SETFL, O_NONBLOCK), 0);
    while (s.relieved == 0 || seen < sent) {
        assert_true(sd_event_run(s.event, 0) >= 0);
        n = read(s.far, buffer, sizeof(buffer));
        if (n > 0)
            seen += (unsigned)str_count(buffer, (size_t)n, '\n');
    }
    assert_int_equal(seen, sent);
    assert_int_equal(lines_owed(s.lines), 0);
    assert_int_equal(s.relieved, 1);
    end(&s);
}

static void test_end_is_told_once_and_later(void **state)
{
    struct side s;

    begin(&s);
    say(&s, "{\"n\":1}\n{\"n\":", 13);
    close(s.far);
    s.far = -1;
    RUN_UNTIL(&s, s.closed == 1);
    assert_int_equal(s.objects, 1);
    assert_int_equal(lines_send(s.lines, json_object()), 0);
    while (sd_event_run(s.event, 0) > 0)
        ;
    assert_int_equal(s.closed, 1);
    end(&s);

    begin(&s); /* writing finds out first */
    close(s.far);
    s.far = -1;
    lines_send(s.lines, json_object());
    assert_int_equal(s.closed, 0);
    RUN_UNTIL(&s, s.closed == 1);
    end(&s);
}

static void test_what_is_closed_reads_no_more(void **state)
{
    static const char text[] = "{\"n\":1}\n{\"n\":2}\nnonsense\n{\"n\":";
    struct side s;

    begin(&s);
    s.close_at_once = true;
    say(&s, text, strlen(text));
    RUN_UNTIL(&s, s.closed == 1);
    assert_int_equal(s.objects, 1);
    assert_int_equal(s.bad, 0);
    end(&s);
}

/* From then on it is somebody else's, with nothing lost of what comes. */
static void test_a_descriptor_is_released_between_two_lines(void **state)
{
    char text[8] = "";
    struct side s;
    int fd;

    begin(&s);
    say(&s, "{\"n\":1}\n{", 9);
    RUN_UNTIL(&s, s.objects == 1);
    assert_int_equal(lines_release(s.lines), -EBUSY); /* the next has begun */
    say(&s, "}\n", 2);
    RUN_UNTIL(&s, s.objects == 2);
    fd = lines_release(s.lines);
    assert_true(fd >= 0);
    s.lines = NULL;
    say(&s, "bytes", 5);
    while (sd_event_run(s.event, 0) > 0)
        ;
    assert_int_equal(read(fd, text, sizeof(text)), 5);
    assert_string_equal(text, "bytes");
    close(fd);
    end(&s);
}

/* Ten thousand agents are connected all the time. */
static void test_an_idle_connection_is_small(void **state)
{
    enum { COUNT = 100 };
    struct side sides[COUNT];
    size_t before = mallinfo2().uordblks, used;

    for (size_t i = 0; i < COUNT; i++) {
        begin(&sides[i]);
        say(&sides[i], "{\"n\":1}\n", 8);
        RUN_UNTIL(&sides[i], sides[i].objects == 1);
    }
    used = mallinfo2().uordblks - before;
    for (size_t i = 0; i < COUNT; i++)
        end(&sides[i]);
    assert_true(used < COUNT * 8192);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_what_is_no_object_is_left_out),
        cmocka_unit_test(test_owed),
        cmocka_unit_test(test_end_is_told_once_and_later),
        cmocka_unit_test(test_what_is_closed_reads_no_more),
        cmocka_unit_test(test_a_descriptor_is_released_between_two_lines),
        cmocka_unit_test(test_an_idle_connection_is_small),
    };

    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
