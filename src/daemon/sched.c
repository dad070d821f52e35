/* SPDX-License-Identifier: Apache-2.0 */

/* The scheduler is asked for what has changed, every few seconds, and sooner when something is
 * under way; but never for more than a tenth of the time, as measured by what the answers took.
 *
 * On a big cluster it is the list of nodes that costs: it is asked for as often as a twentieth of
 * the time allows, and whenever an answer about jobs says that an attempt has ended. Such an
 * answer waits for that of the nodes, because one tells what the other means.
 *
 * Before the first look it must be known that no other reknitd of this host works for the cluster.
 *
 * What the records of jobs mean for core is in sched_jobs.c. */

#include "daemon/sched.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "base/timer.h"

#include <stdlib.h>
#include <string.h>

#define POLL_SOON   (500 * USEC_PER_MSEC) /* while something is under way */
#define POLL_SHARE  10                    /* the adapter may be busy for one part in so many */
#define NODES_SHARE 20                    /* ... and for one in so many with nodes */
#define TOOK_MAX    (3 * USEC_PER_SEC)
#define POLL_CREDIT (10 * USEC_PER_SEC) /* of what was left unused, as much may be saved */
#define CLOCK_EVERY (60 * USEC_PER_SEC)
#define CLOCK_STEP  (2 * USEC_PER_SEC) /* more than any clock drifts in that time */

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
    VEC_FOREACH (&m->nodes.list, l)
        VEC_FOREACH (&(*l)->pending, p)
            if (p->seq <= w->past)
                *VEC_PUSH(&open) = *p;
    VEC_FOREACH (&open, p)
        act_report(w->d, p, OUTCOME_UNKNOWN, "reknitd was restarted before it was answered");
    VEC_DONE(&open);
}

/* Polling */

/* Whatever an answer took, nine times as long the scheduler is left alone; but what it was not
 * asked of late counts, so that a question in time of need need not wait. One that comes very late
 * was waited for rather than worked on, and the first after an outage says nothing of what they
 * take. The list that an adapter begins with is the price of its start. */
static void account(struct sched_watch *w, struct poll *p, usec_t began, const json_t *answer)
{
    usec_t took = mono_us() - began, least = began - POLL_CREDIT;

    if (w->failing || json_is_true(json_object_get(answer, "full")))
        return;
    p->took = took < TOOK_MAX ? took : TOOK_MAX;
    w->free_at = (w->free_at > least ? w->free_at : least) + p->took * POLL_SHARE;
}

static void schedule(struct sched_watch *w)
{
    bool pressing = mono_us() < w->pressing_until || sched_jobs_press(w);
    usec_t every = pressing && POLL_SOON < w->d->config->poll ? POLL_SOON : w->d->config->poll;
    usec_t next = w->of_jobs.asked_at + every;

    timer_arm(w->timer, next > w->free_at ? next : w->free_at);
}

static void say_failing(struct sched_watch *w, const char *text)
{
    if (!w->failing)
        log_warning("the scheduler cannot be asked (%s): nothing is done until it can", text);
    w->failing = true;
    w->errors++;
    str_sanitize(w->trouble, sizeof(w->trouble), text, strlen(text));
}

static void say_answering(struct sched_watch *w)
{
    if (w->failing)
        log_warning("the scheduler can be asked again");
    w->failing = false;
    w->trouble[0] = '\0';
}

static usec_t deadline(const struct sched_watch *w)
{
    return w->d->config->adapter.timeout;
}

static json_t *request(const char *op, bool diff)
{
    return diff ? json_pack("{s:s, s:b}", "op", op, "diff", 1) : json_pack("{s:s}", "op", op);
}

static void take_jobs(struct sched_watch *w, const json_t *answer)
{
    bool full = json_is_true(json_object_get(answer, "full"));

    w->looked_at = pump_now(w->d->pump);
    w->look_began = w->of_jobs.asked_at;
    sched_jobs_take(w, answer);
    sched_jobs_again(w);
    layouts_look(w->layouts);
    if (full && !w->full) {
        sched_jobs_forget_missing(w);
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
    usec_t asked_at = w->of_nodes.asked_at;
    json_t *held = TAKE(w->held);

    w->awaits_nodes = false;
    if (outcome == ADAPTER_DONE) {
        account(w, &w->of_nodes, asked_at > w->jobs_answered_at ? asked_at : w->jobs_answered_at,
                answer);
        sched_nodes_take(w->nodes, answer);
        daemon_tell_brakes(w->d); /* a share of the nodes */
        isolate_look(w->d);
    }
    if (held) {
        take_jobs(w, held);
        json_decref(held);
    }
}

static void ask_nodes(struct sched_watch *w)
{
    if (w->awaits_nodes)
        return;
    w->awaits_nodes = true;
    w->of_nodes.asked_at = mono_us();
    adapter_ask(w->d->adapter, request("nodes", true), deadline(w), on_nodes, w);
}

/* What became of a job is understood by what became of its nodes, and they must be looked at after
 * it: a node that takes its job along is down from that moment on. */
static void on_jobs(void *ctx, enum adapter_outcome outcome, const json_t *answer, const char *text)
{
    struct sched_watch *w = ctx;

    w->asking = false;
    w->jobs_answered_at = mono_us();
    if (outcome != ADAPTER_DONE) {
        say_failing(w, text);
        timer_arm(w->timer, mono_us() + w->d->config->poll);
        return;
    }
    account(w, &w->of_jobs, w->of_jobs.asked_at, answer);
    say_answering(w);
    if (w->awaits_nodes || sched_jobs_end_in(w, answer)) {
        w->held = json_incref((json_t *)answer);
        ask_nodes(w);
        return;
    }
    take_jobs(w, answer);
}

/* How far this host's clock was set, since it was compared with the scheduler's. */
static usec_t clock_step(const struct sched_watch *w)
{
    usec_t step = now_us() - mono_us() - w->wall;

    return step > CLOCK_STEP || step < -CLOCK_STEP ? step : 0;
}

/* Nothing depends on this host's clock but what people read, and what the scheduler is asked for:
 * times of its own clock. So one that is set is only told. */
static void note_clocks(struct sched_watch *w, int64_t ahead)
{
    usec_t step = clock_step(w);
    char text[DURATION_TEXT_MAX];

    if (step != 0)
        log_warning("this host's clock was set %s by %s", step > 0 ? "forward" : "back",
                    duration_format(step > 0 ? step : -step, text));
    if (ahead != w->clock_ahead && ahead != 0)
        log_warning("the scheduler's clock is %" PRId64 " s %s this host's: synchronise them",
                    ahead > 0 ? ahead : -ahead, ahead > 0 ? "ahead of" : "behind");
    w->wall = now_us() - mono_us();
    w->clock_ahead = ahead;
}

static void on_ping(void *ctx, enum adapter_outcome outcome, const json_t *answer, const char *text)
{
    struct sched_watch *w = ctx;
    json_int_t clock = json_integer_value(json_object_get(answer, "clock"));
    int64_t ahead = clock - now_us() / USEC_PER_SEC;

    if (outcome == ADAPTER_DONE && clock > 0)
        note_clocks(w, ahead >= -1 && ahead <= 1 ? 0 : ahead); /* it counts whole seconds */
}

/* Two that watch one cluster would act twice on each job: who comes later ends. */
static void be_alone(struct sched_watch *w, const json_t *config)
{
    struct err e = {0};

    if (w->alone && sole_is_of(w->sole, config))
        return;
    w->sole = sole_free(w->sole);
    w->alone = sole_claim(w->d->event, config, &w->sole, &e) >= 0;
    if (w->alone) {
        sched_watch_poke(w);
        return;
    }
    log_error("%s", e.text);
    sd_event_exit(w->d->event, EXIT_FAILURE);
}

static void take_config(struct sched_watch *w, const json_t *config)
{
    const json_t *append = json_object_get(config, "file_append");
    const char *cluster = json_string_value(json_object_get(config, "cluster"));
    char name[sizeof(w->cluster)];

    str_sanitize(name, sizeof(name), cluster ? cluster : "", cluster ? strlen(cluster) : 0);
    if (!streq(name, w->cluster))
        log_info("the cluster is '%s'", name);
    STR_COPY(w->cluster, name);
    w->log_mode = !json_is_boolean(append) ? LOG_MODE_UNKNOWN
                  : json_is_true(append)   ? LOG_MODE_APPEND
                                           : LOG_MODE_TRUNCATE;
}

static void on_config(void *ctx, enum adapter_outcome outcome, const json_t *answer,
                      const char *text)
{
    struct sched_watch *w = ctx;
    const json_t *config = json_object_get(answer, "config");

    if (!w->alone)
        w->asking = false;
    if (outcome == ADAPTER_DONE) {
        take_config(w, config);
        be_alone(w, config);
        return;
    }
    w->clock_at = 0; /* again at the next look */
    if (!w->alone) {
        say_failing(w, text);
        timer_arm(w->timer, mono_us() + w->d->config->poll);
    }
}

/* Those of a big cluster change all the time, and cost the most. */
static bool nodes_are_due(const struct sched_watch *w, usec_t now)
{
    return now >= w->of_nodes.asked_at + w->of_nodes.took * NODES_SHARE;
}

static void look(struct sched_watch *w)
{
    usec_t now = mono_us();

    if (!w->alone || now >= w->clock_at)
        adapter_ask(w->d->adapter, request("config", false), deadline(w), on_config, w);
    w->asking = true;
    if (!w->alone)
        return;
    if (now >= w->clock_at || clock_step(w) != 0) {
        adapter_ask(w->d->adapter, request("ping", false), deadline(w), on_ping, w);
        w->clock_at = now + CLOCK_EVERY;
    }
    w->of_jobs.asked_at = now;
    adapter_ask(w->d->adapter, request("jobs", true), deadline(w), on_jobs, w);
    if (nodes_are_due(w, now))
        ask_nodes(w);
}

static bool is_asking(const struct sched_watch *w)
{
    return w->asking || w->held;
}

static int on_timer(sd_event_source *s, uint64_t t, void *ctx)
{
    struct sched_watch *w = ctx;

    if (!is_asking(w))
        look(w);
    return 0;
}

void sched_watch_hello(void *ctx, const json_t *hello)
{
    struct sched_watch *w = ctx;
    const char *name = json_string_value(json_object_get(hello, "adapter"));
    const char *version = json_string_value(json_object_get(hello, "version"));
    char said[128], clean[128];

    STR_PRINTF(said, "%s %s", name ? name : "?", version ? version : "?");
    str_sanitize(clean, sizeof(clean), said, strlen(said));
    log_info("the scheduler's adapter is there: %s", clean);
    w->clock_at = 0;
    backend_learn(w->d);
    sched_watch_poke(w);
}

void sched_watch_stray(void *ctx)
{
    log_warning("the scheduler's adapter answers what it was not asked; that is ignored");
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

usec_t sched_watch_look_began(const struct sched_watch *w)
{
    return w->look_began;
}

uint64_t sched_watch_errors(const struct sched_watch *w)
{
    return w->errors;
}

void sched_watch_poke(struct sched_watch *w)
{
    w->pressing_until = mono_us() + 5 * USEC_PER_SEC;
    if (!is_asking(w))
        timer_arm(w->timer, w->free_at);
}

void sched_watch_poke_nodes(struct sched_watch *w)
{
    w->of_nodes.asked_at = 0;
    sched_watch_poke(w);
}

struct sched_watch *sched_watch_new(struct daemon *d)
{
    struct sched_watch *w = xnew(struct sched_watch);

    w->d = d;
    w->wall = now_us() - mono_us();
    w->nodes = sched_nodes_new();
    w->layouts = layouts_new(d);
    VEC_FOREACH (&pump_model(d->pump)->jobs, job)
        VEC_FOREACH (&(*job)->pending, p)
            w->past = p->seq > w->past ? p->seq : w->past;
    VEC_FOREACH (&pump_model(d->pump)->nodes.list, l)
        VEC_FOREACH (&(*l)->pending, p)
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
    sched_jobs_done(w);
    layouts_free(w->layouts);
    VEC_DONE(&w->early);
    json_decref(w->held);
    sole_free(w->sole);
    sched_nodes_free(w->nodes);
    free(w);
    return NULL;
}
