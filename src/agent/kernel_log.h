/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_KERNEL_LOG_H
#define REKNIT_AGENT_KERNEL_LOG_H

/* What the kernel's log says about this node, as facts: by the entries of the catalogue that have
 * `isolation`, and of nobody's words but the kernel's. */

#include "base/err.h"
#include "wire/node_message.h"

#include <systemd/sd-event.h>

struct kernel_log_config {
    const char *device; /* /dev/kmsg, or a FIFO */
    const char *state;  /* a file, or NULL */
    const char *node;   /* our name */
};

struct kernel_log_handlers {
    void (*fact)(void *ctx, const struct node_fact *f); /* must be told */
    /* Something of the log is missing, or it can be read no more: what kernel_log_beat() says is
     * worth telling now. what: for people, NULL = as before. */
    void (*trouble)(void *ctx, const char *what);
};

struct kernel_log;

/* A log that cannot be read is no error: kernel_log_beat() says why. -EINVAL: the catalogue is
 * bad. */
int kernel_log_new(sd_event *event, const struct kernel_log_config *c,
                   const struct kernel_log_handlers *handlers, void *ctx, struct kernel_log **ret,
                   struct err *e);
struct kernel_log *kernel_log_free(struct kernel_log *k);

/* Its members of a heartbeat. */
void kernel_log_beat(const struct kernel_log *k, struct node_heartbeat *ret);

#endif
