/* SPDX-License-Identifier: Apache-2.0 */

/* The life of a job: from start to end, through every row of the state machine. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core_world.h"

#include <signal.h>
#include <string.h>

static int setup(void **state)
{
    struct world *w = test_calloc(1, sizeof(*w));

    world_init(w);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    _cleanup_(core_freep) struct core *folded = world_folded(w, w->log.n);

    /* Whatever a test did: a restart folds the journal into the same state. */
    assert_string_equal(states_differ(w->core, folded), "");
    world_done(w);
    test_free(w);
    return 0;
}

static void exit_0_completes_the_job(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_root(w, "scary", CAUSE_GPU_HARDWARE);
    world_wait(w, 10 * USEC_PER_SEC);
    world_die(w, 0);
    assert_null(world_last(w, EVENT_INTERRUPTED));
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.class, CLASS_HEALTHY);
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "completed");
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.action, ACTION_COMPLETE);
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 0);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    assert_int_equal(core_deadline(w->core), USEC_NEVER);
    assert_null(world_intent(w, INTENT_KILL));
}

static void a_crash_is_interrupted_judged_decided_and_restarted(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_step(w, 1);
    world_exit(w, 1, 0);
    assert_string_equal(world_last(w, EVENT_FINDING)->finding.why, "it ended with status 1");
    assert_non_null(world_last(w, EVENT_INTERRUPTED));
    assert_null(world_last(w, EVENT_VERDICT)); /* its last lines are awaited */
    world_gone(w);
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.class, CLASS_CRASH);
    assert_int_equal(world_last(w, EVENT_DECISION)->decision.action, ACTION_RESTART);
    assert_int_equal(world_intent(w, INTENT_START)->attempt, 2);
    assert_int_equal(world_intent(w, INTENT_START)->intended.not_before,
                     w->now + 10 * USEC_PER_SEC);
    assert_int_equal(world_job(w)->state, JOB_STARTING);
    assert_null(world_intent(w, INTENT_KILL));
    world_wait(w, 10 * USEC_PER_SEC);
    world_start(w);
    assert_int_equal(world_job(w)->state, JOB_RUNNING);
    world_die(w, 0);
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 0);
}

static void a_verdict_does_not_wait_for_logs_forever(void **state)
{
    struct world *w = *state;

    world_start(w);
    world_exit(w, 1, 0);
    world_feed(w, (struct event){.kind = EVENT_ATTEMPT_GONE, .job = "train", .attempt = 1});
    world_wait(w, 2 * USEC_PER_SEC - 1);
    assert_null(world_last(w, EVENT_VERDICT));
    world_wait(w, 1);
    assert_non_null(world_last(w, EVENT_VERDICT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exit_0_completes_the_job, setup, teardown),
        cmocka_unit_test_setup_teardown(a_crash_is_interrupted_judged_decided_and_restarted, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_verdict_does_not_wait_for_logs_forever, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
