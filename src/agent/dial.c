/* SPDX-License-Identifier: Apache-2.0 */

/* A port below 1024 tells reknitd that root has opened the connection, not one of the node's users:
 * so these cannot use up what is left for it. It is bound so that nobody who wants to listen there
 * is kept from it. Where there is none to be had (no right to, all taken), any other does. */

#include "agent/dial.h"

#include "base/cleanup.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#define PORT_FIRST 600u /* those below belong to old services */
#define TRIES      16u

static int bind_to(int fd, sa_family_t family, unsigned port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int on = 1, r;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    r = family == AF_INET6 ? bind(fd, (struct sockaddr *)&v6, sizeof(v6))
                           : bind(fd, (struct sockaddr *)&v4, sizeof(v4));
    return r < 0 ? -errno : 0;
}

/* from: a port of ours; 0 = any. */
static int dial_from(const struct addrinfo *a, unsigned from)
{
    _cleanup_(closep) int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r = fd < 0 ? -errno : 0;

    if (r == 0 && from > 0)
        r = bind_to(fd, a->ai_addr->sa_family, from);
    if (r == 0 && connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS)
        r = -errno;
    return r < 0 ? r : take_fd(&fd);
}

static bool is_taken(int r)
{
    return r == -EADDRINUSE || r == -EADDRNOTAVAIL;
}

int dial(const char *address, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    const unsigned first = (unsigned)random(), count = IPPORT_RESERVED - PORT_FIRST;
    struct addrinfo *a = NULL;
    int r = -EADDRINUSE;

    if (getaddrinfo(address, port, &hints, &a) != 0) /* numbers: it asks nobody */
        return -EINVAL;
    for (unsigned i = 0; i < TRIES && is_taken(r); i++)
        r = dial_from(a, PORT_FIRST + (first + i) % count);
    if (is_taken(r) || r == -EACCES || r == -EPERM)
        r = dial_from(a, 0);
    freeaddrinfo(a);
    return r;
}

int dial_done(int fd)
{
    int error = 0, on = 1;
    socklen_t len = sizeof(error);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return -error;
}
