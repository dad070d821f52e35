/* SPDX-License-Identifier: Apache-2.0 */

/* A job that is not to be watched any more: what is held of it is taken back, then it is let go;
 * and it may be watched again. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched_world.h"

#include "base/str.h"

static enum job_state state_of(const struct world *w)
{
    return world_job(w)->state;
}

static bool is_let_go(const struct world *w)
{
    return state_of(w) == JOB_ENDED && sched_of(w)->let_go;
}

static struct look_facts lost(enum sched_state state, uint32_t restarts, bool held)
{
    struct look_facts l = facts_of(state, restarts);

    STR_COPY(l.lost_node, "n2");
    l.held = held;
    return l;
}

static void guard(struct world *w)
{
    look_at(w, lost(SCHED_RUNNING, 0, false));
    answer(w, INTENT_GUARD, OUTCOME_DONE);
    look_at(w, lost(SCHED_RUNNING, 0, true));
}

static struct look_facts held(enum sched_state state, uint32_t restarts)
{
    struct look_facts l = facts_of(state, restarts);

    l.held = true;
    return l;
}

static void who_runs_is_let_go_at_once(void **state)
{
    struct world *w = *state;

    set_mode(w, MODE_OFF);
    assert_true(is_let_go(w));
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.action, ACTION_NONE);
    fail_job(w);
    world_wait(w, 10 * MIN);
    assert_int_equal(world_count(w, EVENT_DECISION), 0);
    assert_int_equal(asked_anything(w), 0);
}

static void of_who_ends_nothing_is_judged(void **state)
{
    struct world *w = *state;

    world_root(w, "net.link", CAUSE_NETWORK);
    world_exit(w, 1, 0);
    assert_int_equal(state_of(w), JOB_ENDING);
    set_mode(w, MODE_OFF);
    assert_true(is_let_go(w));
    world_wait(w, MIN);
    assert_int_equal(world_count(w, EVENT_VERDICT), 0);
}

static void who_has_not_begun_is_let_go(void **state)
{
    struct world *w = *state;

    world_seen(w, &(struct job_facts){.scheduled = true});
    set_mode(w, MODE_ACT);
    look(w, SCHED_PENDING, 0);
    assert_int_equal(state_of(w), JOB_NEW);
    set_mode(w, MODE_OFF);
    assert_true(is_let_go(w));
}

/* In the very look that shows its end. */
static void what_was_decided_is_not_done(void **state)
{
    struct world *w = *state;

    operate(w, REQUEST_FREEZE, 0);
    fail_job(w);
    assert_int_equal(state_of(w), JOB_DECIDED);
    set_mode(w, MODE_OFF);
    operate(w, REQUEST_THAW, 0);
    world_wait(w, 10 * MIN);
    assert_true(is_let_go(w));
    assert_int_equal(asked_anything(w), 0);
}

static void what_was_asked_for_is_awaited(void **state)
{
    struct world *w = *state;

    fail_job(w);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
    set_mode(w, MODE_OFF);
    assert_false(is_let_go(w));
    grant_requeue(w, w->now + 121 * S);
    assert_true(is_let_go(w));
    world_wait(w, 10 * MIN);
    assert_int_equal(asked_anything(w), 1); /* it is given no other start */
}

/* Whether its requeue was done nobody knows, and its user has cancelled it: it may come back.
 */
static void a_doubt_ends_with_its_time(void **state)
{
    struct world *w = *state;

    fail_job(w);
    look(w, SCHED_CANCELLED, 0);
    operate(w, REQUEST_INTERRUPT, 0);
    answer(w, INTENT_REQUEUE, OUTCOME_UNKNOWN);
    look(w, SCHED_CANCELLED, 0);
    set_mode(w, MODE_OFF);
    assert_false(is_let_go(w));
    world_wait(w, 10 * MIN);
    assert_true(is_let_go(w));
}

static void a_hold_is_taken_back_first(void **state)
{
    struct world *w = *state;

    guard(w);
    set_mode(w, MODE_OFF);
    world_wait(w, MIN);
    assert_int_equal(asked(w, INTENT_RELEASE), 0); /* two copies, otherwise */
    look_at(w, held(SCHED_RUNNING, 0));
    assert_int_equal(asked(w, INTENT_RELEASE), 1);
    assert_false(is_let_go(w));
    answer(w, INTENT_RELEASE, OUTCOME_DONE);
    look(w, SCHED_RUNNING, 0);
    assert_true(is_let_go(w));
}

static void a_hold_that_cannot_be_taken_back_is_not_left(void **state)
{
    struct world *w = *state;

    guard(w);
    set_mode(w, MODE_OFF);
    for (int i = 1; i <= 5; i++) {
        look_at(w, held(SCHED_RUNNING, 0));
        world_wait(w, MIN);
        assert_int_equal(asked(w, INTENT_RELEASE), i);
        answer(w, INTENT_RELEASE, OUTCOME_FAILED);
    }
    assert_false(is_let_go(w));
}

static void a_hold_ends_with_its_time_though_the_node_stays_lost(void **state)
{
    struct world *w = *state;

    guard(w);
    set_mode(w, MODE_OFF);
    world_wait(w, GUARD_LIFE - 2 * S);
    assert_int_equal(asked(w, INTENT_RELEASE), 0);
    world_wait(w, 3 * S);
    assert_int_equal(asked(w, INTENT_RELEASE), 1);
}

static void likewise_of_who_is_only_observed(void **state)
{
    struct world *w = *state;

    guard(w);
    set_mode(w, MODE_OBSERVE);
    world_wait(w, GUARD_LIFE + S);
    assert_int_equal(asked(w, INTENT_RELEASE), 1);
}

/* A call that timed out. */
static void a_hold_that_comes_late_is_taken_back(void **state)
{
    struct world *w = *state;
    struct look_facts l = held(SCHED_RUNNING, 0);

    set_mode(w, MODE_OFF);
    assert_true(is_let_go(w));
    l.noted = true;
    look_at(w, l);
    assert_int_equal(asked(w, INTENT_RELEASE), 1);
    answer(w, INTENT_RELEASE, OUTCOME_DONE);
    look(w, SCHED_RUNNING, 0);
    world_wait(w, 10 * MIN);
    assert_int_equal(asked(w, INTENT_RELEASE), 1);
}

static void a_hold_of_others_is_left(void **state)
{
    struct world *w = *state;

    look_at(w, held(SCHED_RUNNING, 0));
    set_mode(w, MODE_OFF);
    assert_true(is_let_go(w));
    assert_int_equal(asked_anything(w), 0);
}

static void keep_a_node_out(struct world *w, usec_t own)
{
    struct look_facts l = facts_of(SCHED_PENDING, 1);

    fail_with_node(w, "n2");
    grant_requeue(w, own);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    l.begin = w->now + 2 * S;
    l.n_kept_out = 1;
    STR_COPY(l.kept_out[0], "n2");
    look_at(w, l);
}

static void what_it_was_amended_by_is_taken_back(void **state)
{
    struct world *w = *state;
    usec_t own = w->now + 121 * S;
    const struct intent_facts *f;
    struct look_facts l = facts_of(SCHED_PENDING, 1);

    keep_a_node_out(w, own);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    set_mode(w, MODE_OFF);
    assert_int_equal(asked(w, INTENT_AMEND), 2);
    f = &world_intent(w, INTENT_AMEND)->intended;
    assert_int_equal(f->n_nodes, 0);
    assert_false(is_let_go(w));
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    l.begin = own;
    look_at(w, l);
    assert_true(is_let_go(w));
}

static void a_start_that_was_moved_away_is_moved_back(void **state)
{
    struct world *w = *state;
    usec_t own = w->now + 5 * S;
    struct look_facts l = facts_of(SCHED_PENDING, 1);

    fail_job(w); /* the backoff is 30 s, as long as nothing was learned */
    grant_requeue(w, own);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    l.begin = world_intent(w, INTENT_AMEND)->intended.not_before;
    assert_true(l.begin > own + 10 * S);
    look_at(w, l);
    set_mode(w, MODE_OFF);
    assert_int_equal(asked(w, INTENT_AMEND), 2);
    assert_true(world_intent(w, INTENT_AMEND)->intended.not_before <= own);
    answer(w, INTENT_AMEND, OUTCOME_FAILED);
    for (int i = 0; i < 5; i++)
        look_at(w, l);
    answer(w, INTENT_AMEND, OUTCOME_FAILED);
    look_at(w, l);
    answer(w, INTENT_AMEND, OUTCOME_FAILED);
    look_at(w, l);
    assert_int_equal(asked(w, INTENT_AMEND), 4); /* three tries; then it starts when it starts */
    assert_true(is_let_go(w));
}

static void another_start_by_its_user_is_left(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_PENDING, 1);

    fail_job(w);
    grant_requeue(w, w->now + 5 * S);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    l.begin = w->now + USEC_PER_HOUR;
    look_at(w, l);
    set_mode(w, MODE_OFF);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    assert_true(is_let_go(w));
}

static void its_reservation_is_given_back(void **state)
{
    struct world *w = *state;

    keep_place(w, KEEP_PLACE_RESERVATION);
    one_task_dies(w);
    assert_int_equal(asked(w, INTENT_RESERVE), 1);
    set_mode(w, MODE_OFF);
    answer(w, INTENT_RESERVE, OUTCOME_DONE);
    look(w, SCHED_RUNNING, 0);
    assert_int_equal(asked(w, INTENT_UNRESERVE), 1);
    assert_false(is_let_go(w));
    answer(w, INTENT_UNRESERVE, OUTCOME_DONE);
    look(w, SCHED_RUNNING, 0);
    assert_true(is_let_go(w));
}

static void it_goes_before_nobody_any_more(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_PENDING, 1);

    keep_place(w, KEEP_PLACE_PRIORITY);
    fail_with_node(w, "n2");
    answer(w, INTENT_REQUEUE, OUTCOME_DONE);
    l.begin = w->now + 121 * S;
    l.outranked = true;
    look_at(w, l);
    assert_true(world_intent(w, INTENT_AMEND)->intended.first);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    l.outranked = false;
    l.n_kept_out = 1;
    STR_COPY(l.kept_out[0], "n2");
    look_at(w, l);
    set_mode(w, MODE_OFF);
    assert_int_equal(asked(w, INTENT_YIELD), 1);
    assert_int_equal(asked(w, INTENT_AMEND), 2);
    answer(w, INTENT_YIELD, OUTCOME_DONE);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    l.n_kept_out = 0;
    look_at(w, l);
    assert_true(is_let_go(w));
}

static void nothing_is_taken_back_while_frozen(void **state)
{
    struct world *w = *state;

    guard(w);
    operate(w, REQUEST_FREEZE, 0);
    set_mode(w, MODE_OFF);
    look_at(w, held(SCHED_RUNNING, 0));
    world_wait(w, MIN);
    assert_int_equal(asked(w, INTENT_RELEASE), 0);
    assert_false(is_let_go(w));
    operate(w, REQUEST_THAW, 0);
    assert_int_equal(asked(w, INTENT_RELEASE), 1);
}

/* Again */

static void the_same_attempt_is_watched_again(void **state)
{
    struct world *w = *state;

    set_mode(w, MODE_OFF);
    set_mode(w, MODE_ACT);
    assert_int_equal(state_of(w), JOB_ENDED);
    world_feed(w, (struct event){.kind = EVENT_TICK});
    w->attempt--; /* world_start() counts */
    world_start(w);
    assert_int_equal(state_of(w), JOB_RUNNING);
    assert_int_equal(world_job(w)->attempt.number, 1);
    assert_int_equal(world_job(w)->ledger.restarts, 0);
    fail_job(w);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

static void its_budget_is_what_it_was(void **state)
{
    struct world *w = *state;

    fail_job(w);
    grant_requeue(w, w->now);
    begin_attempt(w);
    assert_int_equal(world_job(w)->ledger.restarts, 1);
    set_mode(w, MODE_OFF);
    set_mode(w, MODE_ACT);
    w->attempt--;
    world_start(w);
    assert_int_equal(world_job(w)->attempt.number, 2);
    assert_int_equal(world_job(w)->ledger.restarts, 1);
}

static void what_has_ended_since_is_not_taken_up_again(void **state)
{
    struct world *w = *state;

    set_mode(w, MODE_OFF);
    look(w, SCHED_FAILED, 0);
    set_mode(w, MODE_ACT);
    world_die(w, 1);
    world_wait(w, MIN);
    assert_int_equal(state_of(w), JOB_ENDED);
    assert_int_equal(asked_anything(w), 0);
    w->attempt--;
    world_start(w); /* no second beginning of what is over */
    assert_int_equal(state_of(w), JOB_ENDED);
    begin_attempt(w);
    assert_int_equal(state_of(w), JOB_RUNNING);
    assert_int_equal(world_job(w)->attempt.number, 2);
}

static void who_is_wanted_again_in_time_was_never_gone(void **state)
{
    struct world *w = *state;

    guard(w);
    set_mode(w, MODE_OFF);
    set_mode(w, MODE_ACT);
    assert_int_equal(state_of(w), JOB_RUNNING);
    assert_int_equal(world_count(w, EVENT_JOB_ENDED), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN(act, who_runs_is_let_go_at_once),
        IN(act, of_who_ends_nothing_is_judged),
        WORLD_TEST(who_has_not_begun_is_let_go),
        IN(act, what_was_decided_is_not_done),
        IN(act, what_was_asked_for_is_awaited),
        IN(act, a_doubt_ends_with_its_time),
        IN(act, a_hold_is_taken_back_first),
        IN(act, a_hold_that_cannot_be_taken_back_is_not_left),
        IN(act, a_hold_ends_with_its_time_though_the_node_stays_lost),
        IN(act, likewise_of_who_is_only_observed),
        IN(act, a_hold_that_comes_late_is_taken_back),
        IN(act, a_hold_of_others_is_left),
        IN(act, what_it_was_amended_by_is_taken_back),
        IN(act, a_start_that_was_moved_away_is_moved_back),
        IN(act, another_start_by_its_user_is_left),
        IN(act, its_reservation_is_given_back),
        IN(act, it_goes_before_nobody_any_more),
        IN(act, nothing_is_taken_back_while_frozen),
        IN(act, the_same_attempt_is_watched_again),
        IN(act, its_budget_is_what_it_was),
        IN(act, what_has_ended_since_is_not_taken_up_again),
        IN(act, who_is_wanted_again_in_time_was_never_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
