/* SPDX-License-Identifier: Apache-2.0 */
#include "source/agent_receipts.h"

#include <assert.h>
#include <string.h>

static struct agent_told *told_of(struct agent_receipts *r, int64_t origin)
{
    for (size_t i = 0; i < r->n_told; i++) {
        if (r->told[i].origin == origin)
            return &r->told[i];
    }
    if (r->n_told == AGENT_ORIGINS_MAX)
        memmove(r->told, r->told + 1, --r->n_told * sizeof(r->told[0]));
    r->told[r->n_told] = (struct agent_told){.origin = origin};
    return &r->told[r->n_told++];
}

static struct agent_open *find_open(struct agent_receipts *r, int64_t origin, int64_t id)
{
    VEC_FOREACH (&r->open, o) {
        if (o->origin == origin && o->id == id)
            return o;
    }
    return NULL;
}

enum agent_receipt_kind agent_receipts_take(struct agent_receipts *r, int64_t origin, int64_t id)
{
    struct agent_told *told = told_of(r, origin);

    if (id <= told->last)
        return find_open(r, origin, id) ? AGENT_RECEIPT_WAITS : AGENT_RECEIPT_SAFE;
    if (r->open.n >= AGENT_OPEN_MAX)
        return AGENT_RECEIPT_NO_ROOM;
    *VEC_PUSH(&r->open) = (struct agent_open){.origin = origin, .id = id, .before = told->last};
    told->last = id;
    return AGENT_RECEIPT_NEW;
}

void agent_receipts_untake(struct agent_receipts *r)
{
    const struct agent_open *last;

    assert(r->open.n > 0);
    last = &r->open.v[--r->open.n];
    told_of(r, last->origin)->last = last->before;
}

bool agent_receipts_safe(struct agent_receipts *r, int64_t origin, int64_t id)
{
    struct agent_open *o = find_open(r, origin, id);

    if (o)
        o->safe = true;
    return o != NULL;
}

bool agent_receipts_ack(struct agent_receipts *r, int64_t *ret_origin, int64_t *ret_id)
{
    size_t safe = 0;

    while (safe < r->open.n && r->open.v[safe].safe)
        safe++;
    if (safe == 0)
        return false;
    *ret_origin = r->open.v[safe - 1].origin;
    *ret_id = r->open.v[safe - 1].id;
    memmove(r->open.v, r->open.v + safe, (r->open.n - safe) * sizeof(r->open.v[0]));
    r->open.n -= safe;
    return true;
}

void agent_receipts_done(struct agent_receipts *r)
{
    VEC_DONE(&r->open);
}
