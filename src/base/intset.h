/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_INTSET_H
#define REKNIT_BASE_INTSET_H

/* A small ordered set of non-negative numbers: ranks, tasks. Bounded; adding beyond the bound is
 * refused and counted, so that a hostile log cannot grow it. */

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct intset {
    int32_t *v; /* ascending */
    size_t n, cap;
    uint32_t refused;
};

#define INTSET_LIMIT 131072

void intset_done(struct intset *s);
void intset_clear(struct intset *s);
bool intset_add(struct intset *s, int32_t value); /* whether it is new */
bool intset_has(const struct intset *s, int32_t value);
void intset_union(struct intset *s, const struct intset *other);

/* "0-3,7,9" and back; parse adds to the set, at most INTSET_LIMIT members. */
void intset_format(const struct intset *s, struct strbuf *out);
int intset_parse(struct intset *s, const char *text);

#endif
