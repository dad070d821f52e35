/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/culprit.h"

#include "base/str.h"

/* Names from facts about hardware: what the kernel, the driver or a monitor says of a device or
 * node. Ranks come in only as those whose process met the fault first. Where the attempt had one
 * node, what is said without a name of it is said of that one: no other was there. */

#define SOFT_REPEATS     3
#define SOFT_REPEAT_SPAN (30 * USEC_PER_MIN)

/* Where the process that ended first ran, if it was that rank. */
static const char *node_of_first_exit(const struct judge *j, int32_t rank)
{
    const struct exit_seen *x = j->first_exit;

    if (!x || rank == RANK_NONE || roster_rank_of(&j->e->roster, &x->who) != rank)
        return NULL;
    return *x->who.node ? x->who.node : NULL;
}

/* A node whose name the text leaves out. Text that says that a node is gone was not written on it,
 * and so is about none of an attempt that had just one; a scheduler's word is. */
static const char *unnamed_node(const struct judge *j, const struct hit *h)
{
    bool lives = h->s.cause == CAUSE_NODE_FAILURE && !provenance_is_privileged(h->s.provenance);

    return lives ? NULL : j->only_node;
}

void culprit_by_hardware_hit(struct judge *j, const struct hit *h)
{
    struct entity who = h->s.who;
    const char *node;
    int32_t rank;

    if (h->s.cause == CAUSE_NODE_FAILURE && h->s.blame == BLAME_NONE)
        return;                     /* who tells of it lives on */
    if (h->s.layer == LAYER_KERNEL) /* knows of no ranks: what looks like one is another label */
        who.rank = RANK_NONE;
    rank = roster_rank_of(&j->e->roster, &who);
    culprit_device(j, *who.device ? who.device : roster_device(&j->e->roster, rank));
    culprit_rank(j, rank);
    node = roster_node_of(&j->e->roster, &who);
    if (!node)
        node = node_of_first_exit(j, rank);
    if (h->s.confidence >= HARD_CONFIDENCE)
        culprit_node(j, node ? node : unnamed_node(j, h));
}

static bool is_hardware_fact(const struct hit *h)
{
    return cause_is_hardware(h->s.cause) && (h->s.role == ROLE_ROOT || h->s.role == ROLE_SYMPTOM);
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

static void name_by_hits(struct judge *j)
{
    const struct hit *p = j->primary;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct hit *h = j->current[i];
        bool counts = h == p || (is_hardware_fact(h) && h->s.role == ROLE_ROOT &&
                                 h->s.confidence >= HARD_CONFIDENCE && hits_concurrent(p, h));

        if (is_hardware_fact(h) && h->s.layer == LAYER_KERNEL && *h->s.who.device)
            counts = is_device_culprit(j, h);
        if (counts)
            culprit_by_hardware_hit(j, h);
        else if (*h->s.who.device && is_hardware_fact(h))
            ruled_add(j, h->s.who.device,
                      "shows less than another device: a victim, or a follower");
    }
    if (j->in->culprits.n_ranks > WITNESSES_MAX)
        j->in->culprits.n_ranks = 0;
}

/* The only rank that a coordinator or launcher misses. */
static int32_t missed_rank(const struct judge *j)
{
    int32_t rank = RANK_NONE;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;

        if (s->role != ROLE_SYMPTOM || s->cause != CAUSE_UNKNOWN || s->blame != BLAME_RANK ||
            s->kind == SIGNAL_COLLECTIVE || s->who.rank == RANK_NONE)
            continue;
        if (rank != RANK_NONE && rank != s->who.rank)
            return RANK_NONE;
        rank = s->who.rank;
    }
    return rank;
}

/* Whether a rank is known to run elsewhere than on the nodes that are named, or may be no more than
 * the launcher that read a report on hardware. */
static bool is_elsewhere(const struct judge *j, const struct exit_seen *x, int32_t rank)
{
    const struct culprits *c = &j->in->culprits;
    const char *node = x && *x->who.node ? x->who.node : roster_node(&j->e->roster, rank);

    if (c->n_nodes == 0)
        return j->primary->s.layer != LAYER_JOB && roster_is_alone(&j->e->roster) &&
               j->e->roster.told_nodes != 1;
    for (uint32_t i = 0; node && i < c->n_nodes; i++)
        if (streq(c->nodes[i], node))
            return false;
    return node != NULL;
}

/* Hardware text without a name: the first failing process, or the only one that is missed, is the
 * one under the sick GPU, unless others fail alike. */
static void name_exit_under_hardware(struct judge *j)
{
    const struct exit_seen *x = j->first_exit;
    int32_t rank = x ? roster_rank_of(&j->e->roster, &x->who) : RANK_NONE;

    if (rank == RANK_NONE)
        rank = missed_rank(j);
    if (x && !exit_is_first(j->e, x))
        return;
    if (j->in->culprits.n_ranks > 0 || rank == RANK_NONE || j->n_failing_ranks > 1 ||
        is_elsewhere(j, x, rank))
        return;
    culprit_rank(j, rank);
    if (j->in->cause == CAUSE_GPU_HARDWARE && j->in->confidence >= HARD_CONFIDENCE &&
        j->in->culprits.n_nodes == 0)
        culprit_node(j, x && *x->who.node ? x->who.node : roster_node(&j->e->roster, rank));
}

#define SAME_EVERYWHERE 3 /* devices */

/* Whether other devices show the same: then it is what runs on them. */
bool hit_is_everywhere(const struct judge *j, const struct hit *h)
{
    size_t n = 1;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;

        n += streq(s->signature, h->s.signature) && streq(s->who.node, h->s.who.node) &&
             *s->who.device && !streq(s->who.device, h->s.who.device);
    }
    return n >= SAME_EVERYWHERE;
}

/* A code that usually points to the program, again and again on one device over a long time. */
bool hit_is_soft_repeat(const struct hit *h)
{
    return h->s.layer == LAYER_KERNEL && *h->s.who.device && h->count >= SOFT_REPEATS &&
           h->lasted >= SOFT_REPEAT_SPAN;
}

bool culprit_soft_repeats(struct judge *j)
{
    for (size_t i = 0; i < j->n_current; i++)
        if (hit_is_soft_repeat(j->current[i]) && !hit_is_everywhere(j, j->current[i])) {
            culprit_device(j, j->current[i]->s.who.device);
            culprit_node(j, j->current[i]->s.who.node);
        }
    return j->in->culprits.n_devices > 0;
}

void culprit_hardware(struct judge *j)
{
    name_by_hits(j);
    if (j->in->cause != CAUSE_NODE_FAILURE)
        name_exit_under_hardware(j);
}

/* Whether the line was written while the job was slow, and not before; what made the first slow
 * step slow stands in front of it. */
static bool is_of_slow_time(const struct judge *j, const struct hit *h)
{
    const struct sample *from;

    if (!j->slow)
        return h->s.straggler && h->s.blame == j->telling->s.blame &&
               h->last_order >= j->telling->order && h->count > 1;
    from = j->slow->last_before.value != METRIC_NAN ? &j->slow->last_before : &j->slow->onset[0];
    if (h->s.file == from->file)
        return h->s.line >= from->line;
    return h->first_us != USEC_UNKNOWN && from->time_us != USEC_UNKNOWN &&
           h->first_us >= from->time_us;
}

/* Thermal limits, straggler reports and the like, of the time since the job is slow. */
void culprit_slow(struct judge *j)
{
    const struct hit *best = NULL;

    VEC_FOREACH (&j->e->hits, h) {
        if (!cause_is_hardware(h->s.cause) || h->s.role > ROLE_CONFIRM || !is_of_slow_time(j, h))
            continue;
        culprit_node(j, roster_node_of(&j->e->roster, &h->s.who));
        culprit_rank(j, roster_rank_of(&j->e->roster, &h->s.who));
        culprit_device(j, h->s.who.device);
        if (!best || hit_before(h, best))
            best = h;
    }
    if (best)
        j->telling = best;
    if (j->in->culprits.n_ranks > WITNESSES_MAX || j->in->culprits.n_nodes > WITNESSES_MAX) {
        j->in->culprits = (struct culprits){0};
        j->telling = NULL;
    }
    if (j->telling)
        j->in->cause = j->telling->s.cause;
}
