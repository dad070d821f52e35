/* SPDX-License-Identifier: Apache-2.0 */
#include "api/answer.h"

#include "base/alloc.h"
#include "base/str.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_TYPE "application/json"

void answer_done(struct api_answer *a)
{
    free(a->text);
    a->text = NULL;
}

void answer_text(struct api_answer *a, const char *type, char *text)
{
    assert(!a->text);
    a->status = 200;
    a->type = type;
    a->text = text;
    a->len = strlen(text);
}

void answer_json(struct api_answer *a, unsigned status, json_t *j)
{
    char *text = json_dumps(j, JSON_SORT_KEYS | JSON_COMPACT);

    assert(text); /* every text in it is valid UTF-8 */
    json_decref(j);
    answer_text(a, JSON_TYPE, text);
    a->status = status;
}

void answer_error(struct api_answer *a, unsigned status, const char *format, ...)
{
    char raw[480], text[480];
    va_list ap;

    va_start(ap, format);
    vsnprintf(raw, sizeof(raw), format, ap);
    va_end(ap);
    str_sanitize(text, sizeof(text), raw, strlen(raw));
    answer_json(a, status, json_pack("{s:s}", "error", text));
}

const char *request_arg(const struct api_request *r, const char *name)
{
    return r->arg ? r->arg(r->arg_ctx, name) : NULL;
}

bool request_number(const struct api_request *r, const char *name, uint64_t absent, uint64_t *ret,
                    struct api_answer *a)
{
    const char *text = request_arg(r, name);
    long long v;

    if (text && (str_to_i64(text, &v) < 0 || v < 0)) {
        answer_error(a, 400, "%s: '%s' is not a number", name, text);
        return false;
    }
    *ret = text ? (uint64_t)v : absent;
    return true;
}

bool request_limit(const struct api_request *r, size_t *ret, struct api_answer *a)
{
    uint64_t v;

    if (!request_number(r, "limit", PAGE_DEFAULT, &v, a))
        return false;
    if (v == 0 || v > PAGE_MAX) {
        answer_error(a, 400, "limit: between 1 and %d", PAGE_MAX);
        return false;
    }
    *ret = (size_t)v;
    return true;
}

json_t *request_object(const struct api_request *r, struct api_answer *a)
{
    json_error_t error;
    json_t *j;

    if (!r->body || r->body_len == 0)
        return json_object();
    j = json_loadb(r->body, r->body_len, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(j))
        return j;
    json_decref(j);
    answer_error(a, 400, "the body is no JSON object%s%s", j ? "" : ": ", j ? "" : error.text);
    return NULL;
}
