/* SPDX-License-Identifier: Apache-2.0 */

/* Who waits for whom. A collective ends on no rank before all have come, so a rank whose first
 * unfinished one has the highest number of all its group (the front) waits for those that have
 * not come so far; and one that is still at a lower number is held up by itself, for its peers have
 * finished that one. A rank that others wait for may wait in another group, or for a message:
 * one that has not asked for what its peers are in waits as long as anything it asked for is open;
 * one whose GPU lags waits only in what it asked for earlier: the rest is queued behind.
 *
 * To blame is who waits for nobody. Those that wait for each other are a circle. And where all of a
 * group have come to a collective, with nothing before it, what keeps them is the network or one
 * of their GPUs, which the dumps do not tell apart: then none of them is to blame for being late
 * elsewhere.
 *
 * Strictly, a rank that has asked for anything that is unfinished may be waiting for its own GPU,
 * and that for what its peers' GPUs are at; so who has nothing open is blamed before anybody else.
 */

#include "core/measure/flight_groups.h"

#include "base/cleanup.h"

/* ---- one group ---- */

static void stand_of(const struct flight_group *g, struct flight_member *m, const struct flight *f)
{
    if (m->at == FLIGHT_NONE) {
        m->stand = FLIGHT_BEHIND;
        m->reason = FLIGHT_NODUMP;
    } else if (m->first) {
        m->stand = m->first->seq < g->front ? FLIGHT_BEHIND : FLIGHT_WAITS;
        m->reason = FLIGHT_GPU;
    } else if (m->enqueued == FLIGHT_UNKNOWN || f->ranks.v[m->at].unread) {
        m->stand = FLIGHT_UNTOLD;
    } else {
        m->stand = m->enqueued < g->front ? FLIGHT_BEHIND : FLIGHT_AHEAD;
        m->reason = FLIGHT_CPU;
    }
}

/* All have asked for it: where some GPUs have begun, those that have not are behind. */
static void compare_starts(const struct flight *f, struct flight_group *g)
{
    bool begun = false;

    VEC_FOREACH (&g->ranks, m)
        begun |= m->stand == FLIGHT_WAITS && m->first->state == FLIGHT_STARTED;
    VEC_FOREACH (&g->ranks, m)
        if (begun && m->stand == FLIGHT_WAITS && m->first->state == FLIGHT_SCHEDULED &&
            f->ranks.v[m->at].has_starts) {
            m->stand = FLIGHT_BEHIND;
            m->reason = FLIGHT_GPU;
        }
}

static void count_stands(struct flight_group *g)
{
    g->waiting = g->behind = 0;
    VEC_FOREACH (&g->ranks, m) {
        g->waiting += m->stand == FLIGHT_WAITS;
        g->behind += m->stand == FLIGHT_BEHIND || m->stand == FLIGHT_UNTOLD;
    }
}

void flight_group_compare(const struct flight *f, struct flight_group *g)
{
    VEC_FOREACH (&g->ranks, m)
        if (m->first && m->first->seq > g->front) {
            g->front = m->first->seq;
            g->what = m->first->what;
        }
    if (g->front < 0)
        return;
    VEC_FOREACH (&g->ranks, m)
        stand_of(g, m, f);
    count_stands(g);
    if (g->behind > 0)
        return;
    compare_starts(f, g);
    count_stands(g);
}

/* ---- the whole ---- */

#define NEVER INT64_MAX

struct edge { /* of a send or receive */
    uint32_t from;
    int32_t to;
    const struct flight_op *op, *met; /* its other end, which that GPU has not begun; NULL: none */
    uint32_t place;
};

struct waits {
    const struct flight *f;
    struct flight_judgement *j;
    bool strict;
    int64_t *since; /* of each rank: order of the first that it asked for and waits in; NEVER */
    int64_t *open;  /* ... order of the first that is unfinished; NEVER */
    int64_t *begun; /* ... of the first unfinished one that its GPU has begun; NEVER */
    bool *inside;   /* ... whether it is in a collective that all have come to */
    bool *circle;   /* ... whether it waits and is waited for; of flight_waits_circle() */
    VEC(struct edge) edges;
};

static void waits_done(struct waits *w)
{
    free(w->since);
    free(w->open);
    free(w->begun);
    free(w->inside);
    free(w->circle);
    VEC_DONE(&w->edges);
}

/* Of these one rank may be through while others are not: so one that lags may still wait. */
static bool waits_below_front(const struct flight_group *g, const struct flight_member *m)
{
    if (m->stand != FLIGHT_BEHIND || !m->first || !m->first->one_way)
        return false;
    VEC_FOREACH (&g->ranks, o)
        if (o->stand == FLIGHT_BEHIND && o != m &&
            (o->first ? o->first->seq : o->enqueued) < m->first->seq)
            return true;
    return false;
}

static void note_wait(struct waits *w, uint32_t at, int64_t order)
{
    w->since[at] = order < w->since[at] ? order : w->since[at];
}

static void collect_open(struct waits *w)
{
    for (size_t at = 0; at < w->f->ranks.n; at++) {
        w->since[at] = w->open[at] = w->begun[at] = NEVER;
        VEC_FOREACH (&w->f->ranks.v[at].ops, op) {
            if (op->state != FLIGHT_COMPLETED && op->order < w->open[at])
                w->open[at] = op->order;
            if (op->state == FLIGHT_STARTED && op->order < w->begun[at])
                w->begun[at] = op->order;
        }
    }
}

static bool are_inside(const struct waits *w, const struct flight_group *g)
{
    if (g->front < 0 || g->behind > 0 || g->ranks.n < 2)
        return false;
    VEC_FOREACH (&g->ranks, m)
        if (m->stand != FLIGHT_WAITS || m->first->order > w->open[m->at])
            return false;
    return true;
}

static void collect_inside(struct waits *w)
{
    VEC_FOREACH (&w->j->groups, g) {
        g->inside = are_inside(w, g);
        w->j->inside |= g->inside;
        VEC_FOREACH (&g->ranks, m)
            if (g->inside)
                w->inside[m->at] = true;
    }
}

static void collect_waits(struct waits *w)
{
    VEC_FOREACH (&w->j->groups, g) {
        if (g->front < 0 || g->behind == 0)
            continue;
        VEC_FOREACH (&g->ranks, m)
            if (m->stand == FLIGHT_WAITS || waits_below_front(g, m))
                note_wait(w, m->at, m->first->order);
    }
}

/* ---- messages ---- */

static int32_t rank_of_peer(const struct flight *f, const struct flight_rank *r,
                            const struct flight_op *op)
{
    uint32_t members = r->places.v[op->place].members;

    if (members == FLIGHT_NONE)
        return op->peer;
    return (size_t)op->peer < f->members.v[members].ranks.n
               ? f->members.v[members].ranks.v[op->peer]
               : -1;
}

/* The other end of it, if the peer has it open too. */
static const struct flight_op *other_end(const struct flight *f, const struct flight_rank *r,
                                         const struct flight_op *op, const struct flight_rank *peer)
{
    uint32_t group = r->places.v[op->place].group;

    for (uint32_t p = 0; p < peer->places.n; p++) {
        if (peer->places.v[p].group != group)
            continue;
        for (size_t i = VEC_BISECT(&peer->ops, o, o->place < p);
             i < peer->ops.n && peer->ops.v[i].place == p; i++) {
            const struct flight_op *o = &peer->ops.v[i];

            if (o->p2p && o->peer >= 0 && o->state != FLIGHT_COMPLETED && o->sends != op->sends &&
                rank_of_peer(f, peer, o) == r->rank)
                return o;
        }
    }
    return NULL;
}

/* Both have come, and neither has anything before it. */
static void note_meeting(struct waits *w, size_t at, const struct flight_op *op, size_t peer,
                         const struct flight_op *met)
{
    if (op->order > w->open[at] || met->order > w->open[peer])
        return;
    w->inside[at] = w->inside[peer] = true;
    w->j->inside = true;
}

static void collect_message(struct waits *w, uint32_t at, const struct flight_op *op)
{
    const struct flight_rank *r = &w->f->ranks.v[at];
    int32_t to = rank_of_peer(w->f, r, op);
    const struct flight_rank *peer = to >= 0 ? flight_find_rank(w->f, to) : NULL;
    const struct flight_op *met = peer ? other_end(w->f, r, op, peer) : NULL;

    if (to < 0 || to == r->rank)
        return;
    if (met && (op->state != FLIGHT_STARTED || met->state == FLIGHT_STARTED || !peer->has_starts)) {
        note_meeting(w, at, op, (size_t)(peer - w->f->ranks.v), met);
        return;
    }
    note_wait(w, at, op->order);
    *VEC_PUSH(&w->edges) =
        (struct edge){.from = at, .to = to, .op = op, .met = met, .place = op->place};
}

/* Of each group the messages that come first: those behind them wait for them anyway. */
static void collect_messages(struct waits *w)
{
    for (uint32_t at = 0; at < w->f->ranks.n; at++) {
        const struct flight_op *first = NULL;

        VEC_FOREACH (&w->f->ranks.v[at].ops, op) {
            if (!op->p2p || op->state == FLIGHT_COMPLETED || op->peer < 0)
                continue;
            if (!first || first->place != op->place)
                first = op;
            if (op->seq == first->seq && op->p2p_seq == first->p2p_seq)
                collect_message(w, at, op);
        }
    }
}

/* ---- blame ---- */

/* Whether its program may be waiting for something that it has asked for. */
static bool is_held(const struct waits *w, size_t at)
{
    return w->since[at] != NEVER || w->inside[at] || (w->strict && w->open[at] != NEVER);
}

static bool is_excused(const struct waits *w, const struct flight_group *g,
                       const struct flight_member *m)
{
    if (m->reason == FLIGHT_NODUMP)
        return w->j->too_few;
    if (m->reason == FLIGHT_GPU && m->first->seq == g->front) /* it has not begun */
        return w->since[m->at] < m->first->order || w->begun[m->at] < m->first->order;
    if (m->reason == FLIGHT_GPU)
        return w->since[m->at] < m->first->order;
    return is_held(w, m->at);
}

static struct flight_culprit *culprit_of(struct flight_judgement *j, int32_t rank, bool *ret_new)
{
    size_t i = VEC_BISECT(&j->culprits, c, c->rank < rank);

    *ret_new = i >= j->culprits.n || j->culprits.v[i].rank != rank;
    if (*ret_new) {
        *VEC_INSERT(&j->culprits, i) =
            (struct flight_culprit){.rank = rank, .group = FLIGHT_NONE, .own = -1, .waiter = -1};
    }
    return &j->culprits.v[i];
}

static int32_t a_waiter(const struct flight_group *g)
{
    VEC_FOREACH (&g->ranks, m)
        if (m->stand == FLIGHT_WAITS)
            return m->rank;
    return -1;
}

/* A GPU that lags is why a program asks for no more, not the other way round. */
static bool says_more(const struct flight_judgement *j, const struct flight_culprit *c,
                      const struct flight_group *g, const struct flight_member *m)
{
    if (c->group == FLIGHT_NONE || c->reason != m->reason)
        return c->group == FLIGHT_NONE || m->reason == FLIGHT_GPU;
    return g->waiting > j->groups.v[c->group].waiting;
}

/* What is said of a rank is what most wait for. */
static void blame_in(struct flight_judgement *j, uint32_t group, struct flight_member *m)
{
    struct flight_group *g = &j->groups.v[group];
    bool fresh;
    struct flight_culprit *c = culprit_of(j, m->rank, &fresh);

    m->blamed = g->root = true;
    if (!fresh && !says_more(j, c, g, m))
        return;
    *c = (struct flight_culprit){
        .rank = m->rank,
        .reason = m->reason,
        .group = group,
        .what = g->what,
        .seq = g->front,
        .own = m->first                        ? m->first->seq
               : m->enqueued == FLIGHT_UNKNOWN ? -1
                                               : m->enqueued,
        .waiter = a_waiter(g),
    };
}

static void blame_groups(struct waits *w)
{
    for (uint32_t i = 0; i < w->j->groups.n; i++) {
        struct flight_group *g = &w->j->groups.v[i];

        g->root = false;
        VEC_FOREACH (&g->ranks, m) {
            m->blamed = false;
            if (g->front >= 0 && m->stand == FLIGHT_BEHIND && !is_excused(w, g, m))
                blame_in(w->j, i, m);
        }
    }
}

static bool is_excused_from(const struct waits *w, size_t at, const struct edge *e)
{
    if (w->f->ranks.v[at].unread)
        return true;
    if (e->met)
        return w->since[at] < e->met->order || w->begun[at] < e->met->order;
    return is_held(w, at);
}

/* Who does not take or send a message that somebody waits for, and waits for nothing itself. */
static void blame_messages(struct waits *w)
{
    VEC_FOREACH (&w->edges, e) {
        const struct flight_rank *r = flight_find_rank(w->f, e->to);
        struct flight_culprit *c;
        bool fresh;

        if (r ? is_excused_from(w, (size_t)(r - w->f->ranks.v), e) : w->j->too_few)
            continue;
        c = culprit_of(w->j, e->to, &fresh);
        if (!fresh)
            continue;
        c->reason = !r ? FLIGHT_NODUMP : e->met ? FLIGHT_GPU : FLIGHT_CPU;
        c->group = w->f->ranks.v[e->from].places.v[e->place].group;
        c->what = e->op->what;
        c->seq = e->op->seq;
        c->own = e->met ? e->op->seq : -1;
        c->waiter = w->f->ranks.v[e->from].rank;
    }
}

/* ---- circles ---- */

/* Of those that wait in the group, whether one is in the set; of those behind. */
static bool has_in(const struct waits *w, const struct flight_group *g, bool behind)
{
    VEC_FOREACH (&g->ranks, m)
        if (m->at != FLIGHT_NONE && w->circle[m->at] &&
            (behind ? m->stand == FLIGHT_BEHIND
                    : m->stand == FLIGHT_WAITS || waits_below_front(g, m)))
            return true;
    return false;
}

/* Marks whoever waits for somebody of the set, and whom somebody of the set waits for. */
static void mark_ends(const struct waits *w, bool *waits, bool *behind)
{
    VEC_FOREACH (&w->j->groups, g) {
        bool to = g->front >= 0 && has_in(w, g, true), from = g->front >= 0 && has_in(w, g, false);

        VEC_FOREACH (&g->ranks, m) {
            if (m->at == FLIGHT_NONE)
                continue;
            waits[m->at] |= to && (m->stand == FLIGHT_WAITS || waits_below_front(g, m));
            behind[m->at] |= from && m->stand == FLIGHT_BEHIND;
        }
    }
}

/* Ranks that wait, less those that wait for nobody of the rest, or that nobody of the rest waits
 * for, until all of the rest do both: what is left holds a circle. */
static void find_circle(struct waits *w)
{
    size_t n = w->f->ranks.n;
    _cleanup_(freep) bool *ends = xcalloc(2 * n + 1, sizeof(ends[0]));
    bool changed;

    for (size_t i = 0; i < n; i++)
        w->circle[i] = w->since[i] != NEVER;
    do {
        changed = false;
        memset(ends, 0, 2 * n * sizeof(ends[0]));
        mark_ends(w, ends, ends + n);
        for (size_t i = 0; i < n; i++)
            if (w->circle[i] && !(ends[i] && ends[n + i])) {
                w->circle[i] = false;
                changed = true;
            }
    } while (changed);
    for (size_t i = 0; i < n; i++)
        if (w->circle[i])
            intset_add(&w->j->circle, w->f->ranks.v[i].rank);
}

static void waits_init(struct waits *w)
{
    size_t n = w->f->ranks.n ? w->f->ranks.n : 1;

    w->since = xcalloc(n, sizeof(w->since[0]));
    w->open = xcalloc(n, sizeof(w->open[0]));
    w->begun = xcalloc(n, sizeof(w->begun[0]));
    w->inside = xcalloc(n, sizeof(w->inside[0]));
    w->circle = xcalloc(n, sizeof(w->circle[0]));
    collect_open(w);
    collect_waits(w);
}

void flight_waits_follow(const struct flight *f, struct flight_judgement *j, bool with_p2p,
                         bool strict)
{
    _cleanup_(waits_done) struct waits w = {.f = f, .j = j, .strict = strict};

    j->culprits.n = 0;
    j->inside = false;
    waits_init(&w);
    collect_inside(&w);
    if (with_p2p)
        collect_messages(&w);
    blame_groups(&w);
    blame_messages(&w);
}

void flight_waits_circle(const struct flight *f, struct flight_judgement *j)
{
    _cleanup_(waits_done) struct waits w = {.f = f, .j = j};

    waits_init(&w);
    find_circle(&w);
}
