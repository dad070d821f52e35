/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/roster.h"

#include "base/str.h"

#include <stdlib.h>

/* The first statement about a rank wins: later ones come from failing processes. Nodes are looked
 * up by a linear search; the number of distinct names is bounded.
 *
 * Where a rank itself never says on which node it is, the scheduler's list of tasks may: but a
 * task is a rank only where nothing stands between them. With a launcher for each node there is one
 * task a node, so lists of several tasks show that there is none. */

void roster_done(struct roster *r)
{
    intset_done(&r->ranks);
    VEC_DONE(&r->places);
    VEC_FOREACH (&r->nodes, n)
        free(*n);
    VEC_DONE(&r->nodes);
    VEC_DONE(&r->addresses);
    VEC_FOREACH (&r->tasks, t)
        intset_done(&t->tasks);
    VEC_DONE(&r->tasks);
}

static int32_t node_index(struct roster *r, const char *name)
{
    for (size_t i = 0; i < r->nodes.n; i++)
        if (streq(r->nodes.v[i], name))
            return (int32_t)i;
    if (r->nodes.n == ROSTER_NODES)
        return -1;
    *VEC_PUSH(&r->nodes) = xstrdup(name);
    return (int32_t)r->nodes.n - 1;
}

static struct roster_place *place_of(struct roster *r, int32_t rank)
{
    while (r->places.n <= (size_t)rank)
        *VEC_PUSH(&r->places) = (struct roster_place){.node = -1, .local_rank = RANK_NONE};
    return &r->places.v[rank];
}

const char *roster_node_at(const struct roster *r, const char *address)
{
    VEC_FOREACH (&r->addresses, a)
        if (streq(a->address, address))
            return r->nodes.v[a->node];
    return NULL;
}

static void add_address(struct roster *r, const struct entity *who)
{
    struct own_address *a;
    int32_t node;

    if (r->addresses.n == ROSTER_NODES || roster_node_at(r, who->address))
        return;
    node = node_index(r, who->node);
    if (node < 0)
        return;
    a = VEC_PUSH(&r->addresses);
    a->node = node;
    STR_COPY(a->address, who->address);
}

static struct node_tasks *tasks_of(struct roster *r, int32_t node)
{
    VEC_FOREACH (&r->tasks, t)
        if (t->node == node)
            return t;
    VEC_PUSH(&r->tasks)->node = node;
    return &r->tasks.v[r->tasks.n - 1];
}

/* A node's tasks often end in several groups, and each is listed. */
static void add_tasks(struct roster *r, const struct entity *who)
{
    struct node_tasks *t;
    int32_t node = node_index(r, who->node);

    if (node < 0 || r->task_lists++ >= ROSTER_TASK_LISTS)
        return;
    t = tasks_of(r, node);
    if (intset_parse(&t->tasks, who->tasks) < 0)
        intset_clear(&t->tasks); /* cut off */
}

void roster_add(struct roster *r, const struct entity *who)
{
    struct roster_place *p;

    if (*who->address && *who->node)
        add_address(r, who);
    if (*who->tasks && *who->node)
        add_tasks(r, who);
    if (*who->node)
        node_index(r, who->node);

    if (who->rank < 0 || who->rank >= ROSTER_RANKS)
        return;
    intset_add(&r->ranks, who->rank);
    if (!*who->node && !*who->device && who->pid == 0 && who->local_rank == RANK_NONE)
        return;
    p = place_of(r, who->rank);
    if (p->pid == 0)
        p->pid = who->pid;
    if (p->node < 0 && *who->node)
        p->node = node_index(r, who->node);
    if (p->local_rank == RANK_NONE)
        p->local_rank = who->local_rank;
    if (!*p->device && *who->device)
        STR_COPY(p->device, who->device);
}

/* A job that was started on another number of nodes after that is another job. */
void roster_add_size(struct roster *r, int32_t nodes)
{
    if (nodes > 0)
        r->told_nodes = nodes;
}

bool roster_is_alone(const struct roster *r)
{
    return r->ranks.n == 0 || (r->ranks.n == 1 && r->ranks.v[0] == 0);
}

static const struct roster_place *find_place(const struct roster *r, int32_t rank)
{
    return rank >= 0 && (size_t)rank < r->places.n ? &r->places.v[rank] : NULL;
}

static bool tasks_are_ranks(const struct roster *r)
{
    VEC_FOREACH (&r->tasks, t)
        if (t->tasks.n > 1)
            return true;
    return false;
}

static const char *node_of_task(const struct roster *r, int32_t task)
{
    VEC_FOREACH (&r->tasks, t)
        if (intset_has(&t->tasks, task))
            return r->nodes.v[t->node];
    return NULL;
}

const char *roster_node(const struct roster *r, int32_t rank)
{
    const struct roster_place *p = find_place(r, rank);

    if (p && p->node >= 0)
        return r->nodes.v[p->node];
    return rank >= 0 && tasks_are_ranks(r) ? node_of_task(r, rank) : NULL;
}

/* A number of a process means something on its own node only. */
static bool may_be_on(const struct roster *r, const struct roster_place *p, const char *node)
{
    return p->node < 0 || !*node || streq(r->nodes.v[p->node], node);
}

static int32_t rank_of_process(const struct roster *r, const struct entity *who)
{
    int32_t found = RANK_NONE;

    if (who->pid == 0)
        return RANK_NONE;
    VEC_FOREACH (&r->places, p) {
        if (p->pid != who->pid || !may_be_on(r, p, who->node))
            continue;
        if (found != RANK_NONE)
            return RANK_NONE;
        found = (int32_t)(p - r->places.v);
    }
    return found;
}

/* Counted from the first one on the node, where that and the node's tasks are known. */
static int32_t rank_of_nth(const struct roster *r, const char *node, int32_t nth)
{
    VEC_FOREACH (&r->tasks, t) {
        if (!streq(r->nodes.v[t->node], node))
            continue;
        for (size_t i = 0; i < t->tasks.n; i++) {
            int32_t first = t->tasks.v[i];

            if ((size_t)first < r->places.n && r->places.v[first].node == t->node &&
                r->places.v[first].local_rank == 0 && i + (size_t)nth < t->tasks.n &&
                t->tasks.v[i + (size_t)nth] == first + nth)
                return first + nth;
        }
    }
    return RANK_NONE;
}

static int32_t rank_of_local(const struct roster *r, const struct entity *who)
{
    if (who->local_rank == RANK_NONE)
        return RANK_NONE;
    if (r->told_nodes == 1 && r->nodes.n < 2)
        return who->local_rank;
    VEC_FOREACH (&r->places, p)
        if (*who->node && p->node >= 0 && p->local_rank == who->local_rank &&
            streq(r->nodes.v[p->node], who->node))
            return (int32_t)(p - r->places.v);
    return *who->node ? rank_of_nth(r, who->node, who->local_rank) : RANK_NONE;
}

int32_t roster_rank_of(const struct roster *r, const struct entity *who)
{
    int32_t rank = who->rank;

    if (rank == RANK_NONE)
        rank = rank_of_process(r, who);
    return rank != RANK_NONE ? rank : rank_of_local(r, who);
}

const char *roster_node_of(const struct roster *r, const struct entity *who)
{
    return *who->node ? who->node : roster_node(r, roster_rank_of(r, who));
}

const char *roster_device(const struct roster *r, int32_t rank)
{
    const struct roster_place *p = find_place(r, rank);

    return p && *p->device ? p->device : NULL;
}
