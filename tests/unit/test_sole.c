/* SPDX-License-Identifier: Apache-2.0 */

/* One reknitd for a cluster on a host: what another process has claimed, and what strangers make of
 * the names. */

#include "source/sole.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define STRANGER 65533
#define PATIENCE (30 * USEC_PER_SEC)

static sd_event *event;

/* Of a cluster that no other run of this test has. */
static json_t *cluster(const char *controller)
{
    char name[64];

    STR_PRINTF(name, "unit-%d", (int)getpid());
    return json_pack("{s:s, s:s}", "cluster", name, "controller", controller);
}

static int claim(const json_t *config, struct sole **ret, struct err *e)
{
    return sole_claim(event, config, ret, e);
}

/* Another process, which says when it is ready and lives until its pipe is closed. */
struct other {
    pid_t pid;
    int live;
};

static struct other begin(void (*fn)(const json_t *config), const json_t *config)
{
    int ready[2], live[2];
    struct other o;
    char c;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(live, O_CLOEXEC), 0);
    o.pid = fork();
    assert_true(o.pid >= 0);
    if (o.pid == 0) {
        close(ready[0]);
        close(live[1]);
        fn(config);
        if (write(ready[1], "", 1) != 1 || read(live[0], &c, 1) != 0)
            _exit(1);
        _exit(0);
    }
    close(ready[1]);
    close(live[0]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    o.live = live[1];
    return o;
}

static void end(struct other *o)
{
    close(o->live);
    assert_int_equal(waitpid(o->pid, NULL, 0), o->pid);
}

static void claims(const json_t *config)
{
    struct sole *s = NULL;

    if (sd_event_new(&event) < 0 || claim(config, &s, NULL) < 0)
        _exit(1);
}

static void another_process_has_it(void **state)
{
    json_t *config = cluster("ctl:1"), *elsewhere = cluster("ctl:2"), *none = json_object();
    struct other o = begin(claims, config);
    struct sole *s = NULL;
    struct sole_holder who[2];
    struct err e = {0};
    char pid[16];

    (void)state;
    STR_PRINTF(pid, "process %d of user %u", (int)o.pid, (unsigned)geteuid());
    assert_int_equal(claim(config, &s, &e), -EBUSY);
    assert_null(s);
    assert_non_null(strstr(e.text, pid));
    assert_int_equal(sole_holders(config, who, 2, NULL), 1);
    assert_int_equal(who[0].pid, o.pid);
    assert_int_equal(claim(elsewhere, &s, NULL), 0);
    assert_true(sole_is_of(s, elsewhere));
    assert_false(sole_is_of(s, config));
    assert_false(sole_is_of(s, none));
    sole_free(s);
    assert_int_equal(claim(none, &s, NULL), 0);
    assert_null(s);
    assert_true(sole_is_of(NULL, none));
    assert_false(sole_is_of(NULL, config));
    kill(o.pid, SIGKILL);
    end(&o);
    assert_int_equal(claim(config, &s, NULL), 0);
    assert_int_equal(sole_holders(config, who, 2, NULL), 1);
    sole_free(s);
    assert_int_equal(sole_holders(config, who, 2, NULL), 0);
    json_decref(config);
    json_decref(elsewhere);
    json_decref(none);
}

static void a_stranger_claims(const json_t *config)
{
    if (setgid(STRANGER) < 0 || setuid(STRANGER) < 0)
        _exit(1);
    claims(config);
}

/* A name that a claim of that cluster could have, and no claim has any more. */
static socklen_t name_of_a_claim(const json_t *config, struct sockaddr_un *ret)
{
    struct sole *s = NULL;
    socklen_t len = 0;

    if (claim(config, &s, NULL) < 0)
        _exit(1);
    for (int fd = 0; fd < 64; fd++) {
        struct sockaddr_un a = {0};
        socklen_t size = sizeof(a);

        if (getsockname(fd, (struct sockaddr *)&a, &size) == 0 && a.sun_family == AF_UNIX &&
            str_startswith(a.sun_path + 1, "reknitd/")) {
            *ret = a;
            len = size;
        }
    }
    sole_free(s);
    return len;
}

/* It listens and takes no connection, and its queue is full. */
static void a_stranger_keeps_waiting(const json_t *config)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), first = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un a;
    socklen_t len;

    if (sd_event_new(&event) < 0)
        _exit(1);
    len = name_of_a_claim(config, &a);
    if (setgid(STRANGER) < 0 || setuid(STRANGER) < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 ||
        listen(fd, 0) < 0 || connect(first, (struct sockaddr *)&a, len) < 0)
        _exit(1);
}

static void of_a_stranger(void (*fn)(const json_t *config))
{
    json_t *config = cluster("ctl:3");
    struct other o;
    struct sole *s = NULL;
    usec_t begun;

    if (geteuid() != 0)
        skip();
    o = begin(fn, config);
    begun = mono_us();
    assert_int_equal(claim(config, &s, NULL), 0);
    assert_true(mono_us() - begun < PATIENCE);
    sole_free(s);
    end(&o);
    json_decref(config);
}

static void a_stranger_hinders_nobody(void **state)
{
    (void)state;
    of_a_stranger(a_stranger_claims);
}

static void a_stranger_who_keeps_waiting_hinders_nobody(void **state)
{
    (void)state;
    of_a_stranger(a_stranger_keeps_waiting);
}

/* However many look who is here, and stay: they are sent away. */
static void a_claim_takes_what_comes(void **state)
{
    enum { VISITORS = 1000 };
    json_t *config = cluster("ctl:4");
    struct sole_holder who;
    struct sole *s = NULL;

    (void)state;
    assert_int_equal(claim(config, &s, NULL), 0);
    for (int i = 0; i < VISITORS; i++) {
        assert_int_equal(sole_holders(config, &who, 1, NULL), 1);
        assert_true(sd_event_run(event, 0) >= 0);
    }
    sole_free(s);
    json_decref(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_process_has_it),
        cmocka_unit_test(a_stranger_hinders_nobody),
        cmocka_unit_test(a_stranger_who_keeps_waiting_hinders_nobody),
        cmocka_unit_test(a_claim_takes_what_comes),
    };
    int failed;

    if (sd_event_new(&event) < 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    sd_event_unref(event);
    return failed;
}
