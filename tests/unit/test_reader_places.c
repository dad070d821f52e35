/* SPDX-License-Identifier: Apache-2.0 */

/* Where a job is read: readers of nodes, which the test plays, are asked for, refused, lost, and
 * say where they are in the wrong place. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/vec.h"
#include "core/model/event.h"
#include "source/readers.h"
#include "wire/codec.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "until.h"

#define JOB "7-1700000000"

struct question {
    char node[NODE_NAME_LEN];
    int64_t number;
    uid_t uid;
};

struct world {
    sd_event *event;
    struct children *children;
    struct node_readers *nodes;
    struct readers *readers;
    VEC(struct question) asked;
    size_t answered;
    const char *home, *elsewhere;
    char other_than[NODE_NAME_LEN];
    int refusal;         /* of what is asked, at once */
    VEC(uint32_t) files; /* of signals */
    unsigned drained;
    unsigned n_told; /* of files that cannot be read, and that can after all */
    char told[300];  /* the last */
};

struct played {
    struct world *w;
    int fd;
    char node[NODE_NAME_LEN];
    char line[8192];
};

static int on_ask(void *ctx, const char *node, int64_t question, uid_t uid, gid_t gid,
                  struct err *e)
{
    struct world *w = ctx;
    struct question *q;

    if (w->refusal < 0)
        return err_set(e, w->refusal, "not now");
    q = VEC_PUSH(&w->asked);
    *q = (struct question){.number = question, .uid = uid};
    STR_COPY(q->node, node);
    return 0;
}

static void on_signal(void *ctx, const char *job, uint32_t attempt, const struct signal *s)
{
    struct world *w = ctx;

    *VEC_PUSH(&w->files) = s->file;
}

static void on_gap(void *ctx, const char *job, uint32_t attempt, const char *text)
{
}

static void on_drained(void *ctx, const char *job, uint32_t attempt)
{
    ((struct world *)ctx)->drained++;
}

static void on_read(void *ctx, const char *job, uint32_t attempt, bool is_read)
{
}

static void on_file(void *ctx, const char *job, uint32_t attempt, uint32_t file, const char *path,
                    const char *trouble)
{
}

static void on_named(void *ctx, const char *job, uint32_t attempt, uint32_t file, const char *path,
                     const char *trouble)
{
    struct world *w = ctx;

    w->n_told++;
    STR_PRINTF(w->told, "%u %s: %s", file, path, !trouble ? "named" : *trouble ? trouble : "read");
}

static void on_state(void *ctx, uid_t uid, const char *node, const char *text)
{
}

static const char *on_home(void *ctx, const char *job, uint32_t attempt)
{
    return ((struct world *)ctx)->home;
}

static const char *on_elsewhere(void *ctx, const char *job, uint32_t attempt,
                                const char *other_than)
{
    struct world *w = ctx;

    STR_COPY(w->other_than, other_than ? other_than : "");
    return w->elsewhere;
}

static const struct readers_handlers handlers = {.signal = on_signal,
                                                 .gap = on_gap,
                                                 .drained = on_drained,
                                                 .read = on_read,
                                                 .file = on_file,
                                                 .named = on_named,
                                                 .reader_state = on_state,
                                                 .home = on_home,
                                                 .elsewhere = on_elsewhere};

static void begin(struct world *w)
{
    struct children_config cc = {.programs = "/nowhere"};
    struct readers_config c = {.ping_every = 10 * USEC_PER_SEC, .ping_patience = USEC_PER_MIN};

    *w = (struct world){.home = "n1"};
    assert_true(sd_event_new(&w->event) >= 0);
    c.children = w->children = children_new(w->event, &cc);
    c.node_readers = w->nodes = node_readers_new(w->event);
    node_readers_connect(w->nodes, on_ask, w);
    w->readers = readers_new(w->event, &c, &handlers, w);
    assert_non_null(w->readers);
}

static void end(struct world *w)
{
    readers_free(w->readers);
    node_readers_free(w->nodes);
    children_free(w->children);
    sd_event_unref(w->event);
    VEC_DONE(&w->asked);
    VEC_DONE(&w->files);
}

static void turn(struct world *w)
{
    assert_true(sd_event_run(w->event, 10 * USEC_PER_MSEC) >= 0);
}

static int follow(struct world *w, uint32_t attempt)
{
    struct log_paths p = {.work_dir = "/logs", .job_id = 7, .array_task_id = LOG_NO_TASK};

    return readers_follow(w->readers, getuid(), (gid_t)-1, JOB, attempt, &p);
}

static void tell(struct played *p, const char *text)
{
    ssize_t len = (ssize_t)strlen(text);

    assert_int_equal(send(p->fd, text, (size_t)len, 0), len);
    assert_int_equal(send(p->fd, "\n", 1, 0), 1);
}

#define TELL(p, ...)                                                                               \
    do {                                                                                           \
        char text_[1024];                                                                          \
        STR_PRINTF(text_, __VA_ARGS__);                                                            \
        tell(p, text_);                                                                            \
    } while (0)

/* The next reader that is asked for, which is there then. */
static struct played play(struct world *w)
{
    struct played p = {.w = w};
    const struct question *q;
    int pair[2];

    UNTIL(w->asked.n > w->answered, turn(w));
    q = &w->asked.v[w->answered++];
    STR_COPY(p.node, q->node);
    assert_int_equal(q->uid, getuid());
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    p.fd = pair[0];
    node_readers_answer(w->nodes, q->node, q->number, pair[1], NULL);
    tell(&p, "{\"kind\":\"hello\",\"protocol\":1}");
    return p;
}

/* What it is asked next: the line with that in it. */
static const char *expect(struct played *p, const char *part)
{
    size_t len = 0;

    for (;;) {
        char byte;
        ssize_t n = recv(p->fd, &byte, 1, MSG_DONTWAIT);

        if (n < 0 && errno == EAGAIN) {
            turn(p->w);
            continue;
        }
        assert_int_equal(n, 1);
        if (byte != '\n') {
            assert_true(len < sizeof(p->line) - 1);
            p->line[len++] = byte;
            continue;
        }
        p->line[len] = '\0';
        len = 0;
        if (strstr(p->line, part))
            return p->line;
    }
}

static void tell_signal(struct played *p, uint32_t file, uint64_t offset)
{
    struct event e = {.kind = EVENT_SIGNAL, .attempt = 1};
    _cleanup_(freep) char *text = NULL;
    json_t *j;

    STR_COPY(e.job, JOB);
    e.signal = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);
    e.signal.file = file;
    e.signal.offset = offset;
    e.signal.line = 1;
    j = codec_event_json(&e);
    text = json_dumps(j, JSON_COMPACT);
    json_decref(j);
    tell(p, text);
}

#define ABOUT "\"job\":\"" JOB "\",\"attempt\":1"

/* The reader that the first attempt is followed by. */
static struct played begin_at_home(struct world *w)
{
    struct played home;

    begin(w);
    assert_int_equal(follow(w, 1), 0);
    home = play(w);
    expect(&home, "\"follow\"");
    return home;
}

/* It is not there. */
static void tell_left(struct played *p, const char *path)
{
    _cleanup_(freep) char *text = xasprintf("{\"kind\":\"left\"," ABOUT ",\"path\":\"%s\"}", path);

    tell(p, text);
}

static void count_unread(void *ctx, const struct unread_log *log)
{
    ++*(unsigned *)ctx;
}

static bool so_many_are_unread(const struct world *w, uint32_t n, unsigned shown)
{
    unsigned are_shown = 0;

    return readers_unread(w->readers, JOB, count_unread, &are_shown) == n && are_shown == shown;
}

static void test_what_a_node_read_the_next_goes_on_with(void **state)
{
    struct world w;
    struct played first, second;
    struct readers_view view;

    begin(&w);
    assert_int_equal(follow(&w, 1), 0);
    first = play(&w);
    assert_string_equal(first.node, "n1");
    expect(&first, "\"follow\"");
    TELL(&first, "{\"kind\":\"file\"," ABOUT ",\"file\":0,\"path\":\"/logs/a\",\"trouble\":null}");
    tell_signal(&first, 0, 10);
    TELL(&first, "{\"kind\":\"marks\"," ABOUT ",\"marks\":[{\"file\":0,\"path\":\"/logs/a\","
                 "\"ino\":5,\"offset\":11,\"line\":2,\"print\":\"\"}]}");
    TELL(&first, "{\"kind\":\"file\"," ABOUT ",\"file\":1,\"path\":\"/b\",\"trouble\":\"away\"}");
    tell_signal(&first, 0, 20);
    UNTIL(w.files.n == 2, turn(&w));
    assert_true(so_many_are_unread(&w, 1, 1));
    assert_int_equal(readers_look(w.readers, JOB, &view), 0);
    assert_string_equal(view.node, "n1");
    assert_true(view.running);

    w.elsewhere = "n2";
    w.refusal = -ENOTCONN; /* its agent is gone, and the next question finds that out */
    close(first.fd);
    UNTIL(*w.other_than, turn(&w));
    assert_string_equal(w.other_than, "n1");
    w.refusal = 0;
    readers_node_up(w.readers, "n2");
    second = play(&w);
    assert_string_equal(second.node, "n2");
    assert_non_null(strstr(expect(&second, "\"follow\""), "\"offset\":11"));
    assert_true(so_many_are_unread(&w, 0, 0)); /* that was said of another place */
    TELL(&second, "{\"kind\":\"file\"," ABOUT ",\"file\":0,\"path\":\"/logs/a\",\"trouble\":null}");
    tell_signal(&second, 0, 20); /* once more */
    tell_signal(&second, 0, 30);
    UNTIL(w.files.n == 3, turn(&w));
    close(second.fd);
    end(&w);
}

static void tell_file(struct played *p, unsigned file, const char *trouble)
{
    _cleanup_(freep) char *text =
        xasprintf("{\"kind\":\"file\"," ABOUT ",\"file\":%u,\"path\":\"/logs/%u\",\"trouble\":%s}",
                  file, file, trouble);

    tell(p, text);
}

/* Once, until it can be read; and of a few: what a reader says ends in the journal. */
static void test_of_a_file_that_cannot_be_read_it_is_told_why(void **state)
{
    struct world w;
    struct played p;

    p = begin_at_home(&w);
    tell_file(&p, 0, "null");
    tell_file(&p, 1, "\"Permission denied\"");
    UNTIL(w.n_told == 1, turn(&w));
    assert_string_equal(w.told, "1 /logs/1: Permission denied");
    tell_file(&p, 1, "\"it is no\\nfile\"");
    tell_file(&p, 2, "\"it is no\\nfile\"");
    UNTIL(w.n_told == 2, turn(&w));
    assert_string_equal(w.told, "2 /logs/2: it is no file");
    tell_file(&p, 1, "null");
    UNTIL(w.n_told == 3, turn(&w));
    assert_string_equal(w.told, "1 /logs/1: read");
    for (unsigned i = 3; i < 18; i++)
        tell_file(&p, i, "\"Permission denied\"");
    tell_file(&p, 2, "null");
    UNTIL(strcmp(w.told, "2 /logs/2: read") == 0, turn(&w));
    assert_int_equal(w.n_told, 2 + 1 + 14 + 1); /* 16 of them, and two that can */
    close(p.fd);
    end(&w);
}

static void add_unread(void *ctx, const struct unread_log *log)
{
    strbuf_addf(ctx, "%s: %s\n", log->path, log->why);
}

/* Which files cannot be read now; and how many, when that is another number than are shown. */
static bool unread_are(const struct world *w, const char *expected)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    uint32_t n = readers_unread(w->readers, JOB, add_unread, &b);

    if (n != str_count(strbuf_str(&b), b.len, '\n'))
        strbuf_addf(&b, "of %u\n", (unsigned)n);
    return streq(strbuf_str(&b), expected);
}

static void test_which_files_cannot_be_read_is_known_as_long_as_it_is_so(void **state)
{
    struct world w;
    struct played p;

    p = begin_at_home(&w);
    tell_file(&p, 0, "null");
    tell_file(&p, 1, "\"Permission denied\"");
    tell_file(&p, 2, "\"it is no\\nfile\"");
    UNTIL(unread_are(&w, "/logs/1: Permission denied\n/logs/2: it is no file\n"), turn(&w));
    tell_file(&p, 2, "\"Permission denied\"");
    tell_file(&p, 1, "null");
    UNTIL(unread_are(&w, "/logs/2: Permission denied\n"), turn(&w));
    for (unsigned i = 3; i < 23; i++) /* more than are shown */
        tell_file(&p, i, "\"gone\"");
    tell_file(&p, 2, "null");
    UNTIL(so_many_are_unread(&w, 20, 15), turn(&w));
    for (unsigned i = 3; i < 22; i++)
        tell_file(&p, i, "null");
    UNTIL(unread_are(&w, "of 1\n"), turn(&w));
    tell_file(&p, 22, "\"gone\"");
    UNTIL(unread_are(&w, "/logs/22: gone\n"), turn(&w));
    close(p.fd);
    end(&w);
}

/* A node's file that home does not have; and one that each of two nodes has. */
static void test_files_go_to_who_told_of_them(void **state)
{
    struct world w;
    struct played home, first, second;

    home = begin_at_home(&w);
    assert_int_equal(readers_add_file(w.readers, JOB, 1, "/tmp/out", "n2"), 0);
    assert_int_equal(readers_add_file(w.readers, JOB, 1, "/tmp/out", "n3"), 0);
    assert_non_null(strstr(expect(&home, "/tmp/out"), "\"leave\":true"));
    tell_left(&home, "/tmp/out");
    first = play(&w);
    assert_string_equal(first.node, "n2");
    assert_non_null(strstr(expect(&first, "/tmp/out"), "\"patterns\":[]"));
    TELL(&first, "{\"kind\":\"file\"," ABOUT ",\"file\":0,\"path\":\"/tmp/out\",\"trouble\":null,"
                 "\"local\":true}");
    second = play(&w);
    assert_string_equal(second.node, "n3");
    expect(&second, "/tmp/out");

    tell_signal(&home, 0, 1);
    UNTIL(w.files.n == 1, turn(&w));
    tell_signal(&first, 0, 1);
    UNTIL(w.files.n == 2, turn(&w));
    tell_signal(&second, 0, 1);
    UNTIL(w.files.n == 3, turn(&w));
    assert_int_equal(w.files.v[0], 0);
    assert_int_not_equal(w.files.v[1], 0);
    assert_int_not_equal(w.files.v[2], w.files.v[1]);

    readers_drain(w.readers, JOB, 1);
    TELL(&home, "{\"kind\":\"drained\"," ABOUT "}");
    TELL(&first, "{\"kind\":\"drained\"," ABOUT "}");
    expect(&second, "\"drain\"");
    assert_int_equal(w.drained, 0);
    TELL(&second, "{\"kind\":\"drained\"," ABOUT "}");
    UNTIL(w.drained == 1, turn(&w));
    readers_forget(w.readers, JOB);
    expect(&first, "\"unfollow\"");
    expect(&second, "\"unfollow\"");
    close(home.fd);
    close(first.fd);
    close(second.fd);
    end(&w);
}

/* One file of a file system that many nodes have is read once. */
static void test_a_shared_file_is_read_once(void **state)
{
    struct world w;
    struct played home, first;

    home = begin_at_home(&w);
    assert_int_equal(readers_add_file(w.readers, JOB, 1, "/scratch/out", "n2"), 0);
    assert_int_equal(readers_add_file(w.readers, JOB, 1, "/scratch/out", "n3"), 0);
    expect(&home, "/scratch/out");
    tell_left(&home, "/scratch/out");
    first = play(&w);
    expect(&first, "/scratch/out");
    TELL(&first, "{\"kind\":\"file\"," ABOUT ",\"file\":0,\"path\":\"/scratch/out\","
                 "\"trouble\":null,\"local\":false}");
    tell_signal(&first, 0, 1);
    UNTIL(w.files.n == 1, turn(&w));
    assert_int_equal(readers_add_file(w.readers, JOB, 1, "/scratch/out", "n4"), 0);
    tell_left(&home, "/scratch/never-told"); /* a lie */
    tell_signal(&home, 0, 2);
    UNTIL(w.files.n == 2, turn(&w));
    assert_int_equal(w.asked.n, 2);
    close(home.fd);
    close(first.fd);
    end(&w);
}

/* The next attempt runs elsewhere, and what was read of this one on other nodes is over. */
static void test_the_next_attempt_is_read_on_its_own_nodes(void **state)
{
    struct world w;
    struct played home, part, next;

    home = begin_at_home(&w);
    assert_int_equal(readers_add_file(w.readers, JOB, 1, "/tmp/out", "n2"), 0);
    expect(&home, "/tmp/out");
    tell_left(&home, "/tmp/out");
    part = play(&w);
    expect(&part, "/tmp/out");
    w.home = "n5";
    assert_int_equal(follow(&w, 2), 0);
    expect(&part, "\"unfollow\"");
    expect(&home, "\"unfollow\"");
    next = play(&w);
    assert_string_equal(next.node, "n5");
    assert_non_null(strstr(expect(&next, "\"follow\""), "\"attempt\":2"));
    close(home.fd);
    close(part.fd);
    close(next.fd);
    end(&w);
}

/* node_readers alone */

struct told {
    int fd;
    unsigned started, ended;
    char text[200];
};

static void on_started(void *ctx, int fd)
{
    struct told *t = ctx;

    t->started++;
    t->fd = fd;
}

static void on_ended(void *ctx, const char *text)
{
    struct told *t = ctx;

    t->ended++;
    STR_COPY(t->text, text);
}

static const struct child_handlers child = {.started = on_started, .ended = on_ended};

static void test_an_answer_is_of_its_node_and_question(void **state)
{
    struct world w;
    struct told t = {.fd = -1};
    int pair[2];
    char byte;

    begin(&w);
    node_reader_start(w.nodes, "n1", getuid(), (gid_t)-1, &child, &t);
    for (int wrong = 0; wrong < 2; wrong++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        node_readers_answer(w.nodes, wrong ? "n2" : "n1", w.asked.v[0].number + !wrong, pair[1],
                            NULL);
        assert_int_equal(recv(pair[0], &byte, 1, 0), 0); /* closed */
        close(pair[0]);
    }
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    node_readers_answer(w.nodes, "n1", w.asked.v[0].number, pair[1], NULL);
    for (int i = 0; i < 5; i++)
        turn(&w);
    assert_int_equal(t.started, 0); /* it says nothing yet */
    assert_int_equal(send(pair[0], "x", 1, 0), 1);
    UNTIL(t.started == 1, turn(&w));
    assert_int_equal(recv(t.fd, &byte, 1, 0), 1);
    close(t.fd);
    close(pair[0]);
    end(&w);
}

static void test_who_does_not_answer_is_told_of(void **state)
{
    struct world w;
    struct told t[4] = {{0}};
    struct node_reader *dropped;

    begin(&w);
    for (int i = 0; i < 2; i++)
        node_reader_start(w.nodes, i ? "n2" : "n1", 1000, 1000, &child, &t[i]);
    dropped = node_reader_start(w.nodes, "n1", 1000, 1000, &child, &t[3]);
    assert_null(node_reader_drop(dropped));
    node_readers_answer(w.nodes, "n1", w.asked.v[0].number, -1, "the user has no job there");
    node_readers_lost(w.nodes, "n2", "its agent is not connected");
    w.refusal = -ENOTCONN;
    node_reader_start(w.nodes, "n3", 1000, 1000, &child, &t[2]);
    assert_int_equal(t[0].ended + t[1].ended + t[2].ended, 0); /* never from within */
    UNTIL(t[0].ended && t[1].ended && t[2].ended, turn(&w));
    assert_string_equal(t[0].text, "on node n1: the user has no job there");
    assert_string_equal(t[1].text, "on node n2: its agent is not connected");
    assert_string_equal(t[2].text, "on node n3: not now");
    assert_int_equal(t[3].ended, 0);
    end(&w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_node_read_the_next_goes_on_with),
        cmocka_unit_test(test_of_a_file_that_cannot_be_read_it_is_told_why),
        cmocka_unit_test(test_which_files_cannot_be_read_is_known_as_long_as_it_is_so),
        cmocka_unit_test(test_files_go_to_who_told_of_them),
        cmocka_unit_test(test_a_shared_file_is_read_once),
        cmocka_unit_test(test_the_next_attempt_is_read_on_its_own_nodes),
        cmocka_unit_test(test_an_answer_is_of_its_node_and_question),
        cmocka_unit_test(test_who_does_not_answer_is_told_of),
    };

    return cmocka_run_group_tests_name("reader_places", tests, NULL, NULL);
}
