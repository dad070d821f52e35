/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm.h"

#include "base/str.h"

#include <assert.h>

#define S USEC_PER_SEC

static usec_t between(struct slurm *s, usec_t least, usec_t most)
{
    return rng_in(s->rng, least, most);
}

static void changed(struct slurm *s, struct fake_job *f)
{
    f->turn++;
    s->changes++;
}

void slurm_done(struct slurm *s)
{
    VEC_FOREACH (&s->jobs, f)
        free(*f);
    VEC_DONE(&s->jobs);
}

struct fake_job *slurm_find(const struct slurm *s, uint32_t id)
{
    VEC_FOREACH (&s->jobs, f)
        if ((*f)->id == id && !(*f)->forgotten)
            return *f;
    return NULL;
}

/* A number that is free again is as good as a new one. */
static uint32_t draw_id(struct slurm *s)
{
    VEC_FOREACH (&s->jobs, f)
        if ((*f)->forgotten && !slurm_find(s, (*f)->id) && rng_chance(s->rng, 50))
            return (*f)->id;
    return s->next_id++;
}

struct fake_job *slurm_submit(struct slurm *s, const struct fake_job *like)
{
    struct fake_job *f = xmemdup(like, sizeof(*like));

    f->id = draw_id(s);
    f->index = (uint32_t)s->jobs.n;
    f->state = SCHED_PENDING;
    f->submit = f->queued_at = s->now;
    f->completes_at = f->constrained_at = USEC_NEVER;
    f->exclude = f->own_exclude;
    *VEC_PUSH(&s->jobs) = f;
    changed(s, f);
    return f;
}

/* How long its processes take to go. */
static void complete_soon(struct slurm *s, struct fake_job *f)
{
    bool takes_long = rng_chance(s->rng, s->traits.long_completing);

    f->completing = true;
    f->completes_at = s->now + (takes_long ? between(s, 20 * S, 300 * S) : between(s, 0, 2 * S));
}

static void vacate(struct slurm *s, struct fake_job *f)
{
    if (f->nodes == 0)
        return;
    f->ran_on = f->nodes;
    complete_soon(s, f);
}

void slurm_end(struct slurm *s, struct fake_job *f, enum sched_state state, int32_t code)
{
    f->state = state;
    f->exit_code = code;
    f->end = s->now;
    vacate(s, f);
    changed(s, f);
}

static void queue_again(struct slurm *s, struct fake_job *f, usec_t begin, enum by by)
{
    vacate(s, f);
    f->state = SCHED_PENDING;
    f->restarts++;
    f->launch_failed = f->constrained = false;
    f->constrained_at = USEC_NEVER;
    f->submit = f->queued_at = s->now;
    f->start = f->end = 0;
    f->begin = begin;
    f->queued_by = f->began_by = by;
    if (by != BY_REKNIT)
        f->foreign_at = s->now;
    changed(s, f);
}

void slurm_requeue_at_once(struct slurm *s, struct fake_job *f, usec_t begin)
{
    if (f->may_requeue && f->batch)
        queue_again(s, f, begin, BY_SLURM);
}

/* What it was to end, it cannot be told, and what is not there completes at once. */
static void leave_orphans(struct slurm *s, struct fake_job *f, nodeset bit)
{
    if (s->cut & bit)
        f->orphans |= bit;
}

void slurm_silence(struct slurm *s, uint32_t node, bool cut)
{
    nodeset bit = (nodeset)1 << node;

    s->silent |= bit;
    s->cut |= cut ? bit : 0;
    VEC_FOREACH (&s->jobs, f)
        if (((*f)->nodes & bit) && (*f)->silent_at == 0)
            (*f)->silent_at = s->now;
    s->changes++;
}

void slurm_give_up(struct slurm *s, uint32_t node)
{
    nodeset bit = (nodeset)1 << node;

    VEC_FOREACH (&s->jobs, f)
        if ((*f)->nodes & bit)
            leave_orphans(s, *f, bit);
    slurm_lose_node(s, node);
}

void slurm_heal(struct slurm *s, uint32_t node)
{
    nodeset bit = (nodeset)1 << node;

    s->silent &= ~bit;
    s->cut &= ~bit;
    s->up |= bit;
    VEC_FOREACH (&s->jobs, f) {
        (*f)->orphans &= ~bit;
        if (((*f)->nodes & s->silent) == 0)
            (*f)->silent_at = 0;
    }
    s->changes++;
}

void slurm_fence(struct slurm *s, uint32_t node)
{
    nodeset bit = (nodeset)1 << node;

    s->cut &= ~bit;
    VEC_FOREACH (&s->jobs, f)
        (*f)->orphans &= ~bit;
}

void slurm_lose_node(struct slurm *s, uint32_t node)
{
    nodeset bit = (nodeset)1 << node;

    s->up &= ~bit;
    for (size_t i = 0; i < s->jobs.n; i++) {
        struct fake_job *f = s->jobs.v[i];

        if (f->forgotten || !slurm_runs(f) || !(f->nodes & bit))
            continue;
        if (f->may_requeue && f->batch)
            queue_again(s, f, 0, BY_SLURM);
        else
            slurm_end(s, f, SCHED_NODE_FAIL, 0);
    }
}

/* What people and programs ask for */

static bool can_be_requeued(const struct fake_job *f)
{
    return f->batch && f->may_requeue;
}

enum answer slurm_requeue(struct slurm *s, struct fake_job *f, enum by by)
{
    if (f->forgotten)
        return ANSWER_NO_SUCH_JOB;
    if (f->state == SCHED_PENDING)
        return ANSWER_ALREADY;
    if (!can_be_requeued(f) || (f->completing && s->traits.refuses_while_completing))
        return ANSWER_REFUSED;
    queue_again(s, f, s->now + REQUEUE_DELAY, by);
    f->began_by = BY_SLURM;
    return ANSWER_OK;
}

enum answer slurm_cancel(struct slurm *s, struct fake_job *f)
{
    if (f->forgotten)
        return ANSWER_NO_SUCH_JOB;
    if (f->state != SCHED_PENDING && !slurm_runs(f))
        return ANSWER_ALREADY;
    slurm_end(s, f, SCHED_CANCELLED, 0);
    return ANSWER_OK;
}

enum answer slurm_set_requeue(struct slurm *s, struct fake_job *f, bool may)
{
    if (f->forgotten)
        return ANSWER_NO_SUCH_JOB;
    if ((f->state != SCHED_PENDING && !slurm_runs(f)) || !f->batch)
        return ANSWER_REFUSED;
    f->armed = f->armed && f->may_requeue == may; /* who sets what is so leaves no trace */
    f->may_requeue = may;
    s->changes++;
    return ANSWER_OK;
}

/* Nobody checks whether it can run then. */
enum answer slurm_amend(struct slurm *s, struct fake_job *f, nodeset exclude, usec_t begin,
                        enum by by)
{
    if (f->forgotten)
        return ANSWER_NO_SUCH_JOB;
    if (f->state != SCHED_PENDING)
        return ANSWER_REFUSED;
    f->exclude = exclude;
    f->constrained = false;
    if (!f->completing && f->begin != begin / S * S) {
        f->begin = begin / S * S;
        f->began_by = by;
    }
    s->changes++;
    return ANSWER_OK;
}

void slurm_hold(struct slurm *s, struct fake_job *f, bool held)
{
    f->held = held;
    f->guarded = false;
    s->changes++;
}

/* Its scheduler */

static nodeset busy(const struct slurm *s)
{
    nodeset n = 0;

    VEC_FOREACH (&s->jobs, f)
        n |= (*f)->nodes;
    return n;
}

/* Not before each of its nodes has said so, or was given up. */
static void complete(struct slurm *s, struct fake_job *f)
{
    if (!f->completing || f->completes_at > s->now || (f->nodes & s->silent & s->up))
        return;
    f->completing = false;
    f->nodes = 0;
    s->changes++;
}

static void forget(struct slurm *s, struct fake_job *f)
{
    if (!sched_has_ended(f->state) || f->completing || f->end + s->traits.min_age > s->now)
        return;
    s->hooks->forgotten(s->ctx, f);
    f->forgotten = true;
    s->changes++;
}

static nodeset choose(nodeset from, nodeset first, unsigned n)
{
    nodeset chosen = first;

    for (uint32_t i = 0; i < NODES && count_nodes(chosen) < n; i++)
        chosen |= from & (nodeset)1 << i;
    return chosen;
}

/* So soon after it was queued the credentials of the attempt before are still being revoked. */
static bool launch_fails(struct slurm *s, const struct fake_job *f)
{
    bool early = f->restarts > 0 && s->now - f->queued_at < 1100 * USEC_PER_MSEC;

    return rng_chance(s->rng, early ? 30 : s->traits.launch_trouble);
}

static void start(struct slurm *s, struct fake_job *f, nodeset nodes)
{
    f->nodes = f->ran_on = nodes;
    f->start = s->now;
    f->silent_at = 0;
    f->state = SCHED_RUNNING;
    changed(s, f);
    if (launch_fails(s, f)) {
        f->launch_failed = true;
        slurm_end(s, f, SCHED_FAILED, 0);
        return;
    }
    s->hooks->begun(s->ctx, f);
}

static void try_to_start(struct slurm *s, struct fake_job *f, nodeset *taken)
{
    nodeset all = ((nodeset)1 << NODES) - 1, possible = all & ~f->exclude;
    nodeset free = s->up & ~s->silent & possible & ~*taken;
    bool can_ever = count_nodes(possible) >= f->need && (f->required & ~possible) == 0;

    if (f->constrained == can_ever) {
        f->constrained = !can_ever;
        f->constrained_at = can_ever ? USEC_NEVER : s->now;
        s->changes++;
    }
    if (!can_ever || count_nodes(free) < f->need || (f->required & ~free))
        return;
    start(s, f, choose(free, f->required, f->need));
    *taken |= f->nodes;
}

void slurm_turn(struct slurm *s)
{
    nodeset taken;

    for (size_t i = 0; i < s->jobs.n; i++) {
        if (s->jobs.v[i]->forgotten)
            continue;
        complete(s, s->jobs.v[i]);
        forget(s, s->jobs.v[i]);
    }
    taken = busy(s);
    for (size_t i = 0; i < s->jobs.n; i++) {
        struct fake_job *f = s->jobs.v[i];

        if (!f->forgotten && f->state == SCHED_PENDING && !f->completing && !f->held &&
            f->begin <= s->now)
            try_to_start(s, f, &taken);
    }
}
