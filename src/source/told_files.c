/* SPDX-License-Identifier: Apache-2.0 */

/* What is known of a path: a list of nodes that have told of it, while nobody has seen it; true:
 * there is one such file; false: each of those nodes has one of its own. */

#include "source/told_files.h"

#include "base/alloc.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>

struct told_files {
    json_t *known; /* by path */
    bool news;
};

struct told_files *told_files_new(void)
{
    struct told_files *f = xnew(struct told_files);

    f->known = json_object();
    return f;
}

struct told_files *told_files_free(struct told_files *f)
{
    if (!f)
        return NULL;
    json_decref(f->known);
    free(f);
    return NULL;
}

size_t told_files_count(const struct told_files *f)
{
    return json_object_size(f->known);
}

bool told_files_hear(struct told_files *f, const char *path, const char *node, const char *here)
{
    json_t *known = json_object_get(f->known, path), *name;
    size_t i;

    if (json_is_true(known) || (known && !node))
        return true;
    if (json_is_false(known))
        return streq(here, node);
    json_array_foreach (known, i, name)
        if (streq(json_string_value(name), node))
            return true;
    if (known && json_array_size(known) < TOLD_FILES_TELLERS_MAX)
        json_array_append_new(known, json_string(node));
    return known != NULL;
}

int told_files_add(struct told_files *f, const char *path, json_t *tellers)
{
    if (json_object_set(f->known, path, tellers) < 0)
        return -EINVAL; /* no UTF-8 */
    f->news = true;
    return 0;
}

void told_files_take_over(struct told_files *f, const struct told_files *other)
{
    json_object_update_missing(f->known, other->known);
}

json_t *told_files_settle(struct told_files *f, const char *path, bool of_node)
{
    json_t *tellers = json_object_get(f->known, path);

    if (!json_is_array(tellers))
        return NULL;
    json_incref(tellers);
    json_object_set_new(f->known, path, json_boolean(!of_node));
    return tellers;
}

json_t *told_files_leave(struct told_files *f, const char *path)
{
    json_t *tellers = json_object_get(f->known, path);

    if (!json_is_array(tellers))
        return NULL;
    json_incref(tellers);
    json_object_del(f->known, path);
    return tellers;
}

void told_files_clear(struct told_files *f)
{
    json_object_clear(f->known);
    f->news = false;
}

/* What nodes tell of, a node may have that we have not. */
static bool may_leave(const struct told_files *f)
{
    json_t *value;
    const char *path;

    json_object_foreach (f->known, path, value)
        if (json_array_size(value) > 0)
            return true;
    return false;
}

void told_files_ask(struct told_files *f, json_t *question)
{
    json_t *list = json_array(), *value;
    const char *path;

    json_object_foreach (f->known, path, value)
        json_array_append_new(list, json_string(path));
    json_object_set_new(question, "files", list);
    if (may_leave(f))
        json_object_set_new(question, "leave", json_true());
    f->news = false;
}

bool told_files_are_new(const struct told_files *f)
{
    return f->news;
}
