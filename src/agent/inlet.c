/* SPDX-License-Identifier: Apache-2.0 */

/* The kernel says who sent a datagram, and only root counts: anybody could claim the death of a
 * stranger's rank. The socket's mode says so too, but a mode can be changed by mistake. One turn of
 * the loop takes a bounded number of them. */

#include "agent/inlet.h"

#include "base/alloc.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define TURN_MAX 256

struct inlet {
    struct sockaddr_un address;
    int fd;
    sd_event_source *readable;
    inlet_sink_fn sink;
    void *ctx;
    uint64_t refused;
};

static bool is_roots(struct msghdr *h)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        struct ucred who;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
            continue;
        memcpy(&who, CMSG_DATA(c), sizeof(who));
        return who.uid == 0;
    }
    return false;
}

/* false when there was none. */
static bool take_one(struct inlet *i)
{
    char text[NODE_DATAGRAM_MAX], control[CMSG_SPACE(sizeof(struct ucred))];
    struct iovec iov = {text, sizeof(text)};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof(control)};
    struct node_message m;
    ssize_t n = recvmsg(i->fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n < 0)
        return false;
    if (!is_roots(&h) || (h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
        node_message_parse(text, (size_t)n, &m, NULL) < 0 ||
        (m.kind != NODE_MESSAGE_START && m.kind != NODE_MESSAGE_EXIT))
        i->refused++;
    else
        i->sink(i->ctx, &m);
    return true;
}

static int on_readable(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
    for (int n = 0; n < TURN_MAX && take_one(userdata); n++)
        ;
    return 0;
}

static int make_folder(const char *path)
{
    _cleanup_(freep) char *folder = xstrdup(path);
    char *slash = strrchr(folder, '/');

    if (!slash || slash == folder)
        return 0;
    *slash = '\0';
    return mkdir(folder, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int listen_there(struct inlet *i)
{
    static const int on = 1;
    mode_t before;
    int r;

    if (setsockopt(i->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
        return -errno;
    unlink(i->address.sun_path);
    before = umask(0177);
    r = bind(i->fd, (struct sockaddr *)&i->address, sizeof(i->address)) < 0 ? -errno : 0;
    umask(before);
    return r;
}

int inlet_new(sd_event *event, const char *path, inlet_sink_fn sink, void *ctx, struct inlet **ret,
              struct err *e)
{
    _cleanup_(inlet_freep) struct inlet *i = xnew(struct inlet);
    int r;

    i->sink = sink;
    i->ctx = ctx;
    i->address.sun_family = AF_UNIX;
    i->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (!STR_COPY(i->address.sun_path, path)) {
        i->address.sun_path[0] = '\0';
        return err_set(e, -ENAMETOOLONG, "%s: too long for a socket", path);
    }
    r = i->fd < 0 ? -errno : make_folder(path);
    if (r == 0)
        r = listen_there(i);
    if (r == 0)
        r = sd_event_add_io(event, &i->readable, i->fd, EPOLLIN, on_readable, i);
    if (r < 0)
        return err_set(e, r, "%s: %s", path, strerror(-r));
    *ret = TAKE(i);
    return 0;
}

struct inlet *inlet_free(struct inlet *i)
{
    if (!i)
        return NULL;
    sd_event_source_disable_unref(i->readable);
    closep(&i->fd);
    if (i->address.sun_path[0])
        unlink(i->address.sun_path);
    free(i);
    return NULL;
}

uint64_t inlet_refused(const struct inlet *i)
{
    return i->refused;
}
