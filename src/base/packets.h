/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_PACKETS_H
#define REKNIT_BASE_PACKETS_H

/* Datagrams over a SOCK_SEQPACKET socket in an event loop, some with a descriptor: what reknitd and
 * reknit-spawner speak with each other. Such a socket takes some hundred of them; what it does not
 * take at once is owed, and goes when it does. */

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#define PACKET_MAX 8192 /* bytes; a longer one that comes in is cut there */

struct packets_options {
    bool takes_fds;  /* else those that come in are closed */
    size_t owed_max; /* packets; with more, the far side is dead */
    /* Nothing comes in while something is owed: whoever does not take answers is not answered. */
    bool in_turn;
};

/* Only closed() may free the packets. */
struct packets_handlers {
    /* fd: owned by the callee, -1 = none. */
    void (*packet)(void *ctx, const char *data, size_t len, int fd);
    void (*closed)(void *ctx); /* once, and last, from the loop: the far side's end, or an error */
};

struct packets;

/* fd is owned from now on, and not blocking. NULL when the loop refuses: then it is closed. */
struct packets *packets_new(sd_event *event, int fd, const struct packets_options *o,
                            const struct packets_handlers *handlers, void *ctx);
struct packets *packets_free(struct packets *p);

/* fd: taken over and closed when it is sent, -1 = none. What goes wrong is told by closed(). */
void packets_send(struct packets *p, const char *data, size_t len, int fd);

size_t packets_owed(const struct packets *p);

#endif
