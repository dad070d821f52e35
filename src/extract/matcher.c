/* SPDX-License-Identifier: Apache-2.0 */

#include "extract/matcher.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/vec.h"

#include <assert.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

static const char *const field_names[FIELD_MAX] = {
    [FIELD_RANK] = "rank",
    [FIELD_LOCAL_RANK] = "local_rank",
    [FIELD_NODE] = "node",
    [FIELD_DEVICE] = "device",
    [FIELD_PEER] = "peer",
    [FIELD_XID] = "xid",
    [FIELD_STEP] = "step",
    [FIELD_TOTAL] = "total",
    [FIELD_SECONDS] = "seconds",
    [FIELD_MILLISECONDS] = "milliseconds",
    [FIELD_LOSS] = "loss",
    [FIELD_GRAD_NORM] = "grad_norm",
    [FIELD_RATE] = "rate",
    [FIELD_SEQ] = "seq",
    [FIELD_OP] = "op",
    [FIELD_NUMEL] = "numel",
    [FIELD_GROUP] = "group",
    [FIELD_ENQUEUED] = "enqueued",
    [FIELD_COMPLETED] = "completed",
    [FIELD_PID] = "pid",
    [FIELD_CODE] = "code",
    [FIELD_SIGNAL] = "signal",
};
DEFINE_NAMES(field, enum field, field_names);

/* How much backtracking one match may cost; a pattern that needs more does not match. */
#define MATCH_LIMIT 200000

#define GROUPS_MAX 32

struct group {
    enum field field;
    uint32_t number;
};

/* One expression of an entry: a pattern, or one of its `fields`. */
struct expression {
    unsigned entry;
    bool is_field;
    bool jit_tried;
    pcre2_code *code;
    VEC(struct group) groups;
};

struct matcher {
    const struct catalog *catalog;
    VEC(struct expression) expressions; /* of an entry: its patterns, then its fields */
    pcre2_match_data *match;
    pcre2_match_context *context;
};

/* Finds what the named groups are; several groups may have one name. */
static int read_groups(struct expression *x, const struct entry *entry, const char *text,
                       struct err *e)
{
    uint32_t n = 0, size = 0;
    PCRE2_SPTR row = NULL;

    pcre2_pattern_info(x->code, PCRE2_INFO_NAMECOUNT, &n);
    pcre2_pattern_info(x->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
    pcre2_pattern_info(x->code, PCRE2_INFO_NAMETABLE, &row);
    for (uint32_t i = 0; i < n; i++, row += size) {
        enum field field = field_from_name((const char *)row + 2);

        if (field == FIELD_INVALID)
            return err_set(e, -EINVAL, "%s:%u: %s: '%s' in pattern '%s' is not the name of a field",
                           entry->file, entry->line, entry->id, (const char *)row + 2, text);
        *VEC_PUSH(&x->groups) = (struct group){field, (uint32_t)row[0] << 8 | row[1]};
    }
    return 0;
}

static int add_expression(struct matcher *m, unsigned index, const char *text, bool is_field,
                          struct err *e)
{
    const struct entry *entry = catalog_entry(m->catalog, index);
    struct expression *x = VEC_PUSH(&m->expressions);
    PCRE2_UCHAR message[200];
    PCRE2_SIZE at;
    int code;

    x->entry = index;
    x->is_field = is_field;
    x->code =
        pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                      PCRE2_DUPNAMES | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF, &code, &at, NULL);
    if (!x->code) {
        pcre2_get_error_message(code, message, sizeof(message));
        return err_set(e, -EINVAL, "%s:%u: %s: pattern '%s', at character %zu: %s", entry->file,
                       entry->line, entry->id, text, at, (const char *)message);
    }
    return read_groups(x, entry, text, e);
}

int matcher_new(const struct catalog *c, struct matcher **ret, struct err *e)
{
    _cleanup_(matcher_freep) struct matcher *m = xnew(struct matcher);

    m->catalog = c;
    for (unsigned i = 0; i < catalog_size(c); i++) {
        const struct entry *entry = catalog_entry(c, i);
        int r = 0;

        for (unsigned j = 0; j < entry->patterns.n && r == 0; j++)
            r = add_expression(m, i, entry->patterns.v[j], false, e);
        for (unsigned j = 0; j < entry->fields.n && r == 0; j++)
            r = add_expression(m, i, entry->fields.v[j], true, e);
        if (r < 0)
            return r;
    }
    m->match = pcre2_match_data_create(GROUPS_MAX, NULL);
    m->context = pcre2_match_context_create(NULL);
    if (!m->match || !m->context)
        return err_set(e, -ENOMEM, "PCRE2 does not start");
    pcre2_set_match_limit(m->context, MATCH_LIMIT);
    *ret = TAKE(m);
    return 0;
}

struct matcher *matcher_free(struct matcher *m)
{
    if (!m)
        return NULL;
    pcre2_match_context_free(m->context);
    pcre2_match_data_free(m->match);
    VEC_FOREACH (&m->expressions, x) {
        pcre2_code_free(x->code);
        VEC_DONE(&x->groups);
    }
    VEC_DONE(&m->expressions);
    free(m);
    return NULL;
}

const struct catalog *matcher_catalog(const struct matcher *m)
{
    return m->catalog;
}

static bool run_expression(struct matcher *m, struct expression *x, const char *line, size_t len)
{
    if (!x->jit_tried) {
        /* Only expressions that are used pay for it; without JIT PCRE2 interprets. */
        pcre2_jit_compile(x->code, PCRE2_JIT_COMPLETE);
        x->jit_tried = true;
    }
    return pcre2_match(x->code, (PCRE2_SPTR)line, len, 0, 0, m->match, m->context) >= 0;
}

static void take_captures(struct matcher *m, const struct expression *x, const char *line,
                          struct hit *hit)
{
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(m->match);

    VEC_FOREACH (&x->groups, g) {
        struct capture *c = &hit->fields[g->field];

        if (c->s || g->number >= GROUPS_MAX || at[2 * g->number] == PCRE2_UNSET)
            continue;
        c->s = line + at[2 * g->number];
        c->len = at[2 * g->number + 1] - at[2 * g->number];
    }
}

static void settle_hides(struct hit *hits, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (i != j && !hits[j].dropped_by && !hits[i].dropped_by &&
                entry_hides(hits[j].entry, hits[i].entry))
                hits[i].dropped_by = hits[j].entry;
}

/* Decides about hit i once all that it yields to are decided; false: not yet. */
static bool settle_one(struct hit *hits, const bool *decided, size_t n, size_t i)
{
    const struct entry *by = NULL;

    for (size_t j = 0; j < n; j++) {
        if (i == j || hits[j].dropped_by || !entry_yields_to(hits[i].entry, hits[j].entry))
            continue;
        if (!decided[j])
            return false;
        by = by ? by : hits[j].entry;
    }
    hits[i].dropped_by = by;
    return true;
}

/* Lets hides and yields_to speak: an entry that is itself dropped drops nothing. Entries that
 * yield to each other in a circle all stay. */
static void settle(struct hit *hits, size_t n)
{
    bool decided[HITS_MAX] = {false}, again = true;

    assert(n <= HITS_MAX);
    settle_hides(hits, n);
    for (size_t i = 0; i < n; i++)
        decided[i] = hits[i].dropped_by;
    while (again) {
        again = false;
        for (size_t i = 0; i < n; i++) {
            if (decided[i])
                continue;
            decided[i] = settle_one(hits, decided, n, i);
            again |= decided[i];
        }
    }
}

size_t matcher_line(struct matcher *m, const char *line, size_t len, struct hit hits[HITS_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < m->expressions.n && n < HITS_MAX; i++) {
        struct expression *x = &m->expressions.v[i];
        const PCRE2_SIZE *at = pcre2_get_ovector_pointer(m->match);
        const struct entry *entry = catalog_entry(m->catalog, x->entry);
        bool is_hit = n > 0 && hits[n - 1].entry == entry;

        if (is_hit != x->is_field || !run_expression(m, x, line, len))
            continue;
        if (!is_hit)
            hits[n++] = (struct hit){.entry = entry, .start = at[0], .end = at[1]};
        take_captures(m, x, line, &hits[n - 1]);
    }
    settle(hits, n);
    return n;
}
