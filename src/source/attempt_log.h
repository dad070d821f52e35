/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_ATTEMPT_LOG_H
#define REKNIT_SOURCE_ATTEMPT_LOG_H

/* The kept copy of an attempt's output. Never in the job's way: what cannot be written (a full
 * disk) is dropped and counted. Bounded: the first and the latest part are kept. */

#include "base/cleanup.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct attempt_log;

/* limit_bytes: of PATH and PATH.1 together. `crlf`: the bytes come from a terminal, whose CR LF
 * is written as LF. */
int attempt_log_open(const char *path, uint64_t limit_bytes, bool crlf, struct attempt_log **ret,
                     struct err *e);
/* The same where PATH cannot be opened now: that is tried whenever there is something to write. */
struct attempt_log *attempt_log_open_later(const char *path, uint64_t limit_bytes, bool crlf);
struct attempt_log *attempt_log_free(struct attempt_log *l); /* writes what is still buffered */
DEFINE_CLEANUP(struct attempt_log *, attempt_log_free);

void attempt_log_write(struct attempt_log *l, const char *data, size_t len);
void attempt_log_flush(struct attempt_log *l);

uint64_t attempt_log_lost(const struct attempt_log *l); /* bytes that could not be written */
int attempt_log_error(const struct attempt_log *l);     /* why not: negative errno, 0 = none */

#endif
