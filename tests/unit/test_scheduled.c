/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs that a scheduler starts: what is asked of it to bring them back, when, how often, and when
 * not. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched_world.h"

#include "base/str.h"
#include "core/plan/scheduled.h"

#include <signal.h>
#include <string.h>

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
    l.successor = false; /* it has begun, and a reknitd that was started again sees it no more */
    look_at(w, l);
    world_root(w, "net.link", CAUSE_NETWORK);
    world_die(w, 1);
    assert_int_equal(asked_anything(w), 0);
    operate(w, REQUEST_APPROVE, decision_seq(w));
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

/* While it is named, a look that names it no more says that it never began. */
static void one_that_was_withdrawn_is_none(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_RUNNING, 0);

    l.successor = true;
    l.n_successors = 1;
    l.successors[0] = 26;
    look_at(w, l);
    assert_true(world_job(w)->sched.succeeded);
    l.successor = false;
    l.n_successors = 0;
    look_at(w, l);
    assert_false(world_job(w)->sched.succeeded);
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

static void exclusions_come_first_and_the_start_in_time(void **state)
{
    struct world *w = *state;
    usec_t begin = w->now + 121 * S;
    const struct intent_facts *f;
    struct look_facts l;

    fail_with_node(w, "n2");
    assert_int_equal(world_decision(w)->action, ACTION_RESTART_EXCLUDING);
    grant_requeue(w, begin);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    assert_int_equal(world_intent(w, INTENT_AMEND)->attempt, 2);
    f = &world_intent(w, INTENT_AMEND)->intended;
    assert_int_equal(f->n_nodes, 1);
    assert_string_equal(f->nodes[0], "n2");
    assert_int_equal(f->restarts, 1);
    assert_int_equal(f->not_before, begin); /* as it is */
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    l = facts_of(SCHED_PENDING, 1);
    l.begin = begin;
    l.n_kept_out = 1;
    STR_COPY(l.kept_out[0], "n2");
    look_at(w, l);
    world_wait(w, 2 * S - 1);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    world_wait(w, 1);
    assert_int_equal(asked(w, INTENT_AMEND), 2);
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.not_before, w->now);
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.n_nodes, 1);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    l.begin = w->now;
    look_at(w, l);
    l.begin += USEC_PER_DAY; /* its user has another idea now */
    l.n_kept_out = 0;
    look_at(w, l);
    world_wait(w, MIN);
    assert_int_equal(asked(w, INTENT_AMEND), 2);
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

/* It was queued once more, between two looks. */
static void each_requeue_has_its_own_pause(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_PENDING, 2);

    fail_with_node(w, "n2");
    grant_requeue(w, w->now + 121 * S);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    l.n_kept_out = 1;
    STR_COPY(l.kept_out[0], "n2");
    world_wait(w, 2 * S - 1);
    l.begin = w->now + 121 * S;
    look_at(w, l);
    assert_int_equal(sched_of(w)->pending_since, w->now);
    world_wait(w, 2 * S - 1);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
}

static void a_backoff_is_a_later_start(void **state)
{
    struct world *w = *state;

    fail_job(w);
    assert_int_equal(world_decision(w)->delay, 30 * S);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1); /* the requeue is not put off */
    grant_requeue(w, w->now + 121 * S);
    world_wait(w, 29 * S);
    assert_int_equal(asked(w, INTENT_AMEND), 0);
    world_wait(w, S);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.not_before, w->now);
}

/* It is longer than the delay of the scheduler. */
static void a_long_backoff_is_asked_for_at_once(void **state)
{
    struct world *w = *state;
    usec_t decided = w->now;

    fail_job(w);
    grant_requeue(w, w->now + 10 * S);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
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
    look_at(w,
            (struct look_facts){.state = SCHED_PENDING, .restarts = 1, .begin = w->now + 121 * S});
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.n_nodes, 1);
    answer(w, INTENT_AMEND, OUTCOME_FAILED);
    look_at(w,
            (struct look_facts){.state = SCHED_PENDING, .restarts = 1, .begin = w->now + 121 * S});
    assert_int_equal(asked(w, INTENT_AMEND), 2);
    world_wait(w, 2 * S);
    assert_int_equal(asked(w, INTENT_AMEND), 3);
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.n_nodes, 0);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
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

/* It waits for two minutes, and cannot be launched then. The scheduler says "done" to whatever is
 * asked for meanwhile, and does so or not. Returns how often it was asked to change its start. */
static int wait_and_fail_to_launch(struct world *w, uint32_t restarts, bool heeds)
{
    struct look_facts l = facts_of(SCHED_PENDING, restarts);
    usec_t until = w->now + 2 * MIN;
    int before = asked(w, INTENT_AMEND);

    answer(w, INTENT_REQUEUE, OUTCOME_DONE);
    for (l.begin = until; w->now < until; world_wait(w, S / 2)) {
        if (job_awaits(world_job(w), INTENT_AMEND)) {
            const struct intent_facts *f = &world_intent(w, INTENT_AMEND)->intended;

            l.begin = heeds ? f->not_before : l.begin;
            l.n_kept_out = heeds ? f->n_nodes : 0;
            memcpy(l.kept_out, f->nodes, sizeof(l.kept_out));
            answer(w, INTENT_AMEND, OUTCOME_DONE);
        }
        look_at(w, l);
    }
    look(w, SCHED_FAILED, restarts);
    launch_failed(w, restarts + 1);
    return asked(w, INTENT_AMEND) - before;
}

static void who_heeds_nothing_is_asked_less_often_for_the_next_attempt(void **state)
{
    struct world *w = *state;

    fail_with_node(w, "n2");
    assert_in_range(wait_and_fail_to_launch(w, 1, false), 5, 6);
    assert_in_range(wait_and_fail_to_launch(w, 2, false), 2, 4);
    assert_in_range(wait_and_fail_to_launch(w, 3, true), 1, 2); /* the first comes at once */
    assert_in_range(wait_and_fail_to_launch(w, 4, false), 5, 6);
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

/* An array's number goes from the tasks that wait to the one that begins last. */
static void a_label_follows_the_record(void **state)
{
    struct look_facts l = facts_of(SCHED_RUNNING, 0);
    struct world *w = *state;

    STR_COPY(l.label, "6_[2-3%2]");
    look_at(w, l);
    assert_string_equal(sched_of(w)->label, "6_[2-3%2]");
    STR_COPY(l.label, "6_3");
    look_at(w, l);
    assert_string_equal(sched_of(w)->label, "6_3");
    look(w, SCHED_RUNNING, 0); /* of a journal before labels were told */
    assert_string_equal(sched_of(w)->label, "6_3");
}

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
        IN(act, one_that_was_withdrawn_is_none),
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
        IN(act, exclusions_come_first_and_the_start_in_time),
        IN(act, a_start_is_never_too_early),
        IN(act, each_requeue_has_its_own_pause),
        IN(act, a_backoff_is_a_later_start),
        IN(act, a_long_backoff_is_asked_for_at_once),
        IN(act, a_held_job_is_left_alone),
        IN(act, exclusions_that_leave_too_little_are_taken_back),
        IN(act, exclusions_are_taken_back_until_they_are_gone),
        IN(act, nodes_that_are_refused_are_left_out),
        IN(act, a_lost_node_keeps_the_delay),
        IN(act, a_start_time_of_others_is_theirs),
        IN(act, a_launch_failure_costs_nothing),
        IN(act, launch_failures_are_bounded),
        IN(act, who_heeds_nothing_is_asked_less_often_for_the_next_attempt),
        IN(act, the_launch_failure_of_a_foreign_requeue),
        IN(act, a_label_follows_the_record),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
