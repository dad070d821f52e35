/* SPDX-License-Identifier: Apache-2.0 */

/* A scheduler that says anything, in any order, of two jobs at once: core asks for nothing that it
 * must not ask for, and folding comes to the same as stepping.
 *
 * Each seven bytes are an event: kind, which job and attempt, time that passed, four for its
 * body. */

#include "twins.h"

#include "base/str.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BYTES 7

static const enum event_kind kinds[] = {
    EVENT_JOB_SEEN, EVENT_LOOK,   EVENT_LOOK,          EVENT_LOOK,         EVENT_ATTEMPT_STARTED,
    EVENT_SIGNAL,   EVENT_SIGNAL, EVENT_RESULT,        EVENT_RESULT,       EVENT_ATTEMPT_EXITED,
    EVENT_FENCED,   EVENT_MODE,   EVENT_BRAKES,        EVENT_OPERATOR,     EVENT_ATTEMPT_GONE,
    EVENT_POLICY,   EVENT_TICK,   EVENT_LAUNCH_FAILED, EVENT_LOGS_DRAINED,
};

static const char *node(uint8_t b)
{
    static const char *const names[] = {"n1", "n2", "n3", ""};

    return names[b % ARRAY_SIZE(names)];
}

static struct look_facts some_look(const uint8_t *b, usec_t now)
{
    struct look_facts f = {.state = (enum sched_state)(b[0] % SCHED_MAX),
                           .completing = b[0] >= 240,
                           .held = (b[1] & 15) == 1,
                           .constrained = (b[1] & 15) == 2,
                           .requeueable = (b[1] & 15) != 3,
                           .successor = (b[1] & 15) == 4,
                           .restarts = b[2] % 6,
                           .tasks = b[2] / 64,
                           .submitted = USEC_PER_DAY,
                           .begin = b[3] < 128 ? 0 : now + (usec_t)twins_number(b[3] - 128),
                           .started = USEC_PER_DAY};

    STR_COPY(f.nodes, "n1,n2");
    STR_COPY(f.lost_node, b[1] > 230 ? node(b[1]) : "");
    if (b[1] > 200 && b[1] <= 230)
        STR_COPY(f.kept_out[f.n_kept_out++], node(b[2]));
    return f;
}

static struct signal some_signal(const uint8_t *b)
{
    static const enum signal_kind of[] = {SIGNAL_HIT, SIGNAL_STEP, SIGNAL_EXIT, SIGNAL_CHECKPOINT};
    struct signal s =
        signal_make(of[b[0] % ARRAY_SIZE(of)], (enum provenance)(b[3] % PROVENANCE_MAX));

    s.role = (enum role)(b[1] % ROLE_MAX);
    s.cause = (enum cause)(b[2] % CAUSE_MAX);
    s.confidence = b[1] % 101;
    s.advice = (enum advice)(b[1] % ADVICE_MAX);
    s.blame = (enum blame)(b[0] % BLAME_MAX);
    STR_COPY(s.who.node, node(b[2]));
    if (s.kind == SIGNAL_STEP)
        s.step.step = b[1];
    if (s.kind == SIGNAL_EXIT)
        s.exit = (struct exit_fact){1, b[1], b[2] % 16};
    if (s.kind == SIGNAL_CHECKPOINT)
        s.checkpoint = (struct checkpoint_fact){(enum edge)(b[1] % EDGE_MAX), b[2]};
    return s;
}

static void set_policy(struct event *e, const uint8_t *b)
{
    policy_default(&e->policy);
    e->policy.max_restarts = b[0];
    e->policy.continue_after_time_limit = b[1] % 2;
    e->policy.max_node_restarts_per_day = b[2] % 4;
}

static void set_brakes(struct brakes *f, const uint8_t *b)
{
    *f = (struct brakes){.actions_per_hour = b[0] % 4,
                         .actions_per_partition_hour = b[1] % 4,
                         .exclusions_per_node_hour = b[1] / 64,
                         .storm_jobs = b[2] % 4,
                         .storm_window = b[2] * USEC_PER_SEC,
                         .storm_per_minute = b[3] % 4,
                         .proposal_life = b[3] * USEC_PER_SEC,
                         .early_start = b[0] / 64 * USEC_PER_SEC,
                         .exclusion_life = b[2] * USEC_PER_MIN};
}

static uint64_t newest_intent(const struct model *m, const char *name)
{
    const struct job *j = model_job(m, name);

    return j && j->pending.n > 0 ? j->pending.v[j->pending.n - 1].seq : 0;
}

static void set_body(struct event *e, const struct model *m, const uint8_t *b)
{
    const struct job *j = model_job(m, e->job);

    switch (e->kind) {
    case EVENT_POLICY:
        set_policy(e, b);
        break;
    case EVENT_BRAKES:
        set_brakes(&e->brakes, b);
        break;
    case EVENT_JOB_SEEN:
        e->seen = (struct job_facts){.scheduled = true, .id = 7, .interactive = b[0] > 240};
        STR_COPY(e->seen.partition, b[1] % 2 ? "gpu" : "cpu");
        break;
    case EVENT_LOOK:
        e->look = some_look(b, e->time_us);
        break;
    case EVENT_LAUNCH_FAILED:
    case EVENT_RESULT:
        e->result = (struct result_facts){.intent = b[1] < 32 ? b[0] : newest_intent(m, e->job),
                                          .outcome = (enum outcome)(b[2] % OUTCOME_MAX)};
        break;
    case EVENT_SIGNAL:
        e->signal = some_signal(b);
        break;
    case EVENT_ATTEMPT_EXITED:
        e->exited = (struct exit_fact){1, b[0] % 4, b[1] % 3};
        break;
    case EVENT_FENCED:
        STR_COPY(e->fenced.node, node(b[0]));
        break;
    case EVENT_MODE:
        e->mode.mode = b[0] < 128 ? MODE_ACT : (enum mode)(b[0] % MODE_MAX);
        e->mode.asked = b[1] < 64;
        e->mode.owner = b[1] < 48;
        break;
    case EVENT_OPERATOR:
        e->request = (struct request_facts){.request = (enum request)(b[0] % REQUEST_MAX),
                                            .of = b[1] < 16 || !j ? b[1] : j->sched.decision};
        break;
    default:
        break;
    }
}

/* What must hold whenever a scheduler is asked for something. The event is folded in already. */
static void see(const struct twins *t, const struct event *e)
{
    const struct model *m = core_model(t->stepped);
    const struct job *j = model_job(m, e->job);
    const struct sched *s;

    assert(j);
    s = &j->sched;
    if (e->kind != EVENT_INTENT || e->intended.intent == INTENT_INSPECT)
        return;
    assert(e->intended.intent != INTENT_START && e->intended.intent != INTENT_KILL);
    /* What was done is taken back, or ended, also when nothing else may be done. */
    if (e->intended.intent == INTENT_RELEASE)
        return;
    assert(!m->frozen);
    if (e->intended.intent == INTENT_REQUEUE) {
        assert(!s->interactive && s->mode > MODE_OBSERVE && !s->rejected);
        assert(j->attempt.decision.mode > MODE_OBSERVE);
        assert(s->approved || (s->mode == MODE_ACT && !s->succeeded));
        assert(s->look.state != SCHED_PENDING && s->look.state != SCHED_CANCELLED &&
               s->look.state != SCHED_COMPLETED && s->look.state != SCHED_FORGOTTEN);
        assert(e->intended.restarts == s->look.restarts);
        assert(!j->requested);
    }
    if (e->intended.intent == INTENT_CANCEL)
        assert(s->look.state != SCHED_PENDING || s->unwanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct twins t;
    usec_t now = USEC_PER_DAY;

    twins_init(&t, see);
    for (size_t i = 0; i + BYTES <= size && i < 300 * BYTES; i += BYTES) {
        const uint8_t *b = data + i;
        struct event e = {.kind = kinds[b[0] % ARRAY_SIZE(kinds)]};

        if (e.kind != EVENT_TICK && e.kind != EVENT_BRAKES &&
            ((e.kind != EVENT_POLICY && e.kind != EVENT_OPERATOR) || b[1] > 64))
            STR_COPY(e.job, b[1] > 192 ? "8-1" : "7-1");
        e.attempt = b[1] % 6;
        now += b[2] * (b[2] > 200 ? USEC_PER_MIN : USEC_PER_SEC / 10);
        e.time_us = now;
        set_body(&e, core_model(t.stepped), b + 3);
        twins_step(&t, &e);
    }
    twins_done(&t);
    return 0;
}
