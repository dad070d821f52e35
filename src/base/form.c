/* SPDX-License-Identifier: Apache-2.0 */

/* libcyaml tells in its log what is wrong, in the words of its own workings, then where, innermost
 * level first:
 *
 *   Load: Unexpected key: enable
 *   Load: Backtrace:
 *     in mapping (line: 2, column: 3)
 *     in mapping field 'hang' (line: 2, column: 3)
 *
 * From the levels follows the place in the schema, and from that which keys there are. An unknown
 * key has the line of the mapping around it; where it stands itself is found by walking the text,
 * which is enough for a message. For what is no YAML at all libyaml is asked itself: it knows the
 * line. */

#include "base/form.h"

#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define LEVELS_MAX 8
#define NAME_LEN   64

struct complaint {
    char what[256];
    unsigned line; /* of the innermost level, 0 = not told */
    unsigned n_levels;
    char levels[LEVELS_MAX][NAME_LEN]; /* innermost first: names of fields, "[2]" of entries */
};

/* ---- where a key stands ---- */

static bool is_key_at(const struct form_text *t, size_t i, const char *key, size_t n)
{
    if (t->len - i <= n || memcmp(t->text + i, key, n) != 0)
        return false;
    if (i > 0 && !strchr(" \t\n\r{,\"'", t->text[i - 1]))
        return false;
    for (i += n; i < t->len && strchr(" \"'", t->text[i]); i++)
        ;
    return i < t->len && t->text[i] == ':';
}

/* From `from` on and outside of comments; t->len: nowhere. */
static size_t find_key(const struct form_text *t, size_t from, const char *key, size_t n)
{
    bool comment = false;

    for (size_t i = from; i < t->len; i++) {
        if (t->text[i] == '\n')
            comment = false;
        else if (t->text[i] == '#')
            comment = true;
        else if (!comment && is_key_at(t, i, key, n))
            return i;
    }
    return t->len;
}

static unsigned line_at(const struct form_text *t, size_t at)
{
    unsigned line = 1;

    for (size_t i = 0; i < at; i++)
        line += t->text[i] == '\n';
    return line;
}

static size_t begin_of_line(const struct form_text *t, unsigned line)
{
    size_t at = 0;

    for (unsigned l = 1; l < line && at < t->len; at++)
        l += t->text[at] == '\n';
    return at;
}

static size_t next_line(const struct form_text *t, size_t at)
{
    const char *end = at < t->len ? memchr(t->text + at, '\n', t->len - at) : NULL;

    return end ? (size_t)(end - t->text) + 1 : t->len;
}

/* The n-th entry of the list whose key stands at `key`, if it has a line of its own ("- ..."); else
 * the key's place. */
static size_t find_entry(const struct form_text *t, size_t key, unsigned long n)
{
    size_t indent = t->len;

    for (size_t at = next_line(t, key); at < t->len; at = next_line(t, at)) {
        size_t first = at;

        while (first < t->len && t->text[first] == ' ')
            first++;
        if (first == t->len || strchr("\r\n#", t->text[first]))
            continue;
        if (indent == t->len)
            indent = first - at;
        if (first - at < indent || (first - at == indent && t->text[first] != '-'))
            break;
        if (first - at == indent && --n == 0)
            return first;
    }
    return key;
}

unsigned form_line_of(const struct form_text *t, const char *path)
{
    size_t at = 0;

    while (*path) {
        size_t n = strcspn(path, ".["), found = find_key(t, at, path, n);

        if (found == t->len)
            break;
        at = found;
        path += n;
        if (*path == '[') {
            at = find_entry(t, at, strtoul(path + 1, NULL, 10));
            path += strcspn(path, ".");
        }
        path += *path == '.';
    }
    return line_at(t, at);
}

/* ---- what libcyaml says ---- */

/* Keeps what stands between the quotes of "in mapping field 'NAME' (line: ..." */
static void note_level(struct complaint *c, const char *text, bool is_entry)
{
    const char *from = strchr(text, '\''), *to = strrchr(text, '\'');
    char name[NAME_LEN - 3];

    if (c->n_levels == LEVELS_MAX || !from || to == from)
        return;
    str_copy_n(name, sizeof(name), from + 1, (size_t)(to - from - 1));
    STR_PRINTF(c->levels[c->n_levels], is_entry ? "[%s]" : "%s", name);
    c->n_levels++;
}

__attribute__((format(printf, 3, 0))) static void note(cyaml_log_t level, void *ctx,
                                                       const char *format, va_list args)
{
    struct complaint *c = ctx;
    char text[sizeof(c->what)];
    const char *line;

    (void)level;
    vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = '\0';
    if (str_startswith(text, "Load: ")) {
        if (!*c->what && !streq(text, "Load: Backtrace:"))
            STR_COPY(c->what, text + 6);
        return;
    }
    line = strstr(text, "(line: ");
    if (line && c->line == 0)
        c->line = (unsigned)strtoul(line + 7, NULL, 10);
    if (str_startswith(text, "  in mapping field "))
        note_level(c, text, false);
    else if (str_startswith(text, "  in sequence entry "))
        note_level(c, text, true);
}

static cyaml_config_t config_for(struct complaint *c)
{
    return (cyaml_config_t){
        .log_fn = note,
        .log_ctx = c,
        .mem_fn = cyaml_mem,
        .log_level = CYAML_LOG_ERROR,
        .flags = CYAML_CFG_NO_ALIAS,
    };
}

/* ---- in other words ---- */

static const cyaml_schema_value_t *field_value(const cyaml_schema_field_t *fields, const char *key)
{
    for (const cyaml_schema_field_t *f = fields; f->key; f++)
        if (streq(f->key, key))
            return &f->value;
    return NULL;
}

/* The part of the schema that the levels lead to, NULL = nowhere. */
static const cyaml_schema_value_t *walk(const cyaml_schema_value_t *at, const struct complaint *c)
{
    for (unsigned i = c->n_levels; at && i-- > 0;) {
        if (c->levels[i][0] == '[')
            at = at->type == CYAML_SEQUENCE ? at->sequence.entry : NULL;
        else
            at = at->type == CYAML_MAPPING ? field_value(at->mapping.fields, c->levels[i]) : NULL;
    }
    return at;
}

/* "signatures[2].examples: ", "" at the top; without the innermost `from` levels. */
static void add_path(struct strbuf *b, const struct complaint *c, unsigned from)
{
    for (unsigned i = c->n_levels; i-- > from;)
        strbuf_addf(b, "%s%s", c->levels[i][0] == '[' || i + 1 == c->n_levels ? "" : ".",
                    c->levels[i]);
    if (c->n_levels > from)
        strbuf_adds(b, ": ");
}

/* Of all keys the one that is most like it, NULL = none is. */
static const char *nearest(const cyaml_schema_field_t *fields, const char *key)
{
    size_t least = str_tolerance(key) + 1;
    const char *best = NULL;

    for (const cyaml_schema_field_t *f = fields; f->key; f++) {
        size_t d = str_distance(key, f->key);

        if (d < least) {
            least = d;
            best = f->key;
        }
    }
    return best;
}

static void tell_unknown_key(struct strbuf *b, const cyaml_schema_value_t *at, const char *key)
{
    const char *sep = "", *like;

    strbuf_addf(b, "there is no key '%s'", key);
    if (!at || at->type != CYAML_MAPPING)
        return;
    like = nearest(at->mapping.fields, key);
    if (like)
        strbuf_addf(b, "; did you mean '%s'?", like);
    strbuf_adds(b, like ? " Keys: " : "; keys: ");
    for (const cyaml_schema_field_t *f = at->mapping.fields; f->key; f++, sep = ", ")
        strbuf_addf(b, "%s%s", sep, f->key);
}

static const char *kind_of_value(const char *libcyaml)
{
    static const struct {
        const char *theirs, *ours;
    } words[] = {
        {"MAPPING", "keys with values (key: value)"},
        {"SEQUENCE", "a list (- item)"},
        {"ALIAS", "an alias (*name)"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_startswith(libcyaml, words[i].theirs))
            return words[i].ours;
    return "a single value";
}

/* "Expecting STRING, got event: SEQUENCE_START" */
static void tell_wrong_kind(struct strbuf *b, const char *expecting)
{
    static const char got[] = "got event: ";
    const char *at = strstr(expecting, got);

    strbuf_addf(b, "%swants %s, not %s", b->len == 0 ? "the file " : "", kind_of_value(expecting),
                kind_of_value(at ? at + sizeof(got) - 1 : ""));
}

/* Behind `prefix` of what libcyaml says, NULL = it says something else. */
static const char *said(const struct complaint *c, const char *prefix)
{
    return str_startswith(c->what, prefix) ? c->what + strlen(prefix) : NULL;
}

static void tell(struct strbuf *b, const struct complaint *c, const cyaml_schema_value_t *schema,
                 cyaml_err_t error)
{
    const char *s;

    /* what is missing belongs to the mapping around the field that was read last */
    add_path(b, c, said(c, "Missing ") && c->n_levels > 0 && c->levels[0][0] != '[' ? 1 : 0);
    if ((s = said(c, "Unexpected key: ")))
        tell_unknown_key(b, walk(schema, c), s);
    else if ((s = said(c, "Missing required mapping field: ")))
        strbuf_addf(b, "'%s' is missing", s);
    else if (said(c, "Mapping field already seen: "))
        strbuf_adds(b, "is given twice");
    else if ((s = said(c, "Expecting ")))
        tell_wrong_kind(b, s);
    else if ((s = said(c, "Invalid INT value: ")) || (s = said(c, "Invalid UINT value: ")))
        strbuf_addf(b, "%s is no whole number, or too large", s);
    else if ((s = said(c, "STRING length > ")))
        strbuf_addf(b, "longer than %.*s bytes", (int)strcspn(s, ":"), s);
    else if ((s = said(c, "Excessive entries (")))
        strbuf_addf(b, "more than %.*s entries", (int)strcspn(s, " "), s);
    else if (error == CYAML_ERR_ALIAS)
        strbuf_adds(b, "aliases (*name) are not understood: write the value out");
    else
        strbuf_adds(b, "is not understood");
}

/* ---- what is no YAML ---- */

static const char *plain_words(const char *problem)
{
    static const struct {
        const char *theirs, *ours;
    } words[] = {
        {"cannot start any token",
         "a character stands here that cannot begin anything, such as a tab "
         "or %: YAML is indented with blanks"},
        {"mapping values are not allowed",
         "a ':' too many, or a line that is indented more than those it belongs to"},
        {"did not find expected key", "a line that is indented otherwise than those it belongs to"},
        {"expected ',' or '", "a bracket that was opened is not closed, or a comma is missing"},
        {"simple key", "a ':' is missing behind a key"},
        {"end of stream", "a quote that was opened is not closed"},
        {"incompatible YAML document", "another version of YAML than 1.1 is demanded"},
    };

    for (size_t i = 0; problem && i < ARRAY_SIZE(words); i++)
        if (strstr(problem, words[i].theirs))
            return words[i].ours;
    return problem ? problem : "cannot be read";
}

/* Where the parser itself gets stuck. */
static int tell_syntax(const struct form_text *t, struct err *e)
{
    yaml_parser_t p;
    yaml_event_t event;
    bool more = true;
    int r;

    if (!yaml_parser_initialize(&p))
        return err_set(e, -ENOMEM, "%s: cannot be read", t->name);
    yaml_parser_set_input_string(&p, (const unsigned char *)t->text, t->len);
    while (more && yaml_parser_parse(&p, &event)) {
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    if (p.error == YAML_READER_ERROR)
        r = err_set(e, -EINVAL, "%s:%u: is no text in UTF-8", t->name,
                    line_at(t, p.problem_offset < t->len ? p.problem_offset : t->len));
    else
        r = err_set(e, -EINVAL, "%s:%zu: is no YAML: %s", t->name, p.problem_mark.line + 1,
                    plain_words(p.problem));
    yaml_parser_delete(&p);
    return r;
}

/* ---- which form ---- */

struct key_count {
    const cyaml_schema_field_t *fields;
    unsigned n, depth;
    bool is_value; /* of the mapping at the top, the next node */
};

static void count_key(struct key_count *c, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        c->depth++;
        return;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        c->depth--;
        break;
    case YAML_SCALAR_EVENT:
        if (c->depth == 1 && !c->is_value)
            c->n += field_value(c->fields, (const char *)e->data.scalar.value) != NULL;
        break;
    case YAML_ALIAS_EVENT:
        break;
    default:
        return;
    }
    if (c->depth == 1)
        c->is_value = !c->is_value;
}

unsigned form_known_keys(const struct form_text *t, const cyaml_schema_field_t *fields)
{
    struct key_count c = {.fields = fields};
    yaml_parser_t p;
    yaml_event_t event;
    bool more = true;

    if (!yaml_parser_initialize(&p))
        return 0;
    yaml_parser_set_input_string(&p, (const unsigned char *)t->text, t->len);
    while (more && yaml_parser_parse(&p, &event)) {
        more = event.type != YAML_DOCUMENT_END_EVENT && event.type != YAML_STREAM_END_EVENT;
        count_key(&c, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&p);
    return c.n;
}

/* ---- loading ---- */

/* For a key that it does not know, libcyaml names the place of the mapping around it; for one that
 * comes again, that of the first. */
static unsigned complaint_line(const struct form_text *t, const struct complaint *c)
{
    const char *unknown = said(c, "Unexpected key: ");
    const char *again = said(c, "Mapping field already seen: "), *key = unknown ? unknown : again;
    size_t n = key ? strlen(key) : 0;
    size_t at = key ? find_key(t, begin_of_line(t, c->line), key, n) : t->len;

    if (again && at < t->len)
        at = find_key(t, at + n, key, n);
    if (at < t->len)
        return line_at(t, at);
    return c->line > 0 ? c->line : 1;
}

/* libcyaml reads the first document of several and is silent about the others. Where the second
 * begins; t->len = there is none. */
static size_t second_document(const struct form_text *t)
{
    bool content = false;

    for (size_t at = 0; at < t->len;) {
        const char *line = t->text + at, *end = memchr(line, '\n', t->len - at);
        size_t n = end ? (size_t)(end - line) : t->len - at;

        if (n >= 3 && memcmp(line, "---", 3) == 0 && (n == 3 || strchr(" \t\r", line[3]))) {
            if (content)
                return at;
            content = n > 4;
        } else {
            content |= n > 0 && !strchr("#%\r", line[0]);
        }
        at += n + 1;
    }
    return t->len;
}

void form_free(const cyaml_schema_value_t *schema, void *object)
{
    struct complaint c = {0};
    cyaml_config_t config = config_for(&c);

    cyaml_free(&config, schema, object, 0);
}

int form_load(const struct form_text *t, const cyaml_schema_value_t *schema, void **ret,
              struct err *e)
{
    struct complaint c = {0};
    cyaml_config_t config = config_for(&c);
    _cleanup_strbuf_ struct strbuf b = {0};
    cyaml_err_t error = cyaml_load_data((const uint8_t *)t->text, t->len, &config, schema,
                                        (cyaml_data_t **)ret, NULL);
    size_t at;

    if (error == CYAML_OK && (at = second_document(t)) < t->len) {
        form_free(schema, *ret);
        *ret = NULL;
        return err_set(e, -EINVAL, "%s:%u: a second document begins ('---'): there may be only one",
                       t->name, line_at(t, at));
    }
    if (error == CYAML_OK)
        return 0;
    *ret = NULL;
    if (error == CYAML_ERR_LIBYAML_PARSER)
        return tell_syntax(t, e);
    tell(&b, &c, schema, error);
    return err_set(e, -EINVAL, "%s:%u: %s", t->name, complaint_line(t, &c), strbuf_str(&b));
}
