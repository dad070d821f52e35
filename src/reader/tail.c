/* SPDX-License-Identifier: Apache-2.0 */

/* Whether a text is still the one that was read so far is told by its last bytes: those before the
 * offset are kept (the print) and compared whenever the file has changed. Size alone does not tell:
 * between two looks a file may be cut and grow beyond where it was.
 *
 * A file that is copied and cut while its writer does not append begins with a hole as long as what
 * was there before. Holes are skipped, there and everywhere.
 *
 * A FIFO or device must not even be opened, because that alone can have effects: so stat() goes
 * first, and for whoever swaps the file in between there is O_NONBLOCK and fstat().
 *
 * A path may lie where others can put a file: in /tmp of this host, where the job has written into
 * /tmp of its node, or in the folder of a project, which its group may write. There only what is
 * the owner's own is read, and through no link, or somebody else could write a job's log. Where a
 * folder has an access list, the group's bit says whether anybody of that may write.
 *
 * NFS and its kin answer stat() and read() out of a cache that may be a minute old; opening a file
 * is what makes them ask the server. */

#include "reader/tail.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define HOLE_MIN 65536 /* a file must be so long for a hole to be sought */

struct tail {
    char *path;
    uid_t owner;
    int fd, next; /* next: the file that has the name now; -1 = none */
    bool remote;
    uint64_t dev, ino, offset, size, lost;
    usec_t written;
    uint8_t n_print;
    unsigned char print[TAIL_PRINT_MAX];
};

struct tail *tail_new(const char *path, uid_t owner)
{
    struct tail *t = xnew(struct tail);

    t->path = xstrdup(path);
    t->owner = owner;
    t->fd = t->next = -1;
    return t;
}

struct tail *tail_free(struct tail *t)
{
    if (!t)
        return NULL;
    tail_close(t);
    free(t->path);
    free(t);
    return NULL;
}

void tail_close(struct tail *t)
{
    closep(&t->fd);
    closep(&t->next);
    t->fd = t->next = -1;
    t->ino = t->dev = 0;
}

/* The folder that the path leads through now; -errno. */
static int open_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];
    int fd;

    if (!slash ||
        !str_copy_n(folder, sizeof(folder), path, (size_t)(slash - path) + (slash == path)))
        return -ENOENT;
    fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Whether nobody but the owner and root can put a file there, or let one there be another's. */
static bool is_safe_folder(const struct stat *folder, uid_t owner)
{
    return (folder->st_uid == 0 || folder->st_uid == owner) &&
           !(folder->st_mode & (S_IWGRP | S_IWOTH));
}

/* 0, or as tail_look(). The folder may be exchanged for another at any time, so the file must be
 * the one of that name in the very folder that was judged. Those above it are trusted as far as
 * which folder they lead to. */
static int check_place(const struct tail *t, const struct stat *file)
{
    _cleanup_(closep) int folder = open_folder(t->path);
    const char *name = strrchr(t->path, '/') + 1;
    struct stat st, there;
    bool safe;

    if (folder < 0)
        return folder;
    if (fstat(folder, &st) < 0)
        return -errno;
    safe = is_safe_folder(&st, t->owner);
    if (fstatat(folder, name, &there, safe ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (there.st_ino != file->st_ino || there.st_dev != file->st_dev)
        return safe ? -ENOENT : -EMLINK; /* replaced since it was opened: the next look has it */
    return safe || file->st_uid == t->owner ? 0 : -EPERM;
}

/* 0 and the open file, -ENOENT, or what else is in the way. */
static int open_regular(const struct tail *t, int *ret_fd, struct stat *ret)
{
    _cleanup_(closep) int fd = -1;
    int r;

    if (stat(t->path, ret) < 0)
        return -errno;
    if (!S_ISREG(ret->st_mode))
        return -EMEDIUMTYPE;
    fd = open(t->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, ret) < 0)
        return -errno;
    if (!S_ISREG(ret->st_mode))
        return -EMEDIUMTYPE;
    r = check_place(t, ret);
    if (r < 0)
        return r;
    *ret_fd = take_fd(&fd);
    return 0;
}

/* Local are those whose changes the kernel sees all. */
static bool is_remote(int fd)
{
    static const long local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                 TMPFS_MAGIC,      RAMFS_MAGIC,     OVERLAYFS_SUPER_MAGIC,
                                 F2FS_SUPER_MAGIC, 0x2fc12fc1 /* ZFS */};
    struct statfs s;

    if (fstatfs(fd, &s) < 0)
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(local); i++)
        if ((unsigned long)s.f_type == (unsigned long)local[i])
            return false;
    return true;
}

static usec_t usec_of(const struct timespec *t)
{
    return (usec_t)t->tv_sec * USEC_PER_SEC + t->tv_nsec / 1000;
}

static void take_stat(struct tail *t, const struct stat *st)
{
    t->dev = st->st_dev;
    t->ino = st->st_ino;
    t->size = (uint64_t)st->st_size;
    t->written = usec_of(&st->st_mtim);
}

static void begin(struct tail *t, int fd, const struct stat *st)
{
    closep(&t->fd);
    t->fd = fd;
    t->remote = is_remote(fd);
    t->offset = 0;
    t->n_print = 0;
    t->lost = 0;
    take_stat(t, st);
}

static uint8_t read_print(const struct tail *t, uint64_t offset, unsigned char *ret)
{
    size_t n = offset < TAIL_PRINT_MAX ? (size_t)offset : TAIL_PRINT_MAX;

    return n > 0 && pread(t->fd, ret, n, (off_t)(offset - n)) == (ssize_t)n ? (uint8_t)n : 0;
}

void tail_place(struct tail *t, uint64_t offset)
{
    t->offset = offset;
    t->n_print = read_print(t, offset, t->print);
}

static bool prints(const struct tail *t, uint64_t offset, const unsigned char *print, size_t n)
{
    unsigned char there[TAIL_PRINT_MAX];

    return n == 0 || (offset >= n && pread(t->fd, there, n, (off_t)(offset - n)) == (ssize_t)n &&
                      memcmp(there, print, n) == 0);
}

bool tail_knows(const struct tail *t, const struct tail_mark *m)
{
    return t->ino == m->ino && t->size >= m->offset && prints(t, m->offset, m->print, m->n_print);
}

static int begin_anew(struct tail *t)
{
    off_t data = 0;

    if (t->size >= HOLE_MIN)
        data = lseek(t->fd, 0, SEEK_DATA);
    tail_place(t, data > 0 ? (uint64_t)data : 0);
    return TAIL_ANEW;
}

static int look_at_text(struct tail *t)
{
    uint64_t size = t->size;
    usec_t written = t->written;
    struct stat st;

    if (fstat(t->fd, &st) < 0)
        return -errno;
    take_stat(t, &st);
    if (t->size == size && t->written == written)
        return TAIL_SAME;
    if (t->size >= t->offset && prints(t, t->offset, t->print, t->n_print))
        return TAIL_SAME;
    t->lost = size > t->offset ? size - t->offset : 0;
    return begin_anew(t);
}

/* Whether another file has the name by now. */
static bool look_at_name(struct tail *t, bool fresh)
{
    _cleanup_(closep) int fd = -1;
    struct stat st;

    if (t->next >= 0)
        return true;
    if (t->remote && fresh) {
        if (open_regular(t, &fd, &st) < 0)
            return false;
    } else if (stat(t->path, &st) < 0 || !S_ISREG(st.st_mode)) {
        return false;
    }
    if (st.st_ino == t->ino && st.st_dev == t->dev)
        return false;
    if (fd < 0 && open_regular(t, &fd, &st) < 0)
        return false;
    if (st.st_ino == t->ino && st.st_dev == t->dev)
        return false;
    t->next = take_fd(&fd);
    return true;
}

static int look_for_file(struct tail *t)
{
    struct stat st;
    int fd, r = open_regular(t, &fd, &st);

    if (r == -ENOENT || r == -ENOTDIR)
        return TAIL_ABSENT;
    if (r < 0)
        return r;
    begin(t, fd, &st);
    return TAIL_OPENED;
}

/* The server has forgotten the file that is open; maybe it is still there under its name. */
static int reopen(struct tail *t)
{
    uint64_t ino = t->ino;
    struct stat st;
    int fd, r = open_regular(t, &fd, &st);

    if (r == -ENOENT || r == -ENOTDIR) {
        tail_close(t);
        return TAIL_ABSENT;
    }
    if (r < 0)
        return r;
    closep(&t->fd);
    t->fd = fd;
    take_stat(t, &st);
    if (t->ino == ino && t->size >= t->offset && prints(t, t->offset, t->print, t->n_print))
        return TAIL_SAME;
    t->lost = 0;
    return begin_anew(t);
}

int tail_look(struct tail *t, bool fresh)
{
    bool replaced;
    int r;

    if (t->fd < 0)
        return look_for_file(t);
    replaced = look_at_name(t, fresh);
    r = look_at_text(t);
    if (r == -ESTALE)
        r = reopen(t);
    return r == TAIL_SAME && replaced ? TAIL_REPLACED : r;
}

int tail_switch(struct tail *t)
{
    int fd = take_fd(&t->next);
    struct stat st;

    assert(fd >= 0);
    if (fstat(fd, &st) < 0) {
        int e = -errno;

        close(fd);
        tail_close(t);
        return e;
    }
    begin(t, fd, &st);
    return 0;
}

static void keep_print(struct tail *t, const char *data, size_t len)
{
    size_t old;

    if (len >= TAIL_PRINT_MAX) {
        memcpy(t->print, data + len - TAIL_PRINT_MAX, TAIL_PRINT_MAX);
        t->n_print = TAIL_PRINT_MAX;
        return;
    }
    old = t->n_print + len > TAIL_PRINT_MAX ? TAIL_PRINT_MAX - len : t->n_print;
    memmove(t->print, t->print + t->n_print - old, old);
    memcpy(t->print + old, data, len);
    t->n_print = (uint8_t)(old + len);
}

bool tail_skip_hole(struct tail *t)
{
    off_t data = lseek(t->fd, (off_t)t->offset, SEEK_DATA);
    uint64_t offset = data < 0 && errno == ENXIO ? t->size : data > 0 ? (uint64_t)data : 0;

    if (offset <= t->offset)
        return false;
    tail_place(t, offset);
    return true;
}

ssize_t tail_read(struct tail *t, char *buffer, size_t size)
{
    ssize_t n;

    if (t->fd < 0)
        return 0;
    n = pread(t->fd, buffer, size, (off_t)t->offset);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    if (n == 0)
        return 0;
    keep_print(t, buffer, (size_t)n);
    t->offset += (uint64_t)n;
    if (t->size < t->offset)
        t->size = t->offset;
    return n;
}

void tail_mark(const struct tail *t, uint64_t offset, uint64_t line, struct tail_mark *ret)
{
    *ret = (struct tail_mark){.ino = t->ino, .offset = offset, .line = line};
    if (t->fd < 0)
        return;
    ret->n_print = read_print(t, offset, ret->print);
}

void tail_here(const struct tail *t, uint64_t line, struct tail_mark *ret)
{
    *ret =
        (struct tail_mark){.ino = t->ino, .offset = t->offset, .line = line, .n_print = t->n_print};
    memcpy(ret->print, t->print, t->n_print);
}

uint64_t tail_offset(const struct tail *t)
{
    return t->offset;
}

uint64_t tail_ino(const struct tail *t)
{
    return t->fd < 0 ? 0 : t->ino;
}

uint64_t tail_dev(const struct tail *t)
{
    return t->dev;
}

uint64_t tail_size(const struct tail *t)
{
    return t->size;
}

usec_t tail_written(const struct tail *t)
{
    return t->written;
}

usec_t tail_born(const struct tail *t)
{
    struct statx x;

    if (statx(t->fd, "", AT_EMPTY_PATH, STATX_BTIME, &x) < 0 || !(x.stx_mask & STATX_BTIME))
        return USEC_UNKNOWN;
    return (usec_t)x.stx_btime.tv_sec * USEC_PER_SEC + x.stx_btime.tv_nsec / 1000;
}

uint64_t tail_lost(const struct tail *t)
{
    return t->lost;
}

bool tail_is_remote(const struct tail *t)
{
    return t->remote;
}

int tail_fd(const struct tail *t)
{
    return t->fd;
}
