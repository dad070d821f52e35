/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs of --no-requeue: they are armed while they run, and disarmed when they are cared for no
 * more, unless others have allowed it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched_world.h"

static void forbid(struct world *w, enum sched_state state)
{
    struct look_facts l = facts_of(state, 0);

    l.requeueable = false;
    look_at(w, l);
}

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

/* Nothing is proposed that cannot be done. */
static void what_must_not_be_requeued_is_not_proposed(void **state)
{
    struct world *w = *state;

    forbid(w, SCHED_RUNNING);
    world_root(w, "net.link", CAUSE_NETWORK);
    forbid(w, SCHED_FAILED);
    world_die(w, 1);
    world_wait(w, MIN);
    assert_int_equal(world_decision(w)->action, ACTION_STOP);
    assert_string_equal(world_decision(w)->rule, "no-requeue");
    assert_int_equal(asked_anything(w), 0);
}

/* What would have been done is what is compared with what people do. */
static void what_must_not_be_requeued_is_judged_when_observed(void **state)
{
    struct world *w = *state;

    forbid(w, SCHED_RUNNING);
    world_root(w, "net.link", CAUSE_NETWORK);
    forbid(w, SCHED_FAILED);
    world_die(w, 1);
    world_wait(w, MIN);
    assert_true(action_restarts(world_decision(w)->action));
    assert_int_equal(asked_anything(w), 0);
}

/* Its task has died, and it runs on. */
static void crash_while_forbidden(struct world *w)
{
    forbid(w, SCHED_RUNNING);
    one_task_dies(w);
    world_wait(w, 30 * S);
    assert_true(action_restarts(world_decision(w)->action));
    assert_int_equal(asked_anything(w), 0);
}

static void an_approval_lets_it_be_requeued_while_it_runs(void **state)
{
    struct world *w = *state;

    crash_while_forbidden(w);
    operate(w, REQUEST_APPROVE, decision_seq(w));
    assert_int_equal(asked(w, INTENT_ARM), 1);
    assert_int_equal(asked(w, INTENT_REQUEUE), 0);
    answer(w, INTENT_ARM, OUTCOME_DONE);
    look(w, SCHED_RUNNING, 0);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

static void a_proposal_that_cannot_be_done_any_more_is_withdrawn(void **state)
{
    struct world *w = *state;

    crash_while_forbidden(w);
    forbid(w, SCHED_FAILED);
    assert_int_equal(world_decision(w)->action, ACTION_STOP);
    assert_string_equal(world_decision(w)->rule, "no-requeue");
}

/* Disarming */

static void arm(struct world *w)
{
    forbid(w, SCHED_RUNNING);
    answer(w, INTENT_ARM, OUTCOME_DONE);
    look(w, SCHED_RUNNING, 0);
}

static bool is_let_go(const struct world *w)
{
    return world_job(w)->state == JOB_ENDED && sched_of(w)->let_go;
}

static void it_is_disarmed_before_it_is_let_go(void **state)
{
    struct world *w = *state;

    arm(w);
    assert_int_equal(asked(w, INTENT_DISARM), 0);
    set_mode(w, MODE_OFF);
    assert_int_equal(asked(w, INTENT_DISARM), 1);
    answer(w, INTENT_DISARM, OUTCOME_UNKNOWN);
    assert_false(is_let_go(w));
    look(w, SCHED_RUNNING, 0);
    assert_int_equal(asked(w, INTENT_DISARM), 2);
    answer(w, INTENT_DISARM, OUTCOME_DONE);
    forbid(w, SCHED_RUNNING);
    assert_true(is_let_go(w));
    assert_int_equal(asked(w, INTENT_DISARM), 2);
}

static void who_is_only_observed_is_as_its_user_wants(void **state)
{
    struct world *w = *state;

    arm(w);
    set_mode(w, MODE_OBSERVE);
    assert_int_equal(asked(w, INTENT_DISARM), 1);
    answer(w, INTENT_DISARM, OUTCOME_DONE);
    forbid(w, SCHED_RUNNING);
    world_wait(w, MIN);
    assert_int_equal(asked(w, INTENT_DISARM), 1);
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
    set_mode(w, MODE_ACT);
    assert_int_equal(asked(w, INTENT_ARM), 2);
}

static void one_approval_is_for_one_restart(void **state)
{
    struct world *w = *state;

    crash_while_forbidden(w);
    operate(w, REQUEST_APPROVE, decision_seq(w));
    answer(w, INTENT_ARM, OUTCOME_DONE);
    look(w, SCHED_RUNNING, 0);
    grant_requeue(w, 0);
    assert_int_equal(asked(w, INTENT_DISARM), 0);
    begin_attempt(w);
    assert_int_equal(asked(w, INTENT_DISARM), 1);
    assert_int_equal(world_intent(w, INTENT_DISARM)->intended.restarts, 1);
}

static void it_stays_armed_from_attempt_to_attempt(void **state)
{
    struct world *w = *state;

    arm(w);
    fail_job(w);
    grant_requeue(w, 0);
    begin_attempt(w);
    assert_int_equal(asked(w, INTENT_ARM), 1);
    assert_int_equal(asked(w, INTENT_DISARM), 0);
    set_mode(w, MODE_OFF);
    assert_int_equal(asked(w, INTENT_DISARM), 1);
}

static void what_its_user_allows_stays_allowed(void **state)
{
    struct world *w = *state;

    look(w, SCHED_RUNNING, 0);
    set_mode(w, MODE_OFF);
    assert_int_equal(asked_anything(w), 0);
    assert_true(is_let_go(w));
}

/* Somebody else was faster. */
static void what_others_allowed_stays_allowed(void **state)
{
    struct world *w = *state;

    forbid(w, SCHED_RUNNING);
    assert_int_equal(asked(w, INTENT_ARM), 1);
    look(w, SCHED_RUNNING, 0); /* by whom is not known yet */
    answer(w, INTENT_ARM, OUTCOME_VOID);
    look(w, SCHED_RUNNING, 0);
    set_mode(w, MODE_OFF);
    assert_int_equal(asked(w, INTENT_DISARM), 0);
    assert_true(is_let_go(w));
}

static void who_is_allowed_again_by_others_is_theirs(void **state)
{
    struct world *w = *state;

    arm(w);
    set_mode(w, MODE_OBSERVE);
    answer(w, INTENT_DISARM, OUTCOME_DONE);
    forbid(w, SCHED_RUNNING);
    look(w, SCHED_RUNNING, 0);
    set_mode(w, MODE_OFF);
    assert_int_equal(asked(w, INTENT_DISARM), 1);
    assert_true(is_let_go(w));
}

/* The call timed out, and is carried out when nobody watches the job any more. */
static void arming_that_comes_late_is_taken_back(void **state)
{
    struct world *w = *state;

    forbid(w, SCHED_RUNNING);
    answer(w, INTENT_ARM, OUTCOME_UNKNOWN);
    set_mode(w, MODE_OFF);
    forbid(w, SCHED_RUNNING);
    assert_true(is_let_go(w));
    world_wait(w, 4 * MIN);
    assert_true(sched_may_be_armed(core_model(w->core), world_job(w)));
    look(w, SCHED_RUNNING, 0);
    assert_int_equal(asked(w, INTENT_DISARM), 1);
}

static void what_comes_later_still_is_not_ours(void **state)
{
    struct world *w = *state;

    forbid(w, SCHED_RUNNING);
    answer(w, INTENT_ARM, OUTCOME_UNKNOWN);
    set_mode(w, MODE_OFF);
    forbid(w, SCHED_RUNNING);
    world_wait(w, 6 * MIN);
    look(w, SCHED_RUNNING, 0);
    assert_int_equal(asked(w, INTENT_DISARM), 0);
    assert_false(sched_may_be_armed(core_model(w->core), world_job(w)));
}

static void nothing_is_disarmed_while_frozen(void **state)
{
    struct world *w = *state;

    arm(w);
    operate(w, REQUEST_FREEZE, 0);
    set_mode(w, MODE_OFF);
    assert_int_equal(asked(w, INTENT_DISARM), 0);
    assert_false(is_let_go(w));
    operate(w, REQUEST_THAW, 0);
    assert_int_equal(asked(w, INTENT_DISARM), 1);
}

static void what_has_ended_cannot_be_disarmed(void **state)
{
    struct world *w = *state;

    arm(w);
    look(w, SCHED_FAILED, 0);
    set_mode(w, MODE_OFF);
    assert_int_equal(asked(w, INTENT_DISARM), 0);
    assert_true(is_let_go(w));
}

static void disarming_is_given_up(void **state)
{
    struct world *w = *state;

    arm(w);
    set_mode(w, MODE_OFF);
    for (int i = 0; i < 10; i++) {
        answer(w, INTENT_DISARM, OUTCOME_FAILED);
        look(w, SCHED_RUNNING, 0);
    }
    assert_int_equal(asked(w, INTENT_DISARM), 3);
    assert_true(is_let_go(w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN(act, a_job_that_forbids_requeues_is_armed),
        IN(act, arming_is_given_up),
        IN(propose, what_must_not_be_requeued_is_not_proposed),
        IN(observe, what_must_not_be_requeued_is_judged_when_observed),
        IN(propose, an_approval_lets_it_be_requeued_while_it_runs),
        IN(propose, a_proposal_that_cannot_be_done_any_more_is_withdrawn),
        IN(act, it_is_disarmed_before_it_is_let_go),
        IN(act, who_is_only_observed_is_as_its_user_wants),
        IN(propose, one_approval_is_for_one_restart),
        IN(act, it_stays_armed_from_attempt_to_attempt),
        IN(act, what_its_user_allows_stays_allowed),
        IN(act, what_others_allowed_stays_allowed),
        IN(act, who_is_allowed_again_by_others_is_theirs),
        IN(act, arming_that_comes_late_is_taken_back),
        IN(act, what_comes_later_still_is_not_ours),
        IN(act, nothing_is_disarmed_while_frozen),
        IN(act, what_has_ended_cannot_be_disarmed),
        IN(act, disarming_is_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
