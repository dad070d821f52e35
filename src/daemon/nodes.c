/* SPDX-License-Identifier: Apache-2.0 */

/* What the agents of the compute nodes tell becomes signals about attempts: the deaths of tasks, of
 * which the first counts, and whether the processes of an attempt work. Without agents all this is
 * missing, and nothing else.
 *
 * A message names its job by number, and numbers come again: it must be of the attempt that runs
 * now, by its restart count and by its time. On Slurm 22.05 that count is the word of the job's
 * environment, so a user can keep the deaths of the own tasks from us, and no others.
 *
 * The agents are listened to once the nodes are known: before, nobody could be believed. */

#include "daemon/daemon.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "base/timer.h"
#include "source/agents.h"
#include "source/node_samples.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/wait.h>

#define RETRY       (10 * USEC_PER_SEC) /* to listen */
#define SOON        (200 * USEC_PER_MSEC)
#define HELD_MAX    1024
#define HELD_FOR    (30 * USEC_PER_SEC)
#define CLOCK_SLACK (60 * USEC_PER_SEC)
#define SAY_EVERY   (60 * USEC_PER_SEC) /* of those who were refused */

struct sampled {
    char key[SCHED_KEY_LEN];
    uint32_t attempt;
    struct node_samples *samples;
};

/* Of an attempt that core does not know yet. */
struct held {
    struct node_message m;
    usec_t since; /* monotonic */
};

struct node_watch {
    struct daemon *d;
    struct agents *agents; /* NULL = not yet */
    sd_event_source *timer, *again;
    VEC(struct sampled) jobs;
    VEC(struct held) held; /* oldest first */
    usec_t said_refused;   /* monotonic */
    bool failing;          /* said so */
};

/* Which attempt a message is about: 0; -EAGAIN: core has not seen it yet; -ESTALE: it is over, or
 * of a job that is not watched. */
static int attempt_of(const struct node_watch *w, const struct node_message *m,
                      const struct sched_job **ret, const struct job **ret_job)
{
    const char *key;
    const struct sched_job *r = sched_watch_find(w->d->sched, m->job, &key);
    const struct job *j = r ? model_job(pump_model(w->d->pump), key) : NULL;

    if (!r)
        return -EAGAIN;
    if (!*key || m->restart < r->restarts || m->time_us < r->submit * USEC_PER_SEC - CLOCK_SLACK)
        return -ESTALE;
    if (!j || r->restarts != m->restart || j->attempt.number != m->restart + 1)
        return -EAGAIN;
    *ret = r;
    *ret_job = j;
    return 0;
}

static void tell(struct node_watch *w, const struct job *j, const struct signal *s)
{
    struct event e = {.kind = EVENT_SIGNAL, .attempt = j->attempt.number, .signal = *s};

    STR_COPY(e.job, j->name);
    pump_input(w->d->pump, &e);
}

static bool is_of_srun(const struct node_message *m)
{
    return m->step[0] >= '0' && m->step[0] <= '9';
}

/* The batch script is no rank: its end is the job's, and what the scheduler says of it counts. */
static void task_ended(struct node_watch *w, const struct job *j, const struct node_message *m)
{
    struct signal s = signal_make(SIGNAL_EXIT, PROVENANCE_SPANK);
    int status = m->task.status;

    if (is_of_srun(m) && m->task.rank <= INT32_MAX) {
        s.time_us = m->time_us;
        s.who.rank = (int32_t)m->task.rank;
        STR_COPY(s.who.node, m->node);
        s.exit.pid = m->task.pid;
        s.exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        s.exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        tell(w, j, &s);
    }
    if (status != 0 || !is_of_srun(m))
        sched_watch_poke(w->d->sched);
}

static struct node_samples *samples_of(struct node_watch *w, const struct job *j)
{
    struct sampled *x = NULL;

    VEC_FOREACH (&w->jobs, s) {
        if (streq(s->key, j->name))
            x = s;
    }
    if (!x) {
        x = VEC_PUSH(&w->jobs);
        STR_COPY(x->key, j->name);
    }
    if (x->attempt != j->attempt.number || !x->samples) {
        node_samples_free(x->samples);
        x->samples = node_samples_new();
        x->attempt = j->attempt.number;
    }
    return x->samples;
}

static void worked(struct node_watch *w, const struct job *j, const struct sched_job *r,
                   const struct node_message *m)
{
    struct signal s = m->signal;

    if (j->state != JOB_RUNNING)
        return;
    if (s.kind != SIGNAL_ACTIVITY || s.who.rank != RANK_NONE) {
        STR_COPY(s.who.node, m->node);
        tell(w, j, &s);
        return;
    }
    s = signal_make(SIGNAL_ACTIVITY, PROVENANCE_AGENT);
    if (node_samples_add(samples_of(w, j), m->node, &m->signal.activity, r->n_nodes, mono_us(),
                         &s.activity))
        tell(w, j, &s);
}

/* A task can die before a look has shown that it began. */
static void hold(struct node_watch *w, const struct node_message *m)
{
    sched_watch_poke(w->d->sched);
    if (m->kind != NODE_MESSAGE_EXIT || w->held.n >= HELD_MAX)
        return;
    *VEC_PUSH(&w->held) = (struct held){.m = *m, .since = mono_us()};
    if (!timer_is_armed(w->again))
        timer_arm(w->again, mono_us() + SOON);
}

static void on_message(void *ctx, const struct node_message *m)
{
    struct node_watch *w = ctx;
    const struct sched_job *r;
    const struct job *j;
    int known = m->job ? attempt_of(w, m, &r, &j) : -ESTALE;

    if (known == -EAGAIN)
        hold(w, m);
    if (known < 0)
        return;
    if (m->kind == NODE_MESSAGE_EXIT)
        task_ended(w, j, m);
    else if (m->kind == NODE_MESSAGE_ACTIVITY)
        worked(w, j, r, m);
}

/* In the order in which they came. */
static int on_again(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct node_watch *w = userdata;
    size_t kept = 0;

    for (size_t i = 0; i < w->held.n; i++) {
        struct held *x = &w->held.v[i];
        const struct sched_job *r;
        const struct job *j;
        int known = attempt_of(w, &x->m, &r, &j);

        if (known == 0)
            task_ended(w, j, &x->m);
        else if (known == -EAGAIN && mono_us() < x->since + HELD_FOR)
            w->held.v[kept++] = *x;
    }
    w->held.n = kept;
    if (kept > 0)
        timer_arm(w->again, mono_us() + SOON);
    return 0;
}

static void on_node(void *ctx, const char *node, const char *trouble)
{
    if (trouble)
        log_warning("node %s: %s", node, trouble);
    else
        log_info("node %s: its agent is connected", node);
}

static void on_refused(void *ctx, const char *address, const char *why)
{
    struct node_watch *w = ctx;

    if (mono_us() < w->said_refused + SAY_EVERY)
        return;
    w->said_refused = mono_us();
    log_warning("an agent at %s is refused: %s", address, why);
}

static const char *on_address(void *ctx, const char *node)
{
    struct node_watch *w = ctx;

    return sched_watch_address(w->d->sched, node);
}

static const struct agents_handlers handlers = {
    .address = on_address, .message = on_message, .node = on_node, .refused = on_refused};

static void listen_now(struct node_watch *w)
{
    const struct daemon_config *c = w->d->config;
    bool by_key = c->agents.auth == AGENT_AUTH_KEY;
    char path[PATH_MAX + 16];
    const char *option = by_key ? "--key" : *c->agents.munge_socket ? "--munge-socket" : NULL;
    const char *argv[] = {path, option, by_key ? c->agents.key_file : c->agents.munge_socket, NULL};
    struct agents_config config = {.listen = c->agents.listen, .seal = argv};
    struct err e = {0};

    STR_PRINTF(path, "%s/reknit-seal", w->d->programs);
    if (agents_new(w->d->event, &config, &handlers, w, &w->agents, &e) < 0) {
        if (!w->failing)
            log_error("agents cannot be heard: %s", e.text);
        w->failing = true;
        timer_arm(w->timer, mono_us() + RETRY);
        return;
    }
    w->failing = false;
    log_info("agents are heard at %s", c->agents.listen);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct node_watch *w = userdata;

    if (sched_watch_has_nodes(w->d->sched))
        listen_now(w);
    else
        timer_arm(w->timer, mono_us() + SOON);
    return 0;
}

/* What the job is known by goes with it. */
void node_watch_happened(struct node_watch *w, const struct event *e)
{
    if (e->kind != EVENT_JOB_ENDED)
        return;
    for (size_t i = 0; i < w->jobs.n; i++) {
        if (streq(w->jobs.v[i].key, e->job)) {
            node_samples_free(w->jobs.v[i].samples);
            VEC_REMOVE(&w->jobs, i);
            return;
        }
    }
}

/* A configuration that names another place has it listen there. */
void node_watch_reload(struct node_watch *w)
{
    w->agents = agents_free(w->agents);
    if (*w->d->config->agents.listen)
        timer_arm(w->timer, mono_us());
    else
        timer_stop(w->timer);
}

struct node_watch *node_watch_new(struct daemon *d)
{
    struct node_watch *w = xnew(struct node_watch);

    w->d = d;
    w->said_refused = -SAY_EVERY;
    if (timer_new(d->event, on_timer, w, &w->timer) < 0 ||
        timer_new(d->event, on_again, w, &w->again) < 0)
        return node_watch_free(w);
    node_watch_reload(w);
    return w;
}

struct node_watch *node_watch_free(struct node_watch *w)
{
    if (!w)
        return NULL;
    agents_free(w->agents);
    sd_event_source_disable_unref(w->timer);
    sd_event_source_disable_unref(w->again);
    VEC_DONE(&w->held);
    VEC_FOREACH (&w->jobs, s)
        node_samples_free(s->samples);
    VEC_DONE(&w->jobs);
    free(w);
    return NULL;
}
