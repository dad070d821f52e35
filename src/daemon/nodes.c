/* SPDX-License-Identifier: Apache-2.0 */

/* What the agents of the compute nodes tell becomes signals about attempts: the deaths of tasks, of
 * which the first counts, and whether the processes of an attempt work; and which files these write
 * to is told to who reads logs. Without agents all this is missing, and nothing else.
 *
 * A message names its job by number, and numbers come again: it must be of the attempt that runs
 * now, by its restart count and by its time. On Slurm 22.05 that count is the word of the job's
 * environment, so a user can keep the deaths of the own tasks from us, and no others.
 *
 * A task can die before a look has shown that its attempt began. What is about an attempt that
 * nothing is known of yet is held until a look that was asked for behind it says that there is
 * none, for however long the scheduler cannot be asked; and while core still judges the attempt
 * before. What came when is told by our monotonic clock alone: those of nodes, of the scheduler and
 * of people may be wrong, and be set.
 *
 * An agent gives a message up when it is acked. So a death is acked when the journal has it, and
 * what is held when it is known what it is about. */

#include "daemon/nodes.h"

#include "base/alloc.h"
#include "base/hostlist.h"
#include "base/log.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define TOLD_MAX    65536               /* deaths that wait for the journal; beyond, they do not */
#define CLOCK_SLACK (60 * USEC_PER_SEC) /* a node's clock that is set shows with its next beat */

/* A look at the scheduler that was asked for later would have shown what it is about. */
static int not_yet(const struct node_watch *w, const struct node_message *m, usec_t came)
{
    usec_t began = sched_watch_look_began(w->d->sched);

    return began > came || began > m->mono_us + CLOCK_SLACK ? -ESTALE : -EAGAIN;
}

/* The attempt began, and core still has to do with the one before. */
static bool will_be_taken(const struct sched_job *r, const struct job *j)
{
    return r->state != SCHED_PENDING && j->state != JOB_ENDED && j->attempt.number <= r->restarts;
}

bool node_watch_is_older(const struct daemon *d, const struct node_message *m, const char *key)
{
    return m->mono_us < sched_watch_to_mono(d->sched, sched_key_submit(key)) - CLOCK_SLACK;
}

/* Which attempt a message that came then is about: 0; -EAGAIN: core has not seen it yet; -ESTALE:
 * it is over, or of a job that is not watched; -EPERM: the node has no part in it, or the
 * processes are another user's, who has called them so. Who is root on a node is so on that node
 * alone. */
static int attempt_of(const struct node_watch *w, const struct node_message *m, usec_t came,
                      const struct sched_job **ret, const struct job **ret_job)
{
    const char *key;
    const struct sched_job *r = sched_watch_find(w->d->sched, m->job, &key);
    const struct job *j = r ? model_job(pump_model(w->d->pump), key) : NULL;

    if (!r)
        return not_yet(w, m, came);
    if (!*key || m->restart < r->restarts || node_watch_is_older(w->d, m, key))
        return -ESTALE;
    if (!j || r->restarts != m->restart)
        return not_yet(w, m, came);
    if (j->attempt.number != m->restart + 1)
        return will_be_taken(r, j) ? -EAGAIN : not_yet(w, m, came);
    if (!job_hears(j, m->restart + 1))
        return -ESTALE;
    if (!hostlist_has(r->nodes, m->node) || m->uid != r->uid)
        return -EPERM;
    *ret = r;
    *ret_job = j;
    return 0;
}

static uint64_t tell(struct node_watch *w, const struct job *j, const struct signal *s)
{
    struct event e = {.kind = EVENT_SIGNAL, .attempt = j->attempt.number, .signal = *s};

    STR_COPY(e.job, j->name);
    return pump_input(w->d->pump, &e);
}

/* Whether it is not to be waited for. */
static bool await_journal(struct node_watch *w, const struct agent_receipt *r, uint64_t seq)
{
    bool written = seq <= journal_last_seq(w->d->journal); /* a busy turn writes in between */

    if (written || r->id == 0 || w->told.n >= TOLD_MAX)
        return true;
    *VEC_PUSH(&w->told) = (struct told){.receipt = *r, .seq = seq};
    return false;
}

void node_watch_written(struct node_watch *w)
{
    uint64_t last = journal_last_seq(w->d->journal);
    size_t n = 0;

    for (; n < w->told.n && w->told.v[n].seq <= last; n++)
        if (w->agents)
            agents_done(w->agents, &w->told.v[n].receipt);
    if (n == 0)
        return;
    memmove(w->told.v, w->told.v + n, (w->told.n - n) * sizeof(*w->told.v));
    w->told.n -= n;
}

static bool is_of_srun(const struct node_message *m)
{
    return m->step[0] >= '0' && m->step[0] <= '9';
}

/* Of a heterogeneous job's parts. */
struct parts {
    uint32_t from, tasks; /* tasks of that part and those behind it */
    uint32_t nodes;       /* of all but the first */
};

static void add_part(void *ctx, const struct sched_job *part)
{
    struct parts *parts = ctx;

    parts->nodes += part->n_nodes;
    if (part->id >= parts->from) /* their numbers are in their order */
        parts->tasks += part->n_tasks;
}

static struct parts parts_of(const struct node_watch *w, const struct sched_job *r, uint32_t from)
{
    struct parts parts = {.from = from};

    sched_watch_each_part(w->d->sched, r, add_part, &parts);
    return parts;
}

/* Each part counts its tasks from 0; one srun over all of them, as jobs are started that belong
 * together, goes on counting. */
static uint32_t task_of(const struct node_watch *w, const struct sched_job *r,
                        const struct node_message *m)
{
    struct parts parts = parts_of(w, r, m->job);

    if (m->job == r->id || r->n_tasks < parts.tasks)
        return m->task.rank;
    return m->task.rank + (r->n_tasks - parts.tasks);
}

static uint64_t tell_death(struct node_watch *w, const struct job *j, uint32_t task,
                           const struct node_message *m)
{
    struct signal s = signal_make(SIGNAL_EXIT, PROVENANCE_SPANK);
    int status = m->task.status;

    s.time_us = m->time_us;
    STR_PRINTF(s.who.tasks, "%" PRIu32, task);
    STR_COPY(s.who.node, m->node);
    s.exit.pid = m->task.pid;
    s.exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    s.exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return tell(w, j, &s);
}

/* The batch script is no rank: its end is the job's, and what the scheduler says of it counts.
 * Whether the message may be acked. */
static bool task_ended(struct node_watch *w, const struct job *j, const struct sched_job *record,
                       const struct node_message *m, const struct agent_receipt *r)
{
    uint32_t task = task_of(w, record, m);
    bool done = true;

    if (is_of_srun(m) && task <= INT32_MAX)
        done = await_journal(w, r, tell_death(w, j, task, m));
    if (m->task.status != 0 || !is_of_srun(m))
        sched_watch_poke(w->d->sched);
    return done;
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
    if (node_samples_add(samples_of(w, j), m->node, &m->signal.activity,
                         r->n_nodes + parts_of(w, r, 0).nodes, mono_us(), &s.activity))
        tell(w, j, &s);
}

static void say_ignored(struct node_watch *w, const struct node_message *m, const char *why)
{
    if (mono_us() < w->said_ignored + NODES_SAY_EVERY)
        return;
    w->said_ignored = mono_us();
    log_warning("what node %s tells of job %" PRIu32 " is left out: %s (so far %" PRIu64
                " such messages)",
                m->node, m->job, why, w->foreign);
}

static void say_full(struct node_watch *w, const struct node_message *m)
{
    w->turned_away++;
    if (mono_us() < w->said_full + NODES_SAY_EVERY)
        return;
    w->said_full = mono_us();
    log_warning("what node %s tells of job %" PRIu32 " has to come again: too much is about "
                "attempts that nothing is known of yet (so far %" PRIu64 " such messages)",
                m->node, m->job, w->turned_away);
}

static enum agent_taken hold(struct node_watch *w, const struct node_message *m,
                             const struct agent_receipt *r)
{
    enum agent_taken taken = held_add(w->held, m, r);

    sched_watch_poke(w->d->sched);
    if (taken == AGENT_NO_ROOM)
        say_full(w, m);
    return taken;
}

/* What it says of its attempt, where that is known. Whether it may be acked. */
static bool take(struct node_watch *w, const struct node_message *m, const struct agent_receipt *r,
                 usec_t came, int *ret_known)
{
    const struct sched_job *record = NULL;
    const struct job *j = NULL;

    vacated_message(w->vacated, m);
    *ret_known = attempt_of(w, m, came, &record, &j);
    if (*ret_known == -EPERM) {
        w->foreign++;
        say_ignored(w, m, "the job does not run there, or is another user's");
    }
    if (*ret_known < 0)
        return true;
    if (m->kind == NODE_MESSAGE_EXIT)
        return task_ended(w, j, record, m, r);
    if (m->kind == NODE_MESSAGE_ACTIVITY)
        worked(w, j, record, m);
    if (m->kind == NODE_MESSAGE_LOGS && w->d->logs) {
        for (const char *path = NULL; (path = node_paths_next(&m->paths, path));)
            log_watch_found(w->d->logs, j->name, j->attempt.number, path, m->node);
    }
    return true;
}

/* Whatever runs there: it is the node's, and journaled as it comes. */
static enum agent_taken take_fact(struct node_watch *w, const struct node_message *m,
                                  const struct agent_receipt *r)
{
    struct event e = {.kind = EVENT_NODE_FACT, .fact = m->fact};

    STR_COPY(e.fact.node, m->node);
    STR_COPY(e.fact.signal.who.node, m->node);
    return await_journal(w, r, pump_input(w->d->pump, &e)) ? AGENT_TAKEN : AGENT_TAKEN_OPEN;
}

enum agent_taken nodes_take(void *ctx, const struct node_message *m, const struct agent_receipt *r)
{
    struct node_watch *w = ctx;
    int known;
    bool done;

    if (m->kind == NODE_MESSAGE_FACT)
        return take_fact(w, m, r);
    if (m->job == 0)
        return AGENT_TAKEN;
    held_hear(w->held, m);
    if (held_is_before(w->held, m))
        return hold(w, m, r);
    done = take(w, m, r, mono_us(), &known);
    if (known == -EAGAIN)
        return hold(w, m, r);
    return done ? AGENT_TAKEN : AGENT_TAKEN_OPEN;
}

static void forgotten(void *ctx, const struct agent_receipt *r)
{
    const struct node_watch *w = ctx;

    if (w->agents)
        agents_done(w->agents, r);
}

static bool take_again(void *ctx, const struct node_message *m, const struct agent_receipt *r,
                       usec_t came)
{
    struct node_watch *w = ctx;
    int known;
    bool done = take(w, m, r, came, &known);

    if (known == -EAGAIN)
        return false;
    if (done)
        forgotten(w, r);
    return true;
}

static const struct held_handlers held_handlers = {.again = take_again, .forgotten = forgotten};

/* What the job is known by goes with it. */
void node_watch_happened(struct node_watch *w, const struct event *e)
{
    node_watch_written(w);
    if (e->kind != EVENT_JOB_ENDED)
        return;
    vacated_forget(w->vacated, e->job);
    for (size_t i = 0; i < w->jobs.n; i++) {
        if (streq(w->jobs.v[i].key, e->job)) {
            node_samples_free(w->jobs.v[i].samples);
            VEC_REMOVE(&w->jobs, i);
            return;
        }
    }
}

struct node_watch *node_watch_new(struct daemon *d)
{
    struct node_watch *w = xnew(struct node_watch);

    w->d = d;
    w->vacated = vacated_new(d);
    w->said_ignored = w->said_full = -NODES_SAY_EVERY;
    w->held = held_new(d->event, &held_handlers, w);
    return w->held && nodes_hear_init(w) >= 0 ? w : node_watch_free(w);
}

struct node_watch *node_watch_free(struct node_watch *w)
{
    if (!w)
        return NULL;
    nodes_hear_done(w);
    held_free(w->held);
    VEC_DONE(&w->told);
    vacated_free(w->vacated);
    VEC_FOREACH (&w->jobs, s)
        node_samples_free(s->samples);
    VEC_DONE(&w->jobs);
    free(w);
    return NULL;
}
