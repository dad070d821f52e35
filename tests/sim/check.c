/* SPDX-License-Identifier: Apache-2.0 */

/* The invariants. */

#include "check.h"

#include "base/str.h"
#include "core/model/event_fields.h"

#include <stdarg.h>
#include <stdio.h>

#define REFOLD_PERCENT 2

void machine_fail(const struct machine *m, const char *format, ...)
{
    char at[DURATION_TEXT_MAX];
    va_list ap;

    fflush(stdout);
    fprintf(stderr, "seed %llu, at %s, event %llu: ", (unsigned long long)m->seed,
            duration_format(m->now - BEGINNING, at), (unsigned long long)m->seq);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fprintf(stderr, "\nreplay it: sim --trace %llu\n", (unsigned long long)m->seed);
    exit(1);
}

/* Folding and replaying */

static struct core *fold_all(const struct machine *m)
{
    return journal_fold(&m->journal);
}

static void compare(const struct machine *m, const struct event *a, const struct event *b,
                    const char *what)
{
    char where[128];

    if (event_differs(a, b, where)[0])
        machine_fail(m, "%s: event %llu (%s) differs in %s", what, (unsigned long long)a->seq,
                     event_kind_name(a->kind), where);
}

static void compare_outputs(const struct machine *m, const struct core_output *a,
                            const struct core_output *b)
{
    if (a->events.n != b->events.n)
        machine_fail(m, "a folded core derives %zu events, not %zu", b->events.n, a->events.n);
    for (size_t i = 0; i < a->events.n; i++)
        compare(m, &a->events.v[i], &b->events.v[i], "a folded core derives something else");
}

void check_refold(struct machine *m)
{
    core_free(m->core);
    m->core = fold_all(m);
}

static void check_replay(const struct machine *m)
{
    char what[160];

    if (!journal_replays(&m->journal, what))
        machine_fail(m, "replay: %s", what);
}

void check_step(struct machine *m, const struct event *input, struct core_output *out)
{
    bool twice = rng_chance(&m->rng, REFOLD_PERCENT) && m->journal.events.n < 3000;
    struct core *folded = twice ? fold_all(m) : NULL;
    struct core_output again = {0};

    journal_add(&m->journal, input);
    core_step(m->core, input, out);
    if (folded) {
        core_step(folded, input, &again);
        compare_outputs(m, out, &again);
        core_output_done(&again);
        core_free(m->core);
        m->core = folded;
    }
    VEC_FOREACH (&out->events, e)
        journal_add(&m->journal, e);
    if (core_deadline(m->core) <= m->now)
        machine_fail(m, "core wants a tick that has just been");
}

/* Decisions */

static const struct job *job_of(const struct machine *m)
{
    return model_job(core_model(m->core), "train");
}

static const struct copy *newest(const struct machine *m)
{
    return m->copies.n > 0 ? &m->copies.v[m->copies.n - 1] : NULL;
}

static bool is_ledger_rule(const char *rule)
{
    return streq(rule, "no-progress") || streq(rule, "no-step") || streq(rule, "same-failure") ||
           streq(rule, "hopeless");
}

/* What was shown to be saved, and what could be seen of it. */
static bool visibly_advanced(const struct machine *m, const struct copy *c)
{
    return m->script.saves_shown && m->durable > c->durable_before;
}

/* How long the copies ran, by what really happened. */
static usec_t time_run(const struct machine *m)
{
    usec_t sum = 0;

    VEC_FOREACH (&m->copies, c)
        sum += (c->ended > c->began ? c->ended : m->now) - c->began;
    return sum;
}

/* The budgets that look at the size and the time of a job. */
static void check_large(const struct machine *m, const struct decision_facts *d)
{
    const struct policy *p = &m->script.policy;
    uint64_t nodes = m->script.nodes;

    if (streq(d->rule, "waste") && (p->max_waste == 0 || p->waste_floor > time_run(m)))
        machine_fail(m, "stopped for waste, of which there cannot be so much");
    if (streq(d->rule, "fleet") && (p->max_node_restarts_per_day == 0 || m->restarts == 0 ||
                                    nodes * (m->restarts + 1) <= p->max_node_restarts_per_day))
        machine_fail(m, "%u restarts of %llu nodes are too many", m->restarts,
                     (unsigned long long)nodes);
    if (streq(d->rule, "unexplained") &&
        (p->large_job == 0 || nodes * m->script.gpus < p->large_job ||
         m->copies.n < p->max_unexplained))
        machine_fail(m, "held, although it is not large or did not fail so often");
}

static void check_decision(struct machine *m, const struct decision_facts *d)
{
    const struct policy *p = &core_model(m->core)->policy;
    const struct copy *c = newest(m);

    if (!d->rule[0] || !d->why[0] || d->action == ACTION_NONE)
        machine_fail(m, "a decision without a reason");
    if (d->action == ACTION_STOP && is_ledger_rule(d->rule) && visibly_advanced(m, c))
        machine_fail(m, "stopped by %s although it saved step %lld", d->rule,
                     (long long)m->durable);
    check_large(m, d);
    if (action_restarts(d->action) && d->used > d->allowed)
        machine_fail(m, "restarted beyond the budget of %s: %u of %u", d->rule, d->used,
                     d->allowed);
    if (action_restarts(d->action) && (m->asked || m->lost))
        machine_fail(m, "restarted although it was to end");
    if (d->delay < 0 || d->delay > p->cause[CAUSE_EXTERNAL_SERVICE].backoff_max)
        machine_fail(m, "an absurd delay");
    if (d->action == ACTION_COMPLETE && !(c->done && (c->hanging || !c->first)))
        machine_fail(m, "complete, but the work is not done");
}

static bool is_counted(const struct job *j)
{
    return !cause_is_free(j->attempt.incident.cause) && !j->ledger.patient;
}

/* Counted from the truth, apart from the ledger. */
static void count_idle_attempts(struct machine *m)
{
    const struct copy *c = newest(m);

    if (!m->script.saves_shown || !c || !job_of(m)->ledger.checkpoints_known)
        return;
    if (visibly_advanced(m, c))
        m->idle_attempts = 0;
    else
        m->idle_attempts += is_counted(job_of(m));
}

static void check_ended(struct machine *m, const struct ended_facts *e)
{
    if (m->ended)
        machine_fail(m, "it ended twice");
    m->ended = true;
    m->end = *e;
    if (e->action == ACTION_COMPLETE && e->exit_code != 0)
        machine_fail(m, "complete with status %d", e->exit_code);
    if (e->action == ACTION_STOP && !m->asked && e->exit_code != 75)
        machine_fail(m, "stopped with status %d", e->exit_code);
}

void check_derived(struct machine *m, const struct event *e)
{
    if (e->kind == EVENT_INTENT && e->intended.intent == INTENT_START)
        m->restarts++;
    if (e->kind == EVENT_VERDICT)
        count_idle_attempts(m);
    else if (e->kind == EVENT_DECISION)
        check_decision(m, &e->decision);
    else if (e->kind == EVENT_JOB_ENDED)
        check_ended(m, &e->ended);
    else if (m->ended && e->kind != EVENT_INTENT)
        machine_fail(m, "a %s after the end", event_kind_name(e->kind));
}

/* Acts */

static bool may_lose_gpu(const struct machine *m)
{
    const struct policy *p = &m->script.policy;

    return p->exclude_devices && m->script.gpus > 1 && m->script.gpus > p->min_devices;
}

/* A good GPU is never kept out, nor any that the policy or the job needs; a bad one that the kernel
 * told of does not come back. */
static void check_without(const struct machine *m, const struct intent_facts *how)
{
    const struct copy *last = newest(m);
    char bad[DEVICE_NAME_LEN];

    machine_name_gpu((uint32_t)m->script.bad_gpu, bad);
    if (how->n_without == 0 && last->told_bad && may_lose_gpu(m))
        machine_fail(m, "GPU %s is bad, and not kept out", bad);
    if (how->n_without == 0)
        return;
    if (m->script.bad_gpu < 0 || how->n_without > 1 || !streq(how->without[0], bad))
        machine_fail(m, "GPU %s is kept out, which is good", how->without[0]);
    if (!may_lose_gpu(m))
        machine_fail(m, "GPU %s is kept out, and must not be", how->without[0]);
}

void check_start(struct machine *m, uint32_t number, const struct intent_facts *how)
{
    const struct policy *p = &core_model(m->core)->policy;

    VEC_FOREACH (&m->copies, c)
        if (c->first || c->rest)
            machine_fail(m, "attempt %u is started while %u lives", number, c->number);
    if (how)
        check_without(m, how);
    if (m->starts > p->max_restarts + p->max_restarts_per_day)
        machine_fail(m, "started %u times", m->starts + 1);
    if (m->idle_attempts >= p->max_without_progress)
        machine_fail(m, "%u attempts saved nothing new, and another is started", m->idle_attempts);
}

void check_kill(struct machine *m, const struct copy *c)
{
    if (c->first && !c->hanging && c->number == job_of(m)->attempt.number && !m->asked)
        machine_fail(m, "a healthy attempt %u is killed", c->number);
}

void check_unnoticed(struct machine *m, const struct copy *c)
{
    bool rhythm = m->script.readable && m->rhythmic > RHYTHM_LEAST + 2;

    if (!m->script.sampler || c->number != job_of(m)->attempt.number)
        return;
    if (c->failure == FAIL_SPIN && !rhythm)
        return;
    machine_fail(m, "attempt %u hangs for hours, unnoticed", c->number);
}

void check_end(struct machine *m)
{
    _cleanup_(core_freep) struct core *folded = fold_all(m);
    const struct copy *c = newest(m);

    if (!m->ended)
        machine_fail(m, "nothing happens any more, and the job has not ended (it is %s)",
                     job_state_name(job_of(m)->state));
    if (core_deadline(m->core) != USEC_NEVER)
        machine_fail(m, "ended, but there is a deadline");
    if (core_model(folded)->now != core_model(m->core)->now ||
        model_job(core_model(folded), "train")->state != job_of(m)->state)
        machine_fail(m, "folding ends elsewhere");
    if (m->script.trouble == 0 && m->script.bad_gpu < 0 && !m->script.always && !m->asked &&
        !m->script.loses_runner && (m->end.action != ACTION_COMPLETE || m->starts != 1))
        machine_fail(m, "a job without trouble did not simply complete");
    if (m->script.always && m->script.fixed == FAIL_IMPORT && m->script.bad_gpu < 0 &&
        m->starts > 2)
        machine_fail(m, "an error before the first step was retried %u times", m->starts - 1);
    if (m->end.action == ACTION_COMPLETE && !c->done)
        machine_fail(m, "complete, but not done");
    check_replay(m);
}
