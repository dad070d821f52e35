/* SPDX-License-Identifier: Apache-2.0 */

/* What must hold on a cluster, by the truth that Slurm's side of the simulation knows. */

#include "cluster.h"

#include "base/str.h"
#include "core/model/event_fields.h"
#include "core/plan/scheduled.h"
#include "tests/unit/states.h"

#include <stdio.h>

#define S   USEC_PER_SEC
#define MIN USEC_PER_MIN

#define REFOLD_PER_MILLE 5
#define SILENCE_LEAST    (10 * S)
#define WISHES_MAX       25  /* of one kind and job, in ten minutes */
#define REQUEUES_MAX     200 /* in the life of a job; its budgets are far below */

static const struct job *job_named(const struct cluster *c, const char *key)
{
    return model_job(core_model(c->core), key);
}

struct story *inspect_story(struct cluster *c, const char *key)
{
    struct story *s;

    VEC_FOREACH (&c->stories, known)
        if (streq(known->key, key))
            return known;
    s = VEC_PUSH(&c->stories);
    STR_COPY(s->key, key);
    s->allowed = MODE_OBSERVE;
    return s;
}

/* Each step */

static void check_fold(struct cluster *c)
{
    _cleanup_(core_freep) struct core *folded = journal_fold(&c->journal);
    const char *what = states_differ(c->core, folded);

    if (what[0])
        cluster_fail(c, "folding the journal gives another state: %s", what);
}

/* Whoever said what, in whatever order: not more than operators allow, nor than its user wishes. */
static void check_mode(struct cluster *c, const struct event *e)
{
    struct story *t = inspect_story(c, e->job);
    const struct mode_facts *f = &e->mode;
    const struct job *j = job_named(c, e->job);

    if (!j)
        return;
    if (f->asked ? !f->owner : !t->ordered)
        t->allowed = f->mode;
    t->ordered |= f->asked && !f->owner;
    if (j->sched.mode > t->allowed)
        cluster_fail(c, "%s is in mode %s, and no more than %s is allowed", e->job,
                     mode_name(j->sched.mode), mode_name(t->allowed));
    if (f->asked && f->owner && j->sched.mode > f->mode)
        cluster_fail(c, "%s is in mode %s, and its user wants %s", e->job, mode_name(j->sched.mode),
                     mode_name(f->mode));
}

void inspect_step(struct cluster *c, const struct event *input, struct core_output *out)
{
    uint64_t refused = core_model(c->core)->refused;

    journal_add(&c->journal, input);
    core_step(c->core, input, out);
    if (core_model(c->core)->refused != refused)
        cluster_fail(c, "%s of %s is told twice, too late or of nobody",
                     event_kind_name(input->kind), input->job);
    if (input->kind == EVENT_MODE)
        check_mode(c, input);
    VEC_FOREACH (&out->events, e)
        journal_add(&c->journal, e);
    if (core_deadline(c->core) <= c->now && input->kind == EVENT_TICK)
        cluster_fail(c, "core wants a tick that has just been");
    if (rng_in(&c->rng, 1, 1000) <= REFOLD_PER_MILLE && c->journal.events.n < 3000)
        check_fold(c);
}

/* What core derives */

static void check_decision(struct cluster *c, const struct event *e, const struct job *j)
{
    const struct decision_facts *d = &e->decision;

    if (!d->rule[0] || !d->why[0] || d->action == ACTION_NONE)
        cluster_fail(c, "a decision about %s without a reason", e->job);
    if (action_restarts(d->action) && j->requested)
        cluster_fail(c, "%s was cancelled, and is to be restarted", e->job);
    if (action_restarts(d->action) && d->used > d->allowed)
        cluster_fail(c, "%s: beyond the budget of %s", e->job, d->rule);
}

/* What is Reknit's own: a hold, exclusions without which it can run, a job that it brought back;
 * and all that it did to what it is to leave alone, whose start it does not move forward. */
static bool takes_back(const struct event *e, const struct job *j)
{
    const struct intent_facts *f = &e->intended;
    const struct look_facts *look = &j->sched.look;

    switch (f->intent) {
    case INTENT_RELEASE:
    case INTENT_DISARM:
        return true;
    case INTENT_CANCEL:
        return j->sched.unwanted;
    case INTENT_AMEND:
        if (f->n_nodes > 0)
            return false;
        return j->sched.unwatched ? f->not_before >= usec_min(look->begin, j->sched.own_begin)
                                  : look->constrained && look->n_kept_out > 0;
    default:
        return false;
    }
}

/* How far it may be gone with a job at a moment: when something is asked for, and when it is
 * carried out. */
static void check_allowed(struct cluster *c, const struct event *e, const struct job *j)
{
    const struct sched *s = &j->sched;
    enum intent intent = e->intended.intent;
    enum mode decided = j->attempt.decision.mode;

    if (intent == INTENT_INSPECT)
        return;
    if (core_model(c->core)->frozen && !(intent == INTENT_GUARD && s->look.held))
        cluster_fail(c, "%s of %s while frozen", intent_name(intent), e->job);
    if (takes_back(e, j))
        return;
    if (s->mode <= MODE_OBSERVE)
        cluster_fail(c, "%s of %s, which is only observed", intent_name(intent), e->job);
    if (intent == INTENT_GUARD ? s->mode != MODE_ACT : s->mode != MODE_ACT && !s->approved)
        cluster_fail(c, "%s of %s, which is only proposed", intent_name(intent), e->job);
    if (intent == INTENT_ARM || intent == INTENT_GUARD)
        return;
    if (decided <= MODE_OBSERVE || s->rejected)
        cluster_fail(c, "%s of %s: was observed or rejected", intent_name(intent), e->job);
    if (decided == MODE_PROPOSE && !s->approved)
        cluster_fail(c, "%s of %s was not approved", intent_name(intent), e->job);
}

static void check_intent(struct cluster *c, const struct event *e, const struct job *j)
{
    enum intent intent = e->intended.intent;

    if (intent == INTENT_INSPECT)
        return;
    check_allowed(c, e, j);
    if (j->sched.interactive)
        cluster_fail(c, "%s of %s, which is interactive", intent_name(intent), e->job);
    if (intent == INTENT_KILL || intent == INTENT_START)
        cluster_fail(c, "%s of a scheduler's job", intent_name(intent));
    if (intent == INTENT_ARM || intent == INTENT_GUARD || intent == INTENT_CANCEL ||
        takes_back(e, j))
        return;
    if (!action_restarts(j->attempt.decision.action))
        cluster_fail(c, "%s of %s, which is not to be restarted", intent_name(intent), e->job);
    if (j->requested || j->sched.look.state == SCHED_CANCELLED)
        cluster_fail(c, "%s of %s, which was cancelled", intent_name(intent), e->job);
}

/* Whatever the scheduler answers, nobody is to ask it the same all the time. */
static void check_pace(struct cluster *c, struct story *t, const struct event *e)
{
    enum intent intent = e->intended.intent;

    if (c->now >= t->asked[intent].since + 10 * MIN) {
        t->asked[intent].since = c->now;
        t->asked[intent].n = 0;
    }
    if (++t->asked[intent].n > WISHES_MAX)
        cluster_fail(c, "%s of %s was asked for %u times in ten minutes", intent_name(intent),
                     e->job, t->asked[intent].n);
}

/* Whoever read, or came to read in time, has read all of it; whose reader died twice meanwhile
 * need not, nor who was never told where it is. */
static void check_verdict(struct cluster *c, const struct event *e, const struct job *j)
{
    const struct story *t = inspect_story(c, e->job);
    const struct attempt *a = &j->attempt;
    usec_t since = t->unread_at > a->interrupted_at ? t->unread_at : a->interrupted_at;
    size_t left = reader_left(c, t->index, e->attempt, a->interrupted_at);

    if (left == 0 || a->lost || j->sched.look.state == SCHED_FORGOTTEN)
        return;
    VEC_FOREACH (&c->watch, w)
        if (streq(w->key, e->job) && w->downs > 1)
            return;
    c->unread++;
    if (c->now < since + 15 * policy_of(core_model(c->core), j)->verdict_wait)
        cluster_fail(c, "%s: the verdict on attempt %u lacks %zu lines", e->job, e->attempt, left);
}

/* Silence is what was read and says nothing: never what nobody had read, nor a time in which nobody
 * did. */
static void check_silence(struct cluster *c, const struct event *e, const struct job *j)
{
    const struct attempt *a = &j->attempt;
    size_t left = reader_left(c, inspect_story(c, e->job)->index, e->attempt, c->now - LAG_MAX - 1);

    if ((e->finding.finding != FINDING_CRASH && e->finding.finding != FINDING_HANG) || a->exited ||
        a->gone)
        return;
    c->silences++;
    if (left > 0)
        cluster_fail(c, "%s is interrupted for its silence, and %zu lines of it are not read",
                     e->job, left);
    if (!c->reading || c->now < c->read_since + SILENCE_LEAST ||
        c->now - e->finding.silent < c->read_since)
        cluster_fail(c, "%s is interrupted for a silence in which nobody read", e->job);
}

/* What it is let go with, it keeps: nobody looks after it any more. */
static void check_let_go(struct cluster *c, const struct event *e, const struct job *j)
{
    const struct fake_job *f = cluster_job(c, inspect_story(c, e->job)->index);

    if (e->ended.action != ACTION_NONE)
        return;
    c->let_go++;
    if (j->sched.mode != MODE_OFF)
        cluster_fail(c, "%s is let go in mode %s", e->job, mode_name(j->sched.mode));
    if (f->guarded && f->held && !sched_has_ended(f->state) && !c->scene.late)
        cluster_fail(c, "%s is let go, and held", e->job);
    if (f->armed && !sched_has_ended(f->state) && !f->stubborn && !c->scene.late)
        cluster_fail(c, "%s is let go, and armed", e->job);
}

void inspect_derived(struct cluster *c, const struct event *e)
{
    struct story *t = inspect_story(c, e->job);
    const struct job *j = job_named(c, e->job);

    if (!j)
        cluster_fail(c, "%s of an unknown job", event_kind_name(e->kind));
    if (e->kind == EVENT_DECISION) {
        check_decision(c, e, j);
        t->decision = e->seq;
        t->requeues_of_decision = 0;
    } else if (e->kind == EVENT_INTENT) {
        check_intent(c, e, j);
        check_pace(c, t, e);
        t->requeues_of_decision += e->intended.intent == INTENT_REQUEUE;
        c->requeues += e->intended.intent == INTENT_REQUEUE;
        c->cancels += e->intended.intent == INTENT_CANCEL;
        /* void costs nothing, and has a limit */
        if (t->requeues_of_decision > 8)
            cluster_fail(c, "%s: %u requeues for one decision", e->job, t->requeues_of_decision);
    } else if (e->kind == EVENT_JOB_ENDED) {
        check_let_go(c, e, j);
    } else if (e->kind == EVENT_FINDING) {
        check_silence(c, e, j);
    } else if (e->kind == EVENT_VERDICT) {
        t->judged = e->attempt;
        check_verdict(c, e, j);
    }
}

/* What is asked of the scheduler */

void inspect_carried_out(struct cluster *c, const struct event *intent)
{
    const struct job *j = job_named(c, intent->job);

    if (j)
        check_allowed(c, intent, j);
}

/* What it grants */

static struct story *story_of(struct cluster *c, const struct event *intent)
{
    return inspect_story(c, intent->job);
}

/* Others queued it again while one of our calls was lost: nobody can tell them apart. */
static bool is_ambiguous(const struct cluster *c, const struct fake_job *f)
{
    return f->foreign_at > 0 && c->now - f->foreign_at < 5 * MIN;
}

void inspect_granted(struct cluster *c, const struct event *intent, struct fake_job *f, bool late)
{
    struct story *t = story_of(c, intent);

    if (t->index != f->index)
        cluster_fail(c, "%s meant job %u, and met another of its number", intent->job, f->id);
    switch (intent->intended.intent) {
    case INTENT_REQUEUE:
        if (f->cancelled && f->cancel_shown && !is_ambiguous(c, f))
            f->back_at = c->now;
        else if (f->cancelled && late)
            f->cancelled = false; /* as if somebody else had brought it back */
        if (f->cancelled && f->cancel_shown && !late)
            cluster_fail(c, "%s was cancelled, and requeued", intent->job);
        if (++t->restarts > REQUEUES_MAX)
            cluster_fail(c, "%s was requeued %u times", intent->job, t->restarts);
        f->starts_of_reknit++;
        break;
    case INTENT_CANCEL:
        if (!late && f->restarts != intent->intended.restarts)
            cluster_fail(c, "%s: another attempt was cancelled", intent->job);
        break;
    default:
        break;
    }
}

/* Who approves says that nothing is left. */
static bool is_approved(const struct cluster *c, const struct fake_job *f)
{
    VEC_FOREACH (&c->stories, t) {
        const struct job *j = job_named(c, t->key);

        if (t->index == f->index && j && j->sched.approved)
            return true;
    }
    return false;
}

/* reknit saw that a node was silent while the job still ran, and nothing kept it from acting. */
static bool could_have_guarded(const struct cluster *c, const struct fake_job *f)
{
    const struct scene *s = &c->scene;
    usec_t well = c->alive_since > c->deaf_until ? c->alive_since : c->deaf_until;

    return f->silent_at > 0 && f->queued_at > f->silent_at + 20 * S && well < f->silent_at &&
           c->alive && s->mode == MODE_ACT && !s->mode_changes && !s->freezes && !s->lost &&
           !s->late && !s->rough && f->batch;
}

/* Its own word set the time of the start, and it was there to change that. */
static bool has_started_it(const struct cluster *c, const struct fake_job *f)
{
    usec_t well = c->alive_since > c->deaf_until ? c->alive_since : c->deaf_until;

    return f->began_by == BY_REKNIT && f->restarts > 0 && c->alive && well < c->now - 12 * MIN &&
           !c->scene.freezes && !c->scene.mode_changes && !c->scene.rough;
}

/* Ranks of an attempt before live on behind a cut. Who approved a start beside them has said that
 * there are none, also for the attempts behind that one. */
static void check_copies(struct cluster *c, struct fake_job *f)
{
    if (f->orphans == 0)
        return;
    c->copies++;
    if (is_approved(c, f))
        f->orphans = 0;
    else if (could_have_guarded(c, f) || has_started_it(c, f))
        cluster_fail(c, "job %u runs twice: a node of its last attempt is only cut off", f->id);
}

/* Whoever set the start time last answers for it. */
void inspect_begun(struct cluster *c, struct fake_job *f)
{
    check_copies(c, f);
    if (f->began_by == BY_REKNIT && f->restarts > 0 && f->start - f->queued_at < 2 * S)
        cluster_fail(c, "job %u was started %lld ms after its requeue", f->id,
                     (long long)(f->start - f->queued_at) / USEC_PER_MSEC);
}

/* For how long reknit could have done something about what is so since then. */
static usec_t idle_since(const struct cluster *c, usec_t then)
{
    usec_t since = then > c->alive_since ? then : c->alive_since;

    if (!c->alive || core_model(c->core)->frozen || c->now < c->deaf_until)
        return 0;
    return c->now - (since > c->deaf_until ? since : c->deaf_until);
}

/* Only because of us it cannot run. */
static void check_constrained(struct cluster *c, const struct fake_job *f)
{
    nodeset possible = (((nodeset)1 << NODES) - 1) & ~f->own_exclude;
    bool own_fault = count_nodes(possible) < f->need || (f->required & ~possible);

    if (f->state == SCHED_PENDING && f->constrained && !own_fault && !f->held &&
        idle_since(c, f->constrained_at) > 12 * MIN)
        cluster_fail(c, "job %u cannot run, because of nodes that were kept out", f->id);
}

/* The job of that key is, or was to be, watched no more. */
static bool is_unwatched(const struct cluster *c, const struct fake_job *f)
{
    VEC_FOREACH (&c->stories, t) {
        const struct job *j = t->index == f->index ? job_named(c, t->key) : NULL;

        if (j && j->sched.unwatched)
            return true;
    }
    return false;
}

/* Of who is watched no more, nothing is held for longer than a node may be lost. */
static void check_held(struct cluster *c, struct fake_job *f)
{
    if (!f->guarded || !f->held || sched_has_ended(f->state) || !is_unwatched(c, f))
        f->unwatched_at = 0;
    else if (f->unwatched_at == 0)
        f->unwatched_at = c->now;
    if (f->unwatched_at > 0 && idle_since(c, f->unwatched_at) > 25 * MIN)
        cluster_fail(c, "job %u is watched no more, and held", f->id);
}

/* Nothing is held for long after all nodes that it was held for answer again. One that was held by
 * a call that came late, without a note of that, is somebody's of whom nobody knows. */
static void check_needless(struct cluster *c, struct fake_job *f)
{
    bool held = f->guarded && f->held && !sched_has_ended(f->state) && !f->stubborn;
    bool lost = (f->nodes | f->ran_on) & c->slurm.silent;
    bool known = f->noted || !c->scene.late;

    if (!held || lost || f->completing || !known || idle_since(c, 0) == 0)
        f->needless_at = 0;
    else if (f->needless_at == 0)
        f->needless_at = c->now;
    if (f->needless_at > 0 && idle_since(c, f->needless_at) > 15 * MIN)
        cluster_fail(c, "job %u is held, and its nodes answer", f->id);
}

/* Nobody is to care for the job, and nobody is asked. */
static bool is_left_to_itself(const struct cluster *c, const struct fake_job *f)
{
    VEC_FOREACH (&c->stories, t) {
        const struct job *j = t->index == f->index ? job_named(c, t->key) : NULL;

        if (j && j->sched.mode <= MODE_OBSERVE)
            return true;
    }
    return false;
}

/* That it may be requeued against its user's word lasts as long as reknit cares for it. */
static void check_armed(struct cluster *c, struct fake_job *f)
{
    if (!f->armed || sched_has_ended(f->state) || f->stubborn || !is_left_to_itself(c, f))
        f->armed_at = 0;
    else if (f->armed_at == 0)
        f->armed_at = c->now;
    if (f->armed_at > 0 && idle_since(c, f->armed_at) > 5 * MIN && !c->scene.late)
        cluster_fail(c, "job %u is not cared for, and armed", f->id);
}

void inspect_job(struct cluster *c, struct fake_job *f)
{
    check_armed(c, f);
    check_constrained(c, f);
    check_held(c, f);
    check_needless(c, f);
    if (f->cancelled && f->back_at > 0 && !sched_has_ended(f->state) &&
        idle_since(c, f->back_at) > 3 * MIN)
        cluster_fail(c, "job %u was cancelled, and is back", f->id);
}

/* The end */

static void check_cancelled(struct cluster *c, const struct fake_job *f)
{
    if (f->cancelled && f->cancel_shown && !sched_has_ended(f->state))
        cluster_fail(c, "job %u was cancelled, and is back", f->id);
}

static void check_story(struct cluster *c, const struct story *t)
{
    const struct job *j = job_named(c, t->key);

    if (!j)
        return;
    if (j->state != JOB_ENDED)
        cluster_fail(c, "%s is %s at the end of all days (%s, %s)", t->key,
                     job_state_name(j->state), sched_state_name(j->sched.look.state),
                     j->attempt.decision.rule);
    if (j->sched.let_go)
        return;
    if (j->attempt.number > 0 && t->judged != j->attempt.number)
        cluster_fail(c, "%s: attempt %u was never judged", t->key, j->attempt.number);
    if (j->attempt.decision.rule[0] == '\0')
        cluster_fail(c, "%s ended without a decision", t->key);
}

void inspect_end(struct cluster *c)
{
    char what[160];

    VEC_FOREACH (&c->slurm.jobs, f)
        check_cancelled(c, *f);
    VEC_FOREACH (&c->stories, t)
        check_story(c, t);
    if (core_deadline(c->core) != USEC_NEVER)
        cluster_fail(c, "all has ended, but there is a deadline");
    check_fold(c);
    if (!journal_replays(&c->journal, what))
        cluster_fail(c, "replay: %s", what);
}

/* Left behind: it failed, should have been started again, and nothing stood in the way until the
 * scheduler forgot it. */
static bool has_excuse(const struct cluster *c, const struct fake_job *f, const struct job *j)
{
    const struct brakes *b = &c->scene.brakes;
    usec_t well = c->alive_since > c->deaf_until ? c->alive_since : c->deaf_until;
    char why[128];

    return !c->alive || well > f->end || b->actions_per_hour || b->storm_jobs ||
           b->actions_per_partition_hour || c->scene.freezes || c->scene.mode_changes ||
           c->scene.lost || c->scene.late || j->sched.look.restarts != f->restarts ||
           !plan_sched_may_act(core_model(c->core), j, why, sizeof(why));
}

void inspect_forgotten(struct cluster *c, const struct fake_job *f)
{
    VEC_FOREACH (&c->stories, t) {
        const struct job *j = job_named(c, t->key);

        if (t->index != f->index || !j || f->cancelled || has_excuse(c, f, j))
            continue;
        if ((j->state == JOB_DECIDED || j->state == JOB_STARTING) &&
            action_restarts(j->attempt.decision.action))
            cluster_fail(c, "%s was left behind: %s, %s", t->key, job_state_name(j->state),
                         j->attempt.decision.rule);
    }
}
