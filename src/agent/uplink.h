/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_UPLINK_H
#define REKNIT_AGENT_UPLINK_H

/* The way to reknitd: connects, and again with growing pauses; seals and sends what the spool
 * holds, oldest first, and what is only worth telling now. */

#include "agent/greet.h"
#include "agent/spool.h"

#include <sys/types.h>

struct uplink_config {
    const char *host, *port; /* of reknitd */
    const char *node;        /* our name */
    const char *const *seal; /* argv of reknit-seal */
    const char *asker;       /* who else than root is reknitd: a user's name, or a uid */
};

struct uplink_handlers {
    /* A change of state, for people: "connected to ...", or what is wrong. */
    void (*said)(void *ctx, const char *text);
    /* A message is to be told by uplink_tell(), to prove who we are. */
    void (*greeted)(void *ctx);
    /* What uplink_tell() took was lost, and the connection stands: what still matters of it is to
     * be told again. */
    void (*lost)(void *ctx);
    /* What reknitd asks of this node, on this connection, under the seal of root or of `asker`;
     * "question" is its number. */
    void (*asked)(void *ctx, const json_t *question);
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
 * is on its way: it goes with the connection, or `lost` is called, or it is sent. */
bool uplink_tell(struct uplink *u, json_t *body);

/* For a further connection, while this one stands: the address that it goes to, "" = it does not
 * stand; how reknitd is to prove itself there; what is sealed for another word, and the request to
 * seal it, so that only who was greeted can open it; and who seals. */
const char *uplink_address(const struct uplink *u);
json_t *uplink_envelope(const char *word, const char *node, json_t *body);
struct greet_config uplink_greets(const struct uplink *u);
json_t *uplink_sealing(const char *text, const struct greet *g);
struct helper *uplink_sealer(struct uplink *u);

#endif
