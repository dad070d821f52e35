/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_LOG_PATH_H
#define REKNIT_SLURM_LOG_PATH_H

/* Slurm's patterns of log files (sbatch(1), "filename pattern"), with everything replaced that is
 * the same in the whole job. libslurm has a function for that, which takes %%j for %j and a user's
 * "%t" in a job's name for a task. */

#include "base/log_pattern.h"

struct log_path_job {
    struct log_numbers numbers;
    const char *name, *user, *work_dir; /* never NULL */
};

/* Adds the path, absolute where the work_dir is; still a pattern: %% stands for %, and what may be
 * different in each step, node or task is left. pattern NULL or "": Slurm's own name for it. */
void log_path_add(const char *pattern, const struct log_path_job *j, struct strbuf *ret);

#endif
