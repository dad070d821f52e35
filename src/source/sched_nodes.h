/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_SCHED_NODES_H
#define REKNIT_SOURCE_SCHED_NODES_H

/* The scheduler's nodes, as far as they matter to jobs: which could be used, which are down, which
 * do not answer; and of which the latter two have changed, so that only the jobs on those are
 * looked at again. A cluster has ten thousand of them, and a few in trouble. */

#include "base/cleanup.h"
#include "core/state/state.h"

#include <jansson.h>

struct sched_nodes;
struct sched_nodes *sched_nodes_new(void);
struct sched_nodes *sched_nodes_free(struct sched_nodes *t);
DEFINE_CLEANUP(struct sched_nodes *, sched_nodes_free);

/* An answer to `nodes` (docs/ADAPTER.md), to each of them with `diff`. */
void sched_nodes_take(struct sched_nodes *t, const json_t *answer);

size_t sched_nodes_count(const struct sched_nodes *t);
/* Where the scheduler reaches it; NULL = there is no such node. */
const char *sched_nodes_address(const struct sched_nodes *t, const char *name);
/* Why a node is out of service, by whose word, since when: as the scheduler has it, not sanitised.
 * False: there is no such node. */
struct sched_node_word {
    const char *reason, *who; /* "" = none is given */
    usec_t since;
    bool usable;
    bool drain;    /* somebody said that nothing new shall start there */
    usec_t booted; /* 0 = not known */
};
bool sched_nodes_word(const struct sched_nodes *t, const char *name, struct sched_node_word *ret);
void sched_nodes_each(const struct sched_nodes *t,
                      void (*fn)(void *ctx, const char *name, const struct sched_node_word *word),
                      void *ctx);
/* How many could be used, without those that are listed, in the partition of these ("a,b": a job
 * that waits in several runs in one) that has most of them; -1: that is not known. */
int sched_nodes_usable(const struct sched_nodes *t, const char *partitions, const json_t *exclude,
                       const struct intent_facts *without);

/* Those of a (compressed) list that there are, without those of the intent: an array of names. */
json_t *sched_nodes_listed(const struct sched_nodes *t, const char *hosts,
                           const struct intent_facts *without);

/* One of that (compressed) list that is down; "" = none. */
const char *sched_nodes_down_of(const struct sched_nodes *t, const char *hosts);
/* One of the list that does not answer, or may be, "" = none: of j, which may be NULL, rather one
 * that is not fenced for it; and the one that was lost, while nothing is known of that. */
const char *sched_nodes_silent_of(const struct sched_nodes *t, const char *hosts,
                                  const struct job *j);

/* Whether one of that list went down, came back, fell silent or answered again since the last
 * call of sched_nodes_news_done(). */
bool sched_nodes_has_news(const struct sched_nodes *t);
bool sched_nodes_news_of(const struct sched_nodes *t, const char *hosts);
void sched_nodes_news_done(struct sched_nodes *t);

#endif
