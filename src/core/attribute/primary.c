/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/judge.h"

#include "base/sig.h"
#include "base/str.h"

#include <signal.h>

/* Which line is decisive (algorithms b.2.4 and b.2.5): the first root of the terminal episode.
 * Where clocks or line numbers cannot tell which of two came first, the one that explains the
 * other wins: a fault of the hardware, then what the kernel says, then a killed process, then a
 * specific error of the program, then one about communication, then an exception of no further
 * meaning. A generic exception also yields to a specific root a little later: the meaning of a
 * chain of exceptions is often told in its middle. */

#define GENERIC_CONFIDENCE 60
#define GENERIC_WINDOW     (60 * USEC_PER_SEC)
#define GENERIC_LINES      2000

bool cause_is_hardware(enum cause c)
{
    return c == CAUSE_GPU_HARDWARE || c == CAUSE_NODE_HARDWARE || c == CAUSE_NODE_FAILURE;
}

int hit_category(const struct hit *h)
{
    if (h->s.confidence < GENERIC_CONFIDENCE)
        return CATEGORY_GENERIC;
    if (cause_is_hardware(h->s.cause))
        return CATEGORY_HARDWARE;
    if (h->s.layer == LAYER_KERNEL)
        return 4;
    if (h->s.cause == CAUSE_HOST_OOM)
        return 3;
    return h->s.cause == CAUSE_NETWORK ? 1 : CATEGORY_SPECIFIC;
}

static bool is_candidate(const struct hit *h, enum role role)
{
    return h->s.confidence >= SYMPTOM_HEARD && h->s.role == role &&
           cause_domain(h->s.cause) != DOMAIN_SCHEDULER;
}

static bool explains_generic(const struct hit *generic, const struct hit *other)
{
    if (hit_category(generic) != CATEGORY_GENERIC || hit_category(other) == CATEGORY_GENERIC)
        return false;
    if (generic->time_us != USEC_UNKNOWN && other->time_us != USEC_UNKNOWN &&
        other->time_us - generic->time_us > GENERIC_WINDOW)
        return false;
    return generic->s.file != other->s.file || other->s.line - generic->s.line <= GENERIC_LINES;
}

/* Of two lines with nothing special about them the surer one says more, and any cause says more
 * than none. */
static bool explains_more(const struct hit *h, const struct hit *than)
{
    int a = hit_category(h), b = hit_category(than);

    if (a != b)
        return a > b;
    return h->s.role == ROLE_SYMPTOM && a == CATEGORY_GENERIC && h->s.cause != CAUSE_UNKNOWN &&
           (than->s.cause == CAUSE_UNKNOWN || h->s.confidence >= than->s.confidence + 10);
}

static const struct hit *choose_among(const struct judge *j, enum role role, bool adrift)
{
    const struct hit *first = NULL, *best = NULL;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct hit *h = j->current[i];

        if (!is_candidate(h, role) || hit_is_adrift(j->e, h) != adrift)
            continue;
        if (!first)
            first = best = h;
        else if (explains_more(h, best) && (hits_concurrent(first, h) || explains_generic(best, h)))
            best = h;
    }
    return best;
}

/* Beside an error of the program that explains itself, a line adrift explains nothing. */
static const struct hit *choose(const struct judge *j, enum role role)
{
    const struct hit *best = choose_among(j, role, false), *adrift = choose_among(j, role, true);

    if (!best || !adrift)
        return best ? best : adrift;
    return hit_category(best) < CATEGORY_SPECIFIC && hit_category(adrift) > hit_category(best)
               ? adrift
               : best;
}

const struct hit *primary_last_resort(const struct judge *j)
{
    const struct hit *h = episode_first(j, ROLE_SYMPTOM);

    return h && h->s.confidence < SYMPTOM_HEARD ? h : NULL;
}

const struct hit *primary_symptom(const struct judge *j)
{
    return choose(j, ROLE_SYMPTOM);
}

static bool is_failure(const struct exit_seen *x)
{
    return x->named || (x->has_code && (x->code != 0 || x->signal != 0));
}

/* SIGTERM comes from the launcher once another process has failed. */
static bool is_kill(const struct exit_seen *x)
{
    return sig_ended(x->code, x->signal, SIGTERM);
}

static bool exit_before(const struct exit_seen *a, const struct exit_seen *b)
{
    if (is_kill(a) != is_kill(b))
        return is_kill(b);
    if (a->time_us != USEC_UNKNOWN && b->time_us != USEC_UNKNOWN && a->time_us != b->time_us)
        return a->time_us < b->time_us;
    return a->order < b->order;
}

static const struct exit_seen *find_first_exit(const struct evidence *e)
{
    const struct exit_seen *first = NULL;

    VEC_FOREACH (&e->exits, x) {
        bool survived = x->advance < evidence_stream(e, x->file)->advance;

        if (survived || !is_failure(x))
            continue;
        if (exit_brought_down_others(e, x))
            return x;
        if (!first || exit_before(x, first))
            first = x;
    }
    return first;
}

/* The same end told by another, with the rank: the only one that ended so. */
static const struct exit_seen *with_rank(const struct evidence *e, const struct exit_seen *first)
{
    const struct exit_seen *found = NULL;
    int32_t rank, other = RANK_NONE;

    VEC_FOREACH (&e->exits, x) {
        rank = roster_rank_of(&e->roster, &x->who);
        if (rank == RANK_NONE || !is_failure(x) || x->code != first->code ||
            x->signal != first->signal)
            continue;
        if (found && other != rank)
            return first;
        found = x;
        other = rank;
    }
    return found ? found : first;
}

/* Ranks whose exit the same teller reported with the same code as the first one. */
static size_t ranks_with_same_exit(const struct judge *j)
{
    struct intset ranks = {0};
    size_t n;

    VEC_FOREACH (&j->e->exits, x) {
        int32_t rank = roster_rank_of(&j->e->roster, &x->who);

        if (rank != RANK_NONE && is_failure(x) && x->layer == j->first_exit->layer &&
            x->code == j->first_exit->code && x->signal == j->first_exit->signal)
            intset_add(&ranks, rank);
    }
    n = ranks.n;
    intset_done(&ranks);
    return n;
}

void primary_choose(struct judge *j)
{
    const struct signature_facts *g;

    j->first_exit = find_first_exit(j->e);
    if (j->first_exit && roster_rank_of(&j->e->roster, &j->first_exit->who) == RANK_NONE)
        j->first_exit = with_rank(j->e, j->first_exit);
    j->primary = choose(j, ROLE_ROOT);
    if (j->primary) {
        g = evidence_signature(j->e, j->primary->s.signature);
        j->n_failing_ranks = g ? g->ranks.n : 0;
    }
    if (j->first_exit && j->n_failing_ranks == 0) {
        size_t n = ranks_with_same_exit(j);

        j->n_failing_ranks = n > j->n_failing_ranks ? n : j->n_failing_ranks;
    }
}
