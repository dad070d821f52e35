/* SPDX-License-Identifier: Apache-2.0 */

/* A listening socket while no descriptor is left. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/acceptor.h"
#include "base/time.h"
#include "until.h"

#include <sys/resource.h>
#include <sys/un.h>

struct fixture {
    sd_event *event;
    int listening, client, taken;
    struct acceptor *acceptor;
};

static void on_connection(void *ctx, int fd, const struct sockaddr *from, socklen_t len)
{
    struct fixture *f = ctx;

    assert_int_equal(f->taken, -1);
    f->taken = fd;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(at);

    *state = f;
    f->taken = -1;
    f->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    f->client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* a name that the kernel chooses */
    assert_return_code(bind(f->listening, (struct sockaddr *)&at, sizeof(at.sun_family)), 0);
    assert_return_code(listen(f->listening, 4), 0);
    assert_return_code(getsockname(f->listening, (struct sockaddr *)&at, &len), 0);
    assert_return_code(sd_event_new(&f->event), 0);
    assert_int_equal(acceptor_new(f->event, f->listening, on_connection, f, &f->acceptor), 0);
    assert_return_code(connect(f->client, (struct sockaddr *)&at, len), 0);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    acceptor_free(f->acceptor);
    sd_event_unref(f->event);
    closep(&f->taken);
    closep(&f->client);
    closep(&f->listening);
    free(f);
    return 0;
}

static void a_connection_is_taken(void **state)
{
    struct fixture *f = *state;

    UNTIL(f->taken >= 0, sd_event_run(f->event, USEC_PER_SEC));
    assert_int_equal(sd_event_run(f->event, 0), 0);
}

/* The loop turns once, not all the time; and the connection is taken when it can be. */
static void without_descriptors_it_is_tried_now_and_then(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, none;
    usec_t end = mono_us() + ACCEPT_AGAIN_MS * USEC_PER_MSEC;
    unsigned turns = 0;

    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 0; /* nothing more; what is open stays so */
    assert_return_code(setrlimit(RLIMIT_NOFILE, &none), 0);
    while (mono_us() < end)
        turns += sd_event_run(f->event, 20 * USEC_PER_MSEC) > 0;
    setrlimit(RLIMIT_NOFILE, &before);
    assert_in_range(turns, 1, 4);
    assert_int_equal(f->taken, -1);
    UNTIL(f->taken >= 0, sd_event_run(f->event, USEC_PER_SEC));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_connection_is_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_descriptors_it_is_tried_now_and_then, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
