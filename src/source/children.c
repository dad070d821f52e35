/* SPDX-License-Identifier: Apache-2.0 */

/* With a spawner, a child is a number of that connection; when the connection is lost, all its
 * children are (the spawner kills them). Without, a child is a process of ours, watched by a pidfd,
 * and the kernel kills it when we die.
 *
 * What fails within child_start() is told from the loop, by a deferred event.
 *
 * What is owed to the spawner has a bound by itself: of each child in the list it is asked for a
 * start and at most one kill, and without its answer there is no next one. */

#include "source/children.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/packets.h"
#include "base/sig.h"
#include "base/str.h"
#include "base/vec.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define OWED_MAX ((size_t)4 * CHILDREN_MAX)

enum child_state {
    STATE_ASKED,   /* the spawner has not answered yet */
    STATE_STARTED, /* started() is due, or was told */
    STATE_FAILED,  /* ended() is due */
};

struct child {
    struct children *children;
    enum child_kind kind;
    struct child_handlers handlers;
    void *ctx; /* NULL handlers: it was dropped while the spawner had not answered yet */
    bool dropped;
    enum child_state state;
    int64_t id;      /* of the request */
    uint32_t number; /* the spawner's */
    pid_t pid;       /* of a process of ours, 0 = none */
    int pidfd, fd;   /* fd: until started() has told it */
    sd_event_source *exit, *later;
    char text[256];
};

struct children {
    sd_event *event;
    char *spawner, *programs;
    uint32_t readers_max;
    struct packets *packets; /* with the spawner; NULL = not connected */
    int64_t last_id;
    VEC(struct child *) list;
    VEC(pid_t) killed; /* processes of ours that nobody watches, to be reaped */
};

struct children *children_new(sd_event *event, const struct children_config *c)
{
    struct children *all = xnew(struct children);

    all->event = sd_event_ref(event);
    children_limit(all, c->readers_max);
    if (c->spawner && *c->spawner)
        all->spawner = xstrdup(c->spawner);
    all->programs = xstrdup(c->programs ? c->programs : ".");
    return all;
}

void children_limit(struct children *all, uint32_t readers_max)
{
    all->readers_max = readers_max > 0 && readers_max < CHILDREN_MAX ? readers_max : CHILDREN_MAX;
}

static void reap(struct children *all)
{
    for (size_t i = all->killed.n; i > 0; i--)
        if (waitpid(all->killed.v[i - 1], NULL, WNOHANG) != 0)
            VEC_REMOVE(&all->killed, i - 1);
}

/* One that nobody watches is not waited for: in state D it outlives its SIGKILL. */
static void end_process(struct child *c)
{
    if (c->pid <= 0)
        return;
    kill(c->pid, SIGKILL); /* ours, not reaped yet */
    *VEC_PUSH(&c->children->killed) = c->pid;
    c->pid = 0;
    reap(c->children);
}

static void forget(struct child *c)
{
    struct children *all = c->children;

    end_process(c);
    for (size_t i = 0; i < all->list.n; i++)
        if (all->list.v[i] == c) {
            VEC_REMOVE(&all->list, i);
            break;
        }
    sd_event_source_disable_unref(c->exit);
    sd_event_source_disable_unref(c->later);
    closep(&c->pidfd);
    closep(&c->fd);
    free(c);
}

/* ---- telling, from the loop ---- */

static void tell_end(struct child *c)
{
    struct child_handlers h = c->handlers;
    void *ctx = c->ctx;
    char text[sizeof(c->text)];

    STR_COPY(text, c->text);
    if (c->dropped) {
        forget(c);
        return;
    }
    forget(c);
    h.ended(ctx, text);
}

static int on_later(sd_event_source *source, void *userdata)
{
    struct child *c = userdata;

    if (c->state == STATE_FAILED)
        tell_end(c);
    else if (c->fd >= 0)
        c->handlers.started(c->ctx, take_fd(&c->fd));
    return 0;
}

static void tell_later(struct child *c, enum child_state state)
{
    c->state = state;
    if (!c->later && sd_event_add_defer(c->children->event, &c->later, on_later, c) < 0)
        abort(); /* out of memory */
    sd_event_source_set_enabled(c->later, SD_EVENT_ONESHOT);
}

static void fail(struct child *c, const char *text)
{
    STR_COPY(c->text, text);
    tell_later(c, STATE_FAILED);
}

static void describe_end(struct child *c, int status, int sig)
{
    char name[SIG_NAME_LEN];

    if (sig > 0)
        STR_PRINTF(c->text, "it was killed by %s", sig_name(sig, name));
    else
        STR_PRINTF(c->text, "it ended with status %d", status);
}

/* ---- by the spawner ---- */

static void lose_spawner(void *ctx)
{
    struct children *all = ctx;

    all->packets = packets_free(all->packets);
    VEC_FOREACH (&all->list, c)
        fail(*c, "the spawner has closed the connection");
}

static void ask(struct children *all, json_t *j)
{
    _cleanup_(freep) char *text = json_dumps(j, JSON_COMPACT);

    json_decref(j);
    assert(text);
    if (all->packets)
        packets_send(all->packets, text, strlen(text), -1);
}

static struct child *find_id(const struct children *all, int64_t id)
{
    VEC_FOREACH (&all->list, c)
        if ((*c)->id == id && (*c)->state == STATE_ASKED)
            return *c;
    return NULL;
}

static struct child *find_number(const struct children *all, uint32_t number)
{
    VEC_FOREACH (&all->list, c)
        if ((*c)->number == number && number != 0)
            return *c;
    return NULL;
}

static void kill_number(struct children *all, uint32_t number)
{
    ask(all, json_pack("{s:I,s:s,s:I}", "id", (json_int_t)++all->last_id, "op", "kill", "child",
                       (json_int_t)number));
}

static void take_answer(struct children *all, const json_t *j, int fd)
{
    struct child *c = find_id(all, json_integer_value(json_object_get(j, "id")));
    const char *text = json_string_value(json_object_get(j, "text"));

    if (!c) {
        closep(&fd);
        return;
    }
    c->number = (uint32_t)json_integer_value(json_object_get(j, "child"));
    if (!json_is_true(json_object_get(j, "ok")) || fd < 0) {
        closep(&fd);
        fail(c, text ? text : "the spawner does not start it");
    } else if (c->dropped) {
        kill_number(all, c->number);
        closep(&fd);
        forget(c);
    } else {
        c->fd = fd;
        fcntl(fd, F_SETFL, O_NONBLOCK);
        tell_later(c, STATE_STARTED);
    }
}

static void take_exit(struct children *all, const json_t *j)
{
    struct child *c = find_number(all, (uint32_t)json_integer_value(json_object_get(j, "exit")));

    if (!c || c->state == STATE_FAILED)
        return;
    describe_end(c, (int)json_integer_value(json_object_get(j, "status")),
                 (int)json_integer_value(json_object_get(j, "signal")));
    tell_later(c, STATE_FAILED);
}

static void on_spawner(void *ctx, const char *text, size_t len, int fd)
{
    json_t *j = json_loadb(text, len, 0, NULL);

    if (json_object_get(j, "exit")) {
        closep(&fd);
        take_exit(ctx, j);
    } else {
        take_answer(ctx, j, fd);
    }
    json_decref(j);
}

static int connect_spawner(struct children *all, struct err *e)
{
    static const struct packets_options options = {.takes_fds = true, .owed_max = OWED_MAX};
    static const struct packets_handlers handlers = {.packet = on_spawner, .closed = lose_spawner};
    _cleanup_(closep) int fd = -1;
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    if (all->packets)
        return 0;
    if (!STR_COPY(a.sun_path, all->spawner))
        return err_set(e, -ENAMETOOLONG, "spawner %s: the path is too long", all->spawner);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        return err_set(e, -errno, "the spawner cannot be reached at %s: %s", all->spawner,
                       strerror(errno));
    all->packets = packets_new(all->event, take_fd(&fd), &options, &handlers, all);
    return all->packets ? 0 : err_set(e, -ENOMEM, "the event loop takes nothing more");
}

static void start_by_spawner(struct child *c, enum child_kind kind, uid_t uid, gid_t gid)
{
    struct children *all = c->children;
    struct err e = {0};
    json_t *j;

    if (connect_spawner(all, &e) < 0) {
        fail(c, e.text);
        return;
    }
    j = json_pack("{s:I,s:s,s:s}", "id", (json_int_t)c->id, "op", "start", "what",
                  kind == CHILD_READER ? "reader" : "adapter");
    if (kind == CHILD_READER) {
        json_object_set_new(j, "uid", json_integer(uid));
        if (gid != (gid_t)-1)
            json_object_set_new(j, "gid", json_integer(gid));
    }
    ask(all, j);
}

/* ---- by ourselves ---- */

/* Not by base/spawn.c: posix_spawn() cannot have it killed when we die. */
__attribute__((noreturn)) static void run(const char *program, pid_t parent, int fd)
{
    char *argv[] = {(char *)program, NULL};
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
        close_range(STDERR_FILENO + 1, ~0U, 0) < 0)
        _exit(126);
    execv(program, argv);
    dprintf(STDOUT_FILENO, "{\"kind\":\"failed\",\"text\":\"its program cannot be run: %s\"}\n",
            strerror(errno));
    _exit(127);
}

static int on_child_exit(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct child *c = userdata;
    siginfo_t si = {0};

    if (waitid(P_PIDFD, (id_t)fd, &si, WEXITED | WNOHANG) < 0 || si.si_pid == 0)
        return 0;
    c->pid = 0;
    describe_end(c, si.si_code == CLD_EXITED ? si.si_status : 0,
                 si.si_code == CLD_EXITED ? 0 : si.si_status);
    tell_end(c);
    return 0;
}

static int fork_child(struct child *c, const char *program, int fd)
{
    pid_t parent = getpid();

    c->pid = fork();
    if (c->pid == 0)
        run(program, parent, fd);
    if (c->pid < 0) {
        c->pid = 0;
        return -errno;
    }
    c->pidfd = pidfd_open(c->pid, 0);
    if (c->pidfd < 0)
        return -errno;
    return sd_event_add_io(c->children->event, &c->exit, c->pidfd, EPOLLIN, on_child_exit, c);
}

static void start_here(struct child *c, enum child_kind kind)
{
    char program[PATH_MAX];
    int pair[2], r;

    STR_PRINTF(program, "%s/%s", c->children->programs,
               kind == CHILD_READER ? "reknit-reader" : "reknit-slurm");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        fail(c, strerror(errno));
        return;
    }
    r = fork_child(c, program, pair[1]);
    close(pair[1]);
    c->fd = pair[0];
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    if (r < 0)
        fail(c, strerror(-r));
    else
        tell_later(c, STATE_STARTED);
}

/* ---- both ---- */

/* The adapter takes nobody's place, nor readers that of the adapter. */
static uint32_t count_readers(const struct children *all)
{
    uint32_t n = 0;

    VEC_FOREACH (&all->list, c)
        n += (*c)->kind == CHILD_READER;
    return n;
}

struct child *child_start(struct children *all, enum child_kind kind, uid_t uid, gid_t gid,
                          const struct child_handlers *handlers, void *ctx)
{
    struct child *c = xnew(struct child);

    *c = (struct child){.children = all,
                        .kind = kind,
                        .handlers = *handlers,
                        .ctx = ctx,
                        .id = ++all->last_id,
                        .pidfd = -1,
                        .fd = -1};
    *VEC_PUSH(&all->list) = c;
    reap(all);
    if (kind == CHILD_READER && count_readers(all) > all->readers_max)
        fail(c, "there are too many readers already (readers.max_processes)");
    else if (all->spawner)
        start_by_spawner(c, kind, uid, gid);
    else
        start_here(c, kind);
    return c;
}

struct child *child_drop(struct child *c)
{
    if (!c)
        return NULL;
    c->dropped = true;
    if (c->pid > 0 && c->state == STATE_STARTED) { /* on_child_exit() forgets it */
        kill(c->pid, SIGKILL);
        c->later = sd_event_source_disable_unref(c->later);
        closep(&c->fd);
        c->fd = -1;
        return NULL;
    }
    if (c->state == STATE_ASKED)
        return NULL; /* it is killed when the spawner says its number */
    if (c->state == STATE_STARTED && c->number != 0)
        kill_number(c->children, c->number);
    forget(c);
    return NULL;
}

struct children *children_free(struct children *all)
{
    if (!all)
        return NULL;
    while (all->list.n > 0)
        forget(all->list.v[0]);
    VEC_DONE(&all->killed);
    VEC_DONE(&all->list);
    packets_free(all->packets);
    sd_event_unref(all->event);
    free(all->spawner);
    free(all->programs);
    free(all);
    return NULL;
}
