/* SPDX-License-Identifier: Apache-2.0 */

/* From the facts of a node to a verdict about it. Each fact comes with what the catalogue says it
 * asks for; here is judged what only several of them together can tell:
 *
 *   repeated   an error that is a program's fault, but of which the same GPU showed too many within
 *              a day, and no other: three, or two in one part of it. Where another GPU shows it
 *              too, on the node or in the same job, it is the program. Where a single job met it
 *              each time, it may be: that job is kept away, and nobody else.
 *   shared     three nodes with the same trouble of storage or network within a minute are one
 *              fault of what they share. So such trouble is looked at a minute later.
 *   breaker    a rule that convicts a large part of the cluster within an hour is wrong, or meets
 *              something else than sick nodes. It stops until an operator says otherwise.
 *
 * Text of a job comes nowhere near. */

#include "core/policy/nodes.h"

#include "base/str.h"

#include <inttypes.h>
#include <string.h>

#define WITHIN        USEC_PER_DAY /* of repetitions, and of what keeps one job away */
#define SHARED_WITHIN USEC_PER_MIN
#define SHARED_NODES  3
#define REPEATS       3
#define REPEATS_UNIT  2

/* Repeated errors of programs */

static uint32_t times_of(const struct model *m, const struct node_trouble *t)
{
    uint32_t n = 0;

    while (n < TROUBLE_TIMES && t->at[n] > 0 && m->now < t->at[n] + WITHIN)
        n++;
    return n;
}

static bool is_like(const struct node_trouble *a, const struct node_trouble *b)
{
    return a->code == b->code && streq(a->signature, b->signature);
}

static uint32_t times_of_device(const struct model *m, const struct node_ledger *l,
                                const struct node_trouble *t)
{
    uint32_t n = 0;

    VEC_FOREACH (&l->troubles, x)
        if (is_like(x, t) && streq(x->device, t->device))
            n += times_of(m, x);
    return n;
}

static bool shares_job(const struct node_trouble *a, const struct node_trouble *b)
{
    for (uint32_t i = 0; i < a->n_jobs; i++)
        for (uint32_t k = 0; k < b->n_jobs; k++)
            if (a->jobs[i] == b->jobs[k])
                return true;
    return false;
}

/* Whether other GPUs show it too: of the node, or of a node on which the same job ran. */
static bool is_spread(const struct model *m, const struct node_ledger *l,
                      const struct node_trouble *t)
{
    VEC_FOREACH (&m->nodes.list, at)
        VEC_FOREACH (&(*at)->troubles, x) {
            bool same = *at == l && streq(x->device, t->device);

            if (!same && is_like(x, t) && times_of(m, x) > 0 && (*at == l || shares_job(x, t)))
                return true;
        }
    return false;
}

static enum isolation of_repeats(const struct model *m, const struct node_ledger *l,
                                 const struct node_trouble *t)
{
    bool often =
        times_of_device(m, l, t) >= REPEATS || (t->unit[0] && times_of(m, t) >= REPEATS_UNIT);

    if (!often || t->device[0] == '\0' || is_spread(m, l, t))
        return ISOLATION_NONE;
    return t->n_jobs == 1 ? ISOLATION_EXCLUDE : ISOLATION_RESET;
}

/* Shared faults */

static bool may_be_shared(const struct node_trouble *t)
{
    return t->cause == CAUSE_STORAGE || t->cause == CAUSE_NETWORK;
}

static bool is_near(const struct node_trouble *a, const struct node_trouble *b)
{
    usec_t apart = a->last > b->last ? a->last - b->last : b->last - a->last;

    return is_like(a, b) && streq(a->peer, b->peer) && apart <= SHARED_WITHIN;
}

static bool has_near(const struct node_ledger *l, const struct node_trouble *t)
{
    VEC_FOREACH (&l->troubles, x)
        if (is_near(x, t))
            return true;
    return false;
}

/* With others, of late. */
static bool is_shared(const struct model *m, const struct node_trouble *t)
{
    uint32_t n = 0;

    if (nodes_shared(&m->nodes, t, m->now))
        return true;
    VEC_FOREACH (&m->nodes.list, at)
        if (has_near(*at, t) && ++n == SHARED_NODES)
            return true;
    return false;
}

/* One fault is told once. */
static bool tell_shared(const struct model *m, const struct node_ledger *l,
                        struct node_verdict *ret)
{
    VEC_FOREACH (&l->troubles, t) {
        if (!may_be_shared(t) || t->noted != l->heard || nodes_shared(&m->nodes, t, m->now) ||
            !is_shared(m, t))
            continue;
        *ret = (struct node_verdict){.cause = t->cause};
        STR_COPY(ret->signature, t->signature);
        str_copy(ret->device, sizeof(ret->device), t->peer);
        STR_COPY(ret->rule, "shared");
        STR_PRINTF(ret->why,
                   "%d nodes or more show the same within a minute: one fault of the %s "
                   "that they share%s%.40s, and of none of them",
                   SHARED_NODES, cause_name(t->cause), t->peer[0] ? ", " : "", t->peer);
        return true;
    }
    return false;
}

/* One trouble by itself */

static void rule_of(const struct node_trouble *t, char *ret, size_t size)
{
    const char *repeated = t->isolation == ISOLATION_REPEATED ? " repeated" : "";
    char code[16];

    STR_PRINTF(code, ".%" PRId32, t->code);
    if (t->code > 0 && !str_endswith(t->signature, code))
        str_printf(ret, size, "%s %" PRId32 "%s", t->signature, t->code, repeated);
    else
        str_printf(ret, size, "%s%s", t->signature, repeated);
}

static bool is_verdict_of(const struct node_verdict *v, const struct node_trouble *t)
{
    char rule[sizeof(v->rule)];

    rule_of(t, rule, sizeof(rule));
    return streq(v->rule, rule) && streq(v->device, t->device);
}

/* What it asks for, now. What it was convicted by stays, until that is cleared, or others show what
 * it was taken for the only one to show. */
static enum isolation isolation_of(const struct model *m, const struct node_ledger *l,
                                   const struct node_trouble *t)
{
    enum isolation i = t->isolation;

    if (l->verdict.isolation >= ISOLATION_DRAIN && is_verdict_of(&l->verdict, t) &&
        !(i == ISOLATION_REPEATED && is_spread(m, l, t)))
        return l->verdict.isolation;
    if (i == ISOLATION_REPEATED)
        i = of_repeats(m, l, t);
    if (i == ISOLATION_EXCLUDE && m->now >= t->last + WITHIN)
        return ISOLATION_NONE;
    if (i >= ISOLATION_EXCLUDE && may_be_shared(t) &&
        (m->now < t->noted + SHARED_WITHIN || is_shared(m, t)))
        return ISOLATION_NONE;
    return i;
}

static const struct node_trouble *find_worst(const struct model *m, const struct node_ledger *l,
                                             enum isolation *ret)
{
    const struct node_trouble *worst = NULL;

    *ret = ISOLATION_NONE;
    VEC_FOREACH (&l->troubles, t) {
        enum isolation i = isolation_of(m, l, t);

        if (i > *ret) {
            *ret = i;
            worst = t;
        }
    }
    return worst;
}

/* In words */

static const struct {
    int32_t code;
    const char *words;
} xids[] = {
    {13, "runs into exceptions again and again"},
    {31, "runs into page faults again and again"},
    {46, "does not get on"},
    {48, "has a memory error that cannot be corrected"},
    {62, "has a controller that halted"},
    {64, "could not replace a bad row of its memory"},
    {74, "has a link to other GPUs that fails"},
    {79, "has fallen off the bus"},
    {94, "had a memory error, contained to one program"},
    {95, "has a memory error that was not contained"},
    {119, "has a system processor that does not answer"},
    {120, "has a system processor that failed"},
};

static const char *words_of(const struct node_trouble *t, enum isolation i)
{
    for (size_t k = 0; k < ARRAY_SIZE(xids); k++)
        if (xids[k].code == t->code)
            return xids[k].words;
    return i == ISOLATION_REBOOT  ? "wants the node to be booted anew"
           : i == ISOLATION_RESET ? "wants to be reset"
                                  : "has an error";
}

static void say_why(const struct node_trouble *t, enum isolation i, char *ret, size_t size)
{
    if (t->code > 0)
        str_printf(ret, size, "GPU %s %s (Xid %" PRId32 ")", t->device[0] ? t->device : "(unknown)",
                   words_of(t, i), t->code);
    else if (t->device[0] && streq(t->signature, "gpu.off_bus"))
        str_printf(ret, size, "GPU %s has fallen off the bus", t->device);
    else if (t->device[0] && i >= ISOLATION_RESET)
        str_printf(ret, size, "GPU %s %s (%s)", t->device, words_of(t, i), t->signature);
    else if (t->device[0])
        str_printf(ret, size, "GPU %s: %s (%s)", t->device, cause_name(t->cause), t->signature);
    else
        str_printf(ret, size, "%s (%s)", cause_name(t->cause), t->signature);
}

static void convict(const struct node_ledger *l, const struct node_trouble *t, enum isolation i,
                    struct node_verdict *ret)
{
    *ret = (struct node_verdict){.isolation = i, .cause = t->cause};
    STR_COPY(ret->node, l->name);
    STR_COPY(ret->device, t->device);
    STR_COPY(ret->signature, t->signature);
    rule_of(t, ret->rule, sizeof(ret->rule));
    say_why(t, i, ret->why, sizeof(ret->why));
}

static void acquit(const struct node_ledger *l, struct node_verdict *ret)
{
    *ret = (struct node_verdict){.cause = CAUSE_NONE};
    STR_COPY(ret->node, l->name);
    STR_COPY(ret->rule, "cleared");
    STR_COPY(ret->why, "nothing stands against it any more");
}

/* The breaker */

static bool stop_rule(const struct model *m, const struct node_ledger *l, struct node_verdict *ret)
{
    const struct node_terms *terms = &m->nodes.terms;
    const char *rule = l->verdict.rule;

    if (l->verdict.isolation < ISOLATION_DRAIN || terms->breaker_nodes == 0 ||
        nodes_rule_is_stopped(&m->nodes, rule) || m->nodes.n_stopped == STOPPED_MAX ||
        model_room_at(m, DEED_CONVICTED, rule, USEC_PER_HOUR, terms->breaker_nodes + 1) <= m->now)
        return false;
    *ret = (struct node_verdict){.cause = l->verdict.cause};
    STR_COPY(ret->rule, rule);
    STR_PRINTF(ret->why,
               "it convicts more than %" PRIu32 " of %" PRIu32 " nodes within an hour, "
               "and is stopped until 'reknit nodes rearm'",
               terms->breaker_nodes, terms->nodes);
    return true;
}

static bool differs(const struct node_ledger *l, const struct node_trouble *worst, enum isolation i)
{
    if (i != l->verdict.isolation)
        return true;
    if (!worst)
        return false;
    VEC_FOREACH (&l->troubles, t)
        if (is_verdict_of(&l->verdict, t))
            return false;
    return true;
}

bool nodes_judge(const struct model *m, const struct node_ledger *l, struct node_verdict *ret)
{
    const struct node_trouble *worst;
    enum isolation i;

    if (m->nodes.terms.mode == MODE_OFF)
        return false;
    if (tell_shared(m, l, ret) || stop_rule(m, l, ret))
        return true;
    worst = find_worst(m, l, &i);
    if (!differs(l, worst, i))
        return false;
    if (worst)
        convict(l, worst, i, ret);
    else
        acquit(l, ret);
    return true;
}

static usec_t trouble_due(const struct node_ledger *l, const struct node_trouble *t)
{
    if (may_be_shared(t) && t->isolation >= ISOLATION_EXCLUDE && !is_verdict_of(&l->verdict, t))
        return t->noted + SHARED_WITHIN;
    if (l->verdict.isolation == ISOLATION_EXCLUDE && is_verdict_of(&l->verdict, t))
        return t->last + WITHIN;
    return USEC_NEVER;
}

usec_t nodes_judge_due(const struct model *m, const struct node_ledger *l)
{
    usec_t due = USEC_NEVER;

    if (m->nodes.terms.mode == MODE_OFF)
        return due;
    VEC_FOREACH (&l->troubles, t) {
        usec_t at = trouble_due(l, t);

        if (at > m->nodes.asked_at)
            due = usec_min(due, at);
    }
    return due;
}
