/* SPDX-License-Identifier: Apache-2.0 */

/* docs/openapi.json describes every member of every event, as the tables of core do. On a
 * difference the schema that belongs there is printed. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/openapi.h"
#include "core/model/event_fields.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static json_t *schema_of_fields(const struct field *fields);

static json_t *schema_of_words(const struct field *f)
{
    json_t *words = json_array();

    for (int v = 0; f->enum_name(v); v++)
        json_array_append_new(words, json_string(f->enum_name(v)));
    return json_pack("{s:s, s:o}", "type", "string", "enum", words);
}

static json_t *schema_of_element(const struct field *f)
{
    switch (f->type) {
    case FIELD_BOOL:
        return json_pack("{s:s}", "type", "boolean");
    case FIELD_ENUM:
        return schema_of_words(f);
    case FIELD_TEXT:
        return json_pack("{s:s}", "type", "string");
    case FIELD_STRUCT:
        return schema_of_fields(f->sub);
    default:
        return json_pack("{s:s}", "type", "integer");
    }
}

static json_t *schema_of_field(const struct field *f)
{
    json_t *one = schema_of_element(f);

    if (f->max == 0)
        return one;
    if (f->index_name)
        return json_pack("{s:s, s:o}", "type", "object", "additionalProperties", one);
    return json_pack("{s:s, s:o}", "type", "array", "items", one);
}

static void add_variants(const struct field *f, json_t *properties)
{
    for (size_t i = 0; i < f->n_variants; i++) {
        const struct field *v = f->variants[i];

        if (v && !json_object_get(properties, v->name))
            json_object_set_new(properties, v->name, schema_of_field(v));
    }
}

static json_t *schema_of_fields(const struct field *fields)
{
    json_t *properties = json_object();

    for (const struct field *f = fields; !fields_end(f); f++) {
        if (f->type == FIELD_UNION)
            add_variants(f, properties);
        else
            json_object_set_new(properties, f->name, schema_of_field(f));
    }
    return json_pack("{s:s, s:o}", "type", "object", "properties", properties);
}

/* Descriptions are for people, and in the document alone. */
static void drop_descriptions(json_t *schema)
{
    json_t *v;
    const char *key;

    json_object_del(schema, "description");
    json_object_foreach (json_object_get(schema, "properties"), key, v)
        drop_descriptions(v);
    if (json_object_get(schema, "items"))
        drop_descriptions(json_object_get(schema, "items"));
    if (json_object_get(schema, "additionalProperties"))
        drop_descriptions(json_object_get(schema, "additionalProperties"));
}

static void every_member_is_described(void **state)
{
    json_t *doc = json_loads(openapi_json, JSON_REJECT_DUPLICATES, NULL), *told,
           *is = schema_of_fields(event_fields);

    assert_non_null(doc);
    told = json_object_get(json_object_get(json_object_get(doc, "components"), "schemas"), "Event");
    assert_non_null(told);
    drop_descriptions(told);
    json_object_del(told, "required");
    if (!json_equal(told, is)) {
        json_dumpf(is, stderr, JSON_INDENT(2));
        fail_msg("the schema Event of docs/openapi.json is not the one above");
    }
    json_decref(is);
    json_decref(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_member_is_described)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
