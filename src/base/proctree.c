/* SPDX-License-Identifier: Apache-2.0 */

/* Reads /proc. A pid alone names nothing: between looking and acting the process may have ended
 * and its number been given away. So a process is (pid, start time), and signals go through a
 * pidfd that is opened first and checked against the start time afterwards. */

#include "base/proctree.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENVIRON_LIMIT (1u << 20)
/* PF_EXITING and PF_KTHREAD of the kernel, which proc(5) shows. */
#define FLAG_EXITING 0x4u
#define FLAG_KERNEL  0x200000u
#define READ_WHOLE   2048 /* a shorter read was the end of the file */

void proc_list_done(struct proc_list *l)
{
    VEC_DONE(&l->procs);
}

static int open_proc(pid_t pid, const char *name)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

ssize_t proc_read_file(pid_t pid, const char *name, char *buf, size_t size)
{
    _cleanup_(closep) int fd = open_proc(pid, name);
    size_t len = 0;

    if (fd < 0)
        return fd;
    while (len < size - 1) {
        ssize_t n = read(fd, buf + len, size - 1 - len);

        if (n < 0)
            return -errno;
        len += (size_t)n;
        if (n < READ_WHOLE)
            break; /* these files are made as they are read, up to a page at a time */
    }
    buf[len] = '\0';
    return (ssize_t)len;
}

static long ticks_per_sec(void)
{
    static long hz;

    if (hz == 0)
        hz = sysconf(_SC_CLK_TCK);
    return hz;
}

static usec_t ticks_to_usec(unsigned long long ticks)
{
    return (usec_t)ticks * USEC_PER_SEC / ticks_per_sec();
}

uint64_t proc_clock(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)(ts.tv_sec * ticks_per_sec() + ts.tv_nsec / (1000000000 / ticks_per_sec()));
}

int proc_read(pid_t pid, struct proc *ret)
{
    struct proc p = {.pid = pid};
    unsigned long long user, system, start;
    char buf[1024], *open, *close;
    int ppid, session, threads;
    unsigned flags;
    ssize_t n = proc_read_file(pid, "stat", buf, sizeof(buf));

    if (n < 0)
        return (int)n;
    /* proc(5): pid (comm) state ppid pgrp session ...; comm may itself hold blanks and parentheses.
     */
    open = strchr(buf, '(');
    close = strrchr(buf, ')');
    if (!open || !close || close < open)
        return -EBADMSG;
    if (sscanf(close + 1,
               " %c %d %*d %d %*d %*d %u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %d %*d %llu",
               &p.state, &ppid, &session, &flags, &user, &system, &threads, &start) != 8)
        return -EBADMSG;
    str_copy_n(p.comm, sizeof(p.comm), open + 1, (size_t)(close - open - 1));
    p.ppid = ppid;
    p.session = session;
    p.threads = threads;
    p.kernel = flags & FLAG_KERNEL;
    p.exiting = flags & FLAG_EXITING;
    p.start = start;
    p.cpu = ticks_to_usec(user + system);
    *ret = p;
    return 0;
}

static int64_t io_counter(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    long long v = 0;

    if (at)
        sscanf(at + strlen(key), "%lld", &v);
    return v;
}

void proc_read_io(struct proc *p)
{
    char buf[512];

    p->io_bytes = PROC_IO_UNKNOWN;
    if (proc_read_file(p->pid, "io", buf, sizeof(buf)) > 0)
        p->io_bytes = io_counter(buf, "rchar: ") + io_counter(buf, "wchar: ");
}

static int compare_pids(const void *a, const void *b)
{
    const struct proc *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

int proc_lives(const struct proc *p)
{
    struct proc now;
    int r = proc_read(p->pid, &now);

    if (r < 0)
        return proc_is_absence(r) ? 0 : r;
    return now.start == p->start && !proc_is_dead(&now);
}

/* What has ended since the folder was read is not there; what may not be read (hidepid) is. */
static int add_process(pid_t pid, struct proc_list *ret)
{
    struct proc p;
    int r = proc_read(pid, &p);

    if (r == -EPERM || r == -EACCES) {
        ret->hidden++;
        return 0;
    }
    if (r < 0)
        return proc_is_absence(r) ? 0 : r;
    if (ret->procs.n >= PROC_LIST_MAX)
        return -E2BIG;
    *VEC_PUSH(&ret->procs) = p;
    return 0;
}

static int add_processes(DIR *dir, struct proc_list *ret)
{
    struct dirent *entry;
    int r;

    while (errno = 0, (entry = readdir(dir))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        r = add_process((pid_t)strtol(entry->d_name, NULL, 10), ret);
        if (r < 0)
            return r;
    }
    return -errno;
}

int proc_list_all(struct proc_list *ret)
{
    _cleanup_(closedirp) DIR *dir = opendir("/proc");
    int r = dir ? add_processes(dir, ret) : -errno;

    if (r < 0) {
        VEC_DONE(&ret->procs);
        return r;
    }
    if (ret->procs.n > 0)
        qsort(ret->procs.v, ret->procs.n, sizeof(ret->procs.v[0]), compare_pids);
    return 0;
}

static int compare_parents(const void *a, const void *b)
{
    const struct proc *x = *(const struct proc *const *)a, *y = *(const struct proc *const *)b;

    if (x->ppid != y->ppid)
        return (x->ppid > y->ppid) - (x->ppid < y->ppid);
    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Index of the first in the list, ordered by parent, whose parent is not below `parent`. */
static size_t first_child(struct proc *const *by_parent, size_t n, pid_t parent)
{
    size_t low = 0;

    while (n > 0) {
        size_t half = n / 2;

        if (by_parent[low + half]->ppid < parent) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

int proc_list_tree(pid_t root, struct proc_list *ret)
{
    _cleanup_proc_list_ struct proc_list all = {0};
    _cleanup_(freep) struct proc **by_parent = NULL;
    int r = proc_list_all(&all);
    pid_t parent = root;

    if (r < 0)
        return r;
    by_parent = xcalloc(all.procs.n + 1, sizeof(struct proc *));
    for (size_t i = 0; i < all.procs.n; i++)
        by_parent[i] = &all.procs.v[i];
    qsort(by_parent, all.procs.n, sizeof(by_parent[0]), compare_parents);
    for (size_t i = 0;; i++) {
        for (size_t k = first_child(by_parent, all.procs.n, parent);
             k < all.procs.n && by_parent[k]->ppid == parent; k++) {
            if (by_parent[k]->state == '\0')
                continue; /* taken: a loop in a list that changed while it was read ends here */
            *VEC_PUSH(&ret->procs) = *by_parent[k];
            by_parent[k]->state = '\0';
        }
        if (i == ret->procs.n)
            return 0;
        parent = ret->procs.v[i].pid;
    }
}

int proc_signal(const struct proc *p, int sig)
{
    _cleanup_(closep) int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    struct proc now;
    int r;

    if (fd < 0)
        return errno == ESRCH ? 0 : -errno;
    r = proc_read(p->pid, &now);
    if (r < 0)
        return proc_is_absence(r) ? 0 : r;
    if (now.start != p->start)
        return 0;
    if (syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) < 0)
        return errno == ESRCH ? 0 : -errno;
    return 0;
}

size_t proc_list_signal(const struct proc_list *l, int sig)
{
    size_t n = 0;

    VEC_FOREACH (&l->procs, p) {
        if (proc_is_dead(p))
            continue;
        proc_signal(p, sig);
        n++;
    }
    return n;
}

int proc_environ_read(pid_t pid, struct proc_environ *ret)
{
    _cleanup_(closep) int fd = open_proc(pid, "environ");
    _cleanup_strbuf_ struct strbuf b = {0};
    char piece[4096];
    ssize_t n;

    if (fd < 0)
        return fd;
    while (b.len < ENVIRON_LIMIT && (n = read(fd, piece, sizeof(piece))) != 0) {
        if (n < 0)
            return -errno;
        strbuf_add(&b, piece, (size_t)n);
    }
    ret->text = b;
    b = (struct strbuf){0};
    return 0;
}

void proc_environ_done(struct proc_environ *e)
{
    strbuf_done(&e->text);
}

const char *proc_environ_get(const struct proc_environ *e, const char *name)
{
    const char *text = strbuf_str(&e->text);
    size_t len = strlen(name);

    for (const char *s = text; s < text + e->text.len; s += strlen(s) + 1)
        if (strncmp(s, name, len) == 0 && s[len] == '=')
            return s + len + 1;
    return NULL;
}

int proc_read_line(pid_t pid, const char *name, char *ret, size_t size)
{
    ssize_t n = proc_read_file(pid, name, ret, size);

    if (n < 0)
        return (int)n;
    ret[strcspn(ret, "\n")] = '\0';
    return 0;
}
