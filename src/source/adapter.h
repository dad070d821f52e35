/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_ADAPTER_H
#define REKNIT_SOURCE_ADAPTER_H

/* The client of a scheduler adapter (docs/ADAPTER.md): a program that answers lines of JSON. It may
 * block, crash and hang; then it is killed and another one is started. What it was asked first is
 * answered as unknown, what stood behind that as unreachable: it was not begun. */

#include "base/err.h"
#include "base/time.h"
#include "source/children.h"

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#define ADAPTER_PROTOCOL     1
#define ADAPTER_REQUESTS_MAX 1024               /* unanswered */
#define ADAPTER_ANSWER_MAX   (256u << 20)       /* bytes of one */
#define ADAPTER_PATIENCE     (3 * USEC_PER_SEC) /* beyond a request's own deadline */

enum adapter_outcome {
    ADAPTER_DONE,
    ADAPTER_REFUSED,     /* nothing was done: changed, not-allowed, invalid, no-such-job, failed */
    ADAPTER_UNREACHABLE, /* nothing was done: the scheduler does not answer, no adapter runs, or it
                            is not wanted any more */
    ADAPTER_UNKNOWN,     /* it may have been done, or may yet be */
};

/* answer: NULL when there is none; borrowed. text: what is wrong, for people, "" = nothing. */
typedef void adapter_reply_fn(void *ctx, enum adapter_outcome outcome, const json_t *answer,
                              const char *text);

struct adapter_handlers {
    void (*hello)(void *ctx, const json_t *hello);
    void (*down)(void *ctx, const char *text); /* it ended or was killed; another one follows */
    /* It answers what it was not asked: told once of each process. May be NULL, as all of them. */
    void (*stray)(void *ctx);
};

struct adapter;

/* argv ends with NULL; argv[0] is a path. Copied. argv NULL: children starts the one that goes with
 * us, by the spawner as SlurmUser; it is borrowed. */
struct adapter *adapter_new(sd_event *event, const char *const argv[], struct children *children,
                            const struct adapter_handlers *handlers, void *ctx);
struct adapter *adapter_free(struct adapter *a); /* answers nothing any more */

/* Takes the request over and adds its id; `op` is set. The answer comes later, always, and never
 * from within this call. */
void adapter_ask(struct adapter *a, json_t *request, usec_t deadline, adapter_reply_fn *reply,
                 void *ctx);
/* Likewise, but it is sent only if wanted(ctx) still says so when its turn has come, which may be
 * long after: otherwise the answer is ADAPTER_UNREACHABLE. */
void adapter_ask_if(struct adapter *a, json_t *request, usec_t deadline, bool (*wanted)(void *ctx),
                    adapter_reply_fn *reply, void *ctx);

bool adapter_is_up(const struct adapter *a);     /* said hello, and answers */
size_t adapter_waiting(const struct adapter *a); /* requests without an answer */
uint32_t adapter_restarts(const struct adapter *a);

/* The member of an answer that says which error it is, "" = none. */
const char *adapter_error(const json_t *answer);

#endif
