/* SPDX-License-Identifier: Apache-2.0 */

/* The way of a message: a line on a connection → opened by a reknit-seal (agents_link.c) → from
 * where its node is, and not told before → handed on, and acked when it is safe (agents_take.c).
 * src/agent/uplink.c has the other end.
 *
 * Who has proven nothing yet makes room for who comes next (strangers.h). */

#include "source/agents_inside.h"

#include "base/acceptor.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static size_t position(const struct agents *a, const char *name)
{
    return VEC_BISECT(&a->nodes, n, strcmp((*n)->name, name) < 0);
}

struct agent_node *agents_node(const struct agents *a, const char *name)
{
    size_t i = position(a, name);

    return i < a->nodes.n && streq(a->nodes.v[i]->name, name) ? a->nodes.v[i] : NULL;
}

struct agent_node *agents_node_get(struct agents *a, const char *name)
{
    struct agent_node *n = agents_node(a, name);

    if (n || a->nodes.n >= AGENTS_MAX)
        return n;
    n = xnew(struct agent_node);
    STR_COPY(n->name, name);
    *VEC_INSERT(&a->nodes, position(a, name)) = n;
    return n;
}

static void shed(struct agent_link *c, const char *why)
{
    agent_link_refuse(c, why);
    agent_link_drop(c);
}

/* Takes fd over. */
static void turn_away(struct agents *a, int fd, const char *peer, const char *why)
{
    a->counts.refused++;
    close(fd);
    if (a->handlers.refused)
        a->handlers.refused(a->ctx, peer, why);
}

/* Takes fd over. */
static void make_room(struct agents *a, int fd, const char *peer, bool by_root)
{
    size_t max = by_root ? AGENTS_UNPROVEN_OF_ROOT_MAX : AGENTS_UNPROVEN_MAX;
    struct agent_link *from_there = strangers_crowd(&a->strangers, peer, by_root, max), *oldest;

    if (from_there)
        shed(from_there, "too many connections from there have proven nothing yet");
    else if (a->links.n >= AGENTS_MAX && (oldest = strangers_first(&a->strangers)))
        shed(oldest, "there are too many connections");
    if (a->links.n >= AGENTS_MAX)
        turn_away(a, fd, peer, "there are too many connections");
    else
        agent_link_new(a, fd, peer, by_root);
}

static void on_connection(void *ctx, int fd, const struct sockaddr *from, socklen_t len)
{
    struct agents *a = ctx;
    char peer[NODE_ADDRESS_LEN], port[8];
    const char *plain = peer;
    long long number = 0;

    if (getnameinfo(from, len, peer, sizeof(peer), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        STR_COPY(peer, "?");
    else
        str_to_i64(port, &number);
    if (str_startswith(peer, "::ffff:")) /* IPv4 on a socket for both */
        plain += strlen("::ffff:");
    make_room(a, fd, plain, number > 0 && number < IPPORT_RESERVED);
}

/* "1.2.3.4:5", "[::]:5" */
static int resolve_listen(const char *text, struct addrinfo **ret)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    const char *colon = strrchr(text, ':');
    char host[NODE_ADDRESS_LEN];
    size_t len = colon ? (size_t)(colon - text) : 0;
    bool brackets = len > 2 && text[0] == '[' && colon[-1] == ']';

    if (!colon || !str_copy_n(host, sizeof(host), text + brackets, len - 2 * brackets))
        return -EINVAL;
    return getaddrinfo(host[0] ? host : NULL, colon + 1, &hints, ret) == 0 ? 0 : -EINVAL;
}

static int listen_there(struct agents *a, const char *text, struct err *e)
{
    struct addrinfo *at = NULL;
    int on = 1, r = 0;

    if (resolve_listen(text, &at) < 0)
        return err_set(e, -EINVAL, "%s: not an address and a port", text);
    a->fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->fd < 0 || setsockopt(a->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(a->fd, at->ai_addr, at->ai_addrlen) < 0 || listen(a->fd, SOMAXCONN) < 0)
        r = err_set(e, -errno, "%s: %s", text, strerror(errno));
    freeaddrinfo(at);
    return r;
}

static void stop_listening(struct agents *a)
{
    a->ending = true;
    a->acceptor = acceptor_free(a->acceptor);
    closep(&a->fd);
    while (a->links.n > 0)
        agent_link_drop(a->links.v[a->links.n - 1]);
    a->opener = helper_free(a->opener); /* frees what waits for it */
    a->greeter = helper_free(a->greeter);
    a->resolver = helper_free(a->resolver);
    a->ending = false;
}

int agents_move(struct agents *a, const struct agents_config *config, struct err *e)
{
    int r;

    stop_listening(a);
    a->opener = helper_new(a->event, config->seal, HELPER_PATIENCE);
    a->greeter = helper_new(a->event, config->seal, HELPER_PATIENCE);
    a->resolver = helper_new(a->event, config->seal, HELPER_PATIENCE);
    r = listen_there(a, config->listen, e);
    if (r == 0 && (!a->opener || !a->greeter || !a->resolver ||
                   acceptor_new(a->event, a->fd, on_connection, a, &a->acceptor) < 0))
        r = err_set(e, -ENOMEM, "the event loop refuses");
    return r;
}

int agents_new(sd_event *event, const struct agents_config *config,
               const struct agents_handlers *handlers, void *ctx, struct agents **ret,
               struct err *e)
{
    struct agents *a = xnew(struct agents);
    int r;

    a->event = event;
    a->handlers = *handlers;
    a->ctx = ctx;
    a->fd = -1;
    r = agents_move(a, config, e);
    if (r < 0)
        agents_free(a);
    else
        *ret = a;
    return r;
}

static void node_free(struct agent_node *n)
{
    agent_receipts_done(&n->receipts);
    free(n);
}

struct agents *agents_free(struct agents *a)
{
    if (!a)
        return NULL;
    stop_listening(a);
    VEC_FOREACH (&a->nodes, n)
        node_free(*n);
    VEC_DONE(&a->nodes);
    VEC_DONE(&a->links);
    strangers_done(&a->strangers);
    free(a);
    return NULL;
}

uint16_t agents_port(const struct agents *a)
{
    struct sockaddr_storage at;
    socklen_t len = sizeof(at);

    if (getsockname(a->fd, (struct sockaddr *)&at, &len) < 0)
        return 0;
    return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                          : ((struct sockaddr_in *)&at)->sin_port);
}

void agents_counts(const struct agents *a, struct agents_counts *ret)
{
    *ret = a->counts;
    ret->connections = (uint32_t)a->links.n;
}

int agents_look(const struct agents *a, const char *node, struct agent_view *ret)
{
    const struct agent_node *n = agents_node(a, node);

    if (!n || n->view.heard_us == 0)
        return -ENOENT;
    *ret = n->view;
    return 0;
}

void agents_each(const struct agents *a,
                 bool (*fn)(void *ctx, const char *node, const struct agent_view *v), void *ctx)
{
    VEC_FOREACH (&a->nodes, n)
        if ((*n)->view.heard_us > 0 && !fn(ctx, (*n)->name, &(*n)->view))
            return;
}
