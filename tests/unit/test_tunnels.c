/* SPDX-License-Identifier: Apache-2.0 */

/* Readers of a node: the test is reknitd and the spawner, and gives and refuses each step. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/tunnels.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "until.h"

#define SEAL                                                                                       \
    "import json, sys\n"                                                                           \
    "for line in sys.stdin:\n"                                                                     \
    "    q = json.loads(line)\n"                                                                   \
    "    if 'seal' in q: a = {'sealed': q['seal']}\n"                                              \
    "    else: a = {'text': q['open'], 'uid': 7}\n"                                                \
    "    print(json.dumps(a), flush=True)\n"

struct world {
    sd_event *event;
    struct tunnels *tunnels;
    struct helper *sealer;
    char dir[64], spawner[96], port[8];
    int reknitd, spawning; /* listening */
    int tunnel, asked;     /* connections: reknitd's, the spawner's; -1 */
    unsigned refused;
    int64_t number;
    const char *asker;
    char why[200], line[4096];
};

static void on_refused(void *ctx, int64_t number, const char *why)
{
    struct world *w = ctx;

    w->refused++;
    w->number = number;
    STR_COPY(w->why, why);
}

static void listen_for_spawner(struct world *w)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    STR_COPY(a.sun_path, w->spawner);
    w->spawning = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w->spawning, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(w->spawning, 8), 0);
}

static void listen_for_agent(struct world *w)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof(a);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    w->reknitd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w->reknitd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(w->reknitd, 128), 0);
    assert_int_equal(getsockname(w->reknitd, (struct sockaddr *)&a, &len), 0);
    STR_PRINTF(w->port, "%u", ntohs(a.sin_port));
}

static void begin(struct world *w, bool spawner)
{
    static const char *const argv[] = {"/usr/bin/python3", "-c", SEAL, NULL};
    struct tunnels_config c = {.node = "n1", .port = w->port};

    *w = (struct world){
        .dir = "/tmp/reknit-tunnels-XXXXXX", .tunnel = -1, .asked = -1, .asker = "7"};
    assert_non_null(mkdtemp(w->dir));
    STR_PRINTF(w->spawner, "%s/spawner", w->dir);
    assert_true(sd_event_new(&w->event) >= 0);
    listen_for_agent(w);
    listen_for_spawner(w);
    c.spawner = spawner ? w->spawner : "";
    w->sealer = helper_new(w->event, argv, HELPER_PATIENCE);
    w->tunnels = tunnels_new(w->event, &c, on_refused, w);
    assert_non_null(w->tunnels);
}

static void end(struct world *w)
{
    tunnels_free(w->tunnels);
    helper_free(w->sealer);
    sd_event_unref(w->event);
    closep(&w->reknitd);
    closep(&w->spawning);
    closep(&w->tunnel);
    closep(&w->asked);
    unlink(w->spawner);
    rmdir(w->dir);
}

static void turn(struct world *w)
{
    assert_true(sd_event_run(w->event, 5 * USEC_PER_MSEC) >= 0);
}

static void ask(struct world *w, int64_t number)
{
    struct tunnel_question q = {.number = number, .uid = 1000, .gid = 1001};

    struct greet_config greets = {.opener = w->sealer, .node = "n1", .asker = w->asker};

    tunnels_open(w->tunnels, &q, "127.0.0.1", &greets, w->sealer);
}

/* What the agent says next on its connection; "" = its end. */
static const char *hear(struct world *w)
{
    size_t len = 0;

    for (;;) {
        char byte;
        ssize_t n = recv(w->tunnel, &byte, 1, MSG_DONTWAIT);

        if (n < 0 && errno == EAGAIN) {
            turn(w);
            continue;
        }
        if (n <= 0 || byte == '\n')
            break;
        assert_true(len < sizeof(w->line) - 1);
        w->line[len++] = byte;
    }
    w->line[len] = '\0';
    return w->line;
}

static void say(struct world *w, const char *text)
{
    assert_int_equal(send(w->tunnel, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* What reknitd seals, for the word that the agent has just said. */
static void greet(struct world *w, const char *at)
{
    json_t *j = json_loads(w->line, 0, NULL), *sealed;
    struct greeting g = {.word = "w7"};
    _cleanup_(freep) char *text = NULL, *line = NULL, *whole = NULL;

    assert_int_equal(greeting_take_hello(j, &g, NULL), 0);
    json_decref(j);
    assert_string_equal(g.node, "n1");
    if (at)
        STR_COPY(g.at, at);
    else
        assert_true(greeting_place(w->tunnel, true, g.at));
    j = greeting_to_seal(&g);
    text = json_dumps(j, JSON_COMPACT);
    json_decref(j);
    sealed = json_pack("{s:s}", "sealed", text);
    line = json_dumps(sealed, JSON_COMPACT);
    json_decref(sealed);
    whole = xasprintf("%s\n", line);
    say(w, whole);
}

static void begin_to_meet(struct world *w)
{
    UNTIL((w->tunnel = accept4(w->reknitd, NULL, NULL, SOCK_CLOEXEC)) >= 0, turn(w));
    say(w, "{\"reknit\":2,\"word\":\"w7\"}\n");
    hear(w);
}

/* Up to the moment in which reknitd believes the agent. */
static void meet(struct world *w)
{
    begin_to_meet(w);
    greet(w, NULL);
    hear(w);
    assert_non_null(strstr(w->line, "\\\"word\\\":\\\"w7\\\""));
    assert_non_null(strstr(w->line, "\\\"node\\\":\\\"n1\\\""));
    assert_non_null(strstr(w->line, "\\\"kind\\\":\\\"reader\\\""));
}

static void answer_with(struct world *w, int fd)
{
    char text[] = "{\"id\":1,\"ok\":true,\"child\":5}", room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {.iov_base = text, .iov_len = sizeof(text) - 1};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    *c = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    assert_int_equal(sendmsg(w->asked, &m, MSG_NOSIGNAL), (ssize_t)sizeof(text) - 1);
}

/* What the spawner is asked. */
static void expect_asked(struct world *w, const char *part)
{
    char text[512] = "";

    if (w->asked < 0)
        UNTIL((w->asked = accept4(w->spawning, NULL, NULL, SOCK_CLOEXEC)) >= 0, turn(w));
    UNTIL(recv(w->asked, text, sizeof(text) - 1, MSG_DONTWAIT) > 0, turn(w));
    assert_non_null(strstr(text, part));
}

/* The reader's end of what the spawner starts. */
static int start_reader(struct world *w)
{
    int pair[2];

    say(w, "{\"reader\":17}\n");
    expect_asked(w, "\"what\":\"reader\",\"uid\":1000,\"gid\":1001");
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    answer_with(w, pair[1]);
    close(pair[1]);
    return pair[0];
}

static void test_a_reader_speaks_through(void **state)
{
    struct world w;
    char text[16] = "";
    int reader;

    begin(&w, true);
    ask(&w, 17);
    meet(&w);
    for (int i = 0; i < 10; i++)
        turn(&w);
    assert_int_equal(accept4(w.spawning, NULL, NULL, SOCK_CLOEXEC), -1); /* not yet believed */
    reader = start_reader(&w);
    assert_int_equal(send(reader, "hello\n", 6, 0), 6);
    assert_string_equal(hear(&w), "hello");
    say(&w, "follow");
    UNTIL(recv(reader, text, sizeof(text), MSG_DONTWAIT) == 6, turn(&w));
    assert_string_equal(text, "follow");
    close(w.tunnel);
    w.tunnel = -1;
    expect_asked(&w, "\"op\":\"kill\",\"child\":5");
    assert_int_equal(tunnels_count(w.tunnels), 0);
    assert_int_equal(w.refused, 0);
    close(reader);
    end(&w);
}

static void test_the_end_of_a_reader_ends_its_connection(void **state)
{
    struct world w;
    int reader;

    begin(&w, true);
    ask(&w, 17);
    meet(&w);
    reader = start_reader(&w);
    assert_int_equal(send(reader, "last words\n", 11, 0), 11);
    close(reader);
    assert_string_equal(hear(&w), "last words");
    assert_string_equal(hear(&w), "");
    UNTIL(tunnels_count(w.tunnels) == 0, turn(&w));
    end(&w);
}

/* Once reknitd has the connection, it is told there. */
static void test_a_spawner_that_is_not_there(void **state)
{
    struct world w;

    begin(&w, true);
    closep(&w.spawning);
    w.spawning = -1;
    ask(&w, 17);
    meet(&w);
    say(&w, "{\"reader\":17}\n");
    assert_non_null(strstr(hear(&w), "the spawner cannot be reached"));
    assert_non_null(strstr(w.line, "\"kind\":\"failed\""));
    assert_string_equal(hear(&w), "");
    assert_int_equal(w.refused, 0);
    end(&w);
}

static void test_what_goes_wrong_before_is_told_by_the_other_connection(void **state)
{
    static const char *const answers[] = {"{\"refused\":\"no\"}\n", "{\"reader\":18}\n", "x\n", ""};
    struct world w;

    begin(&w, true);
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        ask(&w, 17);
        meet(&w);
        say(&w, answers[i]);
        shutdown(w.tunnel, SHUT_WR);
        UNTIL(w.refused == i + 1, turn(&w));
        assert_int_equal(w.number, 17);
        assert_int_equal(tunnels_count(w.tunnels), 0);
        closep(&w.tunnel);
        w.tunnel = -1;
    }
    closep(&w.reknitd);
    w.reknitd = -1;
    ask(&w, 19);
    UNTIL(w.number == 19, turn(&w));
    assert_string_equal(w.why, "Connection refused");
    end(&w);
}

/* The one that asked has gone since, say, and a stranger took its place. */
static void test_who_does_not_prove_to_be_reknitd_is_told_nothing(void **state)
{
    static const char *const answers[] = {"{\"reader\":17}\n", "{\"ack\":0}\n",
                                          "{\"sealed\":\"{}\"}\n", "{\"sealed\":\"nonsense\"}\n",
                                          "{\"sealed\":\"x\"}\n{\"reader\":17}\n"};
    struct world w;

    begin(&w, true);
    for (size_t i = 0; i <= ARRAY_SIZE(answers) + 1; i++) {
        ask(&w, 17);
        begin_to_meet(&w);
        w.asker = i == ARRAY_SIZE(answers) ? "8" : "7"; /* by the next question */
        if (i < ARRAY_SIZE(answers))
            say(&w, answers[i]);
        else
            greet(&w, i == ARRAY_SIZE(answers) ? "127.0.0.1 port 1" : NULL); /* passed on; uid 7 */
        assert_string_equal(hear(&w), "");
        UNTIL(w.refused == i + 1, turn(&w));
        assert_int_equal(tunnels_count(w.tunnels), 0);
        assert_int_equal(accept4(w.spawning, NULL, NULL, SOCK_CLOEXEC), -1);
        closep(&w.tunnel);
        w.tunnel = -1;
    }
    end(&w);
}

static void test_bounds(void **state)
{
    struct world w;

    begin(&w, true);
    for (int i = 1; i <= TUNNELS_MAX; i++)
        ask(&w, i);
    assert_int_equal(w.refused, 0);
    ask(&w, 1000);
    assert_int_equal(w.refused, 1);
    assert_string_equal(w.why, "the node has too many readers already");
    end(&w);

    begin(&w, false); /* without a spawner, children would be whoever we are */
    ask(&w, 17);
    assert_int_equal(w.refused, 1);
    assert_int_equal(tunnels_count(w.tunnels), 0);
    end(&w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_reader_speaks_through),
        cmocka_unit_test(test_the_end_of_a_reader_ends_its_connection),
        cmocka_unit_test(test_a_spawner_that_is_not_there),
        cmocka_unit_test(test_what_goes_wrong_before_is_told_by_the_other_connection),
        cmocka_unit_test(test_who_does_not_prove_to_be_reknitd_is_told_nothing),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests_name("tunnels", tests, NULL, NULL);
}
