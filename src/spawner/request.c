/* SPDX-License-Identifier: Apache-2.0 */
#include "spawner/request.h"

#include "base/str.h"

#include <errno.h>
#include <jansson.h>

/* Whether the member is a number that fits; the last one of 32 bits means "none" to the kernel. */
static bool read_u32(const json_t *j, const char *key, uint32_t *ret)
{
    const json_t *n = json_object_get(j, key);

    if (!json_is_integer(n) || json_integer_value(n) < 0 || json_integer_value(n) >= UINT32_MAX)
        return false;
    *ret = (uint32_t)json_integer_value(n);
    return true;
}

static int read_start(const json_t *j, const char *what, struct request *ret, struct err *e)
{
    if (what && streq(what, "adapter")) {
        ret->op = REQUEST_START_ADAPTER;
        return 0;
    }
    if (!what || !streq(what, "reader"))
        return err_set(e, -EBADMSG, "only the adapter and readers are started");
    ret->op = REQUEST_START_READER;
    ret->gid = (gid_t)-1;
    if (!read_u32(j, "uid", &ret->uid))
        return err_set(e, -EBADMSG, "a reader needs a uid");
    if (json_object_get(j, "gid") && !read_u32(j, "gid", &ret->gid))
        return err_set(e, -EBADMSG, "the gid is none");
    return 0;
}

static int read_request(const json_t *j, struct request *ret, struct err *e)
{
    const json_t *id = json_object_get(j, "id");
    const char *op = json_string_value(json_object_get(j, "op"));

    if (!json_is_integer(id) || json_integer_value(id) < 0)
        return err_set(e, -EBADMSG, "a request needs an id");
    ret->id = json_integer_value(id);
    if (op && streq(op, "start"))
        return read_start(j, json_string_value(json_object_get(j, "what")), ret, e);
    if (!op || !streq(op, "kill"))
        return err_set(e, -EBADMSG, "there is only start and kill");
    ret->op = REQUEST_KILL;
    if (!read_u32(j, "child", &ret->child))
        return err_set(e, -EBADMSG, "which child?");
    return 0;
}

int request_parse(const char *text, size_t len, struct request *ret, struct err *e)
{
    json_t *j = len <= REQUEST_MAX ? json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
    int r;

    *ret = (struct request){.id = -1};
    r = json_is_object(j) ? read_request(j, ret, e)
                          : err_set(e, -EBADMSG, "a request is one JSON object");
    json_decref(j);
    return r;
}
