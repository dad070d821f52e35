/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_SCHED_EVENTS_H
#define REKNIT_SOURCE_SCHED_EVENTS_H

/* What a look at the scheduler means for core: its record of a job, beside what core knows of it,
 * becomes the inputs that bring core up to date. Pure: the same after a restart of the daemon, and
 * as often as it is called. What core cannot take yet (the next attempt runs, while the last is
 * still being judged) is left for the next look. */

#include "core/state/state.h"
#include "source/sched_job.h"

typedef void sched_emit_fn(void *ctx, const struct event *e);

/* Facts beside the record that only who sees all jobs and nodes can know. */
struct sched_around {
    const char *down_node;    /* of the job's nodes, one that is down; "" = none */
    const char *lost_node;    /* of the nodes that the attempt runs on, or the last one ran on, one
                                 that does not answer; "" = none */
    bool over;                /* it had ended before anybody looked */
    bool stranded, outranked; /* as in struct look_facts */
    /* Nodes that core wants to be kept out, and that the scheduler does not have any more. */
    uint32_t n_absent;
    char absent[KEPT_OUT_MAX][NODE_NAME_LEN];
    const uint32_t *successors;
    uint32_t n_successors; /* at most SUCCESSORS_MAX */
};

/* j: what core knows, NULL = nothing yet. Returns whether anything was emitted. */
bool sched_translate(const struct sched_job *r, const struct sched_around *around,
                     const struct job *j, const char *key, sched_emit_fn *emit, void *ctx);

/* The scheduler has no record of it any more. */
bool sched_translate_gone(const struct job *j, sched_emit_fn *emit, void *ctx);

#endif
