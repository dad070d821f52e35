/* SPDX-License-Identifier: Apache-2.0 */

/* The list of the last look is kept, by pid and start time, so that differences can be taken and
 * a process's environment (its rank) is read twice at most. A process that ended between two looks
 * takes its last CPU time along; that errs towards "idle" by less than one sample, and the core
 * wants several.
 *
 * "blocked" means state D at both ends of the sample and no CPU time in between: a process that
 * reads a lot is in D at any instant, but it moves on. */

#include "source/activity.h"

#include "base/environs.h"
#include "base/proctree.h"
#include "base/sig.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ASKED_MAX  2 /* the first look may fall between its fork and its exec */
#define FAILED_MAX 5 /* a busy machine is slow, one that hangs costs each look some time */

struct tracked {
    struct proc now;
    bool known; /* was there at the last look: `before` is filled */
    struct proc before;
    int32_t rank, local_rank;
    unsigned asked;  /* how often its environment was looked at for them */
    unsigned failed; /* ... and could not be read, or not in time */
    char told;       /* state that a signal was sent for: T, D or Z; 0 = none */
};

typedef VEC(struct tracked) tracked_vec;

struct activity {
    activity_sink_fn sink;
    void *ctx;
    usec_t last; /* time of the last look, USEC_NEVER = none */
    tracked_vec procs;
    VEC(struct tracked *) by_pid; /* into procs */
};

/* Global rank, as launchers put it into the environment. */
static const char *const rank_names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                         "SLURM_PROCID"};
static const char *const local_rank_names[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                               "MPI_LOCALRANKID", "SLURM_LOCALID"};

struct activity *activity_new(activity_sink_fn sink, void *ctx)
{
    struct activity *a = xnew(struct activity);

    a->sink = sink;
    a->ctx = ctx;
    a->last = USEC_NEVER;
    return a;
}

struct activity *activity_free(struct activity *a)
{
    if (!a)
        return NULL;
    VEC_DONE(&a->procs);
    VEC_DONE(&a->by_pid);
    free(a);
    return NULL;
}

/* The value in the process's environment if it differs from ours: what we inherited ourselves
 * (reknit run inside of a Slurm task) says nothing about a process below us. */
static int32_t find_rank(const struct proc_environ *env, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *ours = getenv(names[i]), *theirs = proc_environ_get(env, names[i]);
        long long v;

        if (!theirs || (ours && streq(ours, theirs)))
            continue;
        if (str_to_i64(theirs, &v) == 0 && v >= 0 && v <= INT32_MAX)
            return (int32_t)v;
    }
    return RANK_NONE;
}

static int compare_tracked(const void *a, const void *b)
{
    pid_t x = (*(struct tracked *const *)a)->now.pid, y = (*(struct tracked *const *)b)->now.pid;

    return (x > y) - (x < y);
}

static void index_by_pid(struct activity *a)
{
    a->by_pid.n = 0;
    VEC_FOREACH (&a->procs, t)
        *VEC_PUSH(&a->by_pid) = t;
    if (a->by_pid.n > 0)
        qsort(a->by_pid.v, a->by_pid.n, sizeof(a->by_pid.v[0]), compare_tracked);
}

/* NULL = it was not there at the last look. */
static struct tracked *find(const struct activity *a, pid_t pid)
{
    struct tracked key = {.now.pid = pid}, *p = &key, **at = NULL;

    if (a->by_pid.n > 0)
        at = bsearch(&p, a->by_pid.v, a->by_pid.n, sizeof(a->by_pid.v[0]), compare_tracked);
    return at ? *at : NULL;
}

/* Those whose environment is to be looked at. */
struct asking {
    tracked_vec *procs;
    VEC(pid_t) pids;
    VEC(size_t) places; /* in procs */
};

static void on_environ(void *ctx, size_t i, const struct proc_environ *env)
{
    struct asking *asking = ctx;
    struct tracked *t = &asking->procs->v[asking->places.v[i]];

    if (!env) {
        t->failed++;
        return;
    }
    t->asked++;
    t->rank = find_rank(env, rank_names, ARRAY_SIZE(rank_names));
    t->local_rank = find_rank(env, local_rank_names, ARRAY_SIZE(local_rank_names));
}

static void find_ranks(tracked_vec *procs)
{
    struct asking asking = {.procs = procs};

    for (size_t i = 0; i < procs->n; i++) {
        const struct tracked *t = &procs->v[i];

        if (t->rank != RANK_NONE || t->asked >= ASKED_MAX || t->failed >= FAILED_MAX ||
            proc_is_dead(&t->now))
            continue;
        *VEC_PUSH(&asking.pids) = t->now.pid;
        *VEC_PUSH(&asking.places) = i;
    }
    environs_read(asking.pids.v, asking.pids.n, on_environ, &asking);
    VEC_DONE(&asking.pids);
    VEC_DONE(&asking.places);
}

static void track(const struct activity *a, const struct proc *p, struct tracked *t)
{
    const struct tracked *before = find(a, p->pid);

    *t = (struct tracked){.rank = RANK_NONE, .local_rank = RANK_NONE};
    if (before && before->now.start == p->start) {
        *t = *before;
        t->known = true;
        t->before = before->now;
    }
    t->now = *p;
    proc_read_io(&t->now);
}

static int look(struct activity *a, pid_t root)
{
    _cleanup_proc_list_ struct proc_list tree = {0};
    tracked_vec procs = {0};
    int r = proc_list_tree(root, &tree);

    if (r < 0)
        return r;
    VEC_GROW(&procs, tree.procs.n);
    VEC_FOREACH (&tree.procs, p)
        track(a, p, VEC_PUSH(&procs));
    find_ranks(&procs);
    VEC_DONE(&a->procs);
    a->procs = procs;
    index_by_pid(a);
    return 0;
}

static bool is_stopped(const struct tracked *t)
{
    return t->now.state == 'T' || t->now.state == 't';
}

static bool is_blocked(const struct tracked *t)
{
    return t->known && t->now.state == 'D' && t->before.state == 'D' && t->now.cpu == t->before.cpu;
}

/* Several processes carry a rank's environment (its data loaders): the topmost stands for it. */
static bool speaks_for_rank(const struct activity *a, const struct tracked *t)
{
    const struct tracked *parent;

    if (t->rank == RANK_NONE)
        return false;
    parent = find(a, t->now.ppid);
    return !parent || parent->rank != t->rank;
}

static void tell(const struct activity *a, struct tracked *t, struct signal *s, char state,
                 const char *what)
{
    char comm[64];

    t->told = state;
    s->role = ROLE_CONFIRM;
    s->who.rank = t->rank;
    s->who.local_rank = t->local_rank;
    if (gethostname(s->who.node, sizeof(s->who.node) - 1) < 0)
        s->who.node[0] = '\0';
    str_sanitize(comm, sizeof(comm), t->now.comm, strlen(t->now.comm));
    snprintf(s->text, sizeof(s->text), "rank %d (pid %d, %s) %s", (int)t->rank, (int)t->now.pid,
             comm, what);
    a->sink(a->ctx, s);
}

static void tell_halted(const struct activity *a, struct tracked *t, bool stopped)
{
    struct signal s = signal_make(SIGNAL_ACTIVITY, PROVENANCE_AGENT);

    s.activity.processes = 1;
    s.activity.stopped = stopped;
    s.activity.blocked = !stopped;
    tell(a, t, &s, stopped ? 'T' : 'D', stopped ? "is stopped" : "is blocked in the kernel");
}

/* Field 52 of proc(5) stat: the status as waitpid() will give it to the parent. */
static bool read_exit_status(pid_t pid, struct exit_fact *ret)
{
    char buf[1024], *at;
    int status;

    if (proc_read_line(pid, "stat", buf, sizeof(buf)) < 0)
        return false;
    at = strrchr(buf, ' ');
    if (!at || sscanf(at, " %d", &status) != 1)
        return false;
    ret->pid = pid;
    ret->signal = status & 0x7f;
    ret->code = ret->signal ? -1 : (status >> 8) & 0xff;
    return true;
}

static void tell_dead(const struct activity *a, struct tracked *t)
{
    struct signal s = signal_make(SIGNAL_EXIT, PROVENANCE_AGENT);
    char how[64], name[SIG_NAME_LEN];

    if (!read_exit_status(t->now.pid, &s.exit))
        return;
    if (s.exit.signal)
        snprintf(how, sizeof(how), "was ended by %s", sig_name(s.exit.signal, name));
    else
        snprintf(how, sizeof(how), "exited with status %d", (int)s.exit.code);
    tell(a, t, &s, 'Z', how);
}

static void tell_ranks(const struct activity *a)
{
    VEC_FOREACH (&a->procs, t) {
        bool stopped = is_stopped(t), blocked = is_blocked(t);
        char state = stopped ? 'T' : blocked ? 'D' : proc_is_dead(&t->now) ? 'Z' : 0;

        if (state == 0)
            t->told = 0;
        if (state == t->told || !speaks_for_rank(a, t))
            continue;
        if (state == 'Z')
            tell_dead(a, t);
        else
            tell_halted(a, t, stopped);
    }
}

void activity_forget(struct activity *a)
{
    VEC_FOREACH (&a->procs, t)
        t->told = 0;
}

void activity_processes(const struct activity *a, struct proc_list *ret)
{
    VEC_FOREACH (&a->procs, t)
        *VEC_PUSH(&ret->procs) = t->now;
}

static int64_t positive(int64_t v)
{
    return v > 0 ? v : 0;
}

/* Bytes since the last look, NUMBER_NONE = the kernel does not let us see (a process of another
 * user, or one that made itself undumpable). A process that is new has been counting from 0. */
static int64_t io_since(const struct tracked *t)
{
    int64_t before = t->known ? t->before.io_bytes : 0;

    if (t->now.io_bytes == PROC_IO_UNKNOWN || before == PROC_IO_UNKNOWN)
        return NUMBER_NONE;
    return positive(t->now.io_bytes - before);
}

/* What one process does unseen, all together do unseen. */
static int64_t add_io(int64_t sum, int64_t more)
{
    return sum == NUMBER_NONE || more == NUMBER_NONE ? NUMBER_NONE : sum + more;
}

static void tell_all(const struct activity *a, usec_t interval)
{
    struct signal s = signal_make(SIGNAL_ACTIVITY, PROVENANCE_AGENT);

    s.activity.interval = interval;
    VEC_FOREACH (&a->procs, t) {
        if (proc_is_dead(&t->now))
            continue;
        s.activity.cpu += positive(t->now.cpu - (t->known ? t->before.cpu : 0));
        s.activity.io = add_io(s.activity.io, io_since(t));
        s.activity.processes++;
        s.activity.stopped += is_stopped(t);
        s.activity.blocked += is_blocked(t);
    }
    a->sink(a->ctx, &s);
}

void activity_sample(struct activity *a, pid_t root, usec_t now, usec_t max_age)
{
    bool first = a->last == USEC_NEVER || now - a->last > max_age;
    usec_t interval = first ? 0 : now - a->last;

    if (look(a, root) < 0)
        return;
    a->last = now;
    if (first)
        return;
    tell_ranks(a);
    tell_all(a, interval);
}

static void report_process(const struct tracked *t, FILE *out)
{
    char cpu[DURATION_TEXT_MAX], wchan[128] = "-", stack[256] = "", comm[64], rank[16] = "-";

    proc_read_line(t->now.pid, "wchan", wchan, sizeof(wchan));
    proc_read_line(t->now.pid, "stack", stack, sizeof(stack)); /* for root alone */
    str_sanitize(comm, sizeof(comm), t->now.comm, strlen(t->now.comm));
    if (t->rank != RANK_NONE)
        snprintf(rank, sizeof(rank), "%d", (int)t->rank);
    fprintf(out, "%8d %8d %4s   %c   %9s  %-16s %s%s%s\n", (int)t->now.pid, (int)t->now.ppid, rank,
            t->now.state, duration_format(t->now.cpu, cpu), comm, wchan, stack[0] ? "  " : "",
            stack);
}

int activity_report(struct activity *a, pid_t root, FILE *out)
{
    int r = look(a, root);

    if (r < 0)
        return r;
    a->last = USEC_NEVER; /* this look is no end of a sample */
    fputs("     pid     ppid rank state       cpu  command          waits in\n", out);
    VEC_FOREACH (&a->procs, t)
        report_process(t, out);
    return 0;
}
