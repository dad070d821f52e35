/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_COALESCE_H
#define REKNIT_SOURCE_COALESCE_H

/* Thins a job's signals out before they are journaled: progress to one a second, errors only
 * when they come in floods, and then with a count. */

#include "base/cleanup.h"
#include "core/model/signal.h"

struct coalesce;
typedef void (*coalesce_sink_fn)(void *ctx, const struct signal *s);

struct coalesce *coalesce_new(coalesce_sink_fn sink, void *ctx);
struct coalesce *coalesce_free(struct coalesce *c); /* drops what is held: flush first */
DEFINE_CLEANUP(struct coalesce *, coalesce_free);

void coalesce_signal(struct coalesce *c, const struct signal *s, usec_t now);

/* Hands on what is held and due; everything that is held, when `all`. Returns when to call next,
 * USEC_NEVER = nothing is held. */
usec_t coalesce_flush(struct coalesce *c, usec_t now, bool all);

#endif
