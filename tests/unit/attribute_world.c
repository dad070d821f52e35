/* SPDX-License-Identifier: Apache-2.0 */
#include "attribute_world.h"

#include "base/alloc.h"
#include "base/str.h"

int story_setup(void **state)
{
    struct story *s = xnew(struct story);

    s->e = evidence_new();
    s->now = T0;
    *state = s;
    return 0;
}

int story_teardown(void **state)
{
    struct story *s = *state;

    evidence_free(s->e);
    free(s);
    return 0;
}

struct signal make(struct story *s, enum signal_kind kind, const char *id, enum role role)
{
    struct signal x = signal_make(kind, PROVENANCE_JOB_TEXT);

    x.role = role;
    x.line = ++s->line;
    x.time_us = s->now;
    STR_COPY(x.signature, id);
    STR_COPY(x.text, id);
    return x;
}

void steps(struct story *s, int64_t from, int64_t to, usec_t each)
{
    for (int64_t i = from; i <= to; i++) {
        struct signal x;

        s->now += each;
        x = make(s, SIGNAL_STEP, "step", ROLE_PROGRESS);
        x.step.step = i;
        x.step.duration = each;
        evidence_add(s->e, &x);
    }
}

struct signal hit(struct story *s, const char *id, enum role role, enum cause cause,
                  int32_t confidence)
{
    struct signal x = make(s, SIGNAL_HIT, id, role);

    x.cause = cause;
    x.confidence = confidence;
    return x;
}

void say(struct story *s, const char *id, enum role role, enum cause cause, int32_t confidence,
         int32_t rank)
{
    struct signal x = hit(s, id, role, cause, confidence);

    x.who.rank = rank;
    evidence_add(s->e, &x);
}

void wait_in(struct story *s, int32_t rank, const char *op, int64_t seq, int64_t enqueued)
{
    struct signal x = make(s, SIGNAL_COLLECTIVE, "watchdog", ROLE_SYMPTOM);

    x.who.rank = rank;
    x.collective.seq = seq;
    x.collective.enqueued = enqueued;
    STR_COPY(x.collective.op, op);
    evidence_add(s->e, &x);
}

const struct incident *judge(struct story *s)
{
    attribute(s->e, ENDING_UNKNOWN, &s->in);
    return &s->in;
}
