/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_INLET_H
#define REKNIT_AGENT_INLET_H

/* The socket that spank_reknit.so sends to. */

#include "base/cleanup.h"
#include "wire/node_message.h"

#include <systemd/sd-event.h>

struct inlet;
typedef void (*inlet_sink_fn)(void *ctx, const struct node_message *m); /* START or EXIT */

/* Makes the socket's folder, and takes the place of a socket that is left from before. */
int inlet_new(sd_event *event, const char *path, inlet_sink_fn sink, void *ctx, struct inlet **ret,
              struct err *e);
struct inlet *inlet_free(struct inlet *i); /* removes the socket */
DEFINE_CLEANUP(struct inlet *, inlet_free);

uint64_t inlet_refused(const struct inlet *i); /* datagrams that were none, or not root's */

#endif
