/* SPDX-License-Identifier: Apache-2.0 */

/* reknitd, as far as it stands between core and a scheduler (src/daemon/sched.c, act.c): it polls,
 * finds jobs again by number and submission, translates, hands intents to the adapter, tells
 * results and looks again. Everything in it is lost when it is killed, which may be behind any
 * event. */

#include "cluster.h"

#include "base/hostlist.h"
#include "base/str.h"
#include "core/model/event_fields.h"
#include "core/plan/permit.h"
#include "source/sched_events.h"

#include <inttypes.h>
#include <stdio.h>

#define S           USEC_PER_SEC
#define POLL_EVERY  (5 * S)
#define POLL_SOON   (1 * S)
#define DEADLINE    (15 * S)
#define LATENCY_MAX (30 * USEC_PER_MSEC)
#define FIRST_LOOK  (100 * USEC_PER_MSEC)

/* The record of a job, as the adapter's answer is parsed */

static const char *const node_names[NODES] = {"n0", "n1", "n2", "n3", "n4",  "n5",
                                              "n6", "n7", "n8", "n9", "n10", "n11"};

static bool has(nodeset set, uint32_t node)
{
    return set & (nodeset)1 << node;
}

static json_t *names_of(nodeset set)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < NODES; i++)
        if (has(set, i))
            json_array_append_new(list, json_string(node_names[i]));
    return list;
}

static void list_nodes(nodeset set, char *ret, size_t size)
{
    _cleanup_strbuf_ struct strbuf list = {0};

    for (uint32_t i = 0; i < NODES; i++) {
        if (!has(set, i))
            continue;
        if (list.len > 0)
            strbuf_adds(&list, ",");
        strbuf_adds(&list, node_names[i]);
    }
    str_copy(ret, size, strbuf_str(&list));
}

struct record {
    struct sched_job r;
    char nodes[256], name[16];
};

static void fill_record(const struct fake_job *f, struct record *ret)
{
    struct sched_job *r = &ret->r;

    memset(ret, 0, sizeof(*ret));
    r->label = r->user = r->account = r->qos = r->comment = r->dependency = "";
    r->command = r->work_dir = r->std_out = r->std_err = r->failed_node = r->batch_host = "";
    STR_COPY(ret->name, f->name);
    list_nodes(f->state == SCHED_PENDING ? 0 : f->ran_on, ret->nodes, sizeof(ret->nodes));
    r->name = ret->name;
    r->nodes = ret->nodes;
    r->partition = f->state == SCHED_PENDING ? "odd,even" : f->id % 2 ? "odd" : "even";
    r->reason = f->launch_failed ? "JobLaunchFailure" : "None";
    r->reason_kind = f->launch_failed ? "launch" : f->constrained ? "constraints" : "none";
    r->id = f->id;
    r->uid = f->uid;
    r->batch = f->batch;
    r->requeue = f->may_requeue;
    r->completing = f->completing;
    r->held = f->held;
    r->noted = f->held && f->noted;
    r->state = f->state;
    r->restarts = f->restarts;
    r->n_nodes = f->need;
    r->n_tasks = f->need;
    r->submit = f->submit / S;
    r->eligible = f->begin / S;
    r->start = f->start / S;
    r->end = f->end / S;
    r->exit_code = f->exit_code;
    r->exclude = names_of(f->exclude);
    r->required = names_of(f->required);
}

static void record_done(struct record *r)
{
    json_decref(r->r.exclude);
    json_decref(r->r.required);
}

/* Watching */

static struct watched *find_watched(struct cluster *c, uint32_t id)
{
    VEC_FOREACH (&c->watch, w)
        if (w->id == id)
            return w;
    return NULL;
}

static void drop_watched(struct cluster *c, uint32_t id)
{
    for (size_t i = c->watch.n; i-- > 0;)
        if (c->watch.v[i].id == id)
            VEC_REMOVE(&c->watch, i);
}

static void emit(void *ctx, const struct event *e)
{
    warden_feed(ctx, *e);
}

static const struct job *job_named(const struct cluster *c, const char *key)
{
    return model_job(core_model(c->core), key);
}

/* Of the jobs in core's state with this number, the one that can have become this record. */
static bool recall_key(const struct cluster *c, const struct sched_job *r, char *ret)
{
    const struct model *m = core_model(c->core);
    const struct job *best = NULL;
    char prefix[16];

    STR_PRINTF(prefix, "%" PRIu32 "-", r->id);
    VEC_FOREACH (&m->jobs, job) {
        const struct look_facts *l = &(*job)->sched.look;
        usec_t submit = r->submit * S;

        if (strncmp((*job)->name, prefix, strlen(prefix)) != 0)
            continue;
        if (r->restarts > l->restarts ? submit >= l->submitted
                                      : r->restarts == l->restarts && submit == l->submitted)
            best = *job;
    }
    if (best)
        str_copy(ret, JOB_NAME_LEN, best->name);
    return best != NULL;
}

static void tell_mode(struct cluster *c, const char *key, enum mode mode)
{
    struct event e = {.kind = EVENT_MODE};
    const struct job *j = job_named(c, key);

    if (!j || (j->sched.words.told && j->sched.words.terms == mode))
        return;
    STR_COPY(e.job, key);
    e.mode.mode = mode;
    warden_feed(c, e);
}

/* As sched_nodes_silent_of(). */
static const char *silent_node(const struct cluster *c, const struct job *j,
                               const struct sched_job *r)
{
    const char *where = r->state == SCHED_RUNNING ? r->nodes : j->sched.ran_on, *fenced = "";

    for (uint32_t i = 0; i < NODES; i++) {
        if (!has(c->slurm.silent, i) || !hostlist_has(where, node_names[i]))
            continue;
        if (!sched_is_fenced(j, node_names[i]))
            return node_names[i];
        fenced = node_names[i];
    }
    return fenced;
}

/* As sched_nodes_down_of(). */
static const char *down_node(const struct cluster *c, const struct job *j)
{
    for (uint32_t i = 0; i < NODES; i++)
        if (!has(c->slurm.up, i) && hostlist_has(j->sched.ran_on, node_names[i]))
            return node_names[i];
    return "";
}

static void translate(struct cluster *c, const char *key, const struct sched_job *r, bool successor)
{
    static const uint32_t other = 1;
    struct sched_around around = {
        .down_node = "", .lost_node = "", .successors = &other, .n_successors = successor};

    around.over = !c->full && sched_has_ended(r->state);
    const struct job *j;

    if (!job_named(c, key)) {
        sched_translate(r, &around, NULL, key, emit, c);
        tell_mode(c, key, c->scene.mode);
    }
    j = c->alive ? job_named(c, key) : NULL;
    if (!j)
        return;
    reader_follow(c, key);
    if (!c->alive)
        return;
    around.lost_node = silent_node(c, j, r);
    around.down_node = down_node(c, j);
    sched_translate(r, &around, j, key, emit, c);
    if (c->alive)
        reader_follow(c, key);
}

static void forget(struct cluster *c, const char *key, uint32_t id)
{
    const struct job *j = job_named(c, key);

    if (j)
        sched_translate_gone(j, emit, c);
    drop_watched(c, id);
}

static void take_record(struct cluster *c, const struct fake_job *f)
{
    struct watched *w = find_watched(c, f->id);
    struct record now, before;
    char key[JOB_NAME_LEN];
    bool same = true;

    fill_record(f, &now);
    if (w) {
        fill_record(&w->last, &before);
        same = sched_job_is_same(&before.r, &now.r);
        record_done(&before);
    }
    if (w && !same) {
        STR_COPY(key, w->key);
        forget(c, key, f->id);
        w = NULL;
    }
    if (!w) {
        w = VEC_PUSH(&c->watch);
        w->id = f->id;
        if (!recall_key(c, &now.r, w->key))
            sched_job_key(&now.r, w->key);
    }
    w->last = *f;
    cluster_job(c, f->index)->cancel_shown |= f->state == SCHED_CANCELLED;
    STR_COPY(key, w->key);
    inspect_story(c, key)->index = f->index;
    translate(c, key, &now.r, w->successor);
    record_done(&now);
}

const char *warden_follows(const struct cluster *c, const struct fake_job *f)
{
    if (!c->alive)
        return NULL;
    VEC_FOREACH (&c->watch, w) {
        const struct job *j = job_named(c, w->key);

        if (w->id == f->id && w->last.index == f->index && j &&
            j->attempt.number == f->restarts + 1 &&
            (j->state == JOB_RUNNING || j->state == JOB_ENDING || j->state == JOB_DECIDED))
            return w->key;
    }
    return NULL;
}

/* Polling */

static bool is_pressing(const struct cluster *c)
{
    VEC_FOREACH (&c->watch, w) {
        const struct job *j = job_named(c, w->key);

        if (j && (j->sched.look_due || j->state == JOB_ENDING || j->state == JOB_JUDGED ||
                  j->state == JOB_DECIDED || j->state == JOB_STARTING))
            return true;
    }
    return false;
}

static void poll_later(struct cluster *c)
{
    if (c->alive)
        cluster_later(c, is_pressing(c) ? POLL_SOON : POLL_EVERY, warden_poll,
                      (struct arg){.a = c->life});
}

static const struct event *oldest_pending(const struct job *j)
{
    return j->pending.n > 0 ? &j->pending.v[0] : NULL; /* in the order of their seq */
}

/* Core knows jobs that were forgotten while nobody looked, and wishes that nobody will answer. */
static void settle_the_past(struct cluster *c)
{
    const struct model *m = core_model(c->core);

    for (size_t i = 0; c->alive && i < m->jobs.n; i++) {
        const struct job *j = m->jobs.v[i];
        const struct event *open;
        bool watched = false;

        VEC_FOREACH (&c->watch, w)
            watched |= streq(w->key, j->name);
        if (!watched && j->state != JOB_ENDED)
            sched_translate_gone(j, emit, c);
        while (c->alive && (open = oldest_pending(j)) && open->seq <= c->past) {
            struct event e = {.kind = EVENT_RESULT, .attempt = open->attempt};

            STR_COPY(e.job, j->name);
            e.result = (struct result_facts){.intent = open->seq, .outcome = OUTCOME_UNKNOWN};
            warden_feed(c, e);
        }
    }
}

static bool is_listed(const struct slurm *s, uint32_t id)
{
    return slurm_find(s, id) != NULL;
}

/* Those that changed, and those that core could not take so far. */
static void take_all(struct cluster *c)
{
    bool changed = c->seen_changes != c->slurm.changes || !c->full;

    c->seen_changes = c->slurm.changes;
    if (!changed && !is_pressing(c))
        return;
    for (size_t i = 0; c->alive && i < c->slurm.jobs.n; i++)
        if (!c->slurm.jobs.v[i]->forgotten)
            take_record(c, c->slurm.jobs.v[i]);
    for (size_t i = c->watch.n; c->alive && i-- > 0;) {
        struct watched w = c->watch.v[i];

        if (!is_listed(&c->slurm, w.id))
            forget(c, w.key, w.id);
    }
}

void warden_poll(struct cluster *c, struct arg life)
{
    if (!c->alive || life.a != c->life)
        return;
    if (c->now < c->deaf_until || c->now < c->adapter_free_at) {
        poll_later(c);
        return;
    }
    take_all(c);
    if (c->alive && !c->full) {
        settle_the_past(c);
        c->full = c->alive;
        reader_start(c);
    }
    poll_later(c);
}

/* Acting */

static nodeset nodes_named(const struct intent_facts *f)
{
    nodeset set = 0;

    for (uint32_t n = 0; n < f->n_nodes; n++)
        for (uint32_t i = 0; i < NODES; i++)
            if (streq(node_names[i], f->nodes[n]))
                set |= (nodeset)1 << i;
    return set;
}

/* What becomes possible is ours, unless somebody else was there first. Where no answer is ever
 * lost, that can be told apart. */
static enum answer set_requeue(struct cluster *c, struct fake_job *f, bool may, bool late)
{
    bool ours = may ? f->armed || !f->may_requeue : f->armed;
    enum answer a;

    if (!may && !ours && !late && !c->scene.late && !c->scene.lost && !c->scene.deaths)
        cluster_fail(c, "job %u is disarmed, and was never armed", f->id);
    a = slurm_set_requeue(&c->slurm, f, may);
    if (a == ANSWER_OK)
        f->armed = may && ours;
    return a;
}

/* As Slurm does it, whenever it gets round to it. */
static enum answer execute(struct cluster *c, const struct event *e, struct fake_job *f, bool late)
{
    enum intent intent = e->intended.intent;
    enum answer a = ANSWER_REFUSED;

    if (f->stubborn && !cluster_is_quiet(c) &&
        (intent == INTENT_AMEND || intent == INTENT_RELEASE || intent == INTENT_ARM ||
         intent == INTENT_DISARM))
        return ANSWER_OK;
    switch (intent) {
    case INTENT_REQUEUE:
        a = slurm_requeue(&c->slurm, f, BY_REKNIT);
        break;
    case INTENT_CANCEL:
        a = slurm_cancel(&c->slurm, f);
        break;
    case INTENT_ARM:
    case INTENT_DISARM:
        a = set_requeue(c, f, intent == INTENT_ARM, late);
        break;
    case INTENT_AMEND:
        a = slurm_amend(&c->slurm, f, f->own_exclude | (nodes_named(&e->intended) & ~f->required),
                        e->intended.not_before, late ? BY_SLURM : BY_REKNIT);
        break;
    case INTENT_GUARD:
        slurm_hold(&c->slurm, f, true);
        f->guarded = true;
        f->noted = !f->no_room;
        c->guards++;
        a = ANSWER_OK;
        break;
    case INTENT_RELEASE:
        slurm_hold(&c->slurm, f, false);
        f->noted = false;
        a = ANSWER_OK;
        break;
    default:
        break;
    }
    if (a == ANSWER_OK)
        inspect_granted(c, e, f, late);
    return a;
}

/* What the adapter is sent: the intent, and which job it means. */
struct errand {
    struct event intent;
    uint32_t id;
    int64_t submit;
    bool known;
};

static struct errand *make_errand(struct cluster *c, const struct event *intent)
{
    struct errand *q = xnew(struct errand);

    q->intent = *intent;
    VEC_FOREACH (&c->watch, w) {
        if (!streq(w->key, intent->job))
            continue;
        q->id = w->id;
        q->submit = w->last.submit / S;
        q->known = true;
    }
    return q;
}

/* What it looks at immediately before. */
static bool is_as_expected(const struct errand *q, const struct fake_job *f)
{
    bool same = f->restarts == q->intent.intended.restarts && f->submit / S == q->submit;

    switch (q->intent.intended.intent) {
    case INTENT_REQUEUE:
        return same && f->state != SCHED_COMPLETED && f->state != SCHED_CANCELLED &&
               f->state != SCHED_PENDING;
    case INTENT_AMEND:
        return same && f->state == SCHED_PENDING && (!f->held || f->guarded) && !f->completing;
    case INTENT_RELEASE:
        return f->restarts == q->intent.intended.restarts &&
               (slurm_runs(f) || f->state == SCHED_PENDING);
    case INTENT_GUARD:
        return same && (slurm_runs(f) || (f->state == SCHED_PENDING && f->guarded));
    case INTENT_ARM:
        return same && slurm_runs(f) && !f->may_requeue;
    case INTENT_DISARM:
        return same && f->may_requeue && (slurm_runs(f) || f->state == SCHED_PENDING);
    case INTENT_CANCEL: /* also of what waits */
        return same && (slurm_runs(f) || f->state == SCHED_PENDING);
    default:
        return same && slurm_runs(f);
    }
}

struct telling {
    struct event intent;
    enum outcome outcome;
};

static void tell_result(struct cluster *c, struct arg arg)
{
    struct telling *t = arg.p;
    struct event e = {.kind = EVENT_RESULT, .attempt = t->intent.attempt};
    struct watched *w = NULL;
    struct fake_job *f;

    if (c->alive && arg.a == c->life) {
        STR_COPY(e.job, t->intent.job);
        e.result = (struct result_facts){.intent = t->intent.seq, .outcome = t->outcome};
        STR_COPY(e.result.detail, "as drawn");
        if (model_awaits(core_model(c->core), &t->intent))
            warden_feed(c, e);
        for (size_t i = 0; i < c->watch.n; i++)
            if (streq(c->watch.v[i].key, t->intent.job))
                w = &c->watch.v[i];
        f = w && c->now >= c->deaf_until ? slurm_find(&c->slurm, w->id) : NULL;
        if (c->alive && f)
            take_record(c, f);
    }
    free(t);
}

static void tell_later(struct cluster *c, uint64_t life, const struct event *intent,
                       enum outcome outcome, usec_t span)
{
    struct telling *t = xnew(struct telling);

    t->intent = *intent;
    t->outcome = outcome;
    c->adapter_free_at = c->now + span;
    cluster_later(c, span, tell_result, (struct arg){.a = life, .p = t});
}

struct late_deed {
    struct event intent;
    uint32_t index;
};

static void do_late(struct cluster *c, struct arg arg)
{
    struct late_deed *d = arg.p;

    execute(c, &d->intent, cluster_job(c, d->index), true);
    free(d);
}

static enum outcome outcome_of(enum answer a)
{
    return a == ANSWER_OK || a == ANSWER_ALREADY ? OUTCOME_DONE : OUTCOME_FAILED;
}

/* Answered as unknown; done some time, or not. */
static void serve_late(struct cluster *c, const struct errand *q, struct fake_job *f, uint64_t life)
{
    struct late_deed *d;

    if (rng_chance(&c->rng, 70)) {
        d = xnew(struct late_deed);
        *d = (struct late_deed){q->intent, f->index};
        cluster_later(c, cluster_between(c, 0, 200 * S), do_late, (struct arg){.p = d});
    }
    tell_later(c, life, &q->intent, OUTCOME_UNKNOWN, DEADLINE);
}

static void serve(struct cluster *c, const struct errand *q, uint64_t life)
{
    struct fake_job *f = q->known ? slurm_find(&c->slurm, q->id) : NULL;
    bool fair = cluster_is_quiet(c);

    if (c->now < c->deaf_until) {
        tell_later(c, life, &q->intent, OUTCOME_VOID, 9 * S);
    } else if (!f) {
        tell_later(c, life, &q->intent, OUTCOME_FAILED, 0);
    } else if (!is_as_expected(q, f)) {
        tell_later(c, life, &q->intent, OUTCOME_VOID, 0);
    } else if (!fair && rng_chance(&c->rng, c->scene.late)) {
        serve_late(c, q, f, life);
    } else {
        enum answer a = execute(c, &q->intent, f, false);
        bool lost = !fair && rng_chance(&c->rng, c->scene.lost);

        tell_later(c, life, &q->intent, lost ? OUTCOME_UNKNOWN : outcome_of(a),
                   lost ? DEADLINE : cluster_between(c, 0, LATENCY_MAX));
    }
}

/* The site's program: it may switch the node off, or say that it cannot. */
static void fence(struct cluster *c, const struct event *intent, uint64_t life)
{
    struct event e = {.kind = EVENT_FENCED, .attempt = intent->attempt};
    uint32_t node = (uint32_t)__builtin_ctz(nodes_named(&intent->intended));
    const struct job *j = job_named(c, intent->job);
    bool off = rng_chance(&c->rng, 40);

    if (off)
        slurm_fence(&c->slurm, node);
    if (life != c->life || !c->alive)
        return;
    c->fences += off;
    STR_COPY(e.job, intent->job);
    STR_COPY(e.fenced.node, intent->intended.nodes[0]);
    if (off && j && streq(j->sched.look.lost_node, e.fenced.node))
        warden_feed(c, e);
    tell_later(c, life, intent, off ? OUTCOME_DONE : OUTCOME_FAILED, 0);
}

/* As act_on_intent(). */
static bool is_forbidden(const struct cluster *c, const struct event *intent)
{
    const struct job *j = job_named(c, intent->job);

    return j && !plan_sched_permits(core_model(c->core), j, &intent->intended);
}

static void carry_out(struct cluster *c, const struct errand *q)
{
    if (q->intent.intended.intent == INTENT_INSPECT) {
        tell_later(c, c->life, &q->intent, OUTCOME_DONE, 0);
    } else if (is_forbidden(c, &q->intent)) {
        tell_later(c, c->life, &q->intent, OUTCOME_VOID, 0);
    } else {
        inspect_carried_out(c, &q->intent);
        if (q->intent.intended.intent == INTENT_FENCE)
            fence(c, &q->intent, c->life);
        else
            serve(c, q, c->life);
    }
}

/* What reknitd asks for waits until all jobs were looked at, and until the adapter is free. One
 * whose reknitd was killed may still get to it, and then nobody hears of it. */
static void act(struct cluster *c, struct arg arg)
{
    struct errand *q = arg.p;
    bool orphan = !c->alive || arg.a != c->life;

    if (!orphan && (!c->full || c->now < c->adapter_free_at)) {
        cluster_later(c, c->full ? c->adapter_free_at - c->now : FIRST_LOOK, act, arg);
        return;
    }
    if (!orphan && model_awaits(core_model(c->core), &q->intent))
        carry_out(c, q);
    else if (orphan && q->intent.intended.intent == INTENT_FENCE)
        fence(c, &q->intent, 0);
    else if (orphan && rng_chance(&c->rng, 50))
        serve(c, q, arg.a);
    free(q);
}

/* Life and death */

static void die(struct cluster *c)
{
    c->alive = c->full = false;
    c->watch.n = 0;
    reader_lost(c);
    c->deaths++;
    cluster_later(c, cluster_between(c, 0, rng_chance(&c->rng, 20) ? 1200 * S : 20 * S),
                  warden_begin, (struct arg){0});
}

static bool fate(struct cluster *c)
{
    return !cluster_is_quiet(c) && rng_in(&c->rng, 1, 10000) <= c->scene.deaths;
}

/* Killed before its intents leave, or behind that. */
static void hand_over(struct cluster *c, const struct core_output *out)
{
    bool doomed = fate(c);

    if (doomed && rng_chance(&c->rng, 50)) {
        die(c);
        return;
    }
    VEC_FOREACH (&out->events, e)
        if (e->kind == EVENT_INTENT)
            cluster_later(c, cluster_between(c, 0, LATENCY_MAX), act,
                          (struct arg){.a = c->life, .p = make_errand(c, e)});
    if (doomed)
        die(c);
}

static void trace(const struct cluster *c, const struct event *e)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    const struct field *body = event_body(e->kind);
    char at[DURATION_TEXT_MAX];

    if (!c->trace)
        return;
    if (body)
        fields_print(body->sub, (const char *)e + body->offset, &text);
    printf("%14s %5llu %s%s %s #%u %.260s\n", duration_format(e->time_us - BEGINNING, at),
           (unsigned long long)e->seq, event_is_input(e->kind) ? "" : "  ",
           event_kind_name(e->kind), e->job, e->attempt, strbuf_str(&text));
}

static bool is_end(const struct event *e)
{
    return e->kind == EVENT_ATTEMPT_EXITED || e->kind == EVENT_ATTEMPT_GONE ||
           e->kind == EVENT_INTERRUPTED;
}

static void drain_what_ended(struct cluster *c, const struct event *e, const struct core_output *o)
{
    bool ended = is_end(e);

    VEC_FOREACH (&o->events, d)
        ended |= is_end(d) && streq(d->job, e->job);
    if (ended && c->alive)
        reader_drain(c, e->job);
    VEC_FOREACH (&o->events, d) /* of all jobs, at a time */
        if (c->alive && is_end(d) && !streq(d->job, e->job))
            reader_drain(c, d->job);
}

void warden_feed(struct cluster *c, struct event e)
{
    struct core_output out = {0};

    if (!c->alive)
        return;
    e.seq = ++c->seq;
    e.time_us = c->now;
    trace(c, &e);
    inspect_step(c, &e, &out);
    VEC_FOREACH (&out.events, d) {
        c->seq++;
        trace(c, d);
        inspect_derived(c, d);
    }
    hand_over(c, &out);
    drain_what_ended(c, &e, &out);
    core_output_done(&out);
}

static void tell_brakes(struct cluster *c)
{
    struct event e = {.kind = EVENT_BRAKES};

    e.brakes = c->scene.brakes;
    warden_feed(c, e);
}

void warden_begin(struct cluster *c, struct arg none)
{
    const struct model *m;

    core_free(c->core);
    c->core = journal_fold(&c->journal);
    c->alive = true;
    c->full = false;
    c->life++;
    c->past = c->seq;
    c->alive_since = c->adapter_free_at = c->now;
    reader_is_unknown(c);
    tell_brakes(c);
    m = core_model(c->core);
    for (size_t i = 0; c->alive && i < m->jobs.n; i++)
        tell_mode(c, m->jobs.v[i]->name, c->scene.mode);
    cluster_later(c, FIRST_LOOK, warden_poll, (struct arg){.a = c->life});
}
