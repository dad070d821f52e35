/* SPDX-License-Identifier: Apache-2.0 */

/* The world of the simulation: what happens is an item with a time; an item makes inputs for core
 * and further items. Processes know nothing of core, core nothing of them but its inputs.
 *
 * Nothing here is tuned to core's numbers, except that a healthy job must be one: its silences are
 * shorter than the least timeout. */

#include "machine.h"

#include "check.h"

#include "base/str.h"
#include "core/model/event_fields.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#define MS  USEC_PER_MSEC
#define S   USEC_PER_SEC
#define MIN USEC_PER_MIN

static const char job_name[] = "train";

static usec_t between(struct machine *m, usec_t least, usec_t most)
{
    return rng_in(&m->rng, least, most);
}

/* Items */

static void later(struct machine *m, usec_t span, void (*happen)(struct machine *, uint64_t),
                  uint64_t arg)
{
    *VEC_PUSH(&m->items) = (struct item){m->now + span, m->order++, happen, arg};
}

static size_t first_item(const struct machine *m)
{
    size_t first = 0;

    for (size_t i = 1; i < m->items.n; i++) {
        const struct item *a = &m->items.v[i], *b = &m->items.v[first];

        if (a->at < b->at || (a->at == b->at && a->order < b->order))
            first = i;
    }
    return first;
}

/* Inputs */

static void carry_out(struct machine *m, uint64_t seq);

static void trace(const struct machine *m, const struct event *e)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    const struct field *body = event_body(e->kind);
    char at[DURATION_TEXT_MAX];

    if (!m->trace || (e->kind == EVENT_SIGNAL && e->signal.kind == SIGNAL_ACTIVITY) ||
        e->kind == EVENT_POLICY)
        return;
    if (body)
        fields_print(body->sub, (const char *)e + body->offset, &text);
    printf("%12s %5llu %s%s #%u %.300s\n", duration_format(e->time_us - BEGINNING, at),
           (unsigned long long)e->seq, event_is_input(e->kind) ? "" : "  ",
           event_kind_name(e->kind), e->attempt, strbuf_str(&text));
}

static void feed(struct machine *m, struct event e)
{
    struct core_output out = {0};

    if (e.kind != EVENT_POLICY)
        STR_COPY(e.job, job_name);
    e.seq = ++m->seq;
    e.time_us = m->now;
    trace(m, &e);
    check_step(m, &e, &out);
    VEC_FOREACH (&out.events, d) {
        m->seq++;
        trace(m, d);
        check_derived(m, d);
        if (d->kind == EVENT_INTENT)
            later(m, between(m, 0, 50 * MS), carry_out, d->seq);
    }
    core_output_done(&out);
}

static void feed_about(struct machine *m, enum event_kind kind, uint32_t attempt)
{
    feed(m, (struct event){.kind = kind, .attempt = attempt});
}

static void say(struct machine *m, const struct copy *c, struct signal s)
{
    struct event e = {.kind = EVENT_SIGNAL, .attempt = c->number};

    e.signal = s;
    e.signal.line = m->seq;
    e.signal.time_us = m->now;
    feed(m, e);
}

static void say_root(struct machine *m, const struct copy *c, enum cause cause)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);

    s.role = ROLE_ROOT;
    s.cause = cause;
    s.confidence = 90;
    STR_PRINTF(s.signature, "sim.%s", cause_name(cause));
    STR_PRINTF(s.text, "something about %s", cause_name(cause));
    say(m, c, s);
}

void machine_name_gpu(uint32_t i, char ret[DEVICE_NAME_LEN])
{
    str_printf(ret, DEVICE_NAME_LEN, "0000:%02x:00", i);
}

static void say_bad_gpu(struct machine *m, const struct copy *c)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL);

    s.role = ROLE_ROOT;
    s.layer = LAYER_KERNEL;
    s.cause = CAUSE_GPU_HARDWARE;
    s.blame = BLAME_DEVICE;
    s.advice = ADVICE_RESTART_EXCLUDING;
    s.confidence = 95;
    machine_name_gpu((uint32_t)m->script.bad_gpu, s.who.device);
    STR_COPY(s.signature, "sim.off-bus");
    STR_COPY(s.text, "a GPU has fallen off the bus");
    say(m, c, s);
}

static void say_role(struct machine *m, const struct copy *c, enum role role)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);

    s.role = role;
    STR_PRINTF(s.signature, "sim.%s", role_name(role));
    say(m, c, s);
}

static void say_save(struct machine *m, const struct copy *c, enum edge edge)
{
    struct signal s = signal_make(SIGNAL_CHECKPOINT, PROVENANCE_JOB_TEXT);

    s.role = ROLE_CHECKPOINT;
    s.checkpoint = (struct checkpoint_fact){.edge = edge, .step = c->step};
    say(m, c, s);
}

static void say_step(struct machine *m, const struct copy *c)
{
    struct signal s =
        signal_make(m->script.readable ? SIGNAL_STEP : SIGNAL_OUTPUT, PROVENANCE_JOB_TEXT);

    s.role = ROLE_PROGRESS;
    if (m->script.readable)
        s.step.step = c->step;
    say(m, c, s);
}

/* Processes */

static struct copy *find_copy(struct machine *m, uint64_t number)
{
    for (size_t i = m->copies.n; i-- > 0;)
        if (m->copies.v[i].number == number)
            return &m->copies.v[i];
    return NULL;
}

static bool lives(const struct copy *c)
{
    return c->first || c->rest;
}

static void drain(struct machine *m, uint64_t number)
{
    struct copy *c = find_copy(m, number);

    if (c && !c->drained) {
        c->drained = true;
        feed_about(m, EVENT_LOGS_DRAINED, c->number);
    }
}

static void vanish(struct machine *m, uint64_t number)
{
    struct copy *c = find_copy(m, number);

    if (!c || c->first || !c->rest)
        return;
    c->rest = false;
    c->ended = m->now;
    feed_about(m, EVENT_ATTEMPT_GONE, c->number);
    if (rng_chance(&m->rng, 95))
        later(m, between(m, 0, S), drain, number);
}

/* The first process ends; whether others stay behind is drawn. */
static void end_first(struct machine *m, struct copy *c, int code, int signal)
{
    struct event e = {.kind = EVENT_ATTEMPT_EXITED, .attempt = c->number};
    bool linger = rng_chance(&m->rng, 20);
    uint32_t number = c->number;

    c->first = false;
    c->rest = true;
    e.exited = (struct exit_fact){.pid = c->number, .code = signal ? -1 : code, .signal = signal};
    feed(m, e);
    if (!linger)
        later(m, between(m, 0, 100 * MS), vanish, number);
    else if (rng_chance(&m->rng, 50))
        later(m, between(m, 0, 5 * S), vanish, number);
}

static void exit_0(struct machine *m, uint64_t number)
{
    struct copy *c = find_copy(m, number);

    if (c && c->first)
        end_first(m, c, 0, 0);
}

static void exit_1(struct machine *m, uint64_t number)
{
    struct copy *c = find_copy(m, number);

    if (c && c->first)
        end_first(m, c, 1, 0);
}

/* Everything of it ends at once, by a signal from outside. */
static void end_all(struct machine *m, uint64_t number)
{
    struct copy *c = find_copy(m, number);

    if (!c || !lives(c))
        return;
    if (c->first)
        end_first(m, c, 143, rng_chance(&m->rng, 50) ? SIGTERM : 0);
    vanish(m, number);
}

static void hang(struct machine *m, struct copy *c)
{
    c->hanging = true;
    c->hangs_since = m->now;
}

static void fail(struct machine *m, struct copy *c)
{
    uint32_t number = c->number;

    switch (c->failure) {
    case FAIL_CRASH:
    case FAIL_IMPORT:
        say_root(m, c, c->failure == FAIL_IMPORT ? CAUSE_USER_CODE : m->script.cause);
        later(m, between(m, 0, 3 * S), exit_1, number);
        break;
    case FAIL_MUTE_CRASH:
        later(m, between(m, 0, 3 * S), exit_1, number);
        break;
    case FAIL_GPU:
        c->told_bad = true;
        say_bad_gpu(m, c);
        later(m, between(m, 0, 3 * S), exit_1, number);
        break;
    case FAIL_WEDGED:
        say_root(m, c, m->script.cause);
        hang(m, c);
        break;
    default:
        hang(m, c);
    }
}

static void step(struct machine *m, uint64_t number);

static void finish(struct machine *m, struct copy *c)
{
    c->done = true;
    if (m->script.readable)
        say_role(m, c, ROLE_FINISH);
    if (c->failure == FAIL_NO_EXIT)
        hang(m, c);
    else
        later(m, between(m, 0, 5 * S), exit_0, c->number);
}

static void go_on(struct machine *m, struct copy *c)
{
    unsigned pace = (unsigned)rng_in(&m->rng, 80, 120);

    if (c->step >= m->script.steps)
        finish(m, c);
    else
        later(m, m->script.step_time * pace / 100, step, c->number);
}

static void saved(struct machine *m, uint64_t number)
{
    struct copy *c = find_copy(m, number);

    if (!c || !c->first)
        return;
    if (c->step > m->durable)
        m->durable = c->step;
    if (m->script.saves_shown)
        say_save(m, c, EDGE_END);
    go_on(m, c);
}

static void step(struct machine *m, uint64_t number)
{
    struct copy *c = find_copy(m, number);

    if (!c || !c->first || c->hanging)
        return;
    if (c->failure != FAIL_NEVER && c->failure != FAIL_NO_EXIT && c->step + 1 >= c->fails_at) {
        fail(m, c);
        return;
    }
    c->step++;
    say_step(m, c);
    if (m->script.readable && c->step - c->durable_before > m->rhythmic)
        m->rhythmic = c->step - c->durable_before;
    if (c->step % m->script.save_every == 0 || c->step == m->script.steps) {
        if (m->script.save_is_long)
            say_save(m, c, EDGE_BEGIN);
        later(m, m->script.save_time, saved, number);
    } else {
        go_on(m, c);
    }
}

static void begin_work(struct machine *m, uint64_t number)
{
    struct copy *c = find_copy(m, number);

    if (!c || !c->first)
        return;
    if (c->failure == FAIL_IMPORT)
        fail(m, c);
    else
        go_on(m, c);
}

static void draw_failure(struct machine *m, struct copy *c)
{
    const struct script *s = &m->script;

    if (c->with_bad && rng_chance(&m->rng, 50)) {
        c->failure = FAIL_GPU;
        c->fails_at = m->durable + rng_in(&m->rng, 1, 60);
    } else if (s->always) {
        c->failure = s->fixed;
        c->fails_at = s->fixed_at;
    } else if (rng_chance(&m->rng, s->trouble)) {
        c->failure = (enum trouble)rng_in(&m->rng, FAIL_CRASH, FAIL_WEDGED);
        c->fails_at = m->durable + rng_in(&m->rng, 1, 60);
    }
    c->ignores_term = rng_chance(&m->rng, s->ignores_term);
    c->unkillable = rng_chance(&m->rng, s->unkillable);
}

/* how: what the START asked for, NULL = the first of a run. */
static bool uses_bad_gpu(const struct machine *m, const struct intent_facts *how)
{
    char bad[DEVICE_NAME_LEN];

    if (m->script.bad_gpu < 0)
        return false;
    machine_name_gpu((uint32_t)m->script.bad_gpu, bad);
    for (uint32_t i = 0; how && i < how->n_without; i++)
        if (streq(how->without[i], bad))
            return false;
    return true;
}

static void start_copy(struct machine *m, uint32_t number, const struct intent_facts *how)
{
    struct copy *c;

    check_start(m, number, how);
    c = VEC_PUSH(&m->copies);
    *c = (struct copy){.number = number, .first = true, .rest = true, .began = m->now};
    c->step = c->durable_before = m->durable;
    c->with_bad = uses_bad_gpu(m, how);
    draw_failure(m, c);
    m->starts++;
    later(m, m->script.startup, begin_work, number);
    feed_about(m, EVENT_ATTEMPT_STARTED, number);
}

/* The sampler */

static struct activity_fact look(struct machine *m, const struct copy *c)
{
    usec_t all = 4 * m->script.sampled_every;
    struct activity_fact f = {.interval = m->script.sampled_every, .processes = 4};

    if (!c->hanging) {
        f.cpu = all / 2;
        f.io = 50 << 20;
    } else if (c->failure == FAIL_SPIN) {
        f.cpu = all;
    } else if (c->failure == FAIL_STOPPED) {
        f.cpu = all / 2;
        f.stopped = 1;
    }
    return f;
}

static void sample(struct machine *m, uint64_t arg)
{
    struct event e = {.kind = EVENT_SIGNAL};

    (void)arg;
    for (size_t i = 0; i < m->copies.n; i++) {
        if (!m->copies.v[i].first)
            continue;
        e.attempt = m->copies.v[i].number;
        e.signal = signal_make(SIGNAL_ACTIVITY, PROVENANCE_AGENT);
        e.signal.activity = look(m, &m->copies.v[i]);
        feed(m, e);
    }
    if (!m->ended)
        later(m, m->script.sampled_every, sample, 0);
}

/* Intents */

struct search {
    uint64_t seq;
    bool found;
};

static void match(void *ctx, const struct event *intent)
{
    struct search *s = ctx;

    s->found |= intent->seq == s->seq;
}

static bool is_pending(const struct machine *m, uint64_t seq)
{
    struct search s = {.seq = seq};

    core_pending(m->core, match, &s);
    return s.found;
}

static void answer(struct machine *m, uint64_t seq, enum outcome outcome)
{
    struct event e = {.kind = EVENT_RESULT};

    e.result = (struct result_facts){.intent = seq, .outcome = outcome};
    STR_COPY(e.result.detail, outcome == OUTCOME_DONE ? "" : "as drawn");
    feed(m, e);
}

static void report_done(struct machine *m, uint64_t seq)
{
    answer(m, seq, OUTCOME_DONE);
}

static void do_start(struct machine *m, uint64_t seq)
{
    bool trouble = rng_chance(&m->rng, m->script.action_trouble);
    struct event e;

    if (!is_pending(m, seq)) /* void by now */
        return;
    journal_get(&m->journal, seq - 1, &e);
    if (!trouble) {
        start_copy(m, e.attempt, &e.intended);
        answer(m, seq, OUTCOME_DONE);
    } else if (rng_chance(&m->rng, 60)) {
        answer(m, seq, OUTCOME_FAILED);
    } else {
        answer(m, seq, OUTCOME_UNKNOWN);
        if (rng_chance(&m->rng, 50)) /* it did start after all */
            start_copy(m, e.attempt, &e.intended);
    }
}

static void do_kill(struct machine *m, const struct event *e)
{
    struct copy *c = find_copy(m, e->attempt);
    bool works = !rng_chance(&m->rng, m->script.action_trouble);
    usec_t dies = between(m, 0, 200 * MS);

    if (!c || !lives(c)) {
        answer(m, e->seq, OUTCOME_DONE);
        return;
    }
    check_kill(m, c);
    if (e->intended.signal == SIGTERM)
        dies += c->ignores_term ? e->intended.grace : between(m, 0, 5 * S);
    if (c->unkillable)
        dies += 20 * MIN;
    if (works) {
        later(m, dies, end_all, e->attempt);
        later(m, dies + between(m, 0, S), report_done, e->seq);
    } else if (rng_chance(&m->rng, 50)) {
        answer(m, e->seq, OUTCOME_FAILED);
    } else {
        if (rng_chance(&m->rng, 50))
            later(m, dies, end_all, e->attempt);
        answer(m, e->seq, OUTCOME_UNKNOWN);
    }
}

static void carry_out(struct machine *m, uint64_t seq)
{
    struct event e;

    if (!is_pending(m, seq))
        return;
    journal_get(&m->journal, seq - 1, &e);
    switch (e.intended.intent) {
    case INTENT_START:
        later(m, e.intended.not_before > m->now ? e.intended.not_before - m->now : 0, do_start,
              seq);
        break;
    case INTENT_KILL:
        do_kill(m, &e);
        break;
    default:
        answer(m, seq, rng_chance(&m->rng, 80) ? OUTCOME_DONE : OUTCOME_UNKNOWN);
    }
}

/* The user, the clock, the death of reknit */

static void interrupt(struct machine *m, uint64_t again)
{
    struct event e = {.kind = EVENT_OPERATOR};

    if (m->ended)
        return;
    m->asked++;
    for (size_t i = 0; i < m->copies.n; i++) {
        struct copy *c = &m->copies.v[i];
        bool obeys = !c->hanging && !c->ignores_term && c->first;

        if (again || (lives(c) && !c->first))
            later(m, c->unkillable ? 20 * MIN : 100 * MS, end_all, c->number);
        else if (obeys)
            later(m, between(m, 0, 5 * S), rng_chance(&m->rng, 50) ? exit_0 : exit_1, c->number);
    }
    e.request = (struct request_facts){.request = REQUEST_INTERRUPT, .signal = SIGINT};
    feed(m, e);
    later(m, MIN, interrupt, 1);
}

static void jump(struct machine *m, uint64_t arg)
{
    (void)arg;
    m->now += between(m, 0, 3 * USEC_PER_HOUR);
    if (!m->ended)
        later(m, between(m, MIN, 2 * USEC_PER_HOUR), jump, 0);
}

/* A job that hangs without proof is the user's to end; anything else was to be noticed. */
static void grow_impatient(struct machine *m, uint64_t arg)
{
    (void)arg;
    for (size_t i = 0; i < m->copies.n; i++)
        if (m->copies.v[i].first && m->copies.v[i].hanging &&
            m->now - m->copies.v[i].hangs_since > 10 * USEC_PER_HOUR) {
            check_unnoticed(m, &m->copies.v[i]);
            interrupt(m, 0);
            return;
        }
    if (!m->ended)
        later(m, USEC_PER_HOUR, grow_impatient, 0);
}

static void show_job(struct machine *m)
{
    struct event e = {.kind = EVENT_JOB_SEEN};

    e.seen.nodes = m->script.nodes;
    e.seen.gpus = m->script.nodes * m->script.gpus;
    e.seen.n_devices = m->script.gpus;
    for (uint32_t i = 0; i < m->script.gpus; i++)
        machine_name_gpu(i, e.seen.devices[i]);
    feed(m, e);
}

/* reknit is killed: the job dies with it. Another reknit run finds the journal. */
static void lose(struct machine *m, uint64_t again)
{
    if (m->ended)
        return;
    m->lost = true;
    m->items.n = 0;
    for (size_t i = 0; i < m->copies.n; i++)
        m->copies.v[i].first = m->copies.v[i].rest = false;
    check_refold(m);
    feed_about(m, EVENT_RUNNER_LOST, 0);
    if (!m->ended)
        machine_fail(m, "the job did not end with its runner");
    if (!again) {
        m->ended = m->lost = false;
        m->asked = m->idle_attempts = m->starts = m->restarts = 0;
        show_job(m);
        later(m, 0, sample, 0);
        later(m, USEC_PER_HOUR, grow_impatient, 0);
        start_copy(m, 100, NULL);
    }
}

/* Runs */

/* A site's own policy in half of the runs. */
static void draw_policy(struct machine *m)
{
    struct policy *p = &m->script.policy;
    struct rng *r = &m->rng;

    policy_default(p);
    if (rng_chance(r, 50))
        return;
    p->max_waste = (uint32_t)rng_in(r, 0, 100);
    p->waste_floor = between(m, 0, 40) * MIN;
    p->max_node_restarts_per_day = (uint32_t)rng_in(r, 0, 1000);
    p->large_job = (uint32_t)rng_in(r, 0, 2000);
    p->max_unexplained = (uint32_t)rng_in(r, 1, 3);
    p->same_step_retries = (uint32_t)rng_in(r, 0, 3);
    p->exclude_devices = rng_chance(r, 70);
    p->min_devices = (uint32_t)rng_in(r, 0, 4);
}

static void draw_size(struct machine *m)
{
    struct rng *r = &m->rng;
    struct script *s = &m->script;

    s->nodes = rng_chance(r, 50) ? (uint32_t)rng_in(r, 0, 400) : 1;
    s->gpus = rng_chance(r, 60) ? (uint32_t)rng_in(r, 1, 8) : 0;
    s->bad_gpu = rng_chance(r, 40) ? (int32_t)rng_in(r, 0, s->gpus > 0 ? s->gpus - 1 : 0) : -1;
}

static void draw_script(struct machine *m)
{
    static const enum cause causes[] = {
        CAUSE_UNKNOWN,   CAUSE_GPU_HARDWARE,     CAUSE_NETWORK,
        CAUSE_STORAGE,   CAUSE_GPU_OOM,          CAUSE_NUMERICAL,
        CAUSE_USER_CODE, CAUSE_EXTERNAL_SERVICE, CAUSE_PREEMPTION,
    };
    struct rng *r = &m->rng;
    struct script *s = &m->script;
    bool chaos = rng_chance(r, 30);

    s->steps = rng_in(r, 5, 200);
    s->save_every = rng_in(r, 2, 30);
    s->step_time = between(m, 200 * MS, 25 * S);
    s->save_time = between(m, 0, 60 * S);
    s->startup = between(m, S, 8 * MIN);
    s->readable = rng_chance(r, 85);
    s->saves_shown = s->readable && rng_chance(r, 70);
    s->save_is_long = s->saves_shown && rng_chance(r, 50);
    s->trouble = (unsigned)rng_in(r, 0, 100);
    s->always = rng_chance(r, 20);
    s->fixed = (enum trouble)rng_in(r, FAIL_NEVER, FAIL_WEDGED);
    s->fixed_at = rng_in(r, 1, 100);
    s->cause = causes[rng_in(r, 0, ARRAY_SIZE(causes) - 1)];
    s->ignores_term = chaos ? 30 : 5;
    s->unkillable = chaos ? 10 : 0;
    s->action_trouble = chaos ? 15 : 0;
    s->sampler = rng_chance(r, 90);
    s->sampled_every = between(m, 1, 15) * S;
    s->interrupts = rng_chance(r, 15);
    s->loses_runner = rng_chance(r, 10);
    s->clock_jumps = rng_chance(r, 10);
    draw_policy(m);
    draw_size(m);
}

static void feed_policy(struct machine *m)
{
    struct event e = {.kind = EVENT_POLICY};

    e.policy = m->script.policy;
    feed(m, e);
}

void machine_init(struct machine *m, uint64_t seed, bool trace_it)
{
    usec_t whole;

    memset(m, 0, sizeof(*m));
    m->seed = m->rng.state = seed;
    m->trace = trace_it;
    m->now = BEGINNING;
    m->core = core_new();
    draw_script(m);
    whole = m->script.startup + m->script.steps * m->script.step_time;
    feed_policy(m);
    show_job(m);
    if (m->script.sampler)
        later(m, 0, sample, 0);
    if (m->script.interrupts)
        later(m, between(m, 0, 2 * whole), interrupt, 0);
    if (m->script.loses_runner)
        later(m, between(m, 0, 2 * whole), lose, rng_chance(&m->rng, 50));
    if (m->script.clock_jumps)
        later(m, between(m, 0, whole), jump, 0);
    later(m, USEC_PER_HOUR, grow_impatient, 0);
    start_copy(m, 1, NULL);
}

void machine_done(struct machine *m)
{
    core_free(m->core);
    journal_done(&m->journal);
    VEC_DONE(&m->items);
    VEC_DONE(&m->copies);
}

void machine_run(struct machine *m)
{
    for (int turns = 0; m->items.n > 0; turns++) {
        size_t i = first_item(m);
        struct item item = m->items.v[i];
        usec_t due = core_deadline(m->core);

        if (turns > 200000)
            machine_fail(m, "it never ends");
        if (due <= item.at || due <= m->now) {
            m->now = due > m->now ? due : m->now;
            feed_about(m, EVENT_TICK, 0);
            continue;
        }
        VEC_REMOVE(&m->items, i);
        m->now = item.at > m->now ? item.at : m->now;
        item.happen(m, item.arg);
    }
    check_end(m);
}
