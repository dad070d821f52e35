/* SPDX-License-Identifier: Apache-2.0 */
#include "pump/replay.h"

#include "base/str.h"
#include "core/core.h"
#include "core/model/event_fields.h"
#include "core/state/state.h"
#include "journal/thin.h"

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

/* What was derived from the last input that is not compared is not either. */
static bool is_folded(struct replay *r, const struct event *e)
{
    bool whole = e->seq > r->ret->upto && (event_is_input(e->kind) || r->ret->inputs > 0);

    if (whole || r->ret->thinned == 0)
        return false;
    r->ret->upto = e->seq > r->ret->upto ? e->seq : r->ret->upto;
    core_fold(r->core, e);
    return true;
}

static int find_thinned(struct journal *j, struct replay_result *ret, struct err *e)
{
    int r = journal_thinned_away(j, &ret->thinned, e);

    return r < 0 || ret->thinned == 0 ? r : journal_thinned(j, &ret->upto, e);
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
                       "%s: %" PRIu64
                       " of its entries are lost, and only what is whole can be replayed",
                       journal_path(j), journal_lost(j));
    n = find_thinned(j, ret, e);
    if (n >= 0)
        n = journal_read(j, 0, &cursor, e);
    while (n >= 0 && !ret->differs && (n = journal_next(cursor, event, e)) > 0) {
        if (is_folded(&r, event))
            continue;
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
