/* SPDX-License-Identifier: Apache-2.0 */

/* An example passes through the same cleaning and matching as a line of a log.
 *
 * An entry of an earlier folder agreed with its examples before those of later folders came, and
 * its author cannot know them. So what is wrong with its example is told of the later entry that
 * stands on that line, or whose predecessor did. The latter is a remark and no fault: that other
 * entries speak where the replaced one did may be just what was wanted. */

#include "extract/check.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/vec.h"
#include "extract/facts.h"
#include "extract/kernel_line.h"
#include "extract/line.h"
#include "extract/pattern.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define INTRUSIONS_SHOWN 3

/* One entry that speaks on lines of others, or takes them: one that is too general does so on
 * hundreds, and none of those is at fault. */
struct intrusion {
    const struct entry *by;
    bool indirect; /* it is others that speak or fall silent there, because of it */
    size_t n;
    const char *last; /* example that was counted */
    struct {
        const struct entry *whose;
        const char *line;
    } shown[INTRUSIONS_SHOWN];
};

struct check {
    struct matcher *m;
    check_report_fn report;
    void *ctx;
    size_t faults;
    const struct entry *entry; /* being tested */
    VEC(struct intrusion) intrusions;
    const char *example;
    char *clean;      /* of the example; the hits point into it */
    struct line line; /* likewise */
    size_t n;
    struct line_hit hits[LINE_HITS_MAX];
};

__attribute__((format(printf, 2, 3))) static void fault(struct check *k, const char *format, ...)
{
    char text[4096];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    k->faults++;
    k->report(k->ctx, k->entry, text);
}

static void count_example(struct check *k, const struct entry *by, bool indirect)
{
    struct intrusion *i = NULL;

    VEC_FOREACH (&k->intrusions, known)
        if (known->by == by && known->indirect == indirect)
            i = known;
    if (!i)
        i = VEC_PUSH(&k->intrusions);
    if (i->last == k->example)
        return;
    i->by = by;
    i->indirect = indirect;
    i->last = k->example;
    if (i->n < INTRUSIONS_SHOWN) {
        i->shown[i->n].whose = k->entry;
        i->shown[i->n].line = k->example;
    }
    i->n++;
}

static void intrude(struct check *k, const struct entry *by)
{
    count_example(k, by, false);
}

static void change(struct check *k, const struct entry *by)
{
    count_example(k, by, true);
}

static void add_shown(const struct intrusion *i, struct strbuf *b)
{
    size_t shown = i->n < INTRUSIONS_SHOWN ? i->n : INTRUSIONS_SHOWN;

    for (size_t j = 0; j < shown; j++)
        strbuf_addf(b, "\n  %s (%s:%u): '%s'", i->shown[j].whose->id, i->shown[j].whose->file,
                    i->shown[j].whose->line, i->shown[j].line);
    if (i->n > shown)
        strbuf_addf(b, "\n  and %zu more", i->n - shown);
}

static void report_intrusion(struct check *k, const struct intrusion *i)
{
    _cleanup_strbuf_ struct strbuf b = {0};

    strbuf_addf(&b, "%s %zu example%s of other entries: narrow its patterns, or let %s",
                i->by->role == ROLE_NOISE ? "hides" : "is a root of another cause on", i->n,
                i->n == 1 ? "" : "s",
                i->by->role == ROLE_NOISE ? "it hide less" : "one yield to the other");
    add_shown(i, &b);
    k->entry = i->by;
    fault(k, "%s", strbuf_str(&b));
}

static void report_change(struct check *k, const struct intrusion *i)
{
    _cleanup_strbuf_ struct strbuf b = {0};

    strbuf_addf(&b, "changes who speaks on %zu example%s of other entries%s", i->n,
                i->n == 1 ? "" : "s", i->by->replaced ? " (no fault, if that is meant)" : "");
    add_shown(i, &b);
    k->faults += !i->by->replaced;
    k->report(k->ctx, i->by, strbuf_str(&b));
}

static const struct line_hit *hit_of(const struct check *k, const struct entry *e)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->hits[i].entry == e)
            return &k->hits[i];
    return NULL;
}

/* "name=value" pairs, a value ends at the blank before the next "word=". */
static void check_captures(struct check *k, const struct line_hit *hit, const char *want)
{
    _cleanup_(freep) char *copy = xstrdup(want);
    char *save = NULL;

    for (char *p = strtok_r(copy, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
        char *value = strchr(p, '=');
        char got[256] = "", device[DEVICE_NAME_LEN];
        enum field field;

        if (!value) {
            fault(k, "captures: '%s' is not name=value", p);
            continue;
        }
        *value++ = '\0';
        field = field_from_name(p);
        if (field == FIELD_INVALID) {
            fault(k, "captures: there is no field '%s'", p);
            continue;
        }
        if (hit->fields[field].s)
            str_copy_n(got, sizeof(got), hit->fields[field].s, hit->fields[field].len);
        if (streq(got, value) || (field == FIELD_DEVICE && facts_device(got, strlen(got), device) &&
                                  streq(device, value)))
            continue;
        fault(k, "'%s' gives %s='%s', not '%s'", k->example, p, got, value);
    }
}

static bool matches(const struct entry *e, const struct line *line)
{
    struct pattern_space *space = pattern_space_new();
    bool found = false;

    for (unsigned i = 0; i < e->patterns.n && !found; i++) {
        _cleanup_(pattern_freep) struct pattern *p = NULL;
        struct err err = {0};
        size_t start, end;

        if (pattern_new(e->patterns.v[i], &p, &err) == 0)
            found = pattern_match(p, space, line->text, line->len, 0, true, &start, &end);
    }
    pattern_space_free(space);
    return found;
}

/* The entry of a folder after `rank` that has to do with the present example, NULL = none. */
static const struct entry *later_one(const struct check *k, unsigned rank)
{
    const struct catalog *c = matcher_catalog(k->m);

    for (size_t i = 0; i < catalog_size(c); i++) {
        const struct entry *e = catalog_entry(c, i);

        if (e->rank <= rank)
            continue;
        if (hit_of(k, e))
            return e;
        for (const struct entry *old = e->replaced; old; old = old->replaced)
            if (matches(old, &k->line))
                return e;
    }
    return NULL;
}

static bool speaks_otherwise(const struct entry *own, const struct entry *other)
{
    return other != own && other->role == ROLE_ROOT && other->cause != own->cause;
}

/* Another entry drops the one being tested, on an example of the latter. */
static void lose_example(struct check *k, const struct entry *to)
{
    const struct entry *later = later_one(k, k->entry->rank);

    if (to->rank > k->entry->rank)
        intrude(k, to);
    else if (later)
        change(k, later);
    else
        fault(k, "loses its example '%s' to %s", k->example, to->id);
}

static void check_speaks(struct check *k, const struct line_hit *own)
{
    switch (hit_silence(own, false)) {
    case SILENCE_NONE:
        break;
    case SILENCE_DROPPED:
        lose_example(k, own->dropped_by);
        break;
    case SILENCE_STANCE:
        fault(k, "is silent on its example '%s', which %s", k->example, stance_name(own->stance));
        break;
    case SILENCE_ALIKE:
        fault(k, "is silent on its example '%s': what it compares differs too little", k->example);
        break;
    }
}

/* What acts on a node must be told apart from what others have the kernel say. */
static void check_vouches(struct check *k, const struct line_hit *own)
{
    int32_t code;

    if (facts_isolation(matcher_catalog(k->m), own, &code) < ISOLATION_EXCLUDE ||
        kernel_line_vouches(k->line.text, own->start, own->end))
        return;
    fault(k,
          "acts on nodes, but '%s' may be anybody's words: begin the pattern where the record "
          "does, or behind names of subsystems and devices, and with %d bytes at least",
          k->example, KERNEL_WORDS_MIN);
}

/* A root of another cause speaks on an example of the entry being tested. */
static void share_example(struct check *k, const struct entry *with)
{
    const struct entry *later = with->rank > k->entry->rank ? NULL : later_one(k, k->entry->rank);

    if (with->rank < k->entry->rank)
        fault(k, "shares its example '%s' with %s (%s:%u), a root of another cause", k->example,
              with->id, with->file, with->line);
    else if (later)
        change(k, later);
    else
        intrude(k, with);
}

static void check_match(struct check *k, unsigned i)
{
    const struct line_hit *own = hit_of(k, k->entry);

    if (!own) {
        fault(k, "does not match its example '%s'", k->example);
        return;
    }
    check_speaks(k, own);
    check_vouches(k, own);
    if (i < k->entry->captures.n)
        check_captures(k, own, k->entry->captures.v[i]);
    for (size_t j = 0; j < k->n; j++)
        if (!hit_silence(&k->hits[j], false) && speaks_otherwise(k->entry, k->hits[j].entry))
            share_example(k, k->hits[j].entry);
}

static void check_no_match(struct check *k)
{
    const struct line_hit *own = hit_of(k, k->entry);
    const struct entry *later;

    if (!own || hit_silence(own, false))
        return;
    later = later_one(k, k->entry->rank);
    if (later)
        change(k, later);
    else
        fault(k, "matches its counter-example '%s'", k->example);
}

static void match_example(struct check *k, const char *example)
{
    size_t len = strlen(example);
    struct log_clock clock = {USEC_UNKNOWN, USEC_UNKNOWN, 0};

    free(k->clean);
    k->clean = xmalloc(len + 1);
    line_clean(&clock, example, len, k->clean, &k->line);
    k->example = example;
    k->n = matcher_line(k->m, k->line.text, k->line.len, k->hits);
}

/* What vectorscan cannot do, NULL = nothing of it. */
static const char *group_beyond_vectorscan(const char *p)
{
    if (p[1] == '*')
        return "a verb";
    if (p[1] != '?')
        return NULL;
    if (p[2] == '=' || p[2] == '!' || (p[2] == '<' && (p[3] == '=' || p[3] == '!')))
        return "lookaround";
    return p[2] == '>' ? "an atomic group" : NULL;
}

static const char *escape_beyond_vectorscan(const char *p)
{
    return strchr("123456789kg", p[1]) && p[1] ? "a back reference" : NULL;
}

/* Behind the ']' of the class that begins at p. */
static const char *skip_class(const char *p)
{
    p += p[1] == '^' ? 2 : 1;
    p += *p == ']';
    for (; *p && *p != ']'; p++) {
        const char *end = p[0] == '[' && p[1] == ':' ? strstr(p, ":]") : NULL;

        if (end)
            p = end + 1;
        else if (*p == '\\' && p[1])
            p++;
    }
    return *p ? p + 1 : p;
}

static const char *beyond_vectorscan(const char *p)
{
    const char *what = NULL;

    while (*p && !what) {
        if (*p == '[') {
            p = skip_class(p);
            continue;
        }
        if (*p == '(')
            what = group_beyond_vectorscan(p);
        else if (*p == '\\')
            what = escape_beyond_vectorscan(p);
        else if (strchr("*+?", *p) && p[1] == '+')
            what = "a possessive quantifier";
        p += *p == '\\' && p[1] ? 2 : 1;
    }
    return what;
}

static void check_patterns(struct check *k, const struct string_list *patterns)
{
    for (unsigned i = 0; i < patterns->n; i++) {
        const char *what = beyond_vectorscan(patterns->v[i]);

        if (what)
            fault(k, "pattern '%s' has %s, which the scanner cannot do", patterns->v[i], what);
    }
}

#define XID_FAMILY "gpu.xid."

static bool names_xid(const struct catalog *c, const char *name)
{
    const char *code = name + strlen(XID_FAMILY);
    long long v;

    return str_startswith(name, XID_FAMILY) &&
           (streq(code, "*") || (str_to_i64(code, &v) == 0 && catalog_xid(c, v)));
}

static bool names_something(const struct catalog *c, const char *name)
{
    if (names_xid(c, name))
        return true;
    for (size_t i = 0; i < catalog_size(c); i++)
        if (signature_matches(name, catalog_entry(c, i)->id))
            return true;
    return false;
}

static void check_names(struct check *k, const char *key, char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!names_something(matcher_catalog(k->m), names[i]))
            fault(k, "%s names '%s', which no entry is called", key, names[i]);
}

/* By its own name: families leave themselves out where entries of one family match one line. */
static bool yields_by_name(const struct entry *e, const struct entry *other)
{
    for (unsigned i = 0; i < e->yields_to.n; i++)
        if (streq(e->yields_to.v[i], other->id))
            return true;
    return false;
}

/* Whether `e` yields, over others, to itself; all of such a circle would be dropped. Those of later
 * folders do not count, they find the circle from their side. `seen` has a place for each entry. */
static bool yields_to_itself(const struct catalog *c, const struct entry *e, const struct entry *to,
                             bool *seen)
{
    for (size_t i = 0; i < catalog_size(c); i++) {
        const struct entry *next = catalog_entry(c, i);

        if (seen[i] || next->rank > e->rank || !yields_by_name(to, next))
            continue;
        seen[i] = true;
        if (next == e || yields_to_itself(c, e, next, seen))
            return true;
    }
    return false;
}

static void check_links(struct check *k)
{
    const struct catalog *c = matcher_catalog(k->m);
    const struct entry *e = k->entry;
    _cleanup_(freep) bool *seen = xcalloc(catalog_size(c), sizeof(*seen));

    check_names(k, "yields_to", e->yields_to.v, e->yields_to.n);
    check_names(k, "hides", e->hides.v, e->hides.n);
    if (*e->clears)
        check_names(k, "clears", (char *const[]){(char *)e->clears}, 1);
    if (yields_to_itself(c, e, e, seen))
        fault(k, "yields_to leads back to itself: all of that circle would be dropped");
}

size_t catalog_check(struct matcher *m, check_report_fn report, void *ctx)
{
    _cleanup_(freep) struct check *k = xnew(struct check);
    const struct catalog *c = matcher_catalog(m);

    *k = (struct check){.m = m, .report = report, .ctx = ctx};
    for (size_t i = 0; i < catalog_size(c); i++) {
        k->entry = catalog_entry(c, i);
        if (k->entry->match.n == 0)
            fault(k, "has no example that matches");
        check_links(k);
        check_patterns(k, &k->entry->patterns);
        check_patterns(k, &k->entry->fields);
        if (matcher_wordless(m, k->entry) && k->entry->role != ROLE_PROGRESS)
            fault(k, "pattern '%s' has no word of three letters that every match contains",
                  matcher_wordless(m, k->entry));
        for (unsigned j = 0; j < k->entry->match.n; j++) {
            match_example(k, k->entry->match.v[j]);
            check_match(k, j);
        }
        for (unsigned j = 0; j < k->entry->no_match.n; j++) {
            match_example(k, k->entry->no_match.v[j]);
            check_no_match(k);
        }
    }
    VEC_FOREACH (&k->intrusions, i)
        if (i->indirect)
            report_change(k, i);
        else
            report_intrusion(k, i);
    VEC_DONE(&k->intrusions);
    free(k->clean);
    return k->faults;
}
