/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_READER_PATTERN_H
#define REKNIT_READER_PATTERN_H

/* The log files that a pattern of Slurm's --output stands for. Pure. */

#include "base/log_pattern.h"

struct pattern_names {
    struct log_numbers numbers;
    const char *job_name, *user_name; /* NULL = not known */
};

/* An absolute path in which places may be left that stand for several names: %t and %n for any
 * number, %s for any step, %N for any host, %x and %u for anything where the name is not known.
 * dir: what a relative pattern is below. -EINVAL: the pattern is empty, has no place to be
 * below, or is longer than a path can be. */
int pattern_expand(const char *pattern, const char *dir, const struct pattern_names *names,
                   struct strbuf *ret);

/* Whether the path, or one component of it, has such places; if not, it is what pattern_literal()
 * makes of it. */
bool pattern_is_wild(const char *path);
bool pattern_is_wild_part(const char *part, size_t len);
void pattern_literal(const char *path, size_t len, struct strbuf *ret);

/* Whether a file name is one that the component path[0..len) stands for. */
bool pattern_fits(const char *path, size_t len, const char *name);

/* Whether the path stands for the file, and the host that %N stands for in it, "" = none. */
bool pattern_host(const char *path, const char *file, char *ret, size_t size);

#endif
