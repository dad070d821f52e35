/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include "base/str.h"
#include "core/model/event_fields.h"

/* splitmix64: small, and the same everywhere. */
uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t rng_in(struct rng *r, int64_t least, int64_t most)
{
    return least + (int64_t)(rng_next(r) % (uint64_t)(most - least + 1));
}

bool rng_chance(struct rng *r, unsigned percent)
{
    return rng_next(r) % 100 < percent;
}

static size_t event_size(const struct event *e)
{
    const struct field *body = event_body(e->kind);

    return body ? body->offset + body->size : offsetof(struct event, policy);
}

void journal_add(struct journal *j, const struct event *e)
{
    *VEC_PUSH(&j->events) = xmemdup(e, event_size(e));
}

void journal_get(const struct journal *j, size_t i, struct event *ret)
{
    memset(ret, 0, sizeof(*ret));
    memcpy(ret, j->events.v[i], event_size(j->events.v[i]));
}

void journal_done(struct journal *j)
{
    VEC_FOREACH (&j->events, e)
        free(*e);
    VEC_DONE(&j->events);
}

struct core *journal_fold(const struct journal *j)
{
    struct core *c = core_new();
    struct event e;

    for (size_t i = 0; i < j->events.n; i++) {
        journal_get(j, i, &e);
        core_fold(c, &e);
    }
    return c;
}

static bool is_next(const struct journal *j, size_t i, const struct event *derived, char ret[160])
{
    struct event e;
    char where[96];

    if (i >= j->events.n)
        return str_printf(ret, 160, "more events are derived"), false;
    journal_get(j, i, &e);
    if (event_differs(&e, derived, where)[0] == '\0')
        return true;
    str_printf(ret, 160, "event %llu (%s) differs in %s", (unsigned long long)e.seq,
               event_kind_name(e.kind), where);
    return false;
}

bool journal_replays(const struct journal *j, char ret[160])
{
    _cleanup_(core_freep) struct core *c = core_new();
    struct core_output out = {0};
    struct event e;
    bool same = true;

    for (size_t i = 0; same && i < j->events.n;) {
        journal_get(j, i++, &e);
        same = event_is_input(e.kind);
        if (!same) {
            str_printf(ret, 160, "event %llu is not derived", (unsigned long long)e.seq);
            break;
        }
        core_step(c, &e, &out);
        for (size_t k = 0; same && k < out.events.n; k++)
            same = is_next(j, i++, &out.events.v[k], ret);
    }
    core_output_done(&out);
    return same;
}
