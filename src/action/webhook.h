/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_ACTION_WEBHOOK_H
#define REKNIT_ACTION_WEBHOOK_H

/* Tells people what was decided, by posting to a URL. Few come one by one; many at once are folded
 * into one message. What the receiver does not take is sent again, later and later.
 *
 * Sent means: the receiver answered 2xx. A message whose answer is lost is sent again, with the
 * same Idempotency-Key, so that a receiver can tell; beyond that, none is sent twice, as long as
 * `settled` is remembered over a restart. */

#include "action/notice.h"
#include "base/cleanup.h"

#include <systemd/sd-event.h>

#define WEBHOOK_PENDING_MAX 1024                /* notices; beyond, they are only counted */
#define WEBHOOK_SINGLE_MAX  3                   /* more at once are folded */
#define WEBHOOK_GATHER      (2 * USEC_PER_SEC)  /* for others, after each one */
#define WEBHOOK_GATHER_MAX  (10 * USEC_PER_SEC) /* ... and after the first */
#define WEBHOOK_FOLD_PAUSE  (30 * USEC_PER_SEC) /* after a folded message */
#define WEBHOOK_RETRY_MIN   (2 * USEC_PER_SEC)  /* doubles */
#define WEBHOOK_RETRY_MAX   (5 * USEC_PER_MIN)
#define WEBHOOK_GIVE_UP     (24 * USEC_PER_HOUR) /* after the first try */

/* Text is borrowed during the call. */
struct webhook_config {
    const char *program; /* reknit-post */
    const char *url, *token_file, *ca_cert;
};

struct webhook_handlers {
    /* Nothing up to that event has to be sent any more. */
    void (*settled)(void *ctx, uint64_t seq);
    /* It does not work, and why; NULL: it works again. Never contains the URL. */
    void (*trouble)(void *ctx, const char *why);
    const char *(*cluster)(void *ctx); /* its name, "" = not known */
};

struct webhook_counts {
    uint64_t sent, failed, given_up; /* messages, tries, messages */
    uint64_t folded, dropped;        /* notices that were counted; that were not even listed */
    uint32_t pending;                /* notices */
    const char *trouble;             /* NULL = none */
};

struct webhook;

struct webhook *webhook_new(sd_event *event, const struct webhook_config *c,
                            const struct webhook_handlers *handlers, void *ctx);
struct webhook *webhook_free(struct webhook *w);
DEFINE_CLEANUP(struct webhook *, webhook_free);

/* Another URL or token holds from the next try on. */
void webhook_configure(struct webhook *w, const struct webhook_config *c);
void webhook_add(struct webhook *w, const struct notice *n);
bool webhook_is_idle(const struct webhook *w); /* nothing waits to be sent */
void webhook_counts(const struct webhook *w, struct webhook_counts *ret);

#endif
