/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_ATTRIBUTE_CULPRIT_H
#define REKNIT_CORE_ATTRIBUTE_CULPRIT_H

/* Naming, shared by the files that find reasons for it. Names are kept once; those beyond the
 * limits of struct culprits are dropped. */

#include "core/attribute/judge.h"

#define HARD_CONFIDENCE 60 /* enough to name a node (algorithms b.2.7) */
#define WITNESSES_MAX   4  /* ranks that show a fault together; more of them saw it, not had it */

void culprit_node(struct judge *j, const char *node); /* NULL and "" are no name */
void culprit_rank(struct judge *j, int32_t rank);
void culprit_device(struct judge *j, const char *device);

void culprit_by_hardware_hit(struct judge *j, const struct hit *h);
void culprit_hardware(struct judge *j);     /* hardware.c: the primary is a hardware fact */
bool culprit_soft_repeats(struct judge *j); /* hardware.c */
void culprit_slow(struct judge *j);         /* hardware.c: who is slow, if something says so */
void culprit_by_vote(struct judge *j);      /* vote.c */
bool vote_names(const struct judge *j, const char *node); /* the others lost this node */
bool culprit_by_place(struct judge *j);                   /* place.c */

#endif
