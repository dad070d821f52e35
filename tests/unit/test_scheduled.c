/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs that a scheduler starts: what is asked of it, when, how often, and when not. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core_world.h"

#include "base/str.h"
#include "core/plan/scheduled.h"

#include <signal.h>
#include <string.h>

#define S   USEC_PER_SEC
#define MIN USEC_PER_MIN

/* The world, as the scheduler's side of it */

static struct event of_job(const struct world *w, enum event_kind kind)
{
    struct event e = {.kind = kind};

    STR_COPY(e.job, w->job);
    return e;
}

static void set_mode(struct world *w, enum mode mode)
{
    struct event e = of_job(w, EVENT_MODE);

    e.mode.mode = mode;
    world_feed(w, e);
}

static void set_brakes(struct world *w, struct brakes b)
{
    struct event e = {.kind = EVENT_BRAKES};

    e.brakes = b;
    world_feed(w, e);
}

static void operate(struct world *w, enum request what, uint64_t of)
{
    struct event e = of_job(w, EVENT_OPERATOR);

    if (what == REQUEST_FREEZE || what == REQUEST_THAW)
        e.job[0] = '\0';
    e.request = (struct request_facts){.request = what, .of = of, .signal = SIGTERM};
    world_feed(w, e);
}

static struct look_facts facts_of(enum sched_state state, uint32_t restarts)
{
    struct look_facts l = {.state = state, .restarts = restarts, .requeueable = true, .tasks = 4};

    if (state != SCHED_PENDING)
        STR_COPY(l.nodes, "n[1-4]");
    return l;
}

static void look_at(struct world *w, struct look_facts l)
{
    struct event e = of_job(w, EVENT_LOOK);

    e.look = l;
    world_feed(w, e);
}

static void look(struct world *w, enum sched_state state, uint32_t restarts)
{
    look_at(w, facts_of(state, restarts));
}

static void begin_attempt(struct world *w)
{
    look(w, SCHED_RUNNING, w->attempt);
    world_start(w);
}

static void end_attempt(struct world *w, enum sched_state state, int code)
{
    look(w, state, w->attempt - 1);
    world_die(w, code);
}

static void launch_failed(struct world *w, uint32_t attempt)
{
    struct event e = of_job(w, EVENT_LAUNCH_FAILED);

    e.attempt = attempt;
    e.result.outcome = OUTCOME_FAILED;
    STR_COPY(e.result.detail, "the credential was revoked");
    world_feed(w, e);
}

static int setup_in_mode(void **state, struct job_facts facts, enum mode mode)
{
    struct world *w;

    world_setup(state);
    w = *state;
    facts.scheduled = true;
    STR_COPY(facts.partition, "batch");
    world_seen(w, &facts);
    set_mode(w, mode);
    set_brakes(w, (struct brakes){.early_start = 2 * S,
                                  .exclusion_life = USEC_PER_HOUR,
                                  .proposal_life = 4 * MIN});
    begin_attempt(w);
    world_wait(w, MIN);
    return 0;
}

static int act(void **state)
{
    return setup_in_mode(state, (struct job_facts){0}, MODE_ACT);
}

static int propose(void **state)
{
    return setup_in_mode(state, (struct job_facts){0}, MODE_PROPOSE);
}

static int observe(void **state)
{
    return setup_in_mode(state, (struct job_facts){0}, MODE_OBSERVE);
}

static int interactive(void **state)
{
    return setup_in_mode(state, (struct job_facts){.interactive = true}, MODE_ACT);
}

/* The attempt fails, by the network, at once. */
static void fail_job(struct world *w)
{
    world_root(w, "net.link", CAUSE_NETWORK);
    end_attempt(w, SCHED_FAILED, 1);
}

static void fail_with_node(struct world *w, const char *node)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL);

    s.role = ROLE_ROOT;
    s.cause = CAUSE_NODE_HARDWARE;
    s.confidence = 95;
    s.advice = ADVICE_RESTART_EXCLUDING;
    STR_COPY(s.signature, "node.mce");
    STR_COPY(s.who.node, node);
    world_signal(w, s);
    end_attempt(w, SCHED_FAILED, 1);
}

static int asked(const struct world *w, enum intent intent)
{
    return world_count_intents(w, intent);
}

static int asked_anything(const struct world *w)
{
    return world_count(w, EVENT_INTENT);
}

static void answer(struct world *w, enum intent intent, enum outcome outcome)
{
    world_result(w, world_intent(w, intent)->seq, outcome, "as the test wants");
}

/* The requeue is done, and the job waits. */
static void grant_requeue(struct world *w, usec_t begin)
{
    struct look_facts l = facts_of(SCHED_PENDING, w->attempt);

    answer(w, INTENT_REQUEUE, OUTCOME_DONE);
    l.begin = begin;
    look_at(w, l);
}

static const struct sched *sched_of(const struct world *w)
{
    return &world_job(w)->sched;
}

static uint64_t decision_seq(const struct world *w)
{
    return world_last(w, EVENT_DECISION)->seq;
}

/* Modes */

static void act_requeues_once(void **state)
{
    struct world *w = *state;
    const struct event *e;

    fail_job(w);
    e = world_intent(w, INTENT_REQUEUE);
    assert_non_null(e);
    assert_int_equal(e->attempt, 1);
    assert_int_equal(e->intended.restarts, 0);
    assert_int_equal(world_job(w)->state, JOB_STARTING);
    world_wait(w, USEC_PER_HOUR); /* no answer, no look */
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    grant_requeue(w, 0);
    begin_attempt(w);
    world_wait(w, USEC_PER_HOUR);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    assert_int_equal(world_job(w)->ledger.restarts, 1);
}

static void observe_asks_for_nothing(void **state)
{
    struct world *w = *state;
    struct look_facts l;

    l = facts_of(SCHED_RUNNING, 0);
    l.requeueable = false; /* not even armed */
    look_at(w, l);
    fail_with_node(w, "n2");
    assert_true(action_restarts(world_decision(w)->action));
    assert_int_equal(world_decision(w)->mode, MODE_OBSERVE);
    look(w, SCHED_PENDING, 1);
    world_wait(w, 10 * MIN);
    assert_int_equal(asked_anything(w), 0);
}

static void what_was_only_observed_is_not_caught_up_with(void **state)
{
    struct world *w = *state;

    fail_job(w);
    set_mode(w, MODE_ACT);
    look(w, SCHED_FAILED, 0);
    world_wait(w, MIN);
    operate(w, REQUEST_APPROVE, decision_seq(w));
    assert_int_equal(asked_anything(w), 0);
    look(w, SCHED_RUNNING, 1); /* a person did it; from now on it is ours */
    world_start(w);
    world_step(w, 1);
    fail_job(w);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

static void less_may_be_done_at_once(void **state)
{
    struct world *w = *state;

    set_mode(w, MODE_OBSERVE);
    fail_job(w);
    assert_int_equal(asked_anything(w), 0);
}

static void a_mode_that_falls_stops_what_was_begun(void **state)
{
    struct world *w = *state;

    fail_with_node(w, "n2");
    set_mode(w, MODE_OBSERVE);
    grant_requeue(w, 0);
    assert_int_equal(asked(w, INTENT_AMEND), 0);
}

static void a_proposal_waits_for_its_approval(void **state)
{
    struct world *w = *state;

    fail_job(w);
    world_wait(w, MIN);
    assert_int_equal(asked_anything(w), 0);
    operate(w, REQUEST_APPROVE, decision_seq(w) + 1); /* another one */
    assert_int_equal(asked_anything(w), 0);
    operate(w, REQUEST_APPROVE, decision_seq(w));
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

static void a_proposal_expires(void **state)
{
    struct world *w = *state;

    fail_job(w);
    world_wait(w, 4 * MIN);
    operate(w, REQUEST_APPROVE, decision_seq(w));
    assert_false(sched_of(w)->approved);
    assert_int_equal(asked_anything(w), 0);
}

/* ... but not what was approved in time: the second step may come later. */
static void an_approval_lasts(void **state)
{
    struct world *w = *state;

    fail_with_node(w, "n2");
    world_wait(w, 4 * MIN - S);
    operate(w, REQUEST_APPROVE, decision_seq(w));
    world_wait(w, 10 * S);
    grant_requeue(w, w->now + 120 * S);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.n_nodes, 1);
}

static void an_approval_covers_a_failed_launch(void **state)
{
    struct world *w = *state;

    fail_job(w);
    operate(w, REQUEST_APPROVE, decision_seq(w));
    grant_requeue(w, 0);
    look(w, SCHED_FAILED, 1);
    launch_failed(w, 2);
    assert_int_equal(asked(w, INTENT_REQUEUE), 2);
}

static void a_proposal_is_checked_again_when_approved(void **state)
{
    struct world *w = *state;

    fail_job(w);
    look(w, SCHED_PENDING, 1); /* its user was faster */
    operate(w, REQUEST_APPROVE, decision_seq(w));
    assert_int_equal(asked(w, INTENT_REQUEUE), 0);
}

static void what_is_rejected_is_not_done(void **state)
{
    struct world *w = *state;

    fail_job(w);
    operate(w, REQUEST_REJECT, decision_seq(w));
    assert_int_equal(asked_anything(w), 0);
    set_mode(w, MODE_ACT);
    look(w, SCHED_FAILED, 0);
    assert_int_equal(asked_anything(w), 0);
}

static void nothing_is_done_while_frozen(void **state)
{
    struct world *w = *state;

    operate(w, REQUEST_FREEZE, 0);
    fail_job(w);
    world_wait(w, MIN);
    assert_int_equal(asked_anything(w), 0);
    operate(w, REQUEST_THAW, 0);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

static void frozen_before_there_is_any_job(void **state)
{
    _cleanup_(core_freep) struct core *c = core_new();
    struct core_output out = {0};
    struct event e = {.kind = EVENT_OPERATOR, .seq = 1};

    e.request.request = REQUEST_FREEZE;
    core_step(c, &e, &out);
    assert_true(core_model(c)->frozen);
    core_output_done(&out);
}

static void interactive_jobs_are_only_observed(void **state)
{
    struct world *w = *state;
    char why[128];

    fail_job(w);
    operate(w, REQUEST_APPROVE, decision_seq(w));
    assert_true(action_restarts(world_decision(w)->action));
    assert_int_equal(asked_anything(w), 0);
    assert_false(plan_sched_may_act(core_model(w->core), world_job(w), why, sizeof(why)));
    assert_non_null(strstr(why, "interactive"));
}

static void beside_a_successor_it_waits_for_approval(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_FAILED, 0);

    l.successor = true;
    look_at(w, l);
    world_root(w, "net.link", CAUSE_NETWORK);
    world_die(w, 1);
    assert_int_equal(asked_anything(w), 0);
    operate(w, REQUEST_APPROVE, decision_seq(w));
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

/* Requeue */

static void a_look_that_is_older_than_the_answer_proves_nothing(void **state)
{
    struct world *w = *state;

    fail_job(w);
    look(w, SCHED_FAILED, 0); /* on its way when the requeue was asked for */
    answer(w, INTENT_REQUEUE, OUTCOME_DONE);
    look(w, SCHED_FAILED, 0);
    world_wait(w, 20 * S);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    look(w, SCHED_PENDING, 1);
    world_wait(w, MIN);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

/* unknown: and it was done, only later */
static void what_was_done_late_is_not_repeated(void **state)
{
    struct world *w = *state;

    fail_job(w);
    answer(w, INTENT_REQUEUE, OUTCOME_UNKNOWN);
    world_wait(w, 10 * MIN); /* slurmctld is down: no look */
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    look(w, SCHED_PENDING, 1);
    world_wait(w, 10 * MIN);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

static void what_was_not_done_is_repeated_a_few_times(void **state)
{
    struct world *w = *state;

    fail_job(w);
    for (int n = 1; n <= 4; n++) {
        assert_int_equal(asked(w, INTENT_REQUEUE), n);
        answer(w, INTENT_REQUEUE, OUTCOME_UNKNOWN);
        look(w, SCHED_FAILED, 0);
        world_wait(w, MIN);
    }
    assert_int_equal(asked(w, INTENT_REQUEUE), 4);
    assert_string_equal(world_decision(w)->rule, "start-failed");
    assert_int_equal(world_decision(w)->action, ACTION_STOP);
    assert_int_equal(world_job(w)->ledger.restarts, 0);
}

static void a_refusal_is_repeated_later(void **state)
{
    struct world *w = *state;

    fail_job(w);
    for (int n = 1; n <= 4; n++) {
        assert_int_equal(asked(w, INTENT_REQUEUE), n);
        answer(w, INTENT_REQUEUE, OUTCOME_FAILED);
        look(w, SCHED_FAILED, 0);
        assert_int_equal(asked(w, INTENT_REQUEUE), n); /* not at once */
        world_wait(w, 30 * MIN);
    }
    assert_int_equal(world_decision(w)->action, ACTION_STOP);
    assert_string_equal(world_decision(w)->rule, "start-failed");
    assert_non_null(strstr(world_decision(w)->why, "as the test wants"));
    assert_int_equal(world_job(w)->state, JOB_ENDED);
}

static void void_is_no_refusal(void **state)
{
    struct world *w = *state;

    fail_job(w);
    answer(w, INTENT_REQUEUE, OUTCOME_VOID);
    world_wait(w, MIN);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1); /* a look first */
    look(w, SCHED_FAILED, 0);
    assert_int_equal(asked(w, INTENT_REQUEUE), 2);
    assert_int_equal(world_count(w, EVENT_DECISION), 1);
    answer(w, INTENT_REQUEUE, OUTCOME_VOID);
    look(w, SCHED_PENDING, 1); /* so that was the reason */
    assert_int_equal(asked(w, INTENT_REQUEUE), 2);
}

static void void_has_a_limit(void **state)
{
    struct world *w = *state;

    fail_job(w);
    for (int n = 0; n < 200 && world_decision(w)->action != ACTION_STOP; n++) {
        if (sched_of(w)->requeue_asked)
            answer(w, INTENT_REQUEUE, OUTCOME_VOID);
        look(w, SCHED_FAILED, 0);
        world_wait(w, 30 * MIN);
    }
    assert_string_equal(world_decision(w)->rule, "start-failed");
}

static void what_cannot_be_done_while_completing_is_done_later(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_FAILED, 0);

    l.completing = true;
    look_at(w, l);
    world_root(w, "net.link", CAUSE_NETWORK);
    world_die(w, 1);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    answer(w, INTENT_REQUEUE, OUTCOME_FAILED);
    look_at(w, l);
    world_wait(w, 5 * MIN);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    look(w, SCHED_FAILED, 0);
    assert_int_equal(asked(w, INTENT_REQUEUE), 2);
    assert_int_equal(world_count(w, EVENT_DECISION), 1);
}

static void its_own_requeue_is_noticed(void **state)
{
    struct world *w = *state;

    world_root(w, "node.lost", CAUSE_NODE_FAILURE);
    look(w, SCHED_PENDING, 1);
    world_die(w, 1);
    assert_true(action_restarts(world_decision(w)->action));
    assert_int_equal(asked(w, INTENT_REQUEUE), 0);
    begin_attempt(w);
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
    assert_int_equal(asked(w, INTENT_REQUEUE), 0);
    assert_int_equal(world_job(w)->ledger.restarts, 1);
}

static void a_completed_job_is_not_started_again(void **state)
{
    struct world *w = *state;

    operate(w, REQUEST_FREEZE, 0);
    fail_job(w);
    look(w, SCHED_COMPLETED, 0); /* what looked dead got there */
    assert_int_equal(world_decision(w)->action, ACTION_COMPLETE);
    operate(w, REQUEST_THAW, 0);
    assert_int_equal(asked_anything(w), 0);
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.action, ACTION_COMPLETE);
}

static void late_answers_to_old_wishes_change_nothing(void **state)
{
    struct world *w = *state;
    uint64_t old;

    fail_job(w);
    old = world_intent(w, INTENT_REQUEUE)->seq;
    look(w, SCHED_PENDING, 1);
    begin_attempt(w);
    world_result(w, old, OUTCOME_FAILED, "late");
    assert_false(world_job(w)->start_failed);
    assert_int_equal(world_job(w)->pending.n, 0);
}

/* Amendment */

static void exclusions_and_start_time_go_together(void **state)
{
    struct world *w = *state;
    const struct intent_facts *f;
    struct look_facts l;

    fail_with_node(w, "n2");
    assert_int_equal(world_decision(w)->action, ACTION_RESTART_EXCLUDING);
    grant_requeue(w, w->now + 121 * S);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    assert_int_equal(world_intent(w, INTENT_AMEND)->attempt, 2);
    f = &world_intent(w, INTENT_AMEND)->intended;
    assert_int_equal(f->n_nodes, 1);
    assert_string_equal(f->nodes[0], "n2");
    assert_int_equal(f->restarts, 1);
    assert_int_equal(f->not_before, sched_of(w)->pending_since + 2 * S);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    l = facts_of(SCHED_PENDING, 1);
    l.begin = f->not_before;
    l.n_kept_out = 1;
    STR_COPY(l.kept_out[0], "n2");
    look_at(w, l);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    l.begin += USEC_PER_DAY; /* its user has another idea now */
    l.n_kept_out = 0;
    look_at(w, l);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
}

static void a_start_is_never_too_early(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_PENDING, 1);

    fail_with_node(w, "n2");
    answer(w, INTENT_REQUEUE, OUTCOME_DONE);
    l.completing = true;
    look_at(w, l);
    assert_int_equal(asked(w, INTENT_AMEND), 0); /* would not stick */
    world_wait(w, 7 * S + 1);
    look(w, SCHED_PENDING, 1);
    assert_true(world_intent(w, INTENT_AMEND)->intended.not_before >= w->now + 2 * S);
    assert_true(world_intent(w, INTENT_AMEND)->intended.not_before < w->now + 3 * S);
}

static void a_backoff_is_a_later_start(void **state)
{
    struct world *w = *state;
    usec_t decided;

    fail_job(w);
    decided = w->now;
    assert_int_equal(world_decision(w)->delay, 30 * S);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1); /* the requeue is not put off */
    grant_requeue(w, w->now + 121 * S);
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.not_before, decided + 30 * S);
}

static void a_held_job_is_left_alone(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_PENDING, 1);

    fail_with_node(w, "n2");
    answer(w, INTENT_REQUEUE, OUTCOME_DONE);
    l.held = true;
    look_at(w, l);
    world_wait(w, MIN);
    assert_int_equal(asked(w, INTENT_AMEND), 0);
    look(w, SCHED_PENDING, 1);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
}

static struct look_facts constrained_look(void)
{
    struct look_facts l = facts_of(SCHED_PENDING, 1);

    l.constrained = true;
    l.n_kept_out = 1;
    STR_COPY(l.kept_out[0], "n2");
    return l;
}

static void exclusions_that_leave_too_little_are_taken_back(void **state)
{
    struct world *w = *state;

    fail_with_node(w, "n2");
    grant_requeue(w, 0);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    look_at(w, constrained_look());
    assert_int_equal(asked(w, INTENT_AMEND), 2);
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.n_nodes, 0);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    look(w, SCHED_PENDING, 1);
    for (int i = asked(w, INTENT_AMEND); i < 5; i++) { /* not put in again */
        look(w, SCHED_PENDING, 1);
        assert_int_equal(world_intent(w, INTENT_AMEND)->intended.n_nodes, 0);
    }
}

/* Otherwise it would wait for ever, and because of us. */
static void exclusions_are_taken_back_until_they_are_gone(void **state)
{
    struct world *w = *state;

    fail_with_node(w, "n2");
    grant_requeue(w, 0);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    set_mode(w, MODE_OBSERVE); /* even so */
    for (int n = 2; n < 20; n++) {
        look_at(w, constrained_look());
        world_wait(w, 6 * MIN);
        assert_int_equal(asked(w, INTENT_AMEND), n);
        answer(w, INTENT_AMEND, n % 2 ? OUTCOME_FAILED : OUTCOME_UNKNOWN);
    }
}

static void nodes_that_are_refused_are_left_out(void **state)
{
    struct world *w = *state;

    fail_with_node(w, "n2");
    grant_requeue(w, w->now + 121 * S);
    answer(w, INTENT_AMEND, OUTCOME_FAILED);
    look(w, SCHED_PENDING, 1);
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.n_nodes, 1);
    answer(w, INTENT_AMEND, OUTCOME_FAILED);
    look_at(w,
            (struct look_facts){.state = SCHED_PENDING, .restarts = 1, .begin = w->now + 100 * S});
    assert_int_equal(asked(w, INTENT_AMEND), 3);
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.n_nodes, 0);
    answer(w, INTENT_AMEND, OUTCOME_FAILED);
    look(w, SCHED_PENDING, 1);
    assert_int_equal(asked(w, INTENT_AMEND), 3);
}

static void a_lost_node_keeps_the_delay(void **state)
{
    struct world *w = *state;
    usec_t begin;

    world_root(w, "some.text", CAUSE_USER_CODE); /* whatever the log says */
    world_step(w, 1);
    world_root(w, "some.text", CAUSE_NETWORK);
    end_attempt(w, SCHED_NODE_FAIL, 1);
    begin = w->now + 121 * S;
    begin -= begin % S;
    grant_requeue(w, begin);
    world_wait(w, 5 * MIN);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    assert_int_equal(asked(w, INTENT_AMEND), 0);
}

static void a_start_time_of_others_is_theirs(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_PENDING, 1);

    set_brakes(w, (struct brakes){.early_start = 2 * S,
                                  .exclusion_life = USEC_PER_HOUR,
                                  .actions_per_hour = 1});
    fail_with_node(w, "n2");
    answer(w, INTENT_REQUEUE, OUTCOME_FAILED);
    l.begin = w->now + USEC_PER_DAY; /* its user has queued it, for tomorrow */
    look_at(w, l);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.not_before, l.begin);
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.n_nodes, 1);
}

/* Launch failures */

static void a_launch_failure_costs_nothing(void **state)
{
    struct world *w = *state;

    fail_job(w);
    grant_requeue(w, 0);
    look(w, SCHED_FAILED, 1);
    launch_failed(w, 2);
    launch_failed(w, 2); /* the same is told twice */
    assert_int_equal(world_job(w)->starts_failed, 1);
    assert_int_equal(world_job(w)->ledger.restarts, 0);
    assert_string_equal(world_decision(w)->rule, "start-failed");
    assert_int_equal(asked(w, INTENT_REQUEUE), 2);
    assert_int_equal(world_intent(w, INTENT_REQUEUE)->intended.restarts, 1);
    launch_failed(w, 2);
    assert_int_equal(world_count(w, EVENT_DECISION), 2);
    answer(w, INTENT_REQUEUE, OUTCOME_DONE);
    look(w, SCHED_PENDING, 2);
    look(w, SCHED_RUNNING, 2);
    w->attempt = 2;
    world_start(w);
    assert_int_equal(world_job(w)->attempt.number, 3);
    assert_int_equal(world_job(w)->ledger.restarts, 1);
    assert_int_equal(world_job(w)->starts_failed, 0);
}

static void launch_failures_are_bounded(void **state)
{
    struct world *w = *state;
    uint32_t n = 1;

    fail_job(w);
    for (; n < 20 && world_decision(w)->action != ACTION_STOP; n++) {
        answer(w, INTENT_REQUEUE, OUTCOME_DONE);
        look(w, SCHED_PENDING, n);
        look(w, SCHED_FAILED, n);
        launch_failed(w, n + 1);
    }
    assert_int_equal(n, 5);
    assert_string_equal(world_decision(w)->rule, "start-failed");
    assert_int_equal(world_job(w)->state, JOB_ENDED);
}

/* Slurm queued it by itself, before anything was asked for. */
static void the_launch_failure_of_a_foreign_requeue(void **state)
{
    struct world *w = *state;

    operate(w, REQUEST_FREEZE, 0);
    fail_job(w);
    look(w, SCHED_PENDING, 1);
    look(w, SCHED_FAILED, 1);
    launch_failed(w, 2);
    operate(w, REQUEST_THAW, 0);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    assert_int_equal(world_intent(w, INTENT_REQUEUE)->intended.restarts, 1);
}

/* Cancelled */

static void cancel(struct world *w, uint32_t restarts)
{
    look(w, SCHED_CANCELLED, restarts);
    operate(w, REQUEST_INTERRUPT, 0);
}

static void cancelled_while_it_ran(void **state)
{
    struct world *w = *state;

    look(w, SCHED_CANCELLED, 0);
    operate(w, REQUEST_INTERRUPT, 0);
    world_die(w, 143);
    assert_string_equal(world_decision(w)->rule, "requested");
    assert_int_equal(asked_anything(w), 0);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
}

static void cancelled_before_the_requeue(void **state)
{
    struct world *w = *state;

    operate(w, REQUEST_FREEZE, 0);
    fail_job(w);
    cancel(w, 0);
    operate(w, REQUEST_THAW, 0);
    assert_int_equal(asked_anything(w), 0);
    assert_string_equal(world_decision(w)->rule, "requested");
    assert_int_equal(world_job(w)->state, JOB_ENDED);
}

static void cancelled_after_the_requeue(void **state)
{
    struct world *w = *state;

    fail_job(w);
    grant_requeue(w, w->now + 121 * S);
    cancel(w, 1);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    world_wait(w, USEC_PER_HOUR);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    assert_int_equal(asked(w, INTENT_CANCEL), 0);
}

/* The requeue timed out, and is carried out when its user has cancelled the job meanwhile. */
static void cancelled_during_the_requeue(void **state)
{
    struct world *w = *state;

    fail_job(w);
    cancel(w, 0);
    answer(w, INTENT_REQUEUE, OUTCOME_UNKNOWN);
    look(w, SCHED_CANCELLED, 0);
    world_wait(w, MIN);
    assert_int_not_equal(world_job(w)->state, JOB_ENDED); /* it may yet be done */
    assert_int_equal(asked(w, INTENT_CANCEL), 0);
    look(w, SCHED_PENDING, 1);
    assert_int_equal(asked(w, INTENT_CANCEL), 1);
    assert_int_equal(world_intent(w, INTENT_CANCEL)->intended.restarts, 1);
    answer(w, INTENT_CANCEL, OUTCOME_UNKNOWN);
    look(w, SCHED_PENDING, 1);
    assert_int_equal(asked(w, INTENT_CANCEL), 2);
    answer(w, INTENT_CANCEL, OUTCOME_DONE);
    look(w, SCHED_CANCELLED, 1);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
}

static void it_ran_before_that_was_seen(void **state)
{
    struct world *w = *state;

    fail_job(w);
    cancel(w, 0);
    answer(w, INTENT_REQUEUE, OUTCOME_UNKNOWN);
    look(w, SCHED_RUNNING, 1);
    world_start(w);
    assert_int_equal(asked(w, INTENT_CANCEL), 1);
    answer(w, INTENT_CANCEL, OUTCOME_DONE);
    look(w, SCHED_CANCELLED, 1);
    world_die(w, 143);
    assert_string_equal(world_decision(w)->rule, "requested");
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

static void who_brings_a_job_back_wants_it(void **state)
{
    struct world *w = *state;

    cancel(w, 0);
    world_die(w, 143);
    look(w, SCHED_PENDING, 1); /* its user again */
    begin_attempt(w);
    assert_int_equal(asked_anything(w), 0);
    world_step(w, 1);
    fail_job(w);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

/* It ran and was cancelled between two looks. */
static void an_attempt_that_is_seen_when_it_was_cancelled(void **state)
{
    struct world *w = *state;

    fail_job(w);
    grant_requeue(w, 0);
    cancel(w, 1);
    world_start(w);
    world_die(w, 143);
    assert_string_equal(world_decision(w)->rule, "requested");
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

static void a_preempted_job_that_is_cancelled_is_over(void **state)
{
    struct world *w = *state;

    world_root(w, "scheduler.preempted", CAUSE_PREEMPTION);
    look(w, SCHED_PENDING, 1);
    world_die(w, 143);
    assert_int_equal(world_decision(w)->action, ACTION_WAIT);
    assert_string_equal(world_decision(w)->rule, "preempted");
    assert_int_equal(asked_anything(w), 0);
    cancel(w, 1);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.action, ACTION_STOP);
}

static void a_preempted_job_goes_on(void **state)
{
    struct world *w = *state;

    world_root(w, "scheduler.preempted", CAUSE_PREEMPTION);
    look(w, SCHED_PENDING, 1);
    world_die(w, 143);
    begin_attempt(w);
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
    assert_int_equal(world_job(w)->ledger.restarts, 0);
}

/* Time limit */

static void a_time_limit_ends_it(void **state)
{
    struct world *w = *state;

    world_root(w, "scheduler.time_limit", CAUSE_TIME_LIMIT);
    end_attempt(w, SCHED_TIMEOUT, 143);
    assert_string_equal(world_decision(w)->rule, "time-limit");
    assert_int_equal(asked_anything(w), 0);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
}

static void a_time_limit_is_continued_where_that_is_wanted(void **state)
{
    struct world *w = *state;
    struct event e = of_job(w, EVENT_POLICY);

    policy_default(&e.policy);
    e.policy.continue_after_time_limit = true;
    world_feed(w, e); /* of this job alone */
    world_root(w, "scheduler.time_limit", CAUSE_TIME_LIMIT);
    end_attempt(w, SCHED_TIMEOUT, 143);
    assert_string_equal(world_decision(w)->rule, "not-its-fault");
    grant_requeue(w, 0);
    begin_attempt(w);
    assert_int_equal(world_job(w)->ledger.restarts, 0);
}

/* Forgotten */

static void forgotten_at_any_time(void **state)
{
    struct world *w = *state;

    fail_job(w);
    answer(w, INTENT_REQUEUE, OUTCOME_UNKNOWN);
    look(w, SCHED_FORGOTTEN, 0);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.action, ACTION_STOP);
    world_wait(w, USEC_PER_HOUR);
    assert_int_equal(asked_anything(w), 1);
}

static void forgotten_while_only_observed(void **state)
{
    struct world *w = *state;

    fail_job(w);
    look(w, SCHED_FORGOTTEN, 0);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    assert_int_equal(asked_anything(w), 0);
}

static void forgotten_while_it_ran_as_far_as_we_know(void **state)
{
    struct world *w = *state;

    look(w, SCHED_FORGOTTEN, 0);
    world_feed(w, of_job(w, EVENT_RUNNER_LOST));
    world_wait(w, MIN);
    assert_string_equal(world_decision(w)->rule, "forgotten");
    assert_int_equal(world_job(w)->state, JOB_ENDED);
}

/* Nodes */

static void only_nodes_of_the_job_are_kept_out(void **state)
{
    struct world *w = *state;

    fail_with_node(w, "n9");
    assert_int_equal(world_decision(w)->action, ACTION_RESTART);
    assert_int_equal(world_decision(w)->n_nodes, 0);
    assert_non_null(strstr(world_decision(w)->why, "did not run on n9"));
}

/* Slurm has queued it again when the verdict comes, and shows no nodes any more. */
static void the_nodes_of_the_attempt_are_remembered(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_SCHEDULER);

    s.role = ROLE_ROOT;
    s.cause = CAUSE_NODE_FAILURE;
    s.advice = ADVICE_RESTART_EXCLUDING;
    s.confidence = 98;
    STR_COPY(s.signature, "scheduler.node_fail");
    STR_COPY(s.who.node, "n3");
    look(w, SCHED_PENDING, 1);
    world_signal(w, s);
    world_die(w, 1);
    assert_int_equal(world_decision(w)->n_nodes, 1);
    assert_string_equal(world_decision(w)->nodes[0], "n3");
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.n_nodes, 1);
}

static void an_exclusion_expires(void **state)
{
    struct world *w = *state;

    fail_with_node(w, "n2");
    grant_requeue(w, 0);
    begin_attempt(w);
    assert_int_equal(sched_of(w)->n_kept, 1);
    world_wait(w, 59 * MIN);
    fail_with_node(w, "n3");
    assert_int_equal(world_decision(w)->n_nodes, 2); /* the old and the new one */
    world_wait(w, 2 * MIN);
    grant_requeue(w, 0);
    begin_attempt(w);
    assert_int_equal(sched_of(w)->n_kept, 1);
    assert_string_equal(sched_of(w)->kept[0].node, "n3");
}

static void a_node_that_fails_again_is_kept_out_again(void **state)
{
    struct world *w = *state;

    fail_with_node(w, "n2");
    grant_requeue(w, 0);
    begin_attempt(w);
    world_wait(w, 2 * USEC_PER_HOUR);
    fail_with_node(w, "n2");
    assert_int_equal(sched_of(w)->n_kept, 1);
    assert_true(sched_of(w)->kept[0].until > w->now);
}

/* Tasks */

static void task_exit(struct world *w, int32_t rank, int code)
{
    struct signal s = signal_make(SIGNAL_EXIT, PROVENANCE_SPANK);

    s.who.rank = rank;
    STR_PRINTF(s.who.node, "n%d", rank + 1);
    s.exit = (struct exit_fact){.code = code};
    world_signal(w, s);
}

static void a_dead_task_ends_a_job_that_does_not_get_on(void **state)
{
    struct world *w = *state;

    task_exit(w, 2, 1);
    world_wait(w, 9 * S);
    assert_int_equal(world_count(w, EVENT_FINDING), 0);
    world_wait(w, 20 * S);
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.finding, FINDING_CRASH);
    assert_non_null(strstr(world_last(w, EVENT_FINDING)->finding.why, "task 2 on n3"));
    assert_int_equal(asked(w, INTENT_REQUEUE), 1); /* which ends the others */
}

static void a_job_that_gets_on_without_the_task_is_left_alone(void **state)
{
    struct world *w = *state;

    world_step(w, 1);
    task_exit(w, 2, 1);
    for (int i = 2; i < 40; i++) {
        world_wait(w, S);
        world_step(w, i);
    }
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.finding, FINDING_RECOVERED);
    assert_int_equal(asked_anything(w), 0);
}

static void a_step_that_ended_as_a_whole_is_no_dead_task(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 4; i++)
        task_exit(w, i, i == 2);
    world_wait(w, MIN);
    assert_int_equal(world_count(w, EVENT_FINDING), 0);
    task_exit(w, 1, 1); /* of the next step, and the others live */
    world_wait(w, MIN);
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.finding, FINDING_CRASH);
}

/* What was found dead lives */

static void find_it_dead(struct world *w)
{
    world_step(w, 1);
    task_exit(w, 2, 1);
    world_wait(w, 20 * S);
    assert_int_equal(world_job(w)->state, JOB_DECIDED);
}

static void what_recovers_before_the_approval_is_not_killed(void **state)
{
    struct world *w = *state;
    uint64_t seq;

    find_it_dead(w);
    seq = decision_seq(w);
    world_wait(w, MIN);
    world_step(w, 2);
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
    operate(w, REQUEST_APPROVE, seq);
    assert_int_equal(asked_anything(w), 0);
    fail_job(w); /* and it is judged again when it fails in truth */
    assert_int_equal(world_job(w)->state, JOB_DECIDED);
    assert_int_equal(world_count(w, EVENT_VERDICT), 2);
}

static void what_is_observed_is_followed_on(void **state)
{
    struct world *w = *state;

    find_it_dead(w);
    world_step(w, 2);
    end_attempt(w, SCHED_COMPLETED, 0);
    assert_string_equal(world_decision(w)->rule, "completed");
    assert_int_equal(world_job(w)->state, JOB_ENDED);
}

/* Stop */

static void allow_no_retry(struct world *w, enum cause cause)
{
    struct policy p;

    policy_default(&p);
    p.cause[cause].retries = 0;
    world_policy(w, &p);
}

static void a_dead_job_that_must_not_be_repeated_is_cancelled(void **state)
{
    struct world *w = *state;

    allow_no_retry(w, CAUSE_UNKNOWN);
    task_exit(w, 2, 1);
    world_wait(w, 20 * S);
    assert_string_equal(world_decision(w)->rule, "never-retried");
    assert_int_equal(asked(w, INTENT_CANCEL), 1);
    answer(w, INTENT_CANCEL, OUTCOME_UNKNOWN);
    world_wait(w, MIN);
    assert_int_equal(asked(w, INTENT_CANCEL), 1); /* a look first */
    look(w, SCHED_RUNNING, 0);
    assert_int_equal(asked(w, INTENT_CANCEL), 2);
    answer(w, INTENT_CANCEL, OUTCOME_DONE);
    look(w, SCHED_CANCELLED, 0);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
}

static void stop_leaves_an_ended_job_as_it_is(void **state)
{
    struct world *w = *state;

    allow_no_retry(w, CAUSE_NETWORK);
    fail_job(w);
    assert_string_equal(world_decision(w)->rule, "never-retried");
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    assert_int_equal(asked_anything(w), 0);
}

static void what_cannot_be_started_again_is_not_cancelled(void **state)
{
    struct world *w = *state;

    task_exit(w, 2, 1);
    world_wait(w, 20 * S);
    while (world_decision(w)->action != ACTION_STOP) {
        answer(w, INTENT_REQUEUE, OUTCOME_FAILED);
        look(w, SCHED_RUNNING, 0);
        world_wait(w, 30 * MIN);
    }
    look(w, SCHED_RUNNING, 0);
    assert_int_equal(asked(w, INTENT_CANCEL), 0);
}

static void what_is_done_and_does_not_exit_is_ended(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);

    world_step(w, 1);
    s.role = ROLE_FINISH;
    world_signal(w, s);
    world_samples(w, 60, MIN, IDLE_SAMPLE);
    assert_string_equal(world_decision(w)->rule, "finished");
    assert_int_equal(asked(w, INTENT_CANCEL), 1);
    look(w, SCHED_CANCELLED, 0);
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.action, ACTION_COMPLETE);
}

/* Arming */

static void a_job_that_forbids_requeues_is_armed(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_RUNNING, 0);

    l.requeueable = false;
    look_at(w, l);
    assert_int_equal(asked(w, INTENT_ARM), 1);
    look_at(w, l);
    assert_int_equal(asked(w, INTENT_ARM), 1);
    answer(w, INTENT_ARM, OUTCOME_UNKNOWN);
    look_at(w, l);
    assert_int_equal(asked(w, INTENT_ARM), 2);
    answer(w, INTENT_ARM, OUTCOME_DONE);
    look(w, SCHED_RUNNING, 0);
    assert_int_equal(asked(w, INTENT_ARM), 2);
}

static void arming_is_given_up(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_RUNNING, 0);

    l.requeueable = false;
    for (int i = 0; i < 10; i++) {
        look_at(w, l);
        answer(w, INTENT_ARM, OUTCOME_FAILED);
    }
    assert_int_equal(asked(w, INTENT_ARM), 3);
}

/* Brakes, over several jobs */

static void of_other(struct world *w, const char *job)
{
    STR_COPY(w->job, job);
    w->attempt = 0;
}

static void run_other(struct world *w, int i)
{
    struct job_facts facts = {.scheduled = true};
    char name[16];

    STR_PRINTF(name, "job%d", i);
    of_other(w, name);
    STR_COPY(facts.partition, i % 2 ? "odd" : "even");
    world_seen(w, &facts);
    set_mode(w, MODE_ACT);
    begin_attempt(w);
}

static void actions_an_hour_are_limited(void **state)
{
    struct world *w = *state;

    set_brakes(w, (struct brakes){.actions_per_hour = 3});
    for (int i = 0; i < 5; i++) {
        run_other(w, i);
        fail_job(w);
        world_wait(w, MIN);
    }
    assert_int_equal(asked(w, INTENT_REQUEUE), 3);
    world_wait(w, 58 * MIN);
    assert_int_equal(asked(w, INTENT_REQUEUE), 5);
}

static void actions_of_a_partition_are_limited(void **state)
{
    struct world *w = *state;

    set_brakes(w, (struct brakes){.actions_per_partition_hour = 1});
    for (int i = 0; i < 4; i++) {
        run_other(w, i);
        fail_job(w);
    }
    assert_int_equal(asked(w, INTENT_REQUEUE), 2);
    world_wait(w, 61 * MIN);
    assert_int_equal(asked(w, INTENT_REQUEUE), 4);
}

static void a_storm_is_answered_slowly(void **state)
{
    struct world *w = *state;

    set_brakes(w,
               (struct brakes){.storm_jobs = 5, .storm_window = 10 * MIN, .storm_per_minute = 2});
    for (int i = 0; i < 40; i++)
        run_other(w, i);
    for (int i = 0; i < 40; i++) {
        char name[16];

        STR_PRINTF(name, "job%d", i);
        of_other(w, name);
        w->attempt = 1;
        fail_job(w);
    }
    assert_int_equal(asked(w, INTENT_REQUEUE), 4); /* until it was known to be one */
    assert_true(brakes_see_storm(core_model(w->core)));
    world_wait(w, MIN + S);
    assert_int_equal(asked(w, INTENT_REQUEUE), 6);
    world_wait(w, 9 * MIN + 2 * S); /* it is over */
    assert_int_equal(asked(w, INTENT_REQUEUE), 40);
}

static void a_node_is_kept_out_of_so_many_jobs(void **state)
{
    struct world *w = *state;

    set_brakes(w, (struct brakes){.exclusions_per_node_hour = 2, .exclusion_life = USEC_PER_HOUR});
    for (int i = 0; i < 3; i++) {
        run_other(w, i);
        fail_with_node(w, "n2");
        assert_int_equal(world_decision(w)->n_nodes, i < 2);
    }
    assert_non_null(strstr(world_decision(w)->why, "stays in"));
}

#define IN(mode, name) cmocka_unit_test_setup_teardown(name, mode, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN(act, act_requeues_once),
        IN(observe, observe_asks_for_nothing),
        IN(observe, what_was_only_observed_is_not_caught_up_with),
        IN(act, less_may_be_done_at_once),
        IN(act, a_mode_that_falls_stops_what_was_begun),
        IN(propose, a_proposal_waits_for_its_approval),
        IN(propose, a_proposal_expires),
        IN(propose, an_approval_lasts),
        IN(propose, an_approval_covers_a_failed_launch),
        IN(propose, a_proposal_is_checked_again_when_approved),
        IN(propose, what_is_rejected_is_not_done),
        IN(act, nothing_is_done_while_frozen),
        cmocka_unit_test(frozen_before_there_is_any_job),
        IN(interactive, interactive_jobs_are_only_observed),
        IN(act, beside_a_successor_it_waits_for_approval),
        IN(act, a_look_that_is_older_than_the_answer_proves_nothing),
        IN(act, what_was_done_late_is_not_repeated),
        IN(act, what_was_not_done_is_repeated_a_few_times),
        IN(act, a_refusal_is_repeated_later),
        IN(act, void_is_no_refusal),
        IN(act, void_has_a_limit),
        IN(act, what_cannot_be_done_while_completing_is_done_later),
        IN(act, its_own_requeue_is_noticed),
        IN(act, a_completed_job_is_not_started_again),
        IN(act, late_answers_to_old_wishes_change_nothing),
        IN(act, exclusions_and_start_time_go_together),
        IN(act, a_start_is_never_too_early),
        IN(act, a_backoff_is_a_later_start),
        IN(act, a_held_job_is_left_alone),
        IN(act, exclusions_that_leave_too_little_are_taken_back),
        IN(act, exclusions_are_taken_back_until_they_are_gone),
        IN(act, nodes_that_are_refused_are_left_out),
        IN(act, a_lost_node_keeps_the_delay),
        IN(act, a_start_time_of_others_is_theirs),
        IN(act, a_launch_failure_costs_nothing),
        IN(act, launch_failures_are_bounded),
        IN(act, the_launch_failure_of_a_foreign_requeue),
        IN(act, cancelled_while_it_ran),
        IN(act, cancelled_before_the_requeue),
        IN(act, cancelled_after_the_requeue),
        IN(act, cancelled_during_the_requeue),
        IN(act, it_ran_before_that_was_seen),
        IN(act, who_brings_a_job_back_wants_it),
        IN(act, an_attempt_that_is_seen_when_it_was_cancelled),
        IN(act, a_preempted_job_that_is_cancelled_is_over),
        IN(act, a_preempted_job_goes_on),
        IN(act, a_time_limit_ends_it),
        IN(act, a_time_limit_is_continued_where_that_is_wanted),
        IN(act, forgotten_at_any_time),
        IN(observe, forgotten_while_only_observed),
        IN(act, forgotten_while_it_ran_as_far_as_we_know),
        IN(act, only_nodes_of_the_job_are_kept_out),
        IN(act, the_nodes_of_the_attempt_are_remembered),
        IN(act, an_exclusion_expires),
        IN(act, a_node_that_fails_again_is_kept_out_again),
        IN(act, a_dead_task_ends_a_job_that_does_not_get_on),
        IN(act, a_job_that_gets_on_without_the_task_is_left_alone),
        IN(act, a_step_that_ended_as_a_whole_is_no_dead_task),
        IN(propose, what_recovers_before_the_approval_is_not_killed),
        IN(observe, what_is_observed_is_followed_on),
        IN(act, a_dead_job_that_must_not_be_repeated_is_cancelled),
        IN(act, stop_leaves_an_ended_job_as_it_is),
        IN(act, what_cannot_be_started_again_is_not_cancelled),
        IN(act, what_is_done_and_does_not_exit_is_ended),
        IN(act, a_job_that_forbids_requeues_is_armed),
        IN(act, arming_is_given_up),
        IN(act, actions_an_hour_are_limited),
        IN(act, actions_of_a_partition_are_limited),
        IN(act, a_storm_is_answered_slowly),
        IN(act, a_node_is_kept_out_of_so_many_jobs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
