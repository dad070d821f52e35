/* SPDX-License-Identifier: Apache-2.0 */

/* The place that a job gives up by being queued again, those behind it, and those that are stopped
 * and held for people. */

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

static struct look_facts waiting(usec_t begin, bool outranked)
{
    struct look_facts l = facts_of(SCHED_PENDING, 1);

    l.begin = begin;
    l.outranked = outranked;
    return l;
}

static void look_waiting(struct world *w, usec_t begin, bool outranked)
{
    look_at(w, waiting(begin, outranked));
}

/* priority */

static void it_is_put_first_with_its_exclusions(void **state)
{
    struct world *w = *state;
    const struct intent_facts *f;

    keep_place(w, KEEP_PLACE_PRIORITY);
    fail_with_node(w, "n2");
    answer(w, INTENT_REQUEUE, OUTCOME_DONE);
    look_waiting(w, w->now + 121 * S, true);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    f = &world_intent(w, INTENT_AMEND)->intended;
    assert_true(f->first);
    assert_int_equal(f->n_nodes, 1);
    assert_int_equal(asked(w, INTENT_RESERVE), 0);
}

static void who_is_first_already_is_not_raised(void **state)
{
    struct world *w = *state;

    keep_place(w, KEEP_PLACE_PRIORITY);
    fail_job(w);
    answer(w, INTENT_REQUEUE, OUTCOME_DONE);
    look_waiting(w, w->now + 121 * S, false);
    world_wait(w, 31 * S); /* the backoff */
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    assert_false(world_intent(w, INTENT_AMEND)->intended.first);
    begin_attempt(w);
    assert_int_equal(asked(w, INTENT_YIELD), 0);
}

static void nothing_is_raised_unless_the_policy_says_so(void **state)
{
    struct world *w = *state;

    fail_with_node(w, "n2");
    answer(w, INTENT_REQUEUE, OUTCOME_DONE);
    look_waiting(w, w->now + 121 * S, true);
    assert_false(world_intent(w, INTENT_AMEND)->intended.first);
}

/* Raised once; and given back, once it runs, until that is done. */
static void the_place_is_given_back(void **state)
{
    struct world *w = *state;

    keep_place(w, KEEP_PLACE_PRIORITY);
    fail_job(w);
    answer(w, INTENT_REQUEUE, OUTCOME_DONE);
    look_waiting(w, w->now + 121 * S, true);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    look_waiting(w, w->now + 121 * S, true); /* somebody was put before it again */
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    world_wait(w, 31 * S); /* the backoff */
    assert_int_equal(asked(w, INTENT_AMEND), 2);
    assert_false(world_intent(w, INTENT_AMEND)->intended.first);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    begin_attempt(w);
    assert_int_equal(asked(w, INTENT_YIELD), 1);
    answer(w, INTENT_YIELD, OUTCOME_VOID);
    look(w, SCHED_RUNNING, 1);
    assert_int_equal(asked(w, INTENT_YIELD), 2);
    answer(w, INTENT_YIELD, OUTCOME_DONE);
    look(w, SCHED_RUNNING, 1);
    world_wait(w, USEC_PER_HOUR);
    assert_int_equal(asked(w, INTENT_YIELD), 2);
}

/* reservation */

/* Its task has died, its nodes are kept. */
static void reserve(struct world *w)
{
    const struct intent_facts *f;

    keep_place(w, KEEP_PLACE_RESERVATION);
    one_task_dies(w);
    assert_int_equal(asked(w, INTENT_RESERVE), 1);
    f = &world_intent(w, INTENT_RESERVE)->intended;
    assert_true(str_startswith(f->reservation, RESERVATION_PREFIX));
    answer(w, INTENT_RESERVE, OUTCOME_DONE);
}

static void nodes_are_kept_until_it_may_start(void **state)
{
    struct world *w = *state;

    reserve(w);
    fail_job(w);
    grant_requeue(w, w->now + 121 * S);
    assert_int_equal(asked(w, INTENT_UNRESERVE), 0);
    world_wait(w, 31 * S); /* the backoff */
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    assert_int_equal(asked(w, INTENT_UNRESERVE), 0);
    look_waiting(w, w->now, false);
    assert_int_equal(asked(w, INTENT_UNRESERVE), 1);
    assert_string_equal(world_intent(w, INTENT_UNRESERVE)->intended.reservation,
                        world_intent(w, INTENT_RESERVE)->intended.reservation);
    answer(w, INTENT_UNRESERVE, OUTCOME_DONE);
    look_waiting(w, w->now, false);
    begin_attempt(w);
    world_wait(w, USEC_PER_HOUR);
    assert_int_equal(asked(w, INTENT_UNRESERVE), 1);
}

static void without_a_witness_they_are_kept_before_the_requeue(void **state)
{
    struct world *w = *state;

    keep_place(w, KEEP_PLACE_RESERVATION);
    fail_with_node(w, "n2");
    assert_int_equal(asked(w, INTENT_RESERVE), 1);
    assert_int_equal(world_intent(w, INTENT_RESERVE)->intended.n_nodes, 1); /* the culprit */
    assert_int_equal(asked(w, INTENT_REQUEUE), 0);
    answer(w, INTENT_RESERVE, OUTCOME_FAILED);
    look(w, SCHED_FAILED, 0);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1); /* it goes on without */
    assert_int_equal(asked(w, INTENT_RESERVE), 1);
    assert_int_equal(asked(w, INTENT_UNRESERVE), 0);
}

static void a_job_that_gets_on_gives_them_back(void **state)
{
    struct world *w = *state;

    reserve(w);
    world_wait(w, 3 * S); /* sooner, it was only read late */
    world_step(w, 5);
    assert_int_equal(asked(w, INTENT_UNRESERVE), 1);
    answer(w, INTENT_UNRESERVE, OUTCOME_UNKNOWN);
    look(w, SCHED_RUNNING, 0);
    world_wait(w, MIN);
    assert_int_equal(asked(w, INTENT_UNRESERVE), 2);
    answer(w, INTENT_UNRESERVE, OUTCOME_DONE);
}

static void who_is_cancelled_gives_them_back(void **state)
{
    struct world *w = *state;

    reserve(w);
    operate(w, REQUEST_INTERRUPT, 0);
    assert_int_equal(asked(w, INTENT_UNRESERVE), 1);
}

static void who_is_stopped_gives_them_back(void **state)
{
    struct world *w = *state;

    reserve(w);
    world_root(w, "some.text", CAUSE_CANCELLED);
    end_attempt(w, SCHED_FAILED, 1);
    assert_int_equal(world_decision(w)->action, ACTION_STOP);
    assert_int_equal(asked(w, INTENT_UNRESERVE), 1);
}

static void who_cannot_start_gives_them_back(void **state)
{
    struct world *w = *state;

    reserve(w);
    fail_job(w);
    answer(w, INTENT_REQUEUE, OUTCOME_UNKNOWN);
    world_wait(w, 4 * MIN);
    assert_int_equal(asked(w, INTENT_UNRESERVE), 0);
    world_wait(w, 2 * MIN);
    assert_int_equal(asked(w, INTENT_UNRESERVE), 1);
}

static void who_is_forgotten_gives_them_back(void **state)
{
    struct world *w = *state;

    reserve(w);
    look(w, SCHED_FORGOTTEN, 0);
    world_gone(w);
    world_wait(w, MIN);
    assert_true(asked(w, INTENT_UNRESERVE) >= 1);
}

static void whom_nobody_may_restart_nothing_is_kept_for(void **state)
{
    struct world *w = *state;

    keep_place(w, KEEP_PLACE_RESERVATION);
    one_task_dies(w);
    fail_job(w);
    world_wait(w, MIN);
    assert_int_equal(asked(w, INTENT_RESERVE), 0);
}

static void nothing_is_kept_in_a_storm(void **state)
{
    struct world *w = *state;

    set_brakes(w, (struct brakes){.early_start = 2 * S,
                                  .storm_jobs = 1,
                                  .storm_window = USEC_PER_HOUR,
                                  .storm_per_minute = 1});
    keep_place(w, KEEP_PLACE_RESERVATION);
    fail_job(w);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    assert_int_equal(asked(w, INTENT_RESERVE), 0);
}

/* Those that wait for its success */

static struct look_facts stranded(enum sched_state state, uint32_t restarts)
{
    struct look_facts l = facts_of(state, restarts);

    l.stranded = true;
    return l;
}

static void the_stranded_are_told_anew(void **state)
{
    struct world *w = *state;

    fail_job(w);
    answer(w, INTENT_REQUEUE, OUTCOME_DONE);
    look_at(w, stranded(SCHED_PENDING, 1));
    assert_int_equal(asked(w, INTENT_MEND), 1);
    answer(w, INTENT_MEND, OUTCOME_FAILED);
    assert_int_equal(asked(w, INTENT_MEND), 1);
    look_at(w, stranded(SCHED_RUNNING, 1)); /* it was fast */
    world_start(w);
    look_at(w, stranded(SCHED_RUNNING, 1));
    assert_int_equal(asked(w, INTENT_MEND), 2);
    answer(w, INTENT_MEND, OUTCOME_DONE);
    look(w, SCHED_RUNNING, 1);
    world_wait(w, MIN);
    assert_int_equal(asked(w, INTENT_MEND), 2);
}

static void not_after_a_requeue_of_others(void **state)
{
    struct world *w = *state;

    look_at(w, stranded(SCHED_PENDING, 1));
    world_gone(w);
    world_wait(w, MIN);
    look_at(w, stranded(SCHED_RUNNING, 1));
    world_start(w);
    look_at(w, stranded(SCHED_RUNNING, 1));
    assert_int_equal(asked(w, INTENT_MEND), 0);
}

/* Stopped, and held for people */

static void stop_held(struct world *w)
{
    struct policy p;

    policy_default(&p);
    p.hold_on_stop = true;
    p.cause[CAUSE_NETWORK].retries = 0;
    world_policy(w, &p);
    fail_job(w);
    assert_int_equal(world_decision(w)->action, ACTION_STOP);
}

static void who_is_stopped_is_held(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_PENDING, 1);

    stop_held(w);
    assert_int_equal(asked(w, INTENT_HOLD), 1);
    assert_int_not_equal(world_job(w)->state, JOB_ENDED);
    answer(w, INTENT_HOLD, OUTCOME_DONE);
    l.held = true;
    look_at(w, l);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    assert_int_equal(asked(w, INTENT_AMEND) + asked(w, INTENT_RELEASE), 0);
    begin_attempt(w); /* somebody has mended it, and lets it go */
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
}

static void who_cannot_be_held_ends_as_it_is(void **state)
{
    struct world *w = *state;

    stop_held(w);
    answer(w, INTENT_HOLD, OUTCOME_FAILED);
    look(w, SCHED_FAILED, 0);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    assert_int_equal(asked(w, INTENT_HOLD), 1);
}

static void who_is_only_observed_is_not_held(void **state)
{
    struct world *w = *state;

    stop_held(w);
    assert_int_equal(asked_anything(w), 0);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
}

static void a_cancelled_job_is_not_held(void **state)
{
    struct world *w = *state;
    struct policy p;

    policy_default(&p);
    p.hold_on_stop = true;
    world_policy(w, &p);
    operate(w, REQUEST_INTERRUPT, 0);
    end_attempt(w, SCHED_CANCELLED, -1);
    assert_int_equal(asked(w, INTENT_HOLD), 0);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
}

/* First seen when it was over */

static void unseen(struct world *w, enum mode mode)
{
    struct job_facts facts = {.scheduled = true, .over = true};

    world_seen(w, &facts);
    set_mode(w, mode);
    look(w, SCHED_FAILED, 0);
    world_start(w);
    world_die(w, 1);
    world_wait(w, MIN);
}

static int over_before(void **state)
{
    world_setup(state);
    unseen(*state, MODE_ACT);
    return 0;
}

static void what_was_over_before_is_judged_and_proposed(void **state)
{
    struct world *w = *state;
    char why[160];

    assert_true(action_restarts(world_decision(w)->action));
    assert_int_equal(asked_anything(w), 0);
    assert_false(plan_sched_may_act(core_model(w->core), world_job(w), why, sizeof(why)));
    assert_non_null(strstr(why, "before reknit looked"));
    operate(w, REQUEST_APPROVE, decision_seq(w));
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

/* A share of the cluster */

/* It waits, and runs, without n2. */
static void restart_without_n2(struct world *w)
{
    struct look_facts l = facts_of(SCHED_PENDING, w->attempt);

    l.n_kept_out = 1;
    STR_COPY(l.kept_out[0], "n2");
    grant_requeue(w, 0);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    look_at(w, l);
    l.state = SCHED_RUNNING;
    STR_COPY(l.nodes, "n[1,3-5]");
    look_at(w, l);
    world_start(w);
}

/* As another job sees it, which n7 fails: one node is all that may be kept out. */
static void check_share(struct world *w, bool is_used_up)
{
    struct job_facts facts = {.scheduled = true};
    struct look_facts l = facts_of(SCHED_RUNNING, 0);

    STR_COPY(w->job, "other");
    w->attempt = 0;
    world_seen(w, &facts);
    set_mode(w, MODE_ACT);
    STR_COPY(l.nodes, "n[7-9]");
    look_at(w, l);
    world_start(w);
    blame_node(w, "n7");
    l.state = SCHED_FAILED;
    look_at(w, l);
    world_die(w, 1);
    world_wait(w, S);
    assert_int_equal(world_decision(w)->n_nodes, !is_used_up);
    assert_int_equal(strstr(world_decision(w)->why, "max_excluded") != NULL, is_used_up);
}

static void let_one_be_kept_out(struct world *w)
{
    set_brakes(w, (struct brakes){.early_start = 2 * S,
                                  .exclusion_life = 3 * USEC_PER_HOUR,
                                  .exclusions_per_node_hour = 1,
                                  .max_excluded = 1});
}

static void an_exclusion_counts_while_its_job_lives(void **state)
{
    struct world *w = *state;

    let_one_be_kept_out(w);
    fail_with_node(w, "n2");
    restart_without_n2(w);
    assert_true(sched_keeps_out(core_model(w->core), world_job(w), 0));
    check_share(w, true);
}

static void one_that_is_about_to_be_made_counts(void **state)
{
    struct world *w = *state;

    let_one_be_kept_out(w);
    fail_with_node(w, "n2");
    check_share(w, true);
}

static void one_of_a_job_that_completed_does_not(void **state)
{
    struct world *w = *state;

    let_one_be_kept_out(w);
    fail_with_node(w, "n2");
    restart_without_n2(w);
    end_attempt(w, SCHED_COMPLETED, 0);
    world_wait(w, MIN);
    assert_false(sched_keeps_out(core_model(w->core), world_job(w), 0));
    check_share(w, false);
}

static void one_of_a_job_that_was_cancelled_does_not(void **state)
{
    struct world *w = *state;

    let_one_be_kept_out(w);
    fail_with_node(w, "n2");
    restart_without_n2(w);
    operate(w, REQUEST_INTERRUPT, 0);
    end_attempt(w, SCHED_CANCELLED, -1);
    world_wait(w, MIN);
    check_share(w, false);
}

/* In observe, or before somebody approves: nor is it a deed of the node's. */
static void one_that_is_only_thought_of_does_not(void **state)
{
    struct world *w = *state;

    let_one_be_kept_out(w);
    fail_with_node(w, "n2");
    assert_int_equal(world_decision(w)->n_nodes, 1);
    assert_false(sched_keeps_out(core_model(w->core), world_job(w), 0));
    assert_true(model_room_at(core_model(w->core), DEED_EXCLUDED, "n2", USEC_PER_HOUR, 1) <=
                w->now);
    check_share(w, false);
}

static void one_that_was_approved_counts(void **state)
{
    struct world *w = *state;

    let_one_be_kept_out(w);
    fail_with_node(w, "n2");
    operate(w, REQUEST_APPROVE, decision_seq(w));
    assert_true(sched_keeps_out(core_model(w->core), world_job(w), 0));
    restart_without_n2(w);
    assert_true(sched_keeps_out(core_model(w->core), world_job(w), 0));
    assert_true(model_room_at(core_model(w->core), DEED_EXCLUDED, "n2", USEC_PER_HOUR, 1) > w->now);
    check_share(w, true);
}

static void so_many_nodes_are_kept_out_and_no_more(void **state)
{
    struct world *w = *state;

    set_brakes(w, (struct brakes){.early_start = 2 * S,
                                  .exclusion_life = 3 * USEC_PER_HOUR,
                                  .max_excluded = 1});
    fail_with_node(w, "n2");
    assert_int_equal(world_decision(w)->n_nodes, 1);
    grant_requeue(w, 0);
    begin_attempt(w);
    world_step(w, 1);
    fail_with_node(w, "n3");
    assert_int_equal(world_decision(w)->n_nodes, 1);
    assert_string_equal(world_decision(w)->nodes[0], "n2");
    assert_non_null(strstr(world_decision(w)->why, "max_excluded allows no more than 1 nodes"));
    grant_requeue(w, 0);
    begin_attempt(w);
    world_step(w, 2);
    fail_with_node(w, "n2"); /* one that is counted already */
    assert_int_equal(world_decision(w)->n_nodes, 1);
    assert_null(strstr(world_decision(w)->why, "max_excluded"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN(act, it_is_put_first_with_its_exclusions),
        IN(act, who_is_first_already_is_not_raised),
        IN(act, nothing_is_raised_unless_the_policy_says_so),
        IN(act, the_place_is_given_back),
        IN(act, nodes_are_kept_until_it_may_start),
        IN(act, without_a_witness_they_are_kept_before_the_requeue),
        IN(act, a_job_that_gets_on_gives_them_back),
        IN(act, who_is_cancelled_gives_them_back),
        IN(act, who_is_stopped_gives_them_back),
        IN(act, who_cannot_start_gives_them_back),
        IN(act, who_is_forgotten_gives_them_back),
        IN(propose, whom_nobody_may_restart_nothing_is_kept_for),
        IN(act, nothing_is_kept_in_a_storm),
        IN(act, the_stranded_are_told_anew),
        IN(act, not_after_a_requeue_of_others),
        IN(act, who_is_stopped_is_held),
        IN(act, who_cannot_be_held_ends_as_it_is),
        IN(observe, who_is_only_observed_is_not_held),
        IN(act, a_cancelled_job_is_not_held),
        cmocka_unit_test_setup_teardown(what_was_over_before_is_judged_and_proposed, over_before,
                                        world_teardown),
        IN(act, so_many_nodes_are_kept_out_and_no_more),
        IN(act, an_exclusion_counts_while_its_job_lives),
        IN(act, one_that_is_about_to_be_made_counts),
        IN(act, one_of_a_job_that_completed_does_not),
        IN(act, one_of_a_job_that_was_cancelled_does_not),
        IN(observe, one_that_is_only_thought_of_does_not),
        IN(propose, one_that_is_only_thought_of_does_not),
        IN(propose, one_that_was_approved_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
