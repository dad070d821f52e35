/* SPDX-License-Identifier: Apache-2.0 */

/* Detectors on a live attempt: what is a hang, what is not, and when. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/detect/detect.h"
#include "core_world.h"

#include <signal.h>
#include <string.h>

#define S   USEC_PER_SEC
#define MIN USEC_PER_MIN

/* n steps, `gap` apart, with busy samples. */
static void steps(struct world *w, int64_t from, int n, usec_t gap)
{
    for (int64_t i = from; i < from + n; i++) {
        world_wait(w, gap);
        world_sample(w, gap, BUSY_SAMPLE(gap));
        world_step(w, i);
    }
}

static enum finding last_finding(const struct world *w)
{
    const struct event *e = world_last(w, EVENT_FINDING);

    return e ? e->finding.finding : FINDING_INVALID;
}

static const char *last_why(const struct world *w)
{
    return world_last(w, EVENT_FINDING)->finding.why;
}

static usec_t allowed(const struct world *w)
{
    return hang_window(core_model(w->core), world_job(w)).timeout;
}

static void a_steady_job_that_goes_idle_hangs_after_t(void **state)
{
    struct world *w = *state;
    usec_t last;

    steps(w, 1, 100, 2 * S); /* 5 x 2 s is below the least, 2 min */
    last = w->now;
    assert_int_equal(allowed(w), 2 * MIN);
    world_samples(w, 14, 5 * S, IDLE_SAMPLE);
    assert_int_equal(world_count(w, EVENT_FINDING), 0);
    world_samples(w, 1, 5 * S, IDLE_SAMPLE); /* 72 s = 0.6 T */
    assert_int_equal(last_finding(w), FINDING_HANG_SUSPECTED);
    assert_int_equal(world_last(w, EVENT_FINDING)->time_us - last, 72 * S);
    assert_non_null(world_intent(w, INTENT_INSPECT));
    world_samples(w, 8, 5 * S, IDLE_SAMPLE);
    assert_int_equal(last_finding(w), FINDING_HANG_SUSPECTED);
    world_samples(w, 1, 5 * S, IDLE_SAMPLE);
    assert_int_equal(last_finding(w), FINDING_HANG);
    assert_int_equal(world_last(w, EVENT_FINDING)->time_us - last, 120 * S);
    assert_string_equal(last_why(w),
                        "no new step for 2min 00s (2min 00s allowed: hang.timeout_min); "
                        "its processes used no CPU time and did no I/O for 1min 55s");
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.silent, 120 * S);
    assert_int_equal(world_intent(w, INTENT_KILL)->intended.signal, SIGTERM);
    assert_int_equal(world_count_intents(w, INTENT_INSPECT), 1);
    assert_null(world_last(w, EVENT_VERDICT));
    world_exit(w, 0, SIGTERM);
    world_gone(w);
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.class, CLASS_HANG);
    assert_int_equal(world_last(w, EVENT_DECISION)->decision.action, ACTION_RESTART);
}

/* /proc/PID/io of a process that is not dumpable may not be read. */
static void who_may_do_io_unseen_is_not_idle(void **state)
{
    struct world *w = *state;
    struct activity_fact f = {.processes = 4, .cpu = USEC_PER_MSEC, .io = NUMBER_NONE};

    steps(w, 1, 100, 2 * S);
    world_samples(w, 200, 5 * S, f);
    assert_int_equal(last_finding(w), FINDING_HANG_UNPROVEN);
    assert_non_null(strstr(last_why(w), "use little CPU time, but their I/O cannot be seen"));
    assert_null(world_intent(w, INTENT_KILL));
    steps(w, 101, 1, S);
    world_samples(w, 200, 5 * S, f);
    assert_null(world_intent(w, INTENT_KILL));
}

static void no_cpu_time_at_all_for_long_proves_it(void **state)
{
    struct world *w = *state;
    struct activity_fact f = {.processes = 4, .io = NUMBER_NONE};

    steps(w, 1, 100, 2 * S);
    world_samples(w, 119, 5 * S, f);
    assert_null(world_intent(w, INTENT_KILL));
    world_samples(w, 1, 5 * S, f);
    assert_int_equal(last_finding(w), FINDING_HANG);
    assert_non_null(strstr(last_why(w), "its processes used no CPU time at all for 10min 00s"));
    assert_null(strstr(last_why(w), "I/O"));
}

static void one_stopped_rank_is_a_second_signal(void **state)
{
    struct world *w = *state;
    struct activity_fact f = SPIN_SAMPLE(5 * S); /* the others spin */

    steps(w, 1, 20, S);
    f.stopped = 1;
    world_samples(w, 24, 5 * S, f);
    assert_int_equal(last_finding(w), FINDING_HANG);
    assert_non_null(strstr(last_why(w), "1 of its 4 processes stopped"));
}

static void a_blocked_rank_beside_it_does_not_hide_a_stopped_one(void **state)
{
    struct world *w = *state;
    struct activity_fact f = SPIN_SAMPLE(5 * S);
    struct signal part = signal_make(SIGNAL_ACTIVITY, PROVENANCE_AGENT);

    part.who.rank = 3;
    part.activity = (struct activity_fact){.processes = 1, .blocked = 1};
    steps(w, 1, 20, S);
    f.stopped = 1;
    for (int i = 0; i < 24; i++) {
        world_wait(w, 5 * S);
        world_signal(w, part);
        world_sample(w, 5 * S, f);
    }
    assert_int_equal(last_finding(w), FINDING_HANG);
    assert_non_null(strstr(last_why(w), "1 of its 4 processes stopped"));
}

static void a_process_blocked_in_the_kernel_is_one_too(void **state)
{
    struct world *w = *state;
    struct activity_fact f = {.processes = 4, .blocked = 1, .io = 100000000};

    steps(w, 1, 20, S);
    world_samples(w, 24, 5 * S, f);
    assert_int_equal(last_finding(w), FINDING_HANG);
    assert_non_null(strstr(last_why(w), "1 of its 4 processes blocked in the kernel"));
}

static void silence_of_a_busy_job_is_extended_once_and_never_killed(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_samples(w, 24, 5 * S, BUSY_SAMPLE(5 * S));
    assert_int_equal(last_finding(w), FINDING_HANG_EXTENDED);
    assert_non_null(strstr(last_why(w), "its processes are busy; waiting once more as long"));
    world_samples(w, 24, 5 * S, BUSY_SAMPLE(5 * S));
    assert_int_equal(last_finding(w), FINDING_HANG_UNPROVEN);
    assert_non_null(
        strstr(last_why(w), "left running for now, ended if they do nothing for 36.0s"));
    world_samples(w, 1000, 5 * S, BUSY_SAMPLE(5 * S));
    assert_int_equal(world_count(w, EVENT_FINDING), 3);
    assert_null(world_intent(w, INTENT_KILL));
    /* ... until they stop working, too */
    world_samples(w, 8, 5 * S, IDLE_SAMPLE);
    assert_int_equal(last_finding(w), FINDING_HANG);
}

static void spinning_ranks_get_one_extension(void **state)
{
    struct world *w = *state;
    usec_t last;

    steps(w, 1, 20, 2 * MIN); /* T = 10 min */
    last = w->now;
    world_samples(w, 239, 5 * S, SPIN_SAMPLE(5 * S));
    assert_int_equal(last_finding(w), FINDING_HANG_EXTENDED);
    world_samples(w, 1, 5 * S, SPIN_SAMPLE(5 * S));
    assert_int_equal(last_finding(w), FINDING_HANG);
    assert_int_equal(world_last(w, EVENT_FINDING)->time_us - last, 20 * MIN);
    assert_non_null(strstr(last_why(w), "use CPU time, but neither read, write nor print"));
}

/* It might have been an evaluation that logs nothing: so it must last, however fast the steps are,
 * and next time it may last longer. */
static void fast_steps_are_no_reason_to_end_a_spinning_job_soon(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_samples(w, 119, 5 * S, SPIN_SAMPLE(5 * S));
    assert_int_equal(last_finding(w), FINDING_HANG_UNPROVEN);
    assert_non_null(strstr(last_why(w), ", or only burn CPU for 10min 00s"));
    world_samples(w, 1, 5 * S, SPIN_SAMPLE(5 * S));
    assert_int_equal(last_finding(w), FINDING_HANG); /* 10 min */
    world_exit(w, 0, SIGTERM);
    world_gone(w);
    world_wait(w, MIN);
    world_start(w);
    steps(w, 1, 1, S);
    assert_true(allowed(w) >= 15 * MIN);
}

/* The clock jumps over the moment of judgement: when it has spun long enough, it is a hang. */
static void spinning_may_be_proven_late(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_samples(w, 20, 5 * S, SPIN_SAMPLE(5 * S));
    world_wait(w, USEC_PER_HOUR);
    assert_int_equal(last_finding(w), FINDING_HANG_UNPROVEN);
    world_samples(w, 99, 5 * S, SPIN_SAMPLE(5 * S));
    assert_int_equal(last_finding(w), FINDING_HANG_UNPROVEN);
    world_samples(w, 1, 5 * S, SPIN_SAMPLE(5 * S));
    assert_int_equal(last_finding(w), FINDING_HANG);
}

static void spinning_with_output_proves_nothing(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    for (int i = 0; i < 100; i++) {
        world_samples(w, 1, 5 * S, SPIN_SAMPLE(5 * S));
        world_signal(w, signal_make(SIGNAL_OUTPUT, PROVENANCE_JOB_TEXT));
    }
    assert_int_equal(last_finding(w), FINDING_HANG_UNPROVEN);
    assert_null(world_intent(w, INTENT_KILL));
}

static void without_samples_nothing_is_killed(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_wait(w, 10 * USEC_PER_HOUR);
    assert_int_equal(last_finding(w), FINDING_HANG_UNPROVEN);
    assert_non_null(strstr(last_why(w), "too little is known about its processes"));
    assert_null(world_intent(w, INTENT_KILL));
    assert_int_equal(core_deadline(w->core), USEC_NEVER);
}

static void a_sampler_that_went_quiet_proves_nothing(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_samples(w, 16, 5 * S, IDLE_SAMPLE); /* up to 80 s: not yet */
    world_wait(w, USEC_PER_HOUR);
    assert_int_equal(last_finding(w), FINDING_HANG_UNPROVEN);
    world_samples(w, 1, 5 * S, IDLE_SAMPLE); /* it is back */
    assert_int_equal(last_finding(w), FINDING_HANG);
}

static void a_clock_that_jumps_proves_nothing(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_samples(w, 2, 5 * S, IDLE_SAMPLE);
    w->now += 3 * USEC_PER_HOUR; /* the machine slept */
    world_sample(w, 5 * S, IDLE_SAMPLE);
    assert_null(world_intent(w, INTENT_KILL));
    steps(w, 21, 1, S);
    assert_int_equal(last_finding(w), FINDING_RECOVERED);
}

static void progress_after_a_suspicion_is_a_recovery(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_samples(w, 20, 5 * S, IDLE_SAMPLE);
    assert_int_equal(last_finding(w), FINDING_HANG_SUSPECTED);
    world_step(w, 21);
    assert_int_equal(last_finding(w), FINDING_RECOVERED);
    /* so it sometimes takes that long: the next silence may be longer; it is inspected again */
    assert_int_equal(allowed(w), 500 * S);
    world_samples(w, 99, 5 * S, IDLE_SAMPLE);
    assert_int_equal(last_finding(w), FINDING_HANG_SUSPECTED);
    assert_int_equal(world_count_intents(w, INTENT_INSPECT), 2);
    world_samples(w, 1, 5 * S, IDLE_SAMPLE);
    assert_int_equal(last_finding(w), FINDING_HANG);
}

static void slow_steps_allow_more_silence_up_to_the_most(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, MIN);
    assert_int_equal(allowed(w), 5 * MIN); /* 5 x q99 */
    steps(w, 21, 1, 30 * MIN);
    assert_int_equal(allowed(w), USEC_PER_HOUR); /* 5 x 30 min, but at most 1 h */
}

static void a_bar_drawn_again_is_no_progress(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    for (int i = 0; i < 30; i++) {
        world_samples(w, 1, 5 * S, IDLE_SAMPLE);
        world_step(w, 20);
    }
    assert_int_equal(last_finding(w), FINDING_HANG);
    assert_int_equal(world_job(w)->attempt.steps_seen, 20);
}

static void a_lagging_rank_is_no_progress_but_a_new_epoch_is(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);
    usec_t last;

    steps(w, 1, 20, S);
    last = world_job(w)->attempt.last_progress;
    world_wait(w, S);
    s.who.rank = 3;
    s.step.step = 17;
    world_signal(w, s);
    assert_int_equal(world_job(w)->attempt.last_progress, last);
    assert_false(world_job(w)->attempt.numbers_reset);
    s.step.step = 21; /* further than anybody */
    world_signal(w, s);
    assert_int_equal(world_job(w)->attempt.last_progress, w->now);
    world_wait(w, S);
    world_step(w, 1); /* the leader counts from the beginning again */
    assert_true(world_job(w)->attempt.numbers_reset);
    assert_int_equal(world_job(w)->attempt.last_progress, w->now);
    assert_int_equal(world_job(w)->attempt.highest_step, 21);
    world_step(w, STEP_NONE); /* a step without a number is one */
    assert_int_equal(world_job(w)->attempt.steps_seen, 23);
}

static void the_first_step_may_take_long(void **state)
{
    struct world *w = *state;

    world_samples(w, 359, 5 * S, IDLE_SAMPLE);
    assert_int_equal(last_finding(w), FINDING_HANG_SUSPECTED);
    world_samples(w, 1, 5 * S, IDLE_SAMPLE);
    assert_int_equal(last_finding(w), FINDING_HANG); /* 30 min */
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.phase, PHASE_STARTUP);
}

static void before_any_step_was_ever_seen_output_is_life(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 100; i++) {
        world_samples(w, 60, 5 * S, IDLE_SAMPLE);
        world_signal(w, signal_make(SIGNAL_OUTPUT, PROVENANCE_JOB_TEXT));
    }
    assert_int_equal(world_count(w, EVENT_FINDING), 0);
}

static void who_never_stepped_may_spin(void **state)
{
    struct world *w = *state;

    world_samples(w, 2000, 5 * S, SPIN_SAMPLE(5 * S));
    assert_int_equal(last_finding(w), FINDING_HANG_UNPROVEN);
    assert_null(world_intent(w, INTENT_KILL));
}

static void the_time_to_the_first_step_is_learned(void **state)
{
    struct world *w = *state;

    world_samples(w, 60, 5 * S, BUSY_SAMPLE(5 * S)); /* 5 min */
    steps(w, 1, 20, S);
    world_die(w, 1);
    world_wait(w, MIN);
    world_start(w);
    assert_int_equal(allowed(w), 3 * 301 * S);
    /* now a line that nobody understands is no life any more */
    for (int i = 0; i < 181; i++) {
        world_samples(w, 1, 5 * S, IDLE_SAMPLE);
        world_signal(w, signal_make(SIGNAL_OUTPUT, PROVENANCE_JOB_TEXT));
    }
    assert_int_equal(last_finding(w), FINDING_HANG);
}

static void set_hang(struct world *w, usec_t first_step, usec_t timeout_min)
{
    struct policy p = core_model(w->core)->policy;

    p.hang.first_step = first_step;
    p.hang.timeout_min = timeout_min;
    world_policy(w, &p);
}

/* Each window says which rule made it, and of what. */
static void check_rule(const struct world *w, usec_t time, const char *rule, usec_t of)
{
    struct window win = hang_window(core_model(w->core), world_job(w));

    assert_int_equal(win.timeout, time);
    assert_string_equal(win.why.rule, rule);
    assert_int_equal(win.why.of, of);
}

static void before_the_rhythm_is_known_the_least_holds_too(void **state)
{
    struct world *w = *state;

    set_hang(w, 3 * S, 2 * MIN);
    check_rule(w, 3 * S, "hang.first_step", 0);
    steps(w, 1, 2, S);
    check_rule(w, 2 * MIN, "hang.timeout_min", 0);
    world_die(w, 1);
    world_wait(w, MIN);
    world_start(w);
    check_rule(w, 3 * S, "3 x the longest start so far", S);
    set_hang(w, 3 * MIN, 2 * MIN);
    check_rule(w, 2 * MIN, "hang.timeout_min", 0);
    set_hang(w, 9 * S, 2 * MIN);
    check_rule(w, 9 * S, "hang.first_step", 0);
    steps(w, 1, 2, S);
    set_hang(w, 30 * MIN, 2 * MIN);
    check_rule(w, 10 * MIN, "a third of hang.first_step", 0);
    world_samples(w, 73, 5 * S, IDLE_SAMPLE);
    assert_non_null(strstr(last_why(w), "(10min 00s allowed until the rhythm is known: a third of "
                                        "hang.first_step)"));
}

static void every_window_names_its_rule(void **state)
{
    struct world *w = *state;

    world_samples(w, 240, 5 * S, BUSY_SAMPLE(5 * S)); /* 20 min */
    steps(w, 1, 1, S);
    check_rule(w, 3 * 1201 * S, "3 x the longest start so far", 1201 * S);
    steps(w, 2, 20, MIN);
    check_rule(w, 5 * MIN, "hang.factor x the 99th percentile of its steps", MIN);
    world_checkpoint(w, EDGE_BEGIN, 20);
    check_rule(w, 10 * MIN, "hang.checkpoint", 0);
    world_wait(w, 4 * MIN);
    world_checkpoint(w, EDGE_END, 20);
    world_checkpoint(w, EDGE_BEGIN, 20);
    check_rule(w, 20 * MIN, "5 x the longest so far", 4 * MIN);
}

static void the_rhythm_is_learned_across_attempts(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, 2 * MIN);
    assert_int_equal(allowed(w), 10 * MIN);
    world_die(w, 1);
    world_wait(w, MIN);
    world_start(w);
    steps(w, 1, 1, S);
    assert_int_equal(allowed(w), 10 * MIN); /* no rhythm of its own yet */
    steps(w, 2, 20, 4 * MIN);
    assert_int_equal(allowed(w), 20 * MIN);
    world_die(w, 1);
    world_wait(w, MIN);
    world_start(w);
    steps(w, 1, 1, S);
    assert_int_equal(allowed(w), 15 * MIN); /* half old, half new */
}

static void a_checkpoint_widens_the_window(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_checkpoint(w, EDGE_BEGIN, 20);
    world_samples(w, 119, 5 * S, IDLE_SAMPLE);
    assert_int_not_equal(last_finding(w), FINDING_HANG);
    world_samples(w, 1, 5 * S, IDLE_SAMPLE);
    assert_int_equal(last_finding(w), FINDING_HANG); /* 10 min */
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.phase, PHASE_CHECKPOINT);
    assert_non_null(strstr(last_why(w), "writing a checkpoint for 10min 00s"));
}

static void the_length_of_a_checkpoint_is_learned(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_checkpoint(w, EDGE_BEGIN, 20);
    world_samples(w, 108, 5 * S, BUSY_SAMPLE(5 * S)); /* 9 min */
    world_checkpoint(w, EDGE_END, 20);
    assert_int_equal(world_job(w)->attempt.checkpoint_step, 20);
    assert_int_equal(allowed(w), 2 * MIN); /* the save teaches no rhythm */
    steps(w, 21, 1, S);
    assert_int_equal(allowed(w), 2 * MIN);
    world_checkpoint(w, EDGE_BEGIN, 21);
    assert_int_equal(allowed(w), 45 * MIN);
}

/* A job that saves at every step has a rhythm as well: that of its steps. */
static void what_a_phase_takes_is_no_part_of_the_rhythm(void **state)
{
    struct world *w = *state;

    for (int64_t i = 1; i <= 10; i++) {
        steps(w, i, 1, 2 * S);
        world_checkpoint(w, EDGE_BEGIN, i);
        world_wait(w, MIN);
        world_checkpoint(w, EDGE_END, i);
    }
    assert_int_equal(world_job(w)->timing.present.n, 9);
    assert_int_equal(world_job(w)->timing.present.longest, 2 * S);
    /* written in the background, while steps go on */
    world_checkpoint(w, EDGE_BEGIN, 10);
    steps(w, 11, 5, 2 * S);
    world_checkpoint(w, EDGE_END, 10);
    steps(w, 16, 5, 2 * S);
    assert_int_equal(world_job(w)->timing.present.median, 2 * S);
    /* only its end is shown: then the step took that long */
    world_wait(w, MIN);
    world_checkpoint(w, EDGE_END, 20);
    steps(w, 21, 1, 2 * S);
    assert_int_equal(world_job(w)->timing.present.longest, MIN + 2 * S);
}

static void a_phase_that_never_closes_runs_out_by_itself(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_checkpoint(w, EDGE_BEGIN, 20); /* written in the background, its end is never logged */
    steps(w, 21, 700, S);
    assert_int_equal(allowed(w), 2 * MIN);
    world_samples(w, 24, 5 * S, IDLE_SAMPLE);
    assert_int_equal(last_finding(w), FINDING_HANG);
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.phase, PHASE_STEADY);
}

static void an_open_phase_is_dropped_at_restart(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_phase(w, PHASE_EVALUATION, EDGE_BEGIN);
    world_die(w, 1);
    world_wait(w, MIN);
    world_start(w);
    steps(w, 1, 10, S);
    assert_int_equal(hang_window(core_model(w->core), world_job(w)).phase, PHASE_STEADY);
}

static void phases_allow_their_own_time(void **state)
{
    static const struct {
        enum phase phase;
        usec_t allowed;
    } cases[] = {
        {PHASE_EVALUATION, 10 * USEC_PER_MIN},
        {PHASE_LOADING, 30 * USEC_PER_MIN},
        {PHASE_STARTUP, 30 * USEC_PER_MIN},
        {PHASE_COMPILATION, 17 * USEC_PER_MIN}, /* 15 on top of 2 */
        {PHASE_SHUTDOWN, 10 * USEC_PER_MIN},
        {PHASE_STEADY, 2 * USEC_PER_MIN},
    };
    struct world *w = *state;

    steps(w, 1, 20, S);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        world_phase(w, cases[i].phase, EDGE_BEGIN);
        assert_int_equal(allowed(w), cases[i].allowed);
        world_wait(w, 10 * S);
        world_phase(w, cases[i].phase, EDGE_END);
        assert_int_equal(allowed(w), 2 * MIN);
    }
    world_phase(w, PHASE_EVALUATION, EDGE_POINT); /* its end is not logged: a step ends it */
    assert_int_equal(allowed(w), 10 * MIN);
    steps(w, 21, 1, S);
    assert_int_equal(allowed(w), 2 * MIN);
    assert_int_equal(phase_allowance(core_model(w->core), world_job(w), PHASE_MAX - 0), 0);
}

static void storage_that_does_not_answer_gets_grace(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL);

    steps(w, 1, 20, S);
    s.layer = LAYER_KERNEL;
    s.cause = CAUSE_STORAGE;
    s.role = ROLE_ROOT;
    s.confidence = 90;
    world_signal(w, s);
    assert_int_equal(allowed(w), 17 * MIN);
    world_samples(w, 203, 5 * S, IDLE_SAMPLE);
    assert_int_not_equal(last_finding(w), FINDING_HANG);
    steps(w, 21, 1, S); /* it came back */
    assert_int_equal(world_job(w)->attempt.storage_at, USEC_NEVER);
}

static void finish(struct world *w)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);

    s.role = ROLE_FINISH;
    world_signal(w, s);
}

static void work_done_and_no_exit_is_a_hang_that_completes(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    finish(w);
    world_samples(w, 120, 5 * S, IDLE_SAMPLE); /* 10 min */
    assert_int_equal(last_finding(w), FINDING_HANG);
    assert_int_equal(world_last(w, EVENT_FINDING)->finding.phase, PHASE_SHUTDOWN);
    world_exit(w, 0, SIGTERM);
    world_gone(w);
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.class, CLASS_HANG);
    assert_string_equal(world_last(w, EVENT_DECISION)->decision.rule, "finished");
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.action, ACTION_COMPLETE);
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 0);
}

static void a_hang_in_the_last_checkpoint_is_not_the_end_of_the_work(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    finish(w);
    world_checkpoint(w, EDGE_BEGIN, 20);
    world_samples(w, 121, 5 * S, IDLE_SAMPLE);
    assert_int_equal(last_finding(w), FINDING_HANG);
    world_exit(w, 0, SIGTERM);
    world_gone(w);
    assert_int_equal(world_last(w, EVENT_DECISION)->decision.action, ACTION_RESTART);
}

static void steps_after_the_end_of_the_work_are_work(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    finish(w);
    finish(w);
    steps(w, 21, 1, S);
    assert_int_equal(world_job(w)->attempt.finished_at, USEC_NEVER);
    assert_int_equal(allowed(w), 2 * MIN);
}

static void a_watch_that_is_switched_off_ends_nothing(void **state)
{
    struct world *w = *state;
    struct policy p;

    policy_default(&p);
    p.hang.enabled = false;
    world_policy(w, &p);
    steps(w, 1, 20, S);
    world_root(w, "cuda.ecc", CAUSE_GPU_HARDWARE);
    world_samples(w, 1000, 5 * S, IDLE_SAMPLE);
    assert_int_equal(world_count(w, EVENT_FINDING), 0);
    assert_int_equal(core_deadline(w->core), USEC_NEVER);
}

/* Root lines */

static void a_root_line_without_progress_is_a_crash(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_root(w, "cuda.ecc", CAUSE_GPU_HARDWARE);
    world_samples(w, 11, 5 * S, SPIN_SAMPLE(5 * S));
    assert_int_equal(world_count(w, EVENT_FINDING), 0);
    world_samples(w, 1, 5 * S, SPIN_SAMPLE(5 * S));
    assert_int_equal(last_finding(w), FINDING_CRASH);
    assert_non_null(strstr(last_why(w), "no progress for 1min 00s after cuda.ecc"));
    assert_non_null(world_intent(w, INTENT_KILL));
    world_exit(w, 0, SIGTERM);
    world_gone(w);
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.class, CLASS_CRASH);
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.cause, CAUSE_GPU_HARDWARE);
}

static void slow_steps_give_a_root_line_more_time(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, MIN);
    world_root(w, "cuda.ecc", CAUSE_GPU_HARDWARE);
    assert_int_equal(crash_due(core_model(w->core), world_job(w)) - w->now, 3 * MIN);
    world_checkpoint(w, EDGE_BEGIN, 20); /* a save may hold progress up for longer */
    assert_int_equal(crash_due(core_model(w->core), world_job(w)) - w->now, 10 * MIN);
}

static void before_there_is_a_rhythm_a_root_line_waits_longer(void **state)
{
    struct world *w = *state;

    world_root(w, "cuda.ecc", CAUSE_GPU_HARDWARE);
    assert_int_equal(crash_due(core_model(w->core), world_job(w)) - w->now, 5 * MIN);
}

/* Programs print tracebacks of optional imports while they start, and then work for hours. */
static void a_job_that_was_never_seen_to_step_is_given_the_benefit(void **state)
{
    struct world *w = *state;

    world_root(w, "py.import", CAUSE_USER_CODE);
    world_samples(w, 120, 5 * S, SPIN_SAMPLE(5 * S));
    assert_null(world_intent(w, INTENT_KILL));
    for (int i = 0; i < 100; i++) {
        world_signal(w, signal_make(SIGNAL_OUTPUT, PROVENANCE_JOB_TEXT));
        world_samples(w, 10, 5 * S, IDLE_SAMPLE);
    }
    assert_null(world_intent(w, INTENT_KILL));
    world_samples(w, 60, 5 * S, IDLE_SAMPLE); /* and not another word */
    assert_int_equal(last_finding(w), FINDING_CRASH);
}

static void a_root_line_at_the_start_waits_for_twice_the_usual_start(void **state)
{
    struct world *w = *state;

    world_wait(w, 10 * MIN);
    steps(w, 1, 20, S);
    world_die(w, 1);
    world_wait(w, MIN);
    world_start(w);
    world_root(w, "py.import", CAUSE_USER_CODE);
    assert_int_equal(crash_due(core_model(w->core), world_job(w)) - w->now, 2 * (10 * MIN + S));
}

static void a_root_line_of_a_busy_job_kills_nothing(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_root(w, "net.retry", CAUSE_NETWORK);
    world_samples(w, 20, 5 * S, BUSY_SAMPLE(5 * S));
    assert_null(world_intent(w, INTENT_KILL));
    world_samples(w, 6, 5 * S, IDLE_SAMPLE);
    assert_int_equal(last_finding(w), FINDING_CRASH);
}

static void a_root_line_without_any_samples_is_believed(void **state)
{
    struct world *w = *state;

    for (int64_t i = 1; i <= 20; i++) {
        world_wait(w, S);
        world_step(w, i);
    }
    world_root(w, "cuda.ecc", CAUSE_GPU_HARDWARE);
    world_wait(w, MIN);
    assert_int_equal(last_finding(w), FINDING_CRASH);
}

static void a_root_line_while_the_sampler_is_quiet_is_not(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_root(w, "cuda.ecc", CAUSE_GPU_HARDWARE);
    world_wait(w, USEC_PER_HOUR);
    assert_null(world_intent(w, INTENT_KILL));
}

static void progress_after_a_root_line_is_a_recovery(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_root(w, "net.retry", CAUSE_NETWORK);
    steps(w, 21, 1, S);
    assert_int_equal(last_finding(w), FINDING_RECOVERED);
    assert_string_equal(last_why(w), "it made progress after net.retry");
    steps(w, 22, 200, S);
    assert_int_equal(world_count(w, EVENT_FINDING), 1);
    /* and a job that complains at every step does not fill the journal */
    for (int i = 0; i < 100; i++) {
        world_root(w, "net.retry", CAUSE_NETWORK);
        steps(w, 300 + i, 1, S);
    }
    assert_int_equal(world_count(w, EVENT_FINDING), 8);
    assert_int_equal(world_job(w)->attempt.root_at, USEC_NEVER);
}

static void weak_lines_and_other_roles_end_nothing(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);

    steps(w, 1, 20, S);
    s.cause = CAUSE_NETWORK;
    s.role = ROLE_ROOT;
    s.confidence = 30;
    world_signal(w, s);
    s.role = ROLE_CASCADE;
    s.confidence = 90;
    world_signal(w, s);
    assert_int_equal(world_job(w)->attempt.root_at, USEC_NEVER);
}

static void a_rank_that_died_is_like_a_root_line(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_EXIT, PROVENANCE_AGENT);

    steps(w, 1, 20, S);
    s.exit = (struct exit_fact){.pid = 99, .code = 1};
    world_signal(w, s); /* some helper */
    s.who.rank = 2;
    s.exit.code = 0;
    world_signal(w, s); /* a rank that is done */
    assert_int_equal(world_job(w)->attempt.root_at, USEC_NEVER);
    s.exit.signal = SIGSEGV;
    world_signal(w, s);
    world_samples(w, 12, 5 * S, IDLE_SAMPLE);
    assert_int_equal(last_finding(w), FINDING_CRASH);
    assert_non_null(strstr(last_why(w), "after exit of a rank"));
}

/* What the kill causes is no evidence, but a checkpoint that it causes counts. */
static void a_checkpoint_written_on_sigterm_counts(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_checkpoint(w, EDGE_END, 10);
    world_samples(w, 24, 5 * S, IDLE_SAMPLE);
    assert_int_equal(last_finding(w), FINDING_HANG);
    world_root(w, "py.exception", CAUSE_USER_CODE);
    world_checkpoint(w, EDGE_END, 20);
    world_exit(w, 1, 0);
    world_gone(w);
    assert_int_equal(world_last(w, EVENT_VERDICT)->incident.cause, CAUSE_UNKNOWN);
    assert_int_equal(world_job(w)->ledger.best_checkpoint, 20);
}

static void extreme_samples_do_no_harm(void **state)
{
    struct world *w = *state;

    steps(w, 1, 20, S);
    world_sample(w, INT64_MAX,
                 (struct activity_fact){.cpu = INT64_MAX, .io = INT64_MAX, .processes = INT32_MAX});
    world_sample(w, -5, (struct activity_fact){.cpu = -1, .io = -1, .processes = -1});
    assert_int_equal(world_count(w, EVENT_FINDING), 0);
}

static void livenesses_have_words(void **state)
{
    struct world *w = *state;
    char text[128];

    for (int l = LIVENESS_UNKNOWN; l <= LIVENESS_BLOCKED; l++) {
        text[0] = '\0';
        liveness_text(world_job(w), (enum liveness)l, text, sizeof(text));
        assert_true(strlen(text) > 10);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup_started, world_teardown)

/* Each kind of silence counts from the very span on that was asked for, and not before. */
static void liveness_counts_from_the_span_on(void **state)
{
    const usec_t span = MIN;
    struct model m = {.now = 100 * MIN};
    struct job *j = test_calloc(1, sizeof(*j));
    struct streaks *s = &j->attempt.streaks;
    const struct {
        usec_t *streak;
        enum liveness full, part;
    } kinds[] = {
        {&s->stopped, LIVENESS_STOPPED, LIVENESS_BUSY},
        {&s->blocked, LIVENESS_BLOCKED, LIVENESS_BUSY},
        {&s->idle, LIVENESS_IDLE, LIVENESS_BUSY},
        {&s->spinning, LIVENESS_SPINNING, LIVENESS_BUSY},
        {&s->observed, LIVENESS_BUSY, LIVENESS_UNKNOWN},
    };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        *s = (struct streaks){.observed = span, .sampled = m.now, .last = {.interval = 5 * S}};
        j->attempt.last_output = m.now - span;
        *kinds[i].streak = span;
        assert_int_equal(liveness_of(&m, j, span), kinds[i].full);
        *kinds[i].streak = span - 1;
        assert_int_equal(liveness_of(&m, j, span), kinds[i].part);
    }
    *s = (struct streaks){
        .observed = span, .spinning = span, .sampled = m.now, .last = {.interval = 5 * S}};
    j->attempt.last_output = m.now - span + 1; /* a word in between */
    assert_int_equal(liveness_of(&m, j, span), LIVENESS_BUSY);
    s->sampled = m.now - 11 * S; /* two intervals and a second: the last that still counts */
    assert_int_equal(liveness_of(&m, j, span), LIVENESS_BUSY);
    s->sampled--;
    assert_int_equal(liveness_of(&m, j, span), LIVENESS_UNKNOWN);
    s->sampled = USEC_NEVER;
    assert_int_equal(liveness_of(&m, j, span), LIVENESS_UNKNOWN);
    test_free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_steady_job_that_goes_idle_hangs_after_t),
        TEST(who_may_do_io_unseen_is_not_idle),
        TEST(no_cpu_time_at_all_for_long_proves_it),
        TEST(one_stopped_rank_is_a_second_signal),
        TEST(a_blocked_rank_beside_it_does_not_hide_a_stopped_one),
        TEST(a_process_blocked_in_the_kernel_is_one_too),
        TEST(silence_of_a_busy_job_is_extended_once_and_never_killed),
        TEST(spinning_ranks_get_one_extension),
        TEST(fast_steps_are_no_reason_to_end_a_spinning_job_soon),
        TEST(spinning_may_be_proven_late),
        TEST(spinning_with_output_proves_nothing),
        TEST(without_samples_nothing_is_killed),
        TEST(a_sampler_that_went_quiet_proves_nothing),
        TEST(a_clock_that_jumps_proves_nothing),
        TEST(progress_after_a_suspicion_is_a_recovery),
        TEST(slow_steps_allow_more_silence_up_to_the_most),
        TEST(a_bar_drawn_again_is_no_progress),
        TEST(a_lagging_rank_is_no_progress_but_a_new_epoch_is),
        TEST(the_first_step_may_take_long),
        TEST(before_any_step_was_ever_seen_output_is_life),
        TEST(who_never_stepped_may_spin),
        TEST(the_time_to_the_first_step_is_learned),
        TEST(before_the_rhythm_is_known_the_least_holds_too),
        TEST(every_window_names_its_rule),
        TEST(the_rhythm_is_learned_across_attempts),
        TEST(a_checkpoint_widens_the_window),
        TEST(the_length_of_a_checkpoint_is_learned),
        TEST(what_a_phase_takes_is_no_part_of_the_rhythm),
        TEST(a_phase_that_never_closes_runs_out_by_itself),
        TEST(an_open_phase_is_dropped_at_restart),
        TEST(phases_allow_their_own_time),
        TEST(storage_that_does_not_answer_gets_grace),
        TEST(work_done_and_no_exit_is_a_hang_that_completes),
        TEST(a_hang_in_the_last_checkpoint_is_not_the_end_of_the_work),
        TEST(steps_after_the_end_of_the_work_are_work),
        TEST(a_watch_that_is_switched_off_ends_nothing),
        TEST(a_root_line_without_progress_is_a_crash),
        TEST(slow_steps_give_a_root_line_more_time),
        TEST(before_there_is_a_rhythm_a_root_line_waits_longer),
        TEST(a_job_that_was_never_seen_to_step_is_given_the_benefit),
        TEST(a_root_line_at_the_start_waits_for_twice_the_usual_start),
        TEST(a_root_line_of_a_busy_job_kills_nothing),
        TEST(a_root_line_without_any_samples_is_believed),
        TEST(a_root_line_while_the_sampler_is_quiet_is_not),
        TEST(progress_after_a_root_line_is_a_recovery),
        TEST(weak_lines_and_other_roles_end_nothing),
        TEST(a_rank_that_died_is_like_a_root_line),
        TEST(a_checkpoint_written_on_sigterm_counts),
        TEST(extreme_samples_do_no_harm),
        TEST(livenesses_have_words),
        cmocka_unit_test(liveness_counts_from_the_span_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
