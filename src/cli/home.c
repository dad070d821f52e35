/* SPDX-License-Identifier: Apache-2.0 */

/* The lock is a flock() on ROOT/NAME/lock. Its open file is inherited by the keeper (never by the
 * job), so it is free only when reknit and keeper are both gone, and a keeper goes only when no
 * process of the job is left. Whoever gets the lock may start a copy.
 *
 * That leaves one gap: reknit and keeper both killed by SIGKILL. So the file also says what the
 * processes can be found by (holder.c), and whoever gets the lock kills those first. An orderly end
 * empties the file.
 *
 * Between taking the lock and writing who took it lies a moment in which the file is empty or names
 * the holder before. So whoever does not get the lock looks again and again: a holder that lives
 * shows within that moment, and only one that is dead for good is waited for. */

#include "cli/home.h"

#include "action/cgroup.h"
#include "base/file.h"
#include "base/proctree.h"
#include "base/str.h"
#include "cli/holder.h"
#include "cli/runs.h"
#include "cli/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEFTOVER_WAIT (30 * USEC_PER_SEC)
#define DYING_WAIT    (2 * USEC_PER_SEC)
#define LOCK_PAUSE_MS 20
#define LOCK_NAMELESS USEC_PER_SEC       /* the holder may be about to write itself */
#define LOCK_SLOW     (3 * USEC_PER_SEC) /* a keeper needs less to end what can be ended */
#define ROOM_MOST     (256 << 10)        /* some hundred events */
#define ROOM_PART     4                  /* of what is free */
#define PIDS_TOLD     16

void job_home_note_attempt(struct job_home *h, const char *cgroup, pid_t keeper, pid_t session)
{
    struct holder holder = {0};

    STR_COPY(holder.run_id, h->run_id);
    STR_COPY(holder.cgroup, cgroup);
    holder_place(holder.place);
    holder.keeper = holder_number(keeper);
    holder.session = holder_number(session);
    holder_write(h->lock, &holder);
}

void job_home_give_room(const struct job_home *h)
{
    char path[PATH_MAX];

    if (state_path(path, NULL, "%s/room", h->path) >= 0)
        unlink(path);
}

void job_home_keep_room(const struct job_home *h)
{
    _cleanup_(closep) int fd = -1;
    struct statvfs fs;
    char path[PATH_MAX];
    off_t most;

    if (state_path(path, NULL, "%s/room", h->path) < 0)
        return;
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fstatvfs(fd, &fs) < 0)
        return;
    most = (off_t)(fs.f_bavail * fs.f_frsize / ROOM_PART);
    if (posix_fallocate(fd, 0, most < ROOM_MOST ? most : ROOM_MOST) != 0)
        unlink(path);
}

bool job_home_is_held(const struct job_home *h)
{
    char path[PATH_MAX];

    return state_path(path, NULL, "%s/lock", h->path) >= 0 && file_has_name(h->lock, path);
}

/* The lock is taken by somebody who does not live: his keeper has it, and ends his processes. */
struct waiting {
    const char *name;
    usec_t since;
    bool said, said_more;
};

static void say_waiting(struct waiting *w)
{
    if (!w->said)
        fprintf(stderr,
                "reknit: the last run of '%s' was killed; waiting for its processes to end\n",
                w->name);
    w->said = true;
}

/* A keeper that was stopped ends nothing. */
static void wait_for_keeper(struct waiting *w, const struct job_home *h, const struct holder *last)
{
    struct proc keeper;
    bool known = holder_keeper(last, &keeper);

    if (known && (keeper.state == 'T' || keeper.state == 't'))
        proc_signal(&keeper, SIGCONT);
    if (w->said_more || mono_us() - w->since < LOCK_SLOW)
        return;
    w->said_more = true;
    if (known)
        fprintf(stderr, "reknit: its keeper, process %d, has not ended them yet\n", keeper.pid);
    else
        fprintf(stderr, "reknit: whose they are 'fuser %s/lock' tells\n", h->path);
}

static int say_running(const char *name, const struct holder *holder, struct err *e)
{
    return err_set(e, -EBUSY,
                   "the job '%s' is running already, under reknit process %d%s; end that one, or "
                   "choose another name with --name",
                   name, holder->self.pid,
                   holder_is_here(holder) ? "" : " of another container or machine");
}

static int take_lock(struct job_home *h, const char *name, struct err *e)
{
    struct waiting w = {.name = name, .since = mono_us()};

    while (flock(h->lock, LOCK_EX | LOCK_NB) < 0) {
        struct holder holder;
        bool named;

        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_set(e, -errno, "%s/lock: %s", h->path, strerror(errno));
        named = holder_read(h->lock, &holder);
        if (named && holder_is_alive(&holder))
            return say_running(name, &holder, e);
        if (named && holder_is_here(&holder)) {
            say_waiting(&w);
            wait_for_keeper(&w, h, &holder);
        } else if (named && mono_us() - w.since > LOCK_SLOW) {
            return say_running(name, &holder, e); /* no number of his means anything here */
        } else if (!named && mono_us() - w.since > LOCK_NAMELESS) {
            say_waiting(&w);
        }
        poll(NULL, 0, LOCK_PAUSE_MS);
    }
    return 0;
}

static void await_end(pid_t pid)
{
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

    if (p.fd < 0)
        return;
    poll(&p, 1, 1000);
    close(p.fd);
}

static int refuse_unseen(int r, struct err *e)
{
    return err_set(e, r,
                   "the last run was killed, and whether a process is left of it cannot be seen: "
                   "%s; two copies must never run",
                   strerror(-r));
}

/* ret: how many were found, killed, and are probably gone now. */
static int kill_found(const struct holder *last, size_t *ret, struct err *e)
{
    _cleanup_proc_list_ struct proc_list found = {0};
    int r;

    cgroup_kill(last->cgroup);
    r = holder_find_leftovers(last, &found, NULL);
    if (r < 0)
        return refuse_unseen(r, e);
    proc_list_signal(&found, SIGKILL);
    VEC_FOREACH (&found.procs, p)
        await_end(p->pid);
    *ret = found.procs.n;
    return 0;
}

/* Who may be of the last run is not killed, but not joined by a second copy either. */
static int refuse(const struct job_home *h, const struct proc_list *doubtful, struct err *e)
{
    _cleanup_strbuf_ struct strbuf pids = {0};

    for (size_t i = 0; i < doubtful->procs.n && i < PIDS_TOLD; i++)
        strbuf_addf(&pids, " %d", (int)doubtful->procs.v[i].pid);
    return err_set(e, -EBUSY,
                   "the last run was killed, and these processes may be left of it:%s; two copies "
                   "must never run. Look at them (ps -fp PID) and end them; if they are not of "
                   "this job, rm '%s/lock'",
                   strbuf_str(&pids), h->path);
}

/* A process that is just dying has no environment any more that could tell whose it is, but not for
 * long. */
static int refuse_doubtful(const struct job_home *h, const struct holder *last, struct err *e)
{
    usec_t give_up = mono_us() + DYING_WAIT;

    for (;;) {
        _cleanup_proc_list_ struct proc_list found = {0}, doubtful = {0};
        int r = holder_find_leftovers(last, &found, &doubtful);

        if (r < 0)
            return refuse_unseen(r, e);
        if (doubtful.procs.n == 0)
            return 0;
        if (mono_us() > give_up)
            return refuse(h, &doubtful, e);
        poll(NULL, 0, LOCK_PAUSE_MS);
    }
}

static int kill_leftovers(struct job_home *h, struct err *e)
{
    usec_t give_up = mono_us() + LEFTOVER_WAIT;
    struct holder last;
    size_t n = 0;
    int r;

    h->in_order = !holder_read(h->lock, &last);
    if (h->in_order)
        return 0;
    holder_write(h->lock, &last); /* ours now; what is to be killed stays on record */
    while ((r = kill_found(&last, &n, e)) == 0 && (n > 0 || cgroup_is_populated(last.cgroup))) {
        h->leftovers += n;
        if (mono_us() > give_up)
            return err_set(e, -EBUSY,
                           "%zu processes of the last run cannot be killed (look for "
                           "REKNIT_RUN=%s in /proc/PID/environ, and at session %d); two copies "
                           "must never run",
                           n, last.run_id, last.session.pid);
        if (n == 0)
            poll(NULL, 0, LOCK_PAUSE_MS);
    }
    if (r < 0)
        return r;
    cgroup_remove(last.cgroup);
    return refuse_doubtful(h, &last, e);
}

static void make_run_id(char ret[RUN_ID_LEN])
{
    uint64_t v;

    if (getrandom(&v, sizeof(v), 0) != sizeof(v))
        v = (uint64_t)now_us() ^ (uint64_t)getpid() << 48;
    snprintf(ret, RUN_ID_LEN, "%016" PRIx64, v);
}

static int home_open(const char *name, struct job_home *h, struct err *e)
{
    char root[PATH_MAX], lock[PATH_MAX];
    int r = state_root(root, e);

    if (r >= 0)
        r = state_path(h->path, e, "%s/%s", root, name);
    if (r >= 0)
        r = state_make_folders(h->path, e);
    if (r >= 0)
        r = state_path(lock, e, "%s/lock", h->path);
    if (r < 0)
        return r;
    h->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (h->lock < 0)
        return err_set(e, -errno, "%s: %s", lock, strerror(errno));
    r = take_lock(h, name, e);
    if (r >= 0)
        r = kill_leftovers(h, e);
    if (r >= 0) {
        job_home_give_room(h); /* a run that was killed left it */
        r = runs_begin(h->path, &h->run, h->run_path, e);
    }
    if (r < 0)
        return r;
    make_run_id(h->run_id);
    job_home_note_attempt(h, "", 0, 0);
    return 0;
}

int job_home_open(const char *name, struct job_home *ret, struct err *e)
{
    struct job_home h = {.lock = -1};
    int r = home_open(name, &h, e);

    if (r < 0) {
        if (h.lock >= 0)
            close(h.lock);
        STR_COPY(ret->path, h.path);
        return r;
    }
    *ret = h;
    return 0;
}

void job_home_close(struct job_home *h)
{
    if (h->lock < 0)
        return;
    job_home_give_room(h);
    if (ftruncate(h->lock, 0) < 0) {
        /* the next run then looks for processes that are not there */
    }
    close(take_fd(&h->lock));
}
