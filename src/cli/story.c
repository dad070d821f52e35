/* SPDX-License-Identifier: Apache-2.0 */

/* Goodput is the share of a run's wall time in which steps were completed that were kept.
 *
 * An attempt's useful time reaches from the beginning of its first step to its last step that was
 * kept. All steps are kept when the job ended well in that attempt, by itself or because it was
 * asked to, or had done its work and did not crash then. Otherwise those are kept that
 * no later attempt did again: below the first step of the next attempt that got to a step. Where
 * no later attempt got that far, or step numbers say nothing (they began anew within an attempt),
 * the last durable checkpoint says what was kept; without one, nothing was.
 *
 * Everything else is lost: start-up, waiting between attempts, the steps that had to be repeated,
 * the time between the last step and the end. Useful and lost time add up to the wall time. What an
 * attempt lost is a part of its own time: waiting between attempts is nobody's. */

#include "cli/story.h"

#include "base/sig.h"
#include "base/str.h"

#include <signal.h>

static void attempt_done(struct story_attempt *a)
{
    VEC_FOREACH (&a->facts, e)
        free(*e);
    VEC_DONE(&a->facts);
    VEC_DONE(&a->points);
    free(a->incident);
}

void story_done(struct story *s)
{
    VEC_FOREACH (&s->runs, run) {
        VEC_FOREACH (&run->attempts, a)
            attempt_done(a);
        VEC_DONE(&run->attempts);
    }
    VEC_DONE(&s->runs);
}

struct story_run *story_last_run(struct story *s)
{
    return s->runs.n > 0 ? &s->runs.v[s->runs.n - 1] : NULL;
}

struct story_run *story_run(struct story *s, uint32_t number)
{
    VEC_FOREACH (&s->runs, run)
        if (run->number == number)
            return run;
    return NULL;
}

struct story_attempt *story_last_attempt(struct story_run *run)
{
    return run && run->attempts.n > 0 ? &run->attempts.v[run->attempts.n - 1] : NULL;
}

bool story_has_steps(const struct story_run *run)
{
    VEC_FOREACH (&run->attempts, a)
        if (a->steps_seen > 0)
            return true;
    return false;
}

/* Its last sign of life is the time that counts, not its discovery. */
static void lose(struct story_run *run, usec_t at)
{
    struct story_attempt *a = story_last_attempt(run);

    if (run->over)
        return;
    run->lost = true;
    if (a && a->ended == USEC_NEVER) {
        a->lost = true;
        a->ended = at;
    }
}

static void begin_run(struct story *s, const struct event *e)
{
    struct story_run *run = story_last_run(s);
    uint32_t number = e->seen.run > 0 ? e->seen.run : run ? run->number + 1 : 1;

    if (run)
        lose(run, s->last_event);

    if (s->runs.n == (s->last_run_only ? 1 : STORY_RUNS_MAX)) {
        VEC_FOREACH (&s->runs.v[0].attempts, a)
            attempt_done(a);
        VEC_DONE(&s->runs.v[0].attempts);
        VEC_REMOVE(&s->runs, 0);
    }
    run = VEC_PUSH(&s->runs);
    STR_COPY(s->job, e->job);
    run->seen = e->seen;
    run->number = number;
    run->began = e->time_us;
    run->ended = USEC_NEVER;
    run->policy = s->policy;
}

/* A scheduler's job that was let go, and is watched again, may be in the same attempt still. */
static bool goes_on(const struct story_run *run, const struct event *e)
{
    return run->attempts.n > 0 && run->attempts.v[run->attempts.n - 1].number == e->attempt;
}

static void begin_attempt(struct story_run *run, const struct event *e)
{
    struct story_attempt *a;

    run->over = false;
    if (goes_on(run, e))
        return;
    if (run->attempts.n == STORY_ATTEMPTS_MAX) {
        run->attempts_dropped++;
        return;
    }
    a = VEC_PUSH(&run->attempts);
    a->number = e->attempt;
    a->started = e->time_us;
    a->ended = a->checkpoint_at = a->asked_at = USEC_NEVER;
    a->first_step = a->last_step = a->loaded_step = a->checkpoint_step = STEP_NONE;
    a->stride = 1;
    STR_COPY(a->log, e->started.log);
}

/* Every other point goes when there are too many; from then on every other one is skipped. */
static void add_point(struct story_attempt *a, usec_t at, int64_t step)
{
    if (++a->skipped < a->stride && a->points.n > 0)
        return;
    a->skipped = 0;
    if (a->points.n == STORY_POINTS_MAX) {
        for (size_t i = 0; i < STORY_POINTS_MAX / 2; i++)
            a->points.v[i] = a->points.v[2 * i];
        a->points.n = STORY_POINTS_MAX / 2;
        a->stride *= 2;
    }
    *VEC_PUSH(&a->points) = (struct story_point){.at = at, .step = step};
}

static void add_step(struct story_attempt *a, const struct event *e)
{
    int64_t step = e->signal.step.step;

    if (step != STEP_NONE && a->last_step != STEP_NONE && step + 1 < a->last_step)
        a->numbers_reset = true;
    a->steps_seen++;
    if (a->first_step == STEP_NONE)
        a->first_step = step;
    if (step != STEP_NONE)
        a->last_step = step;
    add_point(a, e->time_us, step);
}

static void add_checkpoint(struct story_attempt *a, const struct event *e)
{
    const struct checkpoint_fact *c = &e->signal.checkpoint;

    if (c->edge == EDGE_POINT && c->step != STEP_NONE)
        a->loaded_step = c->step;
    if (c->edge != EDGE_END)
        return;
    a->checkpoint_step = c->step != STEP_NONE ? c->step : a->last_step;
    a->checkpoint_at = e->time_us;
}

static void keep_fact(struct story_attempt *a, const struct event *e)
{
    if (a->facts.n < STORY_FACTS_MAX)
        *VEC_PUSH(&a->facts) = xmemdup(e, sizeof(*e));
}

/* What was said, beside the words of others. */
static void hear_mode(struct story *s, const struct mode_facts *said)
{
    mode_hear(&s->words, said);
    s->mode = *said;
    s->mode.mode = mode_in_force(&s->words);
    if (s->mode.mode != said->mode && !said->withdrawn)
        STR_PRINTF(s->mode.why, "not %s (%s), %s", mode_name(said->mode), said->why,
                   said->asked ? "for no more is allowed" : "as a person asked");
}

static void keep_mode(struct story_attempt *a, const struct event *e, const struct mode_facts *mode)
{
    size_t n = a->facts.n;

    keep_fact(a, e);
    if (a->facts.n > n)
        a->facts.v[n]->mode = *mode;
}

static void end_run(struct story_run *run, const struct event *e)
{
    run->ended = e->time_us;
    run->over = true;
    run->end = e->ended;
    if (e->ended.action == ACTION_NONE) /* it was let go, and what became of it nobody looked at */
        run->end.exit_code = -1;
}

/* A scheduler's job may be queued again before it is known that no process of it is left. */
static void add_exit(struct story_attempt *a, const struct event *e, const struct story_run *run)
{
    bool asked = a->asked_at != USEC_NEVER;

    a->exited = true;
    a->exit = e->exited;
    if (asked && sig_ended(a->exit.code, a->exit.signal, SIGKILL))
        a->forced = a->asked_again || e->time_us - a->asked_at >= run->policy.kill_grace;
    a->put_down |= a->forced;
    if (run->seen.scheduled)
        a->ended = e->time_us;
}

static void add_request(struct story_attempt *a, const struct event *e)
{
    if (e->request.signal == 0)
        return;
    a->asked_again = a->asked_at != USEC_NEVER;
    if (!a->asked_again)
        a->asked_at = e->time_us;
}

/* Of looks, those that show another state than the one before. */
static void add_look(struct story_attempt *a, const struct event *e)
{
    if (e->look.state != a->look_state)
        keep_fact(a, e);
    a->look_state = e->look.state;
}

/* That a log cannot be read, once, also when a reknitd that was started again tells it again; and
 * that it can after all. */
static void add_log(struct story_attempt *a, const struct event *e)
{
    const char *before = "";

    VEC_FOREACH (&a->facts, f)
        if ((*f)->kind == EVENT_LOG_NAMED && streq((*f)->log.path, e->log.path))
            before = (*f)->log.trouble;
    if (!streq(before, e->log.trouble))
        keep_fact(a, e);
}

/* Of an array the number goes from task to task. */
static void take_label(struct story_run *run, const struct event *e)
{
    if (e->look.label[0])
        STR_COPY(run->seen.label, e->look.label);
}

static void add_to_attempt(struct story_attempt *a, const struct event *e,
                           const struct story_run *run)
{
    switch (e->kind) {
    case EVENT_SIGNAL:
        if (e->signal.kind == SIGNAL_STEP)
            add_step(a, e);
        else if (e->signal.kind == SIGNAL_CHECKPOINT)
            add_checkpoint(a, e);
        break;
    case EVENT_ATTEMPT_EXITED:
        add_exit(a, e, run);
        break;
    case EVENT_ATTEMPT_GONE:
        a->ended = e->time_us;
        break;
    case EVENT_VERDICT:
        free(a->incident);
        a->incident = xmemdup(&e->incident, sizeof(e->incident));
        break;
    case EVENT_DECISION:
        a->decided = true;
        a->decision = e->decision;
        keep_fact(a, e);
        break;
    case EVENT_INTENT:
        a->put_down |= e->intended.intent == INTENT_KILL && !a->exited;
        keep_fact(a, e);
        break;
    case EVENT_FINDING:
    case EVENT_INTERRUPTED:
    case EVENT_RESULT:
    case EVENT_LAUNCH_FAILED:
        keep_fact(a, e);
        break;
    case EVENT_ATTEMPT_STARTED:
        if (e->time_us > a->started)
            keep_fact(a, e);
        break;
    case EVENT_JOB_ENDED:
        if (e->ended.action == ACTION_NONE)
            keep_fact(a, e);
        break;
    case EVENT_LOOK:
        add_look(a, e);
        break;
    case EVENT_LOG_NAMED:
        add_log(a, e);
        break;
    case EVENT_OPERATOR:
        add_request(a, e);
        keep_fact(a, e);
        break;
    default:
        break;
    }
}

void story_add(struct story *s, const struct event *e)
{
    struct story_run *run = story_last_run(s);
    struct story_attempt *a;

    if (e->kind == EVENT_RUNNER_LOST && run)
        lose(run, s->last_event);
    if (e->kind == EVENT_JOB_SEEN)
        begin_run(s, e);
    s->last_event = e->time_us;
    if (e->kind == EVENT_MODE)
        hear_mode(s, &e->mode);
    if (e->kind == EVENT_POLICY)
        s->policy = e->policy;
    else if (run && e->kind == EVENT_MODE && run->attempts.n == 0)
        run->mode = s->mode;
    else if (run && e->kind == EVENT_ATTEMPT_STARTED)
        begin_attempt(run, e);
    else if (run && e->kind == EVENT_LOOK)
        take_label(run, e);
    else if (run && e->kind == EVENT_JOB_ENDED)
        end_run(run, e);
    run = story_last_run(s);
    a = story_last_attempt(run);
    if (a && run->attempts_dropped == 0 && e->kind == EVENT_MODE)
        keep_mode(a, e, &s->mode);
    else if (a && run->attempts_dropped == 0)
        add_to_attempt(a, e, run);
}

void story_nobody_runs(struct story *s, bool in_order)
{
    struct story_run *run = story_last_run(s);

    if (!run)
        return;
    run->unrecorded = in_order && !run->over;
    if (!run->unrecorded)
        lose(run, s->last_event);
}

void story_add_tail(struct story *s, const struct event *e)
{
    struct event missing = {.time_us = e->time_us, .attempt = e->attempt};

    STR_COPY(missing.job, e->job);
    if (s->runs.n == 0 && e->kind != EVENT_JOB_SEEN) {
        missing.kind = EVENT_JOB_SEEN;
        story_add(s, &missing);
    }
    if (e->attempt > 0 && e->kind != EVENT_ATTEMPT_STARTED && s->runs.n > 0 &&
        story_last_run(s)->attempts.n == 0) {
        missing.kind = EVENT_ATTEMPT_STARTED;
        story_add(s, &missing);
    }
    story_add(s, e);
}

/* The first step of the nearest later attempt that got to one, STEP_NONE = there is none. */
static int64_t resumed_at(const struct story_run *run, size_t i, bool *ret_reset)
{
    for (size_t k = i + 1; k < run->attempts.n; k++) {
        const struct story_attempt *b = &run->attempts.v[k];

        if (b->steps_seen == 0)
            continue;
        *ret_reset = b->numbers_reset;
        return b->loaded_step != STEP_NONE && b->loaded_step < b->first_step ? b->loaded_step + 1
                                                                             : b->first_step;
    }
    return STEP_NONE;
}

/* When the last step that is not above `step` was completed; 0 = none was. */
static usec_t reached(const struct story_attempt *a, int64_t step)
{
    usec_t at = 0;

    VEC_FOREACH (&a->points, p)
        if (p->step <= step)
            at = p->at;
    return at;
}

/* Nothing of the attempt has to be done again, whoever wanted its end. */
static bool ended_well(const struct story_attempt *a)
{
    bool well = a->exited && !a->put_down && a->exit.code == 0 && a->exit.signal == 0;

    return well || (a->incident && a->incident->finished && a->incident->class != CLASS_CRASH);
}

/* When the last step that was kept was completed; 0 = none was kept. */
static usec_t kept_until(const struct story_run *run, size_t i)
{
    const struct story_attempt *a = &run->attempts.v[i];
    bool last = i + 1 == run->attempts.n, reset = false;
    int64_t resumed;

    if (a->points.n == 0)
        return 0;
    if (last && (run->over ? run->end.action == ACTION_COMPLETE || ended_well(a) : !run->lost))
        return a->points.v[a->points.n - 1].at;
    resumed = resumed_at(run, i, &reset);
    if (resumed != STEP_NONE && !reset && !a->numbers_reset)
        return reached(a, resumed - 1);
    return a->checkpoint_at != USEC_NEVER ? a->checkpoint_at : 0;
}

/* The first step began one step's time before it was completed. */
static usec_t steps_began(const struct story_attempt *a)
{
    const struct story_point *first = &a->points.v[0], *last = &a->points.v[a->points.n - 1];
    int64_t steps = last->step - first->step;
    usec_t one = 0;

    if (a->points.n > 1 && !a->numbers_reset && steps > 0)
        one = (last->at - first->at) / steps;
    return first->at - one > a->started ? first->at - one : a->started;
}

void story_account(struct story_run *run, usec_t now)
{
    usec_t end = run->over ? run->ended : now;

    run->useful = 0;
    if (run->lost && run->attempts.n > 0)
        end = run->attempts.v[run->attempts.n - 1].ended;
    run->wall = end - run->began;
    for (size_t i = 0; i < run->attempts.n; i++) {
        struct story_attempt *a = &run->attempts.v[i];
        usec_t until = kept_until(run, i), over = a->ended != USEC_NEVER ? a->ended : end;

        a->span = over - a->started;
        if (until > over) /* its last lines are read when its processes are gone */
            until = over;
        a->useful = until > 0 && until > steps_began(a) ? until - steps_began(a) : 0;
        run->useful += a->useful;
    }
}
