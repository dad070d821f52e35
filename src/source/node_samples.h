/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_NODE_SAMPLES_H
#define REKNIT_SOURCE_NODE_SAMPLES_H

/* The activity of an attempt on many nodes, put together: for whether a job works, all its nodes
 * count. As long as one of them says nothing, nothing is known. */

#include "core/model/signal.h"

#define NODE_SAMPLES_AGE (60 * USEC_PER_SEC) /* older ones do not belong together */

struct node_samples;

struct node_samples *node_samples_new(void);
struct node_samples *node_samples_free(struct node_samples *s);

/* What one node did. With it each of so many nodes has spoken: true, ret is the whole, and a new
 * round begins. f is of a sane event, and so is ret. now: a monotonic clock. */
bool node_samples_add(struct node_samples *s, const char *node, const struct activity_fact *f,
                      uint32_t nodes, usec_t now, struct activity_fact *ret);

#endif
