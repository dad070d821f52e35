/* SPDX-License-Identifier: Apache-2.0 */

/* That no process of an attempt is left on a node is a fence, once the scheduler says that the
 * attempt is over: before, another step of it could follow. So it is remembered, until the agent of
 * that node tells of a process of it again, and it counts only while that agent is connected.
 * reknitd forgets it when it ends; then somebody else must say so, or the node comes back. */

#include "daemon/daemon.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/vec.h"
#include "wire/node_message.h"

#include <stdlib.h>

#define VACATED_MAX 4096

struct vacancy {
    char key[SCHED_KEY_LEN], node[NODE_NAME_LEN];
    uint32_t attempt;
};

struct vacated {
    struct daemon *d;
    VEC(struct vacancy) list; /* oldest first */
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
    VEC_DONE(&v->list);
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

static size_t find(const struct vacated *v, const char *key, uint32_t attempt, const char *node)
{
    for (size_t i = 0; i < v->list.n; i++) {
        const struct vacancy *x = &v->list.v[i];

        if (x->attempt == attempt && streq(x->key, key) && streq(x->node, node))
            return i;
    }
    return SIZE_MAX;
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

    if (!j || find(v, key, j->attempt.number, node) == SIZE_MAX || !is_over(v, j))
        return false;
    tell_fenced(v, j, node);
    return true;
}

static void note_gone(struct vacated *v, const struct job *j, const char *node)
{
    struct vacancy x = {.attempt = j->attempt.number};

    if (v->list.n == VACATED_MAX)
        VEC_REMOVE(&v->list, 0);
    STR_COPY(x.key, j->name);
    STR_COPY(x.node, node);
    *VEC_PUSH(&v->list) = x;
    if (is_over(v, j) && streq(j->sched.look.lost_node, node))
        tell_fenced(v, j, node);
}

void vacated_message(struct vacated *v, const struct node_message *m)
{
    const struct job *j = m->job ? attempt_of(v, m) : NULL;
    size_t i = j ? find(v, j->name, j->attempt.number, m->node) : SIZE_MAX;

    if (!j)
        return;
    if (m->kind == NODE_MESSAGE_GONE && i == SIZE_MAX)
        note_gone(v, j, m->node);
    else if (m->kind != NODE_MESSAGE_GONE && i != SIZE_MAX)
        VEC_REMOVE(&v->list, i);
}

void vacated_forget(struct vacated *v, const char *key)
{
    for (size_t i = v->list.n; i-- > 0;)
        if (streq(v->list.v[i].key, key))
            VEC_REMOVE(&v->list, i);
}
