/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/judge.h"

#include "base/str.h"

#include <stdlib.h>

/* The judgement: what belongs to the end of the attempt, which line is decisive, what happened,
 * who is to blame, what to do, which lines prove it. Pure and repeatable: nothing of the evidence
 * is changed, so a verdict may be asked for while an attempt still runs. */

static usec_t median_step(const struct evidence *e)
{
    if (e->pace.step.n > 0)
        return series_median(e->pace.step.v, e->pace.step.n);
    if (e->pace.gap.n > 0)
        return series_median(e->pace.gap.v, e->pace.gap.n);
    return NUMBER_NONE;
}

static void name_signature(struct judge *j)
{
    const char *id = "";

    if (j->primary)
        id = j->primary->s.signature;
    else if (j->gradient_lost)
        id = "series.nan";
    else if (j->loss)
        id = j->divergence == DIVERGENCE_NAN ? "series.nan" : "series.divergence";
    else if (j->slow)
        id = "series.slowdown";
    else if (j->in->class == CLASS_STRAGGLER && j->telling)
        id = j->telling->s.signature;
    else if (j->in->class == CLASS_HANG && j->first_wait)
        id = j->first_wait->s.signature;
    else if (j->in->class == CLASS_HANG)
        id = j->in->finished ? "series.no_exit" : "series.no_progress";
    STR_COPY(j->in->signature, id);
}

static void note_scene(const struct judge *j, char ret[NODE_NAME_LEN])
{
    const struct roster *r = &j->e->roster;
    const char *node = j->primary ? roster_node_of(r, &j->primary->s.who) : NULL;

    if (!node && j->primary && j->first_exit)
        node = roster_node_of(r, &j->first_exit->who);
    str_copy(ret, NODE_NAME_LEN, node && r->nodes.n > 1 ? node : "");
}

/* The exit status by which NVIDIA's resiliency extension (NVRx) says of any task that its launcher
 * has decided to stop; others of the job may end with 1. */
#define EXIT_NO_RESTART 93

static bool is_told_not_to_restart(const struct evidence *e)
{
    VEC_FOREACH (&e->exits, x)
        if (x->has_code && x->code == EXIT_NO_RESTART)
            return true;
    return false;
}

static void judge(const struct evidence *e, enum ending ending, const char *only_node,
                  struct incident *ret, char ret_scene[NODE_NAME_LEN])
{
    struct judge j = {.e = e, .ending = ending, .only_node = only_node, .in = ret};

    *ret = (struct incident){.progress = e->pace.sum, .dropped = e->dropped + e->waits.refused};
    ret->progress.median_step = median_step(e);
    episode_build(&j);
    primary_choose(&j);
    rules_apply(&j);
    culprit_name(&j);
    note_scene(&j, ret_scene);
    ret->no_restart = ret->class != CLASS_HEALTHY && is_told_not_to_restart(e);
    advice_choose(&j);
    name_signature(&j);
    proof_collect(&j);
    ruled_collect(&j);
    fingerprint_make(&j);
    summary_write(&j);
    intset_done(&j.holdup.ranks);
    free(j.current);
}

void attribute(const struct evidence *e, enum ending ending, struct incident *ret)
{
    attribute_on_node(e, ending, "", ret);
}

void attribute_on_node(const struct evidence *e, enum ending ending, const char *node,
                       struct incident *ret)
{
    char scene[NODE_NAME_LEN];

    judge(e, ending, node, ret, scene);
}

void attribute_scene(const struct evidence *e, enum ending ending, struct incident *ret,
                     char ret_node[NODE_NAME_LEN])
{
    judge(e, ending, "", ret, ret_node);
}
