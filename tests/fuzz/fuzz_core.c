/* SPDX-License-Identifier: Apache-2.0 */

/* Inputs in any order and with any numbers: core refuses what makes no sense, never asks for a tick
 * that is due, never starts a second copy, and folding comes to the same as stepping.
 *
 * Each six bytes are an event: kind, attempt, time that passed, three for its body. */

#include "twins.h"

#include "base/str.h"
#include "core/model/event_fields.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BYTES   6
#define DEVICES 5

static struct signal some_signal(const uint8_t *b)
{
    struct signal s = signal_make((enum signal_kind)(b[0] % SIGNAL_MAX), PROVENANCE_JOB_TEXT);

    s.role = (enum role)(b[1] % ROLE_MAX);
    s.cause = (enum cause)(b[2] % CAUSE_MAX);
    s.layer = (enum layer)(b[2] % LAYER_MAX);
    s.confidence = b[1];
    s.who.rank = b[2] % 3 - 1;
    s.advice = (enum advice)(b[1] % ADVICE_MAX);
    s.blame = (enum blame)(b[0] % BLAME_MAX);
    if (b[1] % 4 == 0)
        STR_PRINTF(s.who.device, "0000:%02x:00", b[2] % (DEVICES + 1));
    switch (s.kind) {
    case SIGNAL_STEP:
        s.step.step = twins_number(b[1]);
        break;
    case SIGNAL_CHECKPOINT:
        s.checkpoint = (struct checkpoint_fact){(enum edge)(b[1] % EDGE_MAX), twins_number(b[2])};
        break;
    case SIGNAL_PHASE:
        s.phase = (struct phase_fact){(enum phase)(b[1] % PHASE_MAX), (enum edge)(b[2] % EDGE_MAX)};
        break;
    case SIGNAL_EXIT:
        s.exit = (struct exit_fact){1, b[1], b[2]};
        break;
    case SIGNAL_ACTIVITY:
        s.activity = (struct activity_fact){.interval = twins_number(b[1]),
                                            .cpu = twins_number(b[2]),
                                            .processes = b[2] % 5,
                                            .stopped = b[1] % 2};
        break;
    default:
        break;
    }
    return s;
}

static void set_body(struct event *e, const uint8_t *b)
{
    switch (e->kind) {
    case EVENT_POLICY:
        policy_default(&e->policy);
        e->policy.hang.timeout_min = twins_number(b[0]);
        e->policy.kill_grace = twins_number(b[1]);
        e->policy.max_restarts = b[2];
        e->policy.waste_floor = twins_number(b[2]);
        e->policy.max_waste = b[1] % 101;
        e->policy.max_node_restarts_per_day = b[0] % 4;
        e->policy.large_job = b[1] % 3;
        e->policy.same_step_retries = b[2] % 3;
        e->policy.exclude_devices = b[0] % 2;
        e->policy.min_devices = b[2] % 5;
        break;
    case EVENT_JOB_SEEN:
        e->seen.nodes = (uint32_t)twins_number(b[0]);
        e->seen.gpus = (uint32_t)twins_number(b[1]);
        e->seen.n_devices = b[2] % DEVICES;
        for (uint32_t i = 0; i < e->seen.n_devices; i++)
            STR_PRINTF(e->seen.devices[i], "0000:%02x:00", i);
        break;
    case EVENT_SIGNAL:
        e->signal = some_signal(b);
        break;
    case EVENT_ATTEMPT_EXITED:
        e->exited = (struct exit_fact){1, b[0] % 4, b[1] % 3};
        break;
    case EVENT_RESULT:
        e->result = (struct result_facts){.intent = (uint64_t)b[0] + b[1],
                                          .outcome = (enum outcome)(b[2] % OUTCOME_MAX)};
        break;
    case EVENT_OPERATOR:
        e->request = (struct request_facts){.signal = b[0]};
        break;
    default:
        break;
    }
}

static void see(const struct twins *t, const struct event *e)
{
    const struct job *j = model_job(core_model(t->stepped), e->job);

    if (e->kind != EVENT_INTENT || e->intended.intent != INTENT_START)
        return;
    assert(j->attempt.gone && e->attempt == j->attempt.number + 1);
    /* One is always left, and none is kept out twice. */
    assert(e->intended.n_without == 0 || e->intended.n_without < j->n_devices);
    for (uint32_t i = 1; i < e->intended.n_without; i++)
        for (uint32_t k = 0; k < i; k++)
            assert(!streq(e->intended.without[i], e->intended.without[k]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct twins t;
    usec_t now = USEC_PER_DAY;

    twins_init(&t, see);
    for (size_t i = 0; i + BYTES <= size && i < 300 * BYTES; i += BYTES) {
        struct event e = {.kind = (enum event_kind)(data[i] % EVENT_FINDING)};

        if (e.kind != EVENT_TICK && e.kind != EVENT_POLICY)
            STR_COPY(e.job, data[i] > 200 ? "other" : data[i] > 190 ? "" : "job");
        e.attempt = data[i + 1] % 5;
        now += data[i + 2] * (data[i + 2] > 128 ? USEC_PER_MIN : USEC_PER_SEC / 10);
        e.time_us = now;
        set_body(&e, data + i + 3);
        twins_step(&t, &e);
    }
    twins_done(&t);
    return 0;
}
