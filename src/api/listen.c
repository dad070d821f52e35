/* SPDX-License-Identifier: Apache-2.0 */
#include "api/listen.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BACKLOG      128
#define SOCKET_FLAGS (SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK)

static bool somebody_listens(const struct sockaddr_un *a)
{
    _cleanup_(closep) int fd = socket(AF_UNIX, SOCKET_FLAGS, 0);

    return fd >= 0 && (connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 || errno == EAGAIN);
}

int listen_unix(const char *path, struct err *e)
{
    _cleanup_(closep) int fd = socket(AF_UNIX, SOCKET_FLAGS, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;

    if (!STR_COPY(a.sun_path, path))
        return err_set(e, -ENAMETOOLONG, "%s: too long for a socket", path);
    if (fd < 0)
        return err_set(e, -errno, "%s: %s", path, strerror(errno));
    if (somebody_listens(&a))
        return err_set(e, -EADDRINUSE, "%s: another daemon answers there", path);
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        unlink(path);
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || chmod(path, 0666) < 0 ||
        listen(fd, BACKLOG) < 0)
        return err_set(e, -errno, "%s: %s", path, strerror(errno));
    return take_fd(&fd);
}

/* "[::1]:80" → "::1" and "80" */
static bool split(const char *address, char *host, size_t size, const char **ret_port)
{
    const char *colon = strrchr(address, ':');
    size_t n = colon ? (size_t)(colon - address) : 0;

    if (!colon || colon[1] == '\0')
        return false;
    *ret_port = colon + 1;
    if (address[0] == '[' && n > 2 && address[n - 1] == ']')
        return str_copy_n(host, size, address + 1, n - 2);
    return n > 0 && str_copy_n(host, size, address, n);
}

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static int open_tcp(const struct addrinfo *a)
{
    _cleanup_(closep) int fd = socket(a->ai_family, SOCKET_FLAGS, 0);
    int on = 1;

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return take_fd(&fd);
}

int listen_tcp(const char *address, bool *ret_loopback, struct err *e)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    char host[256];
    const char *port;
    int fd, r;

    if (!split(address, host, sizeof(host), &port))
        return err_set(e, -EINVAL, "'%s' is no address:port", address);
    r = getaddrinfo(host, port, &hints, &found);
    if (r != 0)
        return err_set(e, -EINVAL, "%s: %s", address, gai_strerror(r));
    fd = open_tcp(found);
    if (fd < 0)
        err_set(e, fd, "%s: %s", address, strerror(-fd));
    else
        *ret_loopback = is_loopback(found->ai_addr);
    freeaddrinfo(found);
    return fd;
}
