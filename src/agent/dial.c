/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/dial.h"

#include "base/cleanup.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

int dial(const char *address, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    _cleanup_(closep) int fd = -1;
    struct addrinfo *a = NULL;
    int r = 0;

    if (getaddrinfo(address, port, &hints, &a) != 0) /* numbers: it asks nobody */
        return -EINVAL;
    fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || (connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS))
        r = -errno;
    freeaddrinfo(a);
    return r < 0 ? r : take_fd(&fd);
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
