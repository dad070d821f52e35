/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_ATTRIBUTE_RECUR_H
#define REKNIT_CORE_ATTRIBUTE_RECUR_H

#include "core/model/incident.h"

/* What the attempts before the last one add to its verdict: the latest first, each failed. */
void recur_judge(const struct incident *const *before, size_t n, struct incident *last);

#endif
