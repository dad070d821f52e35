/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/recur.h"

#include "base/str.h"

#include <inttypes.h>

/* An error that may be the program's or the machine's is told apart by what stays the same from one
 * attempt to the next. A program that is wrong, or data that is, fails under the same rank wherever
 * that runs. Where the placement changed, so that it is another rank, and the node is the same in
 * all attempts, it is the node. */

#define ATTEMPTS_LEAST 3  /* with the last one */
#define AMBIGUOUS      60 /* percent: who is surer of the cause needs no such argument */
#define SURE_OF_NODE   70

static bool is_open_question(const struct incident *in)
{
    return in->class == CLASS_CRASH && in->confidence < AMBIGUOUS && in->culprits.n_nodes == 0 &&
           in->culprits.n_ranks == 1 &&
           (in->cause == CAUSE_USER_CODE || in->cause == CAUSE_UNKNOWN ||
            in->cause == CAUSE_FRAMEWORK);
}

/* Of an earlier attempt: the same question, or the answer. */
static bool agrees(const struct recur_attempt *a, const char *scene)
{
    const struct incident *in = a->incident;
    bool hardware = in->cause == CAUSE_GPU_HARDWARE || in->cause == CAUSE_NODE_HARDWARE;

    return streq(a->scene, scene) && in->culprits.n_ranks == 1 &&
           (is_open_question(in) || (in->class == CLASS_CRASH && hardware));
}

static void name_node(struct incident *in, const char *node, size_t attempts)
{
    struct ruled_out *r;

    in->cause = CAUSE_NODE_HARDWARE;
    in->advice = ADVICE_RESTART_EXCLUDING;
    in->confidence = SURE_OF_NODE;
    in->culprits.n_ranks = 0;
    in->culprits.n_nodes = 1;
    STR_COPY(in->culprits.nodes[0], node);
    str_printf(in->summary, sizeof(in->summary),
               "Node %s failed in %zu attempts in a row, under ranks that changed.", node,
               attempts);
    if (in->n_ruled_out == RULED_OUT_MAX)
        return;
    r = &in->ruled_out[in->n_ruled_out++];
    STR_COPY(r->what, "an error of the program");
    STR_COPY(r->why, "it follows the node and not the rank");
}

void recur_judge(const struct recur_attempt *before, size_t n, const char *scene,
                 struct incident *last)
{
    size_t same = 1, others = 0;

    if (!is_open_question(last) || !*scene)
        return;
    for (; same <= n && agrees(&before[same - 1], scene); same++)
        others += before[same - 1].incident->culprits.ranks[0] != last->culprits.ranks[0];
    if (same >= ATTEMPTS_LEAST && others > 0)
        name_node(last, scene, same);
}
