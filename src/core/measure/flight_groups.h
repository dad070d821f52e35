/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MEASURE_FLIGHT_GROUPS_H
#define REKNIT_CORE_MEASURE_FLIGHT_GROUPS_H

/* The steps of flight_judge(). */

#include "core/measure/flight_judge.h"

/* Which ranks' groups are the same; fills j->groups and what each rank says there. */
void flight_groups_find(struct flight *f, struct flight_judgement *j);

/* Where the ranks of a group stand to each other. */
void flight_group_compare(const struct flight *f, struct flight_group *g);

/* Whether ranks of the group asked for different things under one number; adds those that are
 * clearly fewer to the culprits. */
void flight_group_check(const struct flight *f, struct flight_judgement *j, uint32_t group);

/* Who waits for whom: blames those who wait for nobody; strict: and who have nothing open. */
void flight_waits_follow(const struct flight *f, struct flight_judgement *j, bool with_p2p,
                         bool strict);

/* Ranks that wait for each other in collectives, in a circle. */
void flight_waits_circle(const struct flight *f, struct flight_judgement *j);

#endif
