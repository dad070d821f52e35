/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/roster.h"

#include "base/str.h"

#include <stdlib.h>

/* The first statement about a rank wins: later ones come from failing processes. Nodes are looked
 * up by a linear search; the number of distinct names is bounded.
 *
 * Where a rank itself never says on which node it is, the scheduler's list of tasks may: but a
 * task is a rank only where nothing stands between them. With a launcher for each node there is one
 * task a node, so lists of several tasks show that there is none, and so does one rank for each
 * task. Ranks beyond the last task, and second ones of a node with one task, show that there are
 * launchers; then what the scheduler says of a task says nothing of the rank of that number. */

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
        *VEC_PUSH(&r->places) =
            (struct roster_place){.node = -1, .local_rank = RANK_NONE, .task = -1};
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

static void forget_tasks(struct roster *r)
{
    VEC_FOREACH (&r->tasks, t)
        intset_clear(&t->tasks);
    r->task_lists = 0;
}

void roster_add_layout(struct roster *r, const struct layout_fact *layout, const struct entity *who)
{
    if (r->n_tasks == 0 || r->step != layout->step)
        forget_tasks(r);
    r->step = layout->step;
    r->n_tasks = (int32_t)layout->tasks;
    if (*who->node && *who->tasks)
        add_tasks(r, who);
}

void roster_add(struct roster *r, const struct entity *who)
{
    struct roster_place *p;

    if (*who->address && *who->node)
        add_address(r, who);
    if (*who->tasks && *who->node && r->n_tasks == 0)
        add_tasks(r, who);
    r->has_locals |= who->local_rank > 0;
    if (*who->node)
        node_index(r, who->node);

    if (who->rank < 0 || who->rank >= ROSTER_RANKS)
        return;
    intset_add(&r->ranks, who->rank);
    if (!*who->node && !*who->device && who->pid == 0 && who->local_rank == RANK_NONE &&
        who->label == 0)
        return;
    p = place_of(r, who->rank);
    if (p->pid == 0)
        p->pid = who->pid;
    if (p->node < 0 && *who->node)
        p->node = node_index(r, who->node);
    if (p->local_rank == RANK_NONE)
        p->local_rank = who->local_rank;
    if (p->task < 0 && who->label > 0)
        p->task = (int32_t)(who->label - 1);
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

/* What the lists say together. */
struct task_count {
    int32_t all; /* 0 = some are not listed */
    bool one_each;
};

static struct task_count count_tasks(const struct roster *r)
{
    struct task_count c = {.one_each = true};
    size_t n = 0;
    int32_t last = -1;

    VEC_FOREACH (&r->tasks, t) {
        c.one_each &= t->tasks.n <= 1;
        n += t->tasks.n;
        if (t->tasks.n > 0 && t->tasks.v[t->tasks.n - 1] > last)
            last = t->tasks.v[t->tasks.n - 1];
    }
    if (r->n_tasks > 0)
        c.all = r->n_tasks;
    else if (c.one_each && n == (size_t)last + 1)
        c.all = (int32_t)n;
    c.one_each &= n > 0;
    return c;
}

static int32_t last_rank(const struct roster *r)
{
    return r->ranks.n > 0 ? r->ranks.v[r->ranks.n - 1] : RANK_NONE;
}

bool roster_has_launchers(const struct roster *r)
{
    struct task_count c = count_tasks(r);

    return (c.all > 0 && last_rank(r) >= c.all) || (c.one_each && r->has_locals);
}

static bool tasks_are_ranks(const struct roster *r)
{
    struct task_count c = count_tasks(r);

    if (roster_has_launchers(r))
        return false;
    return !c.one_each || (c.all > 1 && r->ranks.n == (size_t)c.all);
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
    if (p && p->task >= 0)
        return node_of_task(r, p->task);
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

/* Of a list of tasks on one node, no. */
static int32_t rank_of_task(const struct roster *r, const struct entity *who)
{
    long long task;

    if (!*who->node || !*who->tasks || str_to_i64(who->tasks, &task) < 0 || task < 0 ||
        task >= ROSTER_RANKS || roster_has_launchers(r))
        return RANK_NONE;
    return (int32_t)task;
}

int32_t roster_rank_of(const struct roster *r, const struct entity *who)
{
    int32_t rank = who->rank;

    if (rank == RANK_NONE)
        rank = rank_of_process(r, who);
    if (rank == RANK_NONE)
        rank = rank_of_task(r, who);
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
