/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_TUNNELS_H
#define REKNIT_AGENT_TUNNELS_H

/* Readers of logs on this node, for a reknitd that has no such file system. Each has a connection
 * of its own to reknitd, and ends with it. They are started by this node's reknit-spawner, as the
 * owners of jobs, by its rules. */

#include "agent/greet.h"
#include "source/children.h"

#define TUNNELS_MAX 64

struct tunnels_config {
    const char *node, *port; /* our name, and where reknitd listens */
    const char *spawner;     /* its socket */
};

struct tunnel_question {
    int64_t number; /* reknitd's */
    uid_t uid;
    gid_t gid; /* (gid_t)-1 = not said */
};

struct tunnels;

/* refused: why a question is not answered by a connection. NULL when the loop refuses. */
struct tunnels *tunnels_new(sd_event *event, const struct tunnels_config *c,
                            void (*refused)(void *ctx, int64_t number, const char *why), void *ctx);
struct tunnels *tunnels_free(struct tunnels *t);

/* address: of reknitd, which is to prove itself by `greets`. All that they point to, and the
 * sealer, are borrowed until the answer is there, or we are freed. */
void tunnels_open(struct tunnels *t, const struct tunnel_question *q, const char *address,
                  const struct greet_config *greets, struct helper *sealer);

size_t tunnels_count(const struct tunnels *t);

#endif
