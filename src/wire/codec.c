/* SPDX-License-Identifier: Apache-2.0 */

/* Two walks over the field tables. A member that is absent is not written, unless readers would
 * miss it (`always`), and a member that is not written is absent: a journal stays readable when
 * members are added. Unknown keys are ignored for the same reason; an unknown word of an enum is an
 * error, because a decision that was made with it could not be replayed. */

#include "wire/codec.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "core/model/event_fields.h"

#include <assert.h>
#include <string.h>

static json_t *encode_fields(const struct field *fields, const void *object);

static json_t *encode_text(const char *s)
{
    json_t *j = json_string(s);
    char clean[1024];

    if (j)
        return j;
    /* Text is sanitised before it gets into an event; this keeps a slip from losing the event. */
    str_sanitize(clean, sizeof(clean), s, strlen(s));
    return json_string(clean);
}

static json_t *encode_number(const struct field *f, int64_t v)
{
    const char *word;

    if (f->type == FIELD_BOOL)
        return json_boolean(v);
    if (f->type != FIELD_ENUM)
        return json_integer(v);
    word = f->enum_name((int)v);
    assert(word);
    return json_string(word);
}

/* NULL = absent. */
static json_t *encode_element(const struct field *f, const void *at)
{
    json_t *j;

    if (f->type == FIELD_TEXT)
        return *(const char *)at ? encode_text(at) : NULL;
    if (f->type != FIELD_STRUCT)
        return field_number(f, at) == f->absent && !f->always
                   ? NULL
                   : encode_number(f, field_number(f, at));
    j = encode_fields(f->sub, at);
    if (json_object_size(j) > 0)
        return j;
    json_decref(j);
    return NULL;
}

/* An element of a list keeps its place even when it is absent. */
static json_t *encode_placeholder(const struct field *f)
{
    if (f->type == FIELD_TEXT)
        return json_string("");
    return f->type == FIELD_STRUCT ? json_object() : encode_number(f, f->absent);
}

static json_t *encode_list(const struct field *f, const void *object)
{
    uint32_t n = field_count(f, object);
    json_t *list = f->index_name ? json_object() : json_array();

    for (uint32_t i = 0; i < n; i++) {
        json_t *j = encode_element(f, FIELD_AT(object, f, i));

        if (f->index_name && j)
            json_object_set_new(list, f->index_name((int)i), j);
        else if (!f->index_name)
            json_array_append_new(list, j ? j : encode_placeholder(f));
    }
    if (f->index_name ? json_object_size(list) > 0 : n > 0)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *encode_fields(const struct field *fields, const void *object)
{
    json_t *ret = json_object();

    for (const struct field *f = fields; !fields_end(f); f++) {
        const struct field *g = f->type == FIELD_UNION ? field_variant(f, object) : f;
        json_t *j;

        if (!g)
            continue;
        j = g->max > 0 ? encode_list(g, object) : encode_element(g, FIELD_AT(object, g, 0));
        if (j)
            json_object_set_new(ret, g->name, j);
    }
    return ret;
}

char *codec_encode(const struct event *e)
{
    const struct field *body = event_body(e->kind);
    json_t *j = body ? encode_fields(body->sub, FIELD_AT(e, body, 0)) : json_object();
    char *text = json_dumps(j, JSON_SORT_KEYS | JSON_COMPACT);

    json_decref(j);
    assert(text);
    return text;
}

json_t *codec_event_json(const struct event *e)
{
    return encode_fields(event_fields, e);
}

static int decode_fields(const struct field *fields, const json_t *j, void *object, struct err *e);

static int bad(const struct field *f, struct err *e)
{
    return err_set(e, -EBADMSG, "'%s' has a value that this release does not know", f->name);
}

static void set_number(const struct field *f, void *at, int64_t v)
{
    switch (f->type) {
    case FIELD_BOOL:
        *(bool *)at = v != 0;
        break;
    case FIELD_I32:
    case FIELD_ENUM:
        *(int32_t *)at = (int32_t)v;
        break;
    case FIELD_U32:
        *(uint32_t *)at = (uint32_t)v;
        break;
    case FIELD_I64:
        *(int64_t *)at = v;
        break;
    case FIELD_U64:
        *(uint64_t *)at = (uint64_t)v;
        break;
    default:
        assert(!"a number");
    }
}

static bool number_fits(const struct field *f, int64_t v)
{
    if (f->type == FIELD_I32)
        return v >= INT32_MIN && v <= INT32_MAX;
    if (f->type == FIELD_U32)
        return v >= 0 && v <= UINT32_MAX;
    return f->type == FIELD_I64 || (f->type == FIELD_U64 && v >= 0);
}

static int decode_number(const struct field *f, const json_t *j, void *at, struct err *e)
{
    int64_t v;

    if (!j) {
        v = f->absent;
    } else if (f->type == FIELD_BOOL && json_is_boolean(j)) {
        v = json_is_true(j);
    } else if (f->type == FIELD_ENUM && json_is_string(j)) {
        v = f->enum_from_name(json_string_value(j));
        if (v < 0)
            return bad(f, e);
    } else if (json_is_integer(j) && number_fits(f, json_integer_value(j))) {
        v = json_integer_value(j);
    } else {
        return bad(f, e);
    }
    set_number(f, at, v);
    return 0;
}

static int decode_element(const struct field *f, const json_t *j, void *at, struct err *e)
{
    if (f->type == FIELD_STRUCT)
        return j && !json_is_object(j) ? bad(f, e) : decode_fields(f->sub, j, at, e);
    if (f->type != FIELD_TEXT)
        return decode_number(f, j, at, e);
    if (j && !json_is_string(j))
        return bad(f, e);
    str_copy(at, f->size, j ? json_string_value(j) : "");
    return 0;
}

static int decode_list(const struct field *f, const json_t *j, void *object, struct err *e)
{
    uint32_t n = f->index_name ? f->max : (uint32_t)json_array_size(j);

    if (j && (f->index_name ? !json_is_object(j) : !json_is_array(j) || n > f->max))
        return bad(f, e);
    for (uint32_t i = 0; i < n; i++) {
        const json_t *item =
            f->index_name ? json_object_get(j, f->index_name((int)i)) : json_array_get(j, i);
        int r = decode_element(f, item, FIELD_AT(object, f, i), e);

        if (r < 0)
            return r;
    }
    if (!f->index_name)
        memcpy((char *)object + f->count, &n, sizeof(n));
    return 0;
}

/* j may be NULL: then every member becomes absent. Tables put a selector before its union. */
static int decode_fields(const struct field *fields, const json_t *j, void *object, struct err *e)
{
    for (const struct field *f = fields; !fields_end(f); f++) {
        const struct field *g = f->type == FIELD_UNION ? field_variant(f, object) : f;
        const json_t *item;
        int r;

        if (!g)
            continue;
        item = json_object_get(j, g->name);
        r = g->max > 0 ? decode_list(g, item, object, e)
                       : decode_element(g, item, FIELD_AT(object, g, 0), e);
        if (r < 0)
            return r;
    }
    return 0;
}

int codec_refuse_numbers(struct err *e)
{
    return err_set(e, -EBADMSG, "one of its numbers is out of all range");
}

int codec_decode(const char *json, struct event *ret, struct err *e)
{
    const struct field *body = event_body(ret->kind);
    json_error_t error;
    json_t *j = json_loads(json, 0, &error);
    int r = 0;

    if (!json_is_object(j))
        r = err_set(e, -EBADMSG, "its body is no JSON object%s%s", j ? "" : ": ",
                    j ? "" : error.text);
    else if (body)
        r = decode_fields(body->sub, j, FIELD_AT(ret, body, 0), e);
    json_decref(j);
    return r;
}

int codec_json_event(const json_t *j, struct event *ret, struct err *e)
{
    int r;

    if (!json_is_object(j))
        return err_set(e, -EBADMSG, "an event is a JSON object");
    memset(ret, 0, sizeof(*ret));
    r = decode_fields(event_fields, j, ret, e);
    return r >= 0 && !event_is_sane(ret) ? codec_refuse_numbers(e) : r;
}

static void sanitize_text(char *text, size_t size)
{
    char raw[1024];
    size_t n = strnlen(text, size < sizeof(raw) ? size : sizeof(raw));

    memcpy(raw, text, n);
    str_sanitize(text, size, raw, n);
}

static void sanitize_fields(const struct field *fields, void *object)
{
    for (const struct field *f = fields; !fields_end(f); f++) {
        const struct field *g = f->type == FIELD_UNION ? field_variant(f, object) : f;

        for (uint32_t i = 0; g && i < field_count(g, object); i++)
            if (g->type == FIELD_STRUCT)
                sanitize_fields(g->sub, FIELD_AT(object, g, i));
            else if (g->type == FIELD_TEXT)
                sanitize_text(FIELD_AT(object, g, i), g->size);
    }
}

void codec_sanitize(struct event *e)
{
    sanitize_fields(event_fields, e);
}
