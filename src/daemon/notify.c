/* SPDX-License-Identifier: Apache-2.0 */

/* Which events people are told of by the webhook: what is decided and carried out, or waits for
 * approval; and what was ordered and has failed for good. A refusal that is followed by another
 * try, or by the end of trying, is told by the decision that says so. Up to which of them they were
 * told stands in a file beside the journal, so that a restart neither repeats nor skips any: those
 * that came after it are taken from the journal again, unless they are so old that they are no
 * news.
 *
 * The file is written after a message was taken, so between those two moments a crash repeats one
 * message, with the same key. */

#include "daemon/daemon.h"

#include "action/webhook.h"
#include "api/views.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define STATE_NAME "webhook"
#define NEWS_FOR   USEC_PER_HOUR       /* older decisions are not told after a restart */
#define NOTE_EVERY (5 * USEC_PER_MIN)  /* that there was nothing to tell */
#define SAY_EVERY  (10 * USEC_PER_MIN) /* of the same trouble */

struct notifier {
    struct daemon *d;
    struct webhook *webhook; /* NULL = nobody is to be told */
    char program[PATH_MAX];
    sd_event_source *timer;
    uint64_t settled; /* as the file says */
    usec_t said;      /* monotonic */
};

/* The file */

/* -ENOENT: nobody was ever told anything. */
static int read_state(const struct notifier *n, uint64_t *ret)
{
    _cleanup_(closep) int fd =
        openat(n->d->state_dir, STATE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char text[32] = "";
    long long v;

    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
        return -errno;
    text[strcspn(text, "\n")] = '\0';
    if (str_to_i64(text, &v) < 0 || v < 0)
        return -EBADMSG;
    *ret = (uint64_t)v;
    return 0;
}

/* On a full disk the old one stays; then something may be told once more. */
static void write_state(struct notifier *n, uint64_t seq)
{
    char text[32];
    int r;

    if (seq <= n->settled)
        return;
    n->settled = seq;
    STR_PRINTF(text, "%" PRIu64 "\n", seq);
    r = file_replace(n->d->state_dir, STATE_NAME, text, strlen(text));
    if (r < 0)
        log_warning("%s/" STATE_NAME ": %s", n->d->config->state_dir, strerror(-r));
}

/* Notices */

static const struct job *job_of(const struct notifier *n, const struct event *e)
{
    return model_job(pump_model(n->d->pump), e->job);
}

static void name_job(struct notice *n, const struct job_facts *f)
{
    STR_COPY(n->label, f->label);
    STR_COPY(n->name, f->name);
    STR_COPY(n->user, f->user);
    STR_COPY(n->partition, f->partition);
}

static void rename_job(struct notice *n, const struct look_facts *f)
{
    if (f->label[0])
        STR_COPY(n->label, f->label);
}

static void name_as_known(struct notice *n, const struct job *j)
{
    STR_COPY(n->label, j->sched.label);
    STR_COPY(n->name, j->sched.name);
    STR_COPY(n->user, j->sched.user);
    STR_COPY(n->partition, j->sched.partition);
}

static void take_incident(struct notice *n, const struct incident *i)
{
    n->class = i->class;
    n->cause = i->cause;
    STR_COPY(n->summary, i->summary);
    STR_COPY(n->path, i->n_evidence > 0 ? incident_path(i, &i->evidence[0]) : "");
    n->line = i->n_evidence > 0 ? i->evidence[0].line : 0;
}

static bool is_told(const struct notifier *n, const struct event *e)
{
    if (e->kind == EVENT_OPERATOR)
        return e->request.request == REQUEST_FREEZE || e->request.request == REQUEST_THAW;
    if (e->kind == EVENT_NODE_VERDICT)
        return pump_model(n->d->pump)->nodes.terms.mode >= n->d->config->webhook.mode &&
               (e->node_verdict.isolation >= ISOLATION_DRAIN || !e->node_verdict.node[0]);
    return e->kind == EVENT_DECISION && e->decision.mode >= n->d->config->webhook.mode &&
           (action_restarts(e->decision.action) || e->decision.action == ACTION_STOP);
}

/* Whether it waits for somebody, or has waited in vain. */
static void take_proposal(const struct notifier *n, const struct event *e, struct notice *ret)
{
    const struct model *m = pump_model(n->d->pump);
    const struct job *j = job_of(n, e);
    bool stands = j && j->sched.decision == e->seq;

    if (stands && view_proposal(m, j, pump_now(n->d->pump)) == PROPOSAL_OPEN)
        ret->proposal_life = m->brakes.proposal_life;
    else
        ret->lapsed = e->decision.mode == MODE_PROPOSE && action_restarts(e->decision.action) &&
                      !(stands && j->sched.approved);
}

static void take_decision(const struct notifier *n, const struct event *e, struct notice *ret)
{
    const struct decision_facts *d = &e->decision;

    STR_COPY(ret->job, e->job);
    ret->attempt = e->attempt;
    ret->action = d->action;
    ret->mode = d->mode;
    STR_COPY(ret->rule, d->rule);
    STR_COPY(ret->why, d->why);
    take_proposal(n, e, ret);
    ret->n_nodes = d->n_nodes < NOTICE_NODES_MAX ? d->n_nodes : NOTICE_NODES_MAX;
    for (uint32_t i = 0; i < ret->n_nodes; i++)
        STR_COPY(ret->nodes[i], d->nodes[i]);
}

static void take_request(const struct event *e, struct notice *ret)
{
    ret->kind = NOTICE_REQUEST;
    ret->request = e->request.request;
    STR_COPY(ret->who, e->request.who);
    STR_COPY(ret->why, e->request.why);
}

static void take_node(const struct notifier *n, const struct event *e, struct notice *ret)
{
    const struct node_verdict *v = &e->node_verdict;

    ret->kind = NOTICE_NODE;
    ret->mode = pump_model(n->d->pump)->nodes.terms.mode;
    ret->cause = v->cause;
    ret->n_nodes = v->node[0] != '\0';
    STR_COPY(ret->nodes[0], v->node);
    STR_COPY(ret->rule, v->rule);
    STR_COPY(ret->why, v->why);
}

static void start_notice(const struct notifier *n, const struct event *e, struct notice *ret)
{
    *ret = (struct notice){.kind = NOTICE_DECISION, .seq = e->seq, .at = e->time_us};
    if (e->kind == EVENT_OPERATOR)
        take_request(e, ret);
    else if (e->kind == EVENT_NODE_VERDICT)
        take_node(n, e, ret);
    else
        take_decision(n, e, ret);
}

/* What the state knows of the job; false where it knows another attempt, or none. */
static bool complete_from_model(const struct notifier *n, struct notice *ret)
{
    const struct job *j = model_job(pump_model(n->d->pump), ret->job);

    if (!j || j->attempt.number != ret->attempt || j->state < JOB_JUDGED)
        return false;
    name_as_known(ret, j);
    take_incident(ret, &j->attempt.incident);
    return true;
}

/* ... and what the journal does. */
static void complete_from_journal(const struct notifier *n, struct notice *ret)
{
    static const enum event_kind kinds[] = {EVENT_JOB_SEEN, EVENT_LOOK, EVENT_VERDICT};
    _cleanup_(freep) struct event *event = xnew(struct event);

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct journal_choice c = {.job = ret->job,
                                   .kinds = UINT64_C(1) << kinds[i],
                                   .below = ret->seq,
                                   .newest_first = true};
        _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;

        if (journal_select(n->d->journal, &c, &cursor, NULL) < 0 ||
            journal_next(cursor, event, NULL) <= 0)
            continue;
        if (kinds[i] == EVENT_JOB_SEEN)
            name_job(ret, &event->seen);
        else if (kinds[i] == EVENT_LOOK)
            rename_job(ret, &event->look);
        else
            take_incident(ret, &event->incident);
    }
}

/* What failed */

/* The newest intent of that kind for the job, of those below a number (0 = of all). */
static bool find_intent(const struct notifier *n, const char *job, enum intent kind, uint64_t below,
                        struct event *ret)
{
    struct journal_choice c = {
        .job = job, .kinds = UINT64_C(1) << EVENT_INTENT, .below = below, .newest_first = true};
    _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;

    if (journal_select(n->d->journal, &c, &cursor, NULL) < 0)
        return false;
    while (journal_next(cursor, ret, NULL) > 0)
        if (ret->intended.intent == kind)
            return true;
    return false;
}

/* It was to be restarted, nobody had to be asked first, and its scheduler has forgotten it. */
static bool restart_failed(const struct notifier *n, const struct job *j, const struct event *e,
                           struct notice *ret)
{
    const struct sched *s = &j->sched;
    const struct decision_facts *d = &j->attempt.decision;
    bool act = d->mode == MODE_ACT && s->mode == MODE_ACT && !s->over && !s->succeeded;

    if (e->ended.action != ACTION_STOP || j->attempt.number != e->attempt ||
        !action_restarts(d->action) || !(act || s->approved) || s->rejected)
        return false;
    ret->failed = INTENT_REQUEUE;
    if (s->look.restarts > s->base_restarts) { /* seen to wait again, and what came then was not */
        ret->failed = INTENT_START;
        STR_COPY(ret->why, "it was queued again, but the scheduler does not know it any more");
        return true;
    }
    STR_PRINTF(ret->why, "the scheduler does not know it any more%s",
               pump_model(n->d->pump)->frozen ? ", and all actions are frozen" : "");
    return true;
}

/* Nodes that were to be kept out of it are let in again. */
static bool nodes_failed(const struct notifier *n, const struct job *j, const struct event *e,
                         struct notice *ret)
{
    _cleanup_(freep) struct event *before = xnew(struct event);
    const struct intent_facts *f = &before->intended;

    if (e->intended.intent != INTENT_AMEND || e->intended.n_nodes > 0 || j->sched.n_kept == 0 ||
        j->sched.unwatched || /* somebody wants that */
        !find_intent(n, e->job, INTENT_AMEND, e->seq, before) || before->attempt != e->attempt ||
        f->n_nodes == 0)
        return false;
    ret->failed = INTENT_AMEND;
    ret->n_nodes = f->n_nodes < NOTICE_NODES_MAX ? f->n_nodes : NOTICE_NODES_MAX;
    for (uint32_t i = 0; i < ret->n_nodes; i++)
        STR_COPY(ret->nodes[i], f->nodes[i]);
    STR_COPY(ret->why,
             "the scheduler does not take that, or has too few other nodes for it: it may run "
             "there again");
    return true;
}

/* The last try to end it, or the only one to hold it. */
static bool end_failed(const struct notifier *n, const struct job *j, const struct event *e,
                       struct notice *ret)
{
    static const enum intent ends[] = {INTENT_CANCEL, INTENT_HOLD};
    _cleanup_(freep) struct event *asked = xnew(struct event);
    enum outcome outcome = e->result.outcome;

    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        bool hold = ends[i] == INTENT_HOLD;

        if (outcome != OUTCOME_FAILED && (hold || outcome != OUTCOME_UNKNOWN))
            continue;
        if ((!hold && j->sched.cancels < WISH_TRIES) ||
            !find_intent(n, e->job, ends[i], 0, asked) || asked->seq != e->result.intent)
            continue;
        ret->failed = ends[i];
        STR_COPY(ret->why, e->result.detail);
        return true;
    }
    return false;
}

static bool find_failure(const struct notifier *n, const struct event *e, struct notice *ret)
{
    bool (*const failed)(const struct notifier *, const struct job *, const struct event *,
                         struct notice *) = e->kind == EVENT_JOB_ENDED ? restart_failed
                                            : e->kind == EVENT_INTENT  ? nodes_failed
                                            : e->kind == EVENT_RESULT  ? end_failed
                                                                       : NULL;
    const struct job *j = failed ? job_of(n, e) : NULL;

    if (!j || !j->scheduled)
        return false;
    *ret = (struct notice){.kind = NOTICE_FAILURE, .seq = e->seq, .at = e->time_us};
    STR_COPY(ret->job, e->job);
    ret->attempt = e->attempt;
    name_as_known(ret, j);
    return failed(n, j, e, ret);
}

void notifier_happened(struct notifier *n, const struct event *e)
{
    struct notice notice;

    if (!n->webhook)
        return;
    if (is_told(n, e)) {
        start_notice(n, e, &notice);
        if (notice.kind == NOTICE_DECISION)
            complete_from_model(n, &notice);
    } else if (!find_failure(n, e, &notice)) {
        return;
    }
    webhook_add(n->webhook, &notice);
}

/* Once, at the start: what people were not told before. */
static void catch_up(struct notifier *n)
{
    static const enum event_kind kinds[] = {EVENT_DECISION, EVENT_OPERATOR,  EVENT_INTENT,
                                            EVENT_RESULT,   EVENT_JOB_ENDED, EVENT_NODE_VERDICT};
    struct journal_choice c = {.after = n->settled};
    _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;
    _cleanup_(freep) struct event *event = xnew(struct event);
    usec_t since = pump_now(n->d->pump) - NEWS_FOR;
    struct err e = {0};
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        c.kinds |= UINT64_C(1) << kinds[i];
    r = journal_select(n->d->journal, &c, &cursor, &e);
    while (r >= 0 && (r = journal_next(cursor, event, &e)) > 0) {
        struct notice notice;

        if (event->time_us < since)
            continue;
        if (is_told(n, event)) {
            start_notice(n, event, &notice);
            if (notice.kind == NOTICE_DECISION)
                complete_from_journal(n, &notice);
        } else if (!find_failure(n, event, &notice)) {
            continue;
        }
        webhook_add(n->webhook, &notice);
    }
    if (r < 0)
        log_warning("what was not told before cannot be found: %s", e.text);
}

/* The webhook */

static void on_settled(void *ctx, uint64_t seq)
{
    write_state(ctx, seq);
}

static void on_trouble(void *ctx, const char *why)
{
    struct notifier *n = ctx;
    usec_t now = mono_us();

    if (!why)
        log_info("the webhook works again");
    else if (now - n->said >= SAY_EVERY)
        log_warning("the webhook: %s", why);
    n->said = why ? now : -SAY_EVERY;
}

static const char *on_cluster(void *ctx)
{
    const struct notifier *n = ctx;
    const char *said = n->d->config->cluster;

    return said[0] ? said : sched_watch_cluster(n->d->sched);
}

static const struct webhook_handlers handlers = {
    .settled = on_settled, .trouble = on_trouble, .cluster = on_cluster};

static void begin(struct notifier *n, const struct webhook_config *c)
{
    uint64_t last = pump_model(n->d->pump)->seq;
    int r = read_state(n, &n->settled);

    if (r < 0 && r != -ENOENT)
        log_warning("%s/" STATE_NAME ": %s; what was decided before is not told",
                    n->d->config->state_dir, strerror(-r));
    if (r < 0 || n->settled > last)
        n->settled = 0;
    n->webhook = webhook_new(n->d->event, c, &handlers, n);
    if (!n->webhook)
        log_error("the webhook: the event loop takes nothing more");
    else if (n->settled == 0)
        write_state(n, last > 0 ? last : 1);
    else
        catch_up(n);
}

void notifier_reload(struct notifier *n)
{
    const struct daemon_config *c = n->d->config;
    struct webhook_config config = {.program = n->program,
                                    .url = c->webhook.url,
                                    .token_file = c->webhook.token_file,
                                    .ca_cert = c->webhook.ca_cert};

    if (!c->webhook.url[0])
        n->webhook = webhook_free(n->webhook);
    else if (n->webhook)
        webhook_configure(n->webhook, &config);
    else
        begin(n, &config);
}

static void note_nothing(struct notifier *n)
{
    if (n->webhook && webhook_is_idle(n->webhook))
        write_state(n, pump_model(n->d->pump)->seq);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *ctx)
{
    struct notifier *n = ctx;

    note_nothing(n);
    timer_arm(n->timer, mono_us() + NOTE_EVERY);
    return 0;
}

bool notifier_counts(const struct notifier *n, struct webhook_counts *ret)
{
    *ret = (struct webhook_counts){0};
    if (n->webhook)
        webhook_counts(n->webhook, ret);
    return n->webhook != NULL;
}

struct notifier *notifier_new(struct daemon *d)
{
    struct notifier *n = xnew(struct notifier);

    n->d = d;
    n->said = -SAY_EVERY;
    STR_PRINTF(n->program, "%s/reknit-post", d->programs);
    if (timer_new(d->event, on_timer, n, &n->timer) < 0)
        return notifier_free(n);
    timer_arm(n->timer, mono_us() + NOTE_EVERY);
    notifier_reload(n);
    return n;
}

struct notifier *notifier_free(struct notifier *n)
{
    if (!n)
        return NULL;
    note_nothing(n);
    webhook_free(n->webhook);
    sd_event_source_disable_unref(n->timer);
    free(n);
    return NULL;
}
