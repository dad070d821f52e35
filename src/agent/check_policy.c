/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/check_policy.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/form.h"
#include "core/model/signal.h"

#include <errno.h>

#define FILE_MAX 65536

struct raw_policy {
    char **fail, **ignore;
    unsigned fail_count, ignore_count;
};

static const cyaml_schema_value_t pattern_schema = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, SIGNATURE_MAX - 1),
};
static const cyaml_schema_field_t fields[] = {
    CYAML_FIELD_SEQUENCE("fail", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw_policy, fail,
                         &pattern_schema, 0, CHECK_PATTERNS_MAX),
    CYAML_FIELD_SEQUENCE("ignore", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw_policy,
                         ignore, &pattern_schema, 0, CHECK_PATTERNS_MAX),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_policy, fields),
};

static void take(struct check_patterns *p, char **texts, unsigned n)
{
    for (p->n = 0; p->n < n; p->n++)
        STR_COPY(p->text[p->n], texts[p->n]);
}

int check_policy_parse(const char *name, const char *text, size_t len, struct check_policy *ret,
                       struct err *e)
{
    struct form_text t = {.name = name, .text = text, .len = len};
    struct raw_policy *raw = NULL;
    void *object = NULL;
    int r = form_load(&t, &schema, &object, e);

    if (r < 0)
        return r;
    *ret = (struct check_policy){0};
    raw = object;
    if (raw) {
        take(&ret->fail, raw->fail, raw->fail_count);
        take(&ret->ignore, raw->ignore, raw->ignore_count);
    }
    form_free(&schema, object);
    return 0;
}

int check_policy_read(const char *path, struct check_policy *ret, struct err *e)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    int r = file_read(path, FILE_MAX, &text, e);

    return r < 0 ? r : check_policy_parse(path, strbuf_str(&text), text.len, ret, e);
}

static bool names(const struct check_patterns *p, const char *signature)
{
    for (unsigned i = 0; i < p->n; i++)
        if (signature_matches(p->text[i], signature))
            return true;
    return false;
}

bool check_policy_fails(const struct check_policy *p, const struct change *c)
{
    if (names(&p->ignore, c->signature))
        return false;
    return c->isolation >= ISOLATION_DRAIN || names(&p->fail, c->signature);
}
