/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_FLIGHT_DUMP_H
#define REKNIT_FLIGHT_DUMP_H

/* The dumps that PyTorch's flight recorder leaves of a job that stands still, one file a rank. */

#include "base/err.h"
#include "base/str.h"
#include "core/measure/flight.h"
#include "flight/tree.h"

/* The largest that is read: 20,000 operations with the stack of each are 30 MiB. */
#define DUMP_BYTES_MAX (128U << 20)

/* One dump in memory, a pickle or JSON, becomes what r keeps of it. t is scratch, emptied first.
 * -EBADMSG, -EPERM, -E2BIG: e says where and why; r is then as it was. */
int dump_read(const char *data, size_t len, struct tree *t, struct flight *f, struct flight_rank *r,
              struct err *e);

struct dump_file {
    char *name; /* in its folder */
    int32_t rank;
    char *error; /* why it could not be read; NULL: it was */
};

struct dump_folder {
    VEC(struct dump_file) files; /* by rank */
};

void dump_folder_done(struct dump_folder *d);

/* The files whose name ends in a rank: nothing of them is read yet. -ENOENT: there are none;
 * -EEXIST: two of one rank. */
int dump_folder_list(const char *path, struct dump_folder *ret, struct err *e);

typedef void (*dump_progress_fn)(void *ctx, size_t done, size_t total);

/* Reads them all; those that cannot be read have their error. Returns how many these are. */
size_t dump_folder_read(const char *path, struct dump_folder *d, struct flight *f,
                        dump_progress_fn progress, void *ctx);

#endif
