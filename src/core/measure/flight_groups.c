/* SPDX-License-Identifier: Apache-2.0 */

/* Each process numbers its groups for itself and may name them otherwise than its peers do; what
 * they have in common is their members. Where all ranks have the same number of groups with the
 * same members, the first of one is the first of the others, whatever they are called (groups are
 * made in the same order everywhere). Where they do not, the name decides. */

#include "core/measure/flight_groups.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <assert.h>

struct ref {
    uint32_t at, place, members;
    uint64_t key; /* among groups of these members */
    const char *name;
};

typedef VEC(struct ref) refs;

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Numbers as numbers: "9" before "10". */
static int compare_names(const char *a, const char *b)
{
    size_t la = strlen(a), lb = strlen(b);
    bool numbers = strspn(a, "0123456789") == la && strspn(b, "0123456789") == lb;

    if (numbers && la != lb)
        return compare_u64(la, lb);
    return strcmp(a, b);
}

static int by_rank(const void *va, const void *vb)
{
    const struct ref *a = va, *b = vb;
    int c = compare_u64(a->members, b->members);

    if (c == 0)
        c = compare_u64(a->at, b->at);
    return c ? c : compare_names(a->name, b->name);
}

static int by_group(const void *va, const void *vb)
{
    const struct ref *a = va, *b = vb;
    int c = compare_u64(a->members, b->members);

    if (c == 0)
        c = compare_u64(a->key, b->key);
    return c ? c : compare_u64(a->at, b->at);
}

/* ---- members that are not told ---- */

static bool is_world(const struct flight *f, const struct flight_place *p)
{
    return streq(flight_word(f, p->name), "0") || streq(flight_word(f, p->desc), "default_pg");
}

/* Old dumps do not list members. The group of all has all ranks up to the last that left a dump. */
static void assume_world(struct flight *f)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    uint32_t members = FLIGHT_NONE;

    VEC_FOREACH (&f->ranks, r)
        VEC_FOREACH (&r->places, p) {
            if (p->members != FLIGHT_NONE || !is_world(f, p))
                continue;
            for (int32_t i = 0; !text.len && i <= f->ranks.v[f->ranks.n - 1].rank; i++)
                strbuf_addf(&text, "%d ", i);
            if (members == FLIGHT_NONE)
                members = flight_members(f, text.s, text.len);
            p->members = members;
        }
}

/* ---- the same group ---- */

static void gather(struct flight *f, refs *all)
{
    for (uint32_t at = 0; at < f->ranks.n; at++)
        for (uint32_t i = 0; i < f->ranks.v[at].places.n; i++) {
            const struct flight_place *p = &f->ranks.v[at].places.v[i];

            *VEC_PUSH(all) = (struct ref){.at = at,
                                          .place = i,
                                          .members = p->members,
                                          .key = p->name,
                                          .name = flight_word(f, p->name)};
        }
}

static size_t run_of_rank(const struct ref *v, size_t n)
{
    size_t i = 1;

    while (i < n && v[i].at == v[0].at)
        i++;
    return i;
}

/* n groups of the same members, rank by rank. */
static void number_alike(struct ref *v, size_t n)
{
    size_t each = run_of_rank(v, n);

    for (size_t i = 0; i < n; i += each)
        if (run_of_rank(v + i, n - i) != each)
            return;
    for (size_t i = 0; i < n; i++)
        v[i].key = i % each;
}

static void find_keys(refs *all)
{
    for (size_t i = 0, n; i < all->n; i += n) {
        for (n = 1; i + n < all->n && all->v[i + n].members == all->v[i].members; n++)
            ;
        if (all->v[i].members != FLIGHT_NONE)
            number_alike(all->v + i, n);
    }
}

/* ---- members ---- */

static struct flight_member *add_member(struct flight_group *g, int32_t rank, uint32_t at,
                                        uint32_t place)
{
    struct flight_member *m = VEC_PUSH(&g->ranks);

    m->rank = rank;
    m->at = at;
    m->place = place;
    m->enqueued = FLIGHT_UNKNOWN;
    return m;
}

static uint32_t index_of_rank(const struct flight *f, int32_t rank)
{
    const struct flight_rank *r = flight_find_rank(f, rank);

    return r ? (uint32_t)(r - f->ranks.v) : FLIGHT_NONE;
}

/* v: the ranks of the group that know it, ascending; the others are members too. */
static void fill_members(const struct flight *f, struct flight_group *g, const struct ref *v,
                         size_t n)
{
    const struct intset *ranks;
    size_t i = 0;

    if (g->members == FLIGHT_NONE) {
        for (; i < n; i++)
            add_member(g, f->ranks.v[v[i].at].rank, v[i].at, v[i].place);
        return;
    }
    ranks = &f->members.v[g->members].ranks;
    for (size_t k = 0; k < ranks->n; k++) {
        while (i < n && f->ranks.v[v[i].at].rank < ranks->v[k])
            i++; /* says that it is in a group without itself */
        if (i < n && f->ranks.v[v[i].at].rank == ranks->v[k])
            add_member(g, ranks->v[k], v[i].at, v[i].place);
        else
            add_member(g, ranks->v[k], index_of_rank(f, ranks->v[k]), FLIGHT_NONE);
    }
}

/* A rank that has nothing open in a group does not say which of its own numbers is this group's;
 * its peers' number is, if no group of its own has it. */
static void borrow_number(struct flight *f, struct flight_group *g, int64_t local)
{
    VEC_FOREACH (&g->ranks, m) {
        struct flight_rank *r = m->place != FLIGHT_NONE ? &f->ranks.v[m->at] : NULL;
        bool taken = local < 0;

        if (!r || r->places.v[m->place].local >= 0)
            continue;
        VEC_FOREACH (&r->places, p)
            taken |= p->local == local;
        if (!taken)
            flight_rank_place_is(r, m->place, local);
    }
}

static void find_numbers(struct flight *f, struct flight_group *g)
{
    int64_t local = -1;

    VEC_FOREACH (&g->ranks, m) {
        int64_t l = m->place != FLIGHT_NONE ? f->ranks.v[m->at].places.v[m->place].local : -1;

        if (l >= 0 && local >= 0 && l != local)
            return; /* they do not agree */
        local = l >= 0 ? l : local;
    }
    borrow_number(f, g, local);
}

static void read_members(struct flight *f, struct flight_group *g, uint32_t index)
{
    VEC_FOREACH (&g->ranks, m)
        if (m->place != FLIGHT_NONE) {
            f->ranks.v[m->at].places.v[m->place].group = index;
            m->enqueued = f->ranks.v[m->at].places.v[m->place].enqueued;
        }
}

/* The first collective of each rank in each group that is unfinished: operations are in order. */
static void find_first(const struct flight *f, struct flight_judgement *j)
{
    for (uint32_t at = 0; at < f->ranks.n; at++) {
        const struct flight_rank *r = &f->ranks.v[at];
        uint32_t done = FLIGHT_NONE;

        VEC_FOREACH (&r->ops, op) {
            struct flight_group *g;
            size_t i;

            if (op->place == done || op->p2p || op->state == FLIGHT_COMPLETED)
                continue;
            done = op->place;
            if (r->places.v[op->place].group == FLIGHT_NONE)
                continue;
            g = &j->groups.v[r->places.v[op->place].group];
            i = VEC_BISECT(&g->ranks, m, m->rank < r->rank);
            assert(i < g->ranks.n && g->ranks.v[i].rank == r->rank);
            g->ranks.v[i].first = op;
        }
    }
}

void flight_groups_find(struct flight *f, struct flight_judgement *j)
{
    refs all = {0};

    if (f->ranks.n > 0)
        assume_world(f);
    gather(f, &all);
    if (all.n > 0)
        qsort(all.v, all.n, sizeof(all.v[0]), by_rank);
    find_keys(&all);
    if (all.n > 0)
        qsort(all.v, all.n, sizeof(all.v[0]), by_group);
    for (size_t i = 0, n; i < all.n; i += n) {
        const struct flight_place *p = &f->ranks.v[all.v[i].at].places.v[all.v[i].place];
        struct flight_group *g = VEC_PUSH(&j->groups);

        for (n = 1; i + n < all.n && all.v[i + n].members == all.v[i].members &&
                    all.v[i + n].key == all.v[i].key;
             n++)
            ;
        *g = (struct flight_group){
            .name = p->name, .desc = p->desc, .members = p->members, .front = -1, .differs_at = -1};
        fill_members(f, g, all.v + i, n);
        find_numbers(f, g);
        read_members(f, g, (uint32_t)(j->groups.n - 1));
    }
    find_first(f, j);
    VEC_DONE(&all);
}
