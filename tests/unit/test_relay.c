/* SPDX-License-Identifier: Apache-2.0 */

/* The relay: output passes, unchanged and in order, whatever its reader does. */

#include "base/str.h"
#include "source/relay.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "until.h"

struct far_side {
    sd_event *event;
    struct strbuf data[2];
    bool ended, flushed_last, reader_gone, delivered;
    bool stays; /* the loop goes on behind the end */
};

static void relay_data(void *ctx, unsigned stream, const char *data, size_t len)
{
    struct far_side *f = ctx;

    strbuf_add(&f->data[stream], data, len);
    f->flushed_last = false;
}

static void relay_flush(void *ctx)
{
    ((struct far_side *)ctx)->flushed_last = true;
}

static void relay_reader_gone(void *ctx)
{
    ((struct far_side *)ctx)->reader_gone = true;
}

static void relay_ended(void *ctx)
{
    struct far_side *f = ctx;

    f->ended = true;
    assert_true(f->flushed_last);
    if (!f->stays)
        sd_event_exit(f->event, 0);
}

static void relay_delivered(void *ctx)
{
    struct far_side *f = ctx;

    assert_true(f->ended);
    f->delivered = true;
}

static const struct relay_handlers relay_handlers = {.data = relay_data,
                                                     .flush = relay_flush,
                                                     .reader_gone = relay_reader_gone,
                                                     .ended = relay_ended,
                                                     .delivered = relay_delivered};

static void far_side_init(struct far_side *f, struct relay **ret)
{
    *f = (struct far_side){.flushed_last = true};
    assert_true(sd_event_new(&f->event) >= 0);
    *ret = relay_new(f->event, &relay_handlers, f);
    assert_non_null(*ret);
}

static void far_side_done(struct far_side *f)
{
    strbuf_done(&f->data[0]);
    strbuf_done(&f->data[1]);
    sd_event_unref(f->event);
}

/* A descriptor from which a number can be read once a millisecond. */
static int make_pace(void)
{
    struct itimerspec each = {{.tv_nsec = 1000000}, {.tv_nsec = 1000000}};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

    if (fd < 0 || timerfd_settime(fd, 0, &each, NULL) < 0)
        _exit(1);
    return fd;
}

/* Writes n numbered lines to fd and ends, at full speed or in small steps. */
static pid_t start_printer(int fd, int n, bool slowly)
{
    pid_t pid = fork();
    uint64_t ticks;
    int pace;

    if (pid != 0)
        return pid;
    pace = make_pace();
    for (int i = 0; i < n; i++) {
        char line[32];
        int len = snprintf(line, sizeof(line), "line %d\n", i);

        if (slowly && i % 8 == 0 && read(pace, &ticks, sizeof(ticks)) != sizeof(ticks))
            _exit(1);
        if (write(fd, line, (size_t)len) != len)
            _exit(1);
    }
    _exit(0);
}

static void check_lines(const struct strbuf *b, int n)
{
    const char *at = strbuf_str(b);

    for (int i = 0; i < n; i++) {
        char line[32];
        int len = snprintf(line, sizeof(line), "line %d\n", i);

        assert_memory_equal(at, line, (size_t)len);
        at += len;
    }
    assert_int_equal(*at, '\0');
}

static void pass_lines(int n, bool slowly)
{
    struct far_side f;
    struct relay *r;
    int p[2], out = open("/dev/null", O_WRONLY | O_CLOEXEC), status;
    pid_t pid;

    far_side_init(&f, &r);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid = start_printer(p[1], n, slowly);
    close(p[1]);
    assert_int_equal(relay_add(r, p[0], out), 0);
    sd_event_loop(f.event);
    assert_true(f.ended);
    check_lines(&f.data[0], n);
    assert_true(relay_at_line_start(r, 0));
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    relay_free(r);
    close(out);
    far_side_done(&f);
}

static void many_lines_pass(void **state)
{
    (void)state;
    pass_lines(100000, false);
}

static void lines_at_a_pace_pass(void **state)
{
    (void)state;
    pass_lines(4000, true);
}

/* The busy one is read by the clock, the other when it has something; what it says last is not
 * lost. */
static void a_silent_stream_beside_a_busy_one_is_heard(void **state)
{
    struct far_side f;
    struct relay *r;
    int busy[2], silent[2], out = open("/dev/null", O_WRONLY | O_CLOEXEC), status;
    pid_t pid;

    (void)state;
    far_side_init(&f, &r);
    assert_int_equal(pipe2(busy, O_CLOEXEC), 0);
    assert_int_equal(pipe2(silent, O_CLOEXEC), 0);
    pid = start_printer(busy[1], 4000, true);
    close(busy[1]);
    assert_int_equal(relay_add(r, busy[0], out), 0);
    assert_int_equal(relay_add(r, silent[0], out), 1);
    UNTIL(f.data[0].len >= 20000, sd_event_run(f.event, 10000));
    assert_int_equal(write(silent[1], "an error\n", 9), 9);
    UNTIL(f.data[1].len >= 9, sd_event_run(f.event, 10000));
    assert_string_equal(strbuf_str(&f.data[1]), "an error\n");
    assert_true(f.data[0].len < 38890); /* while the busy one goes on */
    assert_int_equal(write(silent[1], "the end", 7), 7);
    close(silent[1]);
    sd_event_loop(f.event);
    assert_true(f.ended);
    check_lines(&f.data[0], 4000);
    assert_string_equal(strbuf_str(&f.data[1]), "an error\nthe end");
    waitpid(pid, &status, 0);
    relay_free(r);
    close(out);
    far_side_done(&f);
}

/* The reader of our output takes nothing for a while: nothing is lost, the loop is not stopped, and
 * the stream counts as blocked. */
static void a_reader_that_waits_loses_nothing(void **state)
{
    struct far_side f;
    struct relay *r;
    int in[2], out[2], status;
    struct strbuf got = {0};
    char buffer[65536];
    pid_t pid;
    ssize_t n;

    (void)state;
    far_side_init(&f, &r);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid = start_printer(in[1], 200000, false);
    close(in[1]);
    assert_int_equal(relay_add(r, in[0], out[1]), 0);
    UNTIL(relay_is_blocked(r), sd_event_run(f.event, 10000));
    assert_int_equal(fcntl(out[1], F_GETFL) & O_NONBLOCK, 0); /* the shared file is as it was */
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    UNTIL(f.ended && !relay_is_blocked(r), {
        while ((n = read(out[0], buffer, sizeof(buffer))) > 0)
            strbuf_add(&got, buffer, (size_t)n);
        if (!f.ended)
            sd_event_run(f.event, 10000);
    });
    while ((n = read(out[0], buffer, sizeof(buffer))) > 0)
        strbuf_add(&got, buffer, (size_t)n);
    check_lines(&got, 200000);
    waitpid(pid, &status, 0);
    relay_free(r);
    close(out[0]);
    close(out[1]);
    strbuf_done(&got);
    far_side_done(&f);
}

static void a_reader_that_is_gone_is_told_once(void **state)
{
    struct far_side f;
    struct relay *r;
    int in[2], out[2], status;
    pid_t pid;

    (void)state;
    signal(SIGPIPE, SIG_IGN);
    far_side_init(&f, &r);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    close(out[0]);
    pid = start_printer(in[1], 1000, false);
    close(in[1]);
    assert_int_equal(relay_add(r, in[0], out[1]), 0);
    sd_event_loop(f.event);
    assert_true(f.reader_gone);
    check_lines(&f.data[0], 1000); /* still seen and kept */
    waitpid(pid, &status, 0);
    relay_free(r);
    close(out[1]);
    far_side_done(&f);
}

/* A process that nobody can reach holds the pipe open: the end is what there is now. */
static void finish_does_not_wait_for_a_stray_writer(void **state)
{
    struct far_side f;
    struct relay *r;
    int in[2], out = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)state;
    far_side_init(&f, &r);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(relay_add(r, in[0], out), 0);
    assert_int_equal(write(in[1], "last words", 10), 10);
    relay_finish(r);
    assert_true(f.ended);
    assert_string_equal(strbuf_str(&f.data[0]), "last words");
    assert_false(relay_at_line_start(r, 0));
    relay_free(r);
    close(in[1]);
    close(out);
    far_side_done(&f);
}

/* A reader that takes nothing, and a job whose last lines are in a pipe. */
struct paused {
    struct far_side f;
    struct relay *r;
    int in, out[2];
    struct strbuf got;
};

static void print_lines(int fd, int from, int to)
{
    for (int i = from; i < to; i++) {
        char line[32];
        int len = snprintf(line, sizeof(line), "line %d\n", i);

        assert_int_equal(write(fd, line, (size_t)len), len);
    }
}

/* Adds the stream of one more attempt. */
static struct relay *next_relay(struct paused *p)
{
    struct relay *r = relay_new(p->f.event, &relay_handlers, &p->f);
    int in[2];

    assert_non_null(r);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(relay_add(r, in[0], p->out[1]), 0);
    p->in = in[1];
    p->f.ended = p->f.delivered = false;
    return r;
}

static void paused_init(struct paused *p)
{
    *p = (struct paused){.f = {.flushed_last = true, .stays = true}};
    assert_true(sd_event_new(&p->f.event) >= 0);
    assert_int_equal(pipe2(p->out, O_CLOEXEC), 0);
    fcntl(p->out[0], F_SETFL, O_NONBLOCK);
    p->r = next_relay(p);
}

static void paused_done(struct paused *p)
{
    relay_free(p->r);
    close(p->out[0]);
    close(p->out[1]);
    strbuf_done(&p->got);
    far_side_done(&p->f);
}

static void take_all(struct paused *p)
{
    char buffer[65536];
    ssize_t n;

    UNTIL(p->f.delivered, {
        while ((n = read(p->out[0], buffer, sizeof(buffer))) > 0)
            strbuf_add(&p->got, buffer, (size_t)n);
        sd_event_run(p->f.event, 10000);
    });
    while ((n = read(p->out[0], buffer, sizeof(buffer))) > 0)
        strbuf_add(&p->got, buffer, (size_t)n);
}

/* What a dead job printed last says why it died: it is seen at once, and still reaches a reader
 * that pauses. */
static void the_last_words_do_not_wait_for_the_reader(void **state)
{
    struct paused p;

    (void)state;
    paused_init(&p);
    print_lines(p.in, 0, 30000);
    close(p.in);
    relay_finish(p.r);
    assert_true(p.f.ended);
    assert_false(p.f.delivered);
    check_lines(&p.f.data[0], 30000);
    assert_true(relay_is_blocked(p.r));
    assert_true(relay_owed(p.r) > 0 && relay_owed(p.r) < p.f.data[0].len);
    take_all(&p);
    assert_true(p.f.delivered);
    check_lines(&p.got, 30000);
    assert_int_equal(relay_owed(p.r), 0);
    assert_int_equal(relay_dropped(p.r), 0);
    paused_done(&p);
}

/* Two attempts end while the reader pauses: it gets the lines of both, in order. */
static void what_is_owed_goes_before_the_next_attempt(void **state)
{
    struct paused p;
    struct relay *old;

    (void)state;
    paused_init(&p);
    print_lines(p.in, 0, 30000);
    close(p.in);
    relay_finish(p.r);
    old = p.r;
    p.r = next_relay(&p);
    relay_inherit(p.r, old);
    assert_int_equal(relay_owed(old), 0);
    relay_free(old);
    print_lines(p.in, 30000, 50000);
    sd_event_run(p.f.event, 0);
    assert_null(strstr(strbuf_str(&p.f.data[0]), "line 30000")); /* a live job waits */
    close(p.in);
    relay_finish(p.r);
    assert_true(p.f.ended);
    take_all(&p);
    check_lines(&p.got, 50000);
    paused_done(&p);
}

/* The first process has ended, others live on: reading goes on beyond the reader, but not forever.
 */
static void an_ending_job_is_read_ahead(void **state)
{
    struct paused p;
    char block[4096];
    size_t written = 0;
    ssize_t n;

    (void)state;
    paused_init(&p);
    memset(block, 'x', sizeof(block));
    fcntl(p.in, F_SETFL, O_NONBLOCK);
    relay_read_ahead(p.r);
    for (int idle = 0; idle < 20;) {
        n = write(p.in, block, sizeof(block));
        written += n > 0 ? (size_t)n : 0;
        idle = n > 0 ? 0 : idle + 1;
        sd_event_run(p.f.event, 10000);
    }
    assert_in_range(relay_owed(p.r), 1 << 20, 2 << 20);
    close(p.in);
    relay_finish(p.r);
    assert_int_equal(p.f.data[0].len, written);
    assert_int_equal(relay_dropped(p.r), 0);
    paused_done(&p);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_lines_pass),
        cmocka_unit_test(lines_at_a_pace_pass),
        cmocka_unit_test(a_silent_stream_beside_a_busy_one_is_heard),
        cmocka_unit_test(a_reader_that_waits_loses_nothing),
        cmocka_unit_test(a_reader_that_is_gone_is_told_once),
        cmocka_unit_test(finish_does_not_wait_for_a_stray_writer),
        cmocka_unit_test(the_last_words_do_not_wait_for_the_reader),
        cmocka_unit_test(what_is_owed_goes_before_the_next_attempt),
        cmocka_unit_test(an_ending_job_is_read_ahead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
