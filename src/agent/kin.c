/* SPDX-License-Identifier: Apache-2.0 */

/* Where Slurm uses control groups the kernel says whose a process is: no process can leave its own,
 * and reading it waits for nobody. Elsewhere the environment does in which it was started, which a
 * process can write over. */

#include "agent/kin.h"

#include "base/environs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CGROUP_TEXT_MAX 8192

/* "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0", with version 1 several such lines:
 * "7:memory:/slurm/uid_1000/job_42/step_0/task_0". */
bool kin_of_cgroup(const char *text, uint32_t *ret_job)
{
    static const char mark[] = "/job_";

    for (const char *at = text; (at = strstr(at, mark)); at++) {
        char *end;
        unsigned long job;

        if (at[strlen(mark)] < '0' || at[strlen(mark)] > '9')
            continue;
        job = strtoul(at + strlen(mark), &end, 10);
        if (job == 0 || job > UINT32_MAX || (*end != '/' && *end != '\n' && *end != '\0'))
            continue;
        *ret_job = (uint32_t)job;
        return true;
    }
    return false;
}

int kin_user(pid_t pid, uid_t *ret)
{
    char path[32];
    struct stat st;

    STR_PRINTF(path, "/proc/%d", (int)pid);
    if (stat(path, &st) < 0)
        return -errno;
    *ret = st.st_uid;
    return 0;
}

static bool is_number(const struct proc_environ *env, const char *name, uint32_t *ret)
{
    const char *text = proc_environ_get(env, name);
    long long v;

    if (!text || str_to_i64(text, &v) < 0 || v < 0 || v > UINT32_MAX)
        return false;
    *ret = (uint32_t)v;
    return true;
}

/* Where several clusters live on one machine, as in tests, SLURM_CONF says which it belongs to. */
static bool was_started_here(const struct proc_environ *env, const char *node)
{
    const char *there = proc_environ_get(env, "SLURMD_NODENAME");
    const char *ours = getenv("SLURM_CONF"), *theirs = proc_environ_get(env, "SLURM_CONF");

    return there && streq(there, node) && (!ours || !theirs || streq(ours, theirs));
}

struct look {
    const char *node;
    kin_fn fn;
    void *ctx;
    struct proc_list asked; /* whose environments are read */
    VEC(pid_t) pids;        /* theirs */
    VEC(uint32_t) jobs;     /* that their control groups say; 0 = none does */
};

static void ask(struct look *l, const struct proc *p, uint32_t job)
{
    *VEC_PUSH(&l->asked.procs) = *p;
    *VEC_PUSH(&l->pids) = p->pid;
    *VEC_PUSH(&l->jobs) = job;
}

/* Of one without an environment, or whose environment cannot be read. Gone meanwhile is gone; on
 * its way out it has none any more, but still is. */
static enum kin kin_without(const struct proc *p, bool read)
{
    struct proc now;
    int r = proc_read(p->pid, &now);

    if (r < 0)
        return proc_is_absence(r) ? KIN_NONE : KIN_UNKNOWN;
    if (now.start != p->start || proc_is_dead(&now))
        return KIN_NONE;
    return now.exiting ? KIN_EXITING : read ? KIN_NONE : KIN_UNKNOWN;
}

static void on_environ(void *ctx, size_t i, const struct proc_environ *env)
{
    struct look *l = ctx;
    const struct proc *p = &l->asked.procs.v[i];
    struct kin_fact f = {.kin = KIN_NONE, .job = l->jobs.v[i]};

    if (f.job > 0) {
        f.kin = KIN_JOB;
        f.by_cgroup = !env;
    } else if (!env || env->text.len == 0) {
        f.kin = kin_without(p, env);
    } else if (was_started_here(env, l->node) && is_number(env, "SLURM_JOB_ID", &f.job)) {
        f.kin = KIN_JOB;
    }
    if (env)
        is_number(env, "SLURM_RESTART_COUNT", &f.restart);
    l->fn(l->ctx, p, &f);
}

void kin_look(const struct proc_list *processes, const char *node, bool restarts, kin_fn fn,
              void *ctx)
{
    struct look l = {.node = node, .fn = fn, .ctx = ctx};

    VEC_FOREACH (&processes->procs, p) {
        struct kin_fact f = {.kin = KIN_JOB, .by_cgroup = true};
        char text[CGROUP_TEXT_MAX];
        bool told =
            proc_read_file(p->pid, "cgroup", text, sizeof(text)) > 0 && kin_of_cgroup(text, &f.job);

        if (proc_is_dead(p) || p->kernel || p->pid == 1)
            continue;
        if (told && !restarts)
            fn(ctx, p, &f);
        else
            ask(&l, p, told ? f.job : 0);
    }
    environs_read(l.pids.v, l.pids.n, on_environ, &l);
    proc_list_done(&l.asked);
    VEC_DONE(&l.pids);
    VEC_DONE(&l.jobs);
}
