/* SPDX-License-Identifier: Apache-2.0 */

/* From a verdict about a node to what is asked of the scheduler. A sick node is drained at once:
 * what runs there goes on, and nothing new begins. How many at once, and within an hour, has a
 * bound; one that somebody else took out of service is left to him.
 *
 * It is given back when a person says so, or when there is reason to think that it is well (its
 * driver says so, it booted anew) and the site's own program agrees. docs/decisions/014 */

#include "core/plan/nodes.h"

#include "base/str.h"

#define TRIES_MAX WISH_TRIES

static bool is_convicted(const struct node_ledger *l)
{
    return l->verdict.isolation >= ISOLATION_DRAIN;
}

/* From when on one more may be drained, as it looked at `then`; 0: at once. */
static usec_t hour_room(const struct model *m, usec_t then)
{
    const deeds *list = &m->deeds[DEED_DRAINED];
    uint32_t limit = m->nodes.terms.drains_per_hour, n = 0;

    for (size_t i = list->n; limit > 0 && i-- > 0 && list->v[i].at + USEC_PER_HOUR > then;)
        if (++n == limit)
            return list->v[i].at + USEC_PER_HOUR;
    return 0;
}

static bool is_full(const struct model *m)
{
    uint32_t most = m->nodes.terms.max_drained;

    return most > 0 && nodes_drained(&m->nodes) >= most;
}

const char *plan_node_waits(const struct model *m, const struct node_ledger *l)
{
    if (!is_convicted(l) || l->drained)
        return NULL;
    if (l->look.out)
        return "it is out of service already, by somebody else's word";
    if (m->nodes.terms.mode != MODE_ACT)
        return "nodes.mode is not act";
    if (m->frozen)
        return "all is frozen";
    if (nodes_rule_is_stopped(&m->nodes, l->verdict.rule))
        return "the rule is stopped: it convicted too many nodes";
    if (l->tries >= TRIES_MAX)
        return "the scheduler refused it";
    if (is_full(m))
        return "as many nodes are drained as may be";
    if (hour_room(m, m->now) > 0)
        return "as many nodes were drained within the hour as may be";
    return NULL;
}

static bool wants_drain(const struct model *m, const struct node_ledger *l)
{
    return is_convicted(l) && !l->drained && !plan_node_waits(m, l);
}

static bool wants_check(const struct model *m, const struct node_ledger *l)
{
    return l->drained && l->check_due && !is_convicted(l) && m->nodes.terms.check &&
           m->nodes.terms.mode == MODE_ACT;
}

/* INTENT_INVALID: nothing. */
static enum intent next_intent(const struct model *m, const struct node_ledger *l)
{
    if (l->pending.n > 0 || m->frozen || m->now < l->retry_at)
        return INTENT_INVALID;
    if (l->drained && l->resume)
        return INTENT_UNDRAIN;
    if (wants_check(m, l))
        return INTENT_CHECK_NODE;
    return wants_drain(m, l) ? INTENT_DRAIN : INTENT_INVALID;
}

bool plan_node(const struct model *m, const struct node_ledger *l, struct intent_facts *ret)
{
    enum intent next = next_intent(m, l);

    if (next == INTENT_INVALID)
        return false;
    *ret = (struct intent_facts){.intent = next, .after_step = STEP_NONE, .n_nodes = 1};
    STR_COPY(ret->nodes[0], l->name);
    if (next == INTENT_UNDRAIN)
        STR_COPY(ret->reason, l->reason);
    else if (next == INTENT_DRAIN)
        STR_PRINTF(ret->reason, "reknit: %s", l->verdict.why);
    return true;
}

usec_t plan_node_due(const struct model *m, const struct node_ledger *l)
{
    bool wants = l->pending.n == 0 && !m->frozen;
    usec_t due = USEC_NEVER, room;

    if (!wants || !(l->drained || is_convicted(l)))
        return due;
    if (l->retry_at > m->nodes.asked_at)
        due = usec_min(due, l->retry_at);
    room = hour_room(m, m->nodes.asked_at);
    return is_convicted(l) && !l->drained && room > 0 ? usec_min(due, room) : due;
}

bool plan_node_permits(const struct model *m, const struct intent_facts *f)
{
    const struct node_ledger *l = nodes_find(&m->nodes, f->nodes[0]);

    if (!l || m->frozen)
        return false;
    switch (f->intent) {
    case INTENT_DRAIN:
        return is_convicted(l) && m->nodes.terms.mode == MODE_ACT &&
               !nodes_rule_is_stopped(&m->nodes, l->verdict.rule);
    case INTENT_CHECK_NODE:
        return m->nodes.terms.mode == MODE_ACT;
    default:
        return true;
    }
}
