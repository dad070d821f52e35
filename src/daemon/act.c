/* SPDX-License-Identifier: Apache-2.0 */

/* Whatever the scheduler answers, the job is looked at then, and core awaits that look: what came
 * of its wish it takes from there. An answer that was lost is told as unknown. Where there is no
 * look to be had, the next one of the poll will do. */

#include "daemon/daemon.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "core/plan/permit.h"

#include <inttypes.h>
#include <stdlib.h>

struct deed_open {
    struct daemon *d;
    struct event intent;
    enum outcome outcome;
    bool final;
    char detail[256];
};

/* Unless nobody waits for it any more: what it was about is over. */
static void report(struct daemon *d, const struct event *intent, const struct result_facts *r)
{
    struct event e = {.kind = EVENT_RESULT, .attempt = intent->attempt};

    if (!model_awaits(pump_model(d->pump), intent))
        return;
    STR_COPY(e.job, intent->job);
    e.result = *r;
    e.result.intent = intent->seq;
    pump_input(d->pump, &e);
}

void act_report(struct daemon *d, const struct event *intent, enum outcome outcome,
                const char *detail)
{
    struct result_facts r = {.outcome = outcome};

    STR_COPY(r.detail, detail);
    report(d, intent, &r);
}

static void on_look(void *ctx, enum adapter_outcome outcome, const json_t *answer, const char *text)
{
    struct deed_open *o = ctx;
    const json_t *job = json_object_get(answer, "job");
    struct result_facts r = {.outcome = o->outcome, .final = o->final};

    STR_COPY(r.detail, o->detail);
    report(o->d, &o->intent, &r);
    if (outcome == ADAPTER_DONE && job)
        sched_watch_take(o->d->sched, job);
    sched_watch_poke(o->d->sched);
    free(o);
}

static void on_done(void *ctx, enum adapter_outcome outcome, const json_t *answer, const char *text)
{
    static const enum outcome outcomes[] = {
        [ADAPTER_DONE] = OUTCOME_DONE,
        [ADAPTER_REFUSED] = OUTCOME_FAILED,
        [ADAPTER_UNREACHABLE] = OUTCOME_VOID,
        [ADAPTER_UNKNOWN] = OUTCOME_UNKNOWN,
    };
    struct deed_open *o = ctx;
    char id[16];

    o->outcome = outcomes[outcome];
    if (streq(adapter_error(answer), "changed")) /* a moment too late */
        o->outcome = OUTCOME_VOID;
    if (json_array_size(json_object_get(answer, "left_out")) > 0)
        log_warning("%s is held, and no note says until when: %s", o->intent.job, text);
    o->final = streq(adapter_error(answer), "not-allowed");
    str_sanitize(o->detail, sizeof(o->detail), text, strlen(text));
    STR_PRINTF(id, "%lu", strtoul(o->intent.job, NULL, 10));
    adapter_ask(o->d->adapter, json_pack("{s:s, s:s}", "op", "job", "job", id),
                o->d->config->adapter.timeout, on_look, o);
}

bool act_may(struct daemon *d, const struct event *intent)
{
    const struct model *m = pump_model(d->pump);
    const struct job *j = model_job(m, intent->job);

    return !j || plan_sched_permits(m, j, &intent->intended);
}

static bool is_wanted(void *ctx)
{
    const struct deed_open *o = ctx;

    return act_may(o->d, &o->intent);
}

static struct deed_open *deed_new(struct daemon *d, const struct event *intent)
{
    struct deed_open *o = xnew(struct deed_open);

    o->d = d;
    o->intent = *intent;
    return o;
}

void act_ask(struct daemon *d, const struct event *intent, json_t *request)
{
    adapter_ask_if(d->adapter, request, d->config->adapter.timeout, is_wanted, on_done,
                   deed_new(d, intent));
}

/* "restarts" and "submit" name this attempt of this job, whatever becomes of its number. */
static json_t *expect(const struct sched_job *r, const struct event *intent, json_t *states)
{
    return json_pack("{s:I, s:I, s:o}", "restarts", (json_int_t)intent->intended.restarts, "submit",
                     (json_int_t)r->submit, "states", states);
}

static json_t *request(const char *op, const struct sched_job *r)
{
    char id[16];

    STR_PRINTF(id, "%" PRIu32, r->id);
    return json_pack("{s:s, s:s}", "op", op, "job", id);
}

static json_t *running_states(void)
{
    return json_pack("[s, s, s]", "running", "configuring", "suspended");
}

/* special: it waits then, held, for people. */
static void requeue(struct daemon *d, const struct sched_job *r, const struct event *intent,
                    bool special)
{
    json_t *q = request("requeue", r), *states = running_states();

    static const char *const ended[] = {"failed",    "timeout",  "node-fail", "out-of-memory",
                                        "preempted", "deadline", "boot-fail"};
    for (size_t i = 0; i < ARRAY_SIZE(ended); i++)
        json_array_append_new(states, json_string(ended[i]));
    json_object_set_new(q, "expect", expect(r, intent, states));
    if (special)
        json_object_set_new(q, "special_exit", json_true());
    act_ask(d, intent, q);
}

static void cancel(struct daemon *d, const struct sched_job *r, const struct event *intent)
{
    json_t *q = request("cancel", r);

    json_object_set_new(q, "expect", expect(r, intent, running_states()));
    act_ask(d, intent, q);
}

/* Only what is not so is changed: otherwise it is somebody else's doing. */
static void arm(struct daemon *d, const struct sched_job *r, const struct event *intent, bool on)
{
    json_t *q = request("update", r), *states = running_states(), *want;

    if (!on)
        json_array_append_new(states, json_string("pending"));
    want = expect(r, intent, states);
    json_object_set_new(want, "requeue", json_boolean(!on));
    json_object_set_new(q, "expect", want);
    json_object_set_new(q, "set", json_pack("{s:b}", "requeue", on));
    act_ask(d, intent, q);
}

static bool is_in(const struct intent_facts *f, const char *node)
{
    for (uint32_t i = 0; i < f->n_nodes; i++)
        if (streq(f->nodes[i], node))
            return true;
    return false;
}

static bool is_required(const struct sched_job *r, const char *node)
{
    size_t i;
    json_t *v;

    json_array_foreach (r->required, i, v)
        if (streq(json_string_value(v), node))
            return true;
    return false;
}

static bool was_ours(const struct job *j, const char *node)
{
    for (uint32_t i = 0; j && i < j->sched.n_kept; i++)
        if (streq(j->sched.kept[i].node, node))
            return true;
    return false;
}

/* The user's list and ours, without what he requires, and without what the scheduler does not have
 * any more: for one such name it would refuse all. */
static json_t *merged(const struct daemon *d, const struct job *j, const struct sched_job *r,
                      const struct intent_facts *f)
{
    json_t *list = json_array(), *v;
    size_t i;

    json_array_foreach (r->exclude, i, v) {
        const char *node = json_string_value(v);

        if (node && !was_ours(j, node) && !is_in(f, node) && sched_watch_may_have(d->sched, node))
            json_array_append(list, v);
    }
    for (uint32_t n = 0; n < f->n_nodes; n++)
        if (!is_required(r, f->nodes[n]) && sched_watch_may_have(d->sched, f->nodes[n]))
            json_array_append_new(list, json_string(f->nodes[n]));
    return list;
}

struct amendment {
    struct daemon *d;
    const struct event *intent;
    int64_t begin;
};

static json_t *settings(const struct amendment *a, const struct sched_job *r)
{
    const struct job *j = model_job(pump_model(a->d->pump), a->intent->job);

    return json_pack("{s:o, s:I}", "exclude", merged(a->d, j, r, &a->intent->intended), "eligible",
                     (json_int_t)a->begin);
}

static void on_part_amended(void *ctx, enum adapter_outcome outcome, const json_t *answer,
                            const char *text)
{
    if (outcome != ADAPTER_DONE)
        log_warning("a part of a heterogeneous job could not be amended: %s", text);
    free(ctx);
}

/* Before the first part, whose result counts for the whole: a part starts only with all others. */
static void amend_part(void *ctx, const struct sched_job *part)
{
    const struct amendment *a = ctx;
    json_t *q = request("update", part);

    json_object_set_new(q, "expect",
                        json_pack("{s:I, s:[s], s:b, s:b}", "restarts",
                                  (json_int_t)a->intent->intended.restarts, "states", "pending",
                                  "held", 0, "completing", 0));
    json_object_set_new(q, "set", settings(a, part));
    adapter_ask_if(a->d->adapter, q, a->d->config->adapter.timeout, is_wanted, on_part_amended,
                   deed_new(a->d, a->intent));
}

static void amend(struct daemon *d, const struct sched_job *r, const struct event *intent)
{
    const struct intent_facts *f = &intent->intended;
    const struct job *j = model_job(pump_model(d->pump), intent->job);
    int left = f->n_nodes > 0 ? sched_watch_usable(d->sched, r, f) : -1;
    struct amendment a = {d, intent, f->not_before / USEC_PER_SEC + sched_watch_ahead(d->sched)};
    json_t *q = request("update", r), *want;
    char why[128];

    if (left >= 0 && (uint32_t)left < r->n_nodes) {
        json_decref(q);
        STR_PRINTF(why, "%d of the %" PRIu32 " nodes that it needs would be left", left,
                   r->n_nodes);
        act_report(d, intent, OUTCOME_FAILED, why);
        sched_watch_poke(d->sched);
        return;
    }
    want = expect(r, intent, json_pack("[s]", "pending"));
    if (!j || !j->sched.guarded)
        json_object_set_new(want, "held", json_false());
    json_object_set_new(want, "completing", json_false());
    json_object_set_new(q, "expect", want);
    json_object_set_new(q, "set", settings(&a, r));
    if (f->first)
        json_object_set_new(json_object_get(q, "set"), "priority",
                            json_integer(place_before_all(d, r)));
    sched_watch_each_part(d->sched, r, amend_part, &a);
    act_ask(d, intent, q);
}

/* The note says until when: reknit release-stale frees it after that, should reknitd be gone. Where
 * the comment holds something else the job is held all the same, for it could start a second time.
 */
static void guard(struct daemon *d, const struct sched_job *r, const struct event *intent)
{
    json_t *q = request("update", r);
    json_int_t until = (now_us() + GUARD_LIFE) / USEC_PER_SEC;
    json_t *states = running_states();

    if (r->held) /* it is only lengthened */
        json_array_append_new(states, json_string("pending"));
    json_object_set_new(q, "expect", expect(r, intent, states));
    json_object_set_new(
        q, "set", json_pack("{s:b, s:{s:I}}", "held", 1, "admin_comment", "held_until", until));
    json_object_set_new(q, "optional", json_pack("[s]", "admin_comment"));
    act_ask(d, intent, q);
}

static void release(struct daemon *d, const struct sched_job *r, const struct event *intent)
{
    json_t *q = request("update", r), *states = running_states();

    json_array_append_new(states, json_string("pending"));
    json_object_set_new(q, "expect", expect(r, intent, states));
    json_object_set_new(q, "set", json_pack("{s:b, s:n}", "held", 0, "admin_comment"));
    act_ask(d, intent, q);
}

void act_on_intent(struct daemon *d, const struct event *intent)
{
    const struct sched_job *r = sched_watch_record(d->sched, intent->job);

    if (sched_watch_defer(d->sched, intent))
        return;
    if (event_is_of_nodes(intent)) {
        isolate_act(d, intent);
        return;
    }
    if (!act_may(d, intent)) {
        act_report(d, intent, OUTCOME_VOID, "it is not wanted any more");
        sched_watch_poke(d->sched);
        return;
    }
    if (place_act(d, r, intent))
        return;
    if (!r) {
        act_report(d, intent, OUTCOME_FAILED, "the scheduler does not know the job");
        return;
    }
    switch (intent->intended.intent) {
    case INTENT_REQUEUE:
        requeue(d, r, intent, false);
        break;
    case INTENT_HOLD:
        requeue(d, r, intent, true);
        break;
    case INTENT_AMEND:
        amend(d, r, intent);
        break;
    case INTENT_CANCEL:
        cancel(d, r, intent);
        break;
    case INTENT_ARM:
        arm(d, r, intent, true);
        break;
    case INTENT_DISARM:
        arm(d, r, intent, false);
        break;
    case INTENT_GUARD:
        guard(d, r, intent);
        break;
    case INTENT_RELEASE:
        release(d, r, intent);
        break;
    case INTENT_FENCE:
        fence_start(d, intent);
        break;
    default:
        act_report(d, intent, OUTCOME_FAILED, "nothing on its nodes can do that from here");
        break;
    }
}
