/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/yaml_json.h"

#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <yaml.h>

#define DEPTH_MAX 16 /* of what we write ourselves */

static json_t *plain(const char *s)
{
    long long v;

    if (streq(s, "true") || streq(s, "false"))
        return json_boolean(streq(s, "true"));
    if (str_to_i64(s, &v) >= 0)
        return json_integer(v);
    return json_string(s);
}

static json_t *scalar_of(const yaml_node_t *n)
{
    const char *s = (const char *)n->data.scalar.value;

    return n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain(s) : json_string(s);
}

static json_t *node_of(yaml_document_t *d, int id, unsigned depth);

static json_t *list_of(yaml_document_t *d, const yaml_node_t *n, unsigned depth)
{
    json_t *list = json_array();

    for (const yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top;
         i++)
        json_array_append_new(list, node_of(d, *i, depth + 1));
    return list;
}

static json_t *object_of(yaml_document_t *d, const yaml_node_t *n, unsigned depth)
{
    json_t *object = json_object();

    for (const yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top;
         p++) {
        const yaml_node_t *key = yaml_document_get_node(d, p->key);

        if (key->type == YAML_SCALAR_NODE)
            json_object_set_new(object, (const char *)key->data.scalar.value,
                                node_of(d, p->value, depth + 1));
    }
    return object;
}

static json_t *node_of(yaml_document_t *d, int id, unsigned depth)
{
    const yaml_node_t *n = yaml_document_get_node(d, id);

    assert(depth < DEPTH_MAX);
    switch (n->type) {
    case YAML_MAPPING_NODE:
        return object_of(d, n, depth);
    case YAML_SEQUENCE_NODE:
        return list_of(d, n, depth);
    default:
        return scalar_of(n);
    }
}

json_t *yaml_json(const struct strbuf *text)
{
    yaml_parser_t parser;
    yaml_document_t document;
    json_t *j = NULL;

    if (!yaml_parser_initialize(&parser))
        return NULL;
    yaml_parser_set_input_string(&parser, (const unsigned char *)strbuf_str(text), text->len);
    if (yaml_parser_load(&parser, &document)) {
        if (yaml_document_get_root_node(&document))
            j = node_of(&document, 1, 0);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    return j;
}
