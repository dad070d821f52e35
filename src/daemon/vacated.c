/* SPDX-License-Identifier: Apache-2.0 */

/* That no process of an attempt is left on a node is a fence, once the scheduler says that the
 * attempt is over: before, another step of it could follow. So it is remembered, until the agent of
 * that node tells of a process of it again, and it counts only while that agent is connected.
 * reknitd forgets it when it ends; then somebody else must say so, or the node comes back.
 *
 * The parts of a heterogeneous job may share a node, and each is told of by its own number. So of
 * such a job it is remembered, too, which of them were heard of there and are not gone. */

#include "daemon/daemon.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/vec.h"
#include "wire/node_message.h"

#include <stdlib.h>

#define VACATED_MAX 4096
#define LIVING_MAX  4096

struct tenant {
    char key[SCHED_KEY_LEN], node[NODE_NAME_LEN];
    uint32_t attempt;
    uint32_t part; /* the scheduler's number of it; that of the job, where it has but one */
};
typedef VEC(struct tenant) tenants; /* oldest first */

struct vacated {
    struct daemon *d;
    tenants gone;
    tenants living; /* of jobs of several parts alone */
    bool blind;     /* there were more: no such job is vouched for any more */
};

struct vacated *vacated_new(struct daemon *d)
{
    struct vacated *v = xnew(struct vacated);

    v->d = d;
    return v;
}

struct vacated *vacated_free(struct vacated *v)
{
    if (!v)
        return NULL;
    VEC_DONE(&v->gone);
    VEC_DONE(&v->living);
    free(v);
    return NULL;
}

/* The last attempt that core knows of the job of this number, if the message is about that, and not
 * about another job that had the number before. */
static const struct job *attempt_of(const struct vacated *v, const struct node_message *m)
{
    const char *key;
    const struct sched_job *r = sched_watch_find(v->d->sched, m->job, &key);
    const struct job *j = r && *key ? model_job(pump_model(v->d->pump), key) : NULL;

    if (!j || r->uid != m->uid || j->attempt.number != m->restart + 1 ||
        node_watch_is_older(v->d, m, key))
        return NULL;
    return j;
}

/* part 0: any. */
static size_t find(const tenants *list, const char *key, uint32_t attempt, const char *node,
                   uint32_t part)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct tenant *x = &list->v[i];

        if (x->attempt == attempt && (part == 0 || x->part == part) && streq(x->key, key) &&
            streq(x->node, node))
            return i;
    }
    return SIZE_MAX;
}

static void count_part(void *ctx, const struct sched_job *part)
{
    unsigned *n = ctx;

    (*n)++;
}

static bool has_parts(const struct vacated *v, const char *key)
{
    const struct sched_job *r = sched_watch_record(v->d->sched, key);
    unsigned n = 0;

    if (r)
        sched_watch_each_part(v->d->sched, r, count_part, &n);
    return n > 0;
}

static bool is_vacant(const struct vacated *v, const struct job *j, const char *node)
{
    uint32_t attempt = j->attempt.number;

    return find(&v->gone, j->name, attempt, node, 0) != SIZE_MAX &&
           find(&v->living, j->name, attempt, node, 0) == SIZE_MAX &&
           !(v->blind && has_parts(v, j->name));
}

/* Whether the scheduler has done with that attempt: what is over starts no further step. */
static bool is_over(const struct vacated *v, const struct job *j)
{
    const struct sched_job *r = sched_watch_record(v->d->sched, j->name);

    return r && (sched_has_ended(r->state) || r->restarts >= j->attempt.number);
}

static void tell_fenced(struct vacated *v, const struct job *j, const char *node)
{
    struct event e = {.kind = EVENT_FENCED, .attempt = j->attempt.number};

    STR_COPY(e.job, j->name);
    STR_COPY(e.fenced.node, node);
    STR_COPY(e.fenced.by, "the agent of that node");
    pump_input(v->d->pump, &e);
    sched_watch_poke(v->d->sched);
}

bool vacated_fences(struct vacated *v, const char *key, const char *node)
{
    const struct job *j = model_job(pump_model(v->d->pump), key);

    if (!j || !is_vacant(v, j, node) || !is_over(v, j))
        return false;
    tell_fenced(v, j, node);
    return true;
}

static void add(tenants *list, const struct job *j, const struct node_message *m)
{
    struct tenant *x = VEC_PUSH(list);

    *x = (struct tenant){.attempt = j->attempt.number, .part = m->job};
    STR_COPY(x->key, j->name);
    STR_COPY(x->node, m->node);
}

static void drop(tenants *list, const struct job *j, const struct node_message *m)
{
    size_t i = find(list, j->name, j->attempt.number, m->node, m->job);

    if (i != SIZE_MAX)
        VEC_REMOVE(list, i);
}

static void note_gone(struct vacated *v, const struct job *j, const struct node_message *m)
{
    drop(&v->living, j, m);
    if (find(&v->gone, j->name, j->attempt.number, m->node, m->job) != SIZE_MAX)
        return;
    if (v->gone.n == VACATED_MAX)
        VEC_REMOVE(&v->gone, 0);
    add(&v->gone, j, m);
    if (is_over(v, j) && streq(j->sched.look.lost_node, m->node) && is_vacant(v, j, m->node))
        tell_fenced(v, j, m->node);
}

static void note_life(struct vacated *v, const struct job *j, const struct node_message *m)
{
    drop(&v->gone, j, m);
    if (!has_parts(v, j->name) ||
        find(&v->living, j->name, j->attempt.number, m->node, m->job) != SIZE_MAX)
        return;
    if (v->living.n < LIVING_MAX)
        add(&v->living, j, m);
    else
        v->blind = true;
}

void vacated_message(struct vacated *v, const struct node_message *m)
{
    const struct job *j = m->job ? attempt_of(v, m) : NULL;

    if (!j)
        return;
    if (m->kind == NODE_MESSAGE_GONE)
        note_gone(v, j, m);
    else
        note_life(v, j, m);
}

static void forget(tenants *list, const char *key)
{
    for (size_t i = list->n; i-- > 0;)
        if (streq(list->v[i].key, key))
            VEC_REMOVE(list, i);
}

void vacated_forget(struct vacated *v, const char *key)
{
    forget(&v->gone, key);
    forget(&v->living, key);
}
