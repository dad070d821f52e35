/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_DAEMON_HELD_H
#define REKNIT_DAEMON_HELD_H

/* What nodes tell of attempts that nothing is known of yet: kept, in the order in which it came,
 * and tried again and again until it is known what it is about. */

#include "base/time.h"
#include "source/agents.h"
#include "wire/node_message.h"

#include <stdbool.h>
#include <systemd/sd-event.h>

#define HELD_MAX  4096
#define HELD_LOGS (HELD_MAX / 2) /* beyond, there is room for what agents spool only */

struct held_handlers {
    /* Once more, of a message that came then (monotonic). False: it is still not known. */
    bool (*again)(void *ctx, const struct node_message *m, const struct agent_receipt *r,
                  usec_t came);
    /* It is not needed any more. */
    void (*forgotten)(void *ctx, const struct agent_receipt *r);
};

struct held;

/* NULL when the loop refuses. */
struct held *held_new(sd_event *event, const struct held_handlers *handlers, void *ctx);
struct held *held_free(struct held *h);

/* AGENT_TAKEN: it is none to be kept; AGENT_TAKEN_OPEN: it is kept; AGENT_NO_ROOM */
enum agent_taken held_add(struct held *h, const struct node_message *m,
                          const struct agent_receipt *r);

/* Whether something of that node and job is kept. They stay in their order, so what comes then is
 * to be kept as well: who is gone from there had lived before. */
bool held_is_before(const struct held *h, const struct node_message *m);

/* A sign of life there takes it back that nothing is left. */
void held_hear(struct held *h, const struct node_message *m);

#endif
