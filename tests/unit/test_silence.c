/* SPDX-License-Identifier: Apache-2.0 */

/* Time in which nobody read the logs of a running attempt is no silence of it: reknitd was away, a
 * reader was dead or hung. What is silent from then on, when it is read again, is found. Likewise
 * the time in which its scheduler had suspended it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched_world.h"

#include "base/str.h"

#include <string.h>

static void tell(struct world *w, enum event_kind kind)
{
    struct event e = of_job(w, kind);

    e.attempt = w->attempt;
    world_feed(w, e);
}

static void run(struct world *w, int64_t from, int64_t to)
{
    for (int64_t step = from; step <= to; step++) {
        world_wait(w, 5 * S);
        world_step(w, step);
    }
}

/* reknitd was killed; the next one looks before it reads. */
static void be_away(struct world *w, usec_t span)
{
    w->now += span;
    tell(w, EVENT_LOGS_UNREAD);
    look(w, SCHED_RUNNING, w->attempt - 1);
    world_wait(w, 3 * S);
}

static void task_dies(struct world *w)
{
    struct signal s = signal_make(SIGNAL_EXIT, PROVENANCE_SPANK);

    STR_COPY(s.who.node, "n3");
    STR_COPY(s.who.tasks, "2");
    s.exit.code = 1;
    world_signal(w, s);
}

static void check_untouched(const struct world *w)
{
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
    assert_int_equal(world_count(w, EVENT_INTERRUPTED), 0);
    assert_int_equal(asked(w, INTENT_REQUEUE), 0);
}

static usec_t wait_for_end(struct world *w, usec_t most)
{
    usec_t began = w->now;

    while (world_job(w)->state == JOB_RUNNING && w->now < began + most)
        world_wait(w, S);
    assert_int_not_equal(world_job(w)->state, JOB_RUNNING);
    return w->now - began;
}

static void what_got_over_an_error_while_reknitd_was_away_runs_on(void **state)
{
    struct world *w = *state;

    run(w, 1, 10);
    world_root(w, "net.link", CAUSE_NETWORK);
    world_wait(w, 20 * S);
    be_away(w, 18 * MIN);
    world_wait(w, 5 * MIN); /* the reader takes its time */
    check_untouched(w);
    tell(w, EVENT_LOGS_READ);
    world_wait(w, 30 * S);
    world_step(w, 150);
    world_wait(w, MIN);
    check_untouched(w);
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.finding, FINDING_RECOVERED);
}

static void what_is_dead_when_it_is_read_again_is_found(void **state)
{
    struct world *w = *state;
    const struct finding_facts *f;

    run(w, 1, 10);
    world_root(w, "net.link", CAUSE_NETWORK);
    be_away(w, 18 * MIN);
    tell(w, EVENT_LOGS_READ);
    assert_int_equal(wait_for_end(w, 10 * MIN), MIN);
    f = &world_last(w, EVENT_FINDING)->finding;
    assert_int_equal(f->finding, FINDING_CRASH);
    assert_int_equal(f->silent, MIN);
    assert_non_null(strstr(f->why, "no progress for 1min 00s after net.link"));
    tell(w, EVENT_LOGS_DRAINED);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

static void what_goes_on_without_a_task_runs_on(void **state)
{
    struct world *w = *state;

    run(w, 1, 10);
    task_dies(w);
    world_wait(w, 5 * S);
    be_away(w, 10 * S);
    tell(w, EVENT_LOGS_READ);
    for (int64_t step = 20; step < 26; step++) { /* slower than before */
        world_wait(w, 30 * S);
        world_step(w, step);
    }
    check_untouched(w);
}

/* What is read then was written before it died, or behind that. */
static void the_last_steps_before_a_death_are_no_recovery(void **state)
{
    struct world *w = *state;

    run(w, 1, 10);
    task_dies(w);
    be_away(w, 10 * MIN);
    tell(w, EVENT_LOGS_READ);
    world_wait(w, S);
    world_step(w, 11);
    assert_int_equal(wait_for_end(w, 10 * MIN), MIN - S);
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.finding, FINDING_CRASH);
}

/* Nor does it take samples to find that out: a witness saw it die. */
static void that_it_looked_busy_before_saves_it_not(void **state)
{
    struct world *w = *state;

    run(w, 1, 10);
    world_sample(w, 10 * S, BUSY_SAMPLE(10 * S));
    task_dies(w);
    be_away(w, 10 * MIN);
    tell(w, EVENT_LOGS_READ);
    world_wait(w, S);
    world_step(w, 11);
    assert_int_equal(wait_for_end(w, 10 * MIN), MIN);
    assert_non_null(strstr(world_last(w, EVENT_FINDING)->finding.why, "task 2 on n3"));
}

static void nobody_comes_and_it_is_not_guessed(void **state)
{
    struct world *w = *state;

    run(w, 1, 10);
    world_root(w, "net.link", CAUSE_NETWORK);
    task_dies(w);
    tell(w, EVENT_LOGS_UNREAD);
    world_samples(w, 360, 10 * S, IDLE_SAMPLE);
    check_untouched(w);
}

static void an_end_that_others_saw_is_one_without_a_reader(void **state)
{
    struct world *w = *state;

    run(w, 1, 10);
    tell(w, EVENT_LOGS_UNREAD);
    world_wait(w, USEC_PER_HOUR);
    check_untouched(w);
    look(w, SCHED_FAILED, w->attempt - 1);
    world_exit(w, 1, 0);
    tell(w, EVENT_ATTEMPT_GONE);
    assert_int_equal(world_count(w, EVENT_INTERRUPTED), 1);
    world_wait(w, 30 * S - 1); /* somebody may yet come */
    assert_int_equal(world_count(w, EVENT_VERDICT), 0);
    world_wait(w, 1);
    assert_int_equal(world_count(w, EVENT_VERDICT), 1);
}

static void a_hang_is_counted_from_when_it_is_read_again(void **state)
{
    struct world *w = *state;
    usec_t timeout, read;

    run(w, 1, 20);
    world_samples(w, 5, 10 * S, IDLE_SAMPLE);
    be_away(w, USEC_PER_HOUR);
    tell(w, EVENT_LOGS_READ);
    read = w->now;
    while (world_job(w)->state == JOB_RUNNING && w->now < read + USEC_PER_HOUR)
        world_samples(w, 1, 10 * S, IDLE_SAMPLE);
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.finding, FINDING_HANG);
    timeout = world_last(w, EVENT_FINDING)->finding.timeout;
    assert_in_range(w->now - read, timeout, timeout + 10 * S);
    assert_in_range(world_last(w, EVENT_FINDING)->finding.silent, timeout, timeout + 10 * S);
}

static void a_reader_that_is_lost_again_and_again_proves_nothing(void **state)
{
    struct world *w = *state;

    run(w, 1, 10);
    world_root(w, "net.link", CAUSE_NETWORK);
    for (int i = 0; i < 60; i++) {
        tell(w, EVENT_LOGS_UNREAD);
        world_samples(w, 3, 10 * S, IDLE_SAMPLE);
        tell(w, EVENT_LOGS_READ);
        world_samples(w, 3, 10 * S, IDLE_SAMPLE);
    }
    check_untouched(w);
}

static void time_in_which_nobody_read_teaches_nothing(void **state)
{
    struct world *w = *state;
    const struct timing *t = &world_job(w)->timing;
    usec_t first;

    run(w, 1, 10);
    first = t->first_step;
    world_phase(w, PHASE_EVALUATION, EDGE_BEGIN);
    be_away(w, USEC_PER_HOUR);
    tell(w, EVENT_LOGS_READ);
    world_phase(w, PHASE_EVALUATION, EDGE_END);
    world_step(w, 700);
    assert_int_equal(t->present.longest, 5 * S);
    assert_int_equal(t->phase[PHASE_EVALUATION], 0);
    run(w, 701, 703);
    assert_int_equal(t->present.n, 12);
    end_attempt(w, SCHED_FAILED, 1);
    world_wait(w, 3 * S);
    begin_attempt(w);
    be_away(w, USEC_PER_HOUR);
    tell(w, EVENT_LOGS_READ);
    world_step(w, 704);
    assert_int_equal(t->first_step, first);
}

/* By a person, or because another job is to run first. */
static void be_suspended(struct world *w, usec_t span)
{
    struct activity_fact stopped = {.processes = 4, .stopped = 4};

    look(w, SCHED_SUSPENDED, w->attempt - 1);
    world_samples(w, (int)(span / (10 * S)), 10 * S, stopped);
}

static void who_is_suspended_does_not_hang(void **state)
{
    struct world *w = *state;
    usec_t resumed;

    run(w, 1, 20);
    be_suspended(w, USEC_PER_HOUR);
    check_untouched(w);
    assert_int_equal(world_count(w, EVENT_FINDING), 0);
    assert_int_equal(world_job(w)->attempt.streaks.stopped, 0);
    look(w, SCHED_RUNNING, w->attempt - 1);
    resumed = w->now;
    while (world_job(w)->state == JOB_RUNNING && w->now < resumed + USEC_PER_HOUR)
        world_samples(w, 1, 10 * S, IDLE_SAMPLE);
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.finding, FINDING_HANG);
    assert_in_range(w->now - resumed, 2 * MIN, 2 * MIN + 10 * S);
}

static void who_is_suspended_cannot_get_over_an_error(void **state)
{
    struct world *w = *state;

    run(w, 1, 10);
    world_root(w, "net.link", CAUSE_NETWORK);
    task_dies(w);
    be_suspended(w, USEC_PER_HOUR);
    check_untouched(w);
    look(w, SCHED_RUNNING, w->attempt - 1);
    world_wait(w, 30 * S);
    world_step(w, 11);
    world_wait(w, MIN);
    check_untouched(w);
}

static void who_is_suspended_again_and_again_is_left_alone(void **state)
{
    struct world *w = *state;

    run(w, 1, 10);
    for (int i = 0; i < 60; i++) {
        be_suspended(w, 30 * S);
        look(w, SCHED_RUNNING, w->attempt - 1);
        world_samples(w, 3, 10 * S, IDLE_SAMPLE);
    }
    check_untouched(w);
}

static void time_in_which_it_was_suspended_teaches_nothing(void **state)
{
    struct world *w = *state;
    const struct timing *t = &world_job(w)->timing;

    run(w, 1, 10);
    world_phase(w, PHASE_EVALUATION, EDGE_BEGIN);
    be_suspended(w, USEC_PER_HOUR);
    world_phase(w, PHASE_EVALUATION, EDGE_END); /* it runs again, as no look has shown */
    world_step(w, 11);
    world_wait(w, S);
    look(w, SCHED_RUNNING, w->attempt - 1);
    world_wait(w, 2 * S);
    world_step(w, 12);
    assert_int_equal(t->present.n, 9);
    assert_int_equal(t->present.longest, 5 * S);
    assert_int_equal(t->phase[PHASE_EVALUATION], 0);
    run(w, 13, 15);
    assert_int_equal(t->present.n, 12);
}

static void who_ends_while_it_is_suspended_has_ended(void **state)
{
    struct world *w = *state;

    run(w, 1, 10);
    be_suspended(w, MIN);
    end_attempt(w, SCHED_NODE_FAIL, 1);
    assert_int_equal(world_count(w, EVENT_INTERRUPTED), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN(act, what_got_over_an_error_while_reknitd_was_away_runs_on),
        IN(act, what_is_dead_when_it_is_read_again_is_found),
        IN(act, what_goes_on_without_a_task_runs_on),
        IN(act, the_last_steps_before_a_death_are_no_recovery),
        IN(act, that_it_looked_busy_before_saves_it_not),
        IN(act, nobody_comes_and_it_is_not_guessed),
        IN(act, an_end_that_others_saw_is_one_without_a_reader),
        IN(act, a_hang_is_counted_from_when_it_is_read_again),
        IN(act, a_reader_that_is_lost_again_and_again_proves_nothing),
        IN(act, time_in_which_nobody_read_teaches_nothing),
        IN(act, who_is_suspended_does_not_hang),
        IN(act, who_is_suspended_cannot_get_over_an_error),
        IN(act, who_is_suspended_again_and_again_is_left_alone),
        IN(act, time_in_which_it_was_suspended_teaches_nothing),
        IN(act, who_ends_while_it_is_suspended_has_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
