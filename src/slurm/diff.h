/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_DIFF_H
#define REKNIT_SLURM_DIFF_H

/* What a client was told of each record of a list, to tell it only what is new. Compares the
 * records' text itself, no hash of it, so that nobody can hide a change. */

#include "base/str.h"

#include <jansson.h>
#include <stdbool.h>

struct diff;
struct diff *diff_new(void);
struct diff *diff_free(struct diff *d);

/* Makes the next list a full one. */
void diff_forget(struct diff *d);

/* One list: begin, each of its records, end. d NULL: a full list, and nothing is remembered. */
void diff_begin(struct diff *d, const char *list, struct strbuf *out);
void diff_add(struct diff *d, const char *id, const json_t *record, struct strbuf *out);
/* Adds "gone" too; returns whether there was any difference. */
bool diff_end(struct diff *d, struct strbuf *out);

#endif
