/* SPDX-License-Identifier: Apache-2.0 */

/* What attempts write, and the reader that tells core of it a moment later: it is there some time
 * after reknitd has looked at the jobs, dies when it likes, above all when it is needed, and begins
 * where the last one was. As src/source/readers.c and src/daemon/logs.c. */

#include "cluster.h"

#include "base/str.h"

#define S            USEC_PER_SEC
#define START_MAX    (5 * S) /* of a reader, mostly */
#define START_LATEST (60 * S)
#define NEVER_DONE   10 /* percent of the ends that are read, and it is not said */

static struct log *log_of(struct cluster *c, uint32_t index, uint32_t attempt)
{
    struct log *l;

    VEC_FOREACH (&c->logs, known)
        if (known->index == index && known->attempt == attempt)
            return known;
    l = VEC_PUSH(&c->logs);
    *l = (struct log){.index = index, .attempt = attempt};
    return l;
}

static struct watched *follower_of(const struct cluster *c, uint64_t index, uint64_t attempt)
{
    VEC_FOREACH (&c->watch, w)
        if (w->last.index == index && w->followed == attempt)
            return w;
    return NULL;
}

/* Each line may be the last that this reknitd is told. */
static void read_on(struct cluster *c, struct arg arg)
{
    uint64_t life = c->life;

    while (c->alive && c->life == life && c->reading) {
        struct log *l = log_of(c, (uint32_t)arg.a, (uint32_t)arg.b);
        const struct watched *w = follower_of(c, arg.a, arg.b);
        const struct job *j;
        struct event e = {.kind = EVENT_SIGNAL, .attempt = l->attempt};

        if (!w || l->told == l->lines.n)
            return;
        STR_COPY(e.job, w->key);
        e.signal = l->lines.v[l->told++];
        if ((j = model_job(core_model(c->core), w->key)) && job_listens(j, l->attempt))
            warden_feed(c, e);
    }
}

static void read_soon(struct cluster *c, uint32_t index, uint32_t attempt)
{
    if (c->reading)
        cluster_later(c, cluster_between(c, 0, LAG_MAX), read_on,
                      (struct arg){.a = index, .b = attempt});
}

static bool awaits_last_lines(const struct cluster *c, const struct watched *w)
{
    const struct job *j = model_job(core_model(c->core), w->key);

    return j && j->attempt.number == w->followed && j->state == JOB_ENDING && !j->attempt.drained;
}

static void read_to_the_end(struct cluster *c, struct arg arg)
{
    struct event e = {.kind = EVENT_LOGS_DRAINED, .attempt = (uint32_t)arg.b};
    const struct watched *w;

    if (arg.c != c->reader_life)
        return;
    read_on(c, arg);
    w = c->alive && arg.c == c->reader_life ? follower_of(c, arg.a, arg.b) : NULL;
    if (!w || !awaits_last_lines(c, w) || rng_chance(&c->rng, NEVER_DONE))
        return;
    STR_COPY(e.job, w->key);
    warden_feed(c, e);
}

static void drain(struct cluster *c, const struct watched *w)
{
    if (c->reading && w->draining)
        cluster_later(c, cluster_between(c, 0, LAG_MAX), read_to_the_end,
                      (struct arg){.a = w->last.index, .b = w->followed, .c = c->reader_life});
}

static void tell(struct cluster *c, struct watched *w, enum event_kind kind)
{
    const struct job *j = model_job(core_model(c->core), w->key);
    struct event e = {.kind = kind, .attempt = w->followed};

    bool is_news;

    if (!j || j->attempt.number != w->followed)
        return;
    is_news = j->attempt.unread == (kind == EVENT_LOGS_READ);
    if (j->state != JOB_RUNNING && j->state != JOB_ENDING)
        return;
    if (!is_news && (j->state == JOB_RUNNING || kind == EVENT_LOGS_READ))
        return;
    STR_COPY(e.job, w->key);
    if (kind == EVENT_LOGS_UNREAD)
        inspect_story(c, w->key)->unread_at = c->now;
    warden_feed(c, e);
}

/* Nobody reads: whoever is drained waits. That it happened to such a one is told once. */
static void tell_unread(struct cluster *c, struct watched *w)
{
    const struct job *j = model_job(core_model(c->core), w->key);
    bool runs = j && j->state == JOB_RUNNING;

    if (c->reading)
        return;
    w->downs += w->draining && !runs;
    if (runs || w->downs <= 1)
        tell(c, w, EVENT_LOGS_UNREAD);
}

void reader_write(struct cluster *c, const struct fake_job *f, const struct signal *s)
{
    uint32_t attempt = f->restarts + 1;

    *VEC_PUSH(&log_of(c, f->index, attempt)->lines) = *s;
    read_soon(c, f->index, attempt);
}

static void begin(struct cluster *c, struct arg arg)
{
    uint64_t life = c->life;

    if (!c->alive || arg.a != c->life || c->reading)
        return;
    c->reading = true;
    c->read_since = c->now;
    c->reader_life++;
    for (size_t i = 0; c->alive && c->life == life && i < c->watch.n; i++) {
        read_soon(c, c->watch.v[i].last.index, c->watch.v[i].followed);
        drain(c, &c->watch.v[i]);
        tell(c, &c->watch.v[i], EVENT_LOGS_READ);
    }
}

void reader_start(struct cluster *c)
{
    bool slow = !cluster_is_quiet(c) && rng_chance(&c->rng, c->scene.slow_readers);

    cluster_later(c, cluster_between(c, 0, slow ? START_LATEST : START_MAX), begin,
                  (struct arg){.a = c->life});
}

static void die(struct cluster *c, struct arg arg)
{
    uint64_t life = c->life;

    if (!c->alive || arg.c != c->reader_life || !c->reading)
        return;
    c->reading = false;
    c->reader_life++;
    c->reader_deaths++;
    reader_start(c);
    for (size_t i = 0; c->alive && c->life == life && i < c->watch.n; i++)
        tell_unread(c, &c->watch.v[i]);
}

void reader_lost(struct cluster *c)
{
    c->reading = false;
    c->reader_life++;
}

void reader_follow(struct cluster *c, const char *key)
{
    const struct job *j = model_job(core_model(c->core), key);

    VEC_FOREACH (&c->watch, w) {
        if (!streq(w->key, key) || !j || w->followed == j->attempt.number ||
            (j->state != JOB_RUNNING && j->state != JOB_ENDING))
            continue;
        w->followed = j->attempt.number;
        w->draining = false;
        w->downs = 0;
        read_soon(c, w->last.index, w->followed);
        if (j->state == JOB_ENDING)
            reader_drain(c, key);
        else
            tell_unread(c, w);
        return;
    }
}

/* Also when it is read already. */
void reader_drain(struct cluster *c, const char *key)
{
    VEC_FOREACH (&c->watch, w) {
        const struct job *j = streq(w->key, key) ? model_job(core_model(c->core), key) : NULL;

        if (!j || w->followed != j->attempt.number)
            continue;
        w->draining = true;
        drain(c, w);
        if (c->reading && !cluster_is_quiet(c) && rng_chance(&c->rng, c->scene.reader_deaths))
            cluster_later(c, cluster_between(c, 0, 3 * S), die, (struct arg){.c = c->reader_life});
        if (!c->reading && w->downs == 0)
            tell_unread(c, w);
        else if (c->reading)
            tell(c, w, EVENT_LOGS_READ);
        return;
    }
}

/* Of attempts that ran or ended before this reknitd began. */
void reader_is_unknown(struct cluster *c)
{
    const struct model *m = core_model(c->core);

    for (size_t i = 0; c->alive && i < m->jobs.n; i++) {
        const struct job *j = m->jobs.v[i];
        struct event e = {.kind = EVENT_LOGS_UNREAD, .attempt = j->attempt.number};

        if (j->state != JOB_RUNNING && j->state != JOB_ENDING)
            continue;
        STR_COPY(e.job, j->name);
        inspect_story(c, j->name)->unread_at = c->now;
        warden_feed(c, e);
    }
}

size_t reader_left(struct cluster *c, uint32_t index, uint32_t attempt, usec_t until)
{
    const struct log *l = log_of(c, index, attempt);
    size_t n = 0;

    for (size_t i = l->told; i < l->lines.n; i++)
        n += l->lines.v[i].time_us <= until;
    return n;
}

void reader_done(struct cluster *c)
{
    VEC_FOREACH (&c->logs, l)
        VEC_DONE(&l->lines);
    VEC_DONE(&c->logs);
}
