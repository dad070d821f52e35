/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_PROCTREE_H
#define REKNIT_BASE_PROCTREE_H

/* The processes of this machine as /proc shows them, and how to signal one without ever hitting
 * another that got its number meanwhile. */

#include "base/str.h"
#include "base/time.h"
#include "base/vec.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>

struct proc {
    pid_t pid, ppid, session;
    char state;       /* of its first thread: R S D T t Z I, as in proc(5) */
    int threads;      /* that are left, the first among them even when it has ended */
    bool kernel;      /* a thread of the kernel: it has no program */
    bool exiting;     /* on its way out, if slowly: it has no environment any more */
    char comm[16];    /* not sanitised */
    uint64_t start;   /* clock ticks since boot; with pid it names a process for good */
    usec_t cpu;       /* user + system time so far */
    int64_t io_bytes; /* read + written by system calls so far; filled by proc_read_io() */
};

#define PROC_IO_UNKNOWN (-1)

struct proc_list {
    VEC(struct proc) procs;
    size_t hidden; /* there are, but we may not read them: not in the list */
};
#define PROC_LIST_MAX 262144

#define _cleanup_proc_list_ __attribute__((cleanup(proc_list_done)))
void proc_list_done(struct proc_list *l);

/* Every process that is visible, ascending by pid: all of them, or an error. -E2BIG: there are more
 * than PROC_LIST_MAX. */
int proc_list_all(struct proc_list *ret);

/* The descendants of root, parents before children, without root itself. */
int proc_list_tree(pid_t root, struct proc_list *ret);

/* -ENOENT, -ESRCH: there is no such process; any other error says nothing about it. */
int proc_read(pid_t pid, struct proc *ret);
static inline bool proc_is_absence(int error)
{
    return error == -ENOENT || error == -ESRCH;
}

uint64_t proc_clock(void);         /* now, as the `start` of a process */
void proc_read_io(struct proc *p); /* PROC_IO_UNKNOWN where that is not allowed */

/* A first thread that has ended lies there until the last of the others has: one may be stuck in
 * the kernel, whatever killed the process. */
static inline bool proc_is_dead(const struct proc *p)
{
    return (p->state == 'Z' && p->threads <= 1) || p->state == 'X';
}

/* Whether that very process, as it was seen once, lives still: 1; 0, it has ended; negative errno,
 * that cannot be seen. */
int proc_lives(const struct proc *p);

/* Sends sig to that very process; 0 also when it is gone already. */
int proc_signal(const struct proc *p, int sig);

/* The same to all that are alive; returns how many there were. */
size_t proc_list_signal(const struct proc_list *l, int sig);

/* The environment that the process was started with, as far as it did not write over it. May hang
 * where the process does: environs_read() (base/environs.h) does not. */
struct proc_environ {
    struct strbuf text; /* NAME=value, each with its NUL */
};
#define _cleanup_proc_environ_ __attribute__((cleanup(proc_environ_done)))
int proc_environ_read(pid_t pid, struct proc_environ *ret); /* -ENOENT, -EACCES, ... */
void proc_environ_done(struct proc_environ *e);
const char *proc_environ_get(const struct proc_environ *e, const char *name); /* NULL = not set */

/* Up to size - 1 bytes of /proc/PID/NAME, terminated; returns the length. */
ssize_t proc_read_file(pid_t pid, const char *name, char *ret, size_t size);
/* First line of /proc/PID/NAME (wchan, stack, cgroup, ...), without its newline. */
int proc_read_line(pid_t pid, const char *name, char *ret, size_t size);

#endif
