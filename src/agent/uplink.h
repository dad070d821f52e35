/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_UPLINK_H
#define REKNIT_AGENT_UPLINK_H

/* The way to reknitd: connects, and again with growing pauses; seals and sends what the spool
 * holds, oldest first, and what is only worth telling now. */

#include "agent/spool.h"
#include "wire/helper.h"

struct uplink_config {
    const char *host, *port; /* of reknitd */
    const char *node;        /* our name */
    const char *const *seal; /* argv of reknit-seal */
};

struct uplink_handlers {
    /* A change of state, for people: "connected to ...", or what is wrong. */
    void (*said)(void *ctx, const char *text);
    /* A message is to be told by uplink_tell(), to prove who we are. */
    void (*greeted)(void *ctx);
};

struct uplink;

/* spool is borrowed. All is copied. NULL when the loop refuses. */
struct uplink *uplink_new(sd_event *event, const struct uplink_config *c, struct spool *spool,
                          const struct uplink_handlers *handlers, void *ctx);
struct uplink *uplink_free(struct uplink *u);
DEFINE_CLEANUP(struct uplink *, uplink_free);

/* Something was added to the spool. */
void uplink_poke(struct uplink *u);
/* Now or never: a message's JSON, which is not repeated when it is lost. Takes it over. Whether it
 * is on its way. */
bool uplink_tell(struct uplink *u, json_t *body);

#endif
