/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core_world.h"

#include "base/str.h"

#include <string.h>

#define BEGINNING (UINT64_C(1767225600) * USEC_PER_SEC) /* 2026-01-01 */

static struct event about_job(const struct world *w, enum event_kind kind)
{
    struct event e = {.kind = kind};

    STR_COPY(e.job, w->job);
    return e;
}

static struct event about_attempt(const struct world *w, enum event_kind kind)
{
    struct event e = about_job(w, kind);

    e.attempt = w->attempt;
    return e;
}

void world_init(struct world *w)
{
    memset(w, 0, sizeof(*w));
    w->core = core_new();
    w->now = (usec_t)BEGINNING;
    STR_COPY(w->job, "train");
    world_feed(w, about_job(w, EVENT_JOB_SEEN));
}

void world_done(struct world *w)
{
    core_free(w->core);
    VEC_DONE(&w->log);
}

int world_setup(void **state)
{
    struct world *w = test_calloc(1, sizeof(*w));

    world_init(w);
    *state = w;
    return 0;
}

int world_setup_started(void **state)
{
    world_setup(state);
    world_start(*state);
    return 0;
}

static bool taken[JOB_STATE_MAX][JOB_STATE_MAX];

/* Folds the journal, and notes every change of state in it. */
static struct core *fold_noting_arrows(const struct world *w)
{
    struct core *c = core_new();

    for (size_t i = 0; i < w->log.n; i++) {
        const struct job *j = model_job(core_model(c), w->job);
        enum job_state before = j ? j->state : JOB_STATE_MAX;
        bool decides = w->log.v[i].kind == EVENT_DECISION;

        core_fold(c, &w->log.v[i]);
        if (j && (j->state != before || decides))
            taken[before][j->state] = true;
    }
    return c;
}

const char *world_arrow_left(char buf[64])
{
    buf[0] = '\0';
    for (int a = 0; a < JOB_STATE_MAX; a++)
        for (int b = 0; b < JOB_STATE_MAX; b++)
            if (job_may_enter((enum job_state)a, (enum job_state)b) && !taken[a][b])
                str_printf(buf, 64, "%s -> %s", job_state_name((enum job_state)a),
                           job_state_name((enum job_state)b));
    return buf;
}

int world_teardown(void **state)
{
    struct world *w = *state;
    _cleanup_(core_freep) struct core *folded = fold_noting_arrows(w);

    assert_string_equal(states_differ(w->core, folded), "");
    world_done(w);
    test_free(w);
    return 0;
}

static void check_always(const struct world *w, const struct event *input,
                         const struct core_output *out)
{
    /* Core asked for a tick that is due already: the pump would spin. (A signal may leave one
     * that has passed: it only adds evidence to what is ending.) */
    assert_true(core_deadline(w->core) > w->now || input->kind == EVENT_SIGNAL);
    for (size_t i = 0; i < out->events.n; i++) {
        const struct event *e = &out->events.v[i];

        assert_false(event_is_input(e->kind));
        assert_int_equal(e->seq, input->seq + 1 + i);
        assert_int_equal(e->parent, input->seq);
        if (e->kind == EVENT_DECISION) {
            assert_true(e->decision.rule[0] != '\0' && e->decision.why[0] != '\0');
            assert_true(e->decision.action != ACTION_NONE);
        }
    }
}

size_t world_feed(struct world *w, struct event e)
{
    struct core_output out = {0};
    size_t n;

    e.seq = w->log.n + 1;
    e.time_us = w->now;
    *VEC_PUSH(&w->log) = e;
    core_step(w->core, &e, &out);
    check_always(w, &e, &out);
    n = out.events.n;
    VEC_FOREACH (&out.events, d)
        *VEC_PUSH(&w->log) = *d;
    core_output_done(&out);
    return n;
}

void world_wait(struct world *w, usec_t span)
{
    usec_t end = w->now + span;

    for (;;) {
        usec_t due = core_deadline(w->core);

        if (due > end)
            break;
        if (due > w->now)
            w->now = due;
        world_feed(w, (struct event){.kind = EVENT_TICK});
    }
    w->now = end;
}

void world_seen(struct world *w, const struct job_facts *facts)
{
    struct event e = about_job(w, EVENT_JOB_SEEN);

    e.seen = *facts;
    world_feed(w, e);
}

void world_policy(struct world *w, const struct policy *p)
{
    struct event e = {.kind = EVENT_POLICY};

    e.policy = *p;
    world_feed(w, e);
}

void world_start(struct world *w)
{
    w->attempt++;
    world_feed(w, about_attempt(w, EVENT_ATTEMPT_STARTED));
}

void world_signal(struct world *w, struct signal s)
{
    struct event e = about_attempt(w, EVENT_SIGNAL);

    e.signal = s;
    world_feed(w, e);
}

void world_step(struct world *w, int64_t step)
{
    struct signal s = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);

    s.role = ROLE_PROGRESS;
    s.step.step = step;
    world_signal(w, s);
}

void world_checkpoint(struct world *w, enum edge edge, int64_t step)
{
    struct signal s = signal_make(SIGNAL_CHECKPOINT, PROVENANCE_JOB_TEXT);

    s.role = ROLE_CHECKPOINT;
    s.checkpoint = (struct checkpoint_fact){.edge = edge, .step = step};
    world_signal(w, s);
}

void world_phase(struct world *w, enum phase phase, enum edge edge)
{
    struct signal s = signal_make(SIGNAL_PHASE, PROVENANCE_JOB_TEXT);

    s.role = ROLE_PHASE;
    s.phase = (struct phase_fact){.phase = phase, .edge = edge};
    world_signal(w, s);
}

void world_root(struct world *w, const char *signature, enum cause cause)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);

    s.role = ROLE_ROOT;
    s.cause = cause;
    s.confidence = 95;
    s.advice = ADVICE_RESTART;
    STR_COPY(s.signature, signature);
    world_signal(w, s);
}

void world_sample(struct world *w, usec_t interval, struct activity_fact f)
{
    struct signal s = signal_make(SIGNAL_ACTIVITY, PROVENANCE_AGENT);

    f.interval = interval;
    s.activity = f;
    world_signal(w, s);
}

void world_samples(struct world *w, int n, usec_t interval, struct activity_fact f)
{
    for (int i = 0; i < n; i++) {
        world_wait(w, interval);
        world_sample(w, interval, f);
    }
}

void world_exit(struct world *w, int code, int signal)
{
    struct event e = about_attempt(w, EVENT_ATTEMPT_EXITED);

    e.exited = (struct exit_fact){.pid = 4711, .code = signal ? -1 : code, .signal = signal};
    world_feed(w, e);
}

void world_gone(struct world *w)
{
    world_feed(w, about_attempt(w, EVENT_ATTEMPT_GONE));
    world_feed(w, about_attempt(w, EVENT_LOGS_DRAINED));
}

void world_die(struct world *w, int code)
{
    world_exit(w, code, 0);
    world_gone(w);
}

void world_attempt(struct world *w, int64_t from, int64_t to, const char *failure, enum cause cause)
{
    world_wait(w, 5 * USEC_PER_MIN);
    world_start(w);
    for (int64_t i = from; i <= to; i++) {
        world_wait(w, USEC_PER_SEC);
        world_step(w, i);
    }
    world_wait(w, USEC_PER_SEC);
    world_root(w, failure, cause);
    world_die(w, 1);
}

void world_interrupt(struct world *w, int signal)
{
    struct event e = about_job(w, EVENT_OPERATOR);

    e.request = (struct request_facts){.request = REQUEST_INTERRUPT, .signal = signal};
    world_feed(w, e);
}

void world_result(struct world *w, uint64_t intent, enum outcome outcome, const char *detail)
{
    struct event e = about_job(w, EVENT_RESULT);

    e.result = (struct result_facts){.intent = intent, .outcome = outcome};
    STR_COPY(e.result.detail, detail);
    world_feed(w, e);
}

const struct event *world_last(const struct world *w, enum event_kind kind)
{
    for (size_t i = w->log.n; i-- > 0;)
        if (w->log.v[i].kind == kind)
            return &w->log.v[i];
    return NULL;
}

const struct event *world_intent(const struct world *w, enum intent intent)
{
    for (size_t i = w->log.n; i-- > 0;)
        if (w->log.v[i].kind == EVENT_INTENT && w->log.v[i].intended.intent == intent)
            return &w->log.v[i];
    return NULL;
}

int world_count(const struct world *w, enum event_kind kind)
{
    int n = 0;

    for (size_t i = 0; i < w->log.n; i++)
        n += w->log.v[i].kind == kind;
    return n;
}

int world_count_intents(const struct world *w, enum intent intent)
{
    int n = 0;

    for (size_t i = 0; i < w->log.n; i++)
        n += w->log.v[i].kind == EVENT_INTENT && w->log.v[i].intended.intent == intent;
    return n;
}

const struct job *world_job(const struct world *w)
{
    return model_job(core_model(w->core), w->job);
}

const struct decision_facts *world_decision(const struct world *w)
{
    return &world_last(w, EVENT_DECISION)->decision;
}

static void check_decision(const struct world *w, const char *rule, uint32_t used, uint32_t allowed)
{
    assert_string_equal(world_decision(w)->rule, rule);
    assert_int_equal(world_decision(w)->used, used);
    assert_int_equal(world_decision(w)->allowed, allowed);
}

void world_check_restart(const struct world *w, const char *rule, uint32_t used, uint32_t allowed)
{
    check_decision(w, rule, used, allowed);
    assert_true(action_restarts(world_decision(w)->action));
    assert_int_equal(world_job(w)->state, JOB_STARTING);
}

void world_check_stop(const struct world *w, const char *rule, uint32_t used, uint32_t allowed)
{
    check_decision(w, rule, used, allowed);
    assert_int_equal(world_decision(w)->action, ACTION_STOP);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    assert_int_equal(world_last(w, EVENT_JOB_ENDED)->ended.exit_code, 75);
}

struct core *world_folded(const struct world *w, size_t n)
{
    struct core *c = core_new();

    for (size_t i = 0; i < n; i++)
        core_fold(c, &w->log.v[i]);
    return c;
}
