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
#include <sys/syscall.h>
#include <unistd.h>

#define ENVIRON_LIMIT (1u << 20)

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

/* Up to size - 1 bytes of the file, terminated; returns the length. */
static ssize_t read_proc(pid_t pid, const char *name, char *buf, size_t size)
{
    _cleanup_(closep) int fd = open_proc(pid, name);
    size_t len = 0;

    if (fd < 0)
        return fd;
    while (len < size - 1) {
        ssize_t n = read(fd, buf + len, size - 1 - len);

        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    buf[len] = '\0';
    return (ssize_t)len;
}

static usec_t ticks_to_usec(unsigned long long ticks)
{
    static long hz;

    if (hz == 0)
        hz = sysconf(_SC_CLK_TCK);
    return (usec_t)ticks * USEC_PER_SEC / hz;
}

int proc_read(pid_t pid, struct proc *ret)
{
    struct proc p = {.pid = pid};
    unsigned long long user, system, start;
    char buf[1024], *open, *close;
    int ppid, session;
    ssize_t n = read_proc(pid, "stat", buf, sizeof(buf));

    if (n < 0)
        return (int)n;
    /* proc(5): pid (comm) state ppid pgrp session ...; comm may itself hold blanks and parentheses.
     */
    open = strchr(buf, '(');
    close = strrchr(buf, ')');
    if (!open || !close || close < open)
        return -EBADMSG;
    if (sscanf(close + 1,
               " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
               &p.state, &ppid, &session, &user, &system, &start) != 6)
        return -EBADMSG;
    str_copy_n(p.comm, sizeof(p.comm), open + 1, (size_t)(close - open - 1));
    p.ppid = ppid;
    p.session = session;
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

    if (read_proc(p->pid, "io", buf, sizeof(buf)) > 0)
        p->io_bytes = io_counter(buf, "rchar: ") + io_counter(buf, "wchar: ");
}

static int compare_pids(const void *a, const void *b)
{
    const struct proc *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

int proc_list_all(struct proc_list *ret)
{
    _cleanup_(closedirp) DIR *dir = opendir("/proc");
    struct dirent *entry;

    if (!dir)
        return -errno;
    while ((entry = readdir(dir)) && ret->procs.n < PROC_LIST_MAX) {
        struct proc p;

        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (proc_read((pid_t)strtol(entry->d_name, NULL, 10), &p) == 0)
            *VEC_PUSH(&ret->procs) = p;
    }
    if (ret->procs.n > 0)
        qsort(ret->procs.v, ret->procs.n, sizeof(ret->procs.v[0]), compare_pids);
    return 0;
}

static void take_children(struct proc_list *all, pid_t parent, struct proc_list *ret)
{
    VEC_FOREACH (&all->procs, p) {
        if (p->ppid != parent)
            continue;
        *VEC_PUSH(&ret->procs) = *p;
        p->ppid = -1; /* taken: a loop in a list that changed while it was read ends here */
    }
}

int proc_list_tree(pid_t root, struct proc_list *ret)
{
    _cleanup_proc_list_ struct proc_list all = {0};
    int r = proc_list_all(&all);

    if (r < 0)
        return r;
    take_children(&all, root, ret);
    for (size_t i = 0; i < ret->procs.n; i++)
        take_children(&all, ret->procs.v[i].pid, ret);
    return 0;
}

int proc_signal(const struct proc *p, int sig)
{
    _cleanup_(closep) int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    struct proc now;

    if (fd < 0)
        return errno == ESRCH ? 0 : -errno;
    if (proc_read(p->pid, &now) < 0 || now.start != p->start)
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

int proc_getenv(pid_t pid, const char *name, char *ret, size_t size)
{
    _cleanup_(freep) char *env = xmalloc(ENVIRON_LIMIT);
    size_t len = strlen(name);
    ssize_t n = read_proc(pid, "environ", env, ENVIRON_LIMIT);

    if (n < 0)
        return (int)n;
    for (const char *s = env; s < env + n; s += strlen(s) + 1)
        if (strncmp(s, name, len) == 0 && s[len] == '=')
            return str_copy(ret, size, s + len + 1) ? 0 : -ENAMETOOLONG;
    return -ENOENT;
}

int proc_read_line(pid_t pid, const char *name, char *ret, size_t size)
{
    ssize_t n = read_proc(pid, name, ret, size);

    if (n < 0)
        return (int)n;
    ret[strcspn(ret, "\n")] = '\0';
    return 0;
}
