/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_FORM_H
#define REKNIT_BASE_FORM_H

/* YAML files of a form that a schema of libcyaml describes. What is wrong with one is told in words
 * for the person who wrote it: where it stands, what is not understood, what is. */

#include "base/err.h"

#include <cyaml/cyaml.h>
#include <stddef.h>

struct form_text {
    const char *name; /* stands for the file in errors */
    const char *text;
    size_t len;
};

/* 0 with an object for form_free(), NULL when the text says nothing; -EINVAL, e says
 * "name:line: what". */
int form_load(const struct form_text *t, const cyaml_schema_value_t *schema, void **ret,
              struct err *e);
void form_free(const cyaml_schema_value_t *schema, void *object);

/* Line of the key "causes.network.retries" or "rules[2].mode" (the second rule), or of as much of
 * that path as there is: libcyaml does not keep the place of a value. */
unsigned form_line_of(const struct form_text *t, const char *path);

/* How many keys at the top of the text the fields know: tells which form it is meant to have. */
unsigned form_known_keys(const struct form_text *t, const cyaml_schema_field_t *fields);

#endif
