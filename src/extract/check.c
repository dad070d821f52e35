/* SPDX-License-Identifier: Apache-2.0 */

/* An example passes through the same cleaning and matching as a line of a log. */

#include "extract/check.h"

#include "base/alloc.h"
#include "base/str.h"
#include "extract/facts.h"
#include "extract/line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct check {
    struct matcher *m;
    check_report_fn report;
    void *ctx;
    size_t faults;
    const struct entry *entry; /* being tested */
    const char *example;
    char *clean; /* of the example; the hits point into it */
    size_t n;
    struct hit hits[HITS_MAX];
};

__attribute__((format(printf, 2, 3))) static void fault(struct check *k, const char *format, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    k->faults++;
    k->report(k->ctx, k->entry, text);
}

static const struct hit *hit_of(const struct check *k, const struct entry *e)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->hits[i].entry == e)
            return &k->hits[i];
    return NULL;
}

/* "name=value" pairs, a value ends at the blank before the next "word=". */
static void check_captures(struct check *k, const struct hit *hit, const char *want)
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

static bool speaks_otherwise(const struct entry *own, const struct entry *other)
{
    return other != own && other->role == ROLE_ROOT && other->cause != own->cause;
}

static void check_match(struct check *k, unsigned i)
{
    const struct hit *own = hit_of(k, k->entry);

    if (!own) {
        fault(k, "does not match its example '%s'", k->example);
        return;
    }
    if (own->dropped_by)
        fault(k, "loses its example '%s' to %s", k->example, own->dropped_by->id);
    if (i < k->entry->captures.n)
        check_captures(k, own, k->entry->captures.v[i]);
    for (size_t j = 0; j < k->n; j++)
        if (!k->hits[j].dropped_by && speaks_otherwise(k->entry, k->hits[j].entry))
            fault(k, "'%s' is also a root of another cause (%s): one must yield to the other",
                  k->example, k->hits[j].entry->id);
}

static void check_no_match(struct check *k)
{
    const struct hit *own = hit_of(k, k->entry);

    if (own && !own->dropped_by)
        fault(k, "matches its counter-example '%s'", k->example);
}

static void match_example(struct check *k, const char *example)
{
    size_t len = strlen(example);
    struct log_clock clock = {USEC_UNKNOWN, USEC_UNKNOWN};
    struct line line;

    free(k->clean);
    k->clean = xmalloc(len + 1);
    line_clean(&clock, example, len, k->clean, &line);
    k->example = example;
    k->n = matcher_line(k->m, line.text, line.len, k->hits);
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
    free(k->clean);
    return k->faults;
}
