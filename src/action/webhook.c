/* SPDX-License-Identifier: Apache-2.0 */

/* Notices wait until no other has come for a moment, or none may be sent yet; then what waits
 * becomes one message, or, when it is few, the oldest of it does. That message is the one in hand,
 * with its key, until the receiver takes it or it is given up: it is never made anew, so that a
 * second copy, should there be one, is the same to the byte.
 *
 * A receiver that answers 4xx will not take it ever, except for 408, 425 and 429: those, 5xx and no
 * answer at all are tried again. */

#include "action/webhook.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "base/timer.h"
#include "base/vec.h"
#include "wire/helper.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define PATIENCE     (40 * USEC_PER_SEC) /* reknit-post gives up earlier */
#define SINGLE_PAUSE USEC_PER_SEC

struct webhook {
    char *url, *token_file, *ca_cert;
    struct webhook_handlers handlers;
    void *ctx;
    struct helper *post;
    sd_event_source *timer;
    VEC(struct notice) pending; /* oldest first */
    uint64_t more;              /* that found no place behind them */
    uint64_t more_seq;          /* the last of those */
    usec_t earliest;            /* monotonic: when the next new message may go */
    usec_t first;               /* monotonic: when what waits began to */

    /* In hand: */
    json_t *message; /* NULL = none */
    char key[96];
    uint64_t last; /* seq of the last event it tells of */
    bool asked, ending;
    usec_t first_try, wait; /* monotonic */

    struct webhook_counts counts;
    char trouble[160];
};

static void set_text(char **at, const char *s)
{
    free(*at);
    *at = xstrdup(s ? s : "");
}

void webhook_configure(struct webhook *w, const struct webhook_config *c)
{
    set_text(&w->url, c->url);
    set_text(&w->token_file, c->token_file);
    set_text(&w->ca_cert, c->ca_cert);
}

static void arm(struct webhook *w, usec_t at)
{
    timer_arm(w->timer, at);
}

/* Messages */

static void put_in_hand(struct webhook *w, size_t n)
{
    const char *cluster = w->handlers.cluster(w->ctx);
    uint64_t more = n == w->pending.n ? w->more : 0;

    cluster = *cluster ? cluster : "Reknit";
    w->message = notice_message(cluster, w->pending.v, n, more);
    w->last = more > 0 ? w->more_seq : w->pending.v[n - 1].seq;
    STR_PRINTF(w->key, "%s-%" PRIu64 "-%" PRIu64, cluster, w->pending.v[0].seq, w->last);
    w->first_try = mono_us();
    w->wait = 0;
    if (n > 1 || more > 0) {
        w->counts.folded += n + more;
        w->more = 0;
    }
    memmove(w->pending.v, w->pending.v + n, (w->pending.n - n) * sizeof(w->pending.v[0]));
    w->pending.n -= n;
    w->first = w->first_try;
    w->earliest = mono_us() + (n > 1 || more > 0 ? WEBHOOK_FOLD_PAUSE : SINGLE_PAUSE);
}

static void out_of_hand(struct webhook *w)
{
    json_decref(w->message);
    w->message = NULL;
    w->handlers.settled(w->ctx, w->last);
    if (w->pending.n > 0)
        arm(w, w->earliest);
}

static void say_trouble(struct webhook *w, const char *why)
{
    bool was = w->trouble[0] != '\0';

    if (why ? streq(w->trouble, why) : !was)
        return;
    STR_COPY(w->trouble, why ? why : "");
    w->handlers.trouble(w->ctx, why ? w->trouble : NULL);
}

/* Answers */

static void taken(struct webhook *w)
{
    w->counts.sent++;
    say_trouble(w, NULL);
    out_of_hand(w);
}

static void refused(struct webhook *w, const char *why)
{
    w->counts.failed++;
    w->counts.given_up++;
    say_trouble(w, why);
    out_of_hand(w);
}

static void try_later(struct webhook *w, const char *why, usec_t least)
{
    usec_t now = mono_us();

    if (now - w->first_try > WEBHOOK_GIVE_UP) {
        refused(w, why);
        return;
    }
    w->counts.failed++;
    say_trouble(w, why);
    w->wait = w->wait > 0 ? w->wait * 2 : WEBHOOK_RETRY_MIN;
    if (w->wait > WEBHOOK_RETRY_MAX)
        w->wait = WEBHOOK_RETRY_MAX;
    arm(w, now + (least > w->wait ? least : w->wait));
}

static bool is_temporary(json_int_t status)
{
    return status >= 500 || status == 408 || status == 425 || status == 429;
}

/* NULL: the helper was killed or died. */
static void on_answer(void *ctx, const json_t *answer)
{
    struct webhook *w = ctx;
    json_int_t status = json_integer_value(json_object_get(answer, "status"));
    json_int_t after = json_integer_value(json_object_get(answer, "retry_after"));
    const char *error = json_string_value(json_object_get(answer, "error"));
    char why[128];

    if (w->ending)
        return;
    w->asked = false;
    if (status >= 200 && status < 300) {
        taken(w);
        return;
    }
    if (status > 0)
        STR_PRINTF(why, "it answers with status %d", (int)status);
    else
        STR_PRINTF(why, "%s", error ? error : "there is no answer");
    if (status > 0 && !is_temporary(status))
        refused(w, why);
    else
        try_later(w, why, after > 0 && after <= 86400 ? after * USEC_PER_SEC : 0);
}

static void ask(struct webhook *w)
{
    json_t *question =
        json_pack("{s:s, s:s, s:s, s:s, s:O}", "url", w->url, "token_file", w->token_file,
                  "ca_cert", w->ca_cert, "key", w->key, "body", w->message);

    assert(question && !w->asked);
    w->asked = true;
    helper_ask(w->post, question, on_answer, w); /* one at a time, so it always takes it */
}

static int on_timer(sd_event_source *s, uint64_t usec, void *ctx)
{
    struct webhook *w = ctx;

    if (w->asked || webhook_is_idle(w))
        return 0;
    if (!w->message)
        put_in_hand(w, w->pending.n > WEBHOOK_SINGLE_MAX ? w->pending.n : 1);
    ask(w);
    return 0;
}

void webhook_add(struct webhook *w, const struct notice *n)
{
    usec_t now = mono_us(), at = now + WEBHOOK_GATHER;

    if (w->pending.n >= WEBHOOK_PENDING_MAX) {
        w->more++;
        w->more_seq = n->seq;
        w->counts.dropped++;
        return;
    }
    *VEC_PUSH(&w->pending) = *n;
    if (w->pending.n == 1)
        w->first = now;
    if (at > w->first + WEBHOOK_GATHER_MAX)
        at = w->first + WEBHOOK_GATHER_MAX;
    if (!w->message)
        arm(w, at > w->earliest ? at : w->earliest);
}

bool webhook_is_idle(const struct webhook *w)
{
    return !w->message && w->pending.n == 0;
}

void webhook_counts(const struct webhook *w, struct webhook_counts *ret)
{
    *ret = w->counts;
    ret->pending = (uint32_t)w->pending.n + (w->message != NULL);
    ret->trouble = w->trouble[0] ? w->trouble : NULL;
}

struct webhook *webhook_new(sd_event *event, const struct webhook_config *c,
                            const struct webhook_handlers *handlers, void *ctx)
{
    const char *argv[] = {c->program, NULL};
    struct webhook *w = xnew(struct webhook);

    w->handlers = *handlers;
    w->ctx = ctx;
    webhook_configure(w, c);
    w->post = helper_new(event, argv, PATIENCE);
    if (!w->post || timer_new(event, on_timer, w, &w->timer) < 0)
        return webhook_free(w);
    return w;
}

/* An answer that is still awaited is not told any more. */
struct webhook *webhook_free(struct webhook *w)
{
    if (!w)
        return NULL;
    w->ending = true;
    helper_free(w->post);
    sd_event_source_disable_unref(w->timer);
    json_decref(w->message);
    VEC_DONE(&w->pending);
    if (w->url)
        explicit_bzero(w->url, strlen(w->url));
    free(w->url);
    free(w->token_file);
    free(w->ca_cert);
    free(w);
    return NULL;
}
