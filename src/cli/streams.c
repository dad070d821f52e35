/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/streams.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

void streams_done(struct streams *st)
{
    for (int i = 0; i < 3; i++)
        closep(&st->job[i]);
    for (unsigned i = 0; i < st->n; i++)
        closep(&st->from[i]);
    closep(&st->master);
}

static bool same_file(int a, int b)
{
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int add_stream(struct streams *st, int from, int to)
{
    st->from[st->n] = from;
    st->to[st->n] = to;
    return (int)st->n++;
}

static int open_terminal(const struct terminal *t, struct streams *st)
{
    int slave, r = terminal_open_pty(t, &st->master, &slave);

    if (r < 0)
        return r;
    add_stream(st, fcntl(st->master, F_DUPFD_CLOEXEC, 3), t->user);
    for (int fd = 2; fd >= 0; fd--) {
        if (!isatty(fd) || (fd == 0 && !t->interactive))
            continue;
        st->job[fd] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
        st->terminal = fd;
    }
    close(slave);
    return 0;
}

static int open_pipe(struct streams *st, int fd)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    st->job[fd] = p[1];
    add_stream(st, p[0], fd);
    return 0;
}

int streams_open(const struct terminal *t, struct streams *st)
{
    int r = 0;

    *st = (struct streams){.job = {-1, -1, -1}, .from = {-1, -1}, .terminal = -1, .master = -1};
    if (t->user >= 0)
        r = open_terminal(t, st);
    if (r >= 0 && st->job[1] < 0)
        r = open_pipe(st, 1);
    if (r >= 0 && st->job[2] < 0) {
        if (st->terminal < 0 && same_file(1, 2))
            st->job[2] = fcntl(st->job[1], F_DUPFD_CLOEXEC, 3);
        else
            r = open_pipe(st, 2);
    }
    return r;
}
