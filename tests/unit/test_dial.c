/* SPDX-License-Identifier: Apache-2.0 */

/* How an agent calls reknitd: from a port that only root has, as long as one is to be had. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/dial.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORTS_MAX 64

/* The linker puts them before the real ones. */
static struct {
    int bind_error; /* of a port; 0 = as the kernel says */
    int connect_error;
    unsigned connects_fail; /* so many, first */
    unsigned ports[PORTS_MAX], n_ports;
    unsigned connects;
} kernel;

int __real_bind(int fd, const struct sockaddr *at, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *at, socklen_t len);
int __real_connect(int fd, const struct sockaddr *to, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len);

int __wrap_bind(int fd, const struct sockaddr *at, socklen_t len)
{
    unsigned port = ntohs(at->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)at)->sin6_port
                                                    : ((const struct sockaddr_in *)at)->sin_port);

    if (port == 0) /* the test's own */
        return __real_bind(fd, at, len);
    assert_true(kernel.n_ports < PORTS_MAX);
    kernel.ports[kernel.n_ports++] = port;
    if (kernel.bind_error == 0)
        return __real_bind(fd, at, len);
    errno = kernel.bind_error;
    return -1;
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len)
{
    if (kernel.connects++ >= kernel.connects_fail)
        return __real_connect(fd, to, len);
    errno = kernel.connect_error;
    return -1;
}

struct fixture {
    int listens;
    char port[8];
};

static int set_up(void **state)
{
    static struct fixture f;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(at);

    memset(&kernel, 0, sizeof(kernel));
    f.listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f.listens, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(f.listens, 8), 0);
    assert_int_equal(getsockname(f.listens, (struct sockaddr *)&at, &len), 0);
    STR_PRINTF(f.port, "%u", (unsigned)ntohs(at.sin_port));
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    close(((struct fixture *)*state)->listens);
    return 0;
}

/* Waits for the connection, and whether it came to be. */
static int finish(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    assert_true(fd >= 0);
    assert_int_equal(poll(&p, 1, 10000), 1);
    return dial_done(fd);
}

/* Of the connection, as the other side sees it. */
static unsigned port_of_caller(const struct fixture *f)
{
    struct sockaddr_in from;
    socklen_t len = sizeof(from);
    int fd = accept4(f->listens, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);

    assert_true(fd >= 0);
    close(fd);
    return ntohs(from.sin_port);
}

static int option(int fd, int level, int name)
{
    int value = 0;
    socklen_t len = sizeof(value);

    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

static void root_calls_from_a_port_of_root(void **state)
{
    const struct fixture *f = *state;
    _cleanup_(closep) int fd = -1;

    if (geteuid() != 0)
        skip();
    fd = dial("127.0.0.1", f->port);
    assert_int_equal(finish(fd), 0);
    assert_in_range(port_of_caller(f), 600, 1023);
    assert_true(option(fd, SOL_SOCKET, SO_KEEPALIVE));
    assert_true(option(fd, IPPROTO_TCP, TCP_NODELAY));
}

static void who_may_not_have_one_calls_from_any(void **state)
{
    static const int errors[] = {EACCES, EPERM};
    const struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        _cleanup_(closep) int fd = -1;

        kernel.bind_error = errors[i];
        kernel.n_ports = 0;
        fd = dial("127.0.0.1", f->port);
        assert_int_equal(finish(fd), 0);
        assert_int_equal(kernel.n_ports, 1); /* others would not be given either */
        assert_true(port_of_caller(f) >= 1024);
    }
}

static void when_all_are_taken_any_does(void **state)
{
    const struct fixture *f = *state;
    _cleanup_(closep) int fd = -1;

    kernel.bind_error = EADDRINUSE;
    fd = dial("127.0.0.1", f->port);
    assert_int_equal(finish(fd), 0);
    assert_true(port_of_caller(f) >= 1024);
    assert_in_range(kernel.n_ports, 2, 32); /* and it does not look for long */
    for (unsigned i = 0; i < kernel.n_ports; i++) {
        assert_in_range(kernel.ports[i], 600, 1023);
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(kernel.ports[i], kernel.ports[k]);
    }
}

/* It was used for a connection to there a moment ago: only connect() tells. */
static void a_port_that_is_still_in_use_there_is_not_the_last(void **state)
{
    const struct fixture *f = *state;
    _cleanup_(closep) int fd = -1;

    if (geteuid() != 0)
        skip();
    kernel.connects_fail = 3;
    kernel.connect_error = EADDRNOTAVAIL;
    fd = dial("127.0.0.1", f->port);
    assert_int_equal(finish(fd), 0);
    assert_int_equal(kernel.connects, 4);
    assert_in_range(port_of_caller(f), 600, 1023);
}

static void what_else_is_wrong_is_said_at_once(void **state)
{
    const struct fixture *f = *state;

    kernel.connects_fail = 100;
    kernel.connect_error = ENETUNREACH;
    assert_int_equal(dial("127.0.0.1", f->port), -ENETUNREACH);
    assert_int_equal(kernel.connects, 1);
}

static void where_nobody_listens_is_told_later(void **state)
{
    struct fixture *f = *state;
    _cleanup_(closep) int fd = -1;

    close(f->listens);
    f->listens = -1;
    fd = dial("127.0.0.1", f->port);
    assert_true(fd == -ECONNREFUSED || finish(fd) == -ECONNREFUSED);
}

/* Names are resolved elsewhere, for that may hang. */
static void only_numbers_are_dialled(void **state)
{
    const struct fixture *f = *state;

    assert_int_equal(dial("localhost", f->port), -EINVAL);
    assert_int_equal(dial("127.0.0.1", "http"), -EINVAL);
    assert_int_equal(dial("", f->port), -EINVAL);
    assert_int_equal(kernel.connects, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(root_calls_from_a_port_of_root),
        TEST(who_may_not_have_one_calls_from_any),
        TEST(when_all_are_taken_any_does),
        TEST(a_port_that_is_still_in_use_there_is_not_the_last),
        TEST(what_else_is_wrong_is_said_at_once),
        TEST(where_nobody_listens_is_told_later),
        TEST(only_numbers_are_dialled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
