/* SPDX-License-Identifier: Apache-2.0 */
#include "core/measure/flight.h"

#include "base/str.h"

#include <assert.h>

void flight_done(struct flight *f)
{
    VEC_FOREACH (&f->ranks, r) {
        VEC_DONE(&r->places);
        VEC_DONE(&r->status);
        VEC_DONE(&r->ops);
    }
    VEC_FOREACH (&f->members, m) {
        intset_done(&m->ranks);
        free(m->text);
    }
    VEC_FOREACH (&f->names, n)
        free(*n);
    VEC_DONE(&f->ranks);
    VEC_DONE(&f->members);
    VEC_DONE(&f->members_sorted);
    VEC_DONE(&f->names);
    VEC_DONE(&f->names_sorted);
}

struct flight_rank *flight_add_rank(struct flight *f, int32_t rank)
{
    size_t i = VEC_BISECT(&f->ranks, r, r->rank < rank);
    struct flight_rank *added;

    if (rank < 0 || f->ranks.n >= FLIGHT_RANKS_MAX ||
        (i < f->ranks.n && f->ranks.v[i].rank == rank))
        return NULL;
    added = VEC_INSERT(&f->ranks, i);
    added->rank = rank;
    return added;
}

const struct flight_rank *flight_find_rank(const struct flight *f, int32_t rank)
{
    size_t i = VEC_BISECT(&f->ranks, r, r->rank < rank);

    return i < f->ranks.n && f->ranks.v[i].rank == rank ? &f->ranks.v[i] : NULL;
}

uint32_t flight_name(struct flight *f, const char *s, size_t len)
{
    char clean[128];
    size_t i;

    str_sanitize(clean, sizeof(clean), s, len < sizeof(clean) ? len : sizeof(clean) - 1);
    i = VEC_BISECT(&f->names_sorted, n, strcmp(f->names.v[*n], clean) < 0);
    if (i < f->names_sorted.n && streq(f->names.v[f->names_sorted.v[i]], clean))
        return f->names_sorted.v[i];
    if (f->names.n >= FLIGHT_NAMES_MAX) {
        f->dropped++;
        return FLIGHT_NONE;
    }
    *VEC_PUSH(&f->names) = xstrdup(clean);
    *VEC_INSERT(&f->names_sorted, i) = (uint32_t)(f->names.n - 1);
    return (uint32_t)(f->names.n - 1);
}

/* Process groups have their ranks in order; what has many out of it would take long to sort in. */
#define DISORDER_MAX 4096

static bool parse_members(struct intset *s, const char *text, size_t len)
{
    size_t i = 0, disorder = 0;

    while (i < len) {
        int64_t v = 0;
        size_t from;

        while (i < len && strchr("[], ", text[i]))
            i++;
        for (from = i; i < len && text[i] >= '0' && text[i] <= '9' && v < FLIGHT_RANKS_MAX; i++)
            v = 10 * v + (text[i] - '0');
        if (i == from && i < len)
            return false;
        if (i > from && s->n > 0 && v < s->v[s->n - 1] && ++disorder > DISORDER_MAX)
            return false;
        if (i > from && (v >= FLIGHT_RANKS_MAX || !intset_add(s, (int32_t)v)))
            return false;
    }
    return s->n > 0;
}

static int compare_members(const struct flight_members *m, const char *text, size_t len)
{
    if (m->len != len)
        return m->len < len ? -1 : 1;
    return memcmp(m->text, text, len);
}

/* Every dump repeats these lists, long ones too, so each is read once. */
uint32_t flight_members(struct flight *f, const char *text, size_t len)
{
    size_t i = VEC_BISECT(&f->members_sorted, m, compare_members(&f->members.v[*m], text, len) < 0);
    struct intset ranks = {0};

    if (i < f->members_sorted.n &&
        compare_members(&f->members.v[f->members_sorted.v[i]], text, len) == 0)
        return f->members_sorted.v[i];
    if (f->members.n >= FLIGHT_MEMBERS_MAX || len > FLIGHT_MEMBERS_BYTES_MAX - f->members_bytes ||
        !parse_members(&ranks, text, len)) {
        intset_done(&ranks);
        f->dropped++;
        return FLIGHT_NONE;
    }
    f->members_bytes += len;
    *VEC_PUSH(&f->members) =
        (struct flight_members){.text = xmemdup(text, len), .len = len, .ranks = ranks};
    *VEC_INSERT(&f->members_sorted, i) = (uint32_t)(f->members.n - 1);
    return (uint32_t)(f->members.n - 1);
}

uint32_t flight_find_place(const struct flight_rank *r, uint32_t name)
{
    VEC_FOREACH (&r->places, p)
        if (p->name == name)
            return (uint32_t)(p - r->places.v);
    return FLIGHT_NONE;
}

uint32_t flight_add_place(struct flight *f, struct flight_rank *r, uint32_t name, uint32_t desc,
                          uint32_t members)
{
    if (r->places.n >= FLIGHT_PLACES_MAX || name == FLIGHT_NONE) {
        f->dropped++;
        return FLIGHT_NONE;
    }
    *VEC_PUSH(&r->places) = (struct flight_place){
        .name = name,
        .desc = desc,
        .members = members,
        .local = -1,
        .group = FLIGHT_NONE,
        .enqueued = FLIGHT_UNKNOWN,
        .completed = FLIGHT_UNKNOWN,
    };
    return (uint32_t)(r->places.n - 1);
}

/* ---- settling ---- */

static int compare_int(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_op(const void *va, const void *vb)
{
    const struct flight_op *a = va, *b = vb;
    int c = compare_int(a->place, b->place);

    if (c == 0)
        c = compare_int(a->seq, b->seq);
    return c ? c : compare_int(a->order, b->order);
}

/* Of operations that were put together into one, only that one is seen to end. */
static void spread_batch(struct flight_op *ops, size_t n)
{
    const struct flight_op *batch = NULL;

    for (size_t i = 0; i < n; i++)
        batch = ops[i].batch ? &ops[i] : batch;
    for (size_t i = 0; batch && i < n; i++) {
        ops[i].state = batch->state;
        ops[i].order = ops[0].order;
    }
}

/* Whether sends and receives of this place have numbers of their own, which its status then mixes
 * with those of collectives, so that it tells nothing. */
static bool counts_apart(const struct flight_op *ops, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (ops[i].p2p && ops[i - 1].p2p && ops[i].seq == ops[i - 1].seq &&
            ops[i].p2p_seq != ops[i - 1].p2p_seq)
            return true;
    return false;
}

void flight_rank_place_is(struct flight_rank *r, uint32_t place, int64_t local)
{
    struct flight_place *p = &r->places.v[place];

    p->local = local;
    VEC_FOREACH (&r->status, s)
        if (s->local == local) {
            p->enqueued = s->enqueued;
            p->completed = s->completed;
        }
}

static void settle_place(struct flight_rank *r, uint32_t place, struct flight_op *ops, size_t n)
{
    struct flight_place *p = &r->places.v[place];
    bool apart = counts_apart(ops, n);

    if (!apart && p->local >= 0)
        flight_rank_place_is(r, place, p->local);
    for (size_t i = 0, m; i < n; i += m) {
        for (m = 1; i + m < n && ops[i + m].seq == ops[i].seq; m++)
            ;
        spread_batch(ops + i, m);
    }
    for (size_t i = 0; i < n; i++) {
        if (!ops[i].p2p && ops[i].seq < p->completed) /* seen as part of something else */
            ops[i].state = FLIGHT_COMPLETED;
        if (!ops[i].p2p || !apart)
            p->enqueued = ops[i].seq > p->enqueued ? ops[i].seq : p->enqueued;
        p->mixed |= ops[i].p2p && !apart;
    }
}

/* How many of n go before the i-th of those that stay; ops are in order. */
static size_t keep_place(struct flight_op *to, const struct flight_op *ops, size_t n)
{
    size_t done = 0, open = 0, kept = 0;

    for (size_t i = 0; i < n; i++)
        done += ops[i].state == FLIGHT_COMPLETED;
    for (size_t i = 0; i < n; i++) {
        bool is_done = ops[i].state == FLIGHT_COMPLETED;

        if (is_done ? done-- <= FLIGHT_DONE_MAX : open++ < FLIGHT_OPEN_MAX)
            to[kept++] = ops[i];
    }
    return kept;
}

static int compare_status(const void *va, const void *vb)
{
    const struct flight_status *a = va, *b = vb;

    return compare_int(a->local, b->local);
}

struct named {
    long long number;
    uint32_t place;
};

static int compare_named(const void *va, const void *vb)
{
    const struct named *a = va, *b = vb;

    return compare_int(a->number, b->number);
}

/* Names and own numbers both count up as groups are made, so where a dump has as many of one as of
 * the other, the n-th belong together; unless an operation says otherwise. */
static void number_places(const struct flight *f, struct flight_rank *r)
{
    VEC(struct named) named = {0};
    bool fits = r->places.n == r->status.n && r->places.n > 0;

    for (uint32_t i = 0; fits && i < r->places.n; i++) {
        struct named *n = VEC_PUSH(&named);

        n->place = i;
        fits = str_to_i64(flight_word(f, r->places.v[i].name), &n->number) == 0;
    }
    if (fits) {
        qsort(named.v, named.n, sizeof(named.v[0]), compare_named);
        qsort(r->status.v, r->status.n, sizeof(r->status.v[0]), compare_status);
    }
    for (size_t i = 0; fits && i < named.n; i++) {
        int64_t local = r->places.v[named.v[i].place].local;

        fits = local < 0 || local == r->status.v[i].local;
    }
    for (size_t i = 0; fits && i < named.n; i++)
        r->places.v[named.v[i].place].local = r->status.v[i].local;
    VEC_DONE(&named);
}

void flight_rank_settle(const struct flight *f, struct flight_rank *r)
{
    size_t kept = 0;

    if (r->ops.n > 0)
        qsort(r->ops.v, r->ops.n, sizeof(r->ops.v[0]), compare_op);
    number_places(f, r);
    for (uint32_t p = 0, i = 0, n; p < r->places.n; p++, i += n) {
        for (n = 0; i + n < r->ops.n && r->ops.v[i + n].place == p; n++)
            ;
        settle_place(r, p, r->ops.v + i, n);
        kept += keep_place(r->ops.v + kept, r->ops.v + i, n);
    }
    r->ops.n = kept;
    if (kept > 0) {
        r->ops.v = xreallocarray(r->ops.v, kept, sizeof(r->ops.v[0]));
        r->ops.cap = kept;
    }
}
