/* SPDX-License-Identifier: Apache-2.0 */

/* A node of the job does not answer: what ran there may still run. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched_world.h"

#include "base/str.h"

#include <string.h>

/* A look while n2 is lost. */
static struct look_facts lost(enum sched_state state, uint32_t restarts)
{
    struct look_facts l = facts_of(state, restarts);

    STR_COPY(l.lost_node, "n2");
    return l;
}

static void look_lost(struct world *w, enum sched_state state, uint32_t restarts, bool held)
{
    struct look_facts l = lost(state, restarts);

    l.held = held;
    look_at(w, l);
}

static void fenced(struct world *w, const char *node)
{
    struct event e = of_job(w, EVENT_FENCED);

    STR_COPY(e.fenced.node, node);
    world_feed(w, e);
}

/* The job is guarded, n2 is given up, and the scheduler has queued it again by itself. */
static void lose_and_requeue(struct world *w, usec_t begin)
{
    struct look_facts l = lost(SCHED_PENDING, 1);

    look_lost(w, SCHED_RUNNING, 0, false);
    answer(w, INTENT_GUARD, OUTCOME_DONE);
    look_lost(w, SCHED_RUNNING, 0, true);
    l.held = true;
    l.begin = begin;
    look_at(w, l);
    world_root(w, "scheduler.node_fail", CAUSE_NODE_FAILURE);
    world_gone(w);
    world_wait(w, 3 * S);
    assert_true(action_restarts(world_decision(w)->action));
}

static void a_running_job_is_guarded_once(void **state)
{
    struct world *w = *state;

    look_lost(w, SCHED_RUNNING, 0, false);
    assert_int_equal(asked(w, INTENT_GUARD), 1);
    world_wait(w, 5 * S);
    answer(w, INTENT_GUARD, OUTCOME_DONE);
    look_lost(w, SCHED_RUNNING, 0, true);
    world_wait(w, 10 * S);
    assert_int_equal(asked(w, INTENT_GUARD), 1);
    assert_int_equal(asked(w, INTENT_RELEASE), 0);
}

static void the_guard_ends_when_the_node_is_back(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_RUNNING, 0);

    look_lost(w, SCHED_RUNNING, 0, false);
    answer(w, INTENT_GUARD, OUTCOME_DONE);
    look_lost(w, SCHED_RUNNING, 0, true);
    l.held = true;
    look_at(w, l);
    assert_int_equal(asked(w, INTENT_RELEASE), 1);
}

/* Held by its user, it is none of ours to release. */
static void a_hold_of_others_is_left_alone(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_RUNNING, 0);

    look_lost(w, SCHED_RUNNING, 0, true);
    l.held = true;
    look_at(w, l);
    assert_int_equal(asked_anything(w), 0);
}

static void who_is_only_observed_is_not_guarded(void **state)
{
    struct world *w = *state;

    look_lost(w, SCHED_RUNNING, 0, false);
    assert_int_equal(asked_anything(w), 0);
}

static void its_start_is_moved_before_it_is_released(void **state)
{
    struct world *w = *state;
    struct look_facts l = lost(SCHED_PENDING, 1);
    const struct intent_facts *f;

    lose_and_requeue(w, w->now + 2 * MIN);
    assert_int_equal(asked(w, INTENT_RELEASE), 0);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    f = &world_intent(w, INTENT_AMEND)->intended;
    assert_true(f->not_before >= w->now + 9 * MIN);
    l.held = true;
    l.begin = f->not_before;
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    look_at(w, l);
    assert_int_equal(asked(w, INTENT_RELEASE), 1);
}

/* The job waits, released, far from its start. */
static struct look_facts wait_for_node(struct world *w)
{
    struct look_facts l = lost(SCHED_PENDING, 1);

    lose_and_requeue(w, w->now + 2 * MIN);
    answer(w, INTENT_AMEND, OUTCOME_DONE);
    l.held = true;
    l.begin = world_intent(w, INTENT_AMEND)->intended.not_before;
    look_at(w, l);
    answer(w, INTENT_RELEASE, OUTCOME_DONE);
    l.held = false;
    look_at(w, l);
    return l;
}

static void it_is_moved_again_and_again(void **state)
{
    struct world *w = *state;
    struct look_facts l = wait_for_node(w);

    for (int i = 0; i < 20; i++) { /* hours */
        usec_t begin = l.begin;

        world_wait(w, 8 * MIN);
        l.begin = world_intent(w, INTENT_AMEND)->intended.not_before;
        assert_true(l.begin > begin && l.begin > w->now);
        answer(w, INTENT_AMEND, OUTCOME_DONE);
        look_at(w, l);
    }
}

static void expect_start_now(struct world *w)
{
    const struct event *e = world_intent(w, INTENT_AMEND);

    assert_true(e->intended.not_before <= w->now + S);
    assert_true(e->time_us + S >= w->now);
}

static void it_starts_when_the_node_is_fenced(void **state)
{
    struct world *w = *state;
    struct look_facts l = wait_for_node(w);

    world_wait(w, MIN);
    fenced(w, "n3"); /* another one */
    assert_true(world_intent(w, INTENT_AMEND)->intended.not_before > w->now + MIN);
    fenced(w, "n2");
    look_at(w, l);
    expect_start_now(w);
}

/* Which of them a look names is not known beforehand. */
static void it_starts_when_all_lost_nodes_are_fenced(void **state)
{
    struct world *w = *state;
    struct look_facts l = wait_for_node(w);
    int amended;

    world_wait(w, MIN);
    amended = asked(w, INTENT_AMEND);
    fenced(w, "n2");
    assert_int_equal(asked(w, INTENT_AMEND), amended); /* not before it was looked again */
    STR_COPY(l.lost_node, "n3");
    look_at(w, l);
    assert_int_equal(asked(w, INTENT_AMEND), amended);
    answer(w, INTENT_FENCE, OUTCOME_DONE);
    look_at(w, l);
    assert_string_equal(world_intent(w, INTENT_FENCE)->intended.nodes[0], "n3");
    fenced(w, "n3");
    look_at(w, l);
    expect_start_now(w);
}

/* Whoever frees what is stale would free it else, and the scheduler start it beside itself. */
static void the_guard_lasts_while_the_node_is_lost(void **state)
{
    struct world *w = *state;

    look_lost(w, SCHED_RUNNING, 0, false);
    for (int i = 1; i <= 10; i++) {
        assert_int_equal(asked(w, INTENT_GUARD), i);
        answer(w, INTENT_GUARD, OUTCOME_DONE);
        look_lost(w, SCHED_RUNNING, 0, true);
        world_wait(w, GUARD_LIFE / 2);
    }
    assert_int_equal(asked(w, INTENT_RELEASE), 0);
}

/* That it was back for a moment proves nothing about the ranks that ran on. */
static void a_running_job_is_guarded_again(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_RUNNING, 0);

    look_lost(w, SCHED_RUNNING, 0, false);
    answer(w, INTENT_GUARD, OUTCOME_DONE);
    look_lost(w, SCHED_RUNNING, 0, true);
    l.held = true;
    look_at(w, l);
    answer(w, INTENT_RELEASE, OUTCOME_DONE);
    look(w, SCHED_RUNNING, 0);
    look_lost(w, SCHED_RUNNING, 0, false);
    assert_int_equal(asked(w, INTENT_GUARD), 2);
}

/* What a job prints about nodes must not make it wait: that holds for its own delay, too. */
static void text_about_a_lost_node_keeps_no_delay(void **state)
{
    struct world *w = *state;
    usec_t begin;

    world_step(w, 1);
    world_root(w, "some.text", CAUSE_NODE_FAILURE);
    end_attempt(w, SCHED_FAILED, 1);
    begin = w->now + 121 * S;
    grant_requeue(w, begin - begin % S);
    world_wait(w, 20 * S);
    assert_int_equal(asked(w, INTENT_AMEND), 1);
    assert_true(world_intent(w, INTENT_AMEND)->intended.not_before <= w->now);
}

static void a_privileged_word_of_it_keeps_the_delay(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_SCHEDULER);
    usec_t begin;

    s.role = ROLE_ROOT;
    s.cause = CAUSE_NODE_FAILURE;
    s.confidence = 98;
    STR_COPY(s.signature, "scheduler.node_fail");
    world_step(w, 1);
    world_signal(w, s);
    end_attempt(w, SCHED_FAILED, 1);
    begin = w->now + 121 * S;
    grant_requeue(w, begin - begin % S);
    world_wait(w, 2 * MIN);
    assert_int_equal(asked(w, INTENT_AMEND), 0);
}

/* ... and has had the time to end what it was told to end. */
static void it_starts_when_the_node_is_back(void **state)
{
    struct world *w = *state;
    struct look_facts l = wait_for_node(w);
    int before;

    world_wait(w, MIN);
    before = asked(w, INTENT_AMEND);
    l.lost_node[0] = '\0';
    look_at(w, l);
    world_wait(w, 44 * S);
    assert_int_equal(asked(w, INTENT_AMEND), before);
    world_wait(w, 2 * S);
    expect_start_now(w);
}

static void whether_it_is_fenced_is_asked_now_and_then(void **state)
{
    struct world *w = *state;

    wait_for_node(w);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(world_intent(w, INTENT_FENCE)->intended.nodes[0], "n2");
        answer(w, INTENT_FENCE, OUTCOME_FAILED);
        world_wait(w, 61 * S);
    }
    assert_in_range(asked(w, INTENT_FENCE), 3, 5);
}

/* It would wait out its delay in COMPLETING, and start as that ends. */
static void an_ended_job_is_requeued_when_it_is_complete(void **state)
{
    struct world *w = *state;
    struct look_facts l = lost(SCHED_FAILED, 0);

    world_step(w, 1);
    l.completing = true;
    look_at(w, l);
    world_root(w, "net.error", CAUSE_NETWORK);
    world_die(w, 1);
    world_wait(w, 5 * MIN);
    assert_int_equal(asked(w, INTENT_REQUEUE), 0);
    l.completing = false;
    look_at(w, l);
    world_wait(w, MIN);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

/* It waits, held, and its start does not move: the hold is all that keeps it from running twice. */
static void the_guard_lasts_while_its_start_does_not_move(void **state)
{
    struct world *w = *state;
    struct look_facts l = lost(SCHED_PENDING, 1);
    int before;

    lose_and_requeue(w, w->now + MIN);
    l.held = true;
    l.begin = w->now;
    before = asked(w, INTENT_GUARD);
    for (usec_t until = w->now + 2 * GUARD_LIFE; w->now < until; world_wait(w, S)) {
        if (job_awaits(world_job(w), INTENT_AMEND))
            answer(w, INTENT_AMEND, OUTCOME_DONE);
        if (job_awaits(world_job(w), INTENT_GUARD))
            answer(w, INTENT_GUARD, OUTCOME_DONE);
        look_at(w, l);
    }
    assert_in_range(asked(w, INTENT_GUARD) - before, 5, 7);
    assert_int_equal(asked(w, INTENT_RELEASE), 0);
}

/* The scheduler says "done" to every amendment and does what of it it likes: `begins`, `excludes`.
 * A look follows each answer at once, as in life. Returns how often it was asked in `span`. */
static int amend_in_vain(struct world *w, struct look_facts l, usec_t span, bool begins,
                         bool excludes)
{
    int before = asked(w, INTENT_AMEND);
    usec_t until = w->now + span;

    while (w->now < until) {
        if (job_awaits(world_job(w), INTENT_AMEND)) {
            const struct intent_facts *f = &world_intent(w, INTENT_AMEND)->intended;

            l.begin = begins ? f->not_before : l.begin;
            l.n_kept_out = excludes ? f->n_nodes : 0;
            memcpy(l.kept_out, f->nodes, sizeof(l.kept_out));
            answer(w, INTENT_AMEND, OUTCOME_DONE);
        } else if (job_awaits(world_job(w), INTENT_RELEASE)) {
            answer(w, INTENT_RELEASE, OUTCOME_DONE);
            l.held = false;
        }
        look_at(w, l);
        world_wait(w, 20 * USEC_PER_MSEC);
    }
    return asked(w, INTENT_AMEND) - before;
}

/* Its node n2 is proven guilty, and lost. required: by its user; "" = none. */
static struct look_facts lose_the_culprit(struct world *w, const char *required)
{
    struct look_facts l = lost(SCHED_RUNNING, 0);

    STR_COPY(l.required, required);
    look_at(w, l);
    answer(w, INTENT_GUARD, OUTCOME_DONE);
    l.held = true;
    look_at(w, l);
    l = lost(SCHED_PENDING, 1);
    STR_COPY(l.required, required);
    l.held = true;
    l.begin = w->now + 2 * MIN;
    look_at(w, l);
    blame_node(w, "n2");
    world_gone(w);
    world_wait(w, 3 * S);
    assert_true(action_restarts(world_decision(w)->action));
    return l;
}

static void a_required_node_stays_in(void **state)
{
    struct world *w = *state;
    struct look_facts l = lose_the_culprit(w, "n1,n2");

    assert_int_equal(world_decision(w)->action, ACTION_RESTART);
    assert_int_equal(world_decision(w)->n_nodes, 0);
    assert_non_null(strstr(world_decision(w)->why, "requires n2"));
    assert_in_range(amend_in_vain(w, l, 5 * MIN, true, true), 0, 2);
    assert_int_equal(asked(w, INTENT_RELEASE), 1);
}

/* The hold is taken back all the same. */
static void exclusions_that_are_never_granted_are_given_up(void **state)
{
    struct world *w = *state;
    struct look_facts l = lose_the_culprit(w, "");

    assert_int_equal(world_decision(w)->n_nodes, 1);
    assert_in_range(amend_in_vain(w, l, 6 * MIN, true, false), 3, 6);
    assert_int_equal(asked(w, INTENT_RELEASE), 1);
}

/* Too dangerous to be given up, so it is asked for again and again, but ever less often. */
static void a_start_that_does_not_move_is_asked_for_with_pauses(void **state)
{
    struct world *w = *state;
    struct look_facts l = lose_the_culprit(w, "");

    assert_in_range(amend_in_vain(w, l, 5 * MIN, false, true), 5, 14);
    assert_in_range(amend_in_vain(w, l, 10 * MIN, false, true), 8, 12);
    assert_int_equal(asked(w, INTENT_RELEASE), 0);
}

static void nodes_that_are_refused_while_one_is_lost_are_left_out(void **state)
{
    struct world *w = *state;
    struct look_facts l = lose_the_culprit(w, "");

    for (int i = 0; i < 2; i++) {
        assert_int_equal(world_intent(w, INTENT_AMEND)->intended.n_nodes, 1);
        answer(w, INTENT_AMEND, OUTCOME_FAILED);
        look_at(w, l);
    }
    world_wait(w, 2 * S);
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.n_nodes, 0);
    assert_in_range(amend_in_vain(w, l, 5 * MIN, true, true), 0, 3);
    assert_int_equal(asked(w, INTENT_RELEASE), 1);
}

static void a_release_that_is_refused_is_asked_for_with_pauses(void **state)
{
    struct world *w = *state;
    struct look_facts l = facts_of(SCHED_RUNNING, 0);

    look_lost(w, SCHED_RUNNING, 0, false);
    answer(w, INTENT_GUARD, OUTCOME_DONE);
    look_lost(w, SCHED_RUNNING, 0, true);
    l.held = true;
    look_at(w, l);
    for (usec_t until = w->now + 10 * MIN; w->now < until;) {
        if (job_awaits(world_job(w), INTENT_RELEASE))
            answer(w, INTENT_RELEASE, OUTCOME_FAILED);
        look_at(w, l);
        world_wait(w, 20 * USEC_PER_MSEC);
    }
    assert_in_range(asked(w, INTENT_RELEASE), 10, 20);
}

static void find_a_hold(struct world *w, enum mode mode, usec_t noted_until)
{
    struct look_facts l = lost(SCHED_RUNNING, 0);

    set_mode(w, mode);
    l.held = l.noted = true;
    l.noted_until = noted_until;
    look_at(w, l);
}

/* Its journal is lost: what it holds, it learns from its note. */
static void a_hold_that_is_found_lasts_as_long_as_its_note_says(void **state)
{
    struct world *w = *state;

    find_a_hold(w, MODE_OBSERVE, w->now + 4 * MIN);
    assert_int_equal(asked(w, INTENT_RELEASE), 0);
    world_wait(w, 4 * MIN - 2 * S);
    assert_int_equal(asked(w, INTENT_RELEASE), 0);
    world_wait(w, 3 * S);
    assert_int_equal(asked(w, INTENT_RELEASE), 1);
}

static void a_hold_that_is_found_without_a_time_lasts_as_a_new_one(void **state)
{
    struct world *w = *state;

    find_a_hold(w, MODE_PROPOSE, 0);
    world_wait(w, GUARD_LIFE - 2 * S);
    assert_int_equal(asked(w, INTENT_RELEASE), 0);
    world_wait(w, 3 * S);
    assert_int_equal(asked(w, INTENT_RELEASE), 1);
}

static void a_hold_that_is_found_after_its_time_is_taken_back(void **state)
{
    struct world *w = *state;

    find_a_hold(w, MODE_OBSERVE, w->now - S);
    assert_int_equal(asked(w, INTENT_RELEASE), 1);
}

static void a_hold_that_is_found_is_lengthened_in_time(void **state)
{
    struct world *w = *state;

    find_a_hold(w, MODE_ACT, w->now + 4 * MIN);
    world_wait(w, S);
    assert_int_equal(asked(w, INTENT_GUARD), 1);
    assert_int_equal(asked(w, INTENT_RELEASE), 0);
}

/* More of them than can be remembered: asked about now and then, not all the time. */
static void many_fenced_nodes_make_no_loop(void **state)
{
    struct world *w = *state;
    struct look_facts l = wait_for_node(w);
    int before;

    for (int i = 0; i < FENCED_MAX + 1; i++) {
        STR_PRINTF(l.lost_node, "n%d", 100 + i);
        look_at(w, l);
        fenced(w, l.lost_node);
        if (job_awaits(world_job(w), INTENT_FENCE))
            answer(w, INTENT_FENCE, OUTCOME_DONE);
    }
    before = asked(w, INTENT_FENCE);
    for (usec_t until = w->now + 5 * MIN; w->now < until;) {
        if (job_awaits(world_job(w), INTENT_FENCE)) {
            fenced(w, l.lost_node);
            answer(w, INTENT_FENCE, OUTCOME_DONE);
        }
        look_at(w, l);
        world_wait(w, 20 * USEC_PER_MSEC);
    }
    assert_in_range(asked(w, INTENT_FENCE) - before, 3, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN(act, a_running_job_is_guarded_once),
        IN(act, the_guard_ends_when_the_node_is_back),
        IN(act, a_hold_of_others_is_left_alone),
        IN(observe, who_is_only_observed_is_not_guarded),
        IN(propose, who_is_only_observed_is_not_guarded),
        IN(act, its_start_is_moved_before_it_is_released),
        IN(act, it_is_moved_again_and_again),
        IN(act, it_starts_when_the_node_is_fenced),
        IN(act, it_starts_when_all_lost_nodes_are_fenced),
        IN(act, the_guard_lasts_while_the_node_is_lost),
        IN(act, a_running_job_is_guarded_again),
        IN(act, text_about_a_lost_node_keeps_no_delay),
        IN(act, a_privileged_word_of_it_keeps_the_delay),
        IN(act, it_starts_when_the_node_is_back),
        IN(act, whether_it_is_fenced_is_asked_now_and_then),
        IN(act, an_ended_job_is_requeued_when_it_is_complete),
        IN(act, the_guard_lasts_while_its_start_does_not_move),
        IN(act, a_required_node_stays_in),
        IN(act, exclusions_that_are_never_granted_are_given_up),
        IN(act, a_start_that_does_not_move_is_asked_for_with_pauses),
        IN(act, nodes_that_are_refused_while_one_is_lost_are_left_out),
        IN(act, a_release_that_is_refused_is_asked_for_with_pauses),
        IN(act, a_hold_that_is_found_lasts_as_long_as_its_note_says),
        IN(act, a_hold_that_is_found_without_a_time_lasts_as_a_new_one),
        IN(act, a_hold_that_is_found_after_its_time_is_taken_back),
        IN(act, a_hold_that_is_found_is_lengthened_in_time),
        IN(act, many_fenced_nodes_make_no_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
