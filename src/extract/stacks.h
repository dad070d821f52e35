/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_STACKS_H
#define REKNIT_EXTRACT_STACKS_H

/* Where the ranks of a job stand in its program, by py-spy's dumps of their stacks. */

#include "core/model/signal.h"
#include "extract/line.h"

#define STACKS_SIGNATURE "python.stack"

struct stacks;

/* Where a rank's main thread stands in the script itself; the frame is that, or the innermost one
 * of a rank that does not stand in the library. */
struct stand {
    int32_t rank;
    uint64_t line, offset; /* of the frame */
    char frame[EXCERPT_LEN];
    char at[24]; /* FILE:LINE, cut at its front, " in torch" */
};

struct stacks *stacks_new(void);
struct stacks *stacks_free(struct stacks *s);

/* Whether such a stack ended with the line before; l NULL: the log ends. */
bool stacks_feed(struct stacks *s, const struct line *l, uint64_t line, uint64_t offset,
                 struct stand *ret);

#endif
