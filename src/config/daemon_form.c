/* SPDX-License-Identifier: Apache-2.0 */

/* What reknitd's configuration looks like as YAML. The lists of keys below are the one place that
 * knows them: they become the index of a value in what libcyaml hands over, its row for reading and
 * writing, and its field in the schema. */

#include "config/daemon_form.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "config/policy_file.h"
#include "config/policy_form.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *mode_word(int i)
{
    return mode_name((enum mode)i);
}

static const char *isolation_word(int i)
{
    return isolation_name((enum isolation)i);
}

static const char *cause_word(int i)
{
    return cause_name((enum cause)i);
}

static const char *level_word(int i)
{
    return log_level_name((enum log_level)i);
}

static const char *auth_word(int i)
{
    return agent_auth_name((enum agent_auth)i);
}

static const char *place_word(int i)
{
    return read_at_name((enum read_at)i);
}

/* ---- the keys: X(section, key, type, words) ---- */

#define TOP_KEYS(X)                                                                                \
    X(top, mode, KEY_WORD, mode_word)                                                              \
    X(top, opt_in, KEY_FLAG, NULL)                                                                 \
    X(top, policy, KEY_TEXT, NULL)                                                                 \
    X(top, watch_all, KEY_FLAG, NULL)                                                              \
    X(top, aps_comments, KEY_FLAG, NULL)                                                           \
    X(top, cluster, KEY_TEXT, NULL)                                                                \
    X(top, state_dir, KEY_TEXT, NULL)                                                              \
    X(top, poll, KEY_TIME, NULL)                                                                   \
    X(top, spawner, KEY_TEXT, NULL)                                                                \
    X(top, operators, KEY_TEXT, NULL)                                                              \
    X(top, max_excluded, KEY_COUNT, NULL)                                                          \
    X(top, log_level, KEY_WORD, level_word)

#define ADAPTER_KEYS(X) X(adapter, timeout, KEY_TIME, NULL)

#define API_KEYS(X)                                                                                \
    X(api, socket, KEY_TEXT, NULL)                                                                 \
    X(api, listen, KEY_TEXT, NULL)                                                                 \
    X(api, tls_cert, KEY_TEXT, NULL)                                                               \
    X(api, tls_key, KEY_TEXT, NULL)                                                                \
    X(api, token_file, KEY_TEXT, NULL)                                                             \
    X(api, munge, KEY_FLAG, NULL)

#define AGENTS_KEYS(X)                                                                             \
    X(agents, listen, KEY_TEXT, NULL)                                                              \
    X(agents, auth, KEY_WORD, auth_word)                                                           \
    X(agents, key_file, KEY_TEXT, NULL)                                                            \
    X(agents, munge_socket, KEY_TEXT, NULL)

#define WEBHOOK_KEYS(X)                                                                            \
    X(webhook, url, KEY_SECRET, NULL)                                                              \
    X(webhook, token_file, KEY_TEXT, NULL)                                                         \
    X(webhook, ca_cert, KEY_TEXT, NULL)                                                            \
    X(webhook, mode, KEY_WORD, mode_word)

#define BRAKES_KEYS(X)                                                                             \
    X(brakes, actions_per_hour, KEY_COUNT, NULL)                                                   \
    X(brakes, actions_per_partition_hour, KEY_COUNT, NULL)                                         \
    X(brakes, actions_per_user_hour, KEY_COUNT, NULL)                                              \
    X(brakes, exclusions_per_node_hour, KEY_COUNT, NULL)                                           \
    X(brakes, storm_jobs, KEY_COUNT, NULL)                                                         \
    X(brakes, storm_window, KEY_TIME, NULL)                                                        \
    X(brakes, storm_per_minute, KEY_COUNT, NULL)                                                   \
    X(brakes, proposal_life, KEY_TIME, NULL)                                                       \
    X(brakes, early_start, KEY_TIME, NULL)                                                         \
    X(brakes, exclusion_life, KEY_TIME, NULL)

#define NODES_KEYS(X)                                                                              \
    X(nodes, mode, KEY_WORD, mode_word)                                                            \
    X(nodes, max_drained, KEY_COUNT, NULL)                                                         \
    X(nodes, drains_per_hour, KEY_COUNT, NULL)                                                     \
    X(nodes, breaker_share, KEY_COUNT, NULL)

#define READERS_KEYS(X)                                                                            \
    X(readers, max_processes, KEY_COUNT, NULL)                                                     \
    X(readers, stall, KEY_TIME, NULL)                                                              \
    X(readers, read_at, KEY_WORD, place_word)

#define JOURNAL_KEYS(X)                                                                            \
    X(journal, keep, KEY_TIME, NULL)                                                               \
    X(journal, detail, KEY_TIME, NULL)                                                             \
    X(journal, newest, KEY_COUNT, NULL)

#define RULE_KEYS(X)                                                                               \
    X(rule, partition, KEY_TEXT, NULL)                                                             \
    X(rule, account, KEY_TEXT, NULL)                                                               \
    X(rule, qos, KEY_TEXT, NULL)                                                                   \
    X(rule, user, KEY_TEXT, NULL)                                                                  \
    X(rule, mode, KEY_WORD, mode_word)                                                             \
    X(rule, opt_in, KEY_MAYBE, NULL)                                                               \
    X(rule, policy, KEY_TEXT, NULL)

#define ALERT_KEYS(X)                                                                              \
    X(alert, alert, KEY_TEXT, NULL)                                                                \
    X(alert, isolation, KEY_WORD, isolation_word)                                                  \
    X(alert, cause, KEY_WORD, cause_word)

#define NAMED_KEYS(X)                                                                              \
    X(named, name, KEY_TEXT, NULL)                                                                 \
    X(named, file, KEY_TEXT, NULL)                                                                 \
    X(named, users, KEY_FLAG, NULL)

#define AS_INDEX(section, key, ...) section##_##key,
#define INDICES(section, KEYS)      enum { KEYS(AS_INDEX) section##_N }

INDICES(top, TOP_KEYS);
INDICES(adapter, ADAPTER_KEYS);
INDICES(api, API_KEYS);
INDICES(agents, AGENTS_KEYS);
INDICES(webhook, WEBHOOK_KEYS);
INDICES(brakes, BRAKES_KEYS);
INDICES(nodes, NODES_KEYS);
INDICES(readers, READERS_KEYS);
INDICES(journal, JOURNAL_KEYS);
INDICES(rule, RULE_KEYS);
INDICES(alert, ALERT_KEYS);
INDICES(named, NAMED_KEYS);

/* ---- the rows ---- */

#define ROW(strct, key, member, type, word)                                                        \
    {#key, type, offsetof(struct strct, member), sizeof(((struct strct *)0)->member), word},
#define AS_TOP_ROW(section, key, type, word)   ROW(daemon_config, key, key, type, word)
#define AS_PART_ROW(section, key, type, word)  ROW(daemon_config, key, section.key, type, word)
#define AS_RULE_ROW(section, key, type, word)  ROW(job_rule, key, key, type, word)
#define AS_ALERT_ROW(section, key, type, word) ROW(alert_rule, key, key, type, word)
#define AS_NAMED_ROW(section, key, type, word) ROW(named_policy, key, key, type, word)

static const struct key top_rows[] = {TOP_KEYS(AS_TOP_ROW)};
static const struct key adapter_rows[] = {ADAPTER_KEYS(AS_PART_ROW)};
static const struct key api_rows[] = {API_KEYS(AS_PART_ROW)};
static const struct key agents_rows[] = {AGENTS_KEYS(AS_PART_ROW)};
static const struct key webhook_rows[] = {WEBHOOK_KEYS(AS_PART_ROW)};
static const struct key brakes_rows[] = {BRAKES_KEYS(AS_PART_ROW)};
static const struct key nodes_rows[] = {NODES_KEYS(AS_PART_ROW)};
static const struct key readers_rows[] = {READERS_KEYS(AS_PART_ROW)};
static const struct key journal_rows[] = {JOURNAL_KEYS(AS_PART_ROW)};
static const struct key rule_rows[] = {RULE_KEYS(AS_RULE_ROW)};
static const struct key alert_rows[] = {ALERT_KEYS(AS_ALERT_ROW)};
static const struct key named_rows[] = {NAMED_KEYS(AS_NAMED_ROW)};

/* ---- what libcyaml hands over ---- */

struct raw_command {
    char **v;
    unsigned v_count;
};
struct raw_part {
    char *v[brakes_N]; /* the part with the most keys */
    struct raw_command command;
};
struct raw_rule {
    char *v[rule_N];
};
struct raw_alert {
    char *v[alert_N];
};
struct raw_named {
    char *v[named_N];
    struct raw_policy *policy;
};
struct raw_daemon {
    char *v[top_N];
    struct raw_command fence;
    struct raw_part *adapter, *api, *agents, *webhook, *brakes, *nodes, *readers, *journal;
    struct raw_rule *rules;
    unsigned rules_count;
    struct raw_alert *alerts;
    unsigned alerts_count;
    struct raw_named *policies;
    unsigned policies_count;
};
static_assert((int)brakes_N >= (int)api_N && (int)brakes_N >= (int)agents_N &&
                  (int)brakes_N >= (int)readers_N && (int)brakes_N >= (int)webhook_N &&
                  (int)brakes_N >= (int)journal_N && (int)brakes_N >= (int)nodes_N,
              "a part with more keys");

#define OPTIONAL (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define FIELD(strct, index, key)                                                                   \
    CYAML_FIELD_STRING_PTR(#key, OPTIONAL, struct strct, v[index], 0, CONFIG_TEXT_MAX - 1),
#define AS_TOP_FIELD(section, key, ...)   FIELD(raw_daemon, section##_##key, key)
#define AS_PART_FIELD(section, key, ...)  FIELD(raw_part, section##_##key, key)
#define AS_RULE_FIELD(section, key, ...)  FIELD(raw_rule, section##_##key, key)
#define AS_ALERT_FIELD(section, key, ...) FIELD(raw_alert, section##_##key, key)
#define AS_NAMED_FIELD(section, key, ...) FIELD(raw_named, section##_##key, key)
#define COMMAND_FIELD(name, strct, member)                                                         \
    {                                                                                              \
        .key = name, .data_offset = offsetof(struct strct, member.v),                              \
        .count_offset = offsetof(struct strct, member.v_count), .count_size = sizeof(unsigned),    \
        .value = {CYAML_VALUE_SEQUENCE(OPTIONAL, char *, &argument, 0, COMMAND_ARGS_MAX)},         \
    }

static const cyaml_schema_value_t argument = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, CONFIG_TEXT_MAX - 1),
};
static const cyaml_schema_field_t adapter_fields[] = {
    COMMAND_FIELD("command", raw_part, command), //
    ADAPTER_KEYS(AS_PART_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t api_fields[] = {API_KEYS(AS_PART_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t agents_fields[] = {AGENTS_KEYS(AS_PART_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t webhook_fields[] = {WEBHOOK_KEYS(AS_PART_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t brakes_fields[] = {BRAKES_KEYS(AS_PART_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t nodes_fields[] = {COMMAND_FIELD("check", raw_part, command), //
                                                    NODES_KEYS(AS_PART_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t readers_fields[] = {READERS_KEYS(AS_PART_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t journal_fields[] = {JOURNAL_KEYS(AS_PART_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t rule_fields[] = {RULE_KEYS(AS_RULE_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t alert_fields[] = {ALERT_KEYS(AS_ALERT_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t named_fields[] = {
    NAMED_KEYS(AS_NAMED_FIELD) //
    CYAML_FIELD_MAPPING_PTR("policy", OPTIONAL | CYAML_FLAG_POINTER_NULL, struct raw_named, policy,
                            policy_form_fields),
    CYAML_FIELD_END};
static const cyaml_schema_value_t rule_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_rule, rule_fields),
};
static const cyaml_schema_value_t alert_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_alert, alert_fields),
};
static const cyaml_schema_value_t named_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_named, named_fields),
};

#define PART_FIELD(part)                                                                           \
    CYAML_FIELD_MAPPING_PTR(#part, OPTIONAL | CYAML_FLAG_POINTER_NULL, struct raw_daemon, part,    \
                            part##_fields)

static const cyaml_schema_field_t daemon_fields[] = {
    TOP_KEYS(AS_TOP_FIELD) //
    COMMAND_FIELD("fence", raw_daemon, fence),
    PART_FIELD(adapter),
    PART_FIELD(api),
    PART_FIELD(agents),
    PART_FIELD(webhook),
    PART_FIELD(brakes),
    PART_FIELD(nodes),
    PART_FIELD(readers),
    PART_FIELD(journal),
    CYAML_FIELD_SEQUENCE("rules", OPTIONAL | CYAML_FLAG_POINTER_NULL, struct raw_daemon, rules,
                         &rule_value, 0, RULES_MAX),
    CYAML_FIELD_SEQUENCE("alerts", OPTIONAL | CYAML_FLAG_POINTER_NULL, struct raw_daemon, alerts,
                         &alert_value, 0, ALERT_RULES_MAX),
    CYAML_FIELD_SEQUENCE("policies", OPTIONAL | CYAML_FLAG_POINTER_NULL, struct raw_daemon,
                         policies, &named_value, 0, POLICIES_MAX),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t daemon_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_daemon, daemon_fields),
};

/* ---- reading ---- */

/* Another file's command is replaced as a whole. */
static int read_command(const struct source *s, const char *path, const struct raw_command *raw,
                        struct command *ret)
{
    struct command c = {.n = raw->v_count};
    char entry[64];

    if (!raw->v)
        return 0;
    for (unsigned i = 0; i < c.n; i++) {
        int r;

        STR_PRINTF(entry, "%s[%u]", path, i + 1);
        r = text_read(s, entry, raw->v[i], c.argv[i], sizeof(c.argv[i]));
        if (r < 0)
            return r;
    }
    *ret = c;
    return 0;
}

static int read_part(const struct source *s, const char *name, const struct key *rows, size_t n,
                     const struct raw_part *raw, struct daemon_config *c)
{
    char prefix[32];

    STR_PRINTF(prefix, "%s.", name);
    return raw ? keys_read(s, prefix, rows, n, raw->v, c) : 0;
}

static int read_parts(const struct source *s, const struct raw_daemon *raw, struct daemon_config *c)
{
#define READ(part) read_part(s, #part, part##_rows, part##_N, raw->part, c)
    int r = keys_read(s, "", top_rows, top_N, raw->v, c);

    r = r < 0 ? r : read_command(s, "fence", &raw->fence, &c->fence);
    if (r == 0 && raw->adapter)
        r = read_command(s, "adapter.command", &raw->adapter->command, &c->adapter.command);
    r = r < 0 ? r : READ(adapter);
    r = r < 0 ? r : READ(api);
    r = r < 0 ? r : READ(agents);
    r = r < 0 ? r : READ(webhook);
    r = r < 0 ? r : READ(brakes);
    r = r < 0 ? r : READ(nodes);
    if (r == 0 && raw->nodes)
        r = read_command(s, "nodes.check", &raw->nodes->command, &c->nodes.check);
    r = r < 0 ? r : READ(readers);
    return r < 0 ? r : READ(journal);
#undef READ
}

static int read_rule(const struct source *s, unsigned i, const struct raw_rule *raw,
                     struct daemon_config *c)
{
    struct job_rule rule = {.mode = MODE_INVALID, .opt_in = -1};
    char path[64];
    int r;

    STR_PRINTF(path, "rules[%u]", i + 1);
    STR_PRINTF(rule.from, "%s:%u", s->yaml.name, form_line_of(&s->yaml, path));
    if (c->n_rules == RULES_MAX)
        return source_complain(s, path, "there are more than %u rules", RULES_MAX);
    STR_PRINTF(path, "rules[%u].", i + 1);
    r = keys_read(s, path, rule_rows, rule_N, raw->v, &rule);
    if (r < 0)
        return r;
    c->rules = xreallocarray(c->rules, c->n_rules + 1, sizeof(*c->rules));
    c->rules[c->n_rules++] = rule;
    return 0;
}

static int read_alert(const struct source *s, unsigned i, const struct raw_alert *raw,
                      struct daemon_config *c)
{
    struct alert_rule rule = {.isolation = ISOLATION_NONE, .cause = CAUSE_UNKNOWN};
    char path[64];
    int r;

    STR_PRINTF(path, "alerts[%u]", i + 1);
    if (c->n_alerts == ALERT_RULES_MAX)
        return source_complain(s, path, "there are more than %u alerts", ALERT_RULES_MAX);
    if (!raw->v[alert_alert])
        return source_complain(s, path, "'alert' is missing: the name of the alert, or a pattern");
    STR_PRINTF(path, "alerts[%u].", i + 1);
    r = keys_read(s, path, alert_rows, alert_N, raw->v, &rule);
    if (r < 0)
        return r;
    STR_PRINTF(path, "alerts[%u]", i + 1);
    if (rule.isolation == ISOLATION_REPEATED)
        return source_complain(
            s, path, "isolation: an alert asks for none, exclude, drain, reset or reboot");
    if (rule.cause == CAUSE_NONE)
        return source_complain(s, path, "cause: say what is wrong with the node, or leave it out");
    c->alerts = xreallocarray(c->alerts, c->n_alerts + 1, sizeof(*c->alerts));
    c->alerts[c->n_alerts++] = rule;
    return 0;
}

/* The body: written here, in a file of its own, or, where the policy is known, left as it is. */
static int read_body(const struct source *s, const char *prefix, const struct raw_named *raw,
                     bool known, struct named_policy *p)
{
    char path[64];
    struct err e = {0};

    if (raw->v[named_file] && raw->policy)
        return source_complain(s, prefix, "has both 'file' and 'policy': one is enough");
    if (!raw->v[named_file] && !raw->policy)
        return known ? 0
                     : source_complain(s, prefix,
                                       "a new policy needs 'policy' (its keys) or "
                                       "'file' (where they stand)");
    STR_PRINTF(path, "%s.%s", prefix, raw->policy ? "policy." : "file");
    policy_default(&p->policy);
    if (raw->policy) {
        p->file[0] = '\0';
        return policy_form_read(s, path, raw->policy, &p->policy);
    }
    if (p->file[0] != '/')
        return source_complain(s, path, "'%s' is no absolute path", p->file);
    return policy_load(p->file, &p->policy, &e) < 0 ? source_complain(s, path, "%s", e.text) : 0;
}

static int read_named(const struct source *s, unsigned i, const struct raw_named *raw,
                      struct daemon_config *c)
{
    const char *name = raw->v[named_name];
    const struct named_policy *known = name ? daemon_config_policy(c, name) : NULL;
    struct named_policy p = known ? *known : (struct named_policy){0};
    char path[64], prefix[64];
    int r;

    STR_PRINTF(path, "policies[%u]", i + 1);
    STR_PRINTF(prefix, "%s.", path);
    if (!name)
        return source_complain(s, path, "'name' is missing");
    r = keys_read(s, prefix, named_rows, named_N, raw->v, &p);
    r = r < 0 ? r : read_body(s, path, raw, known != NULL, &p);
    if (r < 0)
        return r;
    STR_COPY(p.policy.name, p.name);
    if (known) {
        c->policies[known - c->policies] = p;
        return 0;
    }
    if (c->n_policies == POLICIES_MAX)
        return source_complain(s, path, "there are more than %u policies", POLICIES_MAX);
    c->policies = xreallocarray(c->policies, c->n_policies + 1, sizeof(*c->policies));
    c->policies[c->n_policies++] = p;
    return 0;
}

static int convert(const struct source *s, const struct raw_daemon *raw, struct daemon_config *c)
{
    struct err e = {0};
    char path[128];
    int r = read_parts(s, raw, c);

    for (unsigned i = 0; r == 0 && i < raw->rules_count; i++)
        r = read_rule(s, i, &raw->rules[i], c);
    for (unsigned i = 0; r == 0 && i < raw->alerts_count; i++)
        r = read_alert(s, i, &raw->alerts[i], c);
    for (unsigned i = 0; r == 0 && i < raw->policies_count; i++)
        r = read_named(s, i, &raw->policies[i], c);
    if (r < 0 || daemon_values_check(c, path, sizeof(path), &e) == 0)
        return r;
    return source_complain(s, path, "%s", e.text);
}

int daemon_config_add(struct daemon_config *c, const struct form_text *text, struct err *e)
{
    struct source s = {.yaml = *text, .err = e};
    void *raw = NULL;
    int r = form_load(text, &daemon_schema, &raw, e);

    if (r == 0 && raw) /* none: the text says nothing */
        r = convert(&s, raw, c);
    form_free(&daemon_schema, raw);
    return r;
}

bool daemon_config_is_meant(const struct form_text *text)
{
    unsigned ours = form_known_keys(text, daemon_fields);
    unsigned others = form_known_keys(text, policy_form_fields);

    return ours != others ? ours > others : strstr(text->name, "reknitd") != NULL;
}

/* ---- writing ---- */

static void write_keys(struct strbuf *out, const char *indent, const struct key *rows, size_t n,
                       const void *object)
{
    for (size_t i = 0; i < n; i++) {
        strbuf_adds(out, indent);
        key_write(out, &rows[i], object);
        strbuf_addc(out, '\n');
    }
}

static void write_command(struct strbuf *out, const char *key, const struct command *c)
{
    strbuf_addf(out, "%s: [", key);
    for (unsigned i = 0; i < c->n; i++) {
        strbuf_adds(out, i > 0 ? ", " : "");
        quoted_write(out, c->argv[i]);
    }
    strbuf_adds(out, "]\n");
}

/* "name:", and an entry a line, of what is said. */
static void write_list(struct strbuf *out, const char *name, const struct key *rows, size_t n_rows,
                       const void *list, unsigned n, size_t size)
{
    strbuf_addf(out, n > 0 ? "%s:\n" : "%s: []\n", name);
    for (unsigned i = 0; i < n; i++) {
        const char *entry = (const char *)list + i * size, *lead = "  - {";

        for (size_t k = 0; k < n_rows; k++)
            if (key_is_said(&rows[k], entry)) {
                strbuf_adds(out, lead);
                key_write(out, &rows[k], entry);
                lead = ", ";
            }
        strbuf_addf(out, "%s}\n", lead[0] == ' ' ? lead : "");
    }
}

static void write_policies(struct strbuf *out, const struct daemon_config *c)
{
    strbuf_adds(out, "policies:\n");
    for (unsigned i = 0; i < c->n_policies; i++) {
        const struct named_policy *p = &c->policies[i];

        strbuf_adds(out, "  - ");
        key_write(out, &named_rows[named_name], p);
        if (p->file[0])
            strbuf_addf(out, " # from %s", p->file);
        strbuf_addf(out, "\n    users: %s\n    policy:\n", p->users ? "true" : "false");
        policy_form_write(&p->policy, "      ", out);
    }
}

void daemon_config_format(const struct daemon_config *c, struct strbuf *out)
{
#define WRITE(part)                                                                                \
    strbuf_adds(out, #part ":\n");                                                                 \
    write_keys(out, "  ", part##_rows, part##_N, c)

    write_keys(out, "", top_rows, top_N, c);
    write_command(out, "fence", &c->fence);
    WRITE(adapter);
    write_command(out, "  command", &c->adapter.command);
    WRITE(api);
    WRITE(agents);
    WRITE(webhook);
    WRITE(brakes);
    WRITE(nodes);
    write_command(out, "  check", &c->nodes.check);
    WRITE(readers);
    WRITE(journal);
#undef WRITE
    write_list(out, "rules", rule_rows, rule_N, c->rules, c->n_rules, sizeof(*c->rules));
    write_list(out, "alerts", alert_rows, alert_N, c->alerts, c->n_alerts, sizeof(*c->alerts));
    write_policies(out, c);
}

uint64_t daemon_config_hash(const struct daemon_config *c)
{
    _cleanup_strbuf_ struct strbuf text = {0};

    daemon_config_format(c, &text);
    return hash_bytes(HASH_INIT, strbuf_str(&text), text.len);
}
