/* SPDX-License-Identifier: Apache-2.0 */

/* A child belongs to the connection that asked for it and is killed when that ends. It is counted
 * until it is gone: one that hangs in the kernel is not, so of each user there are a few at most.
 *
 * Answers: {"id":1,"ok":true,"child":7} with a descriptor, {"id":1,"ok":false,"text":"..."}; and
 * {"exit":7,"status":0,"signal":9} when a child has ended. Who does not take them is dead. */

#include "spawner/serve.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "base/vec.h"
#include "spawner/request.h"
#include "spawner/start.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#define CHILDREN_MAX    1024
#define OF_USER_MAX     4
#define CONNECTIONS_MAX 4

struct connection {
    struct spawner *spawner;
    int fd;
    sd_event_source *readable;
};

struct child {
    struct spawner *spawner;
    struct connection *of; /* NULL = it ended, this child is being killed */
    uint32_t number;
    pid_t pid;
    uid_t uid;
    sd_event_source *exit;
};

struct spawner {
    struct spawner_options options;
    sd_event *event;
    sd_event_source *acceptable, *term, *interrupt;
    char slurm_conf[PATH_MAX + 16];
    uint32_t last_number;
    VEC(struct connection *) connections;
    VEC(struct child *) children;
};

/* ---- children ---- */

static void drop_child(struct child *c)
{
    struct spawner *s = c->spawner;

    for (size_t i = 0; i < s->children.n; i++)
        if (s->children.v[i] == c) {
            VEC_REMOVE(&s->children, i);
            break;
        }
    sd_event_source_disable_unref(c->exit);
    free(c);
}

static void kill_child(const struct child *c)
{
    kill(c->pid, SIGKILL); /* not reaped yet, so the number is its own */
}

static void close_connection(struct connection *c)
{
    struct spawner *s = c->spawner;

    VEC_FOREACH (&s->children, child)
        if ((*child)->of == c) {
            (*child)->of = NULL;
            kill_child(*child);
        }
    for (size_t i = 0; i < s->connections.n; i++)
        if (s->connections.v[i] == c) {
            VEC_REMOVE(&s->connections, i);
            break;
        }
    sd_event_source_disable_unref(c->readable);
    close(c->fd);
    free(c);
}

/* Takes j over. Whether the far side took it. */
static bool send_object(const struct connection *c, json_t *j, int fd)
{
    _cleanup_(freep) char *text = json_dumps(j, JSON_COMPACT);
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec iov;
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

    json_decref(j);
    if (!text)
        return false;
    iov = (struct iovec){text, strlen(text)};
    if (fd >= 0) {
        m.msg_control = &control;
        m.msg_controllen = sizeof(control.bytes);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    }
    return sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static int on_child_exit(sd_event_source *source, const siginfo_t *si, void *userdata)
{
    struct child *c = userdata;
    struct connection *of = c->of;
    bool by_signal = si->si_code != CLD_EXITED;
    json_t *j = json_pack("{s:I,s:i,s:i}", "exit", (json_int_t)c->number, "status",
                          by_signal ? 0 : si->si_status, "signal", by_signal ? si->si_status : 0);

    drop_child(c);
    if (!of)
        json_decref(j);
    else if (!send_object(of, j, -1))
        close_connection(of);
    return 0;
}

/* ---- requests ---- */

static unsigned count_of(const struct spawner *s, uid_t uid)
{
    unsigned n = 0;

    VEC_FOREACH (&s->children, c)
        n += (*c)->uid == uid;
    return n;
}

static int check_start(const struct spawner *s, const struct start *start, struct err *e)
{
    if (start->confined && start->uid < start->uid_min)
        return err_set(e, -EPERM, "uid %u is below %u: no reader runs as a user of the system",
                       start->uid, start->uid_min);
    if (s->children.n >= CHILDREN_MAX)
        return err_set(e, -EAGAIN, "there are %u children already", CHILDREN_MAX);
    if (count_of(s, start->uid) >= OF_USER_MAX)
        return err_set(e, -EAGAIN, "uid %u has %u children already", start->uid, OF_USER_MAX);
    return 0;
}

static int start(struct connection *of, const struct request *q, int *ret_fd, struct child **ret,
                 struct err *e)
{
    struct spawner *s = of->spawner;
    bool reader = q->op == REQUEST_START_READER;
    const char *variables[] = {reader || !s->options.slurm_conf ? NULL : s->slurm_conf, NULL};
    struct start start = {.program = reader ? s->options.reader : s->options.adapter,
                          .environ = variables,
                          .uid = reader ? q->uid : s->options.slurm_user,
                          .gid = reader ? q->gid : (gid_t)-1,
                          .uid_min = s->options.uid_min,
                          .confined = reader};
    struct child *c;
    int r = check_start(s, &start, e);

    if (r < 0)
        return r;
    c = xnew(struct child);
    *c = (struct child){.spawner = s, .of = of, .number = ++s->last_number, .uid = start.uid};
    r = start_child(&start, &c->pid, ret_fd);
    if (r < 0) {
        free(c);
        return err_set(e, r, "no process can be made: %s", strerror(-r));
    }
    *VEC_PUSH(&s->children) = c;
    r = sd_event_add_child(s->event, &c->exit, c->pid, WEXITED, on_child_exit, c);
    if (r < 0) { /* unwatched it must not be */
        kill_child(c);
        waitpid(c->pid, NULL, 0);
        drop_child(c);
        close(*ret_fd);
        return err_set(e, r, "event loop: %s", strerror(-r));
    }
    *ret = c;
    return 0;
}

static int kill_number(struct connection *of, uint32_t number, struct err *e)
{
    VEC_FOREACH (&of->spawner->children, c)
        if ((*c)->number == number && (*c)->of == of) {
            kill_child(*c);
            return 0;
        }
    return err_set(e, -ESRCH, "there is no such child");
}

static bool answer(struct connection *c, const char *text, size_t len)
{
    _cleanup_(closep) int fd = -1;
    struct child *child = NULL;
    struct err e = {0};
    struct request q;
    json_t *j;
    int r = request_parse(text, len, &q, &e);

    if (r >= 0 && q.op == REQUEST_KILL)
        r = kill_number(c, q.child, &e);
    else if (r >= 0)
        r = start(c, &q, &fd, &child, &e);
    j = json_pack("{s:I,s:b}", "id", (json_int_t)q.id, "ok", r >= 0);
    if (child)
        json_object_set_new(j, "child", json_integer(child->number));
    if (r < 0)
        json_object_set_new(j, "text", json_string(e.text));
    return send_object(c, j, fd);
}

static int on_request(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct connection *c = userdata;
    char text[REQUEST_MAX + 1]; /* a longer datagram is cut, and so no JSON */
    ssize_t n = recv(fd, text, sizeof(text), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0 || !answer(c, text, (size_t)n))
        close_connection(c);
    return 0;
}

/* ---- connections ---- */

static bool is_welcome(const struct spawner *s, int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return false;
    if (peer.uid == 0 || peer.uid == s->options.user)
        return s->connections.n < CONNECTIONS_MAX;
    log_warning("uid %u was turned away", peer.uid);
    return false;
}

static int on_connection(sd_event_source *source, int listening, uint32_t revents, void *userdata)
{
    struct spawner *s = userdata;
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct connection *c;

    if (fd < 0)
        return 0;
    if (!is_welcome(s, fd)) {
        close(fd);
        return 0;
    }
    c = xnew(struct connection);
    *c = (struct connection){.spawner = s, .fd = fd};
    *VEC_PUSH(&s->connections) = c;
    if (sd_event_add_io(s->event, &c->readable, fd, EPOLLIN, on_request, c) < 0)
        close_connection(c);
    return 0;
}

static int init(struct spawner *s, const struct spawner_options *o)
{
    sigset_t mask;
    int r;

    if (o->slurm_conf)
        snprintf(s->slurm_conf, sizeof(s->slurm_conf), "SLURM_CONF=%s", o->slurm_conf);
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    r = sd_event_new(&s->event);
    if (r >= 0)
        r = sd_event_add_signal(s->event, &s->term, SIGTERM, NULL, NULL);
    if (r >= 0)
        r = sd_event_add_signal(s->event, &s->interrupt, SIGINT, NULL, NULL);
    if (r >= 0)
        r = sd_event_add_io(s->event, &s->acceptable, o->listening, EPOLLIN, on_connection, s);
    return r;
}

static void done(struct spawner *s)
{
    while (s->connections.n > 0)
        close_connection(s->connections.v[0]);
    while (s->children.n > 0) /* killed; those that hang in the kernel are left to it */
        drop_child(s->children.v[0]);
    VEC_DONE(&s->connections);
    VEC_DONE(&s->children);
    sd_event_source_disable_unref(s->acceptable);
    sd_event_source_disable_unref(s->term);
    sd_event_source_disable_unref(s->interrupt);
    sd_event_unref(s->event);
    close(s->options.listening);
}

int spawner_serve(const struct spawner_options *o, struct err *e)
{
    struct spawner s = {.options = *o};
    int r = init(&s, o);

    if (r >= 0) {
        sd_notify(0, "READY=1");
        r = sd_event_loop(s.event);
    }
    done(&s);
    return r < 0 ? err_set(e, r, "event loop: %s", strerror(-r)) : 0;
}
