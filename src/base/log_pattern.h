/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_LOG_PATTERN_H
#define REKNIT_BASE_LOG_PATTERN_H

/* Names of files of output as Slurm's --output writes them (sbatch(1), "filename pattern"): which
 * replacements there are, and those that are a number of the whole job. */

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define LOG_NO_TASK UINT32_MAX

struct log_numbers {
    uint32_t job, array_job; /* array_job: of a task of an array */
    uint32_t array_task;     /* LOG_NO_TASK = the job is none */
};

struct log_part {
    const char *text; /* len bytes of the pattern, as it writes the part */
    size_t len;
    char what; /* the letter of a replacement; '%': the sign itself; 0: the text means itself */
    int width; /* at most 10 */
};

/* Slurm's own name for the output of a job that gives none. */
const char *log_pattern_default(const struct log_numbers *n);

/* A backslash anywhere switches all replacements off. */
bool log_pattern_is_escaped(const char *pattern);

/* The next part, and *pattern behind it; false at the end. Of a pattern that is not escaped. */
bool log_pattern_next(const char **pattern, struct log_part *ret);

/* Adds what %A %a %b %j stand for; false: the part is another. */
bool log_part_add_number(const struct log_part *p, const struct log_numbers *n, struct strbuf *ret);

#endif
