/* SPDX-License-Identifier: Apache-2.0 */

/* What a scheduler's record means for a real core, told again and again until core has taken it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/core.h"
#include "source/sched_events.h"

#include <stdlib.h>

#define KEY "42-1700000000"

struct world {
    struct core *core;
    struct core_output out;
    struct sched_job *record;
    uint64_t seq;
    usec_t now;
    unsigned told[EVENT_MAX], asked;
};

static const struct job *job(const struct world *w)
{
    return model_job(core_model(w->core), KEY);
}

static void feed(struct world *w, struct event e)
{
    e.seq = ++w->seq;
    e.time_us = w->now += USEC_PER_SEC;
    STR_COPY(e.job, KEY);
    w->told[e.kind]++;
    core_step(w->core, &e, &w->out);
    VEC_FOREACH (&w->out.events, d) {
        w->seq = d->seq;
        w->asked += d->kind == EVENT_INTENT;
    }
}

static void take(void *ctx, const struct event *e)
{
    feed(ctx, *e);
}

static void set_mode(struct world *w, enum mode mode)
{
    feed(w, (struct event){.kind = EVENT_MODE, .mode = {.mode = mode}});
}

/* Until there is nothing left to tell. */
static void look(struct world *w)
{
    struct sched_around around = {.down_node = "", .lost_node = ""};
    int n = 0;

    while (sched_translate(w->record, &around, job(w), KEY, take, w))
        assert_true(++n < 8);
    assert_int_equal(core_model(w->core)->refused, 0);
}

/* As the scheduler tells of it from now on. */
static void becomes(struct world *w, const char *state, int restarts)
{
    bool waits = streq(state, "pending");
    struct err e = {0};
    json_t *r =
        json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:b, s:b, s:[s], s:s, s:{s:i, s:i}}", "id",
                  "42", "partition", waits ? "gpu,spare" : "gpu", "state", state, "restarts",
                  restarts, "submit", 1700000000, "eligible", 1700000000, "start",
                  waits ? 0 : 1700000010, "batch", 1, "requeue", 1, "nodes", "n1", "nodes_text",
                  waits ? "" : "n1", "exit", "code", streq(state, "failed") ? 1 : 0, "signal", 0);

    assert_non_null(r);
    sched_job_free(w->record);
    assert_int_equal(sched_job_parse(r, &w->record, &e), 0);
    json_decref(r);
}

static int set_up(void **state)
{
    struct world *w = xnew(struct world);

    w->core = core_new();
    w->now = USEC_PER_DAY;
    *state = w;
    becomes(w, "pending", 0);
    look(w);
    set_mode(w, MODE_ACT);
    look(w);
    assert_int_equal(job(w)->state, JOB_NEW);
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    core_free(w->core);
    core_output_done(&w->out);
    sched_job_free(w->record);
    free(w);
    return 0;
}

static void shows(struct world *w, const char *state, int restarts)
{
    becomes(w, state, restarts);
    look(w);
}

static void let_go(struct world *w)
{
    set_mode(w, MODE_OFF);
    assert_true(sched_is_let_go(job(w)));
}

static void watch_again(struct world *w)
{
    set_mode(w, MODE_ACT);
    look(w);
}

static void nothing_came_of_it(const struct world *w, unsigned attempts)
{
    assert_int_equal(w->told[EVENT_ATTEMPT_STARTED], attempts);
    assert_int_equal(w->told[EVENT_ATTEMPT_EXITED], 0);
    assert_int_equal(w->told[EVENT_ATTEMPT_GONE], 0);
    assert_int_equal(w->asked, 0);
    assert_int_equal(job(w)->state, JOB_ENDED);
}

static void what_fails_is_taken(void **state)
{
    struct world *w = *state;

    shows(w, "running", 0);
    shows(w, "failed", 0);
    assert_int_equal(w->told[EVENT_ATTEMPT_STARTED], 1);
    assert_int_equal(w->told[EVENT_ATTEMPT_EXITED], 1);
    assert_int_equal(job(w)->state, JOB_ENDING);
}

static void an_attempt_that_no_look_saw_run_is_taken(void **state)
{
    struct world *w = *state;

    shows(w, "failed", 0);
    assert_int_equal(w->told[EVENT_ATTEMPT_STARTED], 1);
    assert_int_equal(w->told[EVENT_ATTEMPT_EXITED], 1);
}

static void who_is_queued_again_while_he_runs_has_not_failed(void **state)
{
    struct world *w = *state;

    shows(w, "running", 0);
    shows(w, "pending", 1);
    assert_int_equal(w->told[EVENT_SIGNAL], 1);
    assert_int_equal(w->told[EVENT_ATTEMPT_GONE], 1);
    feed(w, (struct event){.kind = EVENT_LOGS_DRAINED, .attempt = 1});
    assert_int_equal(job(w)->attempt.incident.class, CLASS_INTERRUPTED);
    assert_int_equal(job(w)->attempt.incident.cause, CAUSE_PREEMPTION);
    assert_int_equal(job(w)->attempt.incident.n_evidence, 1);
    assert_int_equal(job(w)->attempt.decision.action, ACTION_WAIT);
    shows(w, "running", 1);
    assert_int_equal(job(w)->attempt.number, 2);
    assert_int_equal(job(w)->ledger.restarts, 0);
    assert_int_equal(w->asked, 0);
}

static void what_failed_after_it_was_let_go_waiting_is_not_caught_up_with(void **state)
{
    struct world *w = *state;

    let_go(w);
    becomes(w, "failed", 0);
    watch_again(w);
    nothing_came_of_it(w, 0);
    look(w);
    nothing_came_of_it(w, 0);
}

static void what_failed_after_it_was_let_go_running_is_not_caught_up_with(void **state)
{
    struct world *w = *state;

    shows(w, "running", 0);
    let_go(w);
    becomes(w, "failed", 0);
    watch_again(w);
    nothing_came_of_it(w, 1);
}

static void an_attempt_that_a_person_began_and_nobody_watched_is_not_caught_up_with(void **state)
{
    struct world *w = *state;

    shows(w, "running", 0);
    let_go(w);
    becomes(w, "failed", 1);
    watch_again(w);
    nothing_came_of_it(w, 1);
}

/* It had ended for core before nobody was to watch it. */
static void nor_is_one_of_a_job_that_had_ended_before(void **state)
{
    struct world *w = *state;

    shows(w, "running", 0);
    shows(w, "completed", 0);
    w->now += USEC_PER_HOUR;
    feed(w, (struct event){.kind = EVENT_TICK});
    assert_int_equal(job(w)->state, JOB_ENDED);
    let_go(w);
    becomes(w, "failed", 1);
    watch_again(w);
    assert_int_equal(w->told[EVENT_ATTEMPT_STARTED], 1);
    assert_int_equal(job(w)->state, JOB_ENDED);
}

static void who_runs_is_followed_again(void **state)
{
    struct world *w = *state;

    shows(w, "running", 0);
    let_go(w);
    watch_again(w);
    assert_int_equal(w->told[EVENT_ATTEMPT_STARTED], 2);
    assert_int_equal(job(w)->state, JOB_RUNNING);
    assert_false(job(w)->sched.let_go);
    shows(w, "failed", 0);
    assert_int_equal(job(w)->state, JOB_ENDING);
}

static void who_runs_anew_is_followed(void **state)
{
    struct world *w = *state;

    let_go(w);
    becomes(w, "running", 2);
    watch_again(w);
    assert_int_equal(job(w)->attempt.number, 3);
    assert_int_equal(job(w)->state, JOB_RUNNING);
}

/* Its failure is one that was watched, however short it ran. */
static void who_waits_when_it_is_watched_again_is_followed(void **state)
{
    struct world *w = *state;

    let_go(w);
    watch_again(w);
    shows(w, "failed", 0);
    assert_int_equal(w->told[EVENT_ATTEMPT_EXITED], 1);
    assert_int_equal(job(w)->state, JOB_ENDING);
}

static void who_is_queued_again_after_that_is_followed(void **state)
{
    struct world *w = *state;

    let_go(w);
    becomes(w, "failed", 0);
    watch_again(w);
    shows(w, "pending", 1);
    shows(w, "failed", 1);
    assert_int_equal(job(w)->attempt.number, 2);
    assert_int_equal(job(w)->state, JOB_ENDING);
}

/* It runs in one of those that it waits in; queued again it waits in all, and is counted there. */
static void where_it_ran_is_known_while_it_waits_again(void **state)
{
    struct world *w = *state;

    assert_string_equal(job(w)->sched.partition, "gpu,spare");
    shows(w, "running", 0);
    assert_string_equal(job(w)->sched.partition, "gpu");
    shows(w, "failed", 0);
    shows(w, "pending", 1);
    assert_string_equal(job(w)->sched.partition, "gpu");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_fails_is_taken),
        TEST(who_is_queued_again_while_he_runs_has_not_failed),
        TEST(where_it_ran_is_known_while_it_waits_again),
        TEST(an_attempt_that_no_look_saw_run_is_taken),
        TEST(what_failed_after_it_was_let_go_waiting_is_not_caught_up_with),
        TEST(what_failed_after_it_was_let_go_running_is_not_caught_up_with),
        TEST(an_attempt_that_a_person_began_and_nobody_watched_is_not_caught_up_with),
        TEST(nor_is_one_of_a_job_that_had_ended_before),
        TEST(who_runs_is_followed_again),
        TEST(who_runs_anew_is_followed),
        TEST(who_waits_when_it_is_watched_again_is_followed),
        TEST(who_is_queued_again_after_that_is_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
