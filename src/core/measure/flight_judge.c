/* SPDX-License-Identifier: Apache-2.0 */
#include "core/measure/flight_judge.h"

#include "base/hash.h"
#include "base/str.h"
#include "core/measure/flight_groups.h"

#include <stdlib.h>

static const char *const verdict_names[FLIGHT_VERDICT_MAX] = {
    [FLIGHT_COMPLETE] = "complete", [FLIGHT_STALL] = "stall",   [FLIGHT_DESYNC] = "desync",
    [FLIGHT_DEADLOCK] = "deadlock", [FLIGHT_INSIDE] = "inside", [FLIGHT_UNCLEAR] = "unclear",
};
DEFINE_NAMES(flight_verdict, enum flight_verdict, verdict_names);

static const char *const reason_names[FLIGHT_REASON_MAX] = {
    [FLIGHT_CPU] = "cpu",
    [FLIGHT_GPU] = "gpu",
    [FLIGHT_NODUMP] = "no_dump",
    [FLIGHT_DIFFERS] = "desync",
};
DEFINE_NAMES(flight_reason, enum flight_reason, reason_names);

void flight_judgement_done(struct flight_judgement *j)
{
    VEC_FOREACH (&j->groups, g)
        VEC_DONE(&g->ranks);
    VEC_DONE(&j->groups);
    VEC_DONE(&j->culprits);
    intset_done(&j->missing);
    intset_done(&j->unread);
    intset_done(&j->idle);
    intset_done(&j->circle);
}

/* ---- different things under one number ---- */

/* What a rank asked for under one number: several things where they were put together. */
struct asked {
    int64_t seq;
    uint64_t what, shape;
    uint32_t n, member, name;
    bool open;
};

typedef VEC(struct asked) asked_list;

static int by_seq(const void *va, const void *vb)
{
    const struct asked *a = va, *b = vb;

    if (a->seq != b->seq)
        return a->seq < b->seq ? -1 : 1;
    return (a->member > b->member) - (a->member < b->member);
}

static void add_asked(asked_list *list, const struct flight_op *op, uint32_t member)
{
    struct asked *a = list->n > 0 ? &list->v[list->n - 1] : NULL;

    if (!a || a->member != member || a->seq != op->seq) {
        a = VEC_PUSH(list);
        *a = (struct asked){.seq = op->seq, .member = member, .name = op->what};
        a->what = a->shape = HASH_INIT;
    }
    a->n++;
    a->open |= op->state != FLIGHT_COMPLETED;
    a->what = hash_bytes(a->what, &op->what, sizeof(op->what));
    a->shape = hash_bytes(a->shape, &op->shape, sizeof(op->shape));
}

/* Operations are by place: those of one lie together. */
static void gather_asked(const struct flight *f, const struct flight_group *g, asked_list *list)
{
    VEC_FOREACH (&g->ranks, m) {
        const struct flight_rank *r = m->place != FLIGHT_NONE ? &f->ranks.v[m->at] : NULL;

        if (!r)
            continue;
        for (size_t i = VEC_BISECT(&r->ops, op, op->place < m->place);
             i < r->ops.n && r->ops.v[i].place == m->place; i++)
            if (!r->ops.v[i].p2p)
                add_asked(list, &r->ops.v[i], (uint32_t)(m - g->ranks.v));
    }
    if (list->n > 0)
        qsort(list->v, list->n, sizeof(list->v[0]), by_seq);
}

/* A difference of sizes that all got over did no harm. */
static bool same(const struct asked *a, const struct asked *b, bool open)
{
    return a->n != b->n || (a->what == b->what && (!open || a->shape == b->shape));
}

/* The one that more than half of n agree with; NULL: none. */
static const struct asked *majority(const struct asked *v, size_t n, bool open)
{
    for (size_t i = 0; i < n && i < 8; i++) {
        size_t like = 0;

        for (size_t k = 0; k < n; k++)
            like += same(&v[i], &v[k], open);
        if (2 * like > n)
            return &v[i];
    }
    return NULL;
}

static bool agree(const struct asked *v, size_t n, bool *ret_open)
{
    bool open = false;

    for (size_t i = 0; i < n; i++)
        open |= v[i].open;
    *ret_open = open;
    for (size_t i = 1; i < n; i++)
        if (!same(&v[0], &v[i], open))
            return false;
    return true;
}

static void blame_different(const struct flight_group *g, struct flight_judgement *j,
                            uint32_t group, const struct asked *v, size_t n, bool open)
{
    const struct asked *most = majority(v, n, open);

    for (size_t i = 0; most && i < n; i++)
        if (!same(most, &v[i], open))
            *VEC_PUSH(&j->culprits) = (struct flight_culprit){
                .rank = g->ranks.v[v[i].member].rank,
                .reason = FLIGHT_DIFFERS,
                .group = group,
                .what = v[i].name,
                .seq = v[i].seq,
                .own = v[i].seq,
                .waiter = g->ranks.v[most->member].rank,
            };
}

static bool counts_messages(const struct flight *f, const struct flight_group *g)
{
    VEC_FOREACH (&g->ranks, m)
        if (m->place != FLIGHT_NONE && f->ranks.v[m->at].places.v[m->place].mixed)
            return true;
    return false;
}

/* Where messages count on the same numbers, ranks that send more than others are at other numbers:
 * then different things under one number mean that numbers cannot be compared. */
void flight_group_check(const struct flight *f, struct flight_judgement *j, uint32_t group)
{
    struct flight_group *g = &j->groups.v[group];
    asked_list list = {0};
    bool open;

    gather_asked(f, g, &list);
    for (size_t i = 0, n; i < list.n && g->differs_at < 0; i += n) {
        for (n = 1; i + n < list.n && list.v[i + n].seq == list.v[i].seq; n++)
            ;
        if (agree(list.v + i, n, &open))
            continue;
        g->differs_at = list.v[i].seq;
        if (!counts_messages(f, g))
            blame_different(g, j, group, list.v + i, n, open);
    }
    VEC_DONE(&list);
    if (g->differs_at >= 0 && counts_messages(f, g)) {
        g->differs_at = g->front = -1;
        g->waiting = g->behind = 0;
    }
}

/* ---- the whole ---- */

static void count_ranks(const struct flight *f, struct flight_judgement *j)
{
    struct intset all = {0};

    VEC_FOREACH (&f->members, m)
        intset_union(&all, &m->ranks);
    for (size_t i = 0; i < all.n; i++)
        if (!flight_find_rank(f, all.v[i]))
            intset_add(&j->missing, all.v[i]);
    VEC_FOREACH (&f->ranks, r) {
        bool open = r->unread;

        VEC_FOREACH (&r->ops, op)
            open |= op->state != FLIGHT_COMPLETED;
        if (!open)
            intset_add(&j->idle, r->rank);
        if (r->unread)
            intset_add(&j->unread, r->rank);
    }
    j->too_few = j->missing.n > f->ranks.n;
    intset_done(&all);
}

static int by_rank(const void *va, const void *vb)
{
    const struct flight_culprit *a = va, *b = vb;

    return (a->rank > b->rank) - (a->rank < b->rank);
}

static bool is_desync(const struct flight *f, struct flight_judgement *j)
{
    bool found = false;
    size_t kept = 0;

    for (uint32_t i = 0; i < j->groups.n; i++)
        if (j->groups.v[i].front >= 0) {
            flight_group_check(f, j, i);
            found |= j->groups.v[i].root = j->groups.v[i].differs_at >= 0;
        }
    if (j->culprits.n > 0)
        qsort(j->culprits.v, j->culprits.n, sizeof(j->culprits.v[0]), by_rank);
    for (size_t i = 0; i < j->culprits.n; i++)
        if (i == 0 || j->culprits.v[i].rank != j->culprits.v[i - 1].rank)
            j->culprits.v[kept++] = j->culprits.v[i];
    j->culprits.n = kept;
    return found;
}

static enum flight_verdict verdict_of(const struct flight *f, const struct flight_judgement *j)
{
    bool open = j->idle.n + j->unread.n < f->ranks.n, whole = !j->unread.n && !j->missing.n;

    if (j->culprits.n > 0)
        return FLIGHT_STALL;
    if (j->inside && whole)
        return FLIGHT_INSIDE;
    if (j->circle.n > 0)
        return FLIGHT_DEADLOCK;
    return open || !whole ? FLIGHT_UNCLEAR : FLIGHT_COMPLETE;
}

/* The strictest way first. Messages have no numbers that two ranks share, so what they say of who
 * waits may be wrong, and then it excuses everybody; but late ranks alone, without what they say,
 * prove something only of ranks that have nothing open. */
static void follow(const struct flight *f, struct flight_judgement *j)
{
    static const struct {
        bool with_p2p, strict;
    } ways[] = {{true, true}, {false, true}, {true, false}};

    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        flight_waits_follow(f, j, ways[i].with_p2p, ways[i].strict);
        if (j->culprits.n > 0 || (j->inside && ways[i].with_p2p))
            return;
    }
    flight_waits_circle(f, j);
}

void flight_judge(struct flight *f, struct flight_judgement *ret)
{
    memset(ret, 0, sizeof(*ret));
    flight_groups_find(f, ret);
    count_ranks(f, ret);
    VEC_FOREACH (&ret->groups, g)
        flight_group_compare(f, g);
    if (is_desync(f, ret)) {
        ret->verdict = FLIGHT_DESYNC;
        return;
    }
    follow(f, ret);
    ret->verdict = verdict_of(f, ret);
}
