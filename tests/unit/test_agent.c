/* SPDX-License-Identifier: Apache-2.0 */

/* What nodes say, how connections begin, the spool, and the shared key. */

#include "seal/key.h"
#include "agent/kin.h"
#include "agent/seed.h"
#include "agent/spool.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/model/event_fields.h"
#include "wire/greeting.h"
#include "wire/node_message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

#define END_OF(status)                                                                             \
    "\"kind\":\"exit\",\"job\":42,\"restart\":1,\"step\":\"0\",\"node\":\"n7\",\"rank\":3,"        \
    "\"local\":-1,\"tasks\":8,\"pid\":77,\"uid\":1000,\"time\":5,\"status\":" status "}"
#define EXIT  END_OF("9")
#define WHOSE "\"restart\":0,\"uid\":1,"
#define WORKED(number)                                                                             \
    "\"kind\":\"activity\",\"job\":1," WHOSE "\"node\":\"n\",\"time\":1,"                          \
    "\"signal\":{\"kind\":\"activity\",\"activity\":{" number "}}}"

static int parse(const char *text, struct node_message *ret)
{
    return node_message_parse(text, strlen(text), ret, NULL);
}

static void test_an_exit(void **state)
{
    struct node_message m;

    assert_int_equal(parse("{\"v\":1,\"unknown\":[{}]," EXIT, &m), 0);
    assert_int_equal(m.kind, NODE_MESSAGE_EXIT);
    assert_int_equal(m.job, 42);
    assert_int_equal(m.restart, 1);
    assert_int_equal(m.task.rank, 3);
    assert_int_equal(m.task.local, -1);
    assert_int_equal(m.task.pid, 77);
    assert_int_equal(m.uid, 1000);
    assert_int_equal(m.task.status, 9);
    assert_int_equal(m.time_us, 5);
    assert_string_equal(m.step, "0");
    assert_string_equal(m.node, "n7");
}

static void test_bad_messages_change_nothing(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{\"v\":2," EXIT,
        "{" EXIT,
        "{\"v\":1,\"job\":7," EXIT,                                       /* twice */
        "{\"v\":1,\"kind\":\"stop\",\"job\":42}",                         /* unknown */
        "{\"v\":1,\"kind\":\"gone\",\"job\":42,\"restart\":0,\"uid\":1}", /* nodes and times */
        "{\"v\":1,\"kind\":\"gone\",\"job\":0," WHOSE "\"node\":\"n\",\"time\":1}",
        "{\"v\":1,\"kind\":\"gone\",\"job\":4294967296," WHOSE "\"node\":\"n\",\"time\":1}",
        "{\"v\":1,\"kind\":\"gone\",\"job\":1.5," WHOSE "\"node\":\"n\",\"time\":1}",
        "{\"v\":1,\"kind\":\"gone\",\"job\":1," WHOSE "\"node\":\"n\",\"time\":-1}",
        "{\"v\":1,\"kind\":\"gone\",\"job\":1," WHOSE "\"node\":7,\"time\":1}",
        /* Whose processes it is about. */
        "{\"v\":1,\"kind\":\"gone\",\"job\":1,\"restart\":0,\"node\":\"n\",\"time\":1}",
        "{\"v\":1,\"kind\":\"gone\",\"job\":1,\"restart\":0,\"uid\":-1,\"node\":\"n\",\"time\":1}",
        "{\"v\":1,\"kind\":\"activity\",\"job\":1," WHOSE "\"node\":\"n\",\"time\":1}",
        ("{\"v\":1,\"kind\":\"activity\",\"job\":1," WHOSE "\"step\":\"0\",\"node\":\"n\","
         "\"time\":1,\"signal\":{\"kind\":\"hit\"}}"),
        /* What core computes with: a journal that holds it could not be read again. */
        "{\"v\":1," END_OF("100"),
        "{\"v\":1," END_OF("65535"),
        "{\"v\":1," WORKED("\"processes\":-1"),
        "{\"v\":1," WORKED("\"blocked\":-1"),
        "{\"v\":1," WORKED("\"interval\":9223372036854775807"),
        "{\"v\":1," WORKED("\"cpu\":-1"),
        ("{\"v\":1,\"kind\":\"activity\",\"job\":1," WHOSE "\"node\":\"n\",\"time\":1,"
         "\"signal\":{\"kind\":\"exit\",\"exit\":{\"signal\":65}}}"),
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct node_message m = {.job = 4711};

        assert_int_equal(parse(texts[i], &m), -EBADMSG);
        assert_int_equal(m.job, 4711);
    }
}

static void test_an_agents_signal_is_an_agents(void **state)
{
    struct node_message m = {.kind = NODE_MESSAGE_ACTIVITY, .job = 1, .node = "n1"};
    struct node_message back;
    json_t *j;

    m.signal = signal_make(SIGNAL_ACTIVITY, PROVENANCE_KERNEL);
    m.signal.activity.cpu = 12345;
    STR_COPY(m.signal.text, "what a log line might say");
    STR_COPY(m.signal.who.device, "\033[1m");
    m.signal.role = ROLE_ROOT;
    m.signal.cause = CAUSE_GPU_HARDWARE;
    j = node_message_to_json(&m);
    assert_int_equal(node_message_from_json(j, &back, NULL), 0);
    json_decref(j);
    assert_int_equal(back.signal.activity.cpu, 12345);
    assert_int_equal(back.signal.provenance, PROVENANCE_AGENT);
    assert_string_equal(back.signal.text, "");
    assert_string_equal(back.signal.who.device, "");
    assert_int_equal(back.signal.role, signal_make(SIGNAL_ACTIVITY, PROVENANCE_AGENT).role);
    assert_int_equal(back.signal.cause, signal_make(SIGNAL_ACTIVITY, PROVENANCE_AGENT).cause);
}

#define LOGS(paths)                                                                                \
    "{\"v\":1,\"kind\":\"logs\",\"job\":7," WHOSE "\"node\":\"n\",\"time\":1," paths "}"

static void test_logs_are_told_as_they_are_called_or_not_at_all(void **state)
{
    static const char *const bad[] = {
        LOGS("\"paths\":[\"x.log\"]"),
        LOGS("\"paths\":[\"/\"]"),
        LOGS("\"paths\":[\"\"]"),
        LOGS("\"paths\":[7]"),
        LOGS("\"paths\":[]"),
        LOGS("\"paths\":\"/x.log\""),
        LOGS("\"path\":\"/x.log\""),
        LOGS("\"paths\":[\"/x.log\",\"/a\\nb\"]"),
        LOGS("\"paths\":[\"/a\\u001b[1m\"]"),
        LOGS("\"paths\":[\"/a\\u202eb\"]"),
    };
    struct node_message m = {.job = 4711};
    const char *path = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(parse(bad[i], &m), -EBADMSG);
        assert_int_equal(m.job, 4711);
    }
    assert_int_equal(parse(LOGS("\"paths\":[\"/x\",\"/home/\\u00e4/%t \\\"x\\\\y.log\"]"), &m), 0);
    assert_int_equal(m.uid, 1);
    path = node_paths_next(&m.paths, path);
    assert_string_equal(path, "/x");
    path = node_paths_next(&m.paths, path);
    assert_string_equal(path, "/home/\303\244/%t \"x\\y.log");
    assert_null(node_paths_next(&m.paths, path));
}

/* What is taken in can be told: the longest JSON that paths can have, all longer than a name. */
static void test_as_many_logs_as_fit_a_message(void **state)
{
    static const size_t lengths[] = {2, 3, 500, NODE_PATH_LEN - 1};
    char path[NODE_PATH_LEN], text[NODE_PATH_LEN + 100];
    struct node_message m, back;
    json_t *j;

    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        m = (struct node_message){.kind = NODE_MESSAGE_LOGS,
                                  .job = UINT32_MAX,
                                  .restart = UINT16_MAX,
                                  .time_us = 10000000000000000 - 1};
        memset(m.node, '"', sizeof(m.node) - 1);
        memset(path, '\\', lengths[i]);
        path[0] = '/';
        path[lengths[i]] = '\0';
        while (node_paths_add(&m.paths, path))
            ;
        assert_true(m.paths.len + lengths[i] + 1 > NODE_PATHS_LEN);
        j = node_message_to_json(&m);
        assert_true(json_dumpb(j, NULL, 0, JSON_COMPACT) <= NODE_MESSAGE_BYTES_MAX);
        assert_int_equal(node_message_from_json(j, &back, NULL), 0);
        assert_int_equal(back.paths.len, m.paths.len);
        assert_memory_equal(back.paths.text, m.paths.text, m.paths.len);
        json_decref(j);
    }
    snprintf(text, sizeof(text), LOGS("\"paths\":[\"/%0*d\"]"), NODE_PATH_LEN - 1, 0);
    assert_int_equal(parse(text, &m), -EBADMSG);
}

#define FACT(fact) "{\"v\":1,\"kind\":\"fact\",\"node\":\"n7\",\"time\":1,\"fact\":" fact "}"
#define HIT(more)  "{\"count\":1,\"signal\":{\"kind\":\"hit\"," more "}}"

static void test_a_fact_is_its_witness_s_about_its_node(void **state)
{
    static const char *const bad[] = {
        FACT("7"),
        FACT("{}"),
        FACT("{\"count\":0,\"signal\":{\"kind\":\"hit\"}}"),
        FACT("{\"count\":1,\"code\":-1,\"signal\":{\"kind\":\"hit\"}}"),
        FACT("{\"count\":1,\"isolation\":\"explode\",\"signal\":{\"kind\":\"hit\"}}"),
        FACT("{\"count\":1,\"signal\":{\"kind\":\"step\"}}"),
        FACT(HIT("\"time_us\":-5")),
        "{\"v\":1,\"kind\":\"fact\",\"node\":\"\",\"time\":1,\"fact\":" HIT("\"text\":\"x\"") "}",
        "{\"v\":1,\"kind\":\"fact\",\"node\":\"n7\",\"time\":1}",
    };
    struct node_message m = {.job = 4711};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(parse(bad[i], &m), -EBADMSG);
        assert_int_equal(m.job, 4711);
    }
    assert_int_equal(
        parse(FACT(HIT("\"provenance\":\"scheduler\",\"line\":7,\"raised\":true,"
                       "\"who\":{\"node\":\"n8\",\"rank\":3,\"device\":\"a\\u001b[1m\"},"
                       "\"text\":\"a\\nb\"")),
              &m),
        0);
    assert_int_equal(m.job, 0);
    assert_int_equal(m.fact.signal.provenance, PROVENANCE_AGENT);
    assert_string_equal(m.fact.node, "n7");
    assert_string_equal(m.fact.signal.who.node, "n7");
    assert_int_equal(m.fact.signal.who.rank, RANK_NONE);
    assert_int_equal(m.fact.signal.line, 0);
    assert_false(m.fact.signal.raised);
    assert_null(strchr(m.fact.signal.who.device, 033));
    assert_null(strchr(m.fact.signal.text, '\n'));
}

/* The longest that one can be, and every member of it. */
static void test_a_fact_comes_through(void **state)
{
    struct node_message m = {.kind = NODE_MESSAGE_FACT, .time_us = 5}, back;
    struct node_fact *f = &m.fact;
    struct event sent = {.kind = EVENT_NODE_FACT}, got = sent;
    char where[96];
    json_t *j;

    *f = (struct node_fact){.job = UINT32_MAX,
                            .isolation = ISOLATION_REBOOT,
                            .code = INT32_MAX,
                            .count = UINT32_MAX,
                            .cleared = true,
                            .signal = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL)};
    memset(m.node, '"', sizeof(m.node) - 1);
    STR_COPY(f->node, m.node);
    f->signal.time_us = EVENT_TIME_MAX;
    f->signal.layer = LAYER_KERNEL;
    f->signal.role = ROLE_CONFIRM;
    f->signal.cause = CAUSE_EXTERNAL_SERVICE;
    f->signal.blame = BLAME_DEVICE;
    f->signal.advice = ADVICE_RESTART_EXCLUDING;
    f->signal.confidence = 100;
    f->signal.hang = f->signal.straggler = true;
    STR_COPY(f->signal.who.node, m.node);
    f->signal.who.pid = INT64_MAX;
    memset(f->signal.who.device, '"', sizeof(f->signal.who.device) - 1);
    memset(f->signal.who.peer, '"', sizeof(f->signal.who.peer) - 1);
    memset(f->signal.signature, '"', sizeof(f->signal.signature) - 1);
    memset(f->signal.clears, '"', sizeof(f->signal.clears) - 1);
    memset(f->signal.text, '"', sizeof(f->signal.text) - 1);
    j = node_message_to_json(&m);
    assert_true(json_dumpb(j, NULL, 0, JSON_COMPACT) <= NODE_MESSAGE_BYTES_MAX);
    assert_int_equal(node_message_from_json(j, &back, NULL), 0);
    json_decref(j);
    sent.fact = m.fact;
    got.fact = back.fact;
    assert_string_equal(event_differs(&sent, &got, where), "");
    m.fact.signal.provenance = PROVENANCE_NVML;
    j = node_message_to_json(&m);
    assert_int_equal(node_message_from_json(j, &back, NULL), 0);
    json_decref(j);
    assert_int_equal(back.fact.signal.provenance, PROVENANCE_NVML);
}

static const struct greeting greeting = {
    .word = "w7", .ask_with = "a1", .node = "n7", .at = "10.0.0.1 port 6821"};

#define SEALED(v, greeting, ask_with, node, at)                                                    \
    "{\"v\":" v ",\"greeting\":\"" greeting "\",\"ask_with\":\"" ask_with "\",\"node\":\"" node    \
    "\",\"at\":\"" at "\"}"

/* A greeting is of this connection or counts for nothing, and nothing else is one. */
static void test_a_greeting_is_of_its_connection(void **state)
{
    static const char *const others[] = {
        SEALED("1", "w7", "a1", "n7", "10.0.0.1 port 6821"),
        SEALED("2", "w8", "a1", "n7", "10.0.0.1 port 6821"),
        SEALED("2", "w7", "a2", "n7", "10.0.0.1 port 6821"),
        SEALED("2", "w7", "", "n7", "10.0.0.1 port 6821"),
        SEALED("2", "w7", "a1", "n8", "10.0.0.1 port 6821"),
        SEALED("2", "w7", "a1", "n7", "10.0.0.1 port 6822"),
        SEALED("2", "w7", "a1", "n7", ""),
        "{\"v\":2,\"greeting\":\"w7\",\"ask_with\":\"a1\",\"node\":\"n7\"}",
        "{\"v\":2,\"ask_with\":\"a1\",\"node\":\"n7\",\"question\":1,\"reader\":{\"uid\":0}}",
        "{\"v\":2,\"word\":\"w7\",\"node\":\"n7\",\"origin\":0,\"id\":0,\"body\":{}}",
        "",
    };
    struct greeting nowhere = greeting;
    json_t *j = greeting_to_seal(&greeting);
    _cleanup_(freep) char *text = json_dumps(j, JSON_COMPACT);

    assert_null(json_object_get(j, "word")); /* or it would do as a message of an agent's */
    json_decref(j);
    assert_int_equal(greeting_check(text, &greeting, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_int_equal(greeting_check(others[i], &greeting, NULL), -EBADMSG);
    nowhere.at[0] = '\0'; /* the kernel did not say where it goes to */
    assert_int_equal(greeting_check(others[6], &nowhere, NULL), -EBADMSG);
}

/* The two ends call the place by one name, in either family. */
static void test_both_ends_know_the_place(void **state)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 both = {.sin6_family = AF_INET6};
    char here[GREETING_PLACE_LEN], there[GREETING_PLACE_LEN];
    socklen_t len = sizeof(both);
    int listening = socket(AF_INET6, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0), end;

    if (listening < 0 || bind(listening, (struct sockaddr *)&both, len) < 0) {
        close(fd);
        skip(); /* no IPv6 */
    }
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&both, &len), 0);
    v4.sin_port = both.sin6_port;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&v4, sizeof(v4)), 0);
    end = accept(listening, NULL, NULL);
    assert_true(greeting_place(end, true, here) && greeting_place(fd, false, there));
    assert_string_equal(here, there);
    assert_non_null(strstr(here, "127.0.0.1 port "));
    assert_false(greeting_place(-1, true, here));
    close(end);
    close(fd);
    close(listening);
}

static void test_control_groups(void **state)
{
    static const struct {
        const char *text;
        uint32_t job;
    } rows[] = {
        {"0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n", 42},
        {"12:pids:/\n7:memory:/slurm/uid_1000/job_4242/step_batch\n1:name=systemd:/\n", 4242},
        {"4:freezer:/slurm_n1/uid_0/job_7", 7},
        {"0::/system.slice/ssh.service\n", 0},
        {"0::/job_\n", 0},
        {"0::/job_x/job_12x\n", 0},
        {"0::/job_99999999999/job_0/\n", 0},
        {"0::/user.slice/my-job_3/x\n", 0},
        {"", 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint32_t job = 0;

        assert_int_equal(kin_of_cgroup(rows[i].text, &job), rows[i].job != 0);
        assert_int_equal(job, rows[i].job);
    }
}

static char folder[] = "/tmp/reknit-test-agent-XXXXXX";
static char path[64];

static int set_up(void **state)
{
    STR_COPY(folder, "/tmp/reknit-test-agent-XXXXXX");
    assert_non_null(mkdtemp(folder));
    STR_PRINTF(path, "%s/spool", folder);
    return 0;
}

static int tear_down(void **state)
{
    char new[80];

    STR_PRINTF(new, "%s.new", path);
    unlink(new);
    unlink(path);
    return rmdir(folder);
}

static struct spool *open_spool(usec_t now)
{
    struct spool *s;

    assert_int_equal(spool_open(path, now, &s, NULL), 0);
    return s;
}

/* "ORIGIN/NUMBER TEXT" of what waits, each with a blank behind it. */
static const char *waiting(const struct spool *s)
{
    static char text[256];

    text[0] = '\0';
    for (uint64_t i = spool_first(s); i < spool_end(s); i++) {
        const struct spool_message *m = spool_get(s, i);
        size_t len = strlen(text);

        str_printf(text + len, sizeof(text) - len, "%lld/%llu %s ", (long long)m->origin,
                   (unsigned long long)m->number, m->text);
    }
    return text;
}

static void test_a_spool_outlives_its_agent(void **state)
{
    struct spool *s = open_spool(100);

    spool_add(s, "one"), spool_add(s, "two"), spool_add(s, "three");
    assert_string_equal(waiting(s), "100/1 one 100/2 two 100/3 three ");
    spool_free(s);

    s = open_spool(200);
    spool_add(s, "four");
    assert_string_equal(waiting(s), "100/1 one 100/2 two 100/3 three 200/1 four ");
    spool_ack(s, 100, 7), spool_ack(s, 100, 0), spool_ack(s, 300, 1); /* nonsense */
    spool_ack(s, 100, 2);
    assert_string_equal(waiting(s), "100/3 three 200/1 four ");
    spool_ack(s, 200, 1);
    spool_free(s);

    s = open_spool(300); /* what was delivered is not told again */
    assert_string_equal(waiting(s), "");
    spool_free(s);
}

/* Whatever a power cut took from the file, and whatever the clock says: no two messages have the
 * same name, or reknitd would take one for the other. */
static void test_no_name_is_given_twice(void **state)
{
    struct spool *s = open_spool(100);
    off_t kept;
    struct stat st;

    spool_add(s, "one");
    assert_int_equal(stat(path, &st), 0);
    kept = st.st_size;
    spool_add(s, "two"), spool_add(s, "three");
    spool_free(s);
    assert_int_equal(truncate(path, kept), 0);
    s = open_spool(50); /* and it is earlier now */
    spool_add(s, "four");
    assert_string_equal(waiting(s), "100/1 one 101/1 four ");
    spool_free(s);
}

static void let_files_grow(rlim_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_a_full_disk(void **state)
{
    struct spool *s = open_spool(100);
    struct stat st;

    signal(SIGXFSZ, SIG_IGN);
    spool_add(s, "one");
    assert_int_equal(stat(path, &st), 0);
    let_files_grow((rlim_t)st.st_size + 5); /* half a line */
    assert_true(spool_add(s, "two") < 0);
    assert_true(spool_add(s, "three") < 0);
    assert_string_equal(waiting(s), "100/1 one 100/2 two 100/3 three ");
    let_files_grow(RLIM_INFINITY);
    assert_int_equal(spool_add(s, "four"), 0);
    spool_ack(s, 100, 1);
    spool_free(s);

    s = open_spool(200);
    assert_string_equal(waiting(s), "100/1 one 100/2 two 100/3 three 100/4 four ");
    spool_free(s);
}

static void test_a_damaged_spool(void **state)
{
    struct spool *s = open_spool(100);
    int fd;

    spool_add(s, "one");
    spool_free(s);
    fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "100 2 half a li", 15), 15);
    close(fd);
    s = open_spool(200);
    spool_add(s, "two");
    spool_free(s);
    s = open_spool(300);
    assert_string_equal(waiting(s), "100/1 one 200/1 two ");
    spool_free(s);

    fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "-1 3 x\n", 7), 7);
    close(fd);
    s = open_spool(350);
    assert_string_equal(waiting(s), "100/1 one 200/1 two ");
    spool_free(s);

    fd = open(path, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, "something else\n1 1 x\n", 21), 21);
    close(fd);
    s = open_spool(400);
    assert_string_equal(waiting(s), "");
    spool_free(s);
}

static void test_a_spool_is_bounded(void **state)
{
    char text[3000];
    struct spool *s = open_spool(1);
    struct stat st;

    for (int i = 0; i < SPOOL_MESSAGES_MAX + 10; i++)
        assert_int_equal(spool_add(s, "short"), 0);
    assert_int_equal(spool_end(s) - spool_first(s), SPOOL_MESSAGES_MAX);
    assert_int_equal(spool_dropped(s), 10);
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < 4000; i++)
        assert_int_equal(spool_add(s, text), 0);
    assert_int_equal(spool_end(s) - spool_first(s), SPOOL_BYTES_MAX / 2 / sizeof(text));
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size <= SPOOL_BYTES_MAX);
    spool_ack(s, 1, spool_get(s, spool_end(s) - 1)->number);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size < 100);
    spool_free(s);
}

static void write_key(const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    fchmod(fd, mode);
    close(fd);
}

static void test_a_key(void **state)
{
    _cleanup_(key_freep) struct key *k = NULL, *other = NULL;
    _cleanup_(freep) char *sealed = NULL;
    const usec_t now = 1796035923 * USEC_PER_SEC;
    const char *text;

    write_key("short", 0600);
    assert_int_equal(key_load(path, &k, NULL), -EINVAL);
    write_key("0123456789abcdef0123456789abcdef", 0640);
    assert_int_equal(key_load(path, &k, NULL), -EPERM);
    write_key("0123456789abcdef0123456789abcdef", 0600);
    assert_int_equal(key_load(path, &k, NULL), 0);
    write_key("0123456789abcdef0123456789abcdeF", 0600);
    assert_int_equal(key_load(path, &other, NULL), 0);

    sealed = key_seal(k, "a:text", now);
    assert_int_equal(key_open(k, sealed, now + KEY_TTL / 2, &text, NULL), 0);
    assert_string_equal(text, "a:text");
    assert_int_equal(key_open(other, sealed, now, &text, NULL), -EBADMSG);
    assert_int_equal(key_open(k, sealed, now + KEY_TTL, &text, NULL), -EBADMSG);
    assert_int_equal(key_open(k, sealed, now - KEY_TTL, &text, NULL), -EBADMSG);
    for (size_t i = 0; i < strlen(sealed); i++) {
        sealed[i] ^= 1;
        assert_int_equal(key_open(k, sealed, now, &text, NULL), -EBADMSG);
        sealed[i] ^= 1;
    }
    sealed[strlen("KEY1:") + 40] = '\0';
    assert_int_equal(key_open(k, sealed, now, &text, NULL), -EBADMSG);
}

/* Of one image, started in the same microsecond, with the same process id. */
static void test_each_node_has_a_chance_of_its_own(void **state)
{
    enum { NODES = 1000, SLOTS = 100 };
    unsigned in_slot[SLOTS] = {0};
    char node[16];

    for (int i = 0; i < NODES; i++) {
        STR_PRINTF(node, "node%04d", i);
        srandom(seed_of(node, 1796035207 * USEC_PER_SEC, 312));
        in_slot[random() % SLOTS]++;
    }
    for (size_t i = 0; i < SLOTS; i++)
        assert_in_range(in_slot[i], 1, NODES / SLOTS * 3);
    assert_int_not_equal(seed_of("n1", 1, 312), seed_of("n1", 2, 312));
    assert_int_not_equal(seed_of("n1", 1, 312), seed_of("n1", 1, 313));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_exit),
        cmocka_unit_test(test_bad_messages_change_nothing),
        cmocka_unit_test(test_an_agents_signal_is_an_agents),
        cmocka_unit_test(test_logs_are_told_as_they_are_called_or_not_at_all),
        cmocka_unit_test(test_as_many_logs_as_fit_a_message),
        cmocka_unit_test(test_a_fact_is_its_witness_s_about_its_node),
        cmocka_unit_test(test_a_fact_comes_through),
        cmocka_unit_test(test_a_greeting_is_of_its_connection),
        cmocka_unit_test(test_both_ends_know_the_place),
        cmocka_unit_test(test_control_groups),
        cmocka_unit_test(test_each_node_has_a_chance_of_its_own),
        cmocka_unit_test_setup_teardown(test_a_spool_outlives_its_agent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_name_is_given_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_full_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_damaged_spool, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_spool_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_key, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
