/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MODEL_EVENT_FIELDS_H
#define REKNIT_CORE_MODEL_EVENT_FIELDS_H

/* Every member of every event, described once. The journal encodes and decodes by these tables,
 * replay compares by them, `explain` prints by them; a member that is not here is not stored.
 *
 * A list of fields ends with a field without a name. Offsets count from the struct that the list
 * belongs to. A member whose value is `absent` ("" for text, false, the first word of an enum) may
 * be left out when it is written; when it is missing, it is read as that value. */

#include "base/str.h"
#include "core/model/event.h"

enum field_type {
    FIELD_BOOL,
    FIELD_I32,
    FIELD_U32,
    FIELD_I64,
    FIELD_U64, /* never above INT64_MAX */
    FIELD_ENUM,
    FIELD_TEXT,   /* char[size], terminated, valid UTF-8 */
    FIELD_STRUCT, /* described by `sub` */
    FIELD_UNION,  /* the member variants[the enum at `selector`]; NULL = the kind carries nothing */
};

struct field {
    const char *name; /* of the member, and the key when it is written; NULL for FIELD_UNION */
    enum field_type type;
    size_t offset;
    size_t size; /* bytes of one element */

    /* Arrays: at most `max` elements (0 = no array), of which the uint32_t at `count` are used.
     * With index_name it is an array over an enum instead: all elements, each under its name. */
    uint32_t max;
    size_t count;
    const char *(*index_name)(int i);

    int64_t absent;
    bool always; /* written even when it is absent: the first word of its enum says something */
    const char *(*enum_name)(int v);
    int (*enum_from_name)(const char *s);

    const struct field *sub;
    size_t selector;
    const struct field *const *variants;
    size_t n_variants;
};

/* All of struct event. */
extern const struct field event_fields[];

/* What a kind of event carries, as a FIELD_STRUCT inside struct event; NULL = nothing. */
const struct field *event_body(enum event_kind kind);

#define FIELD_AT(object, field, i)                                                                 \
    ((void *)((char *)(object) + (field)->offset + (size_t)(i) * (field)->size))

bool fields_end(const struct field *f);
const struct field *field_variant(const struct field *f, const void *object); /* of FIELD_UNION */
uint32_t field_count(const struct field *f, const void *object); /* elements in use; 1: no array */
int64_t field_number(const struct field *f, const void *at);     /* BOOL, numbers and ENUM */

/* "who.rank" of the first member that differs, "" when all are equal. */
const char *fields_differ(const struct field *fields, const void *a, const void *b, char *where,
                          size_t size);
#define event_differs(a, b, where) fields_differ(event_fields, a, b, where, sizeof(where))

/* "key=value key=value": what is not absent, for people and for tests. */
void fields_print(const struct field *fields, const void *object, struct strbuf *out);

#endif
