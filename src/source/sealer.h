/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_SEALER_H
#define REKNIT_SOURCE_SEALER_H

/* A reknit-seal process to ask (src/agent/seal.c has what it answers): so that nothing that blocks
 * is called in the loop. It is started when first asked, killed when it does not answer in time,
 * and started again. */

#include "base/cleanup.h"

#include <jansson.h>
#include <systemd/sd-event.h>

#define SEALER_ASKED_MAX 4096

struct sealer;
/* answer: NULL when there will be none; valid during the call only. From the loop, never from
 * within sealer_ask(). */
typedef void (*sealer_answer_fn)(void *ctx, const json_t *answer);

/* argv: of reknit-seal, ended by NULL; copied. */
struct sealer *sealer_new(sd_event *event, const char *const *argv);
/* What is not answered yet is answered with NULL, from within. */
struct sealer *sealer_free(struct sealer *s);
DEFINE_CLEANUP(struct sealer *, sealer_free);

/* op: "seal", "open" or "resolve". Answers come in the order of asking. 0, -ENOBUFS: too much is
 * unanswered. */
int sealer_ask(struct sealer *s, const char *op, const char *text, sealer_answer_fn fn, void *ctx);

#endif
