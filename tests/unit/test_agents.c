/* SPDX-License-Identifier: Apache-2.0 */

/* reknitd's end of the agents: what is acknowledged when, what is told once, and what holds while
 * nothing can be resolved. Seals and names are a small program's, as the test wants them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "source/agents.h"
#include "wire/greeting.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "until.h"

/* "open" and "seal" give what they are given as it is, "resolve" what the file says. */
#define SEAL                                                                                       \
    "import json, sys\n"                                                                           \
    "for line in sys.stdin:\n"                                                                     \
    "    q = json.loads(line)\n"                                                                   \
    "    if 'open' in q: a = {'text': q['open'], 'uid': 0}\n"                                      \
    "    elif 'n9' in q.get('seal', ''): continue\n"                                               \
    "    elif 'seal' in q: a = {'sealed': q['seal']}\n"                                            \
    "    else: a = json.load(open(sys.argv[1]))\n"                                                 \
    "    print(json.dumps(a), flush=True)\n"

#define HERE   "{\"addresses\":[\"127.0.0.1\"]}"
#define OUTAGE "{\"error\":\"Temporary failure in name resolution\",\"bad\":false}"

/* The linker puts it before the real one. */
static usec_t skipped;
usec_t __real_mono_us(void);
usec_t __wrap_mono_us(void);

usec_t __wrap_mono_us(void)
{
    return __real_mono_us() + skipped;
}

struct fixture {
    char file[64];
    sd_event *event;
    struct agents *agents;
    bool safe; /* what is told is so at once */
    bool full;
    unsigned told, turned_away;
    struct agent_receipt last;
    usec_t when;      /* it was, of the last */
    unsigned answers; /* to what was asked */
    int64_t question;
    int reader;
    char trouble[128], refusal[128];
    unsigned seen; /* among all agents that were connected, when one of them came */
};

struct client {
    struct fixture *f;
    int fd;
    char word[64], line[512];
};

static const char *on_address(void *ctx, const char *node)
{
    return node;
}

static enum agent_taken on_message(void *ctx, const struct node_message *m,
                                   const struct agent_receipt *r)
{
    struct fixture *f = ctx;

    if (f->full) {
        f->turned_away++;
        return AGENT_NO_ROOM;
    }
    f->told++;
    f->last = *r;
    f->when = m->mono_us;
    return f->safe ? AGENT_TAKEN : AGENT_TAKEN_OPEN;
}

static bool count_connected(void *ctx, const char *node, const struct agent_view *v)
{
    *(unsigned *)ctx += v->connected;
    return true;
}

static void on_node(void *ctx, const char *node, const char *trouble)
{
    struct fixture *f = ctx;
    struct agent_view v = {0};

    if (trouble || !f->agents)
        return;
    assert_int_equal(agents_look(f->agents, node, &v), 0);
    assert_true(v.connected);
    f->seen = 0;
    agents_each(f->agents, count_connected, &f->seen);
}

static void on_refused(void *ctx, const char *address, const char *why)
{
    struct fixture *f = ctx;

    STR_COPY(f->refusal, why);
}

static void on_reader(void *ctx, const char *node, int64_t question, int fd, const char *trouble)
{
    struct fixture *f = ctx;

    assert_string_equal(node, "n1");
    f->answers++;
    f->question = question;
    f->reader = fd;
    STR_COPY(f->trouble, trouble ? trouble : "");
}

static struct agents_config config_of(const char *const *argv)
{
    return (struct agents_config){.listen = "127.0.0.1:0", .seal = argv};
}

static void names_give(struct fixture *f, const char *answer)
{
    FILE *file = fopen(f->file, "w");

    assert_non_null(file);
    fputs(answer, file);
    fclose(file);
}

static int set_up(void **state)
{
    static const struct agents_handlers handlers = {
        .address = on_address,
        .message = on_message,
        .node = on_node,
        .refused = on_refused,
        .reader = on_reader,
    };
    struct fixture *f = xnew(struct fixture);
    const char *argv[] = {"/usr/bin/python3", "-c", SEAL, f->file, NULL};
    struct agents_config c = config_of(argv);

    skipped = 0;
    f->safe = true;
    STR_COPY(f->file, "/tmp/reknit-test-agents-XXXXXX");
    close(mkstemp(f->file));
    names_give(f, HERE);
    assert_true(sd_event_new(&f->event) >= 0);
    assert_int_equal(agents_new(f->event, &c, &handlers, f, &f->agents, NULL), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    agents_free(f->agents);
    sd_event_unref(f->event);
    unlink(f->file);
    free(f);
    return 0;
}

/* The next line that comes, without its end; "" = it was closed. */
static const char *hear(struct client *c)
{
    size_t len = 0;

    for (;;) {
        char byte;
        ssize_t n = recv(c->fd, &byte, 1, MSG_DONTWAIT);

        if (n < 0 && errno == EAGAIN) {
            assert_true(sd_event_run(c->f->event, 20 * USEC_PER_MSEC) >= 0);
            continue;
        }
        if (n <= 0 || byte == '\n')
            break;
        assert_true(len < sizeof(c->line) - 1);
        c->line[len++] = byte;
    }
    c->line[len] = '\0';
    return c->line;
}

/* from: a port of ours; 0 = any. */
static struct client connect_from(struct fixture *f, uint16_t from)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(agents_port(f->agents))};
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(from)};
    struct client c = {.f = f, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    int on = 1;
    json_t *j;

    setsockopt(c.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    assert_int_equal(bind(c.fd, (struct sockaddr *)&own, sizeof(own)), 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(c.fd, (struct sockaddr *)&to, sizeof(to)), 0);
    j = json_loads(hear(&c), 0, NULL);
    STR_COPY(c.word, json_string_value(json_object_get(j, "word")));
    json_decref(j);
    return c;
}

static void say_text(struct client *c, const char *text)
{
    assert_int_equal(send(c->fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    assert_int_equal(send(c->fd, "\n", 1, MSG_NOSIGNAL), 1);
}

#define HELLO "{\"reknit\":2,\"ask_with\":\"back\",\"node\":\"n1\"}"

/* That its greeting is sealed for both words, and for where the connection is. */
static void be_greeted(struct client *c)
{
    struct greeting g = {.ask_with = "back", .node = "n1"};
    json_t *j;

    say_text(c, HELLO);
    STR_COPY(g.word, c->word);
    assert_true(greeting_place(c->fd, false, g.at));
    j = json_loads(hear(c), 0, NULL);
    assert_non_null(json_object_get(j, "sealed"));
    assert_int_equal(greeting_check(json_string_value(json_object_get(j, "sealed")), &g, NULL), 0);
    json_decref(j);
}

static struct client connect_there(struct fixture *f)
{
    struct client c = connect_from(f, 0);

    be_greeted(&c);
    return c;
}

/* Takes the body over. */
static void say_body(struct client *c, const char *node, int origin, int id, json_t *body)
{
    json_t *j = json_pack("{s:i,s:s,s:s,s:i,s:i,s:o}", "v", 2, "word", c->word, "node", node,
                          "origin", origin, "id", id, "body", body);
    _cleanup_(freep) char *text = json_dumps(j, JSON_COMPACT), *line = NULL;
    json_t *sealed = json_pack("{s:s}", "sealed", text);
    ssize_t len;

    line = json_dumps(sealed, JSON_COMPACT);
    json_decref(j);
    json_decref(sealed);
    len = (ssize_t)strlen(line);
    assert_int_equal(send(c->fd, line, (size_t)len, 0), len);
    assert_int_equal(send(c->fd, "\n", 1, 0), 1);
}

static void say(struct client *c, const char *node, int origin, int id)
{
    say_body(c, node, origin, id,
             json_pack("{s:i,s:s,s:s,s:i,s:i,s:i,s:i}", "v", 1, "kind", "gone", "node", node,
                       "time", 1, "job", 42, "restart", 0, "uid", 1000));
}

static void beat(struct client *c, const char *node, usec_t time)
{
    say_body(c, node, 0, 0,
             json_pack("{s:i,s:s,s:s,s:I,s:s,s:i,s:i,s:i}", "v", 1, "kind", "alive", "node", node,
                       "time", (json_int_t)time, "version", "1", "dropped", 0, "refused", 0,
                       "watched", 0));
}

#define ASK(c, node, origin, id) (say(c, node, origin, id), hear(c))

static void test_what_is_not_safe_is_not_acknowledged(void **state)
{
    struct fixture *f = *state;
    struct client c = connect_there(f);
    struct agent_receipt first;

    assert_string_equal(ASK(&c, "n1", 5, 1), "{\"ack\":1,\"origin\":5}");
    f->safe = false;
    say(&c, "n1", 5, 2);
    UNTIL(f->told == 2, sd_event_run(f->event, 20 * USEC_PER_MSEC));
    first = f->last;
    f->safe = true;
    say(&c, "n1", 5, 3);
    say(&c, "n1", 5, 2); /* again: it still is not */
    assert_string_equal(ASK(&c, "n1", 0, 0), "{\"ack\":0,\"origin\":0}");
    assert_int_equal(f->told, 4);
    agents_done(f->agents, &first);
    assert_string_equal(hear(&c), "{\"ack\":3,\"origin\":5}"); /* and all before it */
    agents_done(f->agents, &first);
    assert_string_equal(ASK(&c, "n1", 5, 2), "{\"ack\":2,\"origin\":5}");
    close(c.fd);
}

/* Who is told that it is there may want it at once: it was waited for. */
static void test_who_comes_is_there_when_that_is_told(void **state)
{
    struct fixture *f = *state;
    struct client first = connect_there(f), second;

    ASK(&first, "n1", 5, 1);
    assert_int_equal(f->seen, 1);
    second = connect_from(f, 0);
    say_text(&second, "{\"reknit\":2,\"ask_with\":\"back\",\"node\":\"n2\"}");
    hear(&second);
    ASK(&second, "n2", 5, 1);
    assert_int_equal(f->seen, 2);
    close(first.fd);
    close(second.fd);
}

static void test_what_became_safe_meanwhile_is_acknowledged_to_the_next_connection(void **state)
{
    struct fixture *f = *state;
    struct client c = connect_there(f);

    f->safe = false;
    say(&c, "n1", 5, 1);
    UNTIL(f->told == 1, sd_event_run(f->event, 20 * USEC_PER_MSEC));
    close(c.fd);
    c = connect_there(f);
    agents_done(f->agents, &f->last);
    assert_string_equal(ASK(&c, "n1", 5, 1), "{\"ack\":1,\"origin\":5}");
    assert_int_equal(f->told, 1);
    close(c.fd);
}

/* The node's clock counts from anywhere: its first word shows from where. */
static void test_what_happened_is_told_in_our_time(void **state)
{
    struct fixture *f = *state;
    struct client c = connect_there(f);
    usec_t before = mono_us();

    beat(&c, "n1", 1 + 40 * USEC_PER_SEC);
    assert_string_equal(hear(&c), "{\"ack\":0,\"origin\":0}");
    assert_string_equal(ASK(&c, "n1", 5, 1), "{\"ack\":1,\"origin\":5}"); /* of 40 s before it */
    assert_in_range(f->when, before - 40 * USEC_PER_SEC, mono_us() - 40 * USEC_PER_SEC);
    beat(&c, "n1", 1 - 40 * USEC_PER_SEC + USEC_PER_DAY); /* it was set */
    hear(&c);
    beat(&c, "n1", 1 + 40 * USEC_PER_SEC - USEC_PER_SEC); /* and back */
    hear(&c);
    ASK(&c, "n1", 5, 2);
    assert_in_range(f->when, before - 39 * USEC_PER_SEC, mono_us() - 39 * USEC_PER_SEC);
    close(c.fd);
}

/* It comes again, with all that is behind it, in its order and each once. */
static void test_what_there_is_no_room_for_comes_again(void **state)
{
    struct fixture *f = *state;
    struct client c = connect_there(f);

    beat(&c, "n1", USEC_PER_DAY);
    hear(&c);
    f->full = true;
    say(&c, "n1", 5, 1);
    UNTIL(f->turned_away == 1, sd_event_run(f->event, 20 * USEC_PER_MSEC));
    f->full = false;
    say(&c, "n1", 5, 2);
    beat(&c, "n1", USEC_PER_DAY);
    assert_string_equal(hear(&c), "{\"refused\":\"there was no room for all it told: it is to come "
                                  "again\"}");
    close(c.fd);
    assert_int_equal(f->told, 1);
    c = connect_there(f);
    beat(&c, "n1", USEC_PER_DAY);
    hear(&c);
    assert_string_equal(ASK(&c, "n1", 5, 1), "{\"ack\":1,\"origin\":5}");
    assert_string_equal(ASK(&c, "n1", 5, 2), "{\"ack\":2,\"origin\":5}");
    assert_int_equal(f->told, 4);
    close(c.fd);
}

/* Each start of an agent is an origin; what it kept of earlier ones may come again in between. */
static void test_every_origin_is_told_once(void **state)
{
    struct fixture *f = *state;
    struct client c = connect_there(f);

    for (int times = 0; times < 3; times++)
        for (int origin = 9; origin > 2; origin--) {
            char want[64];

            STR_PRINTF(want, "{\"ack\":2,\"origin\":%d}", origin);
            assert_string_equal(ASK(&c, "n1", origin, 2), want);
        }
    assert_int_equal(f->told, 7);
    close(c.fd);
}

static void test_moving_forgets_nothing(void **state)
{
    struct fixture *f = *state;
    const char *argv[] = {"/usr/bin/python3", "-c", SEAL, f->file, NULL};
    struct agents_config config = config_of(argv);
    struct client c = connect_there(f);

    ASK(&c, "n1", 5, 1);
    assert_int_equal(agents_move(f->agents, &config, NULL), 0);
    assert_string_equal(hear(&c), "");
    close(c.fd);
    c = connect_there(f);
    assert_string_equal(ASK(&c, "n1", 5, 1), "{\"ack\":1,\"origin\":5}");
    assert_int_equal(f->told, 1);
    close(c.fd);
}

static void test_without_a_name_server(void **state)
{
    struct fixture *f = *state;
    struct client c = connect_there(f), unknown;

    ASK(&c, "n1", 5, 1);
    names_give(f, OUTAGE);
    for (int id = 2; id < 8; id++) {
        char want[64];

        skipped += USEC_PER_HOUR;
        STR_PRINTF(want, "{\"ack\":%d,\"origin\":5}", id);
        assert_string_equal(ASK(&c, "n1", 5, id), want);
    }
    unknown = connect_there(f);
    assert_string_equal(ASK(&unknown, "n2", 5, 1),
                        "{\"refused\":\"its address cannot be looked up now\"}");
    close(unknown.fd);

    names_give(f, "{\"addresses\":[\"127.0.0.2\"]}"); /* it is another's now */
    skipped += USEC_PER_HOUR;
    ASK(&c, "n1", 5, 8); /* has it looked up */
    UNTIL(strstr(ASK(&c, "n1", 0, 0), "ack") == NULL, (void)0);
    assert_non_null(strstr(c.line, "which is not its address"));
    close(c.fd);
}

static json_t *reader_body(int question, const char *trouble)
{
    return json_pack("{s:i,s:s,s:s,s:i,s:i,s:s}", "v", 1, "kind", "reader", "node", "n1", "time", 1,
                     "question", question, "trouble", trouble);
}

static void test_a_reader_is_asked_for_and_comes_by_another_connection(void **state)
{
    struct fixture *f = *state;
    struct client c, tunnel;
    char text[32] = "";

    assert_int_equal(agents_ask(f->agents, "n1", 17, 1000, 1000), -ENOTCONN);
    c = connect_there(f);
    say_body(&c, "n1", 0, 0, json_pack("{s:i}", "v", 1));
    assert_string_equal(hear(&c), "{\"ack\":0,\"origin\":0}");
    assert_int_equal(agents_ask(f->agents, "n1", 17, 1000, 1001), 0);
    hear(&c);
    assert_non_null(strstr(c.line, "\\\"ask_with\\\":\\\"back\\\""));
    assert_non_null(strstr(c.line, "\\\"question\\\":17,\\\"reader\\\":{\\\"uid\\\":1000,"
                                   "\\\"gid\\\":1001}"));

    f->answers = 0;
    tunnel = connect_there(f);
    say_body(&tunnel, "n1", 0, 0, reader_body(17, ""));
    assert_string_equal(hear(&tunnel), "{\"reader\":17}");
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->question, 17);
    assert_true(f->reader >= 0);
    assert_int_equal(send(tunnel.fd, "bytes\n", 6, 0), 6); /* they are not the agents' any more */
    assert_int_equal(recv(f->reader, text, sizeof(text), 0), 6);
    assert_string_equal(ASK(&c, "n1", 5, 1), "{\"ack\":1,\"origin\":5}"); /* it stays n1's */

    say_body(&c, "n1", 0, 0, reader_body(18, "the user has no job there"));
    assert_string_equal(hear(&c), "{\"ack\":0,\"origin\":0}");
    assert_int_equal(f->answers, 2);
    assert_int_equal(f->reader, -1);
    assert_string_equal(f->trouble, "the user has no job there");
    close(tunnel.fd);
    close(c.fd);
}

static void test_who_does_not_greet_is_told_why(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"{\"sealed\":\"x\"}", "it does not greet as it should"},
        {"{\"reknit\":3,\"ask_with\":\"back\",\"node\":\"n1\"}", "it speaks protocol 3"},
        {"{\"reknit\":2,\"ask_with\":\"\",\"node\":\"n1\"}", "it does not greet as it should"},
        {"{\"reknit\":2,\"ask_with\":7,\"node\":\"n1\"}", "it does not greet as it should"},
        {"{\"reknit\":2,\"ask_with\":\"back\"}", "it does not greet as it should"},
        {HELLO "\n" HELLO, "a message before it was greeted"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct client c = connect_from(f, 0);

        say_text(&c, rows[i].text);
        hear(&c);
        assert_non_null(strstr(c.line, "{\"refused\":"));
        assert_non_null(strstr(c.line, rows[i].why));
        close(c.fd);
    }
    assert_int_equal(f->told, 0);
}

static void leave(struct fixture *f, struct client *c, const char *why)
{
    f->refusal[0] = '\0';
    close(c->fd);
    UNTIL(*f->refusal, sd_event_run(f->event, 20 * USEC_PER_MSEC));
    assert_non_null(strstr(f->refusal, why));
}

/* An agent of an older protocol leaves when it sees the number of ours: somebody should be told.
 * And where the seal hangs, n9's, nobody was refused by it. */
static void test_who_leaves_is_noticed(void **state)
{
    struct fixture *f = *state;
    struct client c = connect_from(f, 0);
    struct agents_counts counts;

    leave(f, &c, "too old");
    c = connect_there(f);
    leave(f, &c, "does not take us for reknitd");
    c = connect_from(f, 0);
    say_text(&c, "{\"reknit\":2,\"ask_with\":\"back\",\"node\":\"n9\"}");
    for (int i = 0; i < 5; i++)
        assert_true(sd_event_run(f->event, 20 * USEC_PER_MSEC) >= 0);
    leave(f, &c, "did not wait for our greeting");
    agents_counts(f->agents, &counts);
    assert_int_equal(counts.refused, 3);
}

/* The seal of both may be one key, and whoever asks has our greeting sealed. */
static void test_a_greeting_is_no_message(void **state)
{
    struct fixture *f = *state;
    struct client c = connect_from(f, 0);

    say_text(&c, HELLO);
    hear(&c);
    say_text(&c, c.line);
    assert_non_null(strstr(hear(&c), "sealed for another connection"));
    close(c.fd);
}

/* How many connections reknitd has. */
static unsigned count_connections(struct fixture *f)
{
    struct agents_counts counts;

    agents_counts(f->agents, &counts);
    return counts.connections;
}

#define STRANGERS (AGENTS_UNPROVEN_MAX + 8)

static void test_strangers_keep_no_agent_out(void **state)
{
    struct fixture *f = *state;
    struct client strangers[STRANGERS], proven = connect_there(f), c;

    ASK(&proven, "n2", 5, 1);
    c = connect_there(f); /* greeted, and about to prove itself, when they come */
    for (size_t i = 0; i < ARRAY_SIZE(strangers); i++)
        strangers[i] = connect_from(f, 0);
    assert_int_equal(count_connections(f), AGENTS_UNPROVEN_MAX + 1);
    assert_non_null(strstr(hear(&strangers[0]), "proven nothing yet"));
    assert_string_equal(hear(&strangers[0]), "");
    assert_string_equal(ASK(&c, "n1", 5, 1), "{\"ack\":1,\"origin\":5}");
    close(c.fd);
    c = connect_there(f); /* while they are there */
    assert_string_equal(ASK(&c, "n1", 5, 2), "{\"ack\":2,\"origin\":5}");
    assert_string_equal(ASK(&proven, "n2", 5, 2), "{\"ack\":2,\"origin\":5}");
    for (size_t i = 0; i < ARRAY_SIZE(strangers); i++)
        close(strangers[i].fd);
    close(c.fd);
    close(proven.fd);
}

/* Who comes from a port that others cannot have is not dropped for them, whatever they say. */
static void test_root_has_places_of_its_own(void **state)
{
    struct fixture *f = *state;
    struct client strangers[STRANGERS], c;

    if (geteuid() != 0)
        skip();
    c = connect_from(f, 1023);
    for (size_t i = 0; i < ARRAY_SIZE(strangers); i++)
        strangers[i] = connect_there(f); /* greeted */
    assert_int_equal(count_connections(f), AGENTS_UNPROVEN_MAX + 1);
    be_greeted(&c);
    assert_string_equal(ASK(&c, "n1", 5, 1), "{\"ack\":1,\"origin\":5}");
    for (size_t i = 0; i < ARRAY_SIZE(strangers); i++)
        close(strangers[i].fd);
    close(c.fd);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(test_what_is_not_safe_is_not_acknowledged),
        TEST(test_who_comes_is_there_when_that_is_told),
        TEST(test_what_became_safe_meanwhile_is_acknowledged_to_the_next_connection),
        TEST(test_what_happened_is_told_in_our_time),
        TEST(test_what_there_is_no_room_for_comes_again),
        TEST(test_every_origin_is_told_once),
        TEST(test_moving_forgets_nothing),
        TEST(test_without_a_name_server),
        TEST(test_a_reader_is_asked_for_and_comes_by_another_connection),
        TEST(test_who_does_not_greet_is_told_why),
        TEST(test_who_leaves_is_noticed),
        TEST(test_a_greeting_is_no_message),
        TEST(test_strangers_keep_no_agent_out),
        TEST(test_root_has_places_of_its_own),
    };

    return cmocka_run_group_tests_name("agents", tests, NULL, NULL);
}
