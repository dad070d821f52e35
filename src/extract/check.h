/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_CHECK_H
#define REKNIT_EXTRACT_CHECK_H

/* The catalogue tested against itself: every entry on its own examples, and on those of all
 * others. Whoever came later is at fault: an entry of an earlier folder was sound without it. */

#include "extract/matcher.h"

typedef void (*check_report_fn)(void *ctx, const struct entry *entry, const char *complaint);

/* Calls report for every fault found, and for what an entry that replaces another one changes for
 * the rest, which is its right; returns how many faults there were. */
size_t catalog_check(struct matcher *m, check_report_fn report, void *ctx);

#endif
