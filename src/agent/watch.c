/* SPDX-License-Identifier: Apache-2.0 */

/* A step is what one slurmstepd has below it. Its tasks are known by the plugin's datagrams or,
 * when the agent is younger than the step, by looking for slurmstepd's children; from a task's
 * process its parent is found, and activity (source/activity.h) looks at all below that one.
 *
 * What was below a slurmstepd that is gone may live on: agent/attempts.h looks after that.
 *
 * Where the processes of the steps write is looked at with them, and twice soon after a task was
 * started: scripts redirect when they have begun. */

#include "agent/watch.h"

#include "agent/attempts.h"
#include "agent/kin.h"
#include "agent/outputs.h"
#include "base/alloc.h"
#include "base/proctree.h"
#include "base/str.h"
#include "base/timer.h"
#include "source/activity.h"

#include <string.h>

#define STEPD "slurmstepd"

#define OUTPUT_SOON  (200 * USEC_PER_MSEC) /* from the start of a task to the look at its output */
#define OUTPUT_LATER (2 * USEC_PER_SEC)
#define OUTPUT_LOOKS 2
#define OUTPUT_PAUSE USEC_PER_SEC /* between two looks: where steps follow each other quickly */

struct step {
    struct watch *watch;
    struct attempt_id of;
    struct proc stepd;
    struct activity *activity;
    bool untold; /* something of its last look could not be told */
};

/* One look at all steps of an attempt: for whether it works, they count together. */
struct sum {
    struct attempt_id of;
    struct signal signal;
};

struct watch {
    char node[NODE_NAME_LEN];
    usec_t every;
    struct watch_handlers handlers;
    void *ctx;
    sd_event_source *timer;
    VEC(struct step *) steps;
    struct attempts *attempts;
    bool recovered; /* the steps that were there before us are known */
    uint64_t missed;
    VEC(struct sum) sums;
    struct outputs *outputs;
    sd_event_source *output_timer;
    unsigned output_looks; /* that are still to come, beside those with the samples */
    usec_t outputs_at;     /* of the last look; monotonic */
};

static struct node_message message_of(const struct watch *w, enum node_message_kind kind,
                                      const struct attempt_id *of)
{
    struct node_message m = {
        .kind = kind, .time_us = now_us(), .job = of->job, .restart = of->restart, .uid = of->user};

    STR_COPY(m.node, w->node);
    return m;
}

static bool tell_activity(struct watch *w, const struct attempt_id *of, const struct signal *s)
{
    struct node_message m = message_of(w, NODE_MESSAGE_ACTIVITY, of);

    m.signal = *s;
    STR_COPY(m.signal.who.node, w->node);
    return w->handlers.activity(w->ctx, &m);
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
        step->untold |= !tell_activity(w, &step->of, s);
        return;
    }
    VEC_FOREACH (&w->sums, sum) {
        if (attempt_id_is(&sum->of, &step->of)) {
            add_to(&sum->signal.activity, &s->activity);
            return;
        }
    }
    *VEC_PUSH(&w->sums) = (struct sum){step->of, *s};
}

static struct step *step_free(struct step *s)
{
    activity_free(s->activity);
    free(s);
    return NULL;
}

static bool has_step(void *ctx, const struct attempt_id *of)
{
    const struct watch *w = ctx;

    VEC_FOREACH (&w->steps, s) {
        if (attempt_id_is(&(*s)->of, of))
            return true;
    }
    return false;
}

static void set_timer(struct watch *w)
{
    bool busy = w->steps.n > 0 || attempts_count(w->attempts) > 0 || !w->recovered;
    int on = SD_EVENT_OFF;

    sd_event_source_get_enabled(w->timer, &on);
    if (busy && on == SD_EVENT_OFF)
        sd_event_source_set_time_relative(w->timer, (uint64_t)w->every);
    if (busy != (on != SD_EVENT_OFF))
        sd_event_source_set_enabled(w->timer, busy ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

/* The steps */

static void end_step(struct watch *w, size_t i)
{
    _cleanup_proc_list_ struct proc_list last = {0};
    struct step *s = w->steps.v[i];

    activity_processes(s->activity, &last);
    attempts_add_seen(w->attempts, &s->of, &last);
    VEC_REMOVE(&w->steps, i);
    step_free(s);
}

/* Whether its slurmstepd lives still, or may. What it had below it is of others once it is gone,
 * perhaps in the middle of this look: then the last one counts. */
static bool sample_step(struct watch *w, struct step *s)
{
    _cleanup_proc_list_ struct proc_list before = {0};
    int lives;

    if (proc_lives(&s->stepd) == 0)
        return false;
    activity_processes(s->activity, &before);
    activity_sample(s->activity, s->stepd.pid, mono_us(), 4 * w->every);
    if (s->untold) /* then what still holds is told with the next */
        activity_forget(s->activity);
    s->untold = false;
    lives = proc_lives(&s->stepd);
    if (lives <= 0)
        attempts_add_seen(w->attempts, &s->of, &before);
    return lives != 0;
}

static void sample_steps(struct watch *w)
{
    for (size_t i = 0; i < w->steps.n;) {
        if (sample_step(w, w->steps.v[i]))
            i++;
        else
            end_step(w, i);
    }
}

static int compare_pid(const void *key, const void *element)
{
    pid_t x = *(const pid_t *)key, y = ((const struct proc *)element)->pid;

    return (x > y) - (x < y);
}

/* all: ascending by pid. */
static const struct step *step_above(const struct watch *w, const struct proc_list *all,
                                     const struct proc *p)
{
    for (int depth = 0; p && depth < 1000; depth++) { /* a loop in a list that changed ends */
        VEC_FOREACH (&w->steps, s)
            if ((*s)->stepd.pid == p->pid && (*s)->stepd.start == p->start)
                return *s;
        p = bsearch(&p->ppid, all->procs.v, all->procs.n, sizeof(*p), compare_pid);
    }
    return NULL;
}

static bool is_of_step(void *ctx, const struct proc_list *all, const struct proc *p)
{
    return step_above(ctx, all, p);
}

static void on_gone(void *ctx, const struct attempt_id *id)
{
    struct watch *w = ctx;
    struct node_message m = message_of(w, NODE_MESSAGE_GONE, id);

    outputs_forget(w->outputs, id);
    w->handlers.gone(w->ctx, &m);
}

bool watch_has_user(const struct watch *w, uid_t user)
{
    return attempts_has_user(w->attempts, user);
}

/* Where they write */

static bool on_outputs(void *ctx, const struct attempt_id *whose, const struct node_paths *paths)
{
    struct watch *w = ctx;
    struct node_message m = message_of(w, NODE_MESSAGE_LOGS, whose);

    m.paths = *paths;
    return w->handlers.logs(w->ctx, &m);
}

static void look_for_outputs(struct watch *w)
{
    outputs_look(w->outputs);
    w->outputs_at = mono_us();
}

/* Of the processes that the samples have just seen. */
static void look_with_samples(struct watch *w)
{
    VEC_FOREACH (&w->steps, s) {
        _cleanup_proc_list_ struct proc_list below = {0};

        activity_processes((*s)->activity, &below);
        VEC_FOREACH (&below.procs, p)
            outputs_ask(w->outputs, &(*s)->of, p->pid);
    }
    look_for_outputs(w);
}

/* Of those that are there now. */
static void look_between_samples(struct watch *w)
{
    _cleanup_proc_list_ struct proc_list all = {0};

    if (w->steps.n == 0 || proc_list_all(&all) < 0)
        return;
    VEC_FOREACH (&all.procs, p) {
        const struct step *s = step_above(w, &all, p);

        if (s && s->stepd.pid != p->pid && !proc_is_dead(p))
            outputs_ask(w->outputs, &s->of, p->pid);
    }
    look_for_outputs(w);
}

static int on_output_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct watch *w = userdata;

    look_between_samples(w);
    if (--w->output_looks > 0)
        timer_arm(w->output_timer, mono_us() + OUTPUT_LATER);
    return 0;
}

/* Tasks of a step start within a moment, and are looked at together. */
static void look_for_outputs_soon(struct watch *w)
{
    usec_t soon = mono_us() + OUTPUT_SOON, pause = w->outputs_at + OUTPUT_PAUSE;

    if (w->output_looks < OUTPUT_LOOKS)
        timer_arm(w->output_timer, soon > pause ? soon : pause);
    w->output_looks = OUTPUT_LOOKS;
}

void watch_repeat(struct watch *w)
{
    outputs_repeat(w->outputs);
    VEC_FOREACH (&w->steps, s)
        activity_forget((*s)->activity);
    if (w->steps.n > 0)
        look_for_outputs_soon(w);
}

/* The slurmstepd that has started the task, 0 if it was none: anybody can call a program so, but
 * not as root. Debian's is "slurmstepd-wlm". */
static int find_stepd(pid_t task, struct proc *ret)
{
    struct proc p;
    uid_t user;
    int r = proc_read(task, &p);

    if (r == 0)
        r = proc_read(p.ppid, ret);
    if (r < 0)
        return proc_is_absence(r) ? 0 : r;
    if (!str_startswith(ret->comm, STEPD))
        return 0;
    r = kin_user(ret->pid, &user);
    if (r < 0)
        return proc_is_absence(r) ? 0 : r;
    return user == 0;
}

static bool has_stepd(const struct watch *w, const struct proc *stepd)
{
    VEC_FOREACH (&w->steps, s) {
        if ((*s)->stepd.pid == stepd->pid && (*s)->stepd.start == stepd->start)
            return true;
    }
    return false;
}

static void add_step(struct watch *w, const struct attempt_id *of, const struct proc *stepd)
{
    struct step *s;

    if (has_stepd(w, stepd))
        return;
    if (w->steps.n >= WATCH_STEPS_MAX || !attempts_add(w->attempts, of)) {
        w->missed++;
        return;
    }
    s = xnew(struct step);
    s->watch = w;
    s->of = *of;
    s->stepd = *stepd;
    s->activity = activity_new(on_signal, s);
    activity_sample(s->activity, stepd->pid, mono_us(), 4 * w->every);
    *VEC_PUSH(&w->steps) = s;
    set_timer(w);
}

void watch_task(struct watch *w, const struct node_message *m)
{
    const struct attempt_id of = {m->job, m->restart, m->uid};
    struct proc stepd;
    int r = find_stepd((pid_t)m->task.pid, &stepd);

    if (r < 0) {
        w->recovered = false; /* it is looked for with the next sample */
        set_timer(w);
    }
    if (r > 0)
        add_step(w, &of, &stepd);
    if (w->steps.n > 0)
        look_for_outputs_soon(w);
}

static void on_task(void *ctx, const struct proc *task, const struct kin_fact *f)
{
    struct watch *w = ctx;
    struct attempt_id of = {f->job, f->restart, 0};
    struct proc stepd;
    int r = f->kin == KIN_JOB ? find_stepd(task->pid, &stepd) : 0;

    if (r > 0) {
        r = kin_user(task->pid, &of.user);
        /* Its environment may be one that cannot be read. */
        if (r == 0 && (!f->by_cgroup || attempts_find_last(w->attempts, &of)))
            add_step(w, &of, &stepd);
        else if (r == 0)
            w->missed++;
    }
    w->recovered &= r >= 0 || proc_is_absence(r);
}

/* Those that run already. What could not be looked at is looked at with the next sample, and of
 * nothing is said before that it is gone. */
static void find_steps(struct watch *w)
{
    _cleanup_proc_list_ struct proc_list all = {0}, tasks = {0};

    w->recovered = proc_list_all(&all) == 0 && all.hidden == 0;
    VEC_FOREACH (&all.procs, p) {
        struct proc stepd;
        int r = proc_is_dead(p) ? 0 : find_stepd(p->pid, &stepd);

        if (r > 0 && !has_stepd(w, &stepd))
            *VEC_PUSH(&tasks.procs) = *p;
        w->recovered &= r >= 0;
    }
    kin_look(&tasks, w->node, true, on_task, w);
    set_timer(w);
    if (w->steps.n > 0)
        look_for_outputs_soon(w);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct watch *w = userdata;

    if (!w->recovered)
        find_steps(w);
    sample_steps(w);
    VEC_FOREACH (&w->sums, sum)
        tell_activity(w, &sum->of, &sum->signal);
    w->sums.n = 0;
    look_with_samples(w);
    if (w->recovered)
        attempts_look(w->attempts, on_gone);
    set_timer(w);
    return 0;
}

void watch_recover(struct watch *w)
{
    attempts_recall(w->attempts);
    find_steps(w);
}

uint64_t watch_missed(const struct watch *w)
{
    return w->missed;
}

size_t watch_count(const struct watch *w)
{
    return w->steps.n;
}

struct watch *watch_new(sd_event *event, const char *node, const char *path, usec_t every,
                        const struct watch_handlers *handlers, void *ctx)
{
    static const struct attempts_asks asks = {.has_step = has_step, .is_of_step = is_of_step};
    struct watch *w = xnew(struct watch);

    STR_COPY(w->node, node);
    w->attempts = attempts_new(node, path, &asks, w);
    w->every = every;
    w->handlers = *handlers;
    w->ctx = ctx;
    w->recovered = true;
    w->outputs_at = -OUTPUT_PAUSE;
    w->outputs = outputs_new(on_outputs, w);
    if (timer_new(event, on_output_timer, w, &w->output_timer) < 0 ||
        sd_event_add_time(event, &w->timer, CLOCK_MONOTONIC, 0, 0, on_timer, w) < 0 ||
        sd_event_source_set_enabled(w->timer, SD_EVENT_OFF) < 0)
        return watch_free(w);
    return w;
}

struct watch *watch_free(struct watch *w)
{
    if (!w)
        return NULL;
    sd_event_source_disable_unref(w->timer);
    sd_event_source_disable_unref(w->output_timer);
    outputs_free(w->outputs);
    VEC_FOREACH (&w->steps, s)
        step_free(*s);
    VEC_DONE(&w->steps);
    attempts_free(w->attempts);
    VEC_DONE(&w->sums);
    free(w);
    return NULL;
}
