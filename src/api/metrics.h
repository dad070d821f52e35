/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_METRICS_H
#define REKNIT_API_METRICS_H

/* Numbers for Prometheus, from one table (metrics.c). Labels are words of the vocabulary alone:
 * nothing that a job or user chose, so their number is bounded. Counters begin at 0 with the
 * daemon. */

#include "api/api.h"

struct metrics;
struct store;

struct metrics *metrics_new(void);
struct metrics *metrics_free(struct metrics *x);

void metrics_happened(struct metrics *x, const struct event *e);

/* The exposition format, version 0.0.4; the caller frees it. */
char *metrics_text(const struct metrics *x, const struct store *store, const struct api_status *s);

#endif
