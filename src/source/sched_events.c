/* SPDX-License-Identifier: Apache-2.0 */

/* Attempt N is the one after N - 1 requeues. A look may come late: an attempt may have begun and
 * ended between two of them, and the next may run already. So everything is derived from the
 * difference between the record and what core knows, and nothing from the order of looks.
 *
 * An attempt that ended without having begun to run is none: its launch failed. */

#include "source/sched_events.h"

#include "base/hostlist.h"
#include "base/str.h"
#include "core/model/event_fields.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

struct translation {
    const struct sched_job *r;
    const struct sched_around *around;
    const struct job *j; /* may be NULL; changes as core takes what is emitted */
    const char *key;
    sched_emit_fn *emit;
    void *ctx;
    bool any;
};

static struct event about(const struct translation *t, enum event_kind kind, uint32_t attempt)
{
    struct event e = {.kind = kind, .attempt = attempt};

    STR_COPY(e.job, t->key);
    return e;
}

static void emit(struct translation *t, const struct event *e)
{
    t->any = true;
    t->emit(t->ctx, e);
}

static usec_t from_seconds(int64_t s)
{
    return s * USEC_PER_SEC;
}

/* The record */

static void emit_seen(struct translation *t)
{
    const struct sched_job *r = t->r;
    struct event e = about(t, EVENT_JOB_SEEN, 0);
    struct job_facts *f = &e.seen;

    STR_COPY(f->command, r->command);
    str_sanitize(f->directory, sizeof(f->directory), r->work_dir, strlen(r->work_dir));
    STR_COPY(f->user, r->user);
    STR_COPY(f->host, r->batch_host);
    STR_COPY(f->program, "reknitd " REKNIT_VERSION);
    STR_COPY(f->name, r->name);
    STR_COPY(f->partition, r->partition);
    STR_COPY(f->account, r->account);
    STR_COPY(f->qos, r->qos);
    f->nodes = r->n_nodes;
    f->gpus = r->gpus;
    f->scheduled = true;
    f->id = r->id;
    f->uid = r->uid != (uid_t)-1 ? r->uid : 0;
    STR_COPY(f->label, r->label);
    f->interactive = !r->batch;
    f->over = t->around->over;
    emit(t, &e);
}

static bool is_kept_by_us(const struct job *j, const char *node)
{
    for (uint32_t i = 0; j && i < j->sched.n_kept; i++)
        if (streq(j->sched.kept[i].node, node))
            return true;
    return false;
}

static void list_kept_out(const struct translation *t, struct look_facts *ret)
{
    size_t i;
    json_t *v;

    json_array_foreach (t->r->exclude, i, v) {
        const char *node = json_string_value(v);

        if (node && ret->n_kept_out < KEPT_OUT_MAX && is_kept_by_us(t->j, node))
            STR_COPY(ret->kept_out[ret->n_kept_out++], node);
    }
    /* Nothing can start there. */
    for (uint32_t n = 0; n < t->around->n_absent && ret->n_kept_out < KEPT_OUT_MAX; n++)
        STR_COPY(ret->kept_out[ret->n_kept_out++], t->around->absent[n]);
}

static void list_required(const struct sched_job *r, struct look_facts *ret)
{
    _cleanup_strbuf_ struct strbuf all = {0};
    size_t i;
    json_t *v;

    json_array_foreach (r->required, i, v)
        if (json_is_string(v))
            strbuf_addf(&all, "%s%s", all.len > 0 ? "," : "", json_string_value(v));
    hostlist_copy(ret->required, sizeof(ret->required), strbuf_str(&all));
}

static struct look_facts look_of(const struct translation *t)
{
    const struct sched_job *r = t->r;
    struct look_facts l = {
        .state = r->state,
        .completing = r->completing,
        .held = r->held,
        .noted = r->noted,
        .constrained = streq(r->reason_kind, "constraints"),
        .requeueable = r->batch && r->requeue,
        .successor = t->around->n_successors > 0,
        .n_successors = t->around->n_successors,
        .stranded = t->around->stranded,
        .outranked = t->around->outranked,
        .restarts = r->restarts,
        .tasks = r->n_tasks,
        .submitted = from_seconds(r->submit),
        .begin = from_seconds(r->eligible),
        .noted_until = from_seconds(r->noted_until),
        .started = from_seconds(r->start),
        .ended = from_seconds(r->end),
    };

    for (uint32_t i = 0; i < l.n_successors; i++)
        l.successors[i] = t->around->successors[i];
    STR_COPY(l.label, r->label);
    if (*r->nodes && r->state != SCHED_PENDING)
        STR_COPY(l.partition, r->partition);
    STR_COPY(l.reason, r->reason);
    hostlist_copy(l.nodes, sizeof(l.nodes), r->nodes);
    STR_COPY(l.lost_node, t->around->lost_node);
    list_required(r, &l);
    list_kept_out(t, &l);
    return l;
}

static bool looks_differ(const struct look_facts *a, const struct look_facts *b)
{
    char where[96];

    return fields_differ(event_body(EVENT_LOOK)->sub, a, b, where, sizeof(where))[0] != '\0';
}

/* Of a thousand jobs nearly all are as they were. */
static void emit_look(struct translation *t)
{
    struct look_facts look = look_of(t);
    struct event e;

    if (t->j && !t->j->sched.look_due && !looks_differ(&t->j->sched.look, &look))
        return;
    e = about(t, EVENT_LOOK, t->r->restarts + 1);
    e.look = look;
    emit(t, &e);
}

/* How it ended, where the scheduler knows more than an exit status */

struct verdict_fact {
    enum sched_state state;
    const char *signature, *words;
    enum cause cause;
    enum blame blame;
};

static const struct verdict_fact verdicts[] = {
    {SCHED_TIMEOUT, "scheduler.time_limit", "its time was up", CAUSE_TIME_LIMIT, BLAME_NONE},
    {SCHED_NODE_FAIL, "scheduler.node_fail", "a node of it failed", CAUSE_NODE_FAILURE, BLAME_NODE},
    {SCHED_OUT_OF_MEMORY, "scheduler.out_of_memory", "it used more memory than it had asked for",
     CAUSE_HOST_OOM, BLAME_JOB},
    {SCHED_PREEMPTED, "scheduler.preempted", "it was preempted", CAUSE_PREEMPTION, BLAME_NONE},
    {SCHED_BOOT_FAIL, "scheduler.boot_fail", "its nodes did not boot", CAUSE_NODE_FAILURE,
     BLAME_NODE},
};

/* Of no state: it is pending, or runs again, by then. */
static const struct verdict_fact requeued = {SCHED_NONE, "scheduler.requeued",
                                             "it was queued again while it ran", CAUSE_PREEMPTION,
                                             BLAME_NONE};

/* One of the nodes of the attempt that core follows, "" = not known. */
static const char *lost_node(const struct translation *t)
{
    const char *node = t->r->failed_node[0] ? t->r->failed_node : t->around->down_node;

    return hostlist_has(t->j->sched.ran_on, node) ? node : "";
}

static void emit_fact(struct translation *t, const struct verdict_fact *f)
{
    struct event e = about(t, EVENT_SIGNAL, t->j->attempt.number);
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_SCHEDULER);
    const char *node = lost_node(t);

    STR_COPY(s.signature, f->signature);
    s.layer = LAYER_SCHEDULER;
    s.role = ROLE_ROOT;
    s.cause = f->cause;
    s.blame = f->blame;
    s.confidence = 98;
    if (f->blame == BLAME_NODE)
        STR_COPY(s.who.node, node);
    STR_PRINTF(s.text, "the scheduler says: %s%s%s", f->words, s.who.node[0] ? ": " : "",
               s.who.node);
    e.signal = s;
    emit(t, &e);
}

static const struct verdict_fact *fact_of(enum sched_state state)
{
    for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
        if (verdicts[i].state == state)
            return &verdicts[i];
    return NULL;
}

static void emit_bare(struct translation *t, enum event_kind kind)
{
    struct event e = about(t, kind, t->j->attempt.number);

    emit(t, &e);
}

/* What a script's exit status says holds only where it ended by itself. */
static struct exit_fact exit_of(const struct sched_job *r)
{
    bool own =
        r->state == SCHED_COMPLETED || r->state == SCHED_FAILED || r->state == SCHED_OUT_OF_MEMORY;

    if (!own || (r->state != SCHED_COMPLETED && r->exit_code == 0 && r->exit_signal == 0))
        return (struct exit_fact){.code = -1};
    if (r->exit_signal > 0)
        return (struct exit_fact){.code = -1, .signal = r->exit_signal};
    return (struct exit_fact){.code = r->exit_code};
}

static void emit_exit(struct translation *t)
{
    struct event e = about(t, EVENT_ATTEMPT_EXITED, t->j->attempt.number);

    e.exited = exit_of(t->r);
    emit(t, &e);
}

/* Cancelled, and not because reknit asked for that. */
static bool is_foreign_cancel(const struct translation *t)
{
    return t->r->state == SCHED_CANCELLED && t->j && !t->j->requested && t->j->state != JOB_ENDED &&
           t->j->sched.cancels == 0;
}

static void emit_cancel(struct translation *t)
{
    struct event e = about(t, EVENT_OPERATOR, t->r->restarts + 1);

    e.request = (struct request_facts){.request = REQUEST_INTERRUPT, .signal = SIGTERM};
    STR_COPY(e.request.who, "scancel, by its user or an operator");
    emit(t, &e);
}

/* The life of an attempt */

static bool may_begin(const struct job *j)
{
    return j && (j->state == JOB_NEW || j->state == JOB_DECIDED || j->state == JOB_STARTING ||
                 j->state == JOB_ENDED);
}

static bool lives(const struct job *j)
{
    return j && j->attempt.number > 0 && (j->state == JOB_RUNNING || j->state == JOB_ENDING);
}

static void emit_started(struct translation *t)
{
    struct event e = about(t, EVENT_ATTEMPT_STARTED, t->r->restarts + 1);

    str_sanitize(e.started.log, sizeof(e.started.log), t->r->std_out, strlen(t->r->std_out));
    emit(t, &e);
}

static bool has_run(const struct sched_job *r)
{
    return r->start > 0 && !streq(r->reason_kind, "launch");
}

static void emit_launch_failed(struct translation *t)
{
    struct event e = about(t, EVENT_LAUNCH_FAILED, t->r->restarts + 1);

    STR_PRINTF(e.result.detail, "the scheduler could not launch it (%s)",
               t->r->reason[0] ? t->r->reason : "no reason given");
    e.result.outcome = OUTCOME_FAILED;
    emit(t, &e);
}

/* The attempt that core follows is not the record's any more: it was queued again meanwhile. */
static void leave_behind(struct translation *t)
{
    if (!lives(t->j) || t->j->attempt.gone)
        return;
    if (t->j->state == JOB_RUNNING && lost_node(t)[0] != '\0')
        emit_fact(t, fact_of(SCHED_NODE_FAIL));
    else if (t->j->state == JOB_RUNNING && !t->j->attempt.exited)
        emit_fact(t, &requeued); /* we ask for that only behind a verdict */
    if (!t->j->attempt.exited)
        emit_bare(t, EVENT_ATTEMPT_GONE);
}

static void end_attempt(struct translation *t)
{
    const struct verdict_fact *f = fact_of(t->r->state);

    if (f && t->j->state == JOB_RUNNING && !t->j->attempt.exited)
        emit_fact(t, f);
    if (!t->j->attempt.exited && !t->j->attempt.gone)
        emit_exit(t);
    if (!t->r->completing && !t->j->attempt.gone)
        emit_bare(t, EVENT_ATTEMPT_GONE);
}

static bool is_stopped_early(const struct translation *t)
{
    return t->r->state == SCHED_CANCELLED && sched_job_never_began(t->r);
}

/* Told once: what is decided then counts from there on. */
static bool launch_failure_is_new(const struct translation *t)
{
    return (t->j->state == JOB_STARTING || t->j->state == JOB_DECIDED) &&
           t->j->sched.base_restarts < t->r->restarts;
}

static bool runs(const struct sched_job *r)
{
    return r->state == SCHED_RUNNING || r->state == SCHED_SUSPENDED;
}

/* It was let go, and the attempt of then still runs, now that it is to be watched again. */
static bool is_to_be_followed_again(const struct translation *t)
{
    const struct job *j = t->j;

    return j->sched.let_go && j->sched.resumed && runs(t->r) && !j->attempt.exited &&
           !j->attempt.gone && j->attempt.number == t->r->restarts + 1;
}

/* What failed while it was not watched is not caught up with. */
static bool is_to_be_followed(const struct translation *t)
{
    return !sched_is_let_go(t->j) && (!t->j->sched.resumed || runs(t->r));
}

static void follow_begin(struct translation *t)
{
    const struct sched_job *r = t->r;

    if (is_to_be_followed_again(t)) {
        emit_started(t);
        return;
    }
    if (t->j->attempt.number > r->restarts)
        return;
    leave_behind(t);
    if (!may_begin(t->j) || is_stopped_early(t) || !(runs(r) || sched_has_ended(r->state)))
        return;
    if (runs(r) || has_run(r) || t->j->attempt.number == 0)
        emit_started(t);
    else if (launch_failure_is_new(t))
        emit_launch_failed(t);
}

/* Who cancels a job ends the attempt that runs then: so the cancel comes between its beginning and
 * its end, even if all of them are seen at once. */
static void follow_life(struct translation *t)
{
    follow_begin(t);
    if (is_foreign_cancel(t))
        emit_cancel(t);
    if (t->j->attempt.number == t->r->restarts + 1 && sched_has_ended(t->r->state))
        end_attempt(t);
}

bool sched_translate(const struct sched_job *r, const struct sched_around *around,
                     const struct job *j, const char *key, sched_emit_fn *fn, void *ctx)
{
    struct translation t = {.r = r, .around = around, .j = j, .key = key, .emit = fn, .ctx = ctx};

    if (r->state == SCHED_NONE)
        return false;
    if (!j) {
        emit_seen(&t);
        return true; /* core knows it from now on: to be called again */
    }
    emit_look(&t);
    if (is_to_be_followed(&t))
        follow_life(&t);
    return t.any;
}

/* Each of the two may be the last that is told before this process is killed. */
bool sched_translate_gone(const struct job *j, sched_emit_fn *fn, void *ctx)
{
    struct event e = {.kind = EVENT_LOOK, .attempt = j->attempt.number};
    bool unseen = (j->state == JOB_RUNNING || j->state == JOB_NEW) && !j->attempt.lost;
    bool looked = j->sched.look.state == SCHED_FORGOTTEN;

    STR_COPY(e.job, j->name);
    e.look = j->sched.look;
    e.look.state = SCHED_FORGOTTEN;
    e.look.completing = false;
    if (!looked)
        fn(ctx, &e);
    e.kind = EVENT_RUNNER_LOST;
    if (unseen)
        fn(ctx, &e);
    return unseen || !looked;
}
