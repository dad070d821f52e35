/* SPDX-License-Identifier: Apache-2.0 */

#include "twins.h"

#include <assert.h>
#include <stdlib.h>

void twins_init(struct twins *t, void (*see)(const struct twins *t, const struct event *derived))
{
    *t = (struct twins){.stepped = core_new(), .folded = core_new(), .see = see};
}

int64_t twins_number(uint8_t b)
{
    static const int64_t odd[] = {INT64_MIN, INT64_MIN + 1, -1, INT64_MAX, INT32_MAX};

    return b < 200   ? b
           : b < 250 ? (int64_t)(b - 199) * 30 * USEC_PER_SEC
                     : odd[b - 250 > 4 ? 4 : b - 250];
}

/* A time that has come is one, whenever that was. */
static usec_t deadline(const struct core *c)
{
    usec_t due = core_deadline(c), now = core_model(c)->now;

    return due > now ? due : now;
}

void twins_step(struct twins *t, struct event *e)
{
    struct core_output out = {0};
    const struct model *m = core_model(t->stepped);

    e->seq = ++t->seq;
    core_step(t->stepped, e, &out);
    core_fold(t->folded, e);
    for (size_t i = 0; i < out.events.n; i++) {
        t->see(t, &out.events.v[i]);
        core_fold(t->folded, &out.events.v[i]);
        ++t->seq;
    }
    core_output_done(&out);
    assert(deadline(t->stepped) == deadline(t->folded));
    /* The input was about one job, and its time passed for the others too. */
    if (deadline(t->stepped) == m->now) {
        struct event tick = {.kind = EVENT_TICK, .time_us = m->now};

        assert(e->kind != EVENT_TICK);
        twins_step(t, &tick);
    }
}

void twins_done(struct twins *t)
{
    const struct model *x = core_model(t->stepped), *y = core_model(t->folded);

    assert(x->now == y->now && x->jobs.n == y->jobs.n && x->refused == y->refused);
    for (size_t i = 0; i < x->jobs.n; i++) {
        assert(x->jobs.v[i]->state == y->jobs.v[i]->state);
        assert(x->jobs.v[i]->attempt.number == y->jobs.v[i]->attempt.number);
        assert(x->jobs.v[i]->ledger.restarts == y->jobs.v[i]->ledger.restarts);
        assert(x->jobs.v[i]->pending.n == y->jobs.v[i]->pending.n);
    }
    core_free(t->stepped);
    core_free(t->folded);
}
