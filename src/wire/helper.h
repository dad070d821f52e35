/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_WIRE_HELPER_H
#define REKNIT_WIRE_HELPER_H

/* A program of ours that does what may block or has to do with strangers (src/seal/seal.c,
 * src/action/post.c), and answers in lines of JSON: so that nothing of that happens in the loop. It
 * is started when first asked, killed when it does not answer in time, and started again. */

#include "base/cleanup.h"
#include "base/time.h"

#include <jansson.h>
#include <systemd/sd-event.h>

#define HELPER_ASKED_MAX 4096

struct helper;
/* answer: NULL when there will be none, {"error":"..."} when the program cannot be started; valid
 * during the call only. From the loop, never from within helper_ask(). */
typedef void (*helper_answer_fn)(void *ctx, const json_t *answer);

#define HELPER_PATIENCE (30 * USEC_PER_SEC)

/* argv: ended by NULL; copied. patience: for an answer, from the asking. */
struct helper *helper_new(sd_event *event, const char *const *argv, usec_t patience);
/* What is not answered yet is so from within, as when there will be none. */
struct helper *helper_free(struct helper *h);
DEFINE_CLEANUP(struct helper *, helper_free);

/* Takes the question. Answers come in the order of asking. 0, -ENOBUFS: too much is unanswered. */
int helper_ask(struct helper *h, json_t *question, helper_answer_fn fn, void *ctx);

#endif
