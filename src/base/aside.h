/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_ASIDE_H
#define REKNIT_BASE_ASIDE_H

/* Something about many processes, read in bounded time although reading may hang. */

#include "base/str.h"

#include <sys/types.h>

/* Called in a child. Negative errno: it cannot be read. */
typedef int (*aside_read_fn)(pid_t pid, struct strbuf *ret);

/* text: NULL when it could not be read, or not in time; valid during the call only. */
typedef void (*aside_fn)(void *ctx, size_t i, const struct strbuf *text);

/* Calls fn once for each pid, in order, with what `read` says of it; it takes a second at most. */
void aside_read(const pid_t *pids, size_t n, aside_read_fn read, aside_fn fn, void *ctx);

#endif
