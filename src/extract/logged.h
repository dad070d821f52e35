/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_LOGGED_H
#define REKNIT_EXTRACT_LOGGED_H

/* Loggers put their prefix in front of the first line of a record only: the lines of the traceback
 * below an error are of the same process. All zero at the beginning. */

#include "extract/line.h"

struct logged {
    bool any;       /* line was printed by a logger, with a prefix, and tells of an error */
    bool within;    /* its traceback is being read */
    bool is_behind; /* the exception was the last line: another one may be chained to it */
    uint64_t number;
    int32_t rank, local_rank;
    uint64_t stream;
    usec_t time_us;
    bool uptime;
    char node[NODE_NAME_LEN];
};

/* Fills what l, line `number`, lacks, if it belongs to the traceback below an error. */
void logged_follow(struct logged *s, struct line *l, uint64_t number);

#endif
