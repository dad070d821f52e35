/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_AGENTS_H
#define REKNIT_SOURCE_AGENTS_H

/* The agents of the compute nodes, as reknitd hears them. What comes through here was sealed by
 * root on the node that it is about, for this very connection, and comes once and in order. */

#include "wire/node_message.h"

#include <systemd/sd-event.h>

#define AGENTS_MAX 20000 /* nodes, and connections */
/* Connections from one address that have proven nothing yet: the oldest is dropped for a new one.
 * Of root: from a port below 1024. */
#define AGENTS_UNPROVEN_MAX         32
#define AGENTS_UNPROVEN_OF_ROOT_MAX 128

struct agents_config {
    const char *listen;      /* "ADDRESS:PORT", numbers; "[::]:PORT" for all of both kinds */
    const char *const *seal; /* argv of reknit-seal */
};

/* Names a message for good. */
struct agent_receipt {
    char node[NODE_NAME_LEN];
    int64_t origin, id; /* of its spool; id 0: it is told once, or never, and nobody waits */
};

/* What became of a message. */
enum agent_taken {
    AGENT_TAKEN,      /* that is the end of it */
    AGENT_TAKEN_OPEN, /* agents_done() will say so; until then it is not acked, and comes again
                         should we end before */
    AGENT_NO_ROOM,    /* it is to come again */
};

struct agents_handlers {
    /* What the scheduler calls the node by: an address, or a name to be resolved. NULL = there is
     * no such node. */
    const char *(*address)(void *ctx, const char *node);
    /* m->node is proven, and m->mono_us set. */
    enum agent_taken (*message)(void *ctx, const struct node_message *m,
                                const struct agent_receipt *r);
    /* The node's agent is connected (trouble NULL), is not any more, or was refused, and why. */
    void (*node)(void *ctx, const char *node, const char *trouble);
    /* Somebody at that address could not prove to be a node's agent. May come often. */
    void (*refused)(void *ctx, const char *address, const char *why);
    /* The answer to agents_ask(). fd: a stream socket to the reader, not blocking, the callee's;
     * -1: there is none, and trouble says why. */
    void (*reader)(void *ctx, const char *node, int64_t question, int fd, const char *trouble);
};

struct agents_counts {
    uint32_t connections, nodes; /* now; nodes: that have an agent connected */
    uint64_t messages, duplicates, refused;
};

struct agent_view {
    bool connected;
    usec_t heard_us;  /* our monotonic clock, of the last message; 0 = never */
    usec_t behind_us; /* our clock less the node's, when the last heartbeat came */
    struct node_heartbeat heartbeat;
};

struct agents;

int agents_new(sd_event *event, const struct agents_config *c,
               const struct agents_handlers *handlers, void *ctx, struct agents **ret,
               struct err *e);
struct agents *agents_free(struct agents *a);
/* Hears them elsewhere, or with another seal; whom it had is cut off and comes again, but what they
 * told already stays told. On failure nobody is heard, until it is called again. */
int agents_move(struct agents *a, const struct agents_config *c, struct err *e);

/* That a reader of logs is started on that node, as that user. The answer may never come.
 * -ENOTCONN: its agent is not connected; -ENOBUFS. gid: where the node does not know the uid. */
int agents_ask(struct agents *a, const char *node, int64_t question, uid_t uid, gid_t gid);

void agents_done(struct agents *a, const struct agent_receipt *r);

uint16_t agents_port(const struct agents *a); /* where it listens, should the config say 0 */
void agents_counts(const struct agents *a, struct agents_counts *ret);
/* -ENOENT: no agent of that node was ever heard. */
int agents_look(const struct agents *a, const char *node, struct agent_view *ret);
/* Those that were ever heard, by the names of nodes, until fn says no. */
void agents_each(const struct agents *a,
                 bool (*fn)(void *ctx, const char *node, const struct agent_view *v), void *ctx);

#endif
