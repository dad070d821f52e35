/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_COUNTER_H
#define REKNIT_EXTRACT_COUNTER_H

/* Progress of a program that nobody knows: the lines that differ only in their numbers, one of
 * which grows steadily. */

#include "base/cleanup.h"
#include "extract/line.h"

#define COUNTER_SIGNATURE "progress.counter"

struct counters;

struct counters *counters_new(void);
struct counters *counters_free(struct counters *c);
DEFINE_CLEANUP(struct counters *, counters_free);

/* Feeds a line that nothing else matched; true: it is a step, and ret says which. */
bool counters_feed(struct counters *c, const struct line *line, struct step_fact *ret);

#endif
