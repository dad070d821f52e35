/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cli/advise.h"
#include "cli/report.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* For a person at 3 a.m.: the verdict first, then who, why, what to do, what it was not. A fixed
 * column of keywords on the left, so that the eye finds its place. Everything shown was made
 * printable when it was read. What to do stands in advise.c. */

#define MARGIN    10
#define WIDTH_MAX 100
#define WIDTH     80 /* where there is no terminal */
#define WIDTH_MIN 60

enum paint { PAINT_NONE, PAINT_BOLD, PAINT_DIM, PAINT_RED, PAINT_YELLOW, PAINT_GREEN };

static const char *const codes[] = {"", "1", "2", "1;31", "1;33", "1;32"};

struct report_style report_style_of(FILE *f)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    struct report_style s = {.width = WIDTH};
    struct winsize w;

    if (!isatty(fileno(f)))
        return s;
    s.colour = !(no && *no) && !(term && streq(term, "dumb"));
    if (ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
        s.width = w.ws_col < WIDTH_MIN ? WIDTH_MIN : w.ws_col > WIDTH_MAX ? WIDTH_MAX : w.ws_col;
    return s;
}

struct page {
    FILE *f;
    const struct report_style *style;
    const struct dossier *d;
    const struct incident *in;
    const char *key; /* printed in the margin of the next line, then "" */
};

static void paint(const struct page *p, enum paint how, const char *text)
{
    if (p->style->colour && how != PAINT_NONE)
        fprintf(p->f, "\033[%sm%s\033[0m", codes[how], text);
    else
        fputs(text, p->f);
}

static void margin(struct page *p)
{
    char key[MARGIN + 1];

    snprintf(key, sizeof(key), "%-*s", MARGIN, p->key);
    paint(p, PAINT_BOLD, key);
    p->key = "";
}

/* Bytes of text that fill `columns` at most, cut at a blank where one is near. UTF-8 continuation
 * bytes take no column. */
static size_t fit(const char *text, size_t columns)
{
    size_t n = 0, blank = 0;

    for (size_t used = 0; text[n]; n++) {
        if (((unsigned char)text[n] & 0xc0) == 0x80)
            continue;
        if (used++ == columns)
            return blank > n / 2 ? blank : n;
        if (text[n] == ' ')
            blank = n;
    }
    return n;
}

/* From the left edge when `column` is 0. */
static void wrap_at(struct page *p, enum paint how, int column, const char *text)
{
    size_t columns = (size_t)(p->style->width - column);
    char part[512];

    while (*text == ' ')
        text++;
    do {
        size_t n = fit(text, columns);

        str_copy_n(part, sizeof(part), text, n);
        if (column >= MARGIN)
            margin(p);
        fprintf(p->f, "%*s", column >= MARGIN ? column - MARGIN : column, "");
        paint(p, how, part);
        fputc('\n', p->f);
        text += n;
        while (*text == ' ')
            text++;
    } while (*text);
}

static void wrap(struct page *p, enum paint how, int indent, const char *text)
{
    wrap_at(p, how, MARGIN + indent, text);
}

static void command(struct page *p, const char *line)
{
    margin(p);
    fputs("  ", p->f);
    paint(p, PAINT_BOLD, line);
    fputc('\n', p->f);
}

static void section(struct page *p, const char *key)
{
    fputc('\n', p->f);
    p->key = key;
}

/* ---- verdict ---- */

static enum paint paint_of_class(enum incident_class c)
{
    switch (c) {
    case CLASS_HEALTHY:
        return PAINT_GREEN;
    case CLASS_INTERRUPTED:
    case CLASS_STRAGGLER:
        return PAINT_YELLOW;
    default:
        return PAINT_RED;
    }
}

#define FILES_SHOWN 3

/* What stands in the place of "healthy" where that is only not refuted, NULL = it is as it says. */
static const char *name_of_doubt(const struct page *p)
{
    if (dossier_is_untold(p->d))
        return "not understood";
    if (dossier_is_empty(p->d))
        return "nothing to judge";
    if (p->in->class == CLASS_HEALTHY && !p->in->finished && dossier_is_incomplete(p->d))
        return "incomplete";
    if (p->in->class == CLASS_HEALTHY && p->in->confidence <= CONFIDENCE_UNTOLD)
        return "uncertain";
    return NULL;
}

static void show_verdict(struct page *p)
{
    const struct incident *in = p->in;
    const char *doubt = name_of_doubt(p);
    char head[48];

    snprintf(head, sizeof(head), "%s", doubt ? doubt : incident_class_name(in->class));
    for (char *c = head; *c; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    paint(p, doubt ? PAINT_YELLOW : paint_of_class(in->class), head);
    if (doubt)
        fputs("  class: healthy, for want of any sign", p->f);
    if (in->class != CLASS_HEALTHY)
        fprintf(p->f, "  cause: %s (%s)", cause_name(in->cause),
                domain_name(cause_domain(in->cause)));
    fprintf(p->f, "  confidence: %d %%\n", in->confidence);
    p->key = "";
    wrap_at(p, PAINT_NONE, 0, in->summary);
}

/* The files that were judged, the job's own before the kernel logs of its nodes. */
static void show_files(struct page *p)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    size_t n = 0;

    for (int kernel = 0; kernel < 2; kernel++) {
        VEC_FOREACH (&p->d->files, f) {
            if (!f->judged || (f->node != NULL) != kernel || n++ >= FILES_SHOWN)
                continue;
            strbuf_addf(&b, "%s%s", n > 1 ? ", " : "", f->shown);
            if (kernel)
                strbuf_addf(&b, " (kernel of %s)", f->who.node);
        }
    }
    if (n > FILES_SHOWN)
        strbuf_addf(&b, " and %zu more", n - FILES_SHOWN);
    wrap_at(p, PAINT_DIM, 0, strbuf_str(&b));
}

/* ---- who ---- */

static void show_who(struct page *p)
{
    const struct culprits *c = &p->in->culprits;
    char line[NODE_NAME_LEN + 16];

    if (p->in->class == CLASS_HEALTHY || p->in->class == CLASS_INTERRUPTED)
        return;
    if (c->n_nodes + c->n_ranks + c->n_devices == 0 &&
        cause_domain(p->in->cause) == DOMAIN_WORKLOAD)
        return; /* no hardware is at fault, and the verdict says which rank printed the line */
    section(p, "who");
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        snprintf(line, sizeof(line), "node %s", c->nodes[i]);
        wrap(p, PAINT_NONE, 0, line);
    }
    for (uint32_t i = 0; i < c->n_ranks; i++) {
        snprintf(line, sizeof(line), "rank %d", c->ranks[i]);
        wrap(p, PAINT_NONE, 0, line);
    }
    for (uint32_t i = 0; i < c->n_devices; i++) {
        snprintf(line, sizeof(line), "%s %s", p->in->cause == CAUSE_GPU_HARDWARE ? "GPU" : "device",
                 c->devices[i]);
        wrap(p, PAINT_NONE, 0, line);
    }
    if (c->n_nodes + c->n_ranks + c->n_devices == 0)
        wrap(p, PAINT_NONE, 0,
             "nobody: nothing in the log proves that a node, GPU or rank is at "
             "fault");
}

/* ---- why ---- */

#define LINES_SHOWN 8 /* the rest is in the JSON */
#define STEPS_SHOWN 3 /* of them lines of progress */
#define ROWS_SHOWN  3 /* of one line */

/* The beginning of a line of the log, in a few rows. */
static void show_excerpt(struct page *p, enum paint how, const char *text)
{
    size_t columns = (size_t)(p->style->width - MARGIN - 2);
    char cut[ROWS_SHOWN * WIDTH_MAX * 4];
    size_t n = 0;

    while (*text == ' ')
        text++;
    for (int row = 0; row < ROWS_SHOWN && text[n]; row++)
        n += fit(text + n, row + 1 < ROWS_SHOWN ? columns : columns - 2);
    str_copy_n(cut, sizeof(cut) - 4, text, n);
    if (text[n])
        memcpy(cut + strlen(cut), "…", sizeof("…"));
    wrap(p, how, 2, cut);
}

static void show_why(struct page *p)
{
    char head[512], count[48];
    uint32_t n = 0, steps = 0;

    if (p->in->n_evidence == 0)
        return;
    section(p, "why");
    for (uint32_t i = 0; i < p->in->n_evidence && n < LINES_SHOWN; i++) {
        const struct evidence_line *l = &p->in->evidence[i];
        const char *path = l->file < p->d->files.n ? p->d->files.v[l->file].shown : "?";

        if (l->role == ROLE_PROGRESS && steps++ == STEPS_SHOWN)
            break;
        n++;
        count[0] = '\0';
        if (l->count > 1)
            snprintf(count, sizeof(count), ", %" PRIu64 " times", l->count);
        snprintf(head, sizeof(head), "%s:%" PRIu64 "  %s%s%s%s", path, l->line, role_name(l->role),
                 *l->signature ? " " : "", l->signature, count);
        wrap(p, PAINT_DIM, 0, head);
        show_excerpt(p, i == 0 ? PAINT_BOLD : PAINT_NONE, l->text);
    }
}

/* ---- what to do ---- */

static void suggest_catalog(struct page *p)
{
    section(p, "do");
    wrap(p, PAINT_NONE, 0,
         "see what is made of the line that tells the failure; an entry of your own teaches "
         "it to reknit (reknit-catalog(5)):");
    command(p, "reknit catalog explain 'LINE'");
}

static void show_step(void *ctx, bool is_command, const char *text)
{
    struct page *p = ctx;

    if (is_command)
        command(p, text);
    else
        wrap(p, PAINT_NONE, 0, text);
}

static void show_advice(struct page *p)
{
    if (dossier_is_untold(p->d))
        suggest_catalog(p);
    if (p->in->class == CLASS_HEALTHY)
        return;
    section(p, "do");
    wrap(p, PAINT_BOLD, 0, advice_name(p->in->advice));
    advise(p->d, show_step, p);
}

/* ---- the rest ---- */

static void show_ruled_out(struct page *p)
{
    char line[300];

    if (p->in->n_ruled_out == 0)
        return;
    section(p, "ruled out");
    for (uint32_t i = 0; i < p->in->n_ruled_out; i++) {
        snprintf(line, sizeof(line), "%s: %s", p->in->ruled_out[i].what, p->in->ruled_out[i].why);
        wrap(p, PAINT_NONE, 0, line);
    }
}

static void show_progress(struct page *p)
{
    const struct progress_summary *s = &p->in->progress;
    _cleanup_strbuf_ struct strbuf b = {0};
    char step[DURATION_TEXT_MAX];

    if (s->steps_seen == 0)
        return;
    if (s->first_step != STEP_NONE)
        strbuf_addf(&b, "step %" PRId64 " to %" PRId64, s->first_step, s->last_step);
    else
        strbuf_addf(&b, "%" PRId64 " lines of progress", s->steps_seen);
    if (s->total_steps != NUMBER_NONE)
        strbuf_addf(&b, " of %" PRId64, s->total_steps);
    if (s->median_step != NUMBER_NONE)
        strbuf_addf(&b, ", %s a step", duration_format(s->median_step, step));
    if (s->checkpoint_step != STEP_NONE)
        strbuf_addf(&b, ", last checkpoint at %" PRId64, s->checkpoint_step);
    section(p, "progress");
    wrap(p, PAINT_NONE, 0, strbuf_str(&b));
}

static void show_attempts(struct page *p)
{
    char line[512];

    if (p->d->attempts.n == 0)
        return;
    section(p, "before");
    if (p->d->attempts_dropped > 0) {
        snprintf(line, sizeof(line), "%" PRIu64 " earlier attempts are not listed",
                 p->d->attempts_dropped);
        wrap(p, PAINT_NONE, 0, line);
    }
    VEC_FOREACH (&p->d->attempts, a) {
        snprintf(line, sizeof(line), "%s%slines %" PRIu64 "-%" PRIu64 "  %s, %s: %s",
                 p->d->files.n > 1 ? p->d->files.v[a->file].shown : "",
                 p->d->files.n > 1 ? " " : "", a->first_line, a->last_line,
                 incident_class_name(a->incident.class), cause_name(a->incident.cause),
                 a->incident.summary);
        wrap(p, PAINT_NONE, 0, line);
    }
}

void report_text(FILE *f, const struct dossier *d, const struct report_style *style)
{
    struct page p = {.f = f, .style = style, .d = d, .in = &d->incident, .key = ""};

    show_files(&p);
    show_verdict(&p);
    show_who(&p);
    show_why(&p);
    show_advice(&p);
    show_ruled_out(&p);
    show_progress(&p);
    show_attempts(&p);
}
