/* SPDX-License-Identifier: Apache-2.0 */

/* Time, the work of the jobs and what it prints, people. */

#include "cluster.h"

#include "base/str.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#define S   USEC_PER_SEC
#define MIN USEC_PER_MIN

#define JOBS      8
#define TURNS_MAX 200000

/* Time: a heap by time and order. */

static bool is_before(const struct happening *a, const struct happening *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void swap(struct happening *a, struct happening *b)
{
    struct happening t = *a;

    *a = *b;
    *b = t;
}

void cluster_later(struct cluster *c, usec_t span, void (*happen)(struct cluster *, struct arg),
                   struct arg arg)
{
    size_t i = c->heap.n;

    *VEC_PUSH(&c->heap) = (struct happening){c->now + span, c->order++, happen, arg};
    for (; i > 0 && is_before(&c->heap.v[i], &c->heap.v[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&c->heap.v[i], &c->heap.v[(i - 1) / 2]);
}

static struct happening take_first(struct cluster *c)
{
    struct happening first = c->heap.v[0], *v = c->heap.v;

    v[0] = v[--c->heap.n];
    for (size_t i = 0, k; (k = 2 * i + 1) < c->heap.n; i = k) {
        if (k + 1 < c->heap.n && is_before(&v[k + 1], &v[k]))
            k++;
        if (!is_before(&v[k], &v[i]))
            break;
        swap(&v[i], &v[k]);
    }
    return first;
}

usec_t cluster_between(struct cluster *c, usec_t least, usec_t most)
{
    return rng_in(&c->rng, least, most);
}

bool cluster_is_quiet(const struct cluster *c)
{
    return c->now >= c->scene.horizon;
}

struct fake_job *cluster_job(const struct cluster *c, uint64_t index)
{
    return c->slurm.jobs.v[index];
}

/* The work of an attempt. a: index of the job, b: its turn when the attempt began, c: step. */

/* What the job itself writes is in its log; what others say is heard now, or never. */
static void say(struct cluster *c, const struct fake_job *f, struct signal s)
{
    const char *key = warden_follows(c, f);
    const struct job *j = key ? model_job(core_model(c->core), key) : NULL;
    struct event e = {.kind = EVENT_SIGNAL, .attempt = f->restarts + 1};

    s.time_us = c->now;
    if (s.provenance == PROVENANCE_JOB_TEXT) {
        reader_write(c, f, &s);
    } else if (j && job_hears(j, e.attempt)) {
        STR_COPY(e.job, key);
        e.signal = s;
        warden_feed(c, e);
    }
}

static void say_root(struct cluster *c, const struct fake_job *f, enum cause cause)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);

    s.role = ROLE_ROOT;
    s.cause = cause;
    s.confidence = 90;
    STR_PRINTF(s.signature, "sim.%s", cause_name(cause));
    STR_PRINTF(s.text, "something about %s", cause_name(cause));
    say(c, f, s);
}

static void say_bad_node(struct cluster *c, const struct fake_job *f, uint32_t node)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL);

    s.role = ROLE_ROOT;
    s.layer = LAYER_KERNEL;
    s.cause = CAUSE_NODE_HARDWARE;
    s.blame = BLAME_NODE;
    s.advice = ADVICE_RESTART_EXCLUDING;
    s.confidence = 95;
    STR_PRINTF(s.who.node, "n%u", node);
    STR_COPY(s.signature, "sim.mce");
    STR_COPY(s.text, "a machine check");
    say(c, f, s);
}

static void say_task_died(struct cluster *c, const struct fake_job *f)
{
    struct signal s = signal_make(SIGNAL_EXIT, PROVENANCE_SPANK);

    s.who.rank = 0;
    STR_COPY(s.who.node, "n0");
    s.exit = (struct exit_fact){.pid = 1, .code = -1, .signal = SIGKILL};
    say(c, f, s);
}

static void say_step(struct cluster *c, const struct fake_job *f, int64_t step)
{
    struct signal s = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);

    s.role = ROLE_PROGRESS;
    s.step.step = step;
    say(c, f, s);
}

static struct fake_job *still(struct cluster *c, struct arg arg)
{
    struct fake_job *f = cluster_job(c, arg.a);

    return f->turn == arg.b && slurm_runs(f) ? f : NULL;
}

static void time_is_up(struct cluster *c, struct arg arg)
{
    struct fake_job *f = still(c, arg);

    if (f)
        slurm_end(&c->slurm, f, SCHED_TIMEOUT, 0);
}

static void exit_1(struct cluster *c, struct arg arg)
{
    struct fake_job *f = still(c, arg);

    if (f)
        slurm_end(&c->slurm, f, rng_chance(&c->rng, 5) ? SCHED_OUT_OF_MEMORY : SCHED_FAILED, 1);
}

static void get_over_it(struct cluster *c, struct arg arg);

static void fail(struct cluster *c, struct fake_job *f, struct arg arg)
{
    static const enum cause causes[] = {CAUSE_UNKNOWN, CAUSE_NETWORK, CAUSE_USER_CODE,
                                        CAUSE_STORAGE, CAUSE_GPU_OOM};
    nodeset bad = f->nodes & c->scene.bad;
    int64_t kind = rng_in(&c->rng, 0, 9);

    if (bad && rng_chance(&c->rng, 70)) {
        say_bad_node(c, f, (uint32_t)__builtin_ctz(bad));
        cluster_later(c, cluster_between(c, 0, 3 * S), exit_1, arg);
    } else if (kind < 5) {
        say_root(c, f, causes[kind]);
        cluster_later(c, cluster_between(c, 0, 3 * S), exit_1, arg);
    } else if (kind < 7) { /* the others hang; some get over it */
        say_task_died(c, f);
        if (rng_chance(&c->rng, 30))
            cluster_later(c, cluster_between(c, 0, 5 * MIN), get_over_it, arg);
    } else if (kind == 7) {
        slurm_requeue_at_once(&c->slurm, f, c->now + 2 * S); /* preempted */
    } else if (kind == 8) {
        slurm_end(&c->slurm, f, SCHED_PREEMPTED, 0);
    } else {
        cluster_later(c, cluster_between(c, 0, 3 * S), exit_1, arg); /* without a word */
    }
}

static void step(struct cluster *c, struct arg arg)
{
    struct fake_job *f = still(c, arg);
    bool fair = cluster_is_quiet(c);
    unsigned trouble = fair ? 0 : (f && f->nodes & c->scene.bad) ? 15 : 4;

    if (!f)
        return;
    if (rng_chance(&c->rng, trouble)) {
        fail(c, f, arg);
        return;
    }
    if (rng_chance(&c->rng, fair ? 30 : 4)) {
        slurm_end(&c->slurm, f, SCHED_COMPLETED, 0);
        return;
    }
    say_step(c, f, (int64_t)arg.c);
    arg.c++;
    cluster_later(c, cluster_between(c, 10 * S, 50 * S), step, arg);
}

static void get_over_it(struct cluster *c, struct arg arg)
{
    if (still(c, arg))
        step(c, arg);
}

static void begun(void *ctx, struct fake_job *f)
{
    struct cluster *c = ctx;
    struct arg arg = {.a = f->index, .b = f->turn, .c = (uint64_t)f->restarts * 100 + 1};

    c->attempts++;
    inspect_begun(c, f);
    cluster_later(c, cluster_between(c, S, 40 * S), step, arg);
    cluster_later(c, f->time_limit, time_is_up, arg);
}

/* People */

static void release(struct cluster *c, struct arg arg)
{
    struct fake_job *f = cluster_job(c, arg.a);

    if (!f->forgotten)
        slurm_hold(&c->slurm, f, false);
}

static void cancel_by_hand(struct cluster *c, struct fake_job *f)
{
    if (slurm_cancel(&c->slurm, f) == ANSWER_OK)
        f->cancelled = true;
}

static void requeue_by_hand(struct cluster *c, struct fake_job *f)
{
    if (slurm_requeue(&c->slurm, f, BY_PEOPLE) == ANSWER_OK)
        f->cancelled = f->cancel_shown = false;
}

static void interfere(struct cluster *c, struct arg arg)
{
    struct fake_job *f = cluster_job(c, arg.a);

    if (cluster_is_quiet(c) || f->forgotten)
        return;
    switch (rng_in(&c->rng, 0, 6)) {
    case 0:
    case 1:
        cancel_by_hand(c, f);
        break;
    case 2:
        requeue_by_hand(c, f);
        break;
    case 3:
        slurm_hold(&c->slurm, f, true);
        cluster_later(c, cluster_between(c, S, 10 * MIN), release, arg);
        break;
    case 4:
        slurm_amend(&c->slurm, f, f->exclude, c->now + cluster_between(c, 0, 30 * MIN), BY_PEOPLE);
        break;
    case 5:
        slurm_set_requeue(&c->slurm, f, rng_chance(&c->rng, 50));
        break;
    default:
        cancel_by_hand(c, f);
        requeue_by_hand(c, f);
    }
    cluster_later(c, cluster_between(c, S, 40 * MIN), interfere, arg);
}

/* Who watches the queue, and does something just when reknit does. */
static void react(struct cluster *c, struct arg arg)
{
    struct fake_job *f = cluster_job(c, arg.a);

    if (f->forgotten || cluster_is_quiet(c))
        return;
    if (rng_chance(&c->rng, 60))
        cancel_by_hand(c, f);
    else
        requeue_by_hand(c, f);
}

static void watch_closely(struct cluster *c, struct arg arg)
{
    struct fake_job *f = cluster_job(c, arg.a);

    if (f->forgotten || cluster_is_quiet(c))
        return;
    if (f->turn != arg.b && rng_chance(&c->rng, 10))
        cluster_later(c, cluster_between(c, 0, 8 * S), react, arg);
    arg.b = f->turn;
    cluster_later(c, 3 * S, watch_closely, arg);
}

static void submit(struct cluster *c, struct arg none)
{
    struct rng *r = &c->rng;
    struct fake_job like = {.uid = 1000 + (uint32_t)rng_in(r, 0, 1), .batch = rng_chance(r, 90)};
    struct fake_job *f;

    like.may_requeue = rng_chance(r, 80);
    like.need = (uint32_t)rng_in(r, 1, rng_chance(r, 20) ? NODES : 5);
    like.time_limit = cluster_between(c, 5, 40) * MIN;
    like.own_exclude = rng_chance(r, 30) ? (nodeset)1 << rng_in(r, 0, NODES - 1) : 0;
    like.required = rng_chance(r, 10) ? (nodeset)1 << rng_in(r, 0, NODES - 1) : 0;
    like.required &= ~like.own_exclude;
    like.stubborn = rng_chance(r, 5);
    like.no_room = rng_chance(r, 20);
    if (like.need == NODES)
        like.own_exclude = 0;
    STR_PRINTF(like.name, "job%d", (int)rng_in(r, 0, 9));
    f = slurm_submit(&c->slurm, &like);
    if (c->scene.rough && rng_chance(r, 50))
        cluster_later(c, cluster_between(c, S, 40 * MIN), interfere, (struct arg){.a = f->index});
    if (c->scene.rough && rng_chance(r, 50))
        cluster_later(c, S, watch_closely, (struct arg){.a = f->index, .b = f->turn});
}

static void operate(struct cluster *c, enum request what, const char *key, uint64_t of)
{
    struct event e = {.kind = EVENT_OPERATOR};

    STR_COPY(e.job, key);
    e.request = (struct request_facts){.request = what, .of = of};
    warden_feed(c, e);
}

static void answer_proposals(struct cluster *c, struct arg arg)
{
    const struct model *m = core_model(c->core);

    if (cluster_is_quiet(c))
        return;
    for (size_t i = 0; c->alive && i < m->jobs.n; i++) {
        const struct job *j = m->jobs.v[i];

        if (j->state == JOB_DECIDED && c->now < j->attempt.decided_at + m->brakes.proposal_life &&
            rng_chance(&c->rng, 40))
            operate(c, rng_chance(&c->rng, 80) ? REQUEST_APPROVE : REQUEST_REJECT, j->name,
                    j->sched.decision);
    }
    cluster_later(c, cluster_between(c, 10 * S, 3 * MIN), answer_proposals, arg);
}

static void freeze(struct cluster *c, struct arg arg)
{
    bool on = arg.a && !cluster_is_quiet(c);

    operate(c, on ? REQUEST_FREEZE : REQUEST_THAW, "", 0);
    if (core_model(c->core)->frozen || !c->alive)
        cluster_later(c, cluster_between(c, S, 5 * MIN), freeze, (struct arg){0});
    else if (!cluster_is_quiet(c))
        cluster_later(c, cluster_between(c, MIN, 20 * MIN), freeze, (struct arg){.a = 1});
}

/* Machines */

static void mend(struct cluster *c, struct arg arg)
{
    if (!(c->slurm.silent & (nodeset)1 << arg.a))
        c->slurm.up |= (nodeset)1 << arg.a;
}

static void break_node(struct cluster *c, struct arg arg)
{
    uint32_t node = (uint32_t)rng_in(&c->rng, 0, NODES - 1);

    if (cluster_is_quiet(c))
        return;
    if (!(c->slurm.silent & (nodeset)1 << node))
        slurm_lose_node(&c->slurm, node);
    cluster_later(c, cluster_between(c, MIN, 20 * MIN), mend, (struct arg){.a = node});
    cluster_later(c, cluster_between(c, MIN, 40 * MIN), break_node, arg);
}

static void answer_again(struct cluster *c, struct arg arg)
{
    slurm_heal(&c->slurm, (uint32_t)arg.a);
}

static void give_up(struct cluster *c, struct arg arg)
{
    nodeset bit = (nodeset)1 << arg.a;

    if (c->slurm.silent & bit & c->slurm.up)
        slurm_give_up(&c->slurm, (uint32_t)arg.a);
}

/* It may be back before it is given up, or long after. Two may be silent at once. */
static void lose_touch(struct cluster *c, struct arg arg)
{
    uint32_t node = (uint32_t)rng_in(&c->rng, 0, NODES - 1);

    if (cluster_is_quiet(c))
        return;
    if (c->slurm.up & ~c->slurm.silent & (nodeset)1 << node) {
        slurm_silence(&c->slurm, node, rng_chance(&c->rng, 60));
        cluster_later(c, cluster_between(c, 30 * S, 5 * MIN), give_up, (struct arg){.a = node});
        cluster_later(c, cluster_between(c, 10 * S, 30 * MIN), answer_again,
                      (struct arg){.a = node});
    }
    cluster_later(c, cluster_between(c, 10 * S, 30 * MIN), lose_touch, arg);
}

static void go_deaf(struct cluster *c, struct arg arg)
{
    if (cluster_is_quiet(c))
        return;
    c->deaf_until = c->now + cluster_between(c, S, 3 * MIN);
    cluster_later(c, cluster_between(c, 4 * MIN, 30 * MIN), go_deaf, arg);
}

static void turn(struct cluster *c, struct arg arg)
{
    struct slurm *s = &c->slurm;
    bool any = false;

    slurm_turn(s);
    VEC_FOREACH (&s->jobs, f) {
        any |= !(*f)->forgotten;
        if (!(*f)->forgotten)
            inspect_job(c, *f);
    }
    if (any || !cluster_is_quiet(c))
        cluster_later(c, S, turn, arg);
}

/* Runs */

static void draw_scene(struct cluster *c)
{
    struct rng *r = &c->rng;
    struct scene *s = &c->scene;
    int64_t mode = rng_in(r, 0, 9);

    s->mode = mode < 2 ? MODE_OBSERVE : mode < 4 ? MODE_PROPOSE : MODE_ACT;
    s->mode_changes = rng_chance(r, 15);
    s->freezes = rng_chance(r, 15);
    s->lost = rng_chance(r, 50) ? (unsigned)rng_in(r, 0, 40) : 0;
    s->late = rng_chance(r, 50) ? (unsigned)rng_in(r, 0, 40) : 0;
    s->deaths = rng_chance(r, 60) ? (unsigned)rng_in(r, 0, 150) : 0;
    s->reader_deaths = rng_chance(r, 50) ? (unsigned)rng_in(r, 0, 60) : 0;
    s->slow_readers = rng_chance(r, 30) ? (unsigned)rng_in(r, 0, 50) : 0;
    s->bad = rng_chance(r, 60) ? (nodeset)rng_next(r) & (nodeset)rng_next(r) & 0xfff : 0;
    s->rough = rng_chance(r, 60);
    s->touchy = rng_chance(r, 60);
    s->brakes = (struct brakes){.early_start = 2 * S,
                                .exclusion_life = cluster_between(c, MIN, 3 * USEC_PER_HOUR),
                                .proposal_life = 4 * MIN};
    if (rng_chance(r, 30)) {
        s->brakes.actions_per_hour = (uint32_t)rng_in(r, 1, 20);
        s->brakes.actions_per_partition_hour = (uint32_t)rng_in(r, 0, 10);
        s->brakes.storm_jobs = (uint32_t)rng_in(r, 0, 5);
        s->brakes.storm_window = 5 * MIN;
        s->brakes.storm_per_minute = (uint32_t)rng_in(r, 1, 3);
        s->brakes.exclusions_per_node_hour = (uint32_t)rng_in(r, 0, 3);
    }
    s->horizon = BEGINNING + cluster_between(c, 10, 60) * MIN;
    c->slurm.traits = (struct slurm_traits){
        .min_age = cluster_between(c, 5, 20) * MIN,
        .launch_trouble = rng_chance(r, 30) ? 20 : 0,
        .long_completing = rng_chance(r, 50) ? 20 : 0,
        .refuses_while_completing = rng_chance(r, 30),
    };
    s->comments = rng_chance(r, 25);
    s->words = rng_chance(r, 25);
    s->mode_changes |= s->comments || s->words;
}

/* Of any job, at any moment: as its user's comment says, within what the rules allow. */
static void change_comment(struct cluster *c, struct arg none)
{
    const struct model *m = core_model(c->core);
    struct event e = {.kind = EVENT_MODE};

    if (c->alive && m->jobs.n > 0) {
        size_t i = (size_t)rng_in(&c->rng, 0, (int64_t)m->jobs.n - 1);

        STR_COPY(e.job, m->jobs.v[i]->name);
        e.mode.mode = rng_chance(&c->rng, 50) ? MODE_OFF
                                              : (enum mode)rng_in(&c->rng, MODE_OFF, c->scene.mode);
        warden_feed(c, e);
    }
    if (!cluster_is_quiet(c))
        cluster_later(c, cluster_between(c, S, 3 * MIN), change_comment, none);
}

/* Of any job, at any moment, and more than is allowed, too. */
static void say_mode(struct cluster *c, struct arg none)
{
    const struct model *m = core_model(c->core);
    struct event e = {.kind = EVENT_MODE};

    if (c->alive && m->jobs.n > 0) {
        STR_COPY(e.job, m->jobs.v[(size_t)rng_in(&c->rng, 0, (int64_t)m->jobs.n - 1)]->name);
        e.mode.mode = (enum mode)rng_in(&c->rng, MODE_OFF, MODE_ACT);
        e.mode.asked = true;
        e.mode.owner = rng_chance(&c->rng, 80);
        warden_feed(c, e);
    }
    if (!cluster_is_quiet(c))
        cluster_later(c, cluster_between(c, S, 3 * MIN), say_mode, none);
}

static void change_mode(struct cluster *c, struct arg arg)
{
    const struct model *m = core_model(c->core);

    c->scene.mode = (enum mode)rng_in(&c->rng, MODE_OBSERVE, MODE_ACT);
    for (size_t i = 0; c->alive && i < m->jobs.n; i++) {
        struct event e = {.kind = EVENT_MODE};

        STR_COPY(e.job, m->jobs.v[i]->name);
        e.mode.mode = c->scene.mode;
        warden_feed(c, e);
    }
    if (!cluster_is_quiet(c))
        cluster_later(c, cluster_between(c, 5 * MIN, 30 * MIN), change_mode, arg);
}

static void forgotten(void *ctx, struct fake_job *f)
{
    inspect_forgotten(ctx, f);
}

static const struct slurm_hooks hooks = {begun, forgotten};

void cluster_init(struct cluster *c, uint64_t seed, bool trace_it)
{
    struct arg none = {0};

    memset(c, 0, sizeof(*c));
    c->seed = c->rng.state = seed;
    c->trace = trace_it;
    c->now = c->slurm.now = BEGINNING;
    c->core = core_new();
    c->slurm.rng = &c->rng;
    c->slurm.up = ((nodeset)1 << NODES) - 1;
    c->slurm.next_id = 1;
    c->slurm.hooks = &hooks;
    c->slurm.ctx = c;
    draw_scene(c);
    warden_begin(c, none);
    for (int i = 0; i < JOBS; i++)
        cluster_later(c, cluster_between(c, 0, c->scene.horizon - BEGINNING), submit, none);
    cluster_later(c, 0, turn, none);
    cluster_later(c, cluster_between(c, MIN, 60 * MIN), break_node, none);
    if (c->scene.touchy)
        cluster_later(c, cluster_between(c, MIN, 20 * MIN), lose_touch, none);
    cluster_later(c, cluster_between(c, MIN, 60 * MIN), go_deaf, none);
    cluster_later(c, MIN, answer_proposals, none);
    if (c->scene.freezes)
        cluster_later(c, cluster_between(c, MIN, 20 * MIN), freeze, (struct arg){.a = 1});
    if (c->scene.comments)
        cluster_later(c, cluster_between(c, S, 5 * MIN), change_comment, none);
    if (c->scene.words)
        cluster_later(c, cluster_between(c, S, 5 * MIN), say_mode, none);
    if (c->scene.mode_changes)
        cluster_later(c, cluster_between(c, MIN, 20 * MIN), change_mode, none);
}

/* Nothing will happen any more; or not before patience ends. */
static bool is_over(const struct cluster *c)
{
    const struct model *m = core_model(c->core);

    if (!cluster_is_quiet(c) || c->now < c->scene.horizon + 20 * MIN || !c->alive)
        return false;
    if (c->now > c->scene.horizon + 6 * USEC_PER_HOUR)
        return true;
    VEC_FOREACH (&c->slurm.jobs, f)
        if (!(*f)->forgotten)
            return false;
    VEC_FOREACH (&m->jobs, j)
        if ((*j)->state != JOB_ENDED)
            return false;
    return true;
}

void cluster_run(struct cluster *c)
{
    for (int turns = 0; c->heap.n > 0; turns++) {
        usec_t next = c->heap.v[0].at, due = c->full ? core_deadline(c->core) : USEC_NEVER;
        struct happening h;

        if (turns > TURNS_MAX)
            cluster_fail(c, "it never ends");
        if (due <= next) {
            c->now = c->slurm.now = due > c->now ? due : c->now;
            warden_feed(c, (struct event){.kind = EVENT_TICK});
            continue;
        }
        h = take_first(c);
        c->now = c->slurm.now = h.at > c->now ? h.at : c->now;
        h.happen(c, h.arg);
        if (is_over(c))
            break;
    }
    inspect_end(c);
}

void cluster_done(struct cluster *c)
{
    core_free(c->core);
    journal_done(&c->journal);
    slurm_done(&c->slurm);
    VEC_FOREACH (&c->heap, h)
        free(h->arg.p);
    VEC_DONE(&c->heap);
    reader_done(c);
    VEC_DONE(&c->watch);
    VEC_DONE(&c->stories);
}

void cluster_fail(const struct cluster *c, const char *format, ...)
{
    char at[DURATION_TEXT_MAX];
    va_list ap;

    fflush(stdout);
    fprintf(stderr, "seed %llu, at %s, event %llu: ", (unsigned long long)c->seed,
            duration_format(c->now - BEGINNING, at), (unsigned long long)c->seq);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fprintf(stderr, "\nreplay it: sim_cluster --trace %llu\n", (unsigned long long)c->seed);
    exit(1);
}
