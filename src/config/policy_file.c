/* SPDX-License-Identifier: Apache-2.0 */

/* libcyaml checks the form (known keys, mappings where mappings belong) and hands over every value
 * as text; what the text means is decided here, by one table of keys that reading and writing
 * share. So a bad value is reported like a bad key: with the file, the line and the reason. */

#include "config/policy_file.h"

#include "base/cleanup.h"
#include "base/form.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum key_type {
    KEY_TIME,
    KEY_COUNT,
    KEY_FLAG,
    KEY_NAME,
};

struct key {
    const char *name;
    enum key_type type;
    size_t offset; /* in the struct that the keys belong to */
};

#define KEY(type, strct, member)                                                                   \
    {                                                                                              \
#member, type, offsetof(struct strct, member)                                              \
    }

/* Order and number: as in the raw structs and the schema below. */
static const struct key top_keys[] = {
    KEY(KEY_NAME, policy, name),
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
struct raw_policy {
    char *v[ARRAY_SIZE(top_keys)];
    struct raw_hang *hang;
    struct raw_causes *causes;
};

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

static const cyaml_schema_field_t policy_schema_fields[] = {
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
static_assert(ARRAY_SIZE(policy_schema_fields) == ARRAY_SIZE(top_keys) + 3, "a key is missing");

static const cyaml_schema_value_t policy_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_policy, policy_schema_fields),
};

struct source {
    struct form_text yaml;
    struct err *err;
};

__attribute__((format(printf, 3, 4))) static int complain(const struct source *s, const char *path,
                                                          const char *format, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    return err_set(s->err, -EINVAL, "%s:%u: %s: %s", s->yaml.name, form_line_of(&s->yaml, path),
                   path, text);
}

/* Values */

static int read_time(const struct source *s, const char *path, const char *value, usec_t *ret)
{
    int r = duration_parse(value, ret);

    if (r == -ERANGE)
        return complain(s, path, "'%s' is too long", value);
    if (r < 0)
        return complain(s, path,
                        "'%s' is no duration: write a number with its unit, as 90s, 5m, "
                        "1h 30m",
                        value);
    return 0;
}

static int read_count(const struct source *s, const char *path, const char *value, uint32_t *ret)
{
    long long number;

    if (str_to_i64(value, &number) < 0 || !isdigit((unsigned char)value[0]))
        return complain(s, path, "'%s' is no whole number", value);
    if (number > UINT32_MAX)
        return complain(s, path, "%s is too large", value);
    *ret = (uint32_t)number;
    return 0;
}

static int read_flag(const struct source *s, const char *path, const char *value, bool *ret)
{
    if (!streq(value, "true") && !streq(value, "false"))
        return complain(s, path, "'%s' is neither true nor false", value);
    *ret = streq(value, "true");
    return 0;
}

static int read_name(const struct source *s, const char *path, const char *value, char *ret,
                     size_t size)
{
    if (strlen(value) >= size)
        return complain(s, path, "longer than %zu bytes", size - 1);
    str_sanitize(ret, size, value, strlen(value));
    return 0;
}

static int read_value(const struct source *s, const char *path, const struct key *key,
                      const char *value, void *object)
{
    void *at = (char *)object + key->offset;

    switch (key->type) {
    case KEY_TIME:
        return read_time(s, path, value, at);
    case KEY_COUNT:
        return read_count(s, path, value, at);
    case KEY_FLAG:
        return read_flag(s, path, value, at);
    case KEY_NAME:
        return read_name(s, path, value, at, sizeof(((struct policy *)0)->name));
    }
    return -EINVAL;
}

static int read_values(const struct source *s, const char *prefix, const struct key *keys, size_t n,
                       char *const *values, void *object)
{
    char path[128];

    for (size_t i = 0; i < n; i++) {
        int r;

        if (!values[i])
            continue;
        STR_PRINTF(path, "%s%s", prefix, keys[i].name);
        r = read_value(s, path, &keys[i], values[i], object);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_causes(const struct source *s, const struct raw_causes *raw, struct policy *p)
{
    char prefix[64];

    for (int c = 0; c < CAUSE_MAX; c++) {
        int r;

        if (!raw->v[c])
            continue;
        STR_PRINTF(prefix, "causes.%s.", cause_name((enum cause)c));
        r = read_values(s, prefix, cause_keys, ARRAY_SIZE(cause_keys), raw->v[c]->v, &p->cause[c]);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What policy_check() says begins with the path of the value. */
static int check(const struct source *s, const struct policy *p)
{
    struct err e = {0};
    char path[128];

    if (policy_check(p, &e) == 0)
        return 0;
    str_copy_n(path, sizeof(path), e.text, strcspn(e.text, " :"));
    return err_set(s->err, -EINVAL, "%s:%u: %s", s->yaml.name, form_line_of(&s->yaml, path),
                   e.text);
}

static int convert(const struct source *s, const struct raw_policy *raw, struct policy *p)
{
    int r = read_values(s, "", top_keys, ARRAY_SIZE(top_keys), raw->v, p);

    if (r == 0 && raw->hang)
        r = read_values(s, "hang.", hang_keys, ARRAY_SIZE(hang_keys), raw->hang->v, &p->hang);
    if (r == 0 && raw->causes)
        r = read_causes(s, raw->causes, p);
    return r == 0 ? check(s, p) : r;
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
    r = object ? convert(&s, object, &p) : 0; /* none: the text says nothing */
    form_free(&policy_schema, object);
    if (r == 0)
        *ret = p;
    return r;
}

static int read_file(int fd, struct strbuf *out)
{
    char block[16384];
    ssize_t n;

    while ((n = read(fd, block, sizeof(block))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        strbuf_add(out, block, (size_t)n);
        if (out->len > POLICY_FILE_MAX)
            return -EFBIG;
    }
    return 0;
}

int policy_load(const char *path, struct policy *ret, struct err *ret_err)
{
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    _cleanup_strbuf_ struct strbuf text = {0};
    int r = fd < 0 ? -errno : read_file(fd, &text);

    if (r < 0)
        return err_set(ret_err, r, "%s: %s", path, strerror(-r));
    return policy_parse(strbuf_str(&text), text.len, path, ret, ret_err);
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

/* In the largest unit that says it without a rest. */
static void add_time(struct strbuf *out, usec_t us)
{
    static const struct {
        const char *name;
        usec_t us;
    } units[] = {
        {"d", USEC_PER_DAY}, {"h", USEC_PER_HOUR},  {"m", USEC_PER_MIN},
        {"s", USEC_PER_SEC}, {"ms", USEC_PER_MSEC}, {"us", 1},
    };

    if (us == 0) {
        strbuf_adds(out, "0s");
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (us % units[i].us == 0) {
            strbuf_addf(out, "%lld%s", (long long)(us / units[i].us), units[i].name);
            return;
        }
}

static void add_quoted(struct strbuf *out, const char *s)
{
    strbuf_addc(out, '\'');
    for (; *s; s++) {
        if (*s == '\'')
            strbuf_addc(out, '\'');
        strbuf_addc(out, *s);
    }
    strbuf_addc(out, '\'');
}

static void add_value(struct strbuf *out, const struct key *key, const void *object)
{
    const void *at = (const char *)object + key->offset;

    strbuf_addf(out, "%s: ", key->name);
    switch (key->type) {
    case KEY_TIME:
        add_time(out, *(const usec_t *)at);
        break;
    case KEY_COUNT:
        strbuf_addf(out, "%u", *(const uint32_t *)at);
        break;
    case KEY_FLAG:
        strbuf_adds(out, *(const bool *)at ? "true" : "false");
        break;
    case KEY_NAME:
        add_quoted(out, at);
        break;
    }
}

static void add_cause(struct strbuf *out, enum cause cause, const struct cause_policy *p)
{
    strbuf_addf(out, "  %s: {", cause_name(cause));
    for (size_t i = 0; i < ARRAY_SIZE(cause_keys); i++) {
        strbuf_adds(out, i > 0 ? ", " : "");
        add_value(out, &cause_keys[i], p);
    }
    strbuf_adds(out, "}\n");
}

void policy_format(const struct policy *p, struct strbuf *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(top_keys); i++) {
        add_value(out, &top_keys[i], p);
        strbuf_addc(out, '\n');
    }
    strbuf_adds(out, "hang:\n");
    for (size_t i = 0; i < ARRAY_SIZE(hang_keys); i++) {
        strbuf_adds(out, "  ");
        add_value(out, &hang_keys[i], &p->hang);
        strbuf_addc(out, '\n');
    }
    strbuf_adds(out, "causes:\n");
    for (int c = 0; c < CAUSE_MAX; c++)
        if (c != CAUSE_NONE)
            add_cause(out, (enum cause)c, &p->cause[c]);
}
