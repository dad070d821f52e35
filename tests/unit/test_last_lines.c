/* SPDX-License-Identifier: Apache-2.0 */

/* The last lines of an attempt that a scheduler ended are waited for as long as somebody reads
 * them; the time in which nobody did is not held against them, but has a limit. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched_world.h"

#include "base/str.h"

static void tell(struct world *w, enum event_kind kind)
{
    struct event e = of_job(w, kind);

    e.attempt = w->attempt;
    world_feed(w, e);
}

/* It ended, and what it wrote last is not read yet. */
static void end_unread(struct world *w)
{
    look(w, SCHED_FAILED, w->attempt - 1);
    world_exit(w, 1, 0);
    tell(w, EVENT_ATTEMPT_GONE);
    assert_int_equal(world_job(w)->state, JOB_ENDING);
}

static void read_the_reason(struct world *w)
{
    world_root(w, "cuda.ecc", CAUSE_GPU_HARDWARE);
}

static int verdicts(const struct world *w)
{
    return world_count(w, EVENT_VERDICT);
}

static void check_cause(const struct world *w, enum cause cause)
{
    assert_int_equal(verdicts(w), 1);
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.cause, cause);
}

static void who_reads_all_along_has_two_seconds(void **state)
{
    struct world *w = *state;

    end_unread(w);
    world_wait(w, 2 * S - 1);
    assert_int_equal(verdicts(w), 0);
    world_wait(w, 1);
    check_cause(w, CAUSE_UNKNOWN);
}

/* reknitd was killed, and started anew 3 s after the interruption. */
static void a_restart_does_not_use_up_the_wait(void **state)
{
    struct world *w = *state;

    end_unread(w);
    w->now += 3 * S;
    tell(w, EVENT_LOGS_UNREAD);
    look(w, SCHED_FAILED, w->attempt - 1); /* as the first look shows it */
    world_wait(w, 3 * S);
    assert_int_equal(verdicts(w), 0);
    tell(w, EVENT_LOGS_READ);
    world_wait(w, S);
    read_the_reason(w);
    world_wait(w, S - 1);
    assert_int_equal(verdicts(w), 0);
    world_wait(w, 1);
    check_cause(w, CAUSE_GPU_HARDWARE);
}

static void what_is_read_to_its_end_is_judged_at_once(void **state)
{
    struct world *w = *state;

    end_unread(w);
    tell(w, EVENT_LOGS_UNREAD);
    world_wait(w, 5 * S);
    tell(w, EVENT_LOGS_READ);
    read_the_reason(w);
    tell(w, EVENT_LOGS_DRAINED);
    check_cause(w, CAUSE_GPU_HARDWARE);
}

static void if_nobody_comes_it_is_judged_all_the_same(void **state)
{
    struct world *w = *state;

    end_unread(w);
    world_wait(w, S);
    tell(w, EVENT_LOGS_UNREAD);
    world_wait(w, 30 * S - 1);
    assert_int_equal(verdicts(w), 0);
    world_wait(w, 1);
    check_cause(w, CAUSE_UNKNOWN);
}

static void who_comes_just_before_the_limit_does_not_move_it(void **state)
{
    struct world *w = *state;

    end_unread(w);
    tell(w, EVENT_LOGS_UNREAD);
    world_wait(w, 29 * S);
    tell(w, EVENT_LOGS_READ);
    world_wait(w, S);
    assert_int_equal(verdicts(w), 1);
}

/* Each reknitd has the whole of the limit: the last one may have been away for hours. */
static void another_restart_begins_the_limit_anew(void **state)
{
    struct world *w = *state;

    end_unread(w);
    tell(w, EVENT_LOGS_UNREAD);
    w->now += USEC_PER_HOUR;
    tell(w, EVENT_LOGS_UNREAD);
    world_wait(w, 30 * S - 1);
    assert_int_equal(verdicts(w), 0);
    world_wait(w, 1);
    assert_int_equal(verdicts(w), 1);
}

static void who_wants_no_wait_has_none(void **state)
{
    struct world *w = *state;
    struct policy p;

    policy_default(&p);
    p.verdict_wait = 0;
    world_policy(w, &p);
    look(w, SCHED_FAILED, 0);
    world_exit(w, 1, 0);
    assert_int_equal(verdicts(w), 1);
}

static void it_is_of_no_interest_at_any_other_time(void **state)
{
    struct world *w = *state;
    uint64_t refused = core_model(w->core)->refused;

    tell(w, EVENT_LOGS_READ); /* nobody said that it was not */
    end_unread(w);
    tell(w, EVENT_LOGS_READ); /* nobody said that it was not */
    tell(w, EVENT_LOGS_DRAINED);
    tell(w, EVENT_LOGS_UNREAD); /* it is judged */
    assert_int_equal(core_model(w->core)->refused, refused + 3);
    assert_int_equal(world_job(w)->attempt.unread_at, 0);
}

/* What was taken for the end was read to its end; what the attempt writes after that is not. */
static void the_lines_of_an_end_that_was_none_are_not_the_last(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_EXIT, PROVENANCE_SPANK);

    world_step(w, 1);
    STR_COPY(s.who.node, "n3");
    STR_COPY(s.who.tasks, "2");
    s.exit.code = 1;
    world_signal(w, s);
    while (world_job(w)->state == JOB_RUNNING)
        world_wait(w, S);
    assert_int_equal(world_job(w)->state, JOB_ENDING);
    tell(w, EVENT_LOGS_DRAINED);
    assert_int_equal(world_job(w)->state, JOB_DECIDED);
    world_wait(w, MIN);
    world_step(w, 2);
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
    end_unread(w);
    assert_int_equal(verdicts(w), 1);
    read_the_reason(w);
    tell(w, EVENT_LOGS_DRAINED);
    assert_int_equal(verdicts(w), 2);
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.cause, CAUSE_GPU_HARDWARE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN(act, who_reads_all_along_has_two_seconds),
        IN(act, a_restart_does_not_use_up_the_wait),
        IN(act, what_is_read_to_its_end_is_judged_at_once),
        IN(act, if_nobody_comes_it_is_judged_all_the_same),
        IN(act, who_comes_just_before_the_limit_does_not_move_it),
        IN(act, another_restart_begins_the_limit_anew),
        IN(act, who_wants_no_wait_has_none),
        IN(act, it_is_of_no_interest_at_any_other_time),
        IN(propose, the_lines_of_an_end_that_was_none_are_not_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
