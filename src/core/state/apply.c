/* SPDX-License-Identifier: Apache-2.0 */

/* model_apply(): the one place where state changes.
 *
 * Each kind of event has a function that first asks whether the event fits (does the job exist, is
 * it this attempt, is the state right) and then changes the state. It takes nothing from anywhere
 * but the event and the state, so folding a journal gives the state that writing it gave.
 *
 * job_enter() is the one door between states; the table beside it is the diagram in state.h. */

#include "core/state/lemons.h"
#include "core/state/observe.h"
#include "core/state/scheduled.h"

#include "base/str.h"

#include <assert.h>
#include <string.h>

static const bool may_enter[JOB_STATE_MAX][JOB_STATE_MAX] = {
    [JOB_NEW] = {[JOB_RUNNING] = true, [JOB_DECIDED] = true, [JOB_ENDED] = true},
    [JOB_RUNNING] = {[JOB_ENDING] = true, [JOB_ENDED] = true},
    [JOB_ENDING] = {[JOB_JUDGED] = true, [JOB_ENDED] = true},
    [JOB_JUDGED] = {[JOB_DECIDED] = true},
    [JOB_DECIDED] =
        {[JOB_DECIDED] = true, [JOB_STARTING] = true, [JOB_ENDED] = true, [JOB_RUNNING] = true},
    [JOB_STARTING] = {[JOB_RUNNING] = true, [JOB_DECIDED] = true, [JOB_ENDED] = true},
    [JOB_ENDED] = {[JOB_NEW] = true, [JOB_RUNNING] = true},
};

bool job_may_enter(enum job_state from, enum job_state next)
{
    return may_enter[from][next];
}

static bool fits(const struct job *j, enum job_state next)
{
    return job_may_enter(j->state, next);
}

static void job_enter(struct job *j, enum job_state next)
{
    assert(next >= 0 && next < JOB_STATE_MAX);
    assert(fits(j, next));
    j->state = next;
}

static bool is_attempt(const struct job *j, const struct event *e)
{
    return j->attempt.number != 0 && e->attempt == j->attempt.number;
}

/* Processes of the attempt may exist. */
static bool has_processes(const struct job *j)
{
    return j->attempt.number != 0 && !j->attempt.gone;
}

/* Intents */

static bool is_of(const struct event *pending, enum intent intent, uint32_t attempt)
{
    return pending->intended.intent == intent && pending->attempt == attempt;
}

static void pending_drop(struct job *j, enum intent intent, uint32_t attempt)
{
    for (size_t i = j->pending.n; i-- > 0;)
        if (is_of(&j->pending.v[i], intent, attempt))
            VEC_REMOVE(&j->pending, i);
}

static void pending_add(struct job *j, const struct event *e)
{
    if (j->pending.n == PENDING_MAX)
        VEC_REMOVE(&j->pending, 0);
    *VEC_PUSH(&j->pending) = *e;
}

static void pending_drop_all_starts(struct job *j)
{
    for (size_t i = j->pending.n; i-- > 0;)
        if (j->pending.v[i].intended.intent == INTENT_START)
            VEC_REMOVE(&j->pending, i);
}

/* Inputs */

static bool apply_policy(struct model *m, struct job *j, const struct event *e)
{
    if (policy_check(&e->policy, NULL) < 0)
        return false;
    if (j) {
        j->policy = e->policy;
        j->has_policy = true;
    } else {
        m->policy = e->policy;
    }
    return true;
}

static bool apply_seen(struct model *m, struct job *j, const struct event *e)
{
    if (j->state == JOB_ENDED)
        job_enter(j, JOB_NEW);
    else if (j->state != JOB_NEW)
        return false;
    attempt_reset(&j->attempt);
    timing_next_attempt(&j->timing);
    ledger_init(&j->ledger);
    j->pending.n = 0;
    j->requested = j->start_failed = j->start_unknown = false;
    j->start_refused = j->start_final = false;
    j->starts_failed = 0;
    j->nodes = e->seen.nodes;
    j->gpus = e->seen.gpus;
    j->n_devices = e->seen.n_devices;
    memcpy(j->devices, e->seen.devices, sizeof(j->devices));
    j->n_without = 0;
    memset(j->without, 0, sizeof(j->without));
    j->seen_at = m->now;
    sched_seen(j, &e->seen);
    return true;
}

/* Before the first attempt of a journal: nothing has been learned yet. */
static bool apply_learned(struct model *m, struct job *j, const struct event *e)
{
    if (j->state != JOB_NEW)
        return false;
    timing_take(&j->timing, &e->learned);
    return true;
}

/* It was let go while it ran, and still runs: from now on it is watched again. */
static bool is_same_life(const struct job *j, uint32_t attempt)
{
    return attempt > 0 && attempt == j->attempt.number && !j->attempt.exited && !j->attempt.gone;
}

/* Whatever a scheduler starts is a further attempt; we count those that we started ourselves. */
static bool may_start(const struct job *j, uint32_t attempt)
{
    if (j->scheduled)
        return attempt > j->attempt.number || (j->sched.let_go && is_same_life(j, attempt));
    if (j->state == JOB_STARTING)
        return attempt == j->attempt.number + 1;
    return j->state == JOB_NEW && attempt > 0;
}

static bool apply_started(struct model *m, struct job *j, const struct event *e)
{
    if (!fits(j, JOB_RUNNING) || !may_start(j, e->attempt))
        return false;
    if (j->scheduled && j->attempt.number > 0 && e->attempt > j->attempt.number)
        ledger_restart(&j->ledger, &j->attempt.incident, m->now);
    job_enter(j, JOB_RUNNING);
    pending_drop(j, INTENT_START, e->attempt);
    j->starts_failed = 0;
    j->start_failed = j->start_unknown = j->start_refused = j->start_final = false;
    attempt_begin(j, e->attempt, m->now);
    if (j->scheduled)
        sched_attempt_begun(m, j);
    return true;
}

/* What a job prints after we began to kill it tells what the kill did, not why it was needed:
 * then only progress counts (a checkpoint written on SIGTERM is worth having). */
static bool is_evidence(const struct attempt *a)
{
    return a->evidence && !a->hung && !a->crashed;
}

/* Processes that their scheduler has stopped tell nothing by being stopped. */
static bool tells_nothing(const struct job *j, const struct signal *s)
{
    return s->kind == SIGNAL_ACTIVITY && sched_is_suspended(j);
}

static bool apply_signal(struct model *m, struct job *j, const struct event *e)
{
    if (!job_hears(j, e->attempt))
        return false;
    if (tells_nothing(j, &e->signal))
        return true;
    if (is_evidence(&j->attempt))
        evidence_add(j->attempt.evidence, &e->signal);
    attempt_observe(j, &e->signal, m->now);
    return true;
}

/* Of a job that a scheduler ended, nobody knows what its processes would have said. */
static bool exit_is_known(const struct exit_fact *x)
{
    return x->code >= 0 || x->signal > 0;
}

static bool apply_exited(struct model *m, struct job *j, const struct event *e)
{
    struct attempt *a = &j->attempt;
    struct signal s = signal_make(SIGNAL_EXIT, PROVENANCE_AGENT);

    if (!is_attempt(j, e) || a->exited || !has_processes(j))
        return false;
    a->exited = true;
    a->exited_at = m->now;
    a->exit = e->exited;
    s.exit = e->exited;
    if (is_evidence(a) && exit_is_known(&e->exited))
        evidence_add(a->evidence, &s);
    if (j->state == JOB_RUNNING && a->exit.code == 0 && a->exit.signal == 0) {
        a->interrupted_at = m->now;
        job_enter(j, JOB_ENDING);
    }
    return true;
}

static void note_gone(struct job *j, usec_t now)
{
    j->attempt.gone = true;
    j->attempt.gone_at = now;
    j->attempt.kill_due_again = false;
    pending_drop(j, INTENT_KILL, j->attempt.number);
    pending_drop(j, INTENT_INSPECT, j->attempt.number);
}

static bool apply_gone(struct model *m, struct job *j, const struct event *e)
{
    if (!is_attempt(j, e)) { /* a stray copy that was to be killed */
        pending_drop(j, INTENT_KILL, e->attempt);
        return false;
    }
    if (!has_processes(j))
        return false;
    note_gone(j, m->now);
    return true;
}

/* Of a scheduler's job that is asked for when it seems to end. Where it then went on, the answer
 * may come late, and says nothing about the lines that will be the last. */
static bool apply_drained(struct model *m, struct job *j, const struct event *e)
{
    if (!is_attempt(j, e) || j->attempt.drained || (j->scheduled && j->state == JOB_RUNNING))
        return false;
    j->attempt.drained = true;
    return true;
}

/* Of what runs, the lines show that it lives, and of what has ended, the last are awaited. */
static bool apply_unread(struct model *m, struct job *j, const struct event *e)
{
    if (!is_attempt(j, e) || (j->state != JOB_RUNNING && j->state != JOB_ENDING))
        return false;
    j->attempt.unread = true;
    j->attempt.unread_at = m->now;
    return true;
}

static bool apply_read(struct model *m, struct job *j, const struct event *e)
{
    if (!is_attempt(j, e) || !j->attempt.unread)
        return false;
    j->attempt.unread = false;
    attempt_counts_anew(&j->attempt, m->now);
    return true;
}

/* Also of what is judged: it may go on, and be judged again. One that nobody can read is told for
 * people alone. */
static bool apply_log_named(struct model *m, struct job *j, const struct event *e)
{
    if (e->log.trouble[0])
        return true;
    return job_hears(j, e->attempt) && log_names_add(&j->attempt.logs, &e->log);
}

static bool apply_tick(struct model *m, struct job *j, const struct event *e)
{
    return true;
}

static void note_failed_intent(struct job *j, const struct event *intent,
                               const struct result_facts *r)
{
    switch (intent->intended.intent) {
    case INTENT_START:
        STR_COPY(j->start_detail, r->detail);
        j->start_failed = true;
        j->start_unknown = r->outcome == OUTCOME_UNKNOWN;
        j->starts_failed++;
        break;
    case INTENT_KILL:
        j->attempt.kill_due_again = has_processes(j) && intent->attempt == j->attempt.number;
        break;
    case INTENT_INSPECT: /* evidence that cannot be had is no reason to wait */
    case INTENT_REQUEUE:
    case INTENT_AMEND:
    case INTENT_CANCEL:
    case INTENT_ARM:
    case INTENT_DISARM:
    case INTENT_FENCE:
    case INTENT_GUARD:
    case INTENT_RELEASE:
    case INTENT_RESERVE:
    case INTENT_UNRESERVE:
    case INTENT_YIELD:
    case INTENT_MEND:
    case INTENT_HOLD:
    case INTENT_DRAIN:
    case INTENT_UNDRAIN:
    case INTENT_CHECK_NODE:
    case INTENT_MAX:
    case INTENT_INVALID:
        break;
    }
}

static bool apply_result(struct model *m, struct job *j, const struct event *e)
{
    for (size_t i = 0; i < j->pending.n; i++) {
        if (j->pending.v[i].seq != e->result.intent)
            continue;
        if (j->scheduled)
            sched_result(m, j, &j->pending.v[i], &e->result);
        else if (e->result.outcome != OUTCOME_DONE)
            note_failed_intent(j, &j->pending.v[i], &e->result);
        VEC_REMOVE(&j->pending, i);
        return true;
    }
    return false;
}

static bool apply_interrupt(struct job *j, const struct request_facts *r)
{
    if (j->state == JOB_ENDED)
        return false;
    j->requested = true;
    j->request_signal = r->signal;
    return true;
}

static bool has_expired(const struct model *m, const struct job *j)
{
    usec_t life = m->brakes.proposal_life;

    return life > 0 && m->now >= j->attempt.decided_at + life;
}

/* Only of the decision that stands, and in time: later it is not what was looked at any more. */
static bool apply_answer(const struct model *m, struct job *j, const struct request_facts *r)
{
    if (!j->scheduled || j->state != JOB_DECIDED || r->of != j->sched.decision || has_expired(m, j))
        return false;
    j->sched.approved = r->request == REQUEST_APPROVE;
    j->sched.rejected = r->request == REQUEST_REJECT;
    j->sched.answer.of = r->of;
    j->sched.answer.approved = j->sched.approved;
    j->sched.answer.at = m->now;
    STR_COPY(j->sched.answer.who, r->who);
    return true;
}

static bool apply_operator(struct model *m, struct job *j, const struct event *e)
{
    switch (e->request.request) {
    case REQUEST_INTERRUPT:
        return j && apply_interrupt(j, &e->request);
    case REQUEST_APPROVE:
    case REQUEST_REJECT:
        return j && apply_answer(m, j, &e->request);
    case REQUEST_FREEZE:
    case REQUEST_THAW: /* of all jobs: see apply_freeze() */
    case REQUEST_RESUME:
    case REQUEST_REARM: /* of nodes: see nodes_apply() */
    case REQUEST_MAX:
    case REQUEST_INVALID:
        break;
    }
    return false;
}

static bool apply_look(struct model *m, struct job *j, const struct event *e)
{
    return sched_look(m, j, &e->look);
}

/* Of all jobs, even if there are none yet. */
static bool apply_freeze(struct model *m, const struct event *e)
{
    m->frozen = e->request.request == REQUEST_FREEZE;
    return true;
}

static bool is_freeze(const struct event *e)
{
    return e->kind == EVENT_OPERATOR && e->job[0] == '\0' &&
           (e->request.request == REQUEST_FREEZE || e->request.request == REQUEST_THAW);
}

static bool apply_launch_failed(struct model *m, struct job *j, const struct event *e)
{
    return sched_launch_failed(j, e);
}

static bool apply_mode(struct model *m, struct job *j, const struct event *e)
{
    sched_mode(j, &e->mode);
    return true;
}

static bool apply_fenced(struct model *m, struct job *j, const struct event *e)
{
    return sched_fenced(j, &e->fenced);
}

static bool apply_brakes(struct model *m, struct job *j, const struct event *e)
{
    m->brakes = e->brakes;
    return true;
}

static bool apply_lost(struct model *m, struct job *j, const struct event *e)
{
    if (j->state == JOB_ENDED)
        return false;
    j->attempt.lost = j->attempt.drained = true;
    if (has_processes(j))
        note_gone(j, m->now);
    return true;
}

/* Derived events */

/* A hang that was concluded from CPU time without I/O may have been work of which nothing shows,
 * as a silent evaluation. Next time such a silence may last longer; a true hang is still found. */
static void learn_from_hang(struct job *j, const struct finding_facts *f)
{
    const struct streaks *s = &j->attempt.streaks;

    if (f->phase == PHASE_STEADY && s->spinning > s->idle && s->stopped == 0 && s->blocked == 0)
        timing_add_gap(&j->timing, f->silent);
}

/* What was taken for the end was none, and nothing has been done about it. What its lines said so
 * far has gone into the verdict that is void now. */
static void resume(struct job *j)
{
    struct attempt *a = &j->attempt;

    job_enter(j, JOB_RUNNING);
    a->hung = a->crashed = a->drained = a->unread = false;
    a->interrupted_at = USEC_NEVER;
    a->decision = (struct decision_facts){.action = ACTION_NONE};
    a->evidence = evidence_new();
}

static bool apply_finding(struct model *m, struct job *j, const struct event *e)
{
    static const enum suspicion next[FINDING_MAX] = {
        [FINDING_HANG_SUSPECTED] = SUSPICION_RAISED,
        [FINDING_HANG_EXTENDED] = SUSPICION_EXTENDED,
        [FINDING_HANG_UNPROVEN] = SUSPICION_UNPROVEN,
    };
    struct attempt *a = &j->attempt;

    if (!is_attempt(j, e))
        return false;
    if (e->finding.finding == FINDING_RECOVERED && sched_has_recovered(j))
        resume(j);
    else if (j->state != JOB_RUNNING)
        return false;
    switch (e->finding.finding) {
    case FINDING_HANG_SUSPECTED:
    case FINDING_HANG_EXTENDED:
    case FINDING_HANG_UNPROVEN:
        a->suspicion = next[e->finding.finding];
        break;
    case FINDING_HANG:
        a->hung = true;
        learn_from_hang(j, &e->finding);
        break;
    case FINDING_CRASH:
        if (a->exited || a->gone)
            a->end_found = true;
        else
            a->crashed = true;
        break;
    case FINDING_RECOVERED:
        a->recoveries += a->root_at != USEC_NEVER;
        a->root_at = USEC_NEVER;
        a->suspicion = SUSPICION_NONE;
        a->progressed = a->inspected = false;
        break;
    case FINDING_MAX:
    case FINDING_INVALID:
        return false;
    }
    STR_COPY(a->found, e->finding.why);
    return true;
}

static bool apply_interrupted(struct model *m, struct job *j, const struct event *e)
{
    if (!is_attempt(j, e) || !fits(j, JOB_ENDING))
        return false;
    job_enter(j, JOB_ENDING);
    j->attempt.interrupted_at = m->now;
    sched_interrupted(m, j);
    return true;
}

static bool apply_verdict(struct model *m, struct job *j, const struct event *e)
{
    struct attempt_account account;

    if (!is_attempt(j, e) || !fits(j, JOB_JUDGED))
        return false;
    account = attempt_account(m, j);
    job_enter(j, JOB_JUDGED);
    j->attempt.incident = e->incident;
    j->attempt.evidence = evidence_free(j->attempt.evidence);
    ledger_judge(&j->ledger, policy_of(m, j), &e->incident, &account);
    lemons_judged(m, j);
    return true;
}

static bool apply_decision(struct model *m, struct job *j, const struct event *e)
{
    enum job_state before = j->state;

    if (!fits(j, JOB_DECIDED))
        return false;
    sched_decided(m, j, e, before);
    job_enter(j, JOB_DECIDED);
    j->attempt.decision = e->decision;
    j->attempt.decided_at = m->now;
    j->n_without = e->decision.n_without;
    memcpy(j->without, e->decision.without, sizeof(j->without));
    j->start_failed = false;
    pending_drop_all_starts(j);
    return true;
}

static bool apply_kill(struct model *m, struct job *j, const struct event *e)
{
    struct attempt *a = &j->attempt;

    if (is_attempt(j, e)) {
        a->kills++;
        a->kill_due_again = false;
        if (a->killed_at == USEC_NEVER)
            a->killed_at = m->now;
    }
    pending_add(j, e);
    return true;
}

/* Of the scheduler. A next attempt is on its way from the first such wish on. */
static bool apply_asked(struct model *m, struct job *j, const struct event *e)
{
    enum intent intent = e->intended.intent;

    if (!sched_intent(m, j, e))
        return false;
    if (j->state == JOB_DECIDED && action_restarts(j->attempt.decision.action) &&
        (intent == INTENT_REQUEUE || intent == INTENT_AMEND))
        job_enter(j, JOB_STARTING);
    pending_add(j, e);
    return true;
}

static bool apply_intent(struct model *m, struct job *j, const struct event *e)
{
    switch (e->intended.intent) {
    case INTENT_INSPECT:
        j->attempt.inspected = true;
        pending_add(j, e);
        return true;
    case INTENT_KILL:
        return apply_kill(m, j, e);
    case INTENT_START:
        if (!fits(j, JOB_STARTING) || !j->attempt.gone) /* never two copies */
            return false;
        job_enter(j, JOB_STARTING);
        ledger_restart(&j->ledger, &j->attempt.incident, m->now);
        pending_add(j, e);
        return true;
    case INTENT_REQUEUE:
    case INTENT_AMEND:
    case INTENT_CANCEL:
    case INTENT_ARM:
    case INTENT_DISARM:
    case INTENT_FENCE:
    case INTENT_GUARD:
    case INTENT_RELEASE:
    case INTENT_RESERVE:
    case INTENT_UNRESERVE:
    case INTENT_YIELD:
    case INTENT_MEND:
    case INTENT_HOLD:
        return apply_asked(m, j, e);
    case INTENT_DRAIN: /* of no job: see nodes_apply() */
    case INTENT_UNDRAIN:
    case INTENT_CHECK_NODE:
    case INTENT_MAX:
    case INTENT_INVALID:
        break;
    }
    return false;
}

/* Without an action it is only let go, wherever it was. */
static bool apply_ended(struct model *m, struct job *j, const struct event *e)
{
    bool let_go = e->ended.action == ACTION_NONE;
    bool decided = j->state == JOB_DECIDED || j->state == JOB_STARTING;

    if (!fits(j, JOB_ENDED) || (let_go ? !j->scheduled : !decided))
        return false;
    job_enter(j, JOB_ENDED);
    j->pending.n = 0;
    log_names_done(&j->attempt.logs);
    j->attempt.evidence = evidence_free(j->attempt.evidence);
    j->sched.let_go = let_go;
    return true;
}

/* What holds in every state, whatever the journal said. */
static void check_job(const struct job *j)
{
    const struct attempt *a = &j->attempt;
    bool gathers = j->state == JOB_RUNNING || j->state == JOB_ENDING;

    assert(j->state >= 0 && j->state < JOB_STATE_MAX);
    assert(j->pending.n <= PENDING_MAX);
    assert(gathers == (a->evidence != NULL));
    assert(!gathers || a->number != 0);
    assert((j->state == JOB_NEW) <= (a->number == 0));
    assert((j->state == JOB_ENDING) <= (a->interrupted_at != USEC_NEVER));
    assert((j->state == JOB_STARTING) <= (a->gone || j->scheduled));
    assert(j->sched.n_kept <= KEPT_OUT_MAX && j->sched.look.n_kept_out <= KEPT_OUT_MAX);
    assert(a->exited == (a->exited_at != USEC_NEVER));
    assert(a->gone == (a->gone_at != USEC_NEVER));
    assert((a->kills > 0) == (a->killed_at != USEC_NEVER));
    assert(a->highest_step >= a->first_step && a->highest_step >= a->last_step);
    assert(j->n_devices <= DEVICES_MAX && j->n_without <= DEVICES_MAX);
    assert(j->ledger.n_failures <= FAILURES_MAX && j->ledger.paid.n <= RECENT_MAX);
}

/* The door */

typedef bool apply_fn(struct model *m, struct job *j, const struct event *e);

static const struct {
    apply_fn *apply;
    /* needs no job; one; "" means all of them; "" means none */
    enum { OF_NONE, OF_JOB, OF_ANY, OF_MAYBE } jobs;
} kinds[EVENT_MAX] = {
    [EVENT_POLICY] = {apply_policy, OF_MAYBE},
    [EVENT_JOB_SEEN] = {apply_seen, OF_JOB},
    [EVENT_ATTEMPT_STARTED] = {apply_started, OF_JOB},
    [EVENT_SIGNAL] = {apply_signal, OF_JOB},
    [EVENT_ATTEMPT_EXITED] = {apply_exited, OF_JOB},
    [EVENT_ATTEMPT_GONE] = {apply_gone, OF_JOB},
    [EVENT_LOGS_DRAINED] = {apply_drained, OF_JOB},
    [EVENT_TICK] = {apply_tick, OF_NONE},
    [EVENT_RESULT] = {apply_result, OF_JOB},
    [EVENT_OPERATOR] = {apply_operator, OF_ANY},
    [EVENT_LOOK] = {apply_look, OF_JOB},
    [EVENT_LAUNCH_FAILED] = {apply_launch_failed, OF_JOB},
    [EVENT_MODE] = {apply_mode, OF_JOB},
    [EVENT_BRAKES] = {apply_brakes, OF_NONE},
    [EVENT_FENCED] = {apply_fenced, OF_JOB},
    [EVENT_LOGS_UNREAD] = {apply_unread, OF_JOB},
    [EVENT_LOG_NAMED] = {apply_log_named, OF_JOB},
    [EVENT_LOGS_READ] = {apply_read, OF_JOB},
    [EVENT_RUNNER_LOST] = {apply_lost, OF_ANY},
    [EVENT_LEARNED] = {apply_learned, OF_JOB},
    [EVENT_FINDING] = {apply_finding, OF_JOB},
    [EVENT_INTERRUPTED] = {apply_interrupted, OF_JOB},
    [EVENT_VERDICT] = {apply_verdict, OF_JOB},
    [EVENT_DECISION] = {apply_decision, OF_JOB},
    [EVENT_INTENT] = {apply_intent, OF_JOB},
    [EVENT_JOB_ENDED] = {apply_ended, OF_JOB},
};

static bool apply_to_job(struct model *m, struct job *j, const struct event *e)
{
    bool fit = kinds[e->kind].apply(m, j, e);

    j->asked_at = m->now;
    check_job(j);
    return fit;
}

/* A fact of a node is evidence of what runs there, and no output of it. Storage that does not
 * answer is mostly shared, and then no fault of the node that tells of it. */
static void tell_job(struct model *m, struct job *j, const struct node_fact *f)
{
    struct signal s = f->signal;

    STR_COPY(s.who.node, f->node);
    if (s.cause == CAUSE_STORAGE)
        s.blame = BLAME_NONE;
    if (is_evidence(&j->attempt))
        evidence_add(j->attempt.evidence, &s);
    attempt_observe_fact(&j->attempt, &s, m->now);
    j->asked_at = m->now;
    check_job(j);
}

static bool apply_of_nodes(struct model *m, const struct event *e)
{
    bool fit = nodes_apply(m, e);

    if (!fit || e->kind != EVENT_NODE_FACT)
        return fit;
    VEC_FOREACH (&m->jobs, j)
        if (nodes_fact_concerns(m, &e->fact, *j))
            tell_job(m, *j, &e->fact);
    return true;
}

static bool apply_to_jobs(struct model *m, const struct event *e)
{
    struct job *j;
    bool any = false;

    if (event_is_of_nodes(e))
        return apply_of_nodes(m, e);
    if (is_freeze(e))
        return apply_freeze(m, e);
    if (kinds[e->kind].jobs == OF_NONE || (kinds[e->kind].jobs == OF_MAYBE && e->job[0] == '\0'))
        return kinds[e->kind].apply(m, NULL, e);
    if (kinds[e->kind].jobs == OF_ANY && e->job[0] == '\0') {
        VEC_FOREACH (&m->jobs, job)
            any |= apply_to_job(m, *job, e);
        return any;
    }
    j = model_job(m, e->job);
    if (!j && e->kind == EVENT_JOB_SEEN && e->job[0] != '\0')
        j = model_add_job(m, e->job);
    return j && apply_to_job(m, j, e);
}

bool model_apply(struct model *m, const struct event *e)
{
    bool fit;

    if (!event_can_be_applied(e)) {
        m->refused++;
        return false;
    }
    if (e->time_us > m->now)
        m->now = e->time_us;
    if (e->seq > m->seq)
        m->seq = e->seq;
    if (e->job[0] == '\0')
        m->nodes.asked_at = m->now;
    if (e->job[0] == '\0' && !event_is_of_nodes(e))
        m->asked_at = m->now;
    fit = e->kind >= 0 && e->kind < EVENT_MAX && apply_to_jobs(m, e);
    m->refused += !fit;
    return fit;
}
