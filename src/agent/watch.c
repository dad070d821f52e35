/* SPDX-License-Identifier: Apache-2.0 */

/* A step is what one slurmstepd has below it. Its tasks are known by the plugin's datagrams or,
 * when the agent is younger than the step, by looking for slurmstepd's children; from a task's
 * process its parent is found, and activity (source/activity.h) looks at all below that one.
 *
 * When the last slurmstepd of an attempt is gone, every process of the machine is looked at for the
 * job's number in the environment that it was started with; once there is none, GONE is told. That
 * nobody else's process is taken for one of the job does not matter, the other way would: a process
 * that hides (its environment overwritten, its parents left) is not found. */

#include "agent/watch.h"

#include "base/alloc.h"
#include "base/proctree.h"
#include "base/str.h"
#include "source/activity.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define STEPD        "slurmstepd"
#define ATTEMPTS_MAX 256

struct step {
    struct watch *watch;
    uint32_t job, restart;
    struct proc stepd;
    struct activity *activity;
};

struct attempt {
    uint32_t job, restart;
};

/* One look at all steps of an attempt: for whether it works, they count together. */
struct sum {
    uint32_t job, restart;
    struct signal signal;
};

struct watch {
    char node[NODE_NAME_LEN];
    usec_t every;
    struct watch_handlers handlers;
    void *ctx;
    sd_event_source *timer;
    VEC(struct step *) steps;
    VEC(struct attempt) leaving; /* no slurmstepd any more, perhaps processes */
    VEC(struct sum) sums;
};

static struct node_message message_of(const struct watch *w, enum node_message_kind kind,
                                      uint32_t job, uint32_t restart)
{
    struct node_message m = {.kind = kind, .time_us = now_us(), .job = job, .restart = restart};

    STR_COPY(m.node, w->node);
    return m;
}

static void tell_activity(struct watch *w, uint32_t job, uint32_t restart, const struct signal *s)
{
    struct node_message m = message_of(w, NODE_MESSAGE_ACTIVITY, job, restart);

    m.signal = *s;
    STR_COPY(m.signal.who.node, w->node);
    w->handlers.activity(w->ctx, &m);
}

static void add_to(struct activity_fact *sum, const struct activity_fact *f)
{
    sum->interval = f->interval > sum->interval ? f->interval : sum->interval;
    sum->cpu += f->cpu;
    sum->io = sum->io == NUMBER_NONE || f->io == NUMBER_NONE ? NUMBER_NONE : sum->io + f->io;
    sum->processes += f->processes;
    sum->stopped += f->stopped;
    sum->blocked += f->blocked;
}

static void on_signal(void *ctx, const struct signal *s)
{
    struct step *step = ctx;
    struct watch *w = step->watch;

    if (s->kind != SIGNAL_ACTIVITY || s->who.rank != RANK_NONE) {
        tell_activity(w, step->job, step->restart, s);
        return;
    }
    VEC_FOREACH (&w->sums, sum) {
        if (sum->job == step->job && sum->restart == step->restart) {
            add_to(&sum->signal.activity, &s->activity);
            return;
        }
    }
    *VEC_PUSH(&w->sums) = (struct sum){step->job, step->restart, *s};
}

static struct step *step_free(struct step *s)
{
    activity_free(s->activity);
    free(s);
    return NULL;
}

static bool is_same_process(const struct proc *p)
{
    struct proc now;

    return proc_read(p->pid, &now) == 0 && now.start == p->start && !proc_is_dead(&now);
}

static bool has_step(const struct watch *w, uint32_t job, uint32_t restart)
{
    VEC_FOREACH (&w->steps, s) {
        if ((*s)->job == job && (*s)->restart == restart)
            return true;
    }
    return false;
}

static void set_timer(struct watch *w)
{
    bool busy = w->steps.n > 0 || w->leaving.n > 0;
    int on = SD_EVENT_OFF;

    sd_event_source_get_enabled(w->timer, &on);
    if (busy && on == SD_EVENT_OFF)
        sd_event_source_set_time_relative(w->timer, (uint64_t)w->every);
    if (busy != (on != SD_EVENT_OFF))
        sd_event_source_set_enabled(w->timer, busy ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static void leave(struct watch *w, const struct step *s)
{
    VEC_FOREACH (&w->leaving, a) {
        if (a->job == s->job && a->restart == s->restart)
            return;
    }
    if (w->leaving.n < ATTEMPTS_MAX)
        *VEC_PUSH(&w->leaving) = (struct attempt){s->job, s->restart};
}

static void sample_steps(struct watch *w)
{
    for (size_t i = 0; i < w->steps.n;) {
        struct step *s = w->steps.v[i];

        if (is_same_process(&s->stepd)) {
            activity_sample(s->activity, s->stepd.pid, mono_us(), 4 * w->every);
            i++;
            continue;
        }
        VEC_REMOVE(&w->steps, i);
        if (!has_step(w, s->job, s->restart))
            leave(w, s);
        step_free(s);
    }
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

/* Its job, when it was started for one on this node; where several clusters live on one machine,
 * as in tests, SLURM_CONF says which it belongs to. */
static bool job_of(const struct watch *w, const struct proc_environ *env, uint32_t *ret)
{
    const char *node = proc_environ_get(env, "SLURMD_NODENAME");
    const char *ours = getenv("SLURM_CONF"), *theirs = proc_environ_get(env, "SLURM_CONF");

    return is_number(env, "SLURM_JOB_ID", ret) && node && streq(node, w->node) &&
           (!ours || !theirs || streq(ours, theirs));
}

/* Which of those that leave have processes still: marks[i] belongs to leaving.v[i]. */
static int mark_living(const struct watch *w, bool *marks)
{
    _cleanup_proc_list_ struct proc_list all = {0};
    int r = proc_list_all(&all);

    if (r < 0)
        return r;
    VEC_FOREACH (&all.procs, p) {
        _cleanup_proc_environ_ struct proc_environ env = {0};
        uint32_t job;

        if (proc_is_dead(p) || proc_environ_read(p->pid, &env) < 0 || !job_of(w, &env, &job))
            continue;
        for (size_t i = 0; i < w->leaving.n; i++)
            marks[i] |= w->leaving.v[i].job == job;
    }
    return 0;
}

static void look_for_gone(struct watch *w)
{
    bool living[ATTEMPTS_MAX] = {false};

    if (w->leaving.n == 0 || mark_living(w, living) < 0)
        return;
    for (size_t i = w->leaving.n; i-- > 0;) {
        struct attempt a = w->leaving.v[i];
        struct node_message m = message_of(w, NODE_MESSAGE_GONE, a.job, a.restart);

        if (living[i])
            continue;
        VEC_REMOVE(&w->leaving, i);
        w->handlers.gone(w->ctx, &m);
    }
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct watch *w = userdata;

    sample_steps(w);
    VEC_FOREACH (&w->sums, sum)
        tell_activity(w, sum->job, sum->restart, &sum->signal);
    w->sums.n = 0;
    look_for_gone(w);
    set_timer(w);
    return 0;
}

static bool is_roots(pid_t pid)
{
    struct stat st;
    char path[32];

    STR_PRINTF(path, "/proc/%d", pid);
    return stat(path, &st) == 0 && st.st_uid == 0;
}

/* The slurmstepd that has started the task: anybody can call a program so, but not as root.
 * Debian's is "slurmstepd-wlm". */
static bool find_stepd(pid_t task, struct proc *ret)
{
    struct proc p;

    return proc_read(task, &p) == 0 && proc_read(p.ppid, ret) == 0 &&
           str_startswith(ret->comm, STEPD) && is_roots(ret->pid);
}

static bool has_stepd(const struct watch *w, const struct proc *stepd)
{
    VEC_FOREACH (&w->steps, s) {
        if ((*s)->stepd.pid == stepd->pid && (*s)->stepd.start == stepd->start)
            return true;
    }
    return false;
}

static void add_step(struct watch *w, uint32_t job, uint32_t restart, const struct proc *stepd)
{
    struct step *s;

    if (w->steps.n >= WATCH_STEPS_MAX || has_stepd(w, stepd))
        return;
    s = xnew(struct step);
    s->watch = w;
    s->job = job;
    s->restart = restart;
    s->stepd = *stepd;
    s->activity = activity_new(on_signal, s);
    activity_sample(s->activity, stepd->pid, mono_us(), 4 * w->every);
    *VEC_PUSH(&w->steps) = s;
    set_timer(w);
}

void watch_task(struct watch *w, const struct node_message *m)
{
    struct proc stepd;

    if (find_stepd((pid_t)m->task.pid, &stepd))
        add_step(w, m->job, m->restart, &stepd);
}

static void recover_task(struct watch *w, const struct proc *task, const struct proc *stepd)
{
    _cleanup_proc_environ_ struct proc_environ env = {0};
    uint32_t job, restart = 0;

    if (proc_environ_read(task->pid, &env) < 0 || !job_of(w, &env, &job))
        return;
    is_number(&env, "SLURM_RESTART_COUNT", &restart);
    add_step(w, job, restart, stepd);
}

void watch_recover(struct watch *w)
{
    _cleanup_proc_list_ struct proc_list all = {0};

    if (proc_list_all(&all) < 0)
        return;
    VEC_FOREACH (&all.procs, p) {
        struct proc stepd;

        if (!proc_is_dead(p) && find_stepd(p->pid, &stepd) && !has_stepd(w, &stepd))
            recover_task(w, p, &stepd);
    }
}

size_t watch_count(const struct watch *w)
{
    return w->steps.n;
}

struct watch *watch_new(sd_event *event, const char *node, usec_t every,
                        const struct watch_handlers *handlers, void *ctx)
{
    struct watch *w = xnew(struct watch);

    STR_COPY(w->node, node);
    w->every = every;
    w->handlers = *handlers;
    w->ctx = ctx;
    if (sd_event_add_time(event, &w->timer, CLOCK_MONOTONIC, 0, 0, on_timer, w) < 0 ||
        sd_event_source_set_enabled(w->timer, SD_EVENT_OFF) < 0)
        return watch_free(w);
    return w;
}

struct watch *watch_free(struct watch *w)
{
    if (!w)
        return NULL;
    sd_event_source_disable_unref(w->timer);
    VEC_FOREACH (&w->steps, s)
        step_free(*s);
    VEC_DONE(&w->steps);
    VEC_DONE(&w->leaving);
    VEC_DONE(&w->sums);
    free(w);
    return NULL;
}
