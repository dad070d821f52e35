/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_DRAIN_H
#define REKNIT_AGENT_DRAIN_H

/* Has Slurm give a node no new job, by scontrol: for the checks that Slurm starts itself, where
 * there is no reknitd in between. */

#include "base/err.h"

#define DRAIN_REASON "reknit: " /* begins each of ours: what begins so, reknit may undo */

/* 0: it is drained, now or by somebody before, whose reason stays. Negative errno: it is not known
 * to be. scontrol: a path, or a name to be sought in PATH. */
int drain_node(const char *scontrol, const char *node, const char *reason, struct err *e);

#endif
