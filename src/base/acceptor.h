/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_ACCEPTOR_H
#define REKNIT_BASE_ACCEPTOR_H

/* Takes the connections of a listening socket, one in each turn of the loop. Those that cannot be
 * taken (no descriptor is left, no memory) stay with the kernel and are tried again a little later:
 * the socket stays ready all that time, and to be told so again and again would take a core. */

#include "base/cleanup.h"

#include <sys/socket.h>
#include <systemd/sd-event.h>

#define ACCEPT_AGAIN_MS 250

struct acceptor;

/* fd is the new connection's, and whoever is called owns it. It may not free the acceptor. */
typedef void (*acceptor_fn)(void *ctx, int fd, const struct sockaddr *from, socklen_t len);

/* Negative errno. `listening` stays the caller's, and must not block. */
int acceptor_new(sd_event *event, int listening, acceptor_fn fn, void *ctx, struct acceptor **ret);
struct acceptor *acceptor_free(struct acceptor *a);
DEFINE_CLEANUP(struct acceptor *, acceptor_free);

/* As of sd_event_source_set_priority(). */
void acceptor_set_priority(struct acceptor *a, int64_t priority);

#endif
