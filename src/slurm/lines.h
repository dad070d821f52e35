/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_LINES_H
#define REKNIT_SLURM_LINES_H

/* Bytes that come in pieces, as lines of a bounded length. */

#include "base/str.h"

#include <stdbool.h>

struct lines {
    size_t max; /* bytes of a line, without its newline */
    struct strbuf in;
    size_t at;     /* where in it the next line begins */
    bool skipping; /* the rest of one that was too long */
};
#define _cleanup_lines_ __attribute__((cleanup(lines_done)))
void lines_done(struct lines *l);

void lines_add(struct lines *l, const char *bytes, size_t n);

/* 1 with a line, valid until the next call; 0 = no whole one is there; -E2BIG = one was longer than
 * max and is left out. Call until it returns 0. */
int lines_next(struct lines *l, const char **ret_line, size_t *ret_len);

#endif
