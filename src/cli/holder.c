/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers are given away again: that of a process, of a session when nobody is left in it, and in
 * every container they begin anew. So a number counts only in the place where it was written (boot
 * and pid namespace), and a process is (pid, start).
 *
 * That a process is of a run is proven by the run's REKNIT_RUN in its environment (some write over
 * it), by its cgroup (which home.c kills as a whole), or by its session, when that is the run's:
 * its leader lives and is the recorded one, or a proven process is in it, for the number of a
 * session is not given away while anybody is in it. What descends from a proven one is proven too.
 * When neither leader nor any proven process lives, the number alone proves nothing. */

#include "cli/holder.h"

#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT_ID_LEN 37
#define HOLDER_TEXT (CGROUP_PATH_MAX + 384)

struct holder_number holder_number(pid_t pid)
{
    struct proc p;

    if (pid <= 0 || proc_read(pid, &p) < 0)
        return (struct holder_number){0};
    return (struct holder_number){.pid = p.pid, .start = p.start};
}

/* The number of a namespace is given away again as well, so its init says more. */
void holder_place(char ret[PLACE_LEN])
{
    _cleanup_(fclosep) FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    struct stat ns = {0};
    char boot[BOOT_ID_LEN];

    ret[0] = '\0';
    if (!f || fscanf(f, "%36s", boot) != 1)
        return;
    stat("/proc/self/ns/pid", &ns);
    snprintf(ret, PLACE_LEN, "%s/%" PRIuMAX "/%" PRIu64, boot, (uintmax_t)ns.st_ino,
             holder_number(1).start);
}

bool holder_is_here(const struct holder *h)
{
    char here[PLACE_LEN];

    holder_place(here);
    return h->place[0] == '\0' || here[0] == '\0' || streq(h->place, here);
}

bool holder_read(int fd, struct holder *ret)
{
    char text[HOLDER_TEXT];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    int fields;

    *ret = (struct holder){0};
    if (n <= 0)
        return false;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0'; /* behind it, the rest of a longer one before */
    fields = sscanf(text, "%d %" SCNu64 " %16s %511s %d %" SCNu64 " %95s %d %" SCNu64,
                    &ret->self.pid, &ret->self.start, ret->run_id, ret->cgroup, &ret->session.pid,
                    &ret->session.start, ret->place, &ret->keeper.pid, &ret->keeper.start);
    if (streq(ret->cgroup, "-"))
        ret->cgroup[0] = '\0';
    if (streq(ret->place, "-"))
        ret->place[0] = '\0';
    return fields >= 3;
}

void holder_write(int fd, struct holder *h)
{
    char text[HOLDER_TEXT];
    int n;

    h->self = holder_number(getpid());
    h->self.pid = getpid();
    n = snprintf(text, sizeof(text), "%d %" PRIu64 " %s %s %d %" PRIu64 " %s %d %" PRIu64 "\n",
                 h->self.pid, h->self.start, h->run_id, h->cgroup[0] ? h->cgroup : "-",
                 h->session.pid, h->session.start, h->place[0] ? h->place : "-", h->keeper.pid,
                 h->keeper.start);
    if (pwrite(fd, text, (size_t)n, 0) != n || ftruncate(fd, n) < 0)
        return; /* a full disk: then only the environment of the processes tells */
}

static bool lives(const struct holder *h, const struct holder_number *number, struct proc *ret)
{
    int r;

    *ret = (struct proc){.pid = number->pid, .start = number->start};
    if (number->pid <= 0 || !holder_is_here(h))
        return false;
    r = proc_read(number->pid, ret);
    if (r < 0)
        return !proc_is_absence(r); /* what cannot be seen may be */
    return ret->start == number->start && !proc_is_dead(ret);
}

bool holder_is_alive(const struct holder *h)
{
    struct proc p;

    return lives(h, &h->self, &p);
}

bool holder_keeper(const struct holder *h, struct proc *ret)
{
    return lives(h, &h->keeper, ret);
}

enum session_is {
    SESSION_OURS,
    SESSION_DOUBTFUL, /* its leader is gone */
    SESSION_FOREIGN,  /* the number means another one, or nothing */
};

static enum session_is judge_session(const struct holder *last)
{
    struct proc leader;

    if (last->session.pid <= 0 || !holder_is_here(last))
        return SESSION_FOREIGN;
    if (proc_read(last->session.pid, &leader) < 0)
        return SESSION_DOUBTFUL;
    return leader.start == last->session.start ? SESSION_OURS : SESSION_FOREIGN;
}

static bool in_session(const struct proc *p, const struct holder *last)
{
    return p->session == last->session.pid && p->start >= last->session.start;
}

/* Negative errno: we lack what it takes to look. */
static int carries(const struct proc *p, const char *run_id)
{
    _cleanup_proc_environ_ struct proc_environ env = {0};
    const char *id;
    int r = proc_environ_read(p->pid, &env);

    if (r == -EMFILE || r == -ENFILE || r == -ENOMEM)
        return r;
    if (r < 0)
        return false;
    id = proc_environ_get(&env, "REKNIT_RUN");
    return id && streq(id, run_id);
}

static bool is_listed(const struct proc_list *l, pid_t pid)
{
    VEC_FOREACH (&l->procs, p)
        if (p->pid == pid)
            return true;
    return false;
}

static void add(struct proc_list *l, const struct proc *p)
{
    if (p->pid != getpid() && !proc_is_dead(p) && !is_listed(l, p->pid))
        *VEC_PUSH(&l->procs) = *p;
}

/* Adds what descends from those that are listed: killed, they would leave it to init. */
static void add_descendants(const struct proc_list *all, struct proc_list *ours)
{
    for (size_t i = 0; i < ours->procs.n; i++)
        VEC_FOREACH (&all->procs, p)
            if (p->ppid == ours->procs.v[i].pid)
                add(ours, p);
}

static void add_session(const struct proc_list *all, const struct holder *last,
                        struct proc_list *ret)
{
    VEC_FOREACH (&all->procs, p)
        if (in_session(p, last) && (kill(p->pid, 0) == 0 || errno != EPERM))
            add(ret, p);
}

int holder_find_leftovers(const struct holder *last, struct proc_list *ret,
                          struct proc_list *ret_doubtful)
{
    enum session_is session = judge_session(last);
    _cleanup_proc_list_ struct proc_list all = {0};
    int r = proc_list_all(&all);

    if (r < 0)
        return r;
    VEC_FOREACH (&all.procs, p) {
        r = carries(p, last->run_id);
        if (r < 0)
            return r;
        if (r > 0)
            add(ret, p);
    }
    add_descendants(&all, ret);
    VEC_FOREACH (&ret->procs, p)
        if (session == SESSION_DOUBTFUL && in_session(p, last))
            session = SESSION_OURS;
    if (session == SESSION_OURS)
        add_session(&all, last, ret);
    else if (session == SESSION_DOUBTFUL && ret_doubtful)
        add_session(&all, last, ret_doubtful);
    add_descendants(&all, ret);
    return 0;
}
