/* SPDX-License-Identifier: Apache-2.0 */

/* core_step(): fold the input in, then let each stage look at the state in the order of the flow.
 * A stage is a pair of functions of the state: what it derives now, and when it wants to be asked
 * again. Whatever it derives is folded in before the next stage looks, and the round begins anew
 * until no stage has anything to say. So effects depend on the state alone, however it came about:
 * by stepping, or by folding a journal after a restart. */

#include "core/core.h"

#include "core/detect/detect.h"
#include "core/plan/nodes.h"
#include "core/plan/plan.h"
#include "core/policy/decide.h"
#include "core/policy/nodes.h"

#include "base/hostlist.h"
#include "base/sig.h"
#include "base/str.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 32 /* events that one input can cause in one job; more would be a loop */

/* Of verdict_wait: so long at most, should nobody read. */
#define UNREAD_WAITS 15

/* When each job of the model wants to be asked again, so that nobody has to ask all of them. What
 * happens to one job may move another's time back, never forward: a time that has come too soon is
 * only looked at again. What concerns all jobs moves all times. */
struct dues {
    VEC(usec_t) of; /* in the order of the model's jobs */
    usec_t of_nodes;
    uint64_t generation;
    bool valid;
};

struct core {
    struct model *model;
    struct dues *dues;
};

struct core *core_new(void)
{
    struct core *c = xnew(struct core);

    c->model = model_new();
    c->dues = xnew(struct dues);
    return c;
}

struct core *core_free(struct core *c)
{
    if (!c)
        return NULL;
    model_free(c->model);
    VEC_DONE(&c->dues->of);
    free(c->dues);
    free(c);
    return NULL;
}

const struct model *core_model(const struct core *c)
{
    return c->model;
}

/* Stages: each fills kind, attempt and body. */

typedef bool stage_fn(const struct model *m, const struct job *j, struct event *ret);

static bool stage_detect(const struct model *m, const struct job *j, struct event *ret)
{
    ret->kind = EVENT_FINDING;
    return detect_recovery(m, j, &ret->finding) || detect_crash(m, j, &ret->finding) ||
           detect_hang(m, j, &ret->finding);
}

static bool stage_interrupt(const struct model *m, const struct job *j, struct event *ret)
{
    const struct attempt *a = &j->attempt;

    ret->kind = EVENT_INTERRUPTED;
    return j->state == JOB_RUNNING && (a->hung || a->crashed || a->end_found || a->lost ||
                                       (j->requested && (a->exited || a->gone)));
}

/* When the last lines of the attempt have been waited for long enough: while somebody reads. The
 * time in which nobody did (reknitd was away, a reader was being replaced) counts only against a
 * limit of its own, since nobody may come at all. */
static usec_t verdict_due(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;
    usec_t wait = policy_of(m, j)->verdict_wait, from, limit;
    bool killed =
        (a->hung || a->crashed) && !j->scheduled; /* what a scheduler ends, it ends later */

    if (j->state != JOB_ENDING)
        return USEC_NEVER;
    if (killed && !a->gone)
        return kill_limit(m, j);
    if (a->drained)
        return m->now;
    from = killed ? a->gone_at : a->interrupted_at;
    limit = usec_max(from, a->unread_at) + UNREAD_WAITS * wait;
    return a->unread ? limit : usec_min(usec_max(from, a->read_at) + wait, limit);
}

static enum ending ending_of(const struct job *j)
{
    const struct attempt *a = &j->attempt;

    if (a->hung)
        return ENDING_HUNG;
    if (a->crashed || a->lost)
        return ENDING_UNKNOWN;
    if (!j->requested)
        return ENDING_EXITED;
    return sig_is_of_key(j->request_signal) ? ENDING_BY_USER : ENDING_REQUESTED;
}

/* The evidence is mostly text; how the attempt ended is a fact. Where they disagree about whether
 * it failed, the fact holds. */
static void reconcile(const struct job *j, struct incident *i)
{
    const struct attempt *a = &j->attempt;
    bool failed = a->hung || a->crashed || a->end_found;

    if (a->lost && !a->exited) {
        i->class = CLASS_INTERRUPTED;
        i->cause = CAUSE_UNKNOWN;
        i->advice = ADVICE_RESTART;
        STR_COPY(i->summary,
                 j->scheduled ? "how it ended was not seen, and the scheduler has forgotten it"
                              : "reknit itself was killed while the job ran, and the job with it");
    } else if (failed && (i->class == CLASS_HEALTHY || i->cause == CAUSE_NONE)) {
        i->class = a->hung ? CLASS_HANG : CLASS_CRASH;
        i->cause = CAUSE_UNKNOWN;
        i->advice = ADVICE_RESTART;
        STR_COPY(i->summary, a->found);
    } else if (!failed && !j->requested) {
        i->class = CLASS_HEALTHY;
        i->cause = CAUSE_NONE;
        i->advice = ADVICE_NONE;
        i->culprits = (struct culprits){0};
    }
}

/* The name by which its scheduler knows a node that a line names, NULL = it did not run there. */
static const char *own_node(const struct job *j, const char *told, char buf[NODE_NAME_LEN])
{
    const char *ran_on = j->sched.ran_on;

    str_copy(buf, NODE_NAME_LEN, told);
    if (!hostlist_has(ran_on, buf))
        buf[strcspn(buf, ".")] = '\0'; /* of a host's full name */
    return hostlist_has(ran_on, buf) ? buf : NULL;
}

/* The node that the attempt had, if it was one; "" otherwise. */
static const char *only_node(const struct job *j)
{
    const char *list = j->sched.ran_on;

    return hostlist_has(list, list) && !strchr(list, ',') ? list : "";
}

static void rule_out_node(struct incident *i, const char *node)
{
    struct ruled_out *r;

    if (i->n_ruled_out == RULED_OUT_MAX)
        return;
    r = &i->ruled_out[i->n_ruled_out++];
    STR_PRINTF(r->what, "node %s", node);
    STR_COPY(r->why, "the job did not run there, so what its output says of it proves nothing");
}

/* A job's text can say anything, and is no word against machines that it had nothing to do with. */
static void accuse_own_nodes_only(const struct job *j, struct incident *i)
{
    struct culprits *c = &i->culprits;
    uint32_t kept = 0;

    for (uint32_t n = 0; n < c->n_nodes; n++) {
        char buf[NODE_NAME_LEN];

        if (own_node(j, c->nodes[n], buf))
            STR_COPY(c->nodes[kept++], buf);
        else
            rule_out_node(i, c->nodes[n]);
    }
    c->n_nodes = kept;
}

static bool stage_judge(const struct model *m, const struct job *j, struct event *ret)
{
    if (j->state != JOB_ENDING || m->now < verdict_due(m, j))
        return false;
    ret->kind = EVENT_VERDICT;
    attribute_on_node(j->attempt.evidence, ending_of(j), only_node(j), &ret->incident);
    reconcile(j, &ret->incident);
    if (j->scheduled)
        accuse_own_nodes_only(j, &ret->incident);
    log_names_tell(&j->attempt.logs, &ret->incident);
    return true;
}

static bool stage_decide(const struct model *m, const struct job *j, struct event *ret)
{
    ret->kind = EVENT_DECISION;
    if (!decide(m, j, &ret->decision))
        return false;
    ret->decision.mode = j->scheduled ? j->sched.mode : MODE_OFF;
    return true;
}

static bool stage_plan(const struct model *m, const struct job *j, struct event *ret)
{
    ret->kind = EVENT_INTENT;
    return plan_intent(m, j, &ret->intended, &ret->attempt);
}

static bool stage_end(const struct model *m, const struct job *j, struct event *ret)
{
    ret->kind = EVENT_JOB_ENDED;
    return plan_ended(m, j, &ret->ended);
}

static const struct {
    stage_fn *derive;
    bool of_unwatched; /* of such a job only what is held of it matters */
} stages[] = {
    {stage_detect, false}, {stage_interrupt, false}, {stage_judge, false},
    {stage_decide, false}, {stage_plan, true},       {stage_end, true},
};

static bool is_unwatched(const struct job *j)
{
    return j->scheduled && j->sched.unwatched;
}

static bool next_event(const struct model *m, const struct job *j, struct event *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(stages); i++) {
        if (is_unwatched(j) && !stages[i].of_unwatched)
            continue;
        memset(ret, 0, sizeof(*ret));
        ret->attempt = j->attempt.number;
        STR_COPY(ret->job, j->name);
        if (stages[i].derive(m, j, ret))
            return true;
    }
    return false;
}

static void derive(struct core *c, const struct event *input, const struct event *e,
                   struct core_output *out)
{
    struct event *d = VEC_PUSH(&out->events);
    bool fit;

    *d = *e;
    d->seq = input->seq + out->events.n;
    d->parent = input->seq;
    d->time_us = c->model->now;
    fit = model_apply(c->model, d);
    assert(fit);
    (void)fit;
}

static void step_job(struct core *c, const struct job *j, const struct event *input,
                     struct core_output *out)
{
    struct event e;

    /* While the last lines of an attempt are read, each is evidence and no more: the judge is
     * called when they are at their end, or by the clock, never in between. */
    if (input->kind == EVENT_SIGNAL && j->state == JOB_ENDING)
        return;
    for (int rounds = 0; next_event(c->model, j, &e); rounds++) {
        assert(rounds < ROUNDS_MAX);
        derive(c, input, &e, out);
    }
}

/* Somebody started what core did not ask for, or no longer wants. Never two copies: end it. */
static void end_stray(struct core *c, const struct job *j, const struct event *input,
                      struct core_output *out)
{
    struct event e = {.kind = EVENT_INTENT, .attempt = input->attempt};

    STR_COPY(e.job, j->name);
    e.intended = (struct intent_facts){.intent = INTENT_KILL,
                                       .signal = SIGTERM,
                                       .grace = policy_of(c->model, j)->kill_grace,
                                       .after_step = STEP_NONE};
    derive(c, input, &e, out);
}

static usec_t due_of(const struct model *m, const struct job *j)
{
    if (is_unwatched(j))
        return plan_due(m, j);
    return usec_min(usec_min(crash_due(m, j), hang_due(m, j)),
                    usec_min(verdict_due(m, j), plan_due(m, j)));
}

/* Nodes: what stands against them, then what is done about it. One that is drained gives no other
 * the right to be; so all are looked at in the order of their names. */

/* An event is big, and of thousands of nodes almost none makes one. */
static bool next_of_node(const struct model *m, const struct node_ledger *l, struct event *ret)
{
    struct node_verdict verdict;
    struct intent_facts intent;

    if (nodes_judge(m, l, &verdict)) {
        memset(ret, 0, sizeof(*ret));
        ret->kind = EVENT_NODE_VERDICT;
        ret->node_verdict = verdict;
        return true;
    }
    if (!plan_node(m, l, &intent))
        return false;
    memset(ret, 0, sizeof(*ret));
    ret->kind = EVENT_INTENT;
    ret->intended = intent;
    return true;
}

static void step_nodes(struct core *c, const struct event *input, struct core_output *out)
{
    const struct model *m = c->model;
    struct event e;

    for (size_t i = 0; i < m->nodes.list.n; i++) {
        const struct node_ledger *l = m->nodes.list.v[i];

        if (node_is_quiet(l))
            continue;
        for (int rounds = 0; next_of_node(m, l, &e); rounds++) {
            assert(rounds < ROUNDS_MAX);
            derive(c, input, &e, out);
        }
    }
}

static usec_t due_of_nodes(const struct model *m)
{
    usec_t due = USEC_NEVER;

    VEC_FOREACH (&m->nodes.list, l)
        if (!node_is_quiet(*l))
            due = usec_min(due, usec_min(nodes_judge_due(m, *l), plan_node_due(m, *l)));
    return due;
}

static struct dues *dues_of(const struct core *c)
{
    const struct model *m = c->model;
    struct dues *d = c->dues;

    if (d->valid && d->generation == m->generation)
        return d;
    d->of.n = 0;
    VEC_FOREACH (&m->jobs, j)
        *VEC_PUSH(&d->of) = due_of(m, *j);
    d->of_nodes = due_of_nodes(m);
    d->generation = m->generation;
    d->valid = true;
    return d;
}

/* A tick is for those whose time has come. */
static void step_all(struct core *c, const struct event *input, struct core_output *out)
{
    const struct model *m = c->model;
    struct dues *d = dues_of(c);

    for (size_t i = 0; i < m->jobs.n; i++) {
        if (input->kind == EVENT_TICK && d->of.v[i] > m->now)
            continue;
        step_job(c, m->jobs.v[i], input, out);
        d->of.v[i] = due_of(m, m->jobs.v[i]);
    }
    if (input->kind != EVENT_TICK)
        d->valid = false;
}

/* Of a fact of a node, those that it is evidence of. */
static void step_witnesses(struct core *c, const struct event *input, struct core_output *out)
{
    const struct model *m = c->model;

    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct job *j = m->jobs.v[i];

        if (j->state == JOB_ENDING || !nodes_fact_concerns(m, &input->fact, j))
            continue;
        step_job(c, j, input, out);
        dues_of(c)->of.v[i] = due_of(m, j);
    }
}

static void step_of_nodes(struct core *c, const struct event *input, struct core_output *out)
{
    if (input->kind == EVENT_NODE_FACT)
        step_witnesses(c, input, out);
    step_nodes(c, input, out);
    dues_of(c)->of_nodes = due_of_nodes(c->model);
}

void core_step(struct core *c, const struct event *input, struct core_output *out)
{
    const struct job *j;
    size_t i;
    bool fit;

    assert(event_is_input(input->kind));
    out->events.n = 0;
    (void)dues_of(c); /* as they were before */
    fit = model_apply(c->model, input);
    if (event_is_of_nodes(input)) {
        step_of_nodes(c, input, out);
        return;
    }
    if (input->job[0] == '\0') {
        step_all(c, input, out);
        step_nodes(c, input, out);
        dues_of(c)->of_nodes = due_of_nodes(c->model);
        return;
    }
    i = model_find(c->model, input->job);
    if (i == SIZE_MAX)
        return;
    j = c->model->jobs.v[i];
    if (!j->scheduled && !fit && input->kind == EVENT_ATTEMPT_STARTED &&
        input->attempt != j->attempt.number)
        end_stray(c, j, input, out);
    step_job(c, j, input, out);
    dues_of(c)->of.v[i] = due_of(c->model, j);
}

void core_fold(struct core *c, const struct event *event)
{
    model_apply(c->model, event);
    c->dues->valid = false;
}

void core_output_done(struct core_output *out)
{
    VEC_DONE(&out->events);
}

usec_t core_deadline(const struct core *c)
{
    usec_t due = USEC_NEVER;

    VEC_FOREACH (&dues_of(c)->of, at)
        due = usec_min(due, *at);
    return usec_min(due, dues_of(c)->of_nodes);
}

void core_pending(const struct core *c, void (*fn)(void *ctx, const struct event *intent),
                  void *ctx)
{
    VEC_FOREACH (&c->model->jobs, j)
        VEC_FOREACH (&(*j)->pending, e)
            fn(ctx, e);
    VEC_FOREACH (&c->model->nodes.list, l)
        VEC_FOREACH (&(*l)->pending, e)
            fn(ctx, e);
}
