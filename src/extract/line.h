/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_LINE_H
#define REKNIT_EXTRACT_LINE_H

/* From the bytes of a record to a message: what a terminal would not show is taken out, and what
 * launchers, collectors and loggers put in front is taken off and kept as facts. */

#include "core/model/signal.h"

#include <stdbool.h>
#include <stddef.h>

struct line {
    const char *whole; /* cleaned, prefixes included */
    size_t whole_len;
    const char *text; /* the message: whole without its prefixes */
    size_t len;
    usec_t time_us; /* clock of the line, USEC_UNKNOWN; below 1980: time since boot */
    int32_t rank, local_rank;
    char node[NODE_NAME_LEN]; /* host that printed it, "" unknown */
};

/* Cleans raw[0..len) into buf, which has room for len + 1 bytes. */
void line_clean(const char *raw, size_t len, char *buf, struct line *ret);

#endif
