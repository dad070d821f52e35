/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_MATCHER_H
#define REKNIT_EXTRACT_MATCHER_H

/* Which entries of a catalogue match a cleaned line, and what their groups captured. */

#include "extract/catalog.h"

#include <stdint.h>

/* What a named group may be called. */
enum field {
    FIELD_RANK,
    FIELD_LOCAL_RANK,
    FIELD_NODE,
    FIELD_DEVICE,
    FIELD_PEER,
    FIELD_XID,
    FIELD_STEP,
    FIELD_TOTAL,
    FIELD_SECONDS,
    FIELD_MILLISECONDS,
    FIELD_LOSS,
    FIELD_GRAD_NORM,
    FIELD_RATE,
    FIELD_SEQ,
    FIELD_OP,
    FIELD_NUMEL,
    FIELD_GROUP,
    FIELD_ENQUEUED,
    FIELD_COMPLETED,
    FIELD_PID,
    FIELD_CODE,
    FIELD_SIGNAL,
    FIELD_MAX,
    FIELD_INVALID = -EINVAL,
};
DECLARE_NAMES(field, enum field);

struct capture {
    const char *s; /* into the line; NULL = the line did not give it */
    size_t len;
};

struct hit {
    const struct entry *entry;
    size_t start, end; /* of the match in the line */
    struct capture fields[FIELD_MAX];
    const struct entry *dropped_by; /* by yields_to or hides; NULL = the hit speaks */
};

#define HITS_MAX 48 /* of one line; what is beyond is not reported */

struct matcher;

/* Refers to the catalogue, which must outlive it. -EINVAL names the entry whose pattern is bad. */
int matcher_new(const struct catalog *c, struct matcher **ret, struct err *e);
struct matcher *matcher_free(struct matcher *m);
DEFINE_CLEANUP(struct matcher *, matcher_free);

const struct catalog *matcher_catalog(const struct matcher *m);

/* Fills hits[0..n) in the order of the catalogue, dropped ones included; returns n. */
size_t matcher_line(struct matcher *m, const char *line, size_t len, struct hit hits[HITS_MAX]);

#endif
