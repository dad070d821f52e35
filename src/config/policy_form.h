/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CONFIG_POLICY_FORM_H
#define REKNIT_CONFIG_POLICY_FORM_H

/* A policy as a part of another file. */

#include "config/keys.h"
#include "core/model/policy.h"

#define POLICY_FORM_VALUES 18

/* What libcyaml makes of the fields: texts, NULL = not given. */
struct raw_policy {
    char *v[POLICY_FORM_VALUES];
    struct raw_hang *hang;
    struct raw_causes *causes;
};
extern const cyaml_schema_field_t policy_form_fields[];

/* Sets what raw says, then checks the whole of p. prefix stands
 * before the keys in errors. */
int policy_form_read(const struct source *s, const char *prefix, const struct raw_policy *raw,
                     struct policy *p);
/* Each line begins with indent. */
void policy_form_write(const struct policy *p, const char *indent, struct strbuf *out);

#endif
