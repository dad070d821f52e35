/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_ATTEMPTS_H
#define REKNIT_AGENT_ATTEMPTS_H

/* The attempts that began on this node and are not known to be gone from it; a file keeps them over
 * the ends of the agent and the node. That one is gone can fence the node: it is said when every
 * process of the machine was looked at and none can be of the attempt. */

#include "agent/attempt_id.h"
#include "base/proctree.h"

#define ATTEMPTS_MAX 1024

/* What the steps say that run. */
struct attempts_asks {
    bool (*has_step)(void *ctx, const struct attempt_id *id);
    /* Whether the process is of one of them: all is ascending by pid. */
    bool (*is_of_step)(void *ctx, const struct proc_list *all, const struct proc *p);
};

typedef void (*attempts_gone_fn)(void *ctx, const struct attempt_id *id);

struct attempts;

/* node: our name. path: of the file, or NULL. */
struct attempts *attempts_new(const char *node, const char *path, const struct attempts_asks *asks,
                              void *ctx);
struct attempts *attempts_free(struct attempts *l);

/* Those of the file. */
void attempts_recall(struct attempts *l);

/* false: there are too many. One that is known stays. */
bool attempts_add(struct attempts *l, const struct attempt_id *id);
size_t attempts_count(const struct attempts *l);

/* The last restart of its job and user that is known; false: none. */
bool attempts_find_last(const struct attempts *l, struct attempt_id *id);

/* Whether one is of that user, or was within the last minutes. */
bool attempts_has_user(const struct attempts *l, uid_t user);

/* These were below a slurmstepd of it: they count until they end, whatever they are called. */
void attempts_add_seen(struct attempts *l, const struct attempt_id *id,
                       const struct proc_list *list);

/* Calls gone for those that are, and forgets them. */
void attempts_look(struct attempts *l, attempts_gone_fn gone);

#endif
