/* SPDX-License-Identifier: Apache-2.0 */
#include "states.h"

#include "core/model/event_fields.h"
#include "core/state/state.h"

#include "base/str.h"

#include <string.h>

/* Everything of a job but what it points at. */
static struct job plain(const struct job *j)
{
    struct job copy;

    memcpy(&copy, j, sizeof(copy));
    copy.attempt.evidence = NULL;
    memset(&copy.attempt.logs, 0, sizeof(copy.attempt.logs));
    memset(&copy.pending, 0, sizeof(copy.pending));
    return copy;
}

static bool logs_differ(const log_names *a, const log_names *b)
{
    bool differ = a->n != b->n;

    for (size_t i = 0; !differ && i < a->n; i++)
        differ = a->v[i].file != b->v[i].file || !streq(a->v[i].path, b->v[i].path);
    return differ;
}

static const char *jobs_differ(const struct job *a, const struct job *b)
{
    struct job x = plain(a), y = plain(b);
    char where[128];

    if (memcmp(&x.attempt, &y.attempt, sizeof(x.attempt)) != 0)
        return "attempt";
    if (memcmp(&x.timing, &y.timing, sizeof(x.timing)) != 0)
        return "timing";
    if (memcmp(&x.ledger, &y.ledger, sizeof(x.ledger)) != 0)
        return "ledger";
    if (memcmp(&x, &y, sizeof(x)) != 0)
        return "job";
    if (!a->attempt.evidence != !b->attempt.evidence)
        return "evidence";
    if (logs_differ(&a->attempt.logs, &b->attempt.logs))
        return "names of logs";
    if (a->pending.n != b->pending.n)
        return "number of pending intents";
    for (size_t i = 0; i < a->pending.n; i++)
        if (event_differs(&a->pending.v[i], &b->pending.v[i], where)[0])
            return "pending intent";
    return "";
}

static bool deeds_differ(const deeds *a, const deeds *b)
{
    bool differ = a->n != b->n;

    for (size_t i = 0; !differ && i < a->n; i++)
        differ = a->v[i].at != b->v[i].at || !streq(a->v[i].name, b->v[i].name);
    return differ;
}

static bool seen_differ(const struct node_ledger *a, const struct node_ledger *b)
{
    return a->seen.n != b->seen.n || a->troubles.n != b->troubles.n ||
           a->pending.n != b->pending.n || a->incidents.n != b->incidents.n ||
           (a->incidents.n > 0 && memcmp(a->incidents.v, b->incidents.v,
                                         a->incidents.n * sizeof(a->incidents.v[0])) != 0) ||
           (a->seen.n > 0 && memcmp(a->seen.v, b->seen.v, a->seen.n * sizeof(a->seen.v[0])) != 0) ||
           (a->troubles.n > 0 &&
            memcmp(a->troubles.v, b->troubles.v, a->troubles.n * sizeof(a->troubles.v[0])) != 0);
}

static bool ledgers_differ(const struct node_ledger *a, const struct node_ledger *b)
{
    struct node_ledger x, y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    memset(&x.seen, 0, sizeof(x.seen));
    memset(&y.seen, 0, sizeof(y.seen));
    memset(&x.troubles, 0, sizeof(x.troubles));
    memset(&y.troubles, 0, sizeof(y.troubles));
    memset(&x.incidents, 0, sizeof(x.incidents));
    memset(&y.incidents, 0, sizeof(y.incidents));
    memset(&x.pending, 0, sizeof(x.pending));
    memset(&y.pending, 0, sizeof(y.pending));
    return memcmp(&x, &y, sizeof(x)) != 0 || seen_differ(a, b);
}

static const char *nodes_differ(const struct nodes *a, const struct nodes *b)
{
    if (memcmp(&a->terms, &b->terms, sizeof(a->terms)) != 0 || a->asked_at != b->asked_at)
        return "terms of nodes";
    if (a->n_stopped != b->n_stopped || memcmp(a->stopped, b->stopped, sizeof(a->stopped)) != 0)
        return "stopped rules";
    if (a->shared.n != b->shared.n)
        return "shared faults";
    if (a->list.n != b->list.n)
        return "number of nodes";
    for (size_t i = 0; i < a->list.n; i++)
        if (ledgers_differ(a->list.v[i], b->list.v[i]))
            return a->list.v[i]->name;
    return "";
}

/* A time that is over, since nobody ticks before a first look, is only looked at again (core.c). */
static bool deadlines_differ(const struct core *a, const struct core *b)
{
    return core_deadline(a) != core_deadline(b) && core_deadline(a) > core_model(a)->now;
}

const char *states_differ(const struct core *a, const struct core *b)
{
    const struct model *x = core_model(a), *y = core_model(b);

    if (x->now != y->now || x->seq != y->seq || x->refused != y->refused)
        return "time, seq or number of refused events";
    if (memcmp(&x->policy, &y->policy, sizeof(x->policy)) != 0)
        return "policy";
    if (memcmp(&x->brakes, &y->brakes, sizeof(x->brakes)) != 0 || x->frozen != y->frozen)
        return "brakes";
    for (int k = 0; k < DEED_MAX; k++)
        if (deeds_differ(&x->deeds[k], &y->deeds[k]))
            return "deeds";
    if (nodes_differ(&x->nodes, &y->nodes)[0])
        return nodes_differ(&x->nodes, &y->nodes);
    if (x->jobs.n != y->jobs.n)
        return "number of jobs";
    for (size_t i = 0; i < x->jobs.n; i++) {
        const char *what = jobs_differ(x->jobs.v[i], y->jobs.v[i]);

        if (what[0])
            return what;
    }
    return deadlines_differ(a, b) ? "deadline" : "";
}
