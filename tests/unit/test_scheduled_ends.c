/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs that a scheduler starts: those that must not come back, those that are not dead, the tasks
 * that are to blame, and the brakes over all jobs. */

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

/* The answer was lost with the reknitd that had asked, but the next one saw that it was granted. */
static void a_requeue_that_was_seen_is_in_no_doubt(void **state)
{
    struct world *w = *state;

    fail_job(w);
    look(w, SCHED_PENDING, 1);
    answer(w, INTENT_REQUEUE, OUTCOME_UNKNOWN);
    look(w, SCHED_PENDING, 1);
    cancel(w, 1);
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

/* Tasks */

static void task_exit(struct world *w, int32_t task, int code)
{
    struct signal s = signal_make(SIGNAL_EXIT, PROVENANCE_SPANK);

    STR_PRINTF(s.who.tasks, "%d", task);
    STR_PRINTF(s.who.node, "n%d", task + 1);
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

static void what_is_read_late_is_no_life(void **state)
{
    struct world *w = *state;

    world_step(w, 1);
    task_exit(w, 2, 1);
    world_wait(w, S);
    world_step(w, 2); /* printed before */
    assert_int_equal(world_count(w, EVENT_FINDING), 0);
    world_wait(w, 20 * S);
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.finding, FINDING_CRASH);
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

/* Nobody read when it was judged, and then somebody came. */
static void what_was_read_before_it_recovered_is_not_its_last(void **state)
{
    struct world *w = *state;
    struct event drained = of_job(w, EVENT_LOGS_DRAINED);

    find_it_dead(w);
    world_step(w, 2);
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
    drained.attempt = 1;
    world_feed(w, drained);
    look(w, SCHED_FAILED, 0);
    world_exit(w, 1, 0);
    assert_int_equal(world_job(w)->state, JOB_ENDING);
    world_root(w, "net.link", CAUSE_NETWORK);
    world_feed(w, drained);
    assert_int_equal(world_job(w)->attempt.incident.cause, CAUSE_NETWORK);
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

/* Its last lines are awaited until it is judged; then the same files are those of the next. */
static void what_is_written_behind_the_end_is_no_word_of_it(void **state)
{
    struct world *w = *state;

    assert_true(job_listens(world_job(w), 1));
    assert_false(job_listens(world_job(w), 2));
    look(w, SCHED_FAILED, 0);
    world_exit(w, 1, 0);
    assert_int_equal(world_job(w)->state, JOB_ENDING);
    assert_true(job_listens(world_job(w), 1));
    world_wait(w, MIN);
    assert_int_equal(world_job(w)->state, JOB_DECIDED);
    assert_false(job_listens(world_job(w), 1));
    assert_true(job_hears(world_job(w), 1)); /* of its nodes */
}

static void what_may_live_is_listened_to(void **state)
{
    struct world *w = *state;

    one_task_dies(w);
    world_wait(w, MIN);
    assert_int_equal(world_job(w)->state, JOB_DECIDED);
    assert_true(job_listens(world_job(w), 1));
    operate(w, REQUEST_APPROVE, decision_seq(w)); /* it is queued again */
    assert_int_equal(world_job(w)->state, JOB_STARTING);
    assert_false(job_listens(world_job(w), 1));
    assert_false(job_hears(world_job(w), 1));
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

/* Brakes, over several jobs */

static void of_other(struct world *w, const char *job)
{
    STR_COPY(w->job, job);
    w->attempt = 0;
}

static void run_of(struct world *w, int i, const char *user)
{
    struct job_facts facts = {.scheduled = true};
    char name[16];

    STR_PRINTF(name, "job%d", i);
    of_other(w, name);
    STR_COPY(facts.partition, i % 2 ? "odd" : "even");
    STR_COPY(facts.user, user);
    world_seen(w, &facts);
    set_mode(w, MODE_ACT);
    begin_attempt(w);
}

static void run_other(struct world *w, int i)
{
    run_of(w, i, "");
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

/* Whoever has many jobs that fail keeps nobody else's from coming back. */
static void actions_for_a_user_are_limited(void **state)
{
    struct world *w = *state;

    set_brakes(w, (struct brakes){.actions_per_hour = 4, .actions_per_user_hour = 2});
    for (int i = 0; i < 4; i++) {
        run_of(w, i, "bob");
        fail_job(w);
    }
    assert_int_equal(asked(w, INTENT_REQUEUE), 2);
    run_of(w, 4, "alice");
    fail_job(w);
    assert_int_equal(asked(w, INTENT_REQUEUE), 3);
    world_wait(w, 61 * MIN);
    assert_int_equal(asked(w, INTENT_REQUEUE), 5);
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
    world_wait(w, 9 * MIN + 2 * S); /* it is over, but those that failed in it are not back */
    assert_false(brakes_see_storm(core_model(w->core)));
    assert_int_equal(asked(w, INTENT_REQUEUE), 24);
    run_other(w, 40);
    fail_job(w); /* of another cause, and not made to wait */
    assert_int_equal(asked(w, INTENT_REQUEUE), 25);
    world_wait(w, 5 * MIN);
    assert_in_range(asked(w, INTENT_REQUEUE), 34, 36);
    world_wait(w, 4 * MIN);
    assert_int_equal(asked(w, INTENT_REQUEUE), 41);
}

/* Its rest does not go out at once, nor later than the scheduler knows of it. */
static void a_storm_is_worked_off_before_it_is_forgotten(void **state)
{
    struct world *w = *state;

    set_brakes(w, (struct brakes){.storm_jobs = 5,
                                  .storm_window = 30 * S,
                                  .storm_per_minute = 2,
                                  .proposal_life = 4 * MIN});
    for (int i = 0; i < 40; i++)
        run_other(w, i);
    for (int i = 0; i < 40; i++) {
        char name[16];

        STR_PRINTF(name, "job%d", i);
        of_other(w, name);
        w->attempt = 1;
        fail_job(w);
    }
    world_wait(w, 31 * S);
    assert_in_range(asked(w, INTENT_REQUEUE), 8, 12);
    world_wait(w, MIN);
    assert_false(brakes_see_storm(core_model(w->core)));
    assert_in_range(asked(w, INTENT_REQUEUE), 16, 24);
    world_wait(w, 3 * MIN - 31 * S);
    assert_int_equal(asked(w, INTENT_REQUEUE), 40);
}

/* The first word is the last. */
static void who_is_refused_for_good_is_not_asked_for_again(void **state)
{
    struct world *w = *state;
    struct event e = of_job(w, EVENT_RESULT);

    fail_job(w);
    world_wait(w, MIN);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    e.result = (struct result_facts){
        .intent = world_intent(w, INTENT_REQUEUE)->seq, .outcome = OUTCOME_FAILED, .final = true};
    STR_COPY(e.result.detail, "permission denied");
    world_feed(w, e);
    look(w, SCHED_FAILED, 0);
    world_wait(w, 10 * MIN);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    assert_int_equal(world_decision(w)->action, ACTION_STOP);
    assert_string_equal(world_decision(w)->rule, "start-refused");
    assert_non_null(strstr(world_decision(w)->why, "permission denied"));
}

static void no_budget_is_used_beyond_its_end(void **state)
{
    struct world *w = *state;

    fail_job(w);
    for (int i = 0; i < 4; i++) {
        world_wait(w, 20 * MIN);
        answer(w, INTENT_REQUEUE, OUTCOME_FAILED);
        look(w, SCHED_FAILED, 0);
    }
    assert_int_equal(world_decision(w)->action, ACTION_STOP);
    assert_int_equal(world_decision(w)->used, world_decision(w)->allowed);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN(act, who_is_refused_for_good_is_not_asked_for_again),
        IN(act, no_budget_is_used_beyond_its_end),
        IN(observe, what_is_written_behind_the_end_is_no_word_of_it),
        IN(propose, what_may_live_is_listened_to),
        IN(act, cancelled_while_it_ran),
        IN(act, cancelled_before_the_requeue),
        IN(act, cancelled_after_the_requeue),
        IN(act, cancelled_during_the_requeue),
        IN(act, actions_for_a_user_are_limited),
        IN(act, a_requeue_that_was_seen_is_in_no_doubt),
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
        IN(act, a_dead_task_ends_a_job_that_does_not_get_on),
        IN(act, what_is_read_late_is_no_life),
        IN(act, a_job_that_gets_on_without_the_task_is_left_alone),
        IN(act, a_step_that_ended_as_a_whole_is_no_dead_task),
        IN(propose, what_recovers_before_the_approval_is_not_killed),
        IN(propose, what_was_read_before_it_recovered_is_not_its_last),
        IN(observe, what_is_observed_is_followed_on),
        IN(act, a_dead_job_that_must_not_be_repeated_is_cancelled),
        IN(act, stop_leaves_an_ended_job_as_it_is),
        IN(act, what_cannot_be_started_again_is_not_cancelled),
        IN(act, what_is_done_and_does_not_exit_is_ended),
        IN(act, actions_an_hour_are_limited),
        IN(act, actions_of_a_partition_are_limited),
        IN(act, a_storm_is_answered_slowly),
        IN(act, a_storm_is_worked_off_before_it_is_forgotten),
        IN(act, a_node_is_kept_out_of_so_many_jobs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
