/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool is_null_device(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

/* Not waiting is harmless to a regular file: it never has to be waited for in that way. */
int file_open(const char *path, struct err *e)
{
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(e, -errno, "%s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return err_set(e, -EISDIR, "%s: %s", path, strerror(EISDIR));
    if (!S_ISREG(st.st_mode) && !is_null_device(&st))
        return err_set(e, -EINVAL, "%s: is no regular file", path);
    return take_fd(&fd);
}

bool file_has_name(int fd, const char *path)
{
    struct stat there, ours;

    return lstat(path, &there) == 0 && fstat(fd, &ours) == 0 && there.st_dev == ours.st_dev &&
           there.st_ino == ours.st_ino;
}

static int read_all(int fd, size_t max, struct strbuf *out)
{
    char block[16384];
    ssize_t n;

    while ((n = read(fd, block, sizeof(block))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        strbuf_add(out, block, (size_t)n);
        if (out->len > max)
            return -EFBIG;
    }
    return 0;
}

int file_read(const char *path, size_t max, struct strbuf *out, struct err *e)
{
    _cleanup_(closep) int fd = file_open(path, e);
    int r;

    if (fd < 0)
        return fd;
    r = read_all(fd, max, out);
    if (r == -EFBIG)
        return err_set(e, r, "%s: larger than %zu KiB", path, max / 1024);
    return r < 0 ? err_set(e, r, "%s: %s", path, strerror(-r)) : 0;
}

static int write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);

        if (n < 0 && errno != EINTR)
            return -errno;
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Some file systems say only at its end that there was no room. */
static int write_file(int folder, const char *name, const char *text, size_t len)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r;

    if (fd < 0)
        return -errno;
    r = write_all(fd, text, len);
    return close(fd) < 0 && r == 0 ? -errno : r;
}

int file_replace(int folder, const char *name, const char *text, size_t len)
{
    _cleanup_(freep) char *fresh = xasprintf("%s.new", name);
    int r = write_file(folder, fresh, text, len);

    if (r == 0 && renameat(folder, fresh, folder, name) < 0)
        r = -errno;
    if (r < 0)
        unlinkat(folder, fresh, 0); /* it may be what fills the disk */
    return r;
}
