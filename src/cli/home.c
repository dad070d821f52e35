/* SPDX-License-Identifier: Apache-2.0 */

/* The lock is a flock() on ROOT/NAME/lock. Its open file is inherited by the keeper (never by the
 * job), so it is free only when reknit and keeper are both gone, and a keeper goes only when no
 * process of the job is left. Whoever gets the lock may start a copy.
 *
 * That leaves one gap: reknit and keeper both killed by SIGKILL. So the file also says which
 * REKNIT_RUN the processes carry in their environment (some write over it), which cgroup they are
 * in (where there are cgroups), and which session the first of them leads; whoever gets the lock
 * kills those first, and what descends from them. An orderly end empties the file.
 *
 * Between taking the lock and writing who took it lies a moment in which the file is empty or names
 * the holder before. So whoever does not get the lock looks again and again: a holder that lives
 * shows within that moment, and only one that is dead for good is waited for. */

#include "cli/home.h"

#include "action/cgroup.h"
#include "base/proctree.h"
#include "base/str.h"
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
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BOOT_ID_LEN   37
#define RUNS_KEPT     20 /* folders run-N of a job */
#define LEFTOVER_WAIT (30 * USEC_PER_SEC)
#define LOCK_PAUSE_MS 20
#define LOCK_NAMELESS USEC_PER_SEC /* the holder may be about to write itself */
#define FILES_PER_RUN 10000
#define ROOM_MOST     (256 << 10) /* some hundred events */
#define ROOM_PART     4           /* of what is free */

/* What stands in the lock file: who holds it, and what its processes can be found by. */
struct holder {
    int pid;
    uint64_t start;
    char run_id[RUN_ID_LEN];
    char cgroup[CGROUP_PATH_MAX]; /* "" = none */
    int session;                  /* 0 = not known */
    uint64_t session_start;       /* of its leader */
    char boot[BOOT_ID_LEN];       /* pids and their starts are of that boot; "" = not known */
};

#define HOLDER_TEXT (CGROUP_PATH_MAX + 256)

static void read_boot_id(char ret[BOOT_ID_LEN])
{
    _cleanup_(fclosep) FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (!f || fscanf(f, "%36s", ret) != 1)
        ret[0] = '\0';
}

static bool is_of_this_boot(const struct holder *h)
{
    char now[BOOT_ID_LEN];

    read_boot_id(now);
    return h->boot[0] == '\0' || now[0] == '\0' || streq(h->boot, now);
}

static bool read_holder(int fd, struct holder *ret)
{
    char text[HOLDER_TEXT];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    int fields;

    *ret = (struct holder){0};
    if (n <= 0)
        return false;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0'; /* behind it, the rest of a longer one before */
    fields = sscanf(text, "%d %" SCNu64 " %16s %511s %d %" SCNu64 " %36s", &ret->pid, &ret->start,
                    ret->run_id, ret->cgroup, &ret->session, &ret->session_start, ret->boot);
    if (streq(ret->cgroup, "-"))
        ret->cgroup[0] = '\0';
    return fields >= 3;
}

/* Never empty in between: others look at it without the lock. */
static void write_holder(const struct job_home *h, struct holder *holder)
{
    char text[HOLDER_TEXT];
    struct proc self;
    int n;

    if (proc_read(getpid(), &self) < 0)
        self = (struct proc){.pid = getpid()};
    n = snprintf(text, sizeof(text), "%d %" PRIu64 " %s %s %d %" PRIu64 " %s\n", (int)self.pid,
                 self.start, holder->run_id, holder->cgroup[0] ? holder->cgroup : "-",
                 holder->session, holder->session_start, holder->boot);
    if (pwrite(h->lock, text, (size_t)n, 0) != n || ftruncate(h->lock, n) < 0)
        return; /* a full disk: then only the environment of the processes tells */
}

void job_home_note_attempt(struct job_home *h, const char *cgroup, pid_t session)
{
    struct holder holder = {.session = session};
    struct proc leader;

    STR_COPY(holder.run_id, h->run_id);
    STR_COPY(holder.cgroup, cgroup);
    read_boot_id(holder.boot);
    if (session > 0 && proc_read(session, &leader) == 0)
        holder.session_start = leader.start;
    else
        holder.session = 0; /* ended already: what it left carries its environment */
    write_holder(h, &holder);
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
    struct stat there, ours;

    return state_path(path, NULL, "%s/lock", h->path) >= 0 && lstat(path, &there) == 0 &&
           fstat(h->lock, &ours) == 0 && there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}

static bool is_alive(const struct holder *holder)
{
    struct proc p;

    return is_of_this_boot(holder) && proc_read(holder->pid, &p) == 0 && p.start == holder->start &&
           !proc_is_dead(&p);
}

static void say_waiting(const char *name)
{
    fprintf(stderr, "reknit: the last run of '%s' was killed; waiting for its processes to end\n",
            name);
}

static int take_lock(struct job_home *h, const char *name, struct err *e)
{
    usec_t nameless_until = mono_us() + LOCK_NAMELESS;
    bool said = false;

    while (flock(h->lock, LOCK_EX | LOCK_NB) < 0) {
        struct holder holder;
        bool named;

        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_set(e, -errno, "%s/lock: %s", h->path, strerror(errno));
        named = read_holder(h->lock, &holder);
        if (named && is_alive(&holder))
            return err_set(e, -EBUSY,
                           "the job '%s' is running already, under reknit process %d; end that "
                           "one, or choose another name with --name",
                           name, holder.pid);
        if (!said && (named || mono_us() > nameless_until)) {
            say_waiting(name);
            said = true;
        }
        poll(NULL, 0, LOCK_PAUSE_MS);
    }
    return 0;
}

/* The number of a session is not given away while a process is in it. A leader of that number that
 * started at another time leads another one. */
static bool session_is_theirs(const struct holder *last)
{
    struct proc leader;

    if (last->session <= 0 || !is_of_this_boot(last))
        return false;
    return proc_read(last->session, &leader) < 0 || leader.start == last->session_start;
}

static bool carries(const struct proc *p, const char *run_id)
{
    _cleanup_proc_environ_ struct proc_environ env = {0};
    const char *id;

    if (proc_environ_read(p->pid, &env) < 0)
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

/* Adds what descends from those that are listed: killed, they would leave it to init. */
static void add_descendants(const struct proc_list *all, struct proc_list *ours)
{
    for (size_t i = 0; i < ours->procs.n; i++)
        VEC_FOREACH (&all->procs, p)
            if (p->ppid == ours->procs.v[i].pid && p->pid != getpid() && !proc_is_dead(p) &&
                !is_listed(ours, p->pid))
                *VEC_PUSH(&ours->procs) = *p;
}

static int find_leftovers(const struct holder *last, struct proc_list *ret)
{
    _cleanup_proc_list_ struct proc_list all = {0};
    bool by_session = session_is_theirs(last);
    int r = proc_list_all(&all);

    if (r < 0)
        return r;
    VEC_FOREACH (&all.procs, p) {
        bool in_session =
            by_session && p->session == last->session && p->start >= last->session_start;

        if (p->pid != getpid() && !proc_is_dead(p) && (in_session || carries(p, last->run_id)))
            *VEC_PUSH(&ret->procs) = *p;
    }
    add_descendants(&all, ret);
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

/* Returns how many were found, killed, and are probably gone now. */
static size_t kill_found(const struct holder *last)
{
    _cleanup_proc_list_ struct proc_list found = {0};

    cgroup_kill(last->cgroup);
    if (find_leftovers(last, &found) < 0)
        return 0;
    proc_list_signal(&found, SIGKILL);
    VEC_FOREACH (&found.procs, p)
        await_end(p->pid);
    return found.procs.n;
}

static int kill_leftovers(struct job_home *h, struct err *e)
{
    usec_t give_up = mono_us() + LEFTOVER_WAIT;
    struct holder last;
    size_t n;

    h->in_order = !read_holder(h->lock, &last);
    if (h->in_order)
        return 0;
    write_holder(h, &last); /* ours now; what is to be killed stays on record */
    while ((n = kill_found(&last)) > 0 || cgroup_is_populated(last.cgroup)) {
        h->leftovers += n;
        if (mono_us() > give_up)
            return err_set(e, -EBUSY,
                           "%zu processes of the last run cannot be killed (look for "
                           "REKNIT_RUN=%s in /proc/PID/environ, and at session %d); two copies "
                           "must never run",
                           n, last.run_id, last.session);
        if (n == 0)
            poll(NULL, 0, LOCK_PAUSE_MS);
    }
    cgroup_remove(last.cgroup);
    return 0;
}

/* The number in "run-N", 0 = it is no such name. */
static unsigned run_number(const char *name)
{
    long long v;

    if (!str_startswith(name, "run-") || str_to_i64(name + 4, &v) < 0 || v <= 0 || v > UINT32_MAX)
        return 0;
    return (unsigned)v;
}

/* Only files and no folders: what is in there was written by reknit. */
static void remove_run(const char *path)
{
    _cleanup_(closedirp) DIR *dir = opendir(path);
    struct dirent *entry;

    for (int i = 0; dir && i < FILES_PER_RUN && (entry = readdir(dir)); i++)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    rmdir(path);
}

static int make_run(struct job_home *h, struct err *e)
{
    _cleanup_(closedirp) DIR *dir = opendir(h->path);
    struct dirent *entry;
    int r;

    while (dir && (entry = readdir(dir)))
        if (run_number(entry->d_name) > h->run)
            h->run = run_number(entry->d_name);
    h->run++;
    if (h->run > RUNS_KEPT) {
        char old[PATH_MAX];

        if (state_path(old, NULL, "%s/run-%u", h->path, h->run - RUNS_KEPT) == 0)
            remove_run(old);
    }
    r = state_path(h->run_path, e, "%s/run-%u", h->path, h->run);
    return r < 0 ? r : state_make_folders(h->run_path, e);
}

void job_home_archive(const struct job_home *h, const char *path)
{
    static const char *const files[] = {"", "-wal", "-shm"}; /* a WAL is read with any journal */
    char folder[PATH_MAX], from[PATH_MAX], to[PATH_MAX];

    if (state_path(folder, NULL, "%s/run-%u", h->path, h->run - 1) < 0)
        return;
    mkdir(folder, 0700); /* it may have been tidied away */
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        if (state_path(from, NULL, "%s%s", path, files[i]) >= 0 &&
            state_path(to, NULL, "%s/journal.db%s", folder, files[i]) >= 0)
            rename(from, to);
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
        r = make_run(h, e);
    }
    if (r < 0)
        return r;
    make_run_id(h->run_id);
    job_home_note_attempt(h, "", 0);
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
