/* SPDX-License-Identifier: Apache-2.0 */

/* The place of a job in the queue, and the jobs behind it: what the others that wait mean for it,
 * and what core asks for about them. */

#include "daemon/daemon.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "source/succession.h"

#include <inttypes.h>
#include <stdlib.h>

#define RESERVATION_LIFE 600 /* seconds, after which the scheduler ends it by itself */

/* One of all jobs beside one of ours. */
struct beside {
    const struct sched_job *r;
    uint32_t highest;
    bool stranded;
};

static bool waits_before(const struct sched_job *x, const struct sched_job *r)
{
    return x->id != r->id && x->state == SCHED_PENDING && !x->held && !*x->dependency &&
           str_lists_overlap(x->partition, r->partition) &&
           (r->het_leader == 0 || x->het_leader != r->het_leader);
}

static void compare_priority(void *ctx, const struct sched_job *x)
{
    struct beside *b = ctx;

    if (waits_before(x, b->r) && x->priority > b->highest)
        b->highest = x->priority;
}

static uint32_t highest_beside(const struct daemon *d, const struct sched_job *r)
{
    struct beside b = {.r = r};

    sched_watch_each(d->sched, compare_priority, &b);
    return b.highest;
}

/* Of those of equal priority, the one that was queued again comes last. */
bool place_is_outranked(const struct daemon *d, const struct sched_job *r)
{
    uint32_t highest =
        r->state == SCHED_PENDING && r->restarts > 0 && !r->held ? highest_beside(d, r) : 0;

    return highest > 0 && highest >= r->priority;
}

uint32_t place_before_all(const struct daemon *d, const struct sched_job *r)
{
    return highest_beside(d, r) + 1;
}

static void look_for_stranded(void *ctx, const struct sched_job *x)
{
    struct beside *b = ctx;

    b->stranded |= sched_job_is_stranded(x, b->r);
}

bool place_has_stranded(const struct daemon *d, const struct sched_job *r)
{
    struct beside b = {.r = r};

    if (r->restarts > 0 && !sched_has_ended(r->state))
        sched_watch_each(d->sched, look_for_stranded, &b);
    return b.stranded;
}

/* Mending: each of them is told its dependency anew; the last answer ends it. */

struct mending {
    struct daemon *d;
    struct event intent;
    const struct sched_job *r;
    uint32_t open;
    char trouble[256];
};

static void end_mending(struct mending *g)
{
    if (--g->open > 0)
        return;
    act_report(g->d, &g->intent, *g->trouble ? OUTCOME_FAILED : OUTCOME_DONE, g->trouble);
    sched_watch_poke(g->d->sched);
    free(g);
}

static void on_mended(void *ctx, enum adapter_outcome outcome, const json_t *answer,
                      const char *text)
{
    struct mending *g = ctx;

    if (outcome != ADAPTER_DONE)
        str_sanitize(g->trouble, sizeof(g->trouble), text, strlen(text));
    end_mending(g);
}

static bool may_mend(void *ctx)
{
    const struct mending *g = ctx;

    return act_may(g->d, &g->intent);
}

static void mend_one(void *ctx, const struct sched_job *x)
{
    _cleanup_strbuf_ struct strbuf anew = {0};
    struct mending *g = ctx;
    char id[16];

    if (!sched_job_is_stranded(x, g->r))
        return;
    if (x->dependency_cut) { /* the rest of it would be lost */
        STR_PRINTF(g->trouble, "the dependency of job %s is too long to be written anew", x->label);
        return;
    }
    sched_job_dependency_anew(x, &anew);
    STR_PRINTF(id, "%" PRIu32, x->id);
    g->open++;
    adapter_ask_if(g->d->adapter,
                   json_pack("{s:s, s:s, s:{s:I, s:I, s:[s], s:s}, s:{s:s}}", "op", "update", "job",
                             id, "expect", "restarts", (json_int_t)x->restarts, "submit",
                             (json_int_t)x->submit, "states", "pending", "dependency",
                             x->dependency, "set", "dependency", strbuf_str(&anew)),
                   g->d->config->adapter.timeout, may_mend, on_mended, g);
}

static void mend(struct daemon *d, const struct sched_job *r, const struct event *intent)
{
    struct mending *g = xnew(struct mending);

    *g = (struct mending){.d = d, .intent = *intent, .r = r, .open = 1};
    sched_watch_each(d->sched, mend_one, g);
    g->r = NULL;
    end_mending(g);
}

/* Where it ran, as long as it is known whole. */
static const char *nodes_of(const struct daemon *d, const struct sched_job *r,
                            const struct event *intent)
{
    const struct job *j = model_job(pump_model(d->pump), intent->job);

    if (r->state != SCHED_PENDING && *r->nodes)
        return r->nodes;
    return j && strlen(j->sched.ran_on) + 1 < LAYOUT_LEN ? j->sched.ran_on : "";
}

static void reserve(struct daemon *d, const struct sched_job *r, const struct event *intent)
{
    const struct intent_facts *f = &intent->intended;

    act_ask(d, intent,
            json_pack("{s:s, s:s, s:o, s:i}", "op", "reserve", "name", f->reservation, "nodes",
                      sched_watch_nodes_of(d->sched, nodes_of(d, r, intent), f), "seconds",
                      RESERVATION_LIFE));
}

/* The job may be forgotten already. */
static void unreserve(struct daemon *d, const struct event *intent)
{
    act_ask(d, intent,
            json_pack("{s:s, s:s}", "op", "unreserve", "name", intent->intended.reservation));
}

/* The scheduler's own priority again. */
static void yield(struct daemon *d, const struct sched_job *r, const struct event *intent)
{
    char id[16];

    STR_PRINTF(id, "%" PRIu32, r->id);
    act_ask(d, intent,
            json_pack("{s:s, s:s, s:{s:I, s:I, s:[s, s, s]}, s:{s:n}}", "op", "update", "job", id,
                      "expect", "restarts", (json_int_t)intent->intended.restarts, "submit",
                      (json_int_t)r->submit, "states", "running", "configuring", "pending", "set",
                      "priority"));
}

bool place_act(struct daemon *d, const struct sched_job *r, const struct event *intent)
{
    switch (intent->intended.intent) {
    case INTENT_UNRESERVE:
        unreserve(d, intent);
        return true;
    case INTENT_RESERVE:
        if (r)
            reserve(d, r, intent);
        return r != NULL;
    case INTENT_YIELD:
        if (r)
            yield(d, r, intent);
        return r != NULL;
    case INTENT_MEND:
        if (r)
            mend(d, r, intent);
        return r != NULL;
    default:
        return false;
    }
}
