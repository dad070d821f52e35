/* SPDX-License-Identifier: Apache-2.0 */

/* Loads the catalogue. libcyaml turns a file into `struct raw_file` and complains about form;
 * what the words mean is checked here, so that a message can say which words there are. libcyaml
 * does not tell on which line a value stood: the line of an entry is found again by its id. The
 * strings of an entry stay in libcyaml's memory, owned by the catalogue. */

#include "extract/catalog.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/form.h"
#include "base/str.h"
#include "base/vec.h"
#include "extract/builtin.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX ((size_t)4 << 20)
#define FILES_MAX      256
#define ENTRIES_MAX    8192

struct raw_examples {
    char **match, **captures, **no_match;
    unsigned match_count, captures_count, no_match_count;
};

struct raw_signature {
    char *id, *layer, *role, *cause, *blame, *advice, *phase, *edge, *source, *clears;
    int *confidence;
    char *skipped, *hang, *straggler, *isolation;
    char **patterns, **fields, **yields_to, **hides;
    unsigned patterns_count, fields_count, yields_to_count, hides_count;
    struct raw_examples examples;
};

struct raw_xid {
    int code;
    char *name, *role, *cause, *blame, *advice, *isolation;
    int *confidence;
};

struct raw_file {
    struct raw_signature *signatures;
    unsigned signatures_count;
    struct raw_xid *xids;
    unsigned xids_count;
};

/* One file that was read: its text's owner, and where it came from. */
struct origin {
    char *name;
    unsigned rank; /* folders in order; a higher one may replace entries of a lower one */
    struct raw_file *raw;
};

struct catalog {
    VEC(struct origin) origins;
    VEC(struct entry) entries;
    VEC(struct xid_entry) xids;
    VEC(unsigned) xid_ranks; /* in parallel */
};

#define TEXT(name, field)                                                                          \
    CYAML_FIELD_STRING_PTR(name, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, S, field, 0,            \
                           CYAML_UNLIMITED)
#define TEXT_NEEDED(name, field)                                                                   \
    CYAML_FIELD_STRING_PTR(name, CYAML_FLAG_POINTER, S, field, 0, CYAML_UNLIMITED)
#define LIST(name, field)                                                                          \
    CYAML_FIELD_SEQUENCE(name, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, S, field, &text_schema,   \
                         0, 4096)

static const cyaml_schema_value_t text_schema = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, CYAML_UNLIMITED),
};

#define S struct raw_examples
static const cyaml_schema_field_t examples_fields[] = {
    LIST("match", match),
    LIST("captures", captures),
    LIST("no_match", no_match),
    CYAML_FIELD_END,
};
#undef S

#define S struct raw_signature
static const cyaml_schema_field_t signature_fields[] = {
    TEXT_NEEDED("id", id),
    TEXT("layer", layer),
    TEXT_NEEDED("role", role),
    TEXT("cause", cause),
    TEXT("blame", blame),
    TEXT("advice", advice),
    TEXT("phase", phase),
    TEXT("edge", edge),
    TEXT("source", source),
    TEXT("clears", clears),
    CYAML_FIELD_INT_PTR("confidence", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, S, confidence),
    TEXT("skipped", skipped),
    TEXT("hang", hang),
    TEXT("straggler", straggler),
    TEXT("isolation", isolation),
    LIST("patterns", patterns),
    LIST("fields", fields),
    LIST("yields_to", yields_to),
    LIST("hides", hides),
    CYAML_FIELD_MAPPING("examples", CYAML_FLAG_OPTIONAL, S, examples, examples_fields),
    CYAML_FIELD_END,
};
#undef S

#define S struct raw_xid
static const cyaml_schema_field_t xid_fields[] = {
    CYAML_FIELD_INT("code", CYAML_FLAG_DEFAULT, S, code),
    TEXT("name", name),
    TEXT_NEEDED("role", role),
    TEXT("cause", cause),
    TEXT("blame", blame),
    TEXT("advice", advice),
    TEXT("isolation", isolation),
    CYAML_FIELD_INT_PTR("confidence", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, S, confidence),
    CYAML_FIELD_END,
};
#undef S

static const cyaml_schema_value_t signature_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_signature, signature_fields),
};
static const cyaml_schema_value_t xid_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_xid, xid_fields),
};

static const cyaml_schema_field_t file_fields[] = {
    CYAML_FIELD_SEQUENCE("signatures", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw_file,
                         signatures, &signature_schema, 0, ENTRIES_MAX),
    CYAML_FIELD_SEQUENCE("xids", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw_file, xids,
                         &xid_schema, 0, ENTRIES_MAX),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t file_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_file, file_fields),
};

/* A place in the text of a file: the beginning of a line. */
struct cursor {
    const char *at, *end;
    unsigned line;
};

/* Whether `KEY: VALUE` stands in s[0..eol). */
static bool says(const char *s, const char *eol, const char *key, const char *value)
{
    size_t n = strlen(value);

    s = memmem(s, (size_t)(eol - s), key, strlen(key));
    if (!s)
        return false;
    for (s += strlen(key); s < eol && (*s == ' ' || *s == '"' || *s == '\''); s++)
        ;
    return (size_t)(eol - s) >= n && memcmp(s, value, n) == 0 &&
           (s + n == eol ||
            !(isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == '.' || s[n] == '-'));
}

/* The line on which `KEY: VALUE` stands, and moves behind it; 0 when it cannot be found. Entries
 * come in the order of their lines. */
static unsigned find_line(struct cursor *c, const char *key, const char *value)
{
    struct cursor next = *c;

    while (next.at < next.end) {
        const char *s = next.at, *eol = memchr(s, '\n', (size_t)(next.end - s));

        next.at = eol ? eol + 1 : next.end;
        next.line++;
        eol = eol ? eol : next.end;
        if (says(s, eol, key, value)) {
            *c = next;
            return next.line - 1;
        }
    }
    return 0;
}

/* Where a message about an entry points to. */
struct place {
    const char *file;
    unsigned line;
    const char *id;
    struct err *e;
};

__attribute__((format(printf, 2, 3))) static int complain(const struct place *p, const char *format,
                                                          ...)
{
    char text[400];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    return err_set(p->e, -EINVAL, "%s:%u: %s: %s", p->file, p->line, p->id, text);
}

/* Looks a word up; `name_of` lists the known ones for the message. */
static int parse_word(const struct place *p, const char *key, const char *word,
                      const char *(*name_of)(int), int fallback, int *ret)
{
    _cleanup_strbuf_ struct strbuf known = {0};
    size_t least = word ? strlen(word) / 3 + 1 : 0; /* all words are listed: near ones only */
    const char *like = NULL;

    if (!word) {
        *ret = fallback;
        return 0;
    }
    for (int i = 0; name_of(i); i++) {
        size_t d = str_distance(word, name_of(i));

        if (streq(name_of(i), word)) {
            *ret = i;
            return 0;
        }
        if (d < least) {
            least = d;
            like = name_of(i);
        }
        strbuf_addf(&known, "%s%s", i ? ", " : "", name_of(i));
    }
    if (like)
        strbuf_addf(&known, "; did you mean '%s'?", like);
    return complain(p, "%s '%s' is not one of %s", key, word, strbuf_str(&known));
}

#define WORDS(prefix, type)                                                                        \
    static const char *prefix##_word(int i)                                                        \
    {                                                                                              \
        return prefix##_name((type)i);                                                             \
    }
WORDS(layer, enum layer)
WORDS(role, enum role)
WORDS(cause, enum cause)
WORDS(blame, enum blame)
WORDS(advice, enum advice)
WORDS(phase, enum phase)
WORDS(edge, enum edge)
WORDS(isolation, enum isolation)

static const char *flag_word(int i)
{
    static const char *const words[] = {"false", "true"};

    return i < 2 ? words[i] : NULL;
}

/* What a line is worth that does not say so. */
static int32_t default_confidence(enum role role)
{
    switch (role) {
    case ROLE_ROOT:
        return 90;
    case ROLE_SYMPTOM:
        return 30;
    case ROLE_CONFIRM:
        return 20;
    default:
        return 0;
    }
}

static bool role_needs_cause(enum role role)
{
    return role == ROLE_ROOT || role == ROLE_SYMPTOM;
}

static int parse_common(const struct place *p, const struct raw_signature *raw, struct entry *e)
{
    int layer, role, cause, blame, advice, phase, edge, skipped, hang, straggler, r;

    if ((r = parse_word(p, "layer", raw->layer, layer_word, LAYER_JOB, &layer)) < 0 ||
        (r = parse_word(p, "role", raw->role, role_word, ROLE_NOISE, &role)) < 0 ||
        (r = parse_word(p, "cause", raw->cause, cause_word, CAUSE_NONE, &cause)) < 0 ||
        (r = parse_word(p, "blame", raw->blame, blame_word, BLAME_NONE, &blame)) < 0 ||
        (r = parse_word(p, "advice", raw->advice, advice_word, ADVICE_NONE, &advice)) < 0 ||
        (r = parse_word(p, "phase", raw->phase, phase_word, PHASE_STEADY, &phase)) < 0 ||
        (r = parse_word(p, "edge", raw->edge, edge_word, EDGE_POINT, &edge)) < 0 ||
        (r = parse_word(p, "skipped", raw->skipped, flag_word, 0, &skipped)) < 0 ||
        (r = parse_word(p, "hang", raw->hang, flag_word, 0, &hang)) < 0 ||
        (r = parse_word(p, "straggler", raw->straggler, flag_word, 0, &straggler)) < 0)
        return r;
    if (role_needs_cause((enum role)role) && cause == CAUSE_NONE)
        return complain(p, "role %s needs a cause", role_name((enum role)role));
    if (role == ROLE_PHASE && phase == PHASE_STEADY)
        return complain(p, "role phase needs `phase:`");
    if (hang && role != ROLE_ROOT && role != ROLE_SYMPTOM && role != ROLE_CONFIRM)
        return complain(p, "`hang:` belongs to root, symptom and confirm");
    if (straggler && (role != ROLE_CONFIRM || hang))
        return complain(p, "`straggler:` belongs to confirm, and not beside `hang:`");
    if ((raw->phase && role != ROLE_PHASE) || (skipped && role != ROLE_PROGRESS) ||
        ((raw->hides_count > 0 || raw->clears) && role != ROLE_NOISE) ||
        (raw->edge && role != ROLE_PHASE && role != ROLE_CHECKPOINT))
        return complain(p, "phase, edge, skipped, hides and clears each belong to other roles");
    if (raw->confidence && (*raw->confidence < 0 || *raw->confidence > 100))
        return complain(p, "confidence %d is not a percentage", *raw->confidence);
    e->layer = (enum layer)layer;
    e->role = (enum role)role;
    e->cause = (enum cause)cause;
    e->blame = (enum blame)blame;
    e->advice = (enum advice)advice;
    e->phase = (enum phase)phase;
    e->edge = (enum edge)edge;
    e->skipped = skipped != 0;
    e->hang = hang != 0;
    e->straggler = straggler != 0;
    e->clears = raw->clears ? raw->clears : "";
    e->confidence = raw->confidence ? *raw->confidence : default_confidence(e->role);
    return 0;
}

/* What a witness on the node tells of, who reads nothing but the kernel's log. */
static int parse_isolation(const struct place *p, const char *word, struct entry *e)
{
    int isolation, r;

    r = parse_word(p, "isolation", word, isolation_word, ISOLATION_INVALID, &isolation);
    if (r < 0)
        return r;
    e->isolation = (enum isolation)isolation;
    if (word && (e->layer != LAYER_KERNEL || e->role > ROLE_CONFIRM))
        return complain(p, "`isolation:` belongs to root, symptom, cascade and confirm of the "
                           "layer kernel");
    return 0;
}

static int check_id(const struct place *p)
{
    if (p->id[0] == '\0' || strlen(p->id) >= SIGNATURE_MAX)
        return complain(p, "an id has 1 to %d characters", SIGNATURE_MAX - 1);
    if (p->id[strspn(p->id, "abcdefghijklmnopqrstuvwxyz0123456789_.-")] != '\0')
        return complain(p, "an id has only a-z, 0-9, '_', '-' and '.'");
    return 0;
}

/* Puts the entry in, or in the place of one with the same id from an earlier folder. */
static int insert_entry(struct catalog *c, const struct place *p, const struct entry *e)
{
    struct entry *replaced;

    for (size_t i = 0; i < c->entries.n; i++) {
        if (!streq(c->entries.v[i].id, e->id))
            continue;
        if (c->entries.v[i].rank == e->rank)
            return complain(p, "the id is used already, at %s:%u", c->entries.v[i].file,
                            c->entries.v[i].line);
        replaced = xnew(struct entry);
        *replaced = c->entries.v[i];
        c->entries.v[i] = *e;
        c->entries.v[i].replaced = replaced;
        return 0;
    }
    if (c->entries.n >= ENTRIES_MAX)
        return complain(p, "there are more than %d entries", ENTRIES_MAX);
    *VEC_PUSH(&c->entries) = *e;
    return 0;
}

static int add_signature(struct catalog *c, const struct origin *o, const struct raw_signature *raw,
                         unsigned line, struct err *err)
{
    struct place p = {.file = o->name, .line = line, .id = raw->id, .e = err};
    struct entry e = {
        .patterns = {raw->patterns, raw->patterns_count},
        .fields = {raw->fields, raw->fields_count},
        .yields_to = {raw->yields_to, raw->yields_to_count},
        .hides = {raw->hides, raw->hides_count},
        .match = {raw->examples.match, raw->examples.match_count},
        .captures = {raw->examples.captures, raw->examples.captures_count},
        .no_match = {raw->examples.no_match, raw->examples.no_match_count},
        .source = raw->source ? raw->source : "",
        .file = o->name,
        .line = line,
        .rank = o->rank,
    };
    int r;

    if ((r = check_id(&p)) < 0 || (r = parse_common(&p, raw, &e)) < 0 ||
        (r = parse_isolation(&p, raw->isolation, &e)) < 0)
        return r;
    STR_COPY(e.id, raw->id);
    if (e.patterns.n == 0)
        return complain(&p, "there is no pattern");
    if (e.captures.n > e.match.n)
        return complain(&p, "there are more captures than lines that match");
    return insert_entry(c, &p, &e);
}

static int add_xid(struct catalog *c, const struct origin *o, const struct raw_xid *raw,
                   unsigned line, struct err *err)
{
    char id[32], xid_layer[] = "kernel";
    struct place p = {.file = o->name, .line = line, .id = id, .e = err};
    struct raw_signature as_signature = {
        .layer = xid_layer,
        .role = raw->role,
        .cause = raw->cause,
        .blame = raw->blame,
        .advice = raw->advice,
        .confidence = raw->confidence,
    };
    struct entry e = {0};
    struct xid_entry x;
    int r;

    snprintf(id, sizeof(id), "xid %d", raw->code);
    r = parse_common(&p, &as_signature, &e);
    if (r == 0)
        r = parse_isolation(&p, raw->isolation, &e);
    if (r < 0)
        return r;
    x = (struct xid_entry){.code = raw->code,
                           .role = e.role,
                           .cause = e.cause,
                           .blame = e.blame,
                           .advice = e.advice,
                           .confidence = e.confidence,
                           .isolation = e.isolation,
                           .name = raw->name ? raw->name : ""};
    for (size_t i = 0; i < c->xids.n; i++) {
        if (c->xids.v[i].code != x.code)
            continue;
        if (c->xid_ranks.v[i] == o->rank)
            return complain(&p, "the code is used already");
        c->xids.v[i] = x;
        c->xid_ranks.v[i] = o->rank;
        return 0;
    }
    *VEC_PUSH(&c->xids) = x;
    *VEC_PUSH(&c->xid_ranks) = o->rank;
    return 0;
}

/* The name of a file as messages show it. */
static char *printable(const char *name)
{
    size_t len = strlen(name), size = 3 * len + 1; /* a replacement character has three bytes */
    char *text = xmalloc(size);

    str_sanitize(text, size, name, len);
    return text;
}

static int add_text(struct catalog *c, const char *name, unsigned rank, const char *text,
                    size_t len, struct err *e)
{
    struct form_text yaml = {name, text, len};
    struct origin *o;
    const struct cursor begin = {text, text + len, 1};
    struct cursor cursor = begin;
    struct raw_file *raw;
    void *object = NULL;
    int r;

    if (c->origins.n >= FILES_MAX)
        return err_set(e, -E2BIG, "%s: there are more than %d catalogue files", name, FILES_MAX);
    r = form_load(&yaml, &file_schema, &object, e);
    if (r < 0)
        return r;
    raw = object;
    if (!raw)
        return 0; /* nothing but comments */
    o = VEC_PUSH(&c->origins);
    *o = (struct origin){.name = printable(name), .rank = rank, .raw = raw};
    for (unsigned i = 0; i < raw->signatures_count; i++) {
        unsigned line = find_line(&cursor, "id:", raw->signatures[i].id);

        r = add_signature(c, o, &raw->signatures[i], line, e);
        if (r < 0)
            return r;
    }
    cursor = begin;
    for (unsigned i = 0; i < raw->xids_count; i++) {
        char code[16];

        snprintf(code, sizeof(code), "%d", raw->xids[i].code);
        r = add_xid(c, o, &raw->xids[i], find_line(&cursor, "code:", code), e);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_file(struct catalog *c, const char *path, unsigned rank, struct err *e)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    int r = file_read(path, FILE_BYTES_MAX, &text, e);

    return r < 0 ? r : add_text(c, path, rank, strbuf_str(&text), text.len, e);
}

static int is_yaml(const struct dirent *d)
{
    return d->d_name[0] != '.' && str_endswith(d->d_name, ".yaml");
}

static int add_dir(struct catalog *c, const char *dir, unsigned rank, bool may_lack, struct err *e)
{
    struct dirent **list = NULL;
    int n = scandir(dir, &list, is_yaml, alphasort), r = 0;

    if (n < 0)
        return may_lack && errno == ENOENT
                   ? 0
                   : err_set(e, -errno, "catalogue folder %s: %s", dir, strerror(errno));
    for (int i = 0; i < n; i++) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", dir, list[i]->d_name);

        if (r == 0)
            r = add_file(c, path, rank, e);
        free(list[i]);
    }
    free(list);
    return r;
}

static int add_builtin(struct catalog *c, struct err *e)
{
    for (const struct builtin_file *f = builtin_files; f->name; f++) {
        int r = add_text(c, f->name, 0, f->text, f->len, e);

        if (r < 0)
            return r;
    }
    return 0;
}

/* Whether the folder was read already, under this name or another. */
static bool is_read(const char *const *dirs, size_t i)
{
    struct stat a, b;

    if (stat(dirs[i], &a) < 0)
        return false;
    for (size_t j = 0; j <= i; j++) {
        const char *other = j == i ? CATALOG_SITE_DIR : dirs[j];

        if (stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
            return true;
    }
    return false;
}

int catalog_load(const char *const *dirs, size_t n_dirs, struct catalog **ret, struct err *e)
{
    _cleanup_(catalog_freep) struct catalog *c = xnew(struct catalog);
    int r = add_builtin(c, e);

    if (r >= 0)
        r = add_dir(c, CATALOG_SITE_DIR, 1, true, e);
    for (size_t i = 0; i < n_dirs && r >= 0; i++)
        r = is_read(dirs, i) ? 0 : add_dir(c, dirs[i], (unsigned)i + 2, false, e);
    if (r < 0)
        return r;
    *ret = TAKE(c);
    return 0;
}

int catalog_load_text(const char *name, const char *text, size_t len, struct catalog **ret,
                      struct err *e)
{
    _cleanup_(catalog_freep) struct catalog *c = xnew(struct catalog);
    int r = add_text(c, name, 0, text, len, e);

    if (r < 0)
        return r;
    *ret = TAKE(c);
    return 0;
}

/* The last one of several that replaced each other holds those before it. */
static void free_replaced(struct entry *e)
{
    while (e) {
        struct entry *before = e->replaced;

        free(e);
        e = before;
    }
}

static bool is_used(const struct catalog *c, const struct origin *o)
{
    if (o->raw->xids_count > 0)
        return true;
    VEC_FOREACH (&c->entries, e)
        if (e->file == o->name)
            return true;
    return false;
}

void catalog_keep(struct catalog *c, enum layer layer)
{
    for (size_t i = c->entries.n; i-- > 0;) {
        struct entry *e = &c->entries.v[i];

        free_replaced(e->replaced); /* it may be of a file that goes */
        e->replaced = NULL;
        if (e->layer != layer)
            VEC_REMOVE(&c->entries, i);
    }
    for (size_t i = c->origins.n; i-- > 0;) {
        struct origin o = c->origins.v[i];

        if (is_used(c, &o))
            continue;
        form_free(&file_schema, o.raw);
        free(o.name);
        VEC_REMOVE(&c->origins, i);
    }
}

struct catalog *catalog_free(struct catalog *c)
{
    if (!c)
        return NULL;
    VEC_FOREACH (&c->entries, e)
        free_replaced(e->replaced);
    VEC_FOREACH (&c->origins, o) {
        form_free(&file_schema, o->raw);
        free(o->name);
    }
    VEC_DONE(&c->origins);
    VEC_DONE(&c->entries);
    VEC_DONE(&c->xids);
    VEC_DONE(&c->xid_ranks);
    free(c);
    return NULL;
}

size_t catalog_size(const struct catalog *c)
{
    return c->entries.n;
}

const struct entry *catalog_entry(const struct catalog *c, size_t i)
{
    assert(i < c->entries.n);
    return &c->entries.v[i];
}

const struct entry *catalog_find(const struct catalog *c, const char *id)
{
    VEC_FOREACH (&c->entries, e)
        if (streq(e->id, id))
            return e;
    return NULL;
}

const struct xid_entry *catalog_xid(const struct catalog *c, int64_t code)
{
    VEC_FOREACH (&c->xids, x)
        if (x->code == code)
            return x;
    return NULL;
}

bool entry_tells_of_failure(const struct entry *e)
{
    return e->role == ROLE_ROOT || e->role == ROLE_SYMPTOM || e->role == ROLE_CASCADE ||
           e->role == ROLE_CONFIRM || e->role == ROLE_TEARDOWN;
}

static bool is_last_resort(const struct entry *e)
{
    for (unsigned i = 0; i < e->yields_to.n; i++)
        if (streq(e->yields_to.v[i], "*"))
            return true;
    return false;
}

/* `pattern` is an id, a family ("nccl.*") or "*" for every failure entry. */
static bool pattern_covers(const char *pattern, const struct entry *e)
{
    if (streq(pattern, "*"))
        return entry_tells_of_failure(e);
    return signature_matches(pattern, e->id);
}

bool entry_hides(const struct entry *e, const struct entry *other)
{
    for (unsigned i = 0; i < e->hides.n; i++)
        if (pattern_covers(e->hides.v[i], other))
            return true;
    return false;
}

bool entry_yields_to(const struct entry *e, const struct entry *other)
{
    bool last_resort = is_last_resort(other);

    for (unsigned i = 0; i < e->yields_to.n; i++) {
        const char *pattern = e->yields_to.v[i];

        if (pattern_covers(pattern, other) && (!last_resort || streq(pattern, other->id)))
            return true;
    }
    return false;
}
