/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_KMSG_RECORD_H
#define REKNIT_AGENT_KMSG_RECORD_H

/* One record of the kernel's log, as /dev/kmsg gives it (Documentation/ABI/testing/dev-kmsg). */

#include "base/time.h"

#include <stdbool.h>

#define KMSG_RECORD_BYTES 8192 /* the kernel's own bound; what is longer is cut */

struct kmsg_record {
    bool by_kernel; /* facility 0: no program can write that */
    uint64_t seq;
    usec_t boot_us;               /* since the machine was booted, by the kernel's clock */
    char text[KMSG_RECORD_BYTES]; /* the first line: what follows may be anybody's */
};

/* "6,339,5140900,-;text", without the line feed. -EBADMSG: it is none, ret is undefined. */
int kmsg_record_parse(const char *line, size_t len, struct kmsg_record *ret);

#endif
