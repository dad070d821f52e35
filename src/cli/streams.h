/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_STREAMS_H
#define REKNIT_CLI_STREAMS_H

/* The job's three streams, and our ends of them. A stream that is a terminal of ours becomes one of
 * the job's own; the others become pipes. Output and error that go to the same place get one pipe,
 * so that they keep their order; otherwise they stay apart. */

#include "source/terminal.h"

struct streams {
    int job[3];  /* for the job; -1 in job[0]: our own standard input */
    int from[2]; /* we read from these */
    int to[2];   /* and pass on to these */
    unsigned n;
    int terminal; /* which of the job's is its terminal, -1 = none */
    int master;   /* a descriptor of its other side, for keys and size; -1 = none */
};

int streams_open(const struct terminal *t, struct streams *st);
void streams_done(struct streams *st); /* closes what was not taken (set to -1) */
#define _cleanup_streams_ __attribute__((cleanup(streams_done)))

#endif
