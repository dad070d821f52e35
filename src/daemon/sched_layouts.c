/* SPDX-License-Identifier: Apache-2.0 */

/* Which tasks of a job run on which of its nodes. Schedulers forget that when a step ends, so it is
 * asked for while the step runs: whether there is one with a number (of srun) soon after the job
 * began, and more and more seldom from then on, for a script may begin others; its layout once. Of
 * several steps, the one with the most tasks is the training. One question shows the steps of all
 * jobs, and the layouts of those that are new are asked for behind it, a few at a time, so that
 * other questions get through. Nothing waits for any of this: without it less is known of who is
 * where. */

#include "daemon/sched.h"

#include "base/alloc.h"
#include "base/str.h"

#include <inttypes.h>
#include <string.h>

#define PAUSE_MIN   USEC_PER_SEC
#define PAUSE_MAX   (5 * USEC_PER_MIN)
#define STEPS_EVERY (2 * USEC_PER_SEC)  /* at most, for all jobs */
#define OLD         (30 * USEC_PER_SEC) /* a pause as long as that is nothing to hurry for */
#define OLD_EVERY   USEC_PER_MIN        /* for those alone, at most */
#define AT_ONCE     8                   /* layouts; the others wait for one of these */
#define NODES_MAX   1024                /* of one: core keeps as many lists */

/* A job whose tasks are looked for. */
struct placed {
    char key[SCHED_KEY_LEN];
    uint32_t id, attempt;
    usec_t since; /* when core began to follow that: what it was told before is gone */
    int64_t step; /* whose layout was told, STEP_NONE = none yet */
    usec_t due, pause;
    int64_t biggest,
        tasks;   /* step with the most tasks in the last answer, of equal ones the last */
    bool wanted; /* the layout of that */
};

/* A layout that was asked for. */
struct question {
    struct layouts *of; /* NULL = free */
    char key[SCHED_KEY_LEN];
    uint32_t id, attempt;
    int64_t step;
};

struct layouts {
    struct daemon *d;
    VEC(struct placed) jobs; /* by id */
    struct question questions[AT_ONCE];
    bool asking;
    usec_t asked_at; /* monotonic */
};

struct layouts *layouts_new(struct daemon *d)
{
    struct layouts *l = xnew(struct layouts);

    l->d = d;
    return l;
}

struct layouts *layouts_free(struct layouts *l)
{
    if (!l)
        return NULL;
    VEC_DONE(&l->jobs);
    free(l);
    return NULL;
}

static const struct job *running(const struct layouts *l, const char *key)
{
    const struct job *j = model_job(pump_model(l->d->pump), key);

    return j && j->state == JOB_RUNNING && !j->attempt.exited ? j : NULL;
}

static size_t position(const struct layouts *l, uint32_t id)
{
    return VEC_BISECT(&l->jobs, p, p->id < id);
}

static struct placed *find(const struct layouts *l, uint32_t id)
{
    size_t i = position(l, id);

    return i < l->jobs.n && l->jobs.v[i].id == id ? &l->jobs.v[i] : NULL;
}

/* Parts of a heterogeneous job have steps of their own, that belong together. */
void layouts_follow(struct layouts *l, const struct sched_job *r, const char *key)
{
    const struct job *j = r->het_leader == 0 && r->state == SCHED_RUNNING ? running(l, key) : NULL;
    struct placed *p = find(l, r->id);

    if (!j || (p && streq(p->key, key) && p->attempt == j->attempt.number &&
               p->since == j->attempt.started))
        return;
    if (!p)
        p = VEC_INSERT(&l->jobs, position(l, r->id));
    *p = (struct placed){.id = r->id,
                         .attempt = j->attempt.number,
                         .since = j->attempt.started,
                         .step = STEP_NONE,
                         .due = mono_us(),
                         .pause = PAUSE_MIN};
    STR_COPY(p->key, key);
}

/* Telling */

static void tell(const struct question *q, int64_t tasks, const char *node, const char *list)
{
    struct event e = {.kind = EVENT_SIGNAL, .attempt = q->attempt};

    e.signal = signal_make(SIGNAL_LAYOUT, PROVENANCE_SCHEDULER);
    e.signal.layout = (struct layout_fact){.step = q->step, .tasks = tasks};
    STR_COPY(e.job, q->key);
    str_sanitize(e.signal.who.node, sizeof(e.signal.who.node), node, strlen(node));
    STR_COPY(e.signal.who.tasks, list);
    pump_input(q->of->d->pump, &e);
}

/* A list that is too long for one is told in several. */
static void tell_node(const struct question *q, int64_t tasks, const char *node, const char *list)
{
    char part[TASK_LIST_LEN];

    while (*list) {
        size_t n = strlen(list);

        if (n >= sizeof(part)) {
            for (n = sizeof(part) - 1; n > 0 && list[n] != ',';)
                n--;
            if (n == 0)
                return;
        }
        str_copy_n(part, sizeof(part), list, n);
        tell(q, tasks, node, part);
        list += n + (list[n] == ',');
    }
}

static void ask_waiting(struct layouts *l);

static bool is_list(const char *s)
{
    return s && s[strspn(s, "0123456789,-")] == '\0';
}

static void on_layout(void *ctx, enum adapter_outcome outcome, const json_t *answer,
                      const char *text)
{
    struct question *q = ctx;
    struct layouts *l = q->of;
    struct placed *p = find(l, q->id);
    const struct job *j = running(l, q->key);
    int64_t tasks = json_integer_value(json_object_get(answer, "n_tasks"));
    const json_t *nodes = json_object_get(answer, "nodes"), *name;
    size_t i;

    if (outcome == ADAPTER_DONE && j && j->attempt.number == q->attempt && p &&
        streq(p->key, q->key) && tasks > 0 && tasks <= INT32_MAX) {
        p->step = q->step;
        json_array_foreach (json_object_get(answer, "order"), i, name) {
            const char *node = json_string_value(name);
            const char *list = node ? json_string_value(json_object_get(nodes, node)) : NULL;

            if (i < NODES_MAX && is_list(list))
                tell_node(q, tasks, node, list);
        }
    }
    q->of = NULL;
    ask_waiting(l);
}

/* Asking */

/* Whether it was asked for. */
static bool ask_layout(struct layouts *l, const struct placed *p)
{
    char id[16], number[24];

    for (size_t i = 0; i < AT_ONCE; i++) {
        struct question *q = &l->questions[i];

        if (q->of)
            continue;
        *q = (struct question){.of = l, .id = p->id, .attempt = p->attempt, .step = p->biggest};
        STR_COPY(q->key, p->key);
        STR_PRINTF(id, "%" PRIu32, p->id);
        STR_PRINTF(number, "%" PRId64, p->biggest);
        adapter_ask(l->d->adapter,
                    json_pack("{s:s, s:s, s:s}", "op", "layout", "job", id, "step", number),
                    l->d->config->adapter.timeout, on_layout, q);
        return true;
    }
    return false;
}

static void ask_waiting(struct layouts *l)
{
    VEC_FOREACH (&l->jobs, p) {
        if (!p->wanted)
            continue;
        if (!ask_layout(l, p))
            return;
        p->wanted = false;
    }
}

static void note_step(struct layouts *l, const json_t *s)
{
    const char *job = json_string_value(json_object_get(s, "job"));
    const char *step = json_string_value(json_object_get(s, "step"));
    int64_t tasks = json_integer_value(json_object_get(s, "n_tasks"));
    struct placed *p;
    long long id, number;

    if (!job || !step || str_to_i64(job, &id) < 0 || id < 0 || id > UINT32_MAX ||
        str_to_i64(step, &number) < 0 || number < 0 || number > UINT32_MAX) /* "batch" */
        return;
    p = find(l, (uint32_t)id);
    if (p && (tasks > p->tasks || (tasks == p->tasks && number > p->biggest))) {
        p->biggest = number;
        p->tasks = tasks;
    }
}

static void on_steps(void *ctx, enum adapter_outcome outcome, const json_t *answer,
                     const char *text)
{
    struct layouts *l = ctx;
    usec_t now = mono_us();
    size_t i;
    const json_t *s;

    l->asking = false;
    if (outcome == ADAPTER_UNREACHABLE) /* what is due stays so; who says no, or hangs, is spared */
        return;
    VEC_FOREACH (&l->jobs, p) {
        p->biggest = STEP_NONE;
        p->tasks = 0;
    }
    json_array_foreach (json_object_get(answer, "steps"), i, s)
        note_step(l, s);
    VEC_FOREACH (&l->jobs, p) {
        bool is_new = p->biggest != STEP_NONE && p->biggest != p->step, due = p->due <= now;

        p->wanted = is_new && (due || p->wanted);
        if (!due)
            continue;
        p->due = now + p->pause;
        p->pause = 2 * p->pause < PAUSE_MAX ? 2 * p->pause : PAUSE_MAX;
    }
    ask_waiting(l);
}

void layouts_look(struct layouts *l)
{
    usec_t now = mono_us();
    bool due = false, young = false;

    for (size_t i = l->jobs.n; i-- > 0;) {
        const struct placed *p = &l->jobs.v[i];

        if (!running(l, p->key)) {
            VEC_REMOVE(&l->jobs, i);
        } else if (p->due <= now) {
            due = true;
            young |= p->pause < OLD;
        }
    }
    if (!due || l->asking || now < l->asked_at + (young ? STEPS_EVERY : OLD_EVERY))
        return;
    l->asking = true;
    l->asked_at = now;
    adapter_ask(l->d->adapter, json_pack("{s:s}", "op", "steps"), l->d->config->adapter.timeout,
                on_steps, l);
}
