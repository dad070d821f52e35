/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_KMSG_H
#define REKNIT_AGENT_KMSG_H

/* The kernel's log, from what it still holds on: every record that the kernel itself wrote, and how
 * many are missing. A FIFO may stand in for the device. */

#include "agent/kmsg_record.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <systemd/sd-event.h>

struct kmsg_handlers {
    /* now: it was written while we waited for it. */
    void (*record)(void *ctx, const struct kmsg_record *r, bool now);
    /* Records are missing before the next one: the kernel has overwritten them. */
    void (*gap)(void *ctx, uint64_t lost);
    /* What there was has been read, or as much as is read at once. */
    void (*turn)(void *ctx);
};

struct kmsg_counts {
    uint64_t records; /* of the kernel */
    uint64_t foreign; /* ... of programs, and what is no record */
    uint64_t gaps, lost;
    int error; /* it cannot be read any more: an errno; 0 = it can */
};

struct kmsg;

/* told: the last number that was read before, -1 = none: those up to it are left out, and what is
 * missing behind it is a gap. Reads nothing before the loop runs. */
int kmsg_open(sd_event *event, const char *path, int64_t told, const struct kmsg_handlers *handlers,
              void *ctx, struct kmsg **ret, struct err *e);
struct kmsg *kmsg_free(struct kmsg *k);
DEFINE_CLEANUP(struct kmsg *, kmsg_free);

int64_t kmsg_last(const struct kmsg *k); /* number of the last record that was read; -1 = none */
const struct kmsg_counts *kmsg_counts(const struct kmsg *k);

#endif
