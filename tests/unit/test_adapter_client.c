/* SPDX-License-Identifier: Apache-2.0 */

/* The daemon's side of an adapter: programs that end, hang, chatter and come late. They are shell
 * scripts. */

#include "base/str.h"
#include "source/adapter.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "until.h"

#define HELLO "echo '{\"hello\":{\"protocol\":1,\"adapter\":\"sh\",\"version\":\"1\"}}';"
#define SOON  (100 * USEC_PER_MSEC)
#define RUN_UNTIL(w, condition)                                                                    \
    UNTIL(condition, assert_true(sd_event_run((w)->event, 100 * USEC_PER_MSEC) >= 0))
#define ASKED_MAX 4

struct world {
    sd_event *event;
    struct adapter *adapter;
    unsigned hellos, downs, strays, answered;
    enum adapter_outcome outcomes[ASKED_MAX]; /* as they came */
    size_t size;                              /* of the last answer's text */
    char down[256];
    bool unwanted;
};

static void on_hello(void *ctx, const json_t *hello)
{
    ((struct world *)ctx)->hellos++;
}

static void on_down(void *ctx, const char *text)
{
    struct world *w = ctx;

    w->downs++;
    STR_COPY(w->down, text);
}

static void on_stray(void *ctx)
{
    ((struct world *)ctx)->strays++;
}

static void on_reply(void *ctx, enum adapter_outcome outcome, const json_t *answer,
                     const char *text)
{
    struct world *w = ctx;

    assert_true(w->answered < ASKED_MAX);
    w->outcomes[w->answered++] = outcome;
    w->size = json_string_length(json_object_get(answer, "much"));
}

static void begin(struct world *w, const char *script)
{
    static const struct adapter_handlers handlers = {
        .hello = on_hello, .down = on_down, .stray = on_stray};
    const char *argv[] = {"/bin/sh", "-c", script, NULL};

    *w = (struct world){0};
    assert_true(sd_event_new(&w->event) >= 0);
    w->adapter = adapter_new(w->event, argv, NULL, &handlers, w);
    assert_non_null(w->adapter);
}

static void ask(struct world *w, usec_t deadline)
{
    adapter_ask(w->adapter, json_pack("{s:s}", "op", "ping"), deadline, on_reply, w);
}

static bool is_wanted(void *ctx)
{
    return !((struct world *)ctx)->unwanted;
}

static void ask_if_wanted(struct world *w)
{
    adapter_ask_if(w->adapter, json_pack("{s:s}", "op", "requeue"), 10 * USEC_PER_SEC, is_wanted,
                   on_reply, w);
}

static void end(struct world *w)
{
    adapter_free(w->adapter);
    sd_event_unref(w->event);
}

/* The loop does not run meanwhile. */
static void pause_for(usec_t span)
{
    struct itimerspec t = {
        .it_value = {.tv_sec = span / USEC_PER_SEC, .tv_nsec = (long)(span % USEC_PER_SEC) * 1000}};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    uint64_t n;

    assert_true(fd >= 0);
    assert_int_equal(timerfd_settime(fd, 0, &t, NULL), 0);
    assert_int_equal(read(fd, &n, sizeof(n)), sizeof(n));
    close(fd);
}

static void test_only_the_first_can_have_been_begun(void **state)
{
    struct world w;

    begin(&w, HELLO "read x; exit 75");
    RUN_UNTIL(&w, w.hellos > 0);
    for (int i = 0; i < 3; i++)
        ask(&w, 10 * USEC_PER_SEC);
    RUN_UNTIL(&w, w.answered == 3);
    assert_int_equal(w.outcomes[0], ADAPTER_UNKNOWN);
    assert_int_equal(w.outcomes[1], ADAPTER_UNREACHABLE);
    assert_int_equal(w.outcomes[2], ADAPTER_UNREACHABLE);
    end(&w);
}

static void test_one_that_hangs_is_killed(void **state)
{
    struct world w;

    begin(&w, HELLO "exec sleep 1000");
    RUN_UNTIL(&w, w.hellos > 0);
    ask(&w, SOON);
    RUN_UNTIL(&w, w.answered == 1);
    assert_int_equal(w.outcomes[0], ADAPTER_UNKNOWN);
    assert_non_null(strstr(w.down, "in time"));
    end(&w);
}

/* The loop does not run for so long that the deadline passes; then much of the answer is still to
 * be read. */
static void test_an_answer_counts_after_a_pause_of_our_own(void **state)
{
    struct world w;

    begin(&w, HELLO "read x; printf '{\"id\":1,\"ok\":true,\"much\":\"';"
                    "head -c 1000000 /dev/zero | tr '\\0' x; echo '\"}'; exec cat >/dev/null");
    RUN_UNTIL(&w, w.hellos > 0);
    ask(&w, SOON);
    pause_for(ADAPTER_PATIENCE + SOON + USEC_PER_SEC / 2);
    RUN_UNTIL(&w, w.answered == 1);
    assert_int_equal(w.outcomes[0], ADAPTER_DONE);
    assert_int_equal(w.size, 1000000);
    assert_int_equal(w.downs, 0);
    end(&w);
}

static void test_another_protocol(void **state)
{
    struct world w;

    begin(&w, "echo '{\"hello\":{\"protocol\":2}}'; exec cat >/dev/null");
    RUN_UNTIL(&w, w.downs > 0);
    assert_non_null(strstr(w.down, "protocol"));
    assert_int_equal(w.hellos, 0);
    assert_false(adapter_is_up(w.adapter));
    end(&w);
}

static void test_what_was_not_asked(void **state)
{
    struct world w;

    begin(&w, HELLO "read x; for i in 7 8 9; do echo '{\"id\":'$i',\"ok\":true}'; done;"
                    "echo '{\"id\":1,\"ok\":true}'; exec cat >/dev/null");
    RUN_UNTIL(&w, w.hellos > 0);
    ask(&w, 10 * USEC_PER_SEC);
    RUN_UNTIL(&w, w.answered == 1);
    assert_int_equal(w.outcomes[0], ADAPTER_DONE);
    assert_int_equal(w.strays, 1);
    end(&w);

    begin(&w, HELLO "while echo '{\"id\":7,\"ok\":true}'; do :; done");
    RUN_UNTIL(&w, w.downs > 0);
    assert_non_null(strstr(w.down, "no end of it"));
    assert_int_equal(w.strays, 1);
    end(&w);
}

/* Somebody says so while the scheduler takes its time for what was asked before. */
static void test_what_is_not_wanted_when_its_turn_comes_is_not_sent(void **state)
{
    struct world w;

    begin(&w, HELLO "read x; echo '{\"id\":1,\"ok\":true}'; read x; echo '{\"id\":4,\"ok\":true}';"
                    "exec cat >/dev/null");
    RUN_UNTIL(&w, w.hellos > 0);
    ask(&w, 10 * USEC_PER_SEC);
    ask_if_wanted(&w);
    ask_if_wanted(&w);
    ask(&w, 10 * USEC_PER_SEC);
    w.unwanted = true;
    RUN_UNTIL(&w, w.answered == 4);
    assert_int_equal(w.outcomes[0], ADAPTER_DONE);
    assert_int_equal(w.outcomes[1], ADAPTER_UNREACHABLE);
    assert_int_equal(w.outcomes[2], ADAPTER_UNREACHABLE);
    assert_int_equal(w.outcomes[3], ADAPTER_DONE); /* the next that it was sent */
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_first_can_have_been_begun),
        cmocka_unit_test(test_one_that_hangs_is_killed),
        cmocka_unit_test(test_what_is_not_wanted_when_its_turn_comes_is_not_sent),
        cmocka_unit_test(test_an_answer_counts_after_a_pause_of_our_own),
        cmocka_unit_test(test_another_protocol),
        cmocka_unit_test(test_what_was_not_asked),
    };
    sigset_t mask;

    sigemptyset(&mask); /* as the daemon does: its children's ends come by the loop */
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
