/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_ATTRIBUTE_RECUR_H
#define REKNIT_CORE_ATTRIBUTE_RECUR_H

#include "core/model/incident.h"

/* An attempt that was judged, and where it failed first. */
struct recur_attempt {
    const struct incident *incident;
    const char *scene; /* node, "" unknown */
};

/* What the attempts before the last one add to its verdict; the latest first. */
void recur_judge(const struct recur_attempt *before, size_t n, const char *scene,
                 struct incident *last);

#endif
