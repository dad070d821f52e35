/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/culprit.h"

#include "base/str.h"

#include <string.h>

/* Who is to blame. Wrongly blaming is worse than blaming nobody, so every name needs a reason:
 *
 *   a device    the hardware text or the kernel names it
 *   a node      the scheduler says that it failed, or hardware evidence came from it
 *   a rank      its own first error (alone with it), or what the watchdogs say about who is behind
 *   by vote     two reporters on different nodes name one peer, twice as often as any other
 *   by place    everything that tells of the fault comes from one node of several (place.c)
 *
 * A rank that shows the same error as others, or that complains about a connection, is a victim
 * or a witness. What concerns the job as a whole (its configuration, its data, its numbers, shared
 * storage, an outside service) blames no rank. */

#define SIGNAL_ABORT     6
#define SIGNAL_TERMINATE 15
#define MANY_RANKS       2
#define TOLD_CONFIDENCE  50 /* a line that says who is missing */

void culprit_node(struct judge *j, const char *node)
{
    struct culprits *c = &j->in->culprits;

    if (!node || !*node || c->n_nodes == CULPRIT_NODES_MAX)
        return;
    for (uint32_t i = 0; i < c->n_nodes; i++)
        if (streq(c->nodes[i], node))
            return;
    STR_COPY(c->nodes[c->n_nodes++], node);
}

void culprit_rank(struct judge *j, int32_t rank)
{
    struct culprits *c = &j->in->culprits;

    if (rank == RANK_NONE || c->n_ranks == CULPRIT_RANKS_MAX)
        return;
    for (uint32_t i = 0; i < c->n_ranks; i++)
        if (c->ranks[i] == rank)
            return;
    c->ranks[c->n_ranks++] = rank;
}

void culprit_device(struct judge *j, const char *device)
{
    struct culprits *c = &j->in->culprits;

    if (!device || !*device || c->n_devices == CULPRIT_DEVICES_MAX)
        return;
    for (uint32_t i = 0; i < c->n_devices; i++)
        if (streq(c->devices[i], device))
            return;
    STR_COPY(c->devices[c->n_devices++], device);
}

/* ---- programs ---- */

/* Whether such an error can be one rank's own. */
static bool is_of_one_rank(enum cause c)
{
    switch (c) {
    case CAUSE_USER_CODE:
    case CAUSE_GPU_OOM:
    case CAUSE_HOST_OOM:
    case CAUSE_FRAMEWORK:
    case CAUSE_UNKNOWN:
    case CAUSE_NODE_FAILURE:
        return true;
    default:
        return false;
    }
}

/* The only rank of which a line of the same cause tells; RANK_NONE when there are none or more. */
static int32_t rank_of_same_cause(const struct judge *j)
{
    int32_t rank = RANK_NONE;

    if (j->in->cause == CAUSE_UNKNOWN)
        return RANK_NONE;
    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;
        int32_t of = roster_rank_of(&j->e->roster, &s->who);

        if (s->cause != j->in->cause || s->role > ROLE_CONFIRM || s->role == ROLE_CASCADE ||
            of == RANK_NONE)
            continue;
        if (rank != RANK_NONE && rank != of)
            return RANK_NONE;
        rank = of;
    }
    return rank;
}

/* Whether lines tell of broken connections: of this rank's, or of anybody's. */
static bool connections_broke(const struct judge *j, int32_t rank)
{
    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;

        if (s->role == ROLE_CASCADE && s->cause == CAUSE_NETWORK &&
            (rank == RANK_NONE || s->who.rank == rank))
            return true;
    }
    return false;
}

/* Whether the process that died first died of somebody else's failure: it complains about its
 * peers, or connections broke and it ended itself, as watchdogs do. */
static bool is_victim(const struct judge *j, const struct exit_seen *x)
{
    bool killed = x->signal != 0 && x->signal != SIGNAL_ABORT && x->signal != SIGNAL_TERMINATE;

    return connections_broke(j, killed ? roster_rank_of(&j->e->roster, &x->who) : RANK_NONE);
}

/* Who printed the error of a program is told by the launcher that saw its process end, not by a
 * coordinator that misses somebody. */
static void name_first_exit(struct judge *j)
{
    const struct exit_seen *x = j->first_exit;
    int32_t rank = x ? roster_rank_of(&j->e->roster, &x->who) : RANK_NONE;

    if (rank == RANK_NONE || j->n_failing_ranks > 1 ||
        (!x->has_code && cause_domain(j->in->cause) == DOMAIN_WORKLOAD))
        return;
    if (!exit_is_first(j->e, x)) {
        ruled_add(j, "the first rank that died",
                  "the log begins with the end of rank %d: what came before may be missing", rank);
        return;
    }
    if (is_victim(j, x))
        ruled_add(j, "the first rank that died", "rank %d complains about its peers: a victim",
                  rank);
    else
        culprit_rank(j, rank);
}

/* Whether the decisive line is the word of a launcher about a process, not of the process. */
static bool is_hearsay(const struct hit *h)
{
    return h->s.cause == CAUSE_UNKNOWN && h->s.role == ROLE_SYMPTOM && h->s.blame == BLAME_RANK &&
           h->s.kind != SIGNAL_COLLECTIVE;
}

static bool others_show_it(const struct judge *j)
{
    const struct signature_facts *g =
        j->primary ? evidence_signature(j->e, j->primary->s.signature) : NULL;

    return g && g->ranks.n > 1 && j->primary->s.cause != CAUSE_UNKNOWN;
}

/* The rank of the decisive line, else the one of which a line of the same cause tells, else the
 * first that the launcher saw dying. That one of many ranks ran out of memory is worth a word; in
 * a job of one process it is not. A rank that is not the first is one of many. */
static void name_failing_rank(struct judge *j)
{
    const struct hit *p = j->primary;
    int32_t rank = p && p->s.role != ROLE_CASCADE && p->s.confidence >= SYMPTOM_HEARD
                       ? roster_rank_of(&j->e->roster, &p->s.who)
                       : RANK_NONE;

    if (!is_of_one_rank(j->in->cause) || (p && p->s.blame == BLAME_JOB))
        return;
    if (j->in->cause == CAUSE_GPU_OOM && roster_is_alone(&j->e->roster))
        return;
    if (rank != RANK_NONE && is_hearsay(p) && connections_broke(j, RANK_NONE)) {
        ruled_add(j, "the first rank that died", "connections broke: rank %d may be a victim",
                  rank);
        return;
    }
    if (rank == RANK_NONE)
        rank = rank_of_same_cause(j);
    if (rank == RANK_NONE)
        name_first_exit(j);
    else if (j->n_failing_ranks <= 1 && !others_show_it(j))
        culprit_rank(j, rank);
}

/* The only node that speaks of its own port or adapter, while others lose their connections. */
static bool name_ailing_node(struct judge *j)
{
    const char *node = NULL;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;

        if (s->cause != CAUSE_NETWORK || s->blame != BLAME_NODE || s->role > ROLE_SYMPTOM ||
            !*s->who.node)
            continue;
        if (node && !streq(node, s->who.node))
            return false;
        node = s->who.node;
    }
    if (!node || !connections_broke(j, RANK_NONE))
        return false;
    culprit_node(j, node);
    return true;
}

/* Errors of a node's own set-up (its driver, its libraries), seen on one of several nodes: the job
 * is right, the node is not. On every node the same error is the job's. */
static bool name_misfit_node(struct judge *j)
{
    const struct hit *p = j->primary;

    if (!p || p->s.blame != BLAME_NODE || j->in->cause != CAUSE_USER_CONFIG || !*p->s.who.node ||
        j->e->roster.nodes.n < 2)
        return false;
    for (size_t i = 0; i < j->n_current; i++)
        if (streq(j->current[i]->s.signature, p->s.signature) &&
            !streq(j->current[i]->s.who.node, p->s.who.node))
            return false;
    j->in->cause = CAUSE_NODE_HARDWARE;
    culprit_node(j, p->s.who.node);
    return true;
}

/* Another process, none of this job's, holds what the node should have given to it. */
static bool name_occupied_node(struct judge *j)
{
    const struct hit *p = j->primary;
    const struct exit_seen *x = j->first_exit;
    const char *node;

    if (!p || p->s.blame != BLAME_NODE || j->in->cause != CAUSE_GPU_OOM)
        return false;
    node = roster_node_of(&j->e->roster, &p->s.who);
    if (!node && x && *x->who.node)
        node = x->who.node;
    culprit_node(j, node ? node : j->only_node);
    return j->in->culprits.n_nodes > 0;
}

/* The only node to which its launcher lost the connection, while others complain that they lost
 * theirs: it is gone. */
static void name_lost_node(struct judge *j)
{
    const char *node = NULL;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;

        if (s->cause != CAUSE_NODE_FAILURE || s->role != ROLE_CONFIRM || !*s->who.node)
            continue;
        if (node && !streq(node, s->who.node))
            return;
        node = s->who.node;
    }
    if (!node || j->e->roster.nodes.n < 2 || !connections_broke(j, RANK_NONE))
        return;
    j->in->cause = CAUSE_NODE_FAILURE;
    culprit_node(j, node);
}

/* ---- hangs ---- */

static void name_told(struct judge *j, bool surely)
{
    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;

        if (s->kind == SIGNAL_HIT && s->role == ROLE_CONFIRM && s->blame == BLAME_RANK &&
            (surely ? s->confidence >= TOLD_CONFIDENCE : s->hang))
            culprit_rank(j, s->who.rank);
    }
}

/* Reports of what communicators and runtimes know give nodes where their ranks mean nothing to
 * others. */
static void name_told_nodes(struct judge *j)
{
    struct culprits *c = &j->in->culprits;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;

        if (s->role != ROLE_CONFIRM || s->blame != BLAME_NODE || !s->hang ||
            s->confidence < TOLD_CONFIDENCE || !*s->who.node)
            continue;
        culprit_node(j, s->who.node);
        culprit_rank(j, roster_rank_of(&j->e->roster, &s->who));
    }
    if (c->n_nodes > MANY_RANKS)
        c->n_nodes = c->n_ranks = 0;
}

/* The node on which all ranks of the list run, NULL unless it is one of several. */
static const char *node_of_all(const struct roster *r, const struct intset *ranks)
{
    const char *node = ranks->n > 0 && r->nodes.n > 1 ? roster_node(r, ranks->v[0]) : NULL;

    for (size_t i = 1; node && i < ranks->n; i++) {
        const char *other = roster_node(r, ranks->v[i]);

        if (!other || !streq(other, node))
            return NULL;
    }
    return node;
}

/* A list of ranks that did not come: few of them, or all that run on one node. A list that was cut
 * off proves nothing. */
static void name_listed(struct judge *j)
{
    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;
        struct intset ranks = {0};
        const char *node;

        if (s->role != ROLE_CONFIRM || !s->hang || !*s->who.tasks ||
            strlen(s->who.tasks) + 1 == sizeof(s->who.tasks))
            continue;
        if (intset_parse(&ranks, s->who.tasks) == 0) {
            node = node_of_all(&j->e->roster, &ranks);
            culprit_node(j, node);
            for (size_t k = 0; k < ranks.n && (node || ranks.n <= MANY_RANKS); k++)
                culprit_rank(j, ranks.v[k]);
        }
        intset_done(&ranks);
    }
}

/* Barriers, coordinators and analyses of flight recorders say in plain words who did not come. */
static void name_missing(struct judge *j)
{
    name_told(j, true);
    if (j->in->culprits.n_ranks == 0)
        name_told(j, false);
    if (j->in->culprits.n_ranks > MANY_RANKS)
        j->in->culprits.n_ranks = 0;
    if (j->in->culprits.n_ranks == 0)
        name_listed(j);
}

static void name_few(struct judge *j, const struct intset *ranks)
{
    for (size_t i = 0; i < ranks->n && ranks->n <= MANY_RANKS; i++)
        culprit_rank(j, ranks->v[i]);
}

/* What was seen of the processes outweighs what they say: one that is stopped, hangs in the kernel
 * or is dead holds up the others. */
static bool name_halted(struct judge *j)
{
    const struct exit_seen *x = j->first_exit;

    name_few(j, &j->e->stopped);
    if (j->in->culprits.n_ranks == 0 && x && provenance_is_privileged(x->provenance))
        culprit_rank(j, roster_rank_of(&j->e->roster, &x->who));
    if (j->in->culprits.n_ranks == 0)
        name_few(j, &j->e->blocked);
    return j->in->culprits.n_ranks > 0;
}

/* Some watchers know more than that somebody waits: they found the device that is to blame. */
static bool name_faulty(struct judge *j)
{
    const struct culprits *c = &j->in->culprits;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct hit *h = j->current[i];

        if (h->s.hang && h->s.role == ROLE_ROOT && cause_is_hardware(h->s.cause))
            culprit_by_hardware_hit(j, h);
    }
    return c->n_nodes + c->n_ranks + c->n_devices > 0;
}

/* A watchdog that ends its own process because a thread of it is stuck, on this rank alone. */
static void name_stuck(struct judge *j)
{
    const struct signal *s = j->telling ? &j->telling->s : NULL;
    const struct signature_facts *g;

    if (!s || s->role != ROLE_ROOT || s->blame != BLAME_RANK)
        return;
    g = evidence_signature(j->e, s->signature);
    if (g && g->ranks.n == 1 && !roster_is_alone(&j->e->roster))
        culprit_rank(j, s->who.rank);
}

static void name_holdup(struct judge *j)
{
    if (name_halted(j) || name_faulty(j))
        return;
    for (size_t i = 0; i < j->holdup.ranks.n; i++)
        culprit_rank(j, j->holdup.ranks.v[i]);
    if (j->in->culprits.n_ranks == 0)
        name_missing(j);
    if (j->in->culprits.n_ranks + j->in->culprits.n_nodes == 0)
        name_told_nodes(j);
    if (j->in->culprits.n_ranks + j->in->culprits.n_nodes == 0)
        name_stuck(j);
    if (j->in->culprits.n_ranks + j->in->culprits.n_nodes == 0)
        culprit_by_place(j);
    if (j->e->waits.reporters > 1 && j->holdup.kind == HOLDUP_UNKNOWN &&
        j->in->culprits.n_ranks == 0)
        ruled_add(j, "a rank that is behind", "all %u ranks that report wait at the same place",
                  j->e->waits.reporters);
}

void culprit_name(struct judge *j)
{
    enum cause cause = j->in->cause;

    if (j->in->class == CLASS_HANG)
        name_holdup(j);
    if (j->in->class == CLASS_STRAGGLER)
        culprit_slow(j);
    if (j->in->class != CLASS_CRASH)
        return;
    if (j->primary && hit_is_soft_repeat(j->primary) &&
        (hit_is_everywhere(j, j->primary) || culprit_soft_repeats(j)))
        return;
    if (j->primary && cause_is_hardware(cause)) {
        culprit_hardware(j);
        return;
    }
    if ((cause == CAUSE_NETWORK && name_ailing_node(j)) || name_misfit_node(j) ||
        name_occupied_node(j) || culprit_by_place(j))
        return;
    if (cause == CAUSE_NETWORK || cause == CAUSE_UNKNOWN)
        culprit_by_vote(j);
    if (j->in->culprits.n_nodes == 0 && cause != j->in->cause && name_ailing_node(j))
        return;
    if (j->in->culprits.n_nodes == 0 && (cause == CAUSE_NETWORK || cause == CAUSE_UNKNOWN))
        name_lost_node(j);
    if (j->in->culprits.n_nodes == 0)
        name_failing_rank(j);
    if (j->in->culprits.n_nodes + j->in->culprits.n_ranks == 0 &&
        (cause == CAUSE_NETWORK || cause == CAUSE_UNKNOWN))
        name_missing(j);
}
