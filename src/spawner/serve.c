/* SPDX-License-Identifier: Apache-2.0 */

/* A child belongs to the connection that asked for it and is killed when that ends. It is counted
 * until it is gone: one that hangs in the kernel is not, so of each user there are a few readers at
 * most. Adapters are counted apart: whatever becomes of readers, one can be started.
 *
 * Answers: {"id":1,"ok":true,"child":7} with a descriptor, {"id":1,"ok":false,"text":"..."}; and
 * {"exit":7,"status":0,"signal":9} when a child has ended. What is owed has a bound by itself:
 * while anything is, no request is read, and each child ends once. */

#include "spawner/serve.h"

#include "base/acceptor.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/packets.h"
#include "base/str.h"
#include "base/vec.h"
#include "spawner/request.h"
#include "spawner/start.h"

#include <assert.h>
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

#define READERS_MAX     1024
#define OF_USER_MAX     4 /* readers */
#define ADAPTERS_MAX    4
#define CONNECTIONS_MAX 4
#define OWED_MAX        (READERS_MAX + ADAPTERS_MAX + 2) /* an exit of each, and an answer */

struct connection {
    struct spawner *spawner;
    struct packets *packets;
};

struct child {
    struct spawner *spawner;
    struct connection *of; /* NULL = it ended, this child is being killed */
    uint32_t number;
    pid_t pid;
    uid_t uid;
    bool reader;
    sd_event_source *exit;
};

struct spawner {
    struct spawner_options options;
    sd_event *event;
    struct acceptor *acceptor;
    sd_event_source *term, *interrupt;
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
    packets_free(c->packets);
    free(c);
}

/* Takes both over. */
static void send_object(const struct connection *c, json_t *j, int fd)
{
    _cleanup_(freep) char *text = json_dumps(j, JSON_COMPACT);

    json_decref(j);
    assert(text); /* what is in it is ours: errors and numbers */
    packets_send(c->packets, text, strlen(text), fd);
}

static int on_child_exit(sd_event_source *source, const siginfo_t *si, void *userdata)
{
    struct child *c = userdata;
    struct connection *of = c->of;
    bool by_signal = si->si_code != CLD_EXITED;
    json_t *j = json_pack("{s:I,s:i,s:i}", "exit", (json_int_t)c->number, "status",
                          by_signal ? 0 : si->si_status, "signal", by_signal ? si->si_status : 0);

    drop_child(c);
    if (of)
        send_object(of, j, -1);
    else
        json_decref(j);
    return 0;
}

/* ---- requests ---- */

static unsigned count(const struct spawner *s, bool readers, const uid_t *of)
{
    unsigned n = 0;

    VEC_FOREACH (&s->children, c)
        n += (*c)->reader == readers && (!of || (*c)->uid == *of);
    return n;
}

static int check_adapter(const struct spawner *s, struct err *e)
{
    if (count(s, false, NULL) >= ADAPTERS_MAX)
        return err_set(e, -EAGAIN, "there are %u adapters already", ADAPTERS_MAX);
    return 0;
}

static int check_reader(const struct spawner *s, const struct start *start, struct err *e)
{
    if (!start_is_persons(start->uid, s->options.uid_min))
        return err_set(e, -EPERM,
                       "uid %u is below %u, or a service of systemd's: no reader runs as a user of "
                       "the system",
                       start->uid, s->options.uid_min);
    if (count(s, true, NULL) >= READERS_MAX)
        return err_set(e, -EAGAIN, "there are %u readers already", READERS_MAX);
    if (count(s, true, &start->uid) >= OF_USER_MAX)
        return err_set(e, -EAGAIN, "uid %u has %u readers already", start->uid, OF_USER_MAX);
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
                          .gid_min = s->options.gid_min,
                          .confined = reader};
    struct child *c;
    int r = reader ? check_reader(s, &start, e) : check_adapter(s, e);

    if (r < 0)
        return r;
    c = xnew(struct child);
    *c = (struct child){
        .spawner = s, .of = of, .number = ++s->last_number, .uid = start.uid, .reader = reader};
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
        *ret_fd = -1;
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

static void on_request(void *ctx, const char *text, size_t len, int nothing)
{
    struct connection *c = ctx;
    struct child *child = NULL;
    struct err e = {0};
    struct request q;
    json_t *j;
    int fd = -1, r = request_parse(text, len, &q, &e);

    if (r >= 0 && q.op == REQUEST_KILL)
        r = kill_number(c, q.child, &e);
    else if (r >= 0)
        r = start(c, &q, &fd, &child, &e);
    j = json_pack("{s:I,s:b}", "id", (json_int_t)q.id, "ok", r >= 0);
    if (child)
        json_object_set_new(j, "child", json_integer(child->number));
    if (r < 0)
        json_object_set_new(j, "text", json_string(e.text));
    send_object(c, j, fd);
}

static void on_closed(void *ctx)
{
    close_connection(ctx);
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

static void add_connection(struct spawner *s, int fd)
{
    static const struct packets_options options = {.owed_max = OWED_MAX, .in_turn = true};
    static const struct packets_handlers handlers = {.packet = on_request, .closed = on_closed};
    struct connection *c = xnew(struct connection);

    *c = (struct connection){.spawner = s};
    c->packets = packets_new(s->event, fd, &options, &handlers, c);
    if (c->packets)
        *VEC_PUSH(&s->connections) = c;
    else
        free(c);
}

static void on_connection(void *ctx, int fd, const struct sockaddr *from, socklen_t len)
{
    if (is_welcome(ctx, fd))
        add_connection(ctx, fd);
    else
        close(fd);
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
        r = acceptor_new(s->event, o->listening, on_connection, s, &s->acceptor);
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
    acceptor_free(s->acceptor);
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
