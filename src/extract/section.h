/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_SECTION_H
#define REKNIT_EXTRACT_SECTION_H

/* Of whom lines are that do not say it themselves: the line above them does. */

#include "extract/line.h"
#include "extract/traceback.h"

struct section {
    int32_t rank, local_rank; /* whose the next line is, if a traceback begins there */
    char node[NODE_NAME_LEN]; /* ... if it is of a system log; and of those that follow it */
    bool is_open;             /* in a traceback that was introduced */
    bool is_done;             /* the last line ended it */
    bool after_rule;          /* the last line was nothing but a rule */
};

/* Feeds all lines of a log in order; fills rank and node of the line where they are unknown. */
void section_feed(struct section *s, struct line *line, enum traceback_part part);

#endif
