/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_PROBE_LOOK_H
#define REKNIT_PROBE_LOOK_H

/* One look at this node, in bounded time although anything on it may hang. */

#include "probe/areas.h"

#define LOOK_MOUNTS_MAX 64
#define NVML_LIBRARY    "libnvidia-ml.so.1"
#define LOOK_DEADLINE   (20 * USEC_PER_SEC)

struct look_config {
    struct probe probe;
    bool areas[AREA_MAX];
    usec_t deadline;    /* for each area, and each mount; they are looked at side by side */
    const char *mounts; /* paths with commas between them, in place of what is mounted; or NULL */
    const char *locks;  /* folder of files that say who still hangs; NULL = that is not known */
};

/* A line of reknit-probe, terminated, without its newline; valid during the call only. */
typedef void (*look_fn)(void *ctx, const char *line);

/* Calls fn for each observation and the ending of each area. */
void look(const struct look_config *c, look_fn fn, void *ctx);

#endif
