/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_ENVIRONS_H
#define REKNIT_BASE_ENVIRONS_H

/* The environments of many processes, read in bounded time. */

#include "base/proctree.h"

/* env: NULL when it could not be read, or not in time; valid during the call only. */
typedef void (*environs_fn)(void *ctx, size_t i, const struct proc_environ *env);

/* Calls fn once for each pid, in order; it takes a second at most. */
void environs_read(const pid_t *pids, size_t n, environs_fn fn, void *ctx);

#endif
