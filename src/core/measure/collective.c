/* SPDX-License-Identifier: Apache-2.0 */
#include "core/measure/collective.h"

#include "base/alloc.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* A watchdog speaks in several lines: one has the operation and its size, another what was
 * enqueued and completed last, some name the process group and some do not. Facts of one rank are
 * merged as long as nothing in them disagrees.
 *
 * Judgement looks at one group at a time. Only a small minority can be the culprit: when a third
 * of the ranks is "behind", the numbers say nothing about who is at fault, and blaming nobody is
 * the cheaper mistake. A rank that is behind in one group because it waits in another is a victim
 * itself.
 *
 * Where few ranks report at all, a minority of them says nothing. But in one collective of one
 * process group, of which the log tells the name, the order is a proof: who stands in number 12 has
 * finished number 11, to which all had to come; so the only one that still stands in 11, or has not
 * launched 12, holds the others up. Messages between two ranks are numbered by each pair. */

#define MINORITY_DIV 4 /* culprits are at most every fourth rank */
#define SILENT_MAX   4
#define GROUPS_MAX   256

void collectives_done(struct collectives *c)
{
    for (size_t i = 0; i < c->n_rank; i++)
        free(c->rank[i]);
    free(c->rank);
    *c = (struct collectives){0};
}

static void forget_rank(struct rank_waits *w, uint32_t file)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < w->n; i++)
        if (w->wait[i].file != file)
            w->wait[kept++] = w->wait[i];
    w->n = kept;
}

void collectives_forget(struct collectives *c, uint32_t file)
{
    for (size_t i = 0; i < c->n_rank; i++) {
        if (!c->rank[i])
            continue;
        forget_rank(c->rank[i], file);
        if (c->rank[i]->n == 0) {
            free(c->rank[i]);
            c->rank[i] = NULL;
            c->reporters--;
        }
    }
}

static bool same_number(int64_t a, int64_t b)
{
    return a == NUMBER_NONE || b == NUMBER_NONE || a == b;
}

static bool same_text(const char *a, const char *b)
{
    return !*a || !*b || streq(a, b);
}

static void fill_number(int64_t *dst, int64_t src)
{
    if (*dst == NUMBER_NONE)
        *dst = src;
}

static void merge(struct collective_fact *dst, const struct collective_fact *src)
{
    if (!*dst->group)
        STR_COPY(dst->group, src->group);
    if (!*dst->op)
        STR_COPY(dst->op, src->op);
    fill_number(&dst->seq, src->seq);
    fill_number(&dst->numel, src->numel);
    fill_number(&dst->enqueued, src->enqueued);
    fill_number(&dst->completed, src->completed);
    fill_number(&dst->waited, src->waited);
}

static struct rank_waits *waits_of(struct collectives *c, int32_t rank)
{
    size_t i = (size_t)rank;

    if (i >= c->n_rank) {
        size_t n = i + i / 2 + 8;

        c->rank = xreallocarray(c->rank, n, sizeof(*c->rank));
        memset(c->rank + c->n_rank, 0, (n - c->n_rank) * sizeof(*c->rank));
        c->n_rank = n;
    }
    if (!c->rank[i]) {
        c->rank[i] = xnew(struct rank_waits);
        c->reporters++;
    }
    return c->rank[i];
}

void collectives_add(struct collectives *c, const struct signal *s)
{
    const struct collective_fact *fact = &s->collective;
    struct rank_waits *w;

    if (s->who.rank < 0 || s->who.rank >= COLLECTIVE_RANKS) {
        c->refused++;
        return;
    }
    w = waits_of(c, s->who.rank);
    for (uint32_t i = 0; i < w->n; i++) {
        struct collective_fact *have = &w->wait[i].fact;

        if (same_text(have->group, fact->group) && same_number(have->seq, fact->seq)) {
            merge(have, fact);
            return;
        }
    }
    if (w->n == COLLECTIVE_PER_RANK) {
        c->refused++;
        return;
    }
    w->wait[w->n++] = (struct wait_fact){.fact = *fact, .file = s->file, .line = s->line};
}

bool collectives_waits(const struct collectives *c, int32_t rank)
{
    return rank >= 0 && (size_t)rank < c->n_rank && c->rank[rank];
}

/* One rank's wait in the group under judgement. */
struct member {
    int32_t rank;
    const struct collective_fact *fact;
};

struct group {
    struct member *v;
    size_t n;
};

static const struct collective_fact *wait_in(const struct rank_waits *w, const char *group)
{
    for (uint32_t i = 0; w && i < w->n; i++)
        if (same_text(w->wait[i].fact.group, group))
            return &w->wait[i].fact;
    return NULL;
}

static struct group group_members(const struct collectives *c, const char *name)
{
    struct group g = {.v = xcalloc(c->reporters + 1, sizeof(struct member))};

    for (size_t r = 0; r < c->n_rank; r++) {
        const struct collective_fact *fact = wait_in(c->rank[r], name);

        if (fact)
            g.v[g.n++] = (struct member){.rank = (int32_t)r, .fact = fact};
    }
    return g;
}

static bool is_minority(size_t few, size_t all)
{
    return few > 0 && all >= 3 && few * MINORITY_DIV <= all;
}

/* The most frequent (sequence number, operation) of a group, by Boyer and Moore's majority vote;
 * NULL unless it holds for more than half. */
static const struct collective_fact *majority(const struct group *g)
{
    const struct collective_fact *best = NULL;
    size_t votes = 0, count = 0;

    for (size_t i = 0; i < g->n; i++) {
        const struct collective_fact *f = g->v[i].fact;

        if (votes == 0)
            best = f;
        votes = best->seq == f->seq && streq(best->op, f->op) ? votes + 1 : votes - 1;
    }
    for (size_t i = 0; best && i < g->n; i++)
        count += g->v[i].fact->seq == best->seq && streq(g->v[i].fact->op, best->op);
    return count * 2 > g->n ? best : NULL;
}

static bool is_desynced(const struct collective_fact *f, const struct collective_fact *most)
{
    return f->seq != NUMBER_NONE && f->seq == most->seq && *f->op && *most->op &&
           !streq(f->op, most->op);
}

/* Elsewhere in the program, as dumps of the stacks show. */
static bool is_apart(const struct collective_fact *f, const struct collective_fact *most)
{
    return streq(most->group, COLLECTIVE_STACKS) && streq(f->group, most->group) &&
           !streq(f->op, most->op);
}

/* Not yet launched what the others wait in. */
static bool is_behind(const struct collective_fact *f, const struct collective_fact *most)
{
    if (most->seq == NUMBER_NONE)
        return false;
    if (f->enqueued != NUMBER_NONE)
        return f->enqueued < most->seq;
    return f->seq != NUMBER_NONE && f->seq < most->seq;
}

/* Still in an operation that the others have finished. */
static bool is_stuck(const struct collective_fact *f, const struct collective_fact *most)
{
    return f->seq != NUMBER_NONE && most->completed != NUMBER_NONE && f->seq <= most->completed &&
           f->completed != NUMBER_NONE && f->completed < f->seq;
}

typedef bool (*suspect_fn)(const struct collective_fact *f, const struct collective_fact *most);

static bool collect(const struct group *g, const struct collective_fact *most, suspect_fn is,
                    struct intset *ret)
{
    for (size_t i = 0; i < g->n; i++)
        if (is(g->v[i].fact, most))
            intset_add(ret, g->v[i].rank);
    if (is_minority(ret->n, g->n))
        return true;
    intset_clear(ret);
    return false;
}

static void set_position(struct holdup_finding *ret, const struct collective_fact *most)
{
    ret->seq = most->seq;
    STR_COPY(ret->op, most->op);
}

static bool judge_group(const struct group *g, struct holdup_finding *ret)
{
    const struct collective_fact *most = majority(g);

    if (!most)
        return false;
    if (ret->seq == NUMBER_NONE)
        set_position(ret, most);
    if (collect(g, most, is_desynced, &ret->ranks))
        ret->kind = HOLDUP_DESYNC;
    else if (collect(g, most, is_apart, &ret->ranks))
        ret->kind = HOLDUP_APART;
    else if (collect(g, most, is_behind, &ret->ranks))
        ret->kind = HOLDUP_BEHIND;
    else if (collect(g, most, is_stuck, &ret->ranks))
        ret->kind = HOLDUP_STUCK;
    else
        return false;
    set_position(ret, most);
    return true;
}

/* Ranks that wait in another group too are held up there; they are nobody's culprit. */
static void drop_waiting_elsewhere(const struct collectives *c, struct holdup_finding *f)
{
    struct intset kept = {0};

    if (f->kind != HOLDUP_BEHIND && f->kind != HOLDUP_STUCK)
        return;
    for (size_t i = 0; i < f->ranks.n; i++)
        if (c->rank[f->ranks.v[i]]->n < 2)
            intset_add(&kept, f->ranks.v[i]);
    intset_done(&f->ranks);
    f->ranks = kept;
    if (kept.n == 0)
        f->kind = HOLDUP_UNKNOWN;
}

/* A group whose name is the same for all its ranks and no others: the one of all ranks, or one with
 * PyTorch's global number, "14(mesh_tp)"; a bare number is each rank's own. */
static bool is_one_group(const char *name)
{
    return streq(name, "0") || strchr(name, '(') || strstr(name, "default_pg");
}

/* Whether its number counts what all ranks of the group take part in. */
static bool is_of_all(const struct collective_fact *f)
{
    return f->seq != NUMBER_NONE && *f->op && !strstr(f->op, "SEND") && !strstr(f->op, "RECV") &&
           !strstr(f->op, "COALESCED");
}

static const struct member *end_of(const struct group *g, bool furthest)
{
    const struct member *best = NULL;

    for (size_t i = 0; i < g->n; i++) {
        int64_t seq = g->v[i].fact->seq;

        if (seq != NUMBER_NONE &&
            (!best || (furthest ? seq > best->fact->seq : seq < best->fact->seq)))
            best = &g->v[i];
    }
    return best;
}

/* The only rank of the group that has not come to where others stand. */
static bool judge_few(const struct group *g, const char *name, struct holdup_finding *ret)
{
    const struct member *first = end_of(g, true), *behind = NULL;

    if (!first || !is_one_group(name))
        return false;
    for (size_t i = 0; i < g->n; i++) {
        const struct collective_fact *f = g->v[i].fact;

        if (!streq(f->group, name) || !is_of_all(f))
            return false;
        if (f->seq == first->fact->seq)
            continue;
        if (behind)
            return false;
        behind = &g->v[i];
    }
    if (!behind)
        return false;
    intset_add(&ret->ranks, behind->rank);
    ret->kind = behind->fact->enqueued != NUMBER_NONE && behind->fact->enqueued >= first->fact->seq
                    ? HOLDUP_STUCK
                    : HOLDUP_BEHIND;
    set_position(ret, first->fact);
    return true;
}

static void note_spread(const struct group *g, struct holdup_finding *ret)
{
    const struct member *first = end_of(g, true), *last = end_of(g, false);

    if (ret->least != NUMBER_NONE || !first || first->fact->seq == last->fact->seq)
        return;
    set_position(ret, first->fact);
    ret->least = last->fact->seq;
    ret->least_rank = last->rank;
}

/* Names of the process groups that ranks wait in, each once. */
static size_t list_groups(const struct collectives *c, const char **names)
{
    size_t n = 0;

    for (size_t r = 0; r < c->n_rank; r++) {
        for (uint32_t i = 0; c->rank[r] && i < c->rank[r]->n && n < GROUPS_MAX; i++) {
            const char *name = c->rank[r]->wait[i].fact.group;
            size_t k = 0;

            while (k < n && !streq(names[k], name))
                k++;
            if (k == n)
                names[n++] = name;
        }
    }
    return n;
}

static bool judge_groups(const struct collectives *c, struct holdup_finding *ret)
{
    const char *names[GROUPS_MAX];
    size_t n = list_groups(c, names);

    for (size_t i = 0; i < n && ret->kind == HOLDUP_UNKNOWN; i++) {
        struct group g = group_members(c, names[i]);

        note_spread(&g, ret);
        if (judge_group(&g, ret) || judge_few(&g, names[i], ret))
            drop_waiting_elsewhere(c, ret);
        free(g.v);
    }
    return ret->kind != HOLDUP_UNKNOWN;
}

/* Whether a rank says that it waits in anything: all that was enqueued may be done, and where it
 * stands in its program was told by somebody else, who may not have asked all. */
static bool waits_in_any(const struct rank_waits *w)
{
    for (uint32_t i = 0; w && i < w->n; i++) {
        const struct collective_fact *f = &w->wait[i].fact;

        if (streq(f->group, COLLECTIVE_STACKS))
            continue;
        if (f->seq != NUMBER_NONE || *f->op || f->enqueued == NUMBER_NONE ||
            f->enqueued != f->completed)
            return true;
    }
    return false;
}

/* Ranks between the first and the last that report, or that showed themselves otherwise, and do not
 * wait. Ranks are numbered without gaps, so one that never prints anything is noticed too. */
static void find_silent(const struct collectives *c, const struct intset *known,
                        struct intset *ret_silent, size_t *ret_all)
{
    struct intset all = {0};

    for (size_t r = 0; r < c->n_rank; r++)
        if (c->rank[r])
            intset_add(&all, (int32_t)r);
    intset_union(&all, known);
    for (int32_t r = all.v[0]; r <= all.v[all.n - 1] && ret_silent->n <= SILENT_MAX; r++)
        if ((size_t)r >= c->n_rank || !waits_in_any(c->rank[r]))
            intset_add(ret_silent, r);
    *ret_all = (size_t)(all.v[all.n - 1] - all.v[0]) + 1;
    intset_done(&all);
}

/* Most of the ranks complain, a few do not: they are dead or stuck before the collective. */
static void judge_silence(const struct collectives *c, const struct intset *known,
                          struct holdup_finding *ret)
{
    size_t all;

    if (c->reporters < 3)
        return;
    find_silent(c, known, &ret->ranks, &all);
    if (ret->ranks.n <= SILENT_MAX && is_minority(ret->ranks.n, all))
        ret->kind = HOLDUP_SILENT;
    else
        intset_clear(&ret->ranks);
}

void collectives_judge(const struct collectives *c, const struct intset *known,
                       struct holdup_finding *ret)
{
    *ret = (struct holdup_finding){
        .kind = HOLDUP_UNKNOWN, .seq = NUMBER_NONE, .least = NUMBER_NONE, .least_rank = RANK_NONE};
    if (!judge_groups(c, ret))
        judge_silence(c, known, ret);
    if (ret->kind == HOLDUP_UNKNOWN && ret->least != NUMBER_NONE)
        ret->kind = HOLDUP_SPREAD;
}
