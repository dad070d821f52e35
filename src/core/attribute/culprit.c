/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/judge.h"

#include "base/str.h"

#include <ctype.h>
#include <string.h>

/* Who is to blame. Wrongly blaming is worse than blaming nobody, so every name needs a reason:
 *
 *   a device    the hardware text or the kernel names it
 *   a node      the scheduler says that it failed, or hardware evidence came from it
 *   a rank      its own first error (alone with it), or what the watchdogs say about who is behind
 *   by vote     two reporters on different nodes name one peer, twice as often as any other
 *
 * A rank that shows the same error as others, or that complains about a connection, is a victim
 * or a witness. What concerns the job as a whole (its configuration, its data, its numbers, shared
 * storage, an outside service) blames no rank. */

#define HARD_CONFIDENCE  60 /* enough to name a node (algorithms b.2.7) */
#define HARD_FACT        80
#define WITNESSES_MAX    4 /* ranks that show a fault together; more of them saw it, not had it */
#define MANY_RANKS       2
#define SIGNAL_ABORT     6
#define SIGNAL_TERMINATE 15
#define SOFT_REPEATS     3
#define SOFT_REPEAT_SPAN (30 * USEC_PER_MIN)

static void name_node(struct judge *j, const char *node)
{
    struct culprits *c = &j->in->culprits;

    if (!node || !*node || c->n_nodes == CULPRIT_NODES_MAX)
        return;
    for (uint32_t i = 0; i < c->n_nodes; i++)
        if (streq(c->nodes[i], node))
            return;
    STR_COPY(c->nodes[c->n_nodes++], node);
}

static void name_rank(struct judge *j, int32_t rank)
{
    struct culprits *c = &j->in->culprits;

    if (rank == RANK_NONE || c->n_ranks == CULPRIT_RANKS_MAX)
        return;
    for (uint32_t i = 0; i < c->n_ranks; i++)
        if (c->ranks[i] == rank)
            return;
    c->ranks[c->n_ranks++] = rank;
}

static void name_device(struct judge *j, const char *device)
{
    struct culprits *c = &j->in->culprits;

    if (!device || !*device || c->n_devices == CULPRIT_DEVICES_MAX)
        return;
    for (uint32_t i = 0; i < c->n_devices; i++)
        if (streq(c->devices[i], device))
            return;
    STR_COPY(c->devices[c->n_devices++], device);
}

/* ---- hardware ---- */

static void name_by_hardware_hit(struct judge *j, const struct hit *h)
{
    const struct entity *who = &h->s.who;
    bool node_known = *who->node != '\0';

    name_device(j, *who->device ? who->device : roster_device(&j->e->roster, who->rank));
    name_rank(j, who->rank);
    if (h->s.confidence < HARD_CONFIDENCE)
        return;
    name_node(j, node_known ? who->node : roster_node(&j->e->roster, who->rank));
}

static bool is_hardware_fact(const struct hit *h)
{
    return hardware_cause(h->s.cause) && (h->s.role == ROLE_ROOT || h->s.role == ROLE_SYMPTOM);
}

/* How sure the kernel's lines about one device are, together. */
static int32_t device_confidence(const struct judge *j, const char *device)
{
    int64_t doubt = 100;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct hit *h = j->current[i];

        if (is_hardware_fact(h) && h->s.layer == LAYER_KERNEL && streq(h->s.who.device, device))
            doubt = doubt * (100 - h->s.confidence) / 100;
    }
    return (int32_t)(100 - doubt);
}

/* Of several devices the one with most against it, and those with a hard fact of their own: a
 * process on a neighbour feels a fault of the fabric too. */
static bool is_device_culprit(const struct judge *j, const struct hit *h)
{
    int32_t own = device_confidence(j, h->s.who.device);

    if (h->s.role == ROLE_ROOT && h->s.confidence >= HARD_FACT)
        return true;
    for (size_t i = 0; i < j->n_current; i++) {
        const struct hit *o = j->current[i];

        if (*o->s.who.device && is_hardware_fact(o) && o->s.layer == LAYER_KERNEL &&
            device_confidence(j, o->s.who.device) > own)
            return false;
    }
    return true;
}

static void name_hardware(struct judge *j)
{
    const struct hit *p = j->primary;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct hit *h = j->current[i];
        bool counts = h == p || (is_hardware_fact(h) && h->s.role == ROLE_ROOT &&
                                 h->s.confidence >= HARD_CONFIDENCE && hits_concurrent(p, h));

        if (is_hardware_fact(h) && h->s.layer == LAYER_KERNEL && *h->s.who.device)
            counts = is_device_culprit(j, h);
        if (counts)
            name_by_hardware_hit(j, h);
        else if (*h->s.who.device && is_hardware_fact(h))
            rule_out(j, h->s.who.device, "shows less than another GPU: a victim, or a follower");
    }
    if (j->in->culprits.n_ranks > WITNESSES_MAX)
        j->in->culprits.n_ranks = 0;
}

/* The launcher's first failing process is the one under the sick GPU, unless others fail alike. */
static void name_exit_under_hardware(struct judge *j)
{
    const struct exit_seen *x = j->first_exit;

    if (j->in->culprits.n_ranks > 0 || !x || x->who.rank == RANK_NONE || j->n_failing_ranks > 1)
        return;
    name_rank(j, x->who.rank);
    if (j->in->cause == CAUSE_GPU_HARDWARE && j->in->confidence >= HARD_CONFIDENCE &&
        j->in->culprits.n_nodes == 0)
        name_node(j, *x->who.node ? x->who.node : roster_node(&j->e->roster, x->who.rank));
}

/* A code that usually points to the program, again and again on one device over a long time. */
bool hit_is_soft_repeat(const struct hit *h)
{
    return h->s.layer == LAYER_KERNEL && *h->s.who.device && h->count >= SOFT_REPEATS &&
           h->first_us != USEC_UNKNOWN && h->last_us - h->first_us >= SOFT_REPEAT_SPAN;
}

static bool name_soft_repeats(struct judge *j)
{
    for (size_t i = 0; i < j->n_current; i++)
        if (hit_is_soft_repeat(j->current[i])) {
            name_device(j, j->current[i]->s.who.device);
            name_node(j, j->current[i]->s.who.node);
        }
    return j->in->culprits.n_devices > 0;
}

/* ---- votes ---- */

struct tally {
    char peer[PEER_NAME_LEN];
    uint32_t votes;
    char first_reporter[NODE_NAME_LEN];
    bool independent; /* reporters on two nodes */
};

#define PEERS_MAX 64

/* "10.4.17.38<51740>" and "[fe80::1]:51740" name one host. */
static void peer_host(const char *peer, char *ret, size_t size)
{
    size_t n = strcspn(peer, "<");
    const char *colon = memchr(peer, ':', n);

    if (colon && !memchr(colon + 1, ':', (size_t)(peer + n - colon - 1)))
        n = (size_t)(colon - peer);
    str_copy_n(ret, size, peer, n);
}

static void vote(struct tally *t, size_t *n, const struct signal *s)
{
    char host[PEER_NAME_LEN];
    size_t i = 0;

    peer_host(s->who.peer, host, sizeof(host));
    while (i < *n && !streq(t[i].peer, host))
        i++;
    if (i == PEERS_MAX)
        return;
    if (i == *n) {
        t[(*n)++] = (struct tally){0};
        STR_COPY(t[i].peer, host);
        STR_COPY(t[i].first_reporter, s->who.node);
    }
    t[i].votes++;
    t[i].independent |=
        *s->who.node && *t[i].first_reporter && !streq(t[i].first_reporter, s->who.node);
}

static const struct tally *winner(const struct tally *t, size_t n)
{
    const struct tally *best = NULL;
    uint32_t second = 0;

    for (size_t i = 0; i < n; i++) {
        if (!best || t[i].votes > best->votes) {
            second = best ? best->votes : 0;
            best = &t[i];
        } else if (t[i].votes > second) {
            second = t[i].votes;
        }
    }
    return best && best->independent && best->votes >= 2 * second ? best : NULL;
}

static bool is_address(const char *host)
{
    return strspn(host, "0123456789abcdefABCDEF.:%") == strlen(host);
}

static void name_by_vote(struct judge *j)
{
    struct tally t[PEERS_MAX];
    const struct tally *best;
    size_t n = 0;

    for (size_t i = 0; i < j->n_current; i++)
        if (j->current[i]->s.blame == BLAME_PEER && *j->current[i]->s.who.peer)
            vote(t, &n, &j->current[i]->s);
    best = winner(t, n);
    if (!best) {
        if (n > 0)
            rule_out(j, "one end of a broken connection",
                     "no two reporters on different nodes point at the same peer");
        return;
    }
    if (j->in->cause == CAUSE_UNKNOWN)
        j->in->cause = CAUSE_NETWORK;
    if (j->in->confidence < 60)
        j->in->confidence = 60;
    if (!is_address(best->peer))
        name_node(j, best->peer);
}

/* ---- programs ---- */

/* Whether the decisive error is one rank's own. */
static bool is_ones_own(const struct judge *j)
{
    switch (j->in->cause) {
    case CAUSE_USER_CODE:
    case CAUSE_HOST_OOM:
    case CAUSE_FRAMEWORK:
    case CAUSE_UNKNOWN:
    case CAUSE_NODE_FAILURE:
        return j->n_failing_ranks <= 1;
    case CAUSE_GPU_OOM:
        return j->n_failing_ranks == 1 && j->primary && j->primary->s.blame == BLAME_RANK;
    default:
        return false;
    }
}

/* Whether the process that died first died of somebody else's failure: it complains about its
 * peers, or connections broke and it ended itself, as watchdogs do. */
static bool is_victim(const struct judge *j, const struct exit_seen *x)
{
    bool killed = x->signal != 0 && x->signal != SIGNAL_ABORT && x->signal != SIGNAL_TERMINATE;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;

        if (s->role != ROLE_CASCADE || s->cause != CAUSE_NETWORK)
            continue;
        if (s->who.rank == x->who.rank || !killed)
            return true;
    }
    return false;
}

/* The rank of the decisive line, else the first that the launcher saw dying: but that one only if
 * it does not itself complain about others. */
static void name_failing_rank(struct judge *j)
{
    const struct exit_seen *x = j->first_exit;

    if (!is_ones_own(j))
        return;
    if (j->primary && j->primary->s.role != ROLE_CASCADE && j->primary->s.who.rank != RANK_NONE)
        name_rank(j, j->primary->s.who.rank);
    else if (x && x->who.rank != RANK_NONE && is_victim(j, x))
        rule_out(j, "the first rank that died", "rank %d complains about its peers: a victim",
                 x->who.rank);
    else if (x)
        name_rank(j, x->who.rank);
}

/* ---- hangs ---- */

/* Barriers and analyses of flight recorders say in plain words who did not come. */
static void name_missing(struct judge *j)
{
    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;

        if (s->hang && s->kind == SIGNAL_HIT && s->blame == BLAME_RANK && s->role != ROLE_SYMPTOM)
            name_rank(j, s->who.rank);
    }
    if (j->in->culprits.n_ranks > MANY_RANKS)
        j->in->culprits.n_ranks = 0;
}

static void name_few(struct judge *j, const struct intset *ranks)
{
    for (size_t i = 0; i < ranks->n && ranks->n <= MANY_RANKS; i++)
        name_rank(j, ranks->v[i]);
}

/* What was seen of the processes outweighs what they say: one that is stopped, hangs in the kernel
 * or is dead holds up the others. */
static bool name_halted(struct judge *j)
{
    const struct exit_seen *x = j->first_exit;

    name_few(j, &j->e->stopped);
    if (j->in->culprits.n_ranks == 0 && x && provenance_is_privileged(x->provenance))
        name_rank(j, x->who.rank);
    if (j->in->culprits.n_ranks == 0)
        name_few(j, &j->e->blocked);
    return j->in->culprits.n_ranks > 0;
}

static void name_holdup(struct judge *j)
{
    if (name_halted(j))
        return;
    for (size_t i = 0; i < j->holdup.ranks.n; i++)
        name_rank(j, j->holdup.ranks.v[i]);
    if (j->in->culprits.n_ranks == 0)
        name_missing(j);
    if (j->e->waits.reporters > 0 && j->in->culprits.n_ranks == 0)
        rule_out(j, "a rank that is behind", "all %u ranks that report wait at the same place",
                 j->e->waits.reporters);
}

void culprit_name(struct judge *j)
{
    enum cause cause = j->in->cause;

    if (j->in->class == CLASS_HANG) {
        name_holdup(j);
        return;
    }
    if (j->in->class != CLASS_CRASH)
        return;
    if (j->primary && hit_is_soft_repeat(j->primary) && name_soft_repeats(j))
        return;
    if (j->primary && hardware_cause(cause)) {
        name_hardware(j);
        if (cause != CAUSE_NODE_FAILURE)
            name_exit_under_hardware(j);
        return;
    }
    if (cause == CAUSE_NETWORK || cause == CAUSE_UNKNOWN)
        name_by_vote(j);
    if (j->in->culprits.n_nodes == 0)
        name_failing_rank(j);
}
