/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_STANCE_H
#define REKNIT_EXTRACT_STANCE_H

/* What a line does with the words of a failure that stand in it: most tell that it happened, but
 * some deny it, look out for it, have a way around it, or merely quote it. */

#include "base/cleanup.h"
#include "extract/pattern.h"

enum stance {
    STANCE_TELLS,
    STANCE_DENIES,  /* "0 uncorrectable ECC errors", "OOM check: disabled" */
    STANCE_WATCHES, /* "checking for preemption", "if CUDA runs out of memory, ..." */
    STANCE_COPES,   /* "No module named 'apex', using torch" */
    STANCE_QUOTES,  /* source, a test's report, text of a user */
    STANCE_MAX,
    STANCE_INVALID = -EINVAL,
};
DECLARE_NAMES(stance, enum stance);

struct stances;
int stances_new(struct stances **ret, struct err *e);
struct stances *stances_free(struct stances *s);
DEFINE_CLEANUP(struct stances *, stances_free);

/* About the words at line[start..end). The line is a message without its prefixes. */
enum stance stance_of(const struct stances *s, struct pattern_space *space, const char *line,
                      size_t len, size_t start, size_t end);

/* Whether the line is data that a program prints, up to line[start]. What a kernel, a scheduler or
 * a launcher says about a machine stands in no such line; errors of the data do. */
bool stance_quotes_data(const struct stances *s, struct pattern_space *space, const char *line,
                        size_t start);

#endif
