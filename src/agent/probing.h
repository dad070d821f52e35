/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_PROBING_H
#define REKNIT_AGENT_PROBING_H

/* Looks at the node now and then, and tells what has changed as facts. reknit-probe does the
 * looking, for that may hang; what it means is judged here, from one look to the next. */

#include "base/time.h"
#include "wire/node_message.h"

#include <systemd/sd-event.h>

#define PROBING_EVERY_MIN USEC_PER_SEC

struct probing_config {
    const char *node;
    const char *program; /* reknit-probe */
    const char *locks;   /* a folder of root's */
    const char *nvml;    /* NULL = where the system has it */
    const char *state;   /* a file: what a restart must not forget */
    const char *root;    /* in front of /sys, /proc and /dev; NULL = nothing */
    usec_t every;        /* from the beginning of a look to that of the next */
    usec_t deadline;     /* what has not answered by then hangs */
};

typedef void (*probing_fn)(void *ctx, const struct node_message *m);

/* What it is configured with must live as long. NULL when the loop refuses. */
struct probing *probing_new(sd_event *event, const struct probing_config *c, probing_fn fact,
                            void *ctx);
struct probing *probing_free(struct probing *p);

/* Something may have been missed: the next look is at once, unless one is under way. */
void probing_poke(struct probing *p);

#endif
