/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_ATTRIBUTE_CULPRIT_H
#define REKNIT_CORE_ATTRIBUTE_CULPRIT_H

/* Naming, shared by the files that find reasons for it. Names are kept once; those beyond the
 * limits of struct culprits are dropped. */

#include "core/attribute/judge.h"

#define HARD_CONFIDENCE 60 /* enough to name a node (algorithms b.2.7) */
#define WITNESSES_MAX   4  /* ranks that show a fault together; more of them saw it, not had it */

void name_node(struct judge *j, const char *node); /* NULL and "" are no name */
void name_rank(struct judge *j, int32_t rank);
void name_device(struct judge *j, const char *device);

void name_by_hardware_hit(struct judge *j, const struct hit *h);
void name_hardware(struct judge *j);     /* hardware.c: the primary is a hardware fact */
bool name_soft_repeats(struct judge *j); /* hardware.c */
void name_slow(struct judge *j);         /* hardware.c: who is slow, if something says so */
void name_by_vote(struct judge *j);      /* vote.c */

#endif
