/* SPDX-License-Identifier: Apache-2.0 */
#include "flight/tree.h"

#include <assert.h>
#include <errno.h>

static const struct tree_value absent;

void tree_done(struct tree *t)
{
    VEC_DONE(&t->items);
    VEC_DONE(&t->boxes);
}

void tree_reset(struct tree *t)
{
    t->items.n = 0;
    t->boxes.n = 0;
}

int tree_new_box(struct tree *t, enum tree_kind kind, struct tree_value *ret, struct err *e)
{
    struct tree_box *b;

    assert(kind == TREE_LIST || kind == TREE_MAP);
    if (t->boxes.n >= TREE_BOXES_MAX)
        return err_set(e, -E2BIG, "more than %u lists and maps: no dump has so many",
                       TREE_BOXES_MAX);
    b = VEC_PUSH(&t->boxes);
    b->first = (uint32_t)t->items.n;
    *ret = (struct tree_value){.kind = kind, .box = (uint32_t)(t->boxes.n - 1)};
    return 0;
}

static int reserve(struct tree *t, size_t n, struct err *e)
{
    if (n > TREE_ITEMS_MAX - t->items.n)
        return err_set(e, -E2BIG, "more than %u values: no dump has so many", TREE_ITEMS_MAX);
    VEC_GROW(&t->items, t->items.n + n);
    return 0;
}

/* The last box grows where it is; another moves to the end, with room to spare, so that what is
 * added to many boxes in turn costs a bounded number of moves. What it left is not used again: it
 * counts as values, of which there is a limit. */
static int make_room(struct tree *t, struct tree_box *b, size_t n, struct err *e)
{
    bool last = (size_t)b->first + b->cap == t->items.n;
    size_t want = last ? b->n + n - b->cap : 2 * ((size_t)b->n + n);
    int r = reserve(t, want, e);

    if (r < 0)
        return r;
    if (!last) {
        memcpy(&t->items.v[t->items.n], &t->items.v[b->first], b->n * sizeof(t->items.v[0]));
        b->first = (uint32_t)t->items.n;
        b->cap = 0;
    }
    t->items.n += want;
    b->cap += (uint32_t)want;
    return 0;
}

int tree_add(struct tree *t, uint32_t box, const struct tree_value *v, size_t n, struct err *e)
{
    struct tree_box *b;
    int r;

    assert(box < t->boxes.n);
    if (n == 0)
        return 0;
    b = &t->boxes.v[box];
    if (n > b->cap - b->n && (r = make_room(t, b, n, e)) < 0)
        return r;
    memcpy(&t->items.v[b->first + b->n], v, n * sizeof(*v));
    b->n += (uint32_t)n;
    return 0;
}

size_t tree_count(const struct tree *t, const struct tree_value *v)
{
    if (!tree_is_box(v))
        return 0;
    return v->kind == TREE_MAP ? t->boxes.v[v->box].n / 2 : t->boxes.v[v->box].n;
}

const struct tree_value *tree_at(const struct tree *t, const struct tree_value *list, size_t i)
{
    if (list->kind != TREE_LIST || i >= t->boxes.v[list->box].n)
        return &absent;
    return &t->items.v[t->boxes.v[list->box].first + i];
}

void tree_pair(const struct tree *t, const struct tree_value *map, size_t i,
               const struct tree_value **ret_key, const struct tree_value **ret_value)
{
    assert(i < tree_count(t, map) && map->kind == TREE_MAP);
    *ret_key = &t->items.v[t->boxes.v[map->box].first + 2 * i];
    *ret_value = *ret_key + 1;
}

bool tree_is_text(const struct tree_value *v, const char *text)
{
    size_t len = strlen(text);

    return v->kind == TREE_TEXT && v->len == len && memcmp(v->text, text, len) == 0;
}

const struct tree_value *tree_get(const struct tree *t, const struct tree_value *v, const char *key)
{
    size_t n = v->kind == TREE_MAP ? tree_count(t, v) : 0, len = strlen(key);
    const struct tree_value *pair = n > 0 ? &t->items.v[t->boxes.v[v->box].first] : NULL;

    for (size_t i = 0; i < n && i < TREE_KEYS_MAX; i++, pair += 2)
        if (pair->len == len && pair->kind == TREE_TEXT && memcmp(pair->text, key, len) == 0)
            return pair + 1;
    return &absent;
}

int64_t tree_int(const struct tree_value *v, int64_t otherwise)
{
    return v->kind == TREE_INT ? v->number : otherwise;
}

bool tree_true(const struct tree_value *v)
{
    return v->kind == TREE_BOOL && v->number;
}
