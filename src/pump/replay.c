/* SPDX-License-Identifier: Apache-2.0 */
#include "pump/replay.h"

#include "base/str.h"
#include "core/core.h"
#include "core/model/event_fields.h"
#include "core/state/state.h"

#include <errno.h>
#include <inttypes.h>

struct replay {
    struct core *core;
    struct core_output expected; /* derived from the last input */
    size_t next;                 /* of those, to be met in the journal */
    struct replay_result *ret;
};

static void found(struct replay *r, uint64_t seq, const struct event *recorded,
                  const struct event *fresh)
{
    r->ret->differs = true;
    r->ret->seq = seq;
    r->ret->has_recorded = recorded;
    r->ret->has_derived = fresh;
    if (recorded)
        r->ret->recorded = *recorded;
    if (fresh)
        r->ret->fresh = *fresh;
}

/* Core derived more than was recorded. */
static bool check_complete(struct replay *r)
{
    if (r->next < r->expected.events.n)
        found(r, r->expected.events.v[r->next].seq, NULL, &r->expected.events.v[r->next]);
    return !r->ret->differs;
}

static void take_input(struct replay *r, const struct event *e)
{
    if (!check_complete(r))
        return;
    core_output_done(&r->expected);
    r->expected = (struct core_output){0};
    r->next = 0;
    r->ret->inputs++;
    core_step(r->core, e, &r->expected);
}

static void take_derived(struct replay *r, const struct event *e)
{
    const struct event *fresh = NULL;

    if (r->next < r->expected.events.n)
        fresh = &r->expected.events.v[r->next++];
    r->ret->derived++;
    if (!fresh || event_differs(fresh, e, r->ret->where)[0] != '\0')
        found(r, e->seq, e, fresh);
}

int replay(struct journal *j, struct replay_result *ret, struct err *e)
{
    _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;
    _cleanup_(core_freep) struct core *core = core_new();
    _cleanup_(freep) struct event *event = xnew(struct event);
    struct replay r = {.core = core, .ret = ret};
    int n;

    memset(ret, 0, sizeof(*ret));
    if (journal_lost(j) > 0)
        return err_set(e, -EBADMSG,
                       "%" PRIu64
                       " of its entries are lost, and only what is whole can be replayed",
                       journal_lost(j));
    n = journal_read(j, 0, &cursor, e);
    while (n >= 0 && !ret->differs && (n = journal_next(cursor, event, e)) > 0) {
        if (event_is_input(event->kind))
            take_input(&r, event);
        else
            take_derived(&r, event);
    }
    if (n == 0)
        check_complete(&r);
    ret->strays = core_model(core)->refused;
    core_output_done(&r.expected);
    return n < 0 ? n : 0;
}
