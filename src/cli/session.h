/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_SESSION_H
#define REKNIT_CLI_SESSION_H

/* One `reknit run`, from the first attempt to the last. */

#include "core/model/event.h"

#include <stdbool.h>

struct session_options {
    char name[JOB_NAME_LEN];
    const char *policy_file; /* NULL: the one that policy_find() finds, or the default */
    const char *log_dir;     /* NULL: the run's folder below the state folder */
    uint64_t log_limit;      /* bytes kept of each attempt's output */
    bool quiet, json;
    const char *const *catalogs; /* extra folders */
    size_t n_catalogs;
    char *const *argv; /* the job's command */
};

/* Returns the exit status of the program. */
int session_run(const struct session_options *o);

#endif
