/* SPDX-License-Identifier: Apache-2.0 */

/* The records of jobs, and what they mean for core. Every record that differs is translated into
 * events. One may have to wait until core can take what it says (a verdict is still being judged),
 * so the records of jobs that are not at rest are translated at every poll; those at rest only
 * when something became of a node of theirs.
 *
 * On which terms a job is watched is looked for anew whenever its record says something else of
 * what they depend on, before anything else that this record says, and when the configuration is
 * read again. Core is told, also that a job is not to be watched any more, and gets its records
 * until it has let go of it.
 *
 * After a start the first answer holds all jobs. Those that core knows from the journal are found
 * again by their number and their submission, and those that are not in it are forgotten. */

#include "daemon/sched.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "core/model/event_fields.h"
#include "source/succession.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESTART_LASTS (5 * USEC_PER_MIN) /* docs/decisions/008 */

/* The table */

static size_t position(const struct sched_watch *w, uint32_t id)
{
    return VEC_BISECT(&w->jobs, x, (*x)->r->id < id);
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

    x->r = r;
    *VEC_INSERT(&w->jobs, position(w, r->id)) = x;
    return x;
}

const struct sched_job *sched_watch_record(const struct sched_watch *w, const char *key)
{
    const struct watched *x = find_key(w, key);

    return x ? x->r : NULL;
}

/* The scheduler starts and ends all parts of a heterogeneous job as one, which the first stands
 * for. */
static bool is_further_part(const struct sched_job *r)
{
    return r->het_leader != 0 && r->het_leader != r->id;
}

/* Of a job that was let go: held or armed by a call that came late, or kept from starting, as it
 * waits again, by the nodes that it was not to have. */
static bool has_remains(const struct sched_watch *w, const struct sched_job *r, const struct job *j)
{
    bool armed =
        r->requeue && sched_lives(r->state) && sched_may_be_armed(pump_model(w->d->pump), j);

    return armed || (r->held && r->noted) ||
           (streq(r->reason_kind, "constraints") && j->sched.n_kept > 0) || j->sched.look_due ||
           j->pending.n > 0;
}

/* Nobody wants it to be watched, and core has let go of it, or never had it. */
static bool is_left_alone(const struct sched_watch *w, const struct watched *x)
{
    const struct job *j;

    if (is_further_part(x->r))
        return true;
    j = model_job(pump_model(w->d->pump), x->key);
    if (!j)
        return x->terms.mode == MODE_OFF;
    return sched_is_let_go(j) && !has_remains(w, x->r, j);
}

const struct sched_job *sched_watch_find(const struct sched_watch *w, uint32_t id,
                                         const char **ret_key)
{
    const struct watched *x = find(w, id);

    if (x && is_further_part(x->r))
        x = find(w, x->r->het_leader);
    if (!x)
        return NULL;
    *ret_key = is_left_alone(w, x) ? "" : x->key;
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
        struct sched_identity known = {.uid = j->sched.uid,
                                       .restarts = j->sched.look.restarts,
                                       .submit = j->sched.look.submitted / USEC_PER_SEC};

        STR_COPY(known.name, j->sched.name);
        if (!j->scheduled || strncmp(j->name, prefix, strlen(prefix)) != 0)
            continue;
        if (sched_job_may_follow(r, &known))
            best = j;
    }
    if (best)
        str_copy(ret, SCHED_KEY_LEN, best->name);
    return best != NULL;
}

/* Nodes */

/* Of the nodes that it runs on, or ran on last. One whose daemon answers does what the scheduler
 * says, though it may be called down. */
static const char *runs_on(const struct sched_job *r, const struct job *j)
{
    return r->state == SCHED_RUNNING || !j ? r->nodes : j->sched.ran_on;
}

/* Of the attempt that core follows: the record may be of the next one already. */
static const char *ran_on(const struct sched_job *r, const struct job *j)
{
    return j && j->sched.ran_on[0] ? j->sched.ran_on : r->nodes;
}

static bool has_news_of_nodes(const struct sched_watch *w, const struct sched_job *r,
                              const struct job *j)
{
    return sched_nodes_news_of(w->nodes, runs_on(r, j)) ||
           sched_nodes_news_of(w->nodes, ran_on(r, j));
}

int sched_watch_usable(const struct sched_watch *w, const struct sched_job *r,
                       const struct intent_facts *without)
{
    return sched_nodes_usable(w->nodes, r->partition, r->exclude, without);
}

json_t *sched_watch_nodes_of(const struct sched_watch *w, const char *list,
                             const struct intent_facts *without)
{
    return sched_nodes_listed(w->nodes, list, without);
}

size_t sched_watch_nodes(const struct sched_watch *w)
{
    return w ? sched_nodes_count(w->nodes) : 0;
}

const char *sched_watch_address(const struct sched_watch *w, const char *node)
{
    return sched_nodes_address(w->nodes, node);
}

bool sched_watch_may_have(const struct sched_watch *w, const char *node)
{
    return sched_nodes_count(w->nodes) == 0 || sched_nodes_address(w->nodes, node);
}

void sched_watch_each_node(const struct sched_watch *w,
                           void (*fn)(void *ctx, const char *node,
                                      const struct sched_node_word *word),
                           void *ctx)
{
    sched_nodes_each(w->nodes, fn, ctx);
}

bool sched_watch_word(const struct sched_watch *w, const char *node, struct sched_node_word *ret)
{
    return sched_nodes_word(w->nodes, node, ret);
}

/* Time */

/* Whole seconds, so that records do not seem to change with it. */
int64_t sched_watch_ahead(const struct sched_watch *w)
{
    usec_t pump_behind = w->wall + mono_us() - pump_now(w->d->pump);

    return (pump_behind + USEC_PER_SEC / 2) / USEC_PER_SEC + w->clock_ahead;
}

usec_t sched_watch_to_mono(const struct sched_watch *w, int64_t seconds)
{
    return pump_to_mono(w->d->pump, (seconds - sched_watch_ahead(w)) * USEC_PER_SEC);
}

static void to_pump_time(const struct sched_watch *w, struct sched_job *r)
{
    int64_t ahead = sched_watch_ahead(w);

    if (r->eligible > ahead)
        r->eligible -= ahead;
    if (r->noted_until > ahead - w->clock_ahead)
        r->noted_until -= ahead - w->clock_ahead;
}

/* Translation */

static void emit(void *ctx, const struct event *e)
{
    struct sched_watch *w = ctx;

    pump_input(w->d->pump, e);
}

static bool runs(const struct sched_job *r)
{
    return r->state == SCHED_RUNNING || r->state == SCHED_SUSPENDED;
}

/* Core has taken what the record says, and nothing is under way. */
static bool is_at_rest(const struct sched_watch *w, const struct watched *x, const struct job *j)
{
    if (sched_is_let_go(j))
        return !has_remains(w, x->r, j);
    if (j->sched.look_due || (x->r->state != SCHED_PENDING && !j->sched.resumed &&
                              j->attempt.number < x->r->restarts + 1))
        return false;
    return j->state == JOB_ENDED || j->state == JOB_NEW || j->state == JOB_RUNNING ||
           (j->state == JOB_DECIDED && j->sched.mode <= MODE_OBSERVE);
}

static void tell_mode(struct sched_watch *w, const struct watched *x)
{
    struct event e = {.kind = EVENT_MODE};

    STR_COPY(e.job, x->key);
    e.mode.mode = x->terms.mode;
    STR_PRINTF(e.mode.why, "%s%s%s", x->terms.why, *x->terms.notes ? "; " : "", x->terms.notes);
    pump_input(w->d->pump, &e);
}

static uint64_t hash_of_notes(const struct watched *x)
{
    return hash_bytes(HASH_INIT, x->terms.notes, strlen(x->terms.notes));
}

static void tell_policy(struct sched_watch *w, const struct watched *x)
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
}

static bool is_lowered(const struct sched_watch *w, const struct watched *x)
{
    const struct job *j = model_job(pump_model(w->d->pump), x->key);

    return j && j->sched.words.told && x->terms.mode < j->sched.words.terms;
}

/* Whom less is allowed is told that before anything that he could act on, and whom more is, behind
 * it. */
static void tell_terms(struct sched_watch *w, struct watched *x)
{
    uint64_t notes = hash_of_notes(x);
    const struct job *j = model_job(pump_model(w->d->pump), x->key);
    bool lowered = is_lowered(w, x);

    if (lowered)
        tell_mode(w, x);
    tell_policy(w, x);
    if (!j || !j->sched.words.told || j->sched.words.terms != x->terms.mode ||
        (!lowered && x->told != notes))
        tell_mode(w, x);
    x->told = notes;
}

/* One that was submitted to several and is queued again waits in all of them. What was decided
 * about it was on the terms of the one that it ran in, and these last until it has begun somewhere.
 */
static const char *partition_of(const struct sched_watch *w, const struct watched *x)
{
    const struct job *j = model_job(pump_model(w->d->pump), x->key);
    bool again = j && j->attempt.number > 0 && x->r->state == SCHED_PENDING;

    return again && !strchr(j->sched.partition, ',') &&
                   str_lists_overlap(j->sched.partition, x->r->partition)
               ? j->sched.partition
               : x->r->partition;
}

static void set_terms(struct sched_watch *w, struct watched *x)
{
    struct job_labels labels = {.partition = partition_of(w, x),
                                .account = x->r->account,
                                .qos = x->r->qos,
                                .user = x->r->user,
                                .comment = x->r->comment,
                                .interactive = !x->r->batch};

    daemon_config_for_job(w->d->config, &labels, &x->terms);
}

/* Of one that has ended before it was opted in, nobody knows who has waited for that. */
static void renew_terms(struct sched_watch *w, struct watched *x)
{
    bool known = model_job(pump_model(w->d->pump), x->key);

    x->over |= !known && x->terms.mode == MODE_OFF && sched_has_ended(x->r->state);
    set_terms(w, x);
    if (known)
        tell_terms(w, x);
}

/* Successors */

static bool is_succeeded_by(const struct watched *x, uint32_t id)
{
    for (uint32_t i = 0; i < x->n_successors; i++)
        if (x->successors[i] == id)
            return true;
    return false;
}

/* Whether it was not known. */
static bool add_successor(struct watched *x, const struct sched_job *next)
{
    if (x->n_successors == SUCCESSORS_MAX || is_succeeded_by(x, next->id))
        return false;
    x->successors[x->n_successors++] = next->id;
    return true;
}

static void find_successors(const struct sched_watch *w, struct watched *x)
{
    VEC_FOREACH (&w->jobs, y)
        if (sched_job_succeeds((*y)->r, x->r))
            add_successor(x, (*y)->r);
}

/* It never began, nor did any other task of its array. */
static bool is_withdrawn(const struct sched_watch *w, uint32_t id)
{
    const struct watched *next = find(w, id);

    if (!next || !sched_job_never_began(next->r))
        return false;
    VEC_FOREACH (&w->jobs, y)
        if (next->r->array_id != 0 && (*y)->r->array_id == next->r->array_id &&
            (*y)->r->state != SCHED_PENDING && !sched_job_never_began((*y)->r))
            return false;
    return true;
}

/* Only before the attempt has ended: what was to wait for approval then, somebody was told of.
 * Where there may have been more of them than there was room for, nobody knows who is left. */
static void drop_withdrawn(const struct sched_watch *w, struct watched *x, const struct job *j)
{
    bool early = !j || j->state == JOB_NEW || j->state == JOB_STARTING || j->state == JOB_RUNNING;

    if (!early || x->n_successors == SUCCESSORS_MAX)
        return;
    for (uint32_t i = x->n_successors; i-- > 0;) {
        if (!is_withdrawn(w, x->successors[i]))
            continue;
        x->n_successors--;
        memmove(&x->successors[i], &x->successors[i + 1],
                (x->n_successors - i) * sizeof(x->successors[0]));
    }
}

static void recall_successors(struct watched *x, const struct job *j)
{
    x->n_successors = j->sched.look.n_successors;
    memcpy(x->successors, j->sched.look.successors, sizeof(x->successors));
}

static void follow(struct sched_watch *w, struct watched *x)
{
    const struct job *j = model_job(pump_model(w->d->pump), x->key);

    if (j->state == JOB_ENDED)
        x->followed = 0; /* it may be let go: then its logs are not read any more */
    if ((j->state != JOB_RUNNING && j->state != JOB_ENDING) || j->sched.unwatched ||
        x->followed == j->attempt.number)
        return;
    x->followed = j->attempt.number;
    if (!w->d->logs)
        return;
    log_watch_follow(w->d->logs, x->key, x->followed, x->r, &x->terms, w->log_mode);
    if (j->state == JOB_ENDING)
        log_watch_drain(w->d->logs, x->key, x->followed);
}

static void list_absent(const struct sched_watch *w, const struct job *j,
                        struct sched_around *around)
{
    for (uint32_t i = 0; j && i < j->sched.n_kept; i++)
        if (!sched_watch_may_have(w, j->sched.kept[i].node))
            STR_COPY(around->absent[around->n_absent++], j->sched.kept[i].node);
}

static void translate(struct sched_watch *w, struct watched *x)
{
    const struct model *m = pump_model(w->d->pump);
    struct sched_around around = {.over = x->over, .successors = x->successors};
    const struct job *j = model_job(m, x->key);

    if (is_left_alone(w, x))
        return;
    drop_withdrawn(w, x, j);
    around.n_successors = x->n_successors;
    around.down_node = sched_nodes_down_of(w->nodes, ran_on(x->r, j));
    around.lost_node = sched_nodes_silent_of(w->nodes, runs_on(x->r, j), j);
    around.outranked = place_is_outranked(w->d, x->r);
    around.stranded = place_has_stranded(w->d, x->r);
    list_absent(w, j, &around);
    if (!j) {
        sched_translate(x->r, &around, NULL, x->key, emit, w);
        tell_terms(w, x);
    }
    if (!model_job(m, x->key))
        return;
    follow(w, x); /* before it is judged by what has become of it */
    sched_translate(x->r, &around, model_job(m, x->key), x->key, emit, w);
    follow(w, x);
    layouts_follow(w->layouts, x->r, x->key);
}

/* It ended when nobody looked. While reknitd is started again, jobs are in its care all the same.
 */
static bool ended_unseen(const struct sched_watch *w, const struct sched_job *r)
{
    return sched_has_ended(r->state) &&
           (w->d->new_journal || mono_us() > sched_watch_to_mono(w, r->end) + RESTART_LASTS);
}

static void begin(struct sched_watch *w, struct watched *x)
{
    const struct job *j;

    if (!recall_key(w, x->r, x->key))
        sched_job_key(x->r, x->key);
    x->over = !w->full && ended_unseen(w, x->r);
    set_terms(w, x);
    x->told = hash_of_notes(x); /* by the process before this one, if core knows it */
    j = model_job(pump_model(w->d->pump), x->key);
    if (!j)
        return;
    recall_successors(x, j);
    tell_terms(w, x);
}

static void forget(struct sched_watch *w, struct watched *x)
{
    const struct job *j = model_job(pump_model(w->d->pump), x->key);

    if (j)
        sched_translate_gone(j, emit, w);
    drop(w, x->r->id);
}

/* It runs on the nodes of all its parts, and its tasks are those of all. */
static void join_parts(struct sched_watch *w, struct watched *x)
{
    _cleanup_strbuf_ struct strbuf all = {0};

    if (x->r->het_leader != x->r->id)
        return;
    if (!x->own_nodes) {
        x->own_nodes = xstrdup(x->r->nodes);
        x->own_tasks = x->r->n_tasks;
    }
    strbuf_adds(&all, x->own_nodes);
    x->r->n_tasks = x->own_tasks;
    VEC_FOREACH (&w->jobs, y) {
        const struct sched_job *part = (*y)->r;

        if (!is_further_part(part) || part->het_leader != x->r->id)
            continue;
        x->r->n_tasks += part->n_tasks;
        if (*part->nodes)
            strbuf_addf(&all, "%s%s", all.len > 0 ? "," : "", part->nodes);
    }
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

void sched_watch_each(const struct sched_watch *w, void (*fn)(void *ctx, const struct sched_job *r),
                      void *ctx)
{
    VEC_FOREACH (&w->jobs, x)
        fn(ctx, (*x)->r);
}

/* Noted and told while it waits: once it has begun, it does not say any more what it waited for.
 * The next reknitd may see it no more. */
static void note_whom_it_succeeds(struct sched_watch *w, const struct sched_job *r)
{
    bool waits = sched_job_waits_for_failure(r), withdrawn = sched_job_never_began(r);

    if (!waits && !withdrawn)
        return;
    VEC_FOREACH (&w->jobs, x) {
        bool news = waits && sched_job_succeeds(r, (*x)->r) && add_successor(*x, r);

        news |= withdrawn && is_succeeded_by(*x, r->id);
        if (news && model_job(pump_model(w->d->pump), (*x)->key))
            translate(w, *x);
    }
}

/* What its terms depend on. */
static bool labels_differ(const struct sched_job *a, const struct sched_job *b)
{
    return !streq(a->comment, b->comment) || !streq(a->partition, b->partition) ||
           !streq(a->account, b->account) || !streq(a->qos, b->qos) || !streq(a->user, b->user);
}

/* While a job is completing, Slurm lists those of its nodes alone that are not done yet: the
 * attempt ran on all of them, and what they tell of it counts. */
static void keep_nodes(struct sched_job *r, const char *nodes, uint32_t n_nodes)
{
    if (!r->completing || r->state == SCHED_PENDING || !*nodes)
        return;
    free(r->nodes);
    r->nodes = xstrdup(nodes);
    r->n_nodes = n_nodes > r->n_nodes ? n_nodes : r->n_nodes;
}

/* Of an attempt that core knows from before this process began. */
static void recall_nodes(const struct sched_watch *w, const struct watched *x)
{
    const struct job *j = model_job(pump_model(w->d->pump), x->key);

    if (j && j->sched.base_restarts == x->r->restarts && strlen(j->sched.ran_on) + 1 < LAYOUT_LEN)
        keep_nodes(x->r, j->sched.ran_on, j->nodes);
}

static void replace_record(struct sched_watch *w, struct watched *x, struct sched_job *r)
{
    bool differ = labels_differ(x->r, r);

    if (x->r->restarts == r->restarts)
        keep_nodes(r, x->own_nodes ? x->own_nodes : x->r->nodes, x->r->n_nodes);
    sched_job_free(x->r);
    x->r = r;
    free(x->own_nodes);
    x->own_nodes = NULL;
    if (differ)
        renew_terms(w, x);
}

static void put_record(struct sched_watch *w, struct sched_job *r)
{
    struct watched *x = find(w, r->id);

    to_pump_time(w, r);
    if (x && !sched_job_is_same(x->r, r)) { /* the number was given away again */
        forget(w, x);
        x = NULL;
    }
    if (!x) {
        x = insert(w, r);
        begin(w, x);
        recall_nodes(w, x);
    } else {
        replace_record(w, x, r);
    }
}

static void tell_record(struct sched_watch *w, uint32_t id)
{
    struct watched *x = find(w, id), *leader;
    const struct sched_job *r;

    if (!x)
        return;
    r = x->r;
    join_parts(w, x);
    note_whom_it_succeeds(w, r);
    if (!is_left_alone(w, x) && r->state != SCHED_PENDING)
        find_successors(w, x);
    translate(w, x);
    leader = is_further_part(r) ? find(w, r->het_leader) : NULL;
    if (leader) {
        join_parts(w, leader);
        translate(w, leader);
    }
}

/* Its number; 0 = it is no record. */
static uint32_t take_record(struct sched_watch *w, const json_t *job)
{
    struct sched_job *r;
    struct err e = {0};
    uint32_t id;

    if (sched_job_parse(job, &r, &e) < 0) {
        log_warning("the scheduler's adapter: %s", e.text);
        return 0;
    }
    id = r->id;
    put_record(w, r);
    return id;
}

/* Whether the record shows that an attempt which ran is over. It may run again already: then only
 * the restarts tell. */
static bool shows_end(const struct sched_watch *w, const json_t *record)
{
    const char *id = json_string_value(json_object_get(record, "id"));
    const char *state = json_string_value(json_object_get(record, "state"));
    const struct watched *x = id ? find(w, (uint32_t)strtoul(id, NULL, 10)) : NULL;

    return x && !is_left_alone(w, x) && runs(x->r) && state &&
           (!streq(state, sched_state_name(x->r->state)) ||
            json_integer_value(json_object_get(record, "restarts")) != x->r->restarts);
}

bool sched_watch_take(struct sched_watch *w, const json_t *job)
{
    if (shows_end(w, job))
        return false;
    tell_record(w, take_record(w, job));
    return true;
}

bool sched_jobs_end_in(const struct sched_watch *w, const json_t *answer)
{
    size_t i;
    json_t *v;

    json_array_foreach (json_object_get(answer, "jobs"), i, v) {
        if (shows_end(w, v))
            return true;
    }
    return false;
}

/* What is said of one may depend on the others' records: first all of them are taken in. */
void sched_jobs_take(struct sched_watch *w, const json_t *answer)
{
    VEC(uint32_t) ids = {0};
    size_t i;
    json_t *v;

    json_array_foreach (json_object_get(answer, "jobs"), i, v)
        *VEC_PUSH(&ids) = take_record(w, v);
    VEC_FOREACH (&ids, id)
        tell_record(w, *id);
    VEC_DONE(&ids);
    json_array_foreach (json_object_get(answer, "gone"), i, v) {
        const char *id = json_string_value(v);
        struct watched *x = id ? find(w, (uint32_t)strtoul(id, NULL, 10)) : NULL;

        if (x)
            forget(w, x);
    }
}

void sched_jobs_forget_missing(struct sched_watch *w)
{
    const struct model *m = pump_model(w->d->pump);

    VEC_FOREACH (&m->jobs, job)
        if ((*job)->scheduled && (*job)->state != JOB_ENDED && !find_key(w, (*job)->name))
            sched_translate_gone(*job, emit, w);
}

void sched_jobs_again(struct sched_watch *w)
{
    const struct model *m = pump_model(w->d->pump);
    bool news = sched_nodes_has_news(w->nodes);

    VEC_FOREACH (&w->jobs, x) {
        const struct job *j = is_further_part((*x)->r) ? NULL : model_job(m, (*x)->key);

        if (j && (!is_at_rest(w, *x, j) || (news && has_news_of_nodes(w, (*x)->r, j))))
            translate(w, *x);
    }
    sched_nodes_news_done(w->nodes);
}

bool sched_jobs_press(const struct sched_watch *w)
{
    const struct model *m = pump_model(w->d->pump);

    VEC_FOREACH (&w->jobs, x) {
        const struct job *j = is_further_part((*x)->r) ? NULL : model_job(m, (*x)->key);

        if (j && !is_at_rest(w, *x, j) && !sched_is_let_go(j))
            return true;
    }
    return false;
}

void sched_watch_lower(struct sched_watch *w)
{
    VEC_FOREACH (&w->jobs, x) {
        set_terms(w, *x);
        if (is_lowered(w, *x))
            tell_terms(w, *x);
    }
}

void sched_watch_reload(struct sched_watch *w)
{
    VEC_FOREACH (&w->jobs, x) {
        renew_terms(w, *x);
        if (!model_job(pump_model(w->d->pump), (*x)->key))
            translate(w, *x); /* the scheduler tells of it again only when it changes */
    }
    sched_watch_poke(w);
}

void sched_jobs_done(struct sched_watch *w)
{
    VEC_FOREACH (&w->jobs, x)
        watched_free(*x);
    VEC_DONE(&w->jobs);
}
