/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_READER_PROCESS_H
#define REKNIT_SOURCE_READER_PROCESS_H

/* The reader of one owner of jobs: there is always one, or another one is about to be started. */

#include "base/time.h"
#include "source/node_readers.h"

#include <jansson.h>
#include <stdbool.h>

struct reader_process_config {
    struct children *children;         /* borrowed, as the next */
    struct node_readers *node_readers; /* may be NULL when node is "" */
    const char *node;                  /* where it runs, "" = on this host; copied */
    uid_t uid;
    gid_t gid;
    usec_t ping_every, ping_patience;
};

/* All are called from the loop. */
struct reader_process_handlers {
    void (*started)(void *ctx); /* it can be asked, and knows nothing yet */
    void (*runs)(void *ctx);    /* it has begun to do what it is asked */
    void (*said)(void *ctx, const json_t *j);
    void (*state)(void *ctx, const char *text); /* "running", or what is wrong with it */
    void (*ended)(void *ctx, const char *why);  /* the next one is started after a while */
};

struct reader_process;

/* NULL when the loop refuses. */
struct reader_process *reader_process_new(sd_event *event, const struct reader_process_config *c,
                                          const struct reader_process_handlers *handlers,
                                          void *ctx);
struct reader_process *reader_process_free(struct reader_process *p);

/* Takes the question over; with no reader there, it is lost. */
void reader_process_ask(struct reader_process *p, json_t *question);

/* If it waits for its next start, it starts now. */
void reader_process_hurry(struct reader_process *p);

bool reader_process_is_running(const struct reader_process *p);
bool reader_process_is_hopeless(const struct reader_process *p); /* could not be started */
bool reader_process_is_hung(
    const struct reader_process *p); /* or it was, and no other has answered */

#endif
