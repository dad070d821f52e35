/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/culprit.h"

#include "base/str.h"

/* Blame by place: a fault that the whole job would feel (a shared file system, a network) is told
 * of by many nodes. Where several nodes take part, and all that tells of the fault comes from one
 * of them, it is that node's own: its mount, its client, its disk. One line proves nothing, it may
 * only have been the first; two witnesses do: two ranks, a rank and the kernel of its node, or a
 * rank and the others who lost that node; and of its own device a kernel need not be asked twice.
 * What is full or not allowed is so for everybody, whoever says it first; and what came back by
 * itself is no reason to keep a node out. */

#define NODES_MIN       2
#define WITNESSES_MIN   2
#define WITNESS_CERTAIN 40 /* percent: less is no statement about a cause */

struct scene {
    const char *node;
    bool elsewhere; /* a witness is on another node */
    bool unplaced;  /* nobody knows where one is */
    struct intset ranks;
    const char *other;  /* what a witness that is no rank said: the kernel, the scheduler */
    bool others_differ; /* it said two things */
    bool is_device;     /* it told of a device of its own */
};

static bool is_of_place(enum cause c)
{
    return c == CAUSE_STORAGE || c == CAUSE_NETWORK;
}

static bool is_witness(const struct judge *j, const struct hit *h)
{
    return h->s.cause == j->in->cause && h->s.confidence >= WITNESS_CERTAIN &&
           (h->s.role == ROLE_ROOT || h->s.role == ROLE_SYMPTOM);
}

static void hear(const struct judge *j, const struct hit *h, struct scene *s)
{
    const struct entity *who = &h->s.who;
    int32_t rank = roster_rank_of(&j->e->roster, who);
    const char *node = roster_node_of(&j->e->roster, who);

    if (!node) {
        s->unplaced |= rank != RANK_NONE;
        return;
    }
    if (s->node && !streq(s->node, node))
        s->elsewhere = true;
    s->node = node;
    if (rank != RANK_NONE)
        intset_add(&s->ranks, rank);
    if (h->s.layer == LAYER_JOB)
        return;
    s->others_differ |= s->other && !streq(s->other, h->s.signature);
    s->other = h->s.signature;
    s->is_device |= h->s.layer == LAYER_KERNEL && h->s.role == ROLE_ROOT &&
                    h->s.blame == BLAME_NODE && h->s.confidence >= HARD_FACT;
}

bool culprit_by_place(struct judge *j)
{
    struct scene s = {0};
    const struct hit *p = j->primary ? j->primary : j->telling;
    size_t witnesses;

    if (!p || !is_of_place(j->in->cause) || p->s.advice == ADVICE_STOP ||
        j->e->roster.nodes.n < NODES_MIN)
        return false;
    for (size_t i = 0; i < j->n_current; i++)
        if (is_witness(j, j->current[i]))
            hear(j, j->current[i], &s);
    witnesses = s.ranks.n + (s.other != NULL) + s.is_device;
    if (j->in->class == CLASS_HANG) /* who waits for a disk says nothing itself */
        witnesses += s.others_differ;
    intset_done(&s.ranks);
    if (!s.node || s.elsewhere || (s.unplaced && !s.is_device) ||
        evidence_healed(j->e, p->s.signature, s.node))
        return false;
    if (witnesses < WITNESSES_MIN && !vote_names(j, s.node))
        return false;
    culprit_node(j, s.node);
    return true;
}
