/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_FLIGHT_TREE_H
#define REKNIT_FLIGHT_TREE_H

/* What a pickle or JSON file holds, as plain data: numbers, texts, lists, maps. A text is a slice
 * of the input, which must outlive the tree. A list or map is a box; several values may stand for
 * the same box, even inside of it, so whoever walks a tree goes down a path it knows, never
 * everywhere. Everything is bounded, whatever the input says. */

#include "base/err.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum tree_kind {
    TREE_ABSENT, /* where nothing is */
    TREE_NONE,
    TREE_BOOL,
    TREE_INT, /* one that 64 bits do not hold is the nearest that they do */
    TREE_REAL,
    TREE_TEXT,
    TREE_LIST,
    TREE_MAP, /* keys and values in turn */
};

struct tree_value {
    uint32_t kind;
    uint32_t len; /* bytes of a text */
    union {
        int64_t number; /* of a bool too */
        double real;
        const char *text; /* not terminated */
        uint32_t box;
    };
};

struct tree_box {
    uint32_t first, n, cap; /* in items; a pair of a map is two */
};

#define TREE_ITEMS_MAX (8U << 20)
#define TREE_BOXES_MAX (4U << 20)

struct tree {
    VEC(struct tree_value) items;
    VEC(struct tree_box) boxes;
};

void tree_done(struct tree *t);
void tree_reset(struct tree *t); /* empties, keeps the memory */

/* An empty list or map. -E2BIG: more of them than any dump has. */
int tree_new_box(struct tree *t, enum tree_kind kind, struct tree_value *ret, struct err *e);
int tree_add(struct tree *t, uint32_t box, const struct tree_value *v, size_t n, struct err *e);

static inline bool tree_is_box(const struct tree_value *v)
{
    return v->kind == TREE_LIST || v->kind == TREE_MAP;
}

/* How many members a list has (pairs: a map), 0 of anything else; and its i-th. */
size_t tree_count(const struct tree *t, const struct tree_value *v);
const struct tree_value *tree_at(const struct tree *t, const struct tree_value *list, size_t i);
/* The i-th pair of a map. */
void tree_pair(const struct tree *t, const struct tree_value *map, size_t i,
               const struct tree_value **ret_key, const struct tree_value **ret_value);
/* What a map has under that key; one that is TREE_ABSENT if nothing, or v is no map. For small
 * maps: only the first TREE_KEYS_MAX are looked at, or many references to one map of millions
 * would take for ever. */
#define TREE_KEYS_MAX 64
const struct tree_value *tree_get(const struct tree *t, const struct tree_value *v,
                                  const char *key);

bool tree_is_text(const struct tree_value *v, const char *text);
int64_t tree_int(const struct tree_value *v, int64_t otherwise);
bool tree_true(const struct tree_value *v);

#endif
