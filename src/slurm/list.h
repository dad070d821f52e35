/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_LIST_H
#define REKNIT_SLURM_LIST_H

/* The answer with all records of a kind: in full, or what is new of them. */

#include "slurm/diff.h"
#include "slurm/protocol.h"

#include <time.h>

struct list {
    struct diff *told;
    bool is_told; /* told knows the records as they are: to be cleared when they are others */
};

struct list_kind {
    const char *name; /* "jobs" */
    /* Makes the records current. 0, or Slurm's errno. */
    int (*refresh)(void *ctx, time_t *ret_time);
    /* Adds each of them by diff_add(). */
    void (*add)(const void *ctx, struct diff *told, struct strbuf *out);
};

void list_answer(struct list *l, const struct list_kind *kind, void *ctx, const struct request *r,
                 struct answer *ret);

#endif
