/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_RUNS_H
#define REKNIT_CLI_RUNS_H

/* The folders run-N of a job: what each of its runs wrote, the newest RUNS_KEPT of them. Whoever
 * calls this holds the job (cli/home.h). */

#include "base/err.h"

#include <limits.h>

#define RUNS_KEPT 20

/* Makes that of the next run in the job's folder, and forgets the one that is too old then. */
int runs_begin(const char *job, unsigned *ret_number, char ret_path[PATH_MAX], struct err *e);

/* Moves a journal, which belongs to the runs before that one, into the folder of the last of them.
 */
void runs_archive(const char *job, unsigned number, const char *journal);

#endif
