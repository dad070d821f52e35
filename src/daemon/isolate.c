/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes that core has something against are looked at, whenever the scheduler's are, and drained
 * and given back as it asks. So are those that a reknitd of before drained, as their reason says,
 * though their books may be lost. */

#include "daemon/daemon.h"

#include "base/alloc.h"
#include "base/str.h"
#include "core/plan/nodes.h"
#include "source/sched_nodes.h"

#include <stdlib.h>
#include <string.h>

#define REASON_OURS "reknit:"

/* Terms */

/* Of a cluster whose size is not known yet, what was said last holds. */
static uint32_t share(size_t nodes, uint32_t percent, uint32_t least)
{
    uint32_t n = (uint32_t)(nodes * percent / 100);

    return percent == 0 || percent >= 100 ? 0 : n > least ? n : least;
}

void isolate_tell_terms(struct daemon *d)
{
    const struct node_terms *now = &pump_model(d->pump)->nodes.terms;
    const struct daemon_config *c = d->config;
    size_t nodes = sched_watch_nodes(d->sched);
    struct event e = {.kind = EVENT_NODE_TERMS};
    struct node_terms *t = &e.node_terms;

    t->mode = c->nodes.mode;
    t->check = c->nodes.check.n > 0;
    t->nodes = nodes > 0 ? (uint32_t)nodes : now->nodes;
    t->max_drained = share(t->nodes, c->nodes.max_drained, 1);
    t->drains_per_hour = c->nodes.drains_per_hour;
    t->breaker_nodes = share(t->nodes, c->nodes.breaker_share, 2);
    if (now->mode != t->mode || now->check != t->check || now->nodes != t->nodes ||
        now->max_drained != t->max_drained || now->drains_per_hour != t->drains_per_hour ||
        now->breaker_nodes != t->breaker_nodes)
        pump_input(d->pump, &e);
}

/* Looks */

static bool is_news(const struct node_look *was, const struct node_look *is)
{
    return !was->node[0] || was->out != is->out || was->drain != is->drain ||
           was->booted != is->booted || !streq(was->reason, is->reason);
}

static void look(void *ctx, const char *node, const struct sched_node_word *word)
{
    struct daemon *d = ctx;
    const struct node_ledger *l = nodes_find(&pump_model(d->pump)->nodes, node);
    struct event e = {.kind = EVENT_NODE_LOOK};
    struct node_look *f = &e.node_look;

    if (!l && !(word->drain && str_startswith(word->reason, REASON_OURS)))
        return;
    STR_COPY(f->node, node);
    f->out = !word->usable;
    f->drain = word->drain;
    f->booted = word->booted;
    str_sanitize(f->reason, sizeof(f->reason), word->reason, strlen(word->reason));
    if (!l || is_news(&l->look, f))
        pump_input(d->pump, &e);
}

void isolate_look(struct daemon *d)
{
    isolate_tell_terms(d);
    sched_watch_each_node(d->sched, look, d);
}

/* Deeds */

struct asking {
    struct daemon *d;
    struct event intent;
};

static enum outcome outcome_of(const struct asking *a, enum adapter_outcome outcome,
                               const json_t *answer)
{
    static const enum outcome outcomes[] = {
        [ADAPTER_DONE] = OUTCOME_DONE,
        [ADAPTER_REFUSED] = OUTCOME_FAILED,
        [ADAPTER_UNREACHABLE] = OUTCOME_VOID,
        [ADAPTER_UNKNOWN] = OUTCOME_UNKNOWN,
    };

    if (streq(adapter_error(answer), "changed"))
        return OUTCOME_VOID;
    if (streq(adapter_error(answer), "already-done")) /* one that is out may be by another's word */
        return a->intent.intended.intent == INTENT_UNDRAIN ? OUTCOME_DONE : OUTCOME_VOID;
    return outcomes[outcome];
}

static void on_answer(void *ctx, enum adapter_outcome outcome, const json_t *answer,
                      const char *text)
{
    struct asking *a = ctx;
    char detail[256];

    str_sanitize(detail, sizeof(detail), text, strlen(text));
    act_report(a->d, &a->intent, outcome_of(a, outcome, answer), detail);
    sched_watch_poke_nodes(a->d->sched);
    free(a);
}

static struct asking *asking_new(struct daemon *d, const struct event *intent)
{
    struct asking *a = xnew(struct asking);

    a->d = d;
    a->intent = *intent;
    return a;
}

static bool is_wanted(void *ctx)
{
    const struct asking *a = ctx;

    return plan_node_permits(pump_model(a->d->pump), &a->intent.intended);
}

static void set_node(struct daemon *d, const struct event *intent, json_t *request)
{
    adapter_ask_if(d->adapter, request, d->config->adapter.timeout, is_wanted, on_answer,
                   asking_new(d, intent));
}

/* 0: it is well; 1: it is not. Everything else says nothing. */
static void on_checked(void *ctx, int status, const char *how)
{
    struct asking *a = ctx;

    act_report(a->d, &a->intent,
               status == 0   ? OUTCOME_DONE
               : status == 1 ? OUTCOME_FAILED
                             : OUTCOME_UNKNOWN,
               how);
    free(a);
}

static void check(struct daemon *d, const struct event *intent)
{
    struct asking *a;
    int r;

    if (d->config->nodes.check.n == 0) {
        act_report(d, intent, OUTCOME_UNKNOWN, "there is no nodes.check any more");
        return;
    }
    a = asking_new(d, intent);
    r = site_ask(d, &d->config->nodes.check, "the check", intent->intended.nodes[0], on_checked, a);
    if (r >= 0)
        return;
    act_report(d, intent, OUTCOME_UNKNOWN, strerror(-r));
    free(a);
}

void isolate_act(struct daemon *d, const struct event *intent)
{
    const struct intent_facts *f = &intent->intended;

    if (!plan_node_permits(pump_model(d->pump), f)) {
        act_report(d, intent, OUTCOME_VOID, "it is not wanted any more");
        return;
    }
    switch (f->intent) {
    case INTENT_DRAIN:
        set_node(d, intent,
                 json_pack("{s:s, s:s, s:s, s:s}", "op", "node", "node", f->nodes[0], "set",
                           "drain", "reason", f->reason));
        break;
    case INTENT_UNDRAIN:
        set_node(d, intent,
                 json_pack("{s:s, s:s, s:s, s:{s:s}}", "op", "node", "node", f->nodes[0], "set",
                           "undrain", "expect", "reason", f->reason));
        break;
    default:
        check(d, intent);
        break;
    }
}
