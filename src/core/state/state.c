/* SPDX-License-Identifier: Apache-2.0 */

/* The jobs of a model, and what follows from their state without being stored in it. */

#include "core/state/observe.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* Beyond TERM and its grace: a process that waits for a dead disk ignores even KILL. */
#define KILL_PATIENCE USEC_PER_MIN

static const char *const job_state_names[JOB_STATE_MAX] = {
    [JOB_NEW] = "new",       [JOB_RUNNING] = "running", [JOB_ENDING] = "ending",
    [JOB_JUDGED] = "judged", [JOB_DECIDED] = "decided", [JOB_STARTING] = "starting",
    [JOB_ENDED] = "ended",
};
DEFINE_NAMES(job_state, enum job_state, job_state_names);

struct model *model_new(void)
{
    struct model *m = xnew(struct model);

    policy_default(&m->policy);
    return m;
}

static void job_free(struct job *j)
{
    evidence_free(j->attempt.evidence);
    log_names_done(&j->attempt.logs);
    VEC_DONE(&j->pending);
    free(j);
}

struct model *model_free(struct model *m)
{
    if (!m)
        return NULL;
    VEC_FOREACH (&m->jobs, j)
        job_free(*j);
    VEC_DONE(&m->jobs);
    for (int k = 0; k < DEED_MAX; k++)
        VEC_DONE(&m->deeds[k]);
    nodes_clear(&m->nodes);
    free(m);
    return NULL;
}

/* First position whose name is not below `name`. */
static size_t job_position(const struct model *m, const char *name)
{
    return VEC_BISECT(&m->jobs, j, strcmp((*j)->name, name) < 0);
}

size_t model_find(const struct model *m, const char *name)
{
    size_t i = job_position(m, name);

    return i < m->jobs.n && streq(m->jobs.v[i]->name, name) ? i : SIZE_MAX;
}

struct job *model_job(const struct model *m, const char *name)
{
    size_t i = model_find(m, name);

    return i != SIZE_MAX ? m->jobs.v[i] : NULL;
}

bool job_awaits(const struct job *j, enum intent intent)
{
    VEC_FOREACH (&j->pending, e)
        if (e->intended.intent == intent)
            return true;
    return false;
}

bool model_awaits(const struct model *m, const struct event *intent)
{
    const struct job *j = model_job(m, intent->job);

    if (!j)
        return nodes_await(&m->nodes, intent->seq);
    VEC_FOREACH (&j->pending, e)
        if (e->seq == intent->seq)
            return true;
    return false;
}

bool job_hears(const struct job *j, uint32_t attempt)
{
    return attempt != 0 && attempt == j->attempt.number && j->state != JOB_STARTING &&
           j->state != JOB_ENDED;
}

bool job_listens(const struct job *j, uint32_t attempt)
{
    const struct attempt *a = &j->attempt;

    return job_hears(j, attempt) && (a->evidence || (!a->exited && !a->gone));
}

/* The limit is reached: the job that ended longest ago is forgotten. */
static bool make_room(struct model *m)
{
    size_t oldest = SIZE_MAX;

    if (m->jobs.n < JOBS_MAX)
        return true;
    for (size_t i = 0; i < m->jobs.n; i++)
        if (m->jobs.v[i]->state == JOB_ENDED &&
            (oldest == SIZE_MAX || m->jobs.v[i]->seen_at < m->jobs.v[oldest]->seen_at))
            oldest = i;
    if (oldest == SIZE_MAX)
        return false;
    job_free(m->jobs.v[oldest]);
    VEC_REMOVE(&m->jobs, oldest);
    return true;
}

struct job *model_add_job(struct model *m, const char *name)
{
    struct job *j;

    if (!make_room(m))
        return NULL;
    j = xnew(struct job);
    STR_COPY(j->name, name);
    attempt_reset(&j->attempt);
    *VEC_INSERT(&m->jobs, job_position(m, name)) = j;
    m->generation++;
    return j;
}

usec_t job_asked_at(const struct model *m, const struct job *j)
{
    return j->asked_at > m->asked_at ? j->asked_at : m->asked_at;
}

usec_t startup_allowance(const struct model *m, const struct job *j)
{
    usec_t prior = policy_of(m, j)->hang.first_step, learned = 3 * j->timing.first_step;
    usec_t least = prior / 3, step = policy_of(m, j)->hang.timeout_min;

    if (learned == 0)
        return prior;
    if (least < step) /* a start takes no less than a step */
        least = step < prior ? step : prior;
    return learned > least ? learned : least;
}

struct attempt_account attempt_account(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;
    uint32_t devices = j->n_devices > j->n_without ? j->n_devices - j->n_without : 1;

    return (struct attempt_account){
        .began = a->started,
        .ended = a->interrupted_at,
        .devices = devices,
        .new_from = a->new_from,
        .new_until = a->new_until,
        .saved_at = a->saved_at,
        .steps_seen = a->steps_seen,
        .highest_step = a->highest_step,
        .last_step = a->last_step,
        .checkpoint_step = a->checkpoint_step,
        .loaded_step = a->loaded_step,
        .numbers_reset = a->numbers_reset,
        .startup = startup_allowance(m, j),
    };
}

usec_t kill_limit(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;

    if (a->killed_at == USEC_NEVER || a->gone)
        return USEC_NEVER;
    return a->killed_at + policy_of(m, j)->kill_grace + KILL_PATIENCE;
}

const struct policy *policy_of(const struct model *m, const struct job *j)
{
    return j->has_policy ? &j->policy : &m->policy;
}
