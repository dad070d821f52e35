/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_LINE_H
#define REKNIT_EXTRACT_LINE_H

/* From the bytes of a record to a message: what a terminal would not show is taken out, and what
 * launchers, collectors and loggers put in front is taken off and kept as facts. */

#include "core/model/signal.h"
#include "extract/clock.h"

struct line {
    const char *whole; /* cleaned, prefixes included */
    size_t whole_len;
    const char *text; /* the message: whole without its prefixes */
    size_t len;
    usec_t time_us;           /* clock of the line, USEC_UNKNOWN */
    bool uptime;              /* it counts from the boot of the machine */
    int32_t rank, local_rank; /* of the process that printed it, or RANK_NONE */
    char node[NODE_NAME_LEN]; /* host that printed it, "" unknown */
    uint64_t stream;          /* equal for lines of one process, as far as prefixes tell; 0 none */
    uint32_t repeats;         /* how many such lines it stands for (Ray), 1 */
    int32_t label;            /* srun -l: task of the step, or RANK_NONE */
    uint32_t mark;            /* bytes of a "[29] " that text begins with: a label, or a number */
    int64_t pid;              /* of the process that printed it, 0 unknown */
    bool of_system;           /* as the kernel and daemons write it, by its prefix */
};

/* As in struct entity: where the task that printed the line is not its rank. */
uint32_t line_label(const struct line *line);

/* Cleans raw[0..len) into buf, which has room for len + 1 bytes. The clock is that of the log and
 * learns from the line. */
void line_clean(struct log_clock *clock, const char *raw, size_t len, char *buf, struct line *ret);

/* Takes escape codes, NUL and the like out of raw; a code that returns to the line's beginning
 * becomes CR, whether it was a byte or spelled out. Returns the length in buf (room for len). */
size_t line_strip(const char *raw, size_t len, char *buf);

/* Fills ret for text that is stripped already, and in which there is no CR. */
void line_read(struct log_clock *clock, const char *text, size_t len, struct line *ret);

/* Whether the logger says that the line is for information or debugging only: INFO, "lvl": "info",
 * absl's I0206, c10's [I206. */
bool line_is_informative(const struct line *line);

#endif
