/* SPDX-License-Identifier: Apache-2.0 */

/* The scheduler is asked for what has changed, every few seconds, and sooner when something is
 * under way; but never for more than a tenth of the time. Every record that differs is translated
 * into events. A record may have to wait until core can take what it says (a verdict is still being
 * judged), so the records of jobs that are not at rest are translated at every poll.
 *
 * After a start the first answer holds all jobs. Those that core knows from the journal are found
 * again by their number and their submission, and those that are not in it are forgotten. */

#include "daemon/daemon.h"

#include "base/alloc.h"
#include "base/hostlist.h"
#include "base/log.h"
#include "base/str.h"
#include "base/timer.h"
#include "core/model/event_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_SOON   (500 * USEC_PER_MSEC) /* while something is under way */
#define POLL_SHARE  10                    /* the adapter may be busy for one part in so many */
#define CLOCK_EVERY (60 * USEC_PER_SEC)
#define DEADLINE    (15 * USEC_PER_SEC)

struct watched {
    struct sched_job *r;
    char *own_nodes; /* of a heterogeneous job's first part, whose r->nodes are those of all */
    char key[SCHED_KEY_LEN];
    bool ignored;      /* nobody opted it in */
    bool successor;    /* as in struct look_facts; once seen, it stays */
    uint32_t followed; /* the attempt whose logs are read */
    struct job_terms terms;
};

struct sched_watch {
    struct daemon *d;
    VEC(struct watched *) jobs; /* by id */
    json_t *nodes;              /* by name: the adapter's records; NULL = never seen */
    sd_event_source *timer;
    bool nodes_changed;
    bool asking, full; /* full: all jobs were seen since the adapter started */
    usec_t asked_at, took, clock_at;
    usec_t pressing_until;   /* monotonic: look often until then */
    int64_t clock_ahead;     /* seconds, of the scheduler's clock before ours */
    bool failing;            /* said so */
    uint64_t past;           /* seq of the last intent of before this process began */
    VEC(struct event) early; /* intents that came before the first look at all jobs */
    char trouble[256];       /* "" = it answers */
    char cluster[64];
    usec_t looked_at; /* of the pump's clock; 0 = never */
    uint64_t errors;
};

/* The table */

static size_t position(const struct sched_watch *w, uint32_t id)
{
    size_t lo = 0, hi = w->jobs.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (w->jobs.v[mid]->r->id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct watched *find(const struct sched_watch *w, uint32_t id)
{
    size_t i = position(w, id);

    return i < w->jobs.n && w->jobs.v[i]->r->id == id ? w->jobs.v[i] : NULL;
}

static struct watched *find_key(const struct sched_watch *w, const char *key)
{
    struct watched *x = find(w, (uint32_t)strtoul(key, NULL, 10));

    return x && streq(x->key, key) ? x : NULL;
}

static void watched_free(struct watched *x)
{
    sched_job_free(x->r);
    free(x->own_nodes);
    free(x);
}

static void drop(struct sched_watch *w, uint32_t id)
{
    size_t i = position(w, id);

    if (i < w->jobs.n && w->jobs.v[i]->r->id == id) {
        watched_free(w->jobs.v[i]);
        VEC_REMOVE(&w->jobs, i);
    }
}

static struct watched *insert(struct sched_watch *w, struct sched_job *r)
{
    struct watched *x = xnew(struct watched);
    size_t i = position(w, r->id);

    x->r = r;
    (void)VEC_PUSH(&w->jobs);
    memmove(&w->jobs.v[i + 1], &w->jobs.v[i], (w->jobs.n - 1 - i) * sizeof(w->jobs.v[0]));
    w->jobs.v[i] = x;
    return x;
}

const struct sched_job *sched_watch_record(const struct sched_watch *w, const char *key)
{
    const struct watched *x = find_key(w, key);

    return x ? x->r : NULL;
}

const struct sched_job *sched_watch_find(const struct sched_watch *w, uint32_t id,
                                         const char **ret_key)
{
    const struct watched *x = find(w, id);

    if (!x)
        return NULL;
    *ret_key = x->ignored ? "" : x->key;
    return x->r;
}

const struct job_terms *sched_watch_terms(const struct sched_watch *w, const char *key)
{
    const struct watched *x = find_key(w, key);

    return x ? &x->terms : NULL;
}

/* What core knows from before this process began: the newest job of that number that the record
 * can be a later state of. */
static bool recall_key(const struct sched_watch *w, const struct sched_job *r, char *ret)
{
    const struct model *m = pump_model(w->d->pump);
    char prefix[16];
    const struct job *best = NULL;

    STR_PRINTF(prefix, "%" PRIu32 "-", r->id);
    VEC_FOREACH (&m->jobs, job) {
        const struct job *j = *job;
        const struct look_facts *look = &j->sched.look;

        if (!j->scheduled || strncmp(j->name, prefix, strlen(prefix)) != 0)
            continue;
        if (sched_job_may_follow(r, look->restarts, look->submitted / USEC_PER_SEC))
            best = j;
    }
    if (best)
        str_copy(ret, SCHED_KEY_LEN, best->name);
    return best != NULL;
}

/* Nodes */

static bool has_flag(const json_t *node, const char *flag)
{
    size_t i;
    json_t *v;

    json_array_foreach (json_object_get(node, "flags"), i, v)
        if (streq(json_string_value(v), flag))
            return true;
    return false;
}

static bool is_down(const json_t *node)
{
    const char *state = json_string_value(json_object_get(node, "state"));

    return (state && streq(state, "down")) || has_flag(node, "fail");
}

/* Of the nodes that it runs on, or ran on last. One whose daemon answers does what the scheduler
 * says, though it may be called down. */
static const char *lost_node(const struct sched_watch *w, const struct sched_job *r,
                             const struct job *j)
{
    const char *name, *where = r->state == SCHED_RUNNING || !j ? r->nodes : j->sched.ran_on;
    json_t *node;

    json_object_foreach (w->nodes, name, node)
        if (has_flag(node, "not-responding") && hostlist_has(where, name))
            return name;
    return "";
}

/* Of the nodes of the attempt that core follows: the record may be of the next one already. */
static const char *down_node(const struct sched_watch *w, const struct sched_job *r,
                             const struct job *j)
{
    const char *nodes = j && j->sched.ran_on[0] ? j->sched.ran_on : r->nodes, *name;
    json_t *node;

    json_object_foreach (w->nodes, name, node)
        if (is_down(node) && hostlist_has(nodes, name))
            return name;
    return "";
}

static bool lists(const json_t *array, const char *name)
{
    size_t i;
    json_t *v;

    json_array_foreach (array, i, v)
        if (json_is_string(v) && streq(json_string_value(v), name))
            return true;
    return false;
}

static bool is_without(const struct intent_facts *without, const char *name)
{
    for (uint32_t i = 0; i < without->n_nodes; i++)
        if (streq(without->nodes[i], name))
            return true;
    return false;
}

int sched_watch_usable(const struct sched_watch *w, const struct sched_job *r,
                       const struct intent_facts *without)
{
    const char *name;
    json_t *node;
    int n = 0;

    if (!w->nodes || json_object_size(w->nodes) == 0)
        return -1;
    json_object_foreach (w->nodes, name, node)
        n += json_is_true(json_object_get(node, "usable")) &&
             lists(json_object_get(node, "partitions"), r->partition) && !lists(r->exclude, name) &&
             !is_without(without, name);
    return n;
}

bool sched_watch_has_nodes(const struct sched_watch *w)
{
    return json_object_size(w->nodes) > 0;
}

const char *sched_watch_address(const struct sched_watch *w, const char *node)
{
    return json_string_value(json_object_get(json_object_get(w->nodes, node), "address"));
}

/* Time */

/* Whole seconds, so that records do not seem to change with it. */
int64_t sched_watch_ahead(const struct sched_watch *w)
{
    usec_t pump_behind = now_us() - pump_now(w->d->pump);

    return (pump_behind + USEC_PER_SEC / 2) / USEC_PER_SEC + w->clock_ahead;
}

static void to_pump_time(const struct sched_watch *w, struct sched_job *r)
{
    int64_t ahead = sched_watch_ahead(w);

    if (r->eligible > ahead)
        r->eligible -= ahead;
}

/* Translation */

static void emit(void *ctx, const struct event *e)
{
    struct sched_watch *w = ctx;

    pump_input(w->d->pump, e);
}

/* Core has taken what the record says, and nothing is under way. */
static bool is_at_rest(const struct watched *x, const struct job *j)
{
    if (j->sched.look_due ||
        (x->r->state != SCHED_PENDING && j->attempt.number < x->r->restarts + 1))
        return false;
    return j->state == JOB_ENDED || j->state == JOB_NEW || j->state == JOB_RUNNING ||
           (j->state == JOB_DECIDED && j->sched.mode <= MODE_OBSERVE);
}

static void tell_terms(struct sched_watch *w, struct watched *x)
{
    const struct job *j = model_job(pump_model(w->d->pump), x->key);
    struct event e = {.kind = EVENT_POLICY}, old = {.kind = EVENT_POLICY};
    char where[96];

    STR_COPY(e.job, x->key);
    STR_COPY(old.job, x->key);
    e.policy = x->terms.policy;
    old.policy = j ? *policy_of(pump_model(w->d->pump), j) : e.policy;
    if (event_differs(&old, &e, where)[0] != '\0')
        pump_input(w->d->pump, &e);
    if (j && (j->sched.mode_asked || j->sched.mode == x->terms.mode))
        return;
    e = (struct event){.kind = EVENT_MODE};
    STR_COPY(e.job, x->key);
    e.mode.mode = x->terms.mode;
    STR_COPY(e.mode.why, x->terms.opted_in ? "opted in" : "not opted in");
    pump_input(w->d->pump, &e);
}

/* The scheduler starts and ends all parts of a heterogeneous job as one, which the first stands
 * for. */
static bool is_further_part(const struct sched_job *r)
{
    return r->het_leader != 0 && r->het_leader != r->id;
}

static void set_terms(struct sched_watch *w, struct watched *x)
{
    struct job_labels labels = {.partition = x->r->partition,
                                .account = x->r->account,
                                .qos = x->r->qos,
                                .user = x->r->user,
                                .comment = x->r->comment};

    daemon_config_for_job(w->d->config, &labels, &x->terms);
    x->ignored = x->terms.mode == MODE_OFF || is_further_part(x->r);
}

/* "afterany:25" and "afternotok:25_*" start when job 25 fails, and would run beside it then. */
static bool waits_for_failure(const char *dependency, uint32_t id)
{
    static const char *const kinds[] = {"afterany:", "afternotok:"};
    char number[16];
    size_t n;

    STR_PRINTF(number, "%" PRIu32, id);
    n = strlen(number);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        for (const char *s = dependency; (s = strstr(s, kinds[i])); s++) {
            const char *list = s + strlen(kinds[i]);
            size_t length = strcspn(list, ",?");

            for (const char *p = list; p < list + length; p += strcspn(p, ":") + 1)
                if (strncmp(p, number, n) == 0 && !strchr("0123456789", p[n]))
                    return true;
        }
    return false;
}

static bool succeeds(const struct sched_job *next, const struct sched_job *r)
{
    if (next == r || (next->array_id != 0 && next->array_id == r->array_id) ||
        (next->het_leader != 0 && next->het_leader == r->het_leader))
        return false;
    if (*next->dependency && (waits_for_failure(next->dependency, r->id) ||
                              (r->array_id && waits_for_failure(next->dependency, r->array_id))))
        return true;
    return next->state == SCHED_PENDING && next->uid == r->uid && streq(next->name, r->name) &&
           next->submit >= r->submit && next->restarts == 0;
}

/* Looked for at the end of an attempt, and shortly after its beginning, when those that wait for
 * its failure have not begun. */
static bool has_successor(const struct sched_watch *w, const struct sched_job *r)
{
    VEC_FOREACH (&w->jobs, x)
        if (succeeds((*x)->r, r))
            return true;
    return false;
}

static void follow(struct sched_watch *w, struct watched *x)
{
    const struct job *j = model_job(pump_model(w->d->pump), x->key);

    if ((j->state != JOB_RUNNING && j->state != JOB_ENDING) || x->followed == j->attempt.number)
        return;
    x->followed = j->attempt.number;
    if (w->d->logs)
        log_watch_follow(w->d->logs, x->key, x->followed, x->r, &x->terms);
}

static void translate(struct sched_watch *w, struct watched *x)
{
    const struct model *m = pump_model(w->d->pump);
    struct sched_around around = {.successor = x->successor};

    if (x->ignored)
        return;
    around.down_node = down_node(w, x->r, model_job(m, x->key));
    around.lost_node = lost_node(w, x->r, model_job(m, x->key));
    if (!model_job(m, x->key)) {
        sched_translate(x->r, &around, NULL, x->key, emit, w);
        tell_terms(w, x);
    }
    if (!model_job(m, x->key))
        return;
    sched_translate(x->r, &around, model_job(m, x->key), x->key, emit, w);
    follow(w, x);
}

static void begin(struct sched_watch *w, struct watched *x)
{
    if (!recall_key(w, x->r, x->key))
        sched_job_key(x->r, x->key);
    set_terms(w, x);
    if (!x->ignored && model_job(pump_model(w->d->pump), x->key))
        tell_terms(w, x);
}

static void forget(struct sched_watch *w, struct watched *x)
{
    const struct job *j = model_job(pump_model(w->d->pump), x->key);

    if (j)
        sched_translate_gone(j, emit, w);
    drop(w, x->r->id);
}

/* It runs on the nodes of all its parts. */
static void join_parts(struct sched_watch *w, struct watched *x)
{
    _cleanup_strbuf_ struct strbuf all = {0};

    if (x->r->het_leader != x->r->id)
        return;
    if (!x->own_nodes)
        x->own_nodes = xstrdup(x->r->nodes);
    strbuf_adds(&all, x->own_nodes);
    VEC_FOREACH (&w->jobs, y)
        if (is_further_part((*y)->r) && (*y)->r->het_leader == x->r->id && *(*y)->r->nodes)
            strbuf_addf(&all, "%s%s", all.len > 0 ? "," : "", (*y)->r->nodes);
    free(x->r->nodes);
    x->r->nodes = xstrdup(strbuf_str(&all));
}

void sched_watch_each_part(const struct sched_watch *w, const struct sched_job *r,
                           void (*fn)(void *ctx, const struct sched_job *part), void *ctx)
{
    VEC_FOREACH (&w->jobs, x)
        if (is_further_part((*x)->r) && (*x)->r->het_leader == r->id)
            fn(ctx, (*x)->r);
}

/* Noted while it waits: once it has begun, it does not say any more what it waited for. */
static void note_whom_it_succeeds(struct sched_watch *w, const struct sched_job *r)
{
    if (!strstr(r->dependency, "afterany:") && !strstr(r->dependency, "afternotok:"))
        return;
    VEC_FOREACH (&w->jobs, x)
        (*x)->successor |= !(*x)->ignored && succeeds(r, (*x)->r);
}

static void take_record(struct sched_watch *w, struct sched_job *r)
{
    struct watched *leader = is_further_part(r) ? find(w, r->het_leader) : NULL;
    struct watched *x = find(w, r->id);

    to_pump_time(w, r);
    if (x && !sched_job_is_same(x->r, r)) { /* the number was given away again */
        forget(w, x);
        x = NULL;
    }
    if (!x) {
        x = insert(w, r);
        begin(w, x);
    } else {
        sched_job_free(x->r);
        x->r = r;
        free(x->own_nodes);
        x->own_nodes = NULL;
    }
    join_parts(w, x);
    note_whom_it_succeeds(w, r);
    x->successor |= !x->ignored && r->state != SCHED_PENDING && has_successor(w, r);
    translate(w, x);
    if (leader) {
        join_parts(w, leader);
        translate(w, leader);
    }
}

void sched_watch_take(struct sched_watch *w, const json_t *job)
{
    struct sched_job *r;
    struct err e = {0};

    if (sched_job_parse(job, &r, &e) < 0)
        log_warning("the scheduler's adapter: %s", e.text);
    else
        take_record(w, r);
}

/* Core knows jobs that the scheduler has forgotten while nobody looked. */
static void forget_the_missing(struct sched_watch *w)
{
    const struct model *m = pump_model(w->d->pump);

    VEC_FOREACH (&m->jobs, job)
        if ((*job)->scheduled && (*job)->state != JOB_ENDED && !find_key(w, (*job)->name))
            sched_translate_gone(*job, emit, w);
}

bool sched_watch_defer(struct sched_watch *w, const struct event *intent)
{
    if (!w->full)
        *VEC_PUSH(&w->early) = *intent;
    return !w->full;
}

static void act_on_the_early(struct sched_watch *w)
{
    VEC_FOREACH (&w->early, e)
        act_on_intent(w->d, e);
    VEC_DONE(&w->early);
}

/* An intent of before this process began has no answer. What became of it, the first look showed.
 */
static void settle_the_past(struct sched_watch *w)
{
    const struct model *m = pump_model(w->d->pump);
    VEC(struct event) open = {0};

    VEC_FOREACH (&m->jobs, job)
        VEC_FOREACH (&(*job)->pending, p)
            if (p->seq <= w->past)
                *VEC_PUSH(&open) = *p;
    VEC_FOREACH (&open, p) {
        struct event e = {.kind = EVENT_RESULT, .attempt = p->attempt};

        STR_COPY(e.job, p->job);
        e.result = (struct result_facts){.intent = p->seq, .outcome = OUTCOME_UNKNOWN};
        STR_COPY(e.result.detail, "reknitd was restarted before it was answered");
        pump_input(w->d->pump, &e);
    }
    VEC_DONE(&open);
}

/* Polling */

static bool is_pressing(const struct sched_watch *w)
{
    const struct model *m = pump_model(w->d->pump);

    VEC_FOREACH (&w->jobs, x) {
        const struct job *j = (*x)->ignored ? NULL : model_job(m, (*x)->key);

        if (j && !is_at_rest(*x, j))
            return true;
    }
    return mono_us() < w->pressing_until;
}

static void schedule(struct sched_watch *w)
{
    usec_t every = is_pressing(w) ? POLL_SOON : w->d->config->poll;
    usec_t least = w->took * POLL_SHARE;

    if (every > w->d->config->poll)
        every = w->d->config->poll;
    timer_arm(w->timer, w->asked_at + (every > least ? every : least));
}

/* Records that did not change, but may now be taken, or mean something else. */
static void translate_the_restless(struct sched_watch *w)
{
    const struct model *m = pump_model(w->d->pump);
    bool all = w->nodes_changed;

    w->nodes_changed = false;
    VEC_FOREACH (&w->jobs, x) {
        const struct job *j = (*x)->ignored ? NULL : model_job(m, (*x)->key);

        if (j && (all || !is_at_rest(*x, j)))
            translate(w, *x);
    }
}

static void say_failing(struct sched_watch *w, const char *text)
{
    if (!w->failing)
        log_warning("the scheduler cannot be asked (%s): nothing is done until it can", text);
    w->failing = true;
    w->errors++;
    str_sanitize(w->trouble, sizeof(w->trouble), text, strlen(text));
}

static void on_jobs(void *ctx, enum adapter_outcome outcome, const json_t *answer, const char *text)
{
    struct sched_watch *w = ctx;
    bool full = json_is_true(json_object_get(answer, "full"));
    json_t *v;
    size_t i;

    w->asking = false;
    w->took = outcome == ADAPTER_DONE ? mono_us() - w->asked_at : 0; /* a deadline is no work */
    if (outcome != ADAPTER_DONE) {
        say_failing(w, text);
        timer_arm(w->timer, mono_us() + w->d->config->poll);
        return;
    }
    if (w->failing)
        log_warning("the scheduler can be asked again");
    w->failing = false;
    w->trouble[0] = '\0';
    w->looked_at = pump_now(w->d->pump);
    json_array_foreach (json_object_get(answer, "jobs"), i, v)
        sched_watch_take(w, v);
    json_array_foreach (json_object_get(answer, "gone"), i, v) {
        struct watched *x = find(w, (uint32_t)strtoul(json_string_value(v), NULL, 10));

        if (x)
            forget(w, x);
    }
    translate_the_restless(w);
    if (full && !w->full) {
        forget_the_missing(w);
        settle_the_past(w);
        w->full = true;
        act_on_the_early(w);
        pump_wake(w->d->pump); /* what is true now is known: what was due may follow */
    }
    schedule(w);
}

static void on_nodes(void *ctx, enum adapter_outcome outcome, const json_t *answer,
                     const char *text)
{
    struct sched_watch *w = ctx;
    size_t i;
    json_t *v;

    if (outcome != ADAPTER_DONE)
        return;
    w->nodes_changed |= !json_is_true(json_object_get(answer, "unchanged"));
    if (!w->nodes || json_is_true(json_object_get(answer, "full"))) {
        json_decref(w->nodes);
        w->nodes = json_object();
    }
    json_array_foreach (json_object_get(answer, "nodes"), i, v) {
        const char *name = json_string_value(json_object_get(v, "name"));

        if (name)
            json_object_set(w->nodes, name, v);
    }
    json_array_foreach (json_object_get(answer, "gone"), i, v)
        json_object_del(w->nodes, json_string_value(v));
}

static void on_ping(void *ctx, enum adapter_outcome outcome, const json_t *answer, const char *text)
{
    struct sched_watch *w = ctx;
    json_int_t clock = json_integer_value(json_object_get(answer, "clock"));
    int64_t ahead = clock - now_us() / USEC_PER_SEC;

    if (outcome == ADAPTER_DONE && clock > 0)
        w->clock_ahead = ahead >= -1 && ahead <= 1 ? 0 : ahead; /* it counts whole seconds */
}

static json_t *request(const char *op, bool diff)
{
    return diff ? json_pack("{s:s, s:b}", "op", op, "diff", 1) : json_pack("{s:s}", "op", op);
}

/* Nodes first: what became of a job is understood by what became of its nodes. */
static void look(struct sched_watch *w)
{
    usec_t now = mono_us();

    if (now >= w->clock_at) {
        adapter_ask(w->d->adapter, request("ping", false), DEADLINE, on_ping, w);
        w->clock_at = now + CLOCK_EVERY;
    }
    adapter_ask(w->d->adapter, request("nodes", true), DEADLINE, on_nodes, w);
    w->asking = true;
    w->asked_at = now;
    adapter_ask(w->d->adapter, request("jobs", true), DEADLINE, on_jobs, w);
}

static int on_timer(sd_event_source *s, uint64_t t, void *ctx)
{
    struct sched_watch *w = ctx;

    if (!w->asking)
        look(w);
    return 0;
}

void sched_watch_hello(void *ctx, const json_t *hello)
{
    struct sched_watch *w = ctx;
    const char *cluster = json_string_value(json_object_get(hello, "cluster"));
    const char *version = json_string_value(json_object_get(hello, "version"));

    if (cluster)
        str_sanitize(w->cluster, sizeof(w->cluster), cluster, strlen(cluster));
    log_info("cluster %s, scheduler %s", cluster ? cluster : "?", version ? version : "?");
    w->clock_at = 0;
    sched_watch_poke(w);
}

void sched_watch_down(void *ctx, const char *text)
{
    struct sched_watch *w = ctx;

    log_warning("the scheduler's adapter: %s; it is started again", text);
    w->errors++;
    str_sanitize(w->trouble, sizeof(w->trouble), text, strlen(text));
}

const char *sched_watch_trouble(const struct sched_watch *w)
{
    return w->trouble;
}

const char *sched_watch_cluster(const struct sched_watch *w)
{
    return w->cluster;
}

usec_t sched_watch_looked_at(const struct sched_watch *w)
{
    return w->looked_at;
}

uint64_t sched_watch_errors(const struct sched_watch *w)
{
    return w->errors;
}

void sched_watch_poke(struct sched_watch *w)
{
    w->pressing_until = mono_us() + 5 * USEC_PER_SEC;
    if (!w->asking)
        timer_arm(w->timer, w->asked_at + w->took * POLL_SHARE);
}

void sched_watch_reload(struct sched_watch *w)
{
    VEC_FOREACH (&w->jobs, x) {
        set_terms(w, *x);
        if (!(*x)->ignored && model_job(pump_model(w->d->pump), (*x)->key))
            tell_terms(w, *x);
    }
    sched_watch_poke(w);
}

struct sched_watch *sched_watch_new(struct daemon *d)
{
    struct sched_watch *w = xnew(struct sched_watch);

    w->d = d;
    VEC_FOREACH (&pump_model(d->pump)->jobs, job)
        VEC_FOREACH (&(*job)->pending, p)
            w->past = p->seq > w->past ? p->seq : w->past;
    if (timer_new(d->event, on_timer, w, &w->timer) < 0)
        return sched_watch_free(w);
    return w;
}

struct sched_watch *sched_watch_free(struct sched_watch *w)
{
    if (!w)
        return NULL;
    sd_event_source_disable_unref(w->timer);
    VEC_FOREACH (&w->jobs, x)
        watched_free(*x);
    VEC_DONE(&w->jobs);
    VEC_DONE(&w->early);
    json_decref(w->nodes);
    free(w);
    return NULL;
}
