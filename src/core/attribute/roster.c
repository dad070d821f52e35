/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/roster.h"

#include "base/str.h"

#include <stdlib.h>

/* The first statement about a rank wins: later ones come from failing processes. Nodes are looked
 * up by a linear search; the number of distinct names is bounded. */

void roster_done(struct roster *r)
{
    intset_done(&r->ranks);
    VEC_DONE(&r->places);
    VEC_FOREACH (&r->nodes, n)
        free(*n);
    VEC_DONE(&r->nodes);
    VEC_DONE(&r->addresses);
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

static struct place *place_of(struct roster *r, int32_t rank)
{
    while (r->places.n <= (size_t)rank)
        VEC_PUSH(&r->places)->node = -1;
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

void roster_add(struct roster *r, const struct entity *who)
{
    struct place *p;

    if (*who->address && *who->node)
        add_address(r, who);

    if (who->rank < 0 || who->rank >= ROSTER_RANKS)
        return;
    intset_add(&r->ranks, who->rank);
    if (!*who->node && !*who->device)
        return;
    p = place_of(r, who->rank);
    if (p->node < 0 && *who->node)
        p->node = node_index(r, who->node);
    if (!*p->device && *who->device)
        STR_COPY(p->device, who->device);
}

static const struct place *find_place(const struct roster *r, int32_t rank)
{
    return rank >= 0 && (size_t)rank < r->places.n ? &r->places.v[rank] : NULL;
}

const char *roster_node(const struct roster *r, int32_t rank)
{
    const struct place *p = find_place(r, rank);

    return p && p->node >= 0 ? r->nodes.v[p->node] : NULL;
}

const char *roster_device(const struct roster *r, int32_t rank)
{
    const struct place *p = find_place(r, rank);

    return p && *p->device ? p->device : NULL;
}
