/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/comment.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define COMMENT_KEY "reknit"

static bool is_blank(const char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    return *s == '\0';
}

/* What stands there as an object, an empty one where nothing does; NULL = something else. */
static json_t *read_comment(const char *comment)
{
    json_t *there;

    if (!comment || is_blank(comment))
        return json_object();
    there = json_loads(comment, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(there))
        return there;
    json_decref(there);
    return NULL;
}

int comment_merge(const char *comment, const json_t *value, char **ret, struct err *e)
{
    bool removes = json_is_null(value);
    json_t *all;
    char *text;

    if (!json_is_object(value) && !removes)
        return err_set(e, -EINVAL, "a comment must be an object or null");
    all = read_comment(comment);
    if (removes && !json_object_get(all, COMMENT_KEY)) {
        json_decref(all);
        *ret = NULL;
        return 0;
    }
    if (!all)
        return err_set(e, -EEXIST, "the comment holds other text, which would be lost");
    if (removes)
        json_object_del(all, COMMENT_KEY);
    else
        json_object_set(all, COMMENT_KEY, (json_t *)value);
    text = json_object_size(all) ? json_dumps(all, JSON_COMPACT) : xstrdup("");
    json_decref(all);
    if (!removes && strlen(text) > COMMENT_MAX) {
        free(text);
        return err_set(e, -E2BIG, "the comment would be longer than %d bytes", COMMENT_MAX);
    }
    *ret = text;
    return 0;
}
