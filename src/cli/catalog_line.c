/* SPDX-License-Identifier: Apache-2.0 */

/* Both forms show the same: what is left of the line, what its prefixes say, every entry that
 * matches, and for those that do not speak, why. */

#include "cli/catalog_line.h"

#include "base/alloc.h"
#include "base/str.h"
#include "extract/facts.h"
#include "extract/line.h"

#include <assert.h>
#include <jansson.h>
#include <string.h>

struct reading {
    char *clean;
    struct line line;
    size_t n;
    struct line_hit hits[LINE_HITS_MAX];
};

static struct reading *read_line(struct matcher *m, const char *raw, size_t len)
{
    struct log_clock clock = {now_us(), USEC_UNKNOWN, 0};
    struct reading *r = xnew(struct reading);

    r->clean = xmalloc(len + 1);
    line_clean(&clock, raw, len, r->clean, &r->line);
    r->n = matcher_line(m, r->line.text, r->line.len, r->hits);
    return r;
}

static void reading_free(struct reading *r)
{
    free(r->clean);
    free(r);
}

/* Text of a log for a person: printable, of bounded length. Valid until the next call. */
static const char *shown(const char *s, size_t len)
{
    static char text[2048];

    str_sanitize(text, sizeof(text), s, len);
    return text;
}

/* How the hit became silent, NULL = it speaks. */
static const char *silenced_how(const struct line_hit *hit)
{
    switch (hit_silence(hit, false)) {
    case SILENCE_NONE:
        return NULL;
    case SILENCE_DROPPED:
        return entry_hides(hit->dropped_by, hit->entry) ? "hidden by" : "yields to";
    case SILENCE_STANCE:
        return stance_name(hit->stance);
    case SILENCE_ALIKE:
        return "compares what is alike";
    }
    assert(false);
    return NULL;
}

/* What the signal of the hit says that the entry alone does not. */
static struct signal signal_of(struct matcher *m, const struct reading *r,
                               const struct line_hit *hit)
{
    return facts_from_hit(matcher_catalog(m), hit, &r->line, PROVENANCE_JOB_TEXT);
}

static void print_number(FILE *f, const char *name, int32_t v)
{
    if (v != RANK_NONE)
        fprintf(f, "%-10s %d\n", name, v);
}

static void print_line(FILE *f, const struct line *line)
{
    char text[TIMESTAMP_TEXT_MAX];

    fprintf(f, "%-10s %s\n", "message", shown(line->text, line->len));
    if (line->text > line->whole)
        fprintf(f, "%-10s %s\n", "prefix", shown(line->whole, (size_t)(line->text - line->whole)));
    if (line->time_us != USEC_UNKNOWN)
        fprintf(f, "%-10s %s\n", "time", timestamp_format(line->time_us, text));
    print_number(f, "task", line->label);
    print_number(f, "rank", line->rank);
    print_number(f, "local rank", line->local_rank);
    if (line->node[0])
        fprintf(f, "%-10s %s\n", "node", shown(line->node, strlen(line->node)));
    if (line->repeats > 1)
        fprintf(f, "%-10s %u such lines\n", "stands for", line->repeats);
}

static void print_entry(FILE *f, const struct entry *e, const struct signal *s,
                        enum isolation isolation)
{
    fprintf(f, "    role %s", role_name(s->role));
    if (s->cause != CAUSE_NONE)
        fprintf(f, ", cause %s, confidence %d %%", cause_name(s->cause), s->confidence);
    if (s->blame != BLAME_NONE)
        fprintf(f, ", blames the %s", blame_name(s->blame));
    if (s->advice != ADVICE_NONE)
        fprintf(f, ", advice %s", advice_name(s->advice));
    if (isolation >= 0)
        fprintf(f, ", isolation %s", isolation_name(isolation));
    fprintf(f, "\n    %s:%u", e->file, e->line);
    if (e->replaced)
        fprintf(f, ", replaces %s:%u", e->replaced->file, e->replaced->line);
    if (*e->source)
        fprintf(f, ", after: %s", e->source);
    fputc('\n', f);
}

static void print_fields(FILE *f, const struct line_hit *hit)
{
    const char *lead = "    reads";

    for (int i = 0; i < FIELD_MAX; i++) {
        const struct capture *c = &hit->fields[i];

        if (!c->s)
            continue;
        fprintf(f, "%s %s=%s", lead, field_name((enum field)i), shown(c->s, c->len));
        lead = "";
    }
    if (!*lead)
        fputc('\n', f);
}

static void print_hit(FILE *f, struct matcher *m, const struct reading *r,
                      const struct line_hit *hit)
{
    struct signal s = signal_of(m, r, hit);
    const char *how = silenced_how(hit);
    int32_t code;

    if (!how)
        fprintf(f, "\n%s: speaks\n", s.signature);
    else if (hit->dropped_by)
        fprintf(f, "\n%s: silent, %s %s\n", s.signature, how, hit->dropped_by->id);
    else
        fprintf(f, "\n%s: silent, the line %s\n", s.signature, how);
    print_entry(f, hit->entry, &s, facts_isolation(matcher_catalog(m), hit, &code));
    fprintf(f, "    pattern %s\n", hit->pattern);
    fprintf(f, "    matches \"%s\"\n", shown(r->line.text + hit->start, hit->end - hit->start));
    print_fields(f, hit);
}

void catalog_line_text(FILE *f, struct matcher *m, const char *raw, size_t len)
{
    struct reading *r = read_line(m, raw, len);

    print_line(f, &r->line);
    if (r->n == 0)
        fputs("\nno entry matches\n", f);
    for (size_t i = 0; i < r->n; i++)
        print_hit(f, m, r, &r->hits[i]);
    reading_free(r);
}

static json_t *text_or_null(const char *s, size_t len)
{
    return len > 0 ? json_string(shown(s, len)) : json_null();
}

static json_t *number_or_null(int32_t v)
{
    return v == RANK_NONE ? json_null() : json_integer(v);
}

static json_t *make_fields(const struct line_hit *hit)
{
    json_t *o = json_object();

    for (int i = 0; i < FIELD_MAX; i++)
        if (hit->fields[i].s)
            json_object_set_new(o, field_name((enum field)i),
                                json_string(shown(hit->fields[i].s, hit->fields[i].len)));
    return o;
}

static json_t *make_hit(struct matcher *m, const struct reading *r, const struct line_hit *hit)
{
    struct signal s = signal_of(m, r, hit);
    const char *how = silenced_how(hit);
    int32_t code;
    const char *isolation = isolation_name(facts_isolation(matcher_catalog(m), hit, &code));
    json_t *o = json_pack("{s:s, s:b, s:s, s:s, s:s, s:s, s:f, s:s, s:s, s:i, s:s}", "signature",
                          s.signature, "speaks", !how, "role", role_name(s.role), "cause",
                          cause_name(s.cause), "blame", blame_name(s.blame), "advice",
                          advice_name(s.advice), "confidence", s.confidence / 100.0, "layer",
                          layer_name(s.layer), "file", hit->entry->file, "entry_line",
                          (int)hit->entry->line, "pattern", hit->pattern);

    json_object_set_new(o, "text", text_or_null(r->line.text + hit->start, hit->end - hit->start));
    json_object_set_new(o, "isolation", isolation ? json_string(isolation) : json_null());
    json_object_set_new(o, "fields", make_fields(hit));
    json_object_set_new(o, "silenced_by",
                        hit->dropped_by ? json_string(hit->dropped_by->id) : json_null());
    json_object_set_new(o, "silenced_how", how ? json_string(how) : json_null());
    return o;
}

void catalog_line_json(FILE *f, struct matcher *m, const char *raw, size_t len)
{
    struct reading *r = read_line(m, raw, len);
    const struct line *line = &r->line;
    char time[TIMESTAMP_TEXT_MAX];
    json_t *matches = json_array(), *o;

    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(matches, make_hit(m, r, &r->hits[i]));
    timestamp_format(line->time_us, time);
    o = json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o}", "schema", 1, "message",
                  text_or_null(line->text, line->len), "task", number_or_null(line->label), "rank",
                  number_or_null(line->rank), "local_rank", number_or_null(line->local_rank),
                  "node", text_or_null(line->node, strlen(line->node)), "time",
                  line->time_us == USEC_UNKNOWN ? json_null() : json_string(time), "repeats",
                  (int)line->repeats, "matches", matches);
    json_dumpf(o, f, JSON_COMPACT | JSON_REAL_PRECISION(6));
    fputc('\n', f);
    json_decref(o);
    reading_free(r);
}
