/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_RUN_PROGRAM_H
#define REKNIT_CLI_RUN_PROGRAM_H

/* A short-lived child, waited for with a deadline. */

#include "base/str.h"
#include "base/time.h"

#define PROGRAM_OUTPUT_MAX 65536 /* bytes that are kept */

struct program_result {
    int status;           /* as a shell would give it */
    struct strbuf output; /* standard output and error */
};

/* argv ends with NULL, argv[0] is looked for in PATH. input: what it reads, NULL = nothing. 0,
 * -ENOENT (there is no such program), -ETIMEDOUT (it was killed), ... */
int run_program(const char *const argv[], const char *input, usec_t timeout,
                struct program_result *ret);

/* The same of a function in a child of its own: what may hang must not hang us. 0 to 255: what it
 * returned; or a negative errno. */
int run_apart(int (*fn)(const void *arg), const void *arg, usec_t timeout);

#endif
