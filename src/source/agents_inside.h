/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_AGENTS_INSIDE_H
#define REKNIT_SOURCE_AGENTS_INSIDE_H

/* Inside of struct agents: agents.c listens, lets in and answers what reknitd asks about nodes,
 * agents_link.c has a connection until its messages are opened, agents_take.c has them from there
 * on, agents_ask.c asks a node. */

#include "source/agent_receipts.h"
#include "source/agents.h"
#include "source/node_addresses.h"
#include "source/strangers.h"
#include "wire/greeting.h"
#include "wire/helper.h"
#include "wire/lines.h"

/* What is known of a node; not forgotten as long as this process lives, for its messages must not
 * be told again. */
struct agent_node {
    char name[NODE_NAME_LEN];
    struct agent_link *link; /* NULL = none */
    struct agent_receipts receipts;
    struct node_addresses addresses;
    bool has_beaten;
    usec_t clock; /* the node's before our monotonic one, when it last beat */
    struct agent_view view;
};

struct agent_link {
    struct agents *agents;
    struct lines *lines;     /* NULL = lost */
    struct agent_node *node; /* NULL = none has been proven yet */
    struct greeting words;
    char peer[NODE_ADDRESS_LEN];
    bool by_root; /* it comes from a port that others may not use, where they may not */
    enum { STAGE_HELLO, STAGE_SEALING, STAGE_GREETED } stage;
    size_t pending;   /* answers that are outstanding */
    size_t resolving; /* ... of them for addresses */
    bool spoke, refused;
    bool full;                 /* there was no room for a message of it */
    sd_event_source *deadline; /* for its greeting, then for the first message */
};

struct agents {
    sd_event *event;
    struct agents_handlers handlers;
    void *ctx;
    struct helper *opener, *resolver;
    struct helper *greeter; /* seals and opens for strangers */
    int fd;
    struct acceptor *acceptor;
    VEC(struct agent_link *) links;
    strangers strangers;
    VEC(struct agent_node *) nodes; /* by name */
    struct agents_counts counts;
    bool ending;
};

/* agents.c */

struct agent_node *agents_node(const struct agents *a, const char *name); /* NULL: not known */
struct agent_node *agents_node_get(struct agents *a, const char *name);   /* NULL: too many */

/* agents_link.c */

void agent_link_new(struct agents *a, int fd, const char *peer, bool by_root); /* takes fd over */
/* Its lines are gone, or go. */
void agent_link_drop(struct agent_link *c);
/* It is an agent's no more, and its lines are somebody else's. */
void agent_link_leave(struct agent_link *c);
void agent_link_refuse(struct agent_link *c, const char *why);
/* A node's new connection takes the place of its old one, which the node has lost. */
void agent_link_prove(struct agent_link *c, struct agent_node *n);
/* One that is lost is freed with the last answer that was outstanding. */
void agent_link_answered(struct agent_link *c);

/* agents_take.c */

/* The seal is good: what it says must be for us, from one node. */
void agents_take(struct agent_link *c, const json_t *opened);

#endif
