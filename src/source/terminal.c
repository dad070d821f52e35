/* SPDX-License-Identifier: Apache-2.0 */

/* Two line disciplines lie behind each other; each piece of work must be done by exactly one.
 * While we hold the user's terminal raw, the job's does all: echo, editing, LF -> CR LF. When we
 * cannot hold it (our input is no terminal, or we run in the background) the user's terminal goes
 * on to turn LF into CR LF, and the job's must not. The signal keys stay with the user's terminal
 * in both cases: they reach us as signals, and we forward them knowing what they mean. */

#include "source/terminal.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

void terminal_init(struct terminal *t)
{
    *t = (struct terminal){.user = -1};
    for (int fd = 1; fd <= 2 && t->user < 0; fd++)
        if (tcgetattr(fd, &t->saved) == 0)
            t->user = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    t->interactive = t->user >= 0 && isatty(0);
}

void terminal_done(struct terminal *t)
{
    terminal_leave(t);
    closep(&t->user);
    t->user = -1;
}

bool terminal_is_foreground(const struct terminal *t)
{
    return t->user >= 0 && tcgetpgrp(t->user) == getpgrp();
}

void terminal_copy_size(const struct terminal *t, int master)
{
    struct winsize size;

    if (ioctl(t->user, TIOCGWINSZ, &size) == 0)
        ioctl(master, TIOCSWINSZ, &size);
}

int terminal_open_pty(const struct terminal *t, int *ret_master, int *ret_slave)
{
    _cleanup_(closep) int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    _cleanup_(closep) int slave = -1;
    struct termios settings = t->saved;

    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        return -errno;
    slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return -errno;
    if (!t->interactive || !terminal_is_foreground(t))
        settings.c_oflag &= (tcflag_t)~OPOST;
    tcsetattr(slave, TCSANOW, &settings);
    terminal_copy_size(t, master);
    *ret_master = take_fd(&master);
    *ret_slave = take_fd(&slave);
    return 0;
}

void terminal_enter(struct terminal *t)
{
    struct termios raw = t->saved;

    if (!t->interactive || t->raw || !terminal_is_foreground(t))
        return;
    cfmakeraw(&raw);
    raw.c_lflag |= ISIG;
    t->raw = tcsetattr(t->user, TCSANOW, &raw) == 0;
}

void terminal_leave(struct terminal *t)
{
    if (t->raw && terminal_is_foreground(t))
        tcsetattr(t->user, TCSANOW, &t->saved);
    t->raw = false;
}
