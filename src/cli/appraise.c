/* SPDX-License-Identifier: Apache-2.0 */

/* A case is the last decision about one attempt, if that was to restart or to stop. The events
 * after it are looked through for what became of it; the first thing that people do settles it,
 * with two exceptions: a cancel is overtaken by a new job of that name (the user brought it back by
 * hand), and what Reknit carried out by a cancel at once.
 *
 * What cannot be told apart is not counted: the scheduler queues a job again by itself when a node
 * fails or a higher priority needs its nodes, and then nobody was asked. Nor is seen who submits a
 * job again under another name. A stop that is followed by a new submission says nothing, as the
 * program may have been mended meanwhile, unless the same failure comes again: then another try was
 * pointless indeed. */

#include "cli/appraise.h"

#include "base/str.h"

#include <assert.h>
#include <stdlib.h>

static const char *const aftermath_names[AFTER_MAX] = {
    [AFTER_OPEN] = "open",           [AFTER_LEFT] = "left",
    [AFTER_REQUEUED] = "requeued",   [AFTER_RESUBMITTED] = "resubmitted",
    [AFTER_CANCELLED] = "cancelled", [AFTER_APPROVED] = "approved",
    [AFTER_REJECTED] = "rejected",   [AFTER_GONE_ON] = "gone-on",
    [AFTER_UNDONE] = "undone",       [AFTER_SLURM] = "requeued-by-scheduler",
    [AFTER_DONE] = "done",
};
DEFINE_NAMES(aftermath, enum aftermath, aftermath_names);

static const char *const agreement_names[AGREEMENT_MAX] = {
    [AGREEMENT_NONE] = "unknown",
    [AGREEMENT_YES] = "yes",
    [AGREEMENT_NO] = "no",
};
DEFINE_NAMES(agreement, enum agreement, agreement_names);

struct appraise_job {
    char job[JOB_NAME_LEN];
    struct appraise_names names;
    enum sched_state state; /* that it was last seen in */
    uint32_t restarts;      /* the last time */
    enum sched_state left;  /* that it was in before it was queued again last */
    uint32_t lost;          /* the last attempt of which a node was lost while it ran; 0 = none */
    enum incident_class class; /* the last verdict about it */
    enum cause cause;
    char fingerprint[17];
    uint32_t n_blamed;
    char blamed[APPRAISE_NODES_MAX][NODE_NAME_LEN]; /* by that verdict */
    size_t last;                                    /* number of its latest case + 1; 0 = none */
};

void appraise_done(struct appraise *a)
{
    VEC_FOREACH (&a->jobs, j)
        free(*j);
    VEC_DONE(&a->jobs);
    VEC_DONE(&a->cases);
    VEC_DONE(&a->words);
}

/* Jobs */

static size_t position(const struct appraise *a, const char *name)
{
    return VEC_BISECT(&a->jobs, j, strcmp((*j)->job, name) < 0);
}

static struct appraise_job *job_of(struct appraise *a, const char *name)
{
    size_t i = position(a, name);
    struct appraise_job *j;

    if (i < a->jobs.n && streq(a->jobs.v[i]->job, name))
        return a->jobs.v[i];
    j = xnew(struct appraise_job);
    STR_COPY(j->job, name);
    *VEC_INSERT(&a->jobs, i) = j;
    return j;
}

bool appraise_knows(const struct appraise *a, const char *job)
{
    size_t i = position(a, job);

    return i < a->jobs.n && streq(a->jobs.v[i]->job, job) && a->jobs.v[i]->names.known;
}

/* The latest case of the job; NULL = none. */
static struct appraisal *case_of(struct appraise *a, const char *name)
{
    size_t last = job_of(a, name)->last;

    return last > 0 ? &a->cases.v[last - 1] : NULL;
}

static void settle(struct appraisal *c, enum aftermath after, usec_t at)
{
    c->after = after;
    c->after_at = at;
}

/* Cases */

static bool is_blamed(const struct appraise_job *j, const char *node)
{
    for (uint32_t i = 0; i < j->n_blamed; i++)
        if (streq(j->blamed[i], node))
            return true;
    return false;
}

/* A decision lists those, too, that an earlier one keeps out still. */
static void copy_nodes(struct appraisal *c, const struct appraise_job *j,
                       const struct decision_facts *d)
{
    for (uint32_t i = 0; i < d->n_nodes && c->n_nodes < APPRAISE_NODES_MAX; i++)
        if (is_blamed(j, d->nodes[i]))
            STR_COPY(c->nodes[c->n_nodes++], d->nodes[i]);
}

static bool is_compared(enum action action)
{
    return action_restarts(action) || action == ACTION_STOP;
}

/* A later decision about the same attempt takes the place of the one before. */
static struct appraisal *place_for(struct appraise *a, struct appraise_job *j, uint32_t attempt)
{
    if (j->last > 0 && a->cases.v[j->last - 1].attempt == attempt)
        return &a->cases.v[j->last - 1];
    if (a->cases.n >= APPRAISE_CASES_MAX) {
        a->dropped++;
        return NULL;
    }
    VEC_PUSH(&a->cases);
    j->last = a->cases.n;
    return &a->cases.v[a->cases.n - 1];
}

static void take_decision(struct appraise *a, const struct event *e)
{
    struct appraise_job *j = job_of(a, e->job);
    struct appraisal *c;

    if (!is_compared(e->decision.action))
        return;
    c = place_for(a, j, e->attempt);
    if (!c)
        return;
    *c = (struct appraisal){.attempt = e->attempt,
                            .decision = e->seq,
                            .at = e->time_us,
                            .action = e->decision.action,
                            .mode = e->decision.mode,
                            .class = j->class,
                            .cause = j->cause,
                            .names = j->names,
                            .ended = sched_has_ended(j->state)};
    STR_COPY(c->job, e->job);
    STR_COPY(c->rule, e->decision.rule);
    STR_COPY(c->fingerprint, j->fingerprint);
    copy_nodes(c, j, &e->decision);
}

static void take_verdict(struct appraise *a, const struct event *e)
{
    struct appraise_job *j = job_of(a, e->job);

    j->class = e->incident.class;
    j->cause = e->incident.cause;
    STR_COPY(j->fingerprint, e->incident.fingerprint);
    j->n_blamed = 0;
    for (uint32_t i = 0; i < e->incident.culprits.n_nodes && i < APPRAISE_NODES_MAX; i++)
        STR_COPY(j->blamed[j->n_blamed++], e->incident.culprits.nodes[i]);
}

/* What Reknit did itself */

static void take_intent(struct appraise *a, const struct event *e)
{
    struct appraisal *c = case_of(a, e->job);
    bool ends = c && c->action == ACTION_STOP && e->intended.intent == INTENT_CANCEL;

    if (!c || c->attempt != e->attempt || (e->intended.intent != INTENT_REQUEUE && !ends))
        return;
    c->requeue = e->seq;
    c->requeue_failed = false;
}

static bool is_open(const struct appraisal *c)
{
    return c->after == AFTER_OPEN;
}

/* Slurm ends and queues again in one moment, which nobody sees: between two looks, the job ran and
 * waits. Then what it met tells; a person who was as quick as that is taken for the scheduler. */
static bool scheduler_requeued(const struct appraise_job *j, const struct appraisal *c)
{
    if (j->left == SCHED_NODE_FAIL || j->left == SCHED_PREEMPTED || j->left == SCHED_BOOT_FAIL)
        return true;
    return !sched_has_ended(j->left) && (c->cause == CAUSE_NODE_FAILURE ||
                                         c->cause == CAUSE_PREEMPTION || j->lost == c->attempt);
}

static void take_result(struct appraise *a, const struct event *e)
{
    struct appraisal *c = case_of(a, e->job);

    if (!c || c->requeue == 0 || c->requeue != e->result.intent)
        return;
    if (e->result.outcome == OUTCOME_DONE) {
        if (is_open(c))
            settle(c, AFTER_DONE, e->time_us);
        return;
    }
    c->requeue_failed = e->result.outcome != OUTCOME_UNKNOWN;
    if (c->requeue_failed && c->came_back && is_open(c))
        settle(c, scheduler_requeued(job_of(a, e->job), c) ? AFTER_SLURM : AFTER_REQUEUED,
               e->time_us);
}

/* What others did */

/* That may be seen before the attempt is judged. */
static void note_restart(struct appraise_job *j, uint32_t restarts)
{
    if (restarts <= j->restarts)
        return;
    j->left = j->state;
    j->restarts = restarts;
}

/* The attempt after the one that was decided about exists: by whose doing? */
static void came_back(const struct appraise_job *j, struct appraisal *c, usec_t at)
{
    if (c->came_back)
        return;
    c->came_back = true;
    if (!is_open(c) || (c->requeue != 0 && !c->requeue_failed))
        return;
    settle(c, scheduler_requeued(j, c) ? AFTER_SLURM : AFTER_REQUEUED, at);
}

static void was_cancelled(struct appraisal *c, uint32_t attempt, usec_t at)
{
    bool ours = c->action == ACTION_STOP && c->requeue != 0 && !c->requeue_failed;

    if (is_open(c) && !ours)
        settle(c, AFTER_CANCELLED, at);
    else if (c->after == AFTER_DONE && attempt > c->attempt && at - c->after_at < APPRAISE_UNDO)
        settle(c, AFTER_UNDONE, at);
}

static void take_look(struct appraise *a, const struct event *e)
{
    struct appraise_job *j = job_of(a, e->job);
    struct appraisal *c = case_of(a, e->job);
    enum sched_state before = j->state;
    const struct look_facts *l = &e->look;

    if (l->label[0])
        STR_COPY(j->names.label, l->label);
    note_restart(j, l->restarts);
    if (l->state == SCHED_RUNNING && l->lost_node[0])
        j->lost = l->restarts + 1;
    j->state = l->state;
    if (!c)
        return;
    if (l->state != SCHED_FORGOTTEN && l->restarts >= c->attempt) {
        came_back(j, c, e->time_us);
        if (l->state == SCHED_CANCELLED)
            was_cancelled(c, l->restarts + 1, e->time_us);
        return;
    }
    c->ended |= sched_has_ended(l->state);
    if (l->state == SCHED_CANCELLED && before != SCHED_CANCELLED)
        was_cancelled(c, c->attempt, e->time_us);
    else if (l->state == SCHED_COMPLETED && before != SCHED_COMPLETED && is_open(c))
        settle(c, AFTER_GONE_ON, e->time_us);
}

static void take_start(struct appraise *a, const struct event *e)
{
    struct appraise_job *j = job_of(a, e->job);
    struct appraisal *c = case_of(a, e->job);

    note_restart(j, e->attempt - 1);
    if (c && e->attempt > c->attempt)
        came_back(j, c, e->time_us);
}

static void take_finding(struct appraise *a, const struct event *e)
{
    struct appraisal *c = case_of(a, e->job);

    if (c && is_open(c) && e->attempt == c->attempt && e->finding.finding == FINDING_RECOVERED)
        settle(c, AFTER_GONE_ON, e->time_us);
}

static void take_request(struct appraise *a, const struct event *e)
{
    struct appraisal *c = e->job[0] ? case_of(a, e->job) : NULL;
    bool yes = e->request.request == REQUEST_APPROVE;

    if (!c || e->request.of != c->decision || (!yes && e->request.request != REQUEST_REJECT))
        return;
    settle(c, yes ? AFTER_APPROVED : AFTER_REJECTED, e->time_us);
    STR_COPY(c->who, e->request.who);
}

/* Submitted again */

/* "25_3" and "25_4" are of one array, "25+0" and "25+1" of one job. */
static bool is_sibling(const char *a, const char *b)
{
    size_t n = strcspn(a, "_+"), m = strcspn(b, "_+");

    return n == m && strncmp(a, b, n) == 0;
}

static bool is_same_work(const struct appraise_names *a, const struct job_facts *b)
{
    return a->name[0] && streq(a->name, b->name) && a->uid == b->uid && streq(a->user, b->user) &&
           !is_sibling(a->label, b->label);
}

static bool is_again(const struct appraisal *c, const struct job_facts *f)
{
    return c->ended && !c->came_back && (is_open(c) || c->after == AFTER_CANCELLED) &&
           is_same_work(&c->names, f);
}

/* One new job brings back one old one, the latest. */
static void find_predecessor(struct appraise *a, const struct event *e)
{
    for (size_t i = a->cases.n; i-- > 0;) {
        struct appraisal *c = &a->cases.v[i];

        if (e->time_us - c->at >= APPRAISE_PATIENCE)
            return;
        if (!is_again(c, &e->seen))
            continue;
        settle(c, AFTER_RESUBMITTED, e->time_us);
        STR_COPY(c->as, e->job);
        return;
    }
}

static void take_seen(struct appraise *a, const struct event *e)
{
    struct appraise_names *n = &job_of(a, e->job)->names;

    if (n->known)
        return;
    n->known = true;
    n->uid = e->seen.uid;
    STR_COPY(n->label, e->seen.label);
    STR_COPY(n->name, e->seen.name);
    STR_COPY(n->user, e->seen.user);
    STR_COPY(n->partition, e->seen.partition);
    if (!e->seen.interactive)
        find_predecessor(a, e);
}

void appraise_add(struct appraise *a, const struct event *e)
{
    static void (*const take[EVENT_MAX])(struct appraise *, const struct event *) = {
        [EVENT_JOB_SEEN] = take_seen,    [EVENT_ATTEMPT_STARTED] = take_start,
        [EVENT_LOOK] = take_look,        [EVENT_FINDING] = take_finding,
        [EVENT_VERDICT] = take_verdict,  [EVENT_DECISION] = take_decision,
        [EVENT_INTENT] = take_intent,    [EVENT_RESULT] = take_result,
        [EVENT_OPERATOR] = take_request,
    };

    if (take[e->kind])
        take[e->kind](a, e);
}

/* Nodes */

/* Not what the scheduler notes down by itself, as whoever it runs as. */
static bool is_of_people(const struct appraise_word *w)
{
    static const char *const others[] = {
        "reknit:",
        "Not responding",
        "Node unexpectedly rebooted",
        "Low ",
        "Kill task failed",
        "Prolog error",
        "Epilog error",
        "Duplicate jobid",
        "gres/",
        "batch job complete failure",
    };

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        if (str_startswith(w->reason, others[i]))
            return false;
    return w->reason[0] && w->who[0] && w->at > 0;
}

void appraise_add_word(struct appraise *a, const struct appraise_word *w)
{
    if (!is_of_people(w))
        return;
    *VEC_PUSH(&a->words) = *w; /* one for each node that was asked for */
    VEC_FOREACH (&a->cases, c)
        for (uint32_t i = 0; i < c->n_nodes; i++)
            if (streq(c->nodes[i], w->node) && w->at >= c->at - APPRAISE_NODE_LEAD &&
                w->at < c->at + APPRAISE_PATIENCE)
                c->taken_out[i] = (uint32_t)a->words.n;
}

/* The end */

static bool failed_alike(struct appraise *a, const struct appraisal *c)
{
    const struct appraise_job *next = job_of(a, c->as);

    return c->fingerprint[0] && streq(c->fingerprint, next->fingerprint);
}

static enum agreement judge_restart(enum aftermath after)
{
    switch (after) {
    case AFTER_REQUEUED:
    case AFTER_RESUBMITTED:
    case AFTER_APPROVED:
        return AGREEMENT_YES;
    case AFTER_LEFT:
    case AFTER_CANCELLED:
    case AFTER_REJECTED:
    case AFTER_GONE_ON:
    case AFTER_UNDONE:
        return AGREEMENT_NO;
    default:
        return AGREEMENT_NONE;
    }
}

static enum agreement judge_stop(struct appraise *a, const struct appraisal *c)
{
    switch (c->after) {
    case AFTER_LEFT:
    case AFTER_CANCELLED:
    case AFTER_APPROVED:
        return AGREEMENT_YES;
    case AFTER_REQUEUED:
    case AFTER_REJECTED:
    case AFTER_GONE_ON:
        return AGREEMENT_NO;
    case AFTER_RESUBMITTED:
        return failed_alike(a, c) ? AGREEMENT_YES : AGREEMENT_NONE;
    default:
        return AGREEMENT_NONE;
    }
}

void appraise_end(struct appraise *a, usec_t now)
{
    VEC_FOREACH (&a->cases, c) {
        if (is_open(c) && now - c->at >= APPRAISE_PATIENCE)
            c->after = AFTER_LEFT;
        c->agreement = c->action == ACTION_STOP ? judge_stop(a, c) : judge_restart(c->after);
    }
}

/* Counts */

const char *appraise_by_cause(const struct appraisal *c)
{
    return cause_name(c->cause);
}

const char *appraise_by_rule(const struct appraisal *c)
{
    return c->rule;
}

const char *appraise_by_partition(const struct appraisal *c)
{
    return c->names.partition;
}

const char *appraise_by_nothing(const struct appraisal *c)
{
    return "all";
}

int appraise_rate(const struct appraise_tally *t)
{
    uint32_t known = t->agreed + t->differed;

    return known > 0 ? (int)((100 * (uint64_t)t->agreed + known / 2) / known) : -1;
}

static void count(struct appraise_tally *t, const struct appraisal *c)
{
    t->decisions++;
    t->agreed += c->agreement == AGREEMENT_YES;
    t->differed += c->agreement == AGREEMENT_NO;
    t->done += c->agreement == AGREEMENT_NONE && c->after == AFTER_DONE;
    t->unknown += c->agreement == AGREEMENT_NONE && c->after != AFTER_DONE;
}

static int by_number(const void *x, const void *y)
{
    const struct appraise_tally *a = x, *b = y;

    if (a->decisions != b->decisions)
        return a->decisions > b->decisions ? -1 : 1;
    return strcmp(a->word, b->word);
}

size_t appraise_count(const struct appraise *a, appraise_key_fn key, struct appraise_tally **ret)
{
    VEC(struct appraise_tally) tallies = {0};

    VEC_FOREACH (&a->cases, c) {
        const char *word = key(c) && key(c)[0] ? key(c) : "-";
        struct appraise_tally *t = NULL;

        VEC_FOREACH (&tallies, x)
            if (streq(x->word, word))
                t = x;
        if (!t) {
            t = VEC_PUSH(&tallies); /* causes, rules and partitions are few */
            STR_COPY(t->word, word);
        }
        count(t, c);
    }
    if (tallies.n > 0)
        qsort(tallies.v, tallies.n, sizeof(tallies.v[0]), by_number);
    *ret = tallies.v;
    return tallies.n;
}
