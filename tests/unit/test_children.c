/* SPDX-License-Identifier: Apache-2.0 */

/* Programs by the hundred, started and ended at once, by ourselves and by a real spawner. They are
 * copies of cat: what matters here is that they are there, and that they end. */

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/proctree.h"
#include "base/str.h"
#include "source/children.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "listens.h"
#include "until.h"

/* A socket of datagrams takes 278 of those that are spoken here. */
#define CROWD     400
#define OF_A_USER 4     /* as many as the spawner allows */
#define FIRST_UID 54321 /* that no user has, like those after it */
#define RUN_UNTIL(w, condition)                                                                    \
    UNTIL(condition, assert_true(sd_event_run((w)->event, 100 * USEC_PER_MSEC) >= 0))

struct kid {
    struct child *child;
    int fd;
    bool ended;
    char text[256];
};

struct world {
    sd_event *event;
    struct children *children;
    char dir[32], socket[64];
    pid_t spawner;
    struct kid adapter, readers[CROWD];
};

static void on_started(void *ctx, int fd)
{
    ((struct kid *)ctx)->fd = fd;
}

static void on_ended(void *ctx, const char *text)
{
    struct kid *k = ctx;

    k->ended = true;
    k->child = NULL;
    STR_COPY(k->text, text);
}

static void start(struct world *w, struct kid *k, enum child_kind kind, uid_t uid)
{
    static const struct child_handlers handlers = {on_started, on_ended};

    *k = (struct kid){.fd = -1};
    k->child = child_start(w->children, kind, uid, (gid_t)-1, &handlers, k);
}

static void drop(struct kid *k)
{
    k->child = child_drop(k->child);
    closep(&k->fd);
    k->fd = -1;
}

static size_t count_started(const struct world *w)
{
    size_t n = 0;

    for (size_t i = 0; i < CROWD; i++)
        n += w->readers[i].fd >= 0;
    return n;
}

static size_t count_ended(const struct world *w)
{
    size_t n = 0;

    for (size_t i = 0; i < CROWD; i++)
        n += w->readers[i].ended;
    return n;
}

static size_t count_processes(pid_t parent)
{
    _cleanup_proc_list_ struct proc_list l = {0};

    assert_int_equal(proc_list_tree(parent, &l), 0);
    return l.procs.n;
}

static size_t count_alive(pid_t parent)
{
    _cleanup_proc_list_ struct proc_list l = {0};
    size_t n = 0;

    assert_int_equal(proc_list_tree(parent, &l), 0);
    VEC_FOREACH (&l.procs, p)
        n += !proc_is_dead(p);
    return n;
}

static void copy_cat(const char *dir, const char *name)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", dir, name);
    _cleanup_(closep) int in = open("/bin/cat", O_RDONLY | O_CLOEXEC);
    _cleanup_(closep) int out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    ssize_t n;

    assert_true(in >= 0 && out >= 0);
    while ((n = sendfile(out, in, NULL, 1 << 20)) > 0)
        ;
    assert_int_equal(n, 0);
}

static void start_spawner(struct world *w)
{
    w->spawner = fork();
    if (w->spawner == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test fail, nothing is left of it */
        execl(SPAWNER, SPAWNER, "--socket", w->socket, "--programs", w->dir, "--user", "nobody",
              "--slurm-user", "daemon", (char *)NULL);
        _exit(127);
    }
    assert_true(w->spawner > 0);
    UNTIL(spawner_listens(w->socket), sched_yield());
}

static void open_children(struct world *w, bool spawner, uint32_t readers_max)
{
    struct children_config c = {.programs = w->dir, .readers_max = readers_max};

    *w = (struct world){.dir = "/tmp/reknit-children-XXXXXX", .adapter = {.fd = -1}};
    for (size_t i = 0; i < CROWD; i++)
        w->readers[i].fd = -1;
    assert_non_null(mkdtemp(w->dir));
    assert_int_equal(chmod(w->dir, 0755), 0);
    snprintf(w->socket, sizeof(w->socket), "%s/socket", w->dir);
    copy_cat(w->dir, "reknit-reader");
    copy_cat(w->dir, "reknit-slurm");
    if (spawner) {
        start_spawner(w);
        c.spawner = w->socket;
    }
    assert_true(sd_event_new(&w->event) >= 0);
    w->children = children_new(w->event, &c);
}

static void close_children(struct world *w)
{
    for (size_t i = 0; i < CROWD; i++)
        drop(&w->readers[i]);
    drop(&w->adapter);
    children_free(w->children);
    sd_event_unref(w->event);
    if (w->spawner > 0) {
        assert_int_equal(kill(w->spawner, SIGTERM), 0);
        assert_int_equal(waitpid(w->spawner, NULL, 0), w->spawner);
    }
    while (waitpid(-1, NULL, 0) > 0)
        ; /* those that were killed last */
    for (const char *const *name =
             (const char *const[]){"reknit-reader", "reknit-slurm", "socket", NULL};
         *name; name++) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", w->dir, *name);

        unlink(path);
    }
    rmdir(w->dir);
}

/* Whether cat still repeats what it is told. */
static void check_alive(struct world *w, const struct kid *k)
{
    char c = 0;

    assert_false(k->ended);
    assert_int_equal(write(k->fd, "x", 1), 1);
    RUN_UNTIL(w, read(k->fd, &c, 1) == 1);
    assert_int_equal(c, 'x');
}

/* All that is asked and answered comes while the other side is not listening. */
static void test_a_crowd_by_the_spawner(void **state)
{
    struct world w;

    open_children(&w, true, 0);
    start(&w, &w.adapter, CHILD_ADAPTER, 0);
    RUN_UNTIL(&w, w.adapter.fd >= 0);

    assert_int_equal(kill(w.spawner, SIGSTOP), 0);
    for (uid_t i = 0; i < CROWD; i++)
        start(&w, &w.readers[i], CHILD_READER, FIRST_UID + i / OF_A_USER);
    assert_int_equal(kill(w.spawner, SIGCONT), 0);
    for (size_t n = 1; n <= CROWD; n++) /* a minute for each */
        RUN_UNTIL(&w, count_started(&w) >= n || count_ended(&w) > 0);
    assert_int_equal(count_ended(&w), 0);
    assert_int_equal(count_processes(w.spawner), 1 + CROWD);

    assert_int_equal(kill(w.spawner, SIGSTOP), 0);
    for (size_t i = 0; i < CROWD; i++)
        drop(&w.readers[i]);
    assert_int_equal(kill(w.spawner, SIGCONT), 0);
    RUN_UNTIL(&w, count_processes(w.spawner) == 1);
    check_alive(&w, &w.adapter);

    start(&w, &w.readers[0], CHILD_READER, FIRST_UID); /* and it goes on */
    RUN_UNTIL(&w, w.readers[0].fd >= 0);
    check_alive(&w, &w.readers[0]);
    close_children(&w);
}

static void test_the_adapter_has_a_place_of_its_own(void **state)
{
    struct world w;

    open_children(&w, false, 3);
    for (size_t i = 0; i < 4; i++)
        start(&w, &w.readers[i], CHILD_READER, getuid());
    start(&w, &w.adapter, CHILD_ADAPTER, 0);
    RUN_UNTIL(&w, w.adapter.fd >= 0 && count_started(&w) == 3 && w.readers[3].ended);
    assert_non_null(strstr(w.readers[3].text, "readers.max_processes"));
    check_alive(&w, &w.adapter);

    children_limit(w.children, 4);
    start(&w, &w.readers[3], CHILD_READER, getuid());
    RUN_UNTIL(&w, w.readers[3].fd >= 0);
    close_children(&w);
}

/* There are descriptors for the child's socket, but none to watch the child by. */
static void test_a_child_that_cannot_be_watched_is_none(void **state)
{
    struct rlimit before, few;
    struct world w;
    int fd;

    open_children(&w, false, 0);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* the lowest number that is free */
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){(rlim_t)fd + 2, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    start(&w, &w.readers[0], CHILD_READER, getuid());
    RUN_UNTIL(&w, w.readers[0].ended);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_string_equal(w.readers[0].text, strerror(EMFILE));

    UNTIL(count_alive(getpid()) == 0, sched_yield());
    start(&w, &w.readers[1], CHILD_READER, getuid()); /* the next one reaps it */
    RUN_UNTIL(&w, w.readers[1].fd >= 0);
    assert_int_equal(count_processes(getpid()), 1);
    close_children(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_adapter_has_a_place_of_its_own),
        cmocka_unit_test(test_a_child_that_cannot_be_watched_is_none),
        cmocka_unit_test(test_a_crowd_by_the_spawner), /* root's: the last */
    };
    /* Left out, for cmocka tells one that is skipped as one that failed. */
    size_t n = ARRAY_SIZE(tests) - (geteuid() != 0);

    return _cmocka_run_group_tests("children", tests, n, NULL, NULL);
}
