/* SPDX-License-Identifier: Apache-2.0 */

/* libcyaml checks the form (known keys, mappings where mappings belong); the values are read and
 * written by tables of keys, which the schemas below repeat in the same order. */

#include "config/policy_file.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "config/policy_form.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *place_word(int i)
{
    return keep_place_name((enum keep_place)i);
}

/* Order and number: as in the raw structs and the schema below. */
static const struct key top_keys[] = {
    KEY(KEY_TEXT, policy, name),
    KEY(KEY_COUNT, policy, max_restarts),
    KEY(KEY_COUNT, policy, max_restarts_per_day),
    KEY(KEY_COUNT, policy, max_without_progress),
    KEY(KEY_COUNT, policy, max_without_step),
    KEY(KEY_COUNT, policy, same_step_retries),
    KEY(KEY_COUNT, policy, max_waste),
    KEY(KEY_TIME, policy, waste_floor),
    KEY(KEY_COUNT, policy, max_node_restarts_per_day),
    KEY(KEY_COUNT, policy, large_job),
    KEY(KEY_COUNT, policy, max_unexplained),
    KEY(KEY_FLAG, policy, exclude_devices),
    KEY(KEY_COUNT, policy, min_devices),
    KEY(KEY_TIME, policy, verdict_wait),
    KEY(KEY_TIME, policy, kill_grace),
    KEY(KEY_FLAG, policy, continue_after_time_limit),
    {"keep_place", KEY_WORD, offsetof(struct policy, keep_place), sizeof(enum keep_place),
     place_word},
    KEY(KEY_FLAG, policy, hold_on_stop),
};
static const struct key hang_keys[] = {
    KEY(KEY_FLAG, hang_policy, enabled),     KEY(KEY_TIME, hang_policy, timeout_min),
    KEY(KEY_TIME, hang_policy, timeout_max), KEY(KEY_COUNT, hang_policy, factor),
    KEY(KEY_TIME, hang_policy, first_step),  KEY(KEY_TIME, hang_policy, checkpoint),
    KEY(KEY_TIME, hang_policy, evaluation),  KEY(KEY_TIME, hang_policy, compilation),
    KEY(KEY_TIME, hang_policy, shutdown),
};
static const struct key cause_keys[] = {
    KEY(KEY_COUNT, cause_policy, retries),
    KEY(KEY_TIME, cause_policy, backoff),
    KEY(KEY_TIME, cause_policy, backoff_max),
    KEY(KEY_TIME, cause_policy, patience),
};

struct raw_cause {
    char *v[ARRAY_SIZE(cause_keys)];
};
struct raw_hang {
    char *v[ARRAY_SIZE(hang_keys)];
};
struct raw_causes {
    struct raw_cause *v[CAUSE_MAX];
};
static_assert(ARRAY_SIZE(top_keys) == POLICY_FORM_VALUES, "the raw policy has another size");

#define VALUE_MAX 128
#define VALUE(key, raw, i)                                                                         \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw, v[i], 0,     \
                           VALUE_MAX)

static const cyaml_schema_field_t cause_fields[] = {
    VALUE("retries", raw_cause, 0),
    VALUE("backoff", raw_cause, 1),
    VALUE("backoff_max", raw_cause, 2),
    VALUE("patience", raw_cause, 3),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t hang_fields[] = {
    VALUE("enabled", raw_hang, 0),     VALUE("timeout_min", raw_hang, 1),
    VALUE("timeout_max", raw_hang, 2), VALUE("factor", raw_hang, 3),
    VALUE("first_step", raw_hang, 4),  VALUE("checkpoint", raw_hang, 5),
    VALUE("evaluation", raw_hang, 6),  VALUE("compilation", raw_hang, 7),
    VALUE("shutdown", raw_hang, 8),    CYAML_FIELD_END,
};

#define CAUSE(key, cause)                                                                          \
    CYAML_FIELD_MAPPING_PTR(key, CYAML_FLAG_POINTER_NULL | CYAML_FLAG_OPTIONAL, struct raw_causes, \
                            v[cause], cause_fields)

/* All but "none": no attempt fails of it. A test holds this list against the enum. */
static const cyaml_schema_field_t causes_fields[] = {
    CAUSE("unknown", CAUSE_UNKNOWN),
    CAUSE("gpu-hardware", CAUSE_GPU_HARDWARE),
    CAUSE("network", CAUSE_NETWORK),
    CAUSE("node-hardware", CAUSE_NODE_HARDWARE),
    CAUSE("node-failure", CAUSE_NODE_FAILURE),
    CAUSE("storage", CAUSE_STORAGE),
    CAUSE("gpu-oom", CAUSE_GPU_OOM),
    CAUSE("host-oom", CAUSE_HOST_OOM),
    CAUSE("framework", CAUSE_FRAMEWORK),
    CAUSE("user-code", CAUSE_USER_CODE),
    CAUSE("user-config", CAUSE_USER_CONFIG),
    CAUSE("numerical", CAUSE_NUMERICAL),
    CAUSE("external-service", CAUSE_EXTERNAL_SERVICE),
    CAUSE("time-limit", CAUSE_TIME_LIMIT),
    CAUSE("preemption", CAUSE_PREEMPTION),
    CAUSE("cancelled", CAUSE_CANCELLED),
    CYAML_FIELD_END,
};

const cyaml_schema_field_t policy_form_fields[] = {
    VALUE("name", raw_policy, 0),
    VALUE("max_restarts", raw_policy, 1),
    VALUE("max_restarts_per_day", raw_policy, 2),
    VALUE("max_without_progress", raw_policy, 3),
    VALUE("max_without_step", raw_policy, 4),
    VALUE("same_step_retries", raw_policy, 5),
    VALUE("max_waste", raw_policy, 6),
    VALUE("waste_floor", raw_policy, 7),
    VALUE("max_node_restarts_per_day", raw_policy, 8),
    VALUE("large_job", raw_policy, 9),
    VALUE("max_unexplained", raw_policy, 10),
    VALUE("exclude_devices", raw_policy, 11),
    VALUE("min_devices", raw_policy, 12),
    VALUE("verdict_wait", raw_policy, 13),
    VALUE("kill_grace", raw_policy, 14),
    VALUE("continue_after_time_limit", raw_policy, 15),
    VALUE("keep_place", raw_policy, 16),
    VALUE("hold_on_stop", raw_policy, 17),
    CYAML_FIELD_MAPPING_PTR("hang", CYAML_FLAG_POINTER_NULL | CYAML_FLAG_OPTIONAL,
                            struct raw_policy, hang, hang_fields),
    CYAML_FIELD_MAPPING_PTR("causes", CYAML_FLAG_POINTER_NULL | CYAML_FLAG_OPTIONAL,
                            struct raw_policy, causes, causes_fields),
    CYAML_FIELD_END,
};
/* The schemas speak of the same places, and each has an end. */
static_assert(ARRAY_SIZE(hang_fields) == ARRAY_SIZE(hang_keys) + 1, "a key of hang is missing");
static_assert(ARRAY_SIZE(cause_fields) == ARRAY_SIZE(cause_keys) + 1, "a key of causes is missing");
static_assert(ARRAY_SIZE(causes_fields) == CAUSE_MAX, "a cause is missing");
static_assert(ARRAY_SIZE(policy_form_fields) == ARRAY_SIZE(top_keys) + 3, "a key is missing");

static const cyaml_schema_value_t policy_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_policy, policy_form_fields),
};

static int read_causes(const struct source *s, const char *prefix, const struct raw_causes *raw,
                       struct policy *p)
{
    char path[128];

    for (int c = 0; c < CAUSE_MAX; c++) {
        int r;

        if (!raw->v[c])
            continue;
        STR_PRINTF(path, "%scauses.%s.", prefix, cause_name((enum cause)c));
        r = keys_read(s, path, cause_keys, ARRAY_SIZE(cause_keys), raw->v[c]->v, &p->cause[c]);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What policy_check() says begins with the path of the value. */
static int check(const struct source *s, const char *prefix, const struct policy *p)
{
    struct err e = {0};
    char path[192];

    if (policy_check(p, &e) == 0)
        return 0;
    STR_PRINTF(path, "%s%.*s", prefix, (int)strcspn(e.text, " :"), e.text);
    return err_set(s->err, -EINVAL, "%s:%u: %s%s", s->yaml.name, form_line_of(&s->yaml, path),
                   prefix, e.text);
}

int policy_form_read(const struct source *s, const char *prefix, const struct raw_policy *raw,
                     struct policy *p)
{
    char path[128];
    int r = keys_read(s, prefix, top_keys, ARRAY_SIZE(top_keys), raw->v, p);

    STR_PRINTF(path, "%shang.", prefix);
    if (r == 0 && raw->hang)
        r = keys_read(s, path, hang_keys, ARRAY_SIZE(hang_keys), raw->hang->v, &p->hang);
    if (r == 0 && raw->causes)
        r = read_causes(s, prefix, raw->causes, p);
    return r == 0 ? check(s, prefix, p) : r;
}

int policy_parse(const char *text, size_t len, const char *name, struct policy *ret,
                 struct err *ret_err)
{
    struct source s = {.yaml = {name, text, len}, .err = ret_err};
    void *object = NULL;
    struct policy p;
    int r = form_load(&s.yaml, &policy_schema, &object, ret_err);

    if (r < 0)
        return r;
    policy_default(&p);
    r = object ? policy_form_read(&s, "", object, &p) : 0; /* none: the text says nothing */
    form_free(&policy_schema, object);
    if (r == 0)
        *ret = p;
    return r;
}

int policy_load(const char *path, struct policy *ret, struct err *ret_err)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    int r = file_read(path, POLICY_FILE_MAX, &text, ret_err);

    return r < 0 ? r : policy_parse(strbuf_str(&text), text.len, path, ret, ret_err);
}

/* snprintf() that tells whether it fitted, and whether the file is there. */
__attribute__((format(printf, 3, 4))) static bool exists(char *path, size_t size,
                                                         const char *format, ...)
{
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(path, size, format, ap);
    va_end(ap);
    return n > 0 && (size_t)n < size && access(path, F_OK) == 0;
}

int policy_find(char *ret_path, size_t size)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && config[0] == '/') {
        if (exists(ret_path, size, "%s/reknit/policy.yaml", config))
            return 0;
    } else if (home && home[0] == '/' &&
               exists(ret_path, size, "%s/.config/reknit/policy.yaml", home)) {
        return 0;
    }
    return exists(ret_path, size, "/etc/reknit/policy.yaml") ? 0 : -ENOENT;
}

/* Writing */

static void add_cause(struct strbuf *out, enum cause cause, const struct cause_policy *p)
{
    strbuf_addf(out, "%s: {", cause_name(cause));
    for (size_t i = 0; i < ARRAY_SIZE(cause_keys); i++) {
        strbuf_adds(out, i > 0 ? ", " : "");
        key_write(out, &cause_keys[i], p);
    }
    strbuf_adds(out, "}\n");
}

static void add_keys(struct strbuf *out, const char *indent, const char *more,
                     const struct key *keys, size_t n, const void *object)
{
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(out, "%s%s", indent, more);
        key_write(out, &keys[i], object);
        strbuf_addc(out, '\n');
    }
}

void policy_form_write(const struct policy *p, const char *indent, struct strbuf *out)
{
    add_keys(out, indent, "", top_keys, ARRAY_SIZE(top_keys), p);
    strbuf_addf(out, "%shang:\n", indent);
    add_keys(out, indent, "  ", hang_keys, ARRAY_SIZE(hang_keys), &p->hang);
    strbuf_addf(out, "%scauses:\n", indent);
    for (int c = 0; c < CAUSE_MAX; c++)
        if (c != CAUSE_NONE) {
            strbuf_addf(out, "%s  ", indent);
            add_cause(out, (enum cause)c, &p->cause[c]);
        }
}

void policy_format(const struct policy *p, struct strbuf *out)
{
    policy_form_write(p, "", out);
}
