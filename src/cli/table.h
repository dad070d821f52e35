/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_TABLE_H
#define REKNIT_CLI_TABLE_H

/* A table whose columns are as wide as what is in them, and that fits the screen nevertheless. */

#include "base/str.h"
#include "base/vec.h"

#include <stdio.h>

#define TABLE_COLUMNS_MAX 8

struct table {
    unsigned columns;
    unsigned right;      /* a bit for each column that is set to the right */
    size_t first_most;   /* a longer cell of the first column pushes its row aside; 0 = no limit */
    unsigned yields;     /* this column is cut where lines are too wide, */
    size_t yields_least; /* ... down to so much */
    unsigned spare;      /* ... and this one left out where that is not enough */
    VEC(struct strbuf) cells; /* row by row; none has control codes */
};

void table_done(struct table *t);
#define _cleanup_table_ __attribute__((cleanup(table_done)))

struct strbuf *table_cell(struct table *t); /* the next one, to be filled */
/* Columns of the terminal that out is; elsewhere SIZE_MAX: programs read whole lines. */
size_t table_screen(FILE *out);
void table_print(const struct table *t, size_t width, void (*line)(void *ctx, const char *text),
                 void *ctx);

#endif
