/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_PATTERN_H
#define REKNIT_EXTRACT_PATTERN_H

/* One PCRE2 expression whose named groups are fields. */

#include "base/cleanup.h"
#include "base/err.h"
#include "base/names.h"

#include <stdbool.h>

/* What a named group may be called. */
enum field {
    FIELD_RANK,
    FIELD_LOCAL_RANK,
    FIELD_NODE,
    FIELD_DEVICE,
    FIELD_PEER,
    FIELD_ADDRESS,
    FIELD_TASKS,
    FIELD_NODES,
    FIELD_XID,
    FIELD_SXID,
    FIELD_STEP,
    FIELD_TOTAL,
    FIELD_SECONDS,
    FIELD_MILLISECONDS,
    FIELD_LOSS,
    FIELD_GRAD_NORM,
    FIELD_RATE,
    FIELD_SLOWEST,
    FIELD_FASTEST,
    FIELD_SEQ,
    FIELD_OP,
    FIELD_NUMEL,
    FIELD_GROUP,
    FIELD_ENQUEUED,
    FIELD_COMPLETED,
    FIELD_PID,
    FIELD_CODE,
    FIELD_SIGNAL,
    FIELD_TIME,
    FIELD_MAX,
    FIELD_INVALID = -EINVAL,
};
DECLARE_NAMES(field, enum field);

struct capture {
    const char *s; /* into the text that was matched; NULL = it did not give the field */
    size_t len;
};

/* Where matches are put; one for all patterns of a thread. */
struct pattern_space;
struct pattern_space *pattern_space_new(void);
struct pattern_space *pattern_space_free(struct pattern_space *space);

/* The text of an error says what is wrong with the expression and where in it. */
struct pattern;
int pattern_new(const char *text, struct pattern **ret, struct err *e);
struct pattern *pattern_free(struct pattern *p);
DEFINE_CLEANUP(struct pattern *, pattern_free);

/* Searches s[from..len); whole = s begins and ends where the line does ('^' and '$' may match).
 * An expression that would backtrack beyond reason does not match. */
bool pattern_match(struct pattern *p, struct pattern_space *space, const char *s, size_t len,
                   size_t from, bool whole, size_t *ret_start, size_t *ret_end);

/* After a match on s: fills the fields that are still empty. */
void pattern_captures(const struct pattern *p, const struct pattern_space *space, const char *s,
                      struct capture fields[FIELD_MAX]);

#endif
