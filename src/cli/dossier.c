/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dossier.h"

#include "base/alloc.h"
#include "base/str.h"
#include "cli/file_ranks.h"
#include "core/attribute/attribute.h"
#include "core/attribute/recur.h"
#include "core/measure/split.h"
#include "extract/input.h"
#include "extract/scanner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* One file is read once: at the line where a new attempt begins, the attempt before is judged and
 * its evidence dropped.
 *
 * Several files of a job are attempts in parallel: stdout has the steps, stderr the launcher's
 * lines, and only one of them may show where an attempt begins. So they are read twice. The first
 * pass finds the last beginning in each file (and the latest clock of all of them) and judges what
 * the file alone shows of the attempts before it; the second takes what comes after it. What is no
 * regular file (standard input, a pipe) cannot be read twice and is taken whole. */

#define PROGRESS_EVERY ((uint64_t)4 << 20)
#define START_SLACK    (2 * USEC_PER_SEC) /* clocks of the processes of one job */

struct reading {
    struct dossier *d;
    uint32_t file;
    struct evidence *evidence;
    struct split split;
    uint64_t first_line, last_line;
    usec_t begun_us; /* clock of the beginning that was found last */
    bool begun;
    int64_t first_step; /* STEP_NONE: none yet */
    usec_t first_us;    /* its clock */
    /* second pass: what is before is another attempt's */
    uint64_t from_line;
    usec_t from_us;
    usec_t time_us;
};

void dossier_add(struct dossier *d, const char *path, const char *node)
{
    size_t len = strlen(path), size = 3 * len + 1; /* a replacement character has three bytes */
    struct dossier_file *f = VEC_PUSH(&d->files);

    *f = (struct dossier_file){.path = path, .node = node, .shown = xmalloc(size)};
    str_sanitize(f->shown, size, path, len);
}

void dossier_done(struct dossier *d)
{
    VEC_FOREACH (&d->files, f)
        free(f->shown);
    VEC_DONE(&d->files);
    VEC_DONE(&d->attempts);
}

/* Whether both are names of one regular file. */
static bool same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* A file that is given twice proves nothing twice. The first one counts: options come before
 * arguments, so that is the one whose node was told. */
static void mark_twins(struct dossier *d)
{
    for (size_t i = 1; i < d->files.n; i++)
        for (size_t j = 0; j < i && !d->files.v[i].twin; j++)
            d->files.v[i].twin =
                !d->files.v[j].twin && same_file(d->files.v[i].path, d->files.v[j].path);
}

static usec_t file_clock(const char *path, uint64_t *ret_size)
{
    struct stat st;

    *ret_size = 0;
    if (streq(path, "-") || stat(path, &st) < 0)
        return now_us();
    if (S_ISREG(st.st_mode))
        *ret_size = (uint64_t)st.st_size;
    return (usec_t)st.st_mtim.tv_sec * USEC_PER_SEC + st.st_mtim.tv_nsec / 1000;
}

static bool is_rereadable(const char *path)
{
    struct stat st;

    return !streq(path, "-") && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static void remember_attempt(struct reading *r)
{
    struct dossier *d = r->d;
    struct dossier_attempt *a;

    if (d->attempts.n == ATTEMPTS_MAX) {
        VEC_REMOVE(&d->attempts, 0);
        d->attempts_dropped++;
    }
    a = VEC_PUSH(&d->attempts);
    a->file = r->file;
    a->first_line = r->first_line;
    a->last_line = r->last_line;
    attribute_scene(r->evidence, ENDING_UNKNOWN, &a->incident, a->scene);
}

/* The attempt ends before this signal. */
static void close_attempt(struct reading *r, const struct signal *s)
{
    remember_attempt(r);
    evidence_free(r->evidence);
    r->evidence = evidence_new();
    r->first_line = s->line;
}

/* The only file of a job. */
static void take_alone(void *ctx, const struct signal *s)
{
    struct reading *r = ctx;

    if (split_add(&r->split, s))
        close_attempt(r, s);
    r->last_line = s->line;
    r->d->signals += s->kind != SIGNAL_OUTPUT;
    evidence_add(r->evidence, s);
}

static void find_beginning(void *ctx, const struct signal *s)
{
    struct reading *r = ctx;

    if (s->time_us != USEC_UNKNOWN && !s->uptime)
        r->time_us = s->time_us;
    if (s->kind == SIGNAL_STEP && r->first_step == STEP_NONE && s->step.step != STEP_NONE) {
        r->first_step = s->step.step;
        r->first_us = r->time_us;
    }
    if (split_add(&r->split, s)) {
        close_attempt(r, s);
        r->begun = true;
        r->from_line = s->line;
        r->begun_us = r->time_us;
    }
    r->last_line = s->line;
    evidence_add(r->evidence, s);
}

static void take_after_beginning(void *ctx, const struct signal *s)
{
    struct reading *r = ctx;

    if (s->time_us != USEC_UNKNOWN && !s->uptime)
        r->time_us = s->time_us;
    if (s->line < r->from_line)
        return;
    if (r->from_line == 0 && r->from_us != USEC_UNKNOWN && r->time_us != USEC_UNKNOWN &&
        r->time_us < r->from_us - START_SLACK && s->layer != LAYER_KERNEL)
        return;
    r->d->signals += s->kind != SIGNAL_OUTPUT;
    evidence_add(r->evidence, s);
}

struct progress_hook {
    dossier_progress_fn fn;
    void *ctx;
    uint64_t size, next;
};

static void show_progress(struct progress_hook *p, const char *path, uint64_t bytes)
{
    if (!p->fn || bytes < p->next)
        return;
    p->next = bytes + PROGRESS_EVERY;
    p->fn(p->ctx, path, bytes, p->size);
}

/* The end of what was read, enough of it to show the last line. */
struct tail {
    char text[1024];
    size_t len;
};

static void tail_add(struct tail *t, const char *data, size_t len)
{
    size_t keep = len < sizeof(t->text) ? sizeof(t->text) - len : 0;

    if (keep > t->len)
        keep = t->len;
    if (len > sizeof(t->text)) {
        data += len - sizeof(t->text);
        len = sizeof(t->text);
    }
    memmove(t->text, t->text + t->len - keep, keep);
    memcpy(t->text + keep, data, len);
    t->len = keep + len;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void tail_last_line(const struct tail *t, char *ret, size_t size)
{
    size_t end = t->len, start;

    while (end > 0 && is_blank(t->text[end - 1]))
        end--;
    for (start = end; start > 0 && t->text[start - 1] != '\n' && t->text[start - 1] != '\r';)
        start--;
    str_sanitize(ret, size, t->text + start, end - start);
}

static int pump_file(struct input *in, struct scanner *scanner, struct dossier_file *f,
                     struct progress_hook *progress, struct err *e)
{
    struct tail tail = {0};
    const char *data;
    size_t len;
    int r;

    while ((r = input_read(in, &data, &len, e)) > 0) {
        scanner_feed(scanner, data, len);
        tail_add(&tail, data, len);
        show_progress(progress, f->shown, scanner_counters(scanner)->bytes);
    }
    scanner_finish(scanner);
    tail_last_line(&tail, f->last_text, sizeof(f->last_text));
    return r;
}

static int read_file(struct dossier_file *f, struct matcher *m, struct reading *r,
                     scanner_sink_fn sink, struct progress_hook *progress)
{
    struct scanner_options o = {.file = r->file, .who = &f->who, .alone = r->d->files.n == 1};
    _cleanup_(input_freep) struct input *in = NULL;
    _cleanup_(scanner_freep) struct scanner *scanner = NULL;
    struct err e = {0};
    int rc;

    o.provenance = f->node ? PROVENANCE_KERNEL : PROVENANCE_JOB_TEXT;
    o.now_us = file_clock(f->path, &progress->size);
    progress->next = PROGRESS_EVERY;
    rc = input_open(f->path, &in, &e);
    if (rc >= 0) {
        o.size = input_size(in);
        scanner = scanner_new(m, &o, sink, r);
        rc = pump_file(in, scanner, f, progress, &e);
        f->lines = scanner_counters(scanner)->lines;
        f->bytes = scanner_counters(scanner)->bytes;
    }
    if (rc < 0) {
        f->bad = true;
        STR_COPY(f->error, e.text);
        evidence_add_gap(r->evidence);
    }
    return rc;
}

static struct reading reading_of(struct dossier *d, uint32_t file, struct evidence *e)
{
    struct reading r = {
        .d = d,
        .file = file,
        .evidence = e,
        .first_line = 1,
        .begun_us = USEC_UNKNOWN,
        .first_step = STEP_NONE,
        .first_us = USEC_UNKNOWN,
        .from_us = USEC_UNKNOWN,
        .time_us = USEC_UNKNOWN,
    };

    split_init(&r.split);
    return r;
}

/* An attempt that shows nothing at all right after one that failed is no attempt: a launcher's
 * late line. */
static bool is_void(const struct incident *in)
{
    return in->class == CLASS_HEALTHY && !in->finished && in->progress.steps_seen == 0;
}

static void judge_one(struct dossier *d, struct matcher *m, struct progress_hook *progress)
{
    struct reading r = reading_of(d, 0, evidence_new());

    read_file(&d->files.v[0], m, &r, take_alone, progress);
    attribute_scene(r.evidence, ENDING_UNKNOWN, &d->incident, d->scene);
    evidence_free(r.evidence);
}

/* What the first pass finds out about a file. */
struct survey {
    uint32_t file;
    uint64_t from_line;
    int64_t first_step;
    usec_t first_us;
};

static struct survey survey_file(struct dossier *d, uint32_t file, struct matcher *m,
                                 struct progress_hook *progress, usec_t *latest_us)
{
    struct reading r = reading_of(d, file, evidence_new());

    if (!d->files.v[file].twin && is_rereadable(d->files.v[file].path) && !d->files.v[file].node)
        read_file(&d->files.v[file], m, &r, find_beginning, progress);
    if (r.begun && r.begun_us != USEC_UNKNOWN &&
        (*latest_us == USEC_UNKNOWN || r.begun_us > *latest_us))
        *latest_us = r.begun_us;
    evidence_free(r.evidence);
    return (struct survey){file, r.begun ? r.from_line : 0, r.first_step, r.first_us};
}

static bool is_before(const struct survey *a, const struct survey *b, bool by_clock)
{
    return by_clock ? a->first_us < b->first_us : a->first_step < b->first_step;
}

/* The files that show steps in the order of these: a rotated log is named in any order ("train.log
 * train.log.1"). The others stay where they are. */
static void sort_by_steps(struct survey *v, size_t n)
{
    bool by_clock = true;

    for (size_t i = 0; i < n; i++)
        by_clock &= v[i].first_step == STEP_NONE || v[i].first_us != USEC_UNKNOWN;
    for (size_t i = 1; i < n; i++) {
        size_t at = i;

        for (size_t j = i; v[i].first_step != STEP_NONE && j-- > 0;) {
            if (v[j].first_step == STEP_NONE)
                continue;
            if (!is_before(&v[at], &v[j], by_clock))
                break;
            struct survey moved = v[j];

            v[j] = v[at];
            v[at] = moved;
            at = j;
        }
    }
}

static void judge_many(struct dossier *d, struct matcher *m, struct progress_hook *progress)
{
    _cleanup_(evidence_freep) struct evidence *e = evidence_new();
    VEC(struct survey) order = {0};
    usec_t latest = USEC_UNKNOWN;

    for (uint32_t i = 0; i < d->files.n; i++)
        *VEC_PUSH(&order) = survey_file(d, i, m, progress, &latest);
    sort_by_steps(order.v, order.n);
    VEC_FOREACH (&order, o) {
        struct dossier_file *f = &d->files.v[o->file];
        struct reading r = reading_of(d, o->file, e);

        if (f->bad && f->bytes == 0)
            evidence_add_gap(e);
        if (f->twin || (f->bad && f->bytes == 0))
            continue;
        f->bad = false; /* the second pass finds the same fault, after what is good */
        r.from_line = o->from_line;
        r.from_us = f->node ? USEC_UNKNOWN : latest;
        read_file(f, m, &r, take_after_beginning, progress);
    }
    VEC_DONE(&order);
    attribute(e, ENDING_UNKNOWN, &d->incident);
}

static uint64_t count_lines(const struct dossier *d)
{
    uint64_t n = 0;

    VEC_FOREACH (&d->files, f)
        n += f->lines;
    return n;
}

bool dossier_is_untold(const struct dossier *d)
{
    return d->signals == 0 && count_lines(d) > 0;
}

bool dossier_is_empty(const struct dossier *d)
{
    return d->signals == 0 && count_lines(d) == 0;
}

bool dossier_is_incomplete(const struct dossier *d)
{
    VEC_FOREACH (&d->files, f)
        if (f->bad)
            return true;
    return false;
}

/* The last line that was read, where it can be shown: not if it had to be made printable. */
static const char *last_words(const struct dossier *d)
{
    const char *text = "";

    VEC_FOREACH (&d->files, f)
        if (*f->last_text)
            text = f->last_text;
    return strstr(text, "\xef\xbf\xbd") ? "" : text;
}

/* core knows what the lines told, not that there were any. */
static void describe_silence(struct dossier *d)
{
    uint64_t lines = count_lines(d);
    const char *last = last_words(d);
    const char *rest = dossier_is_incomplete(d) ? "; not all of the input could be read" : "";
    char *text = d->incident.summary;
    size_t size = sizeof(d->incident.summary);

    if (d->signals > 0)
        return;
    if (lines == 0)
        str_printf(text, size, "Nothing to judge: the input is empty%s.", rest);
    else
        str_printf(text, size,
                   "Nothing was understood: %" PRIu64
                   " line%s read, and none tells of a failure or "
                   "of progress%s%s%s%s.",
                   lines, lines == 1 ? "" : "s", rest, *last ? "; the last was \"" : "", last,
                   *last ? "\"" : "");
}

/* Whose output each file is. A kernel's log is nobody's. */
static void find_owners(struct dossier *d)
{
    VEC(const char *) paths = {0};
    _cleanup_(freep) struct entity *who = xcalloc(d->files.n, sizeof(*who));
    size_t n = 0;

    VEC_FOREACH (&d->files, f)
        if (!f->node && !f->twin)
            *VEC_PUSH(&paths) = f->path;
    file_ranks_read(paths.v, paths.n, who);
    VEC_FOREACH (&d->files, f) {
        f->who = (struct entity){.rank = RANK_NONE, .local_rank = RANK_NONE};
        if (f->node)
            str_sanitize(f->who.node, sizeof(f->who.node), f->node, strlen(f->node));
        else if (!f->twin)
            f->who = who[n++];
    }
    VEC_DONE(&paths);
}

/* The attempts before the last one may tell what that one alone does not. */
static void judge_again(struct dossier *d)
{
    struct recur_attempt before[ATTEMPTS_MAX];
    size_t n = 0;

    for (size_t i = d->attempts.n; i-- > 0 && n < ATTEMPTS_MAX;)
        before[n++] = (struct recur_attempt){&d->attempts.v[i].incident, d->attempts.v[i].scene};
    recur_judge(before, n, d->scene, &d->incident);
}

size_t dossier_judge(struct dossier *d, struct matcher *m, dossier_progress_fn fn, void *ctx)
{
    struct progress_hook progress = {.fn = fn, .ctx = ctx};
    size_t bad = 0;

    mark_twins(d);
    find_owners(d);
    if (d->files.n == 1)
        judge_one(d, m, &progress);
    else
        judge_many(d, m, &progress);
    if (d->files.n == 1 && d->attempts.n > 0 && is_void(&d->incident) &&
        !dossier_is_incomplete(d)) {
        d->incident = d->attempts.v[d->attempts.n - 1].incident;
        STR_COPY(d->scene, d->attempts.v[d->attempts.n - 1].scene);
        d->attempts.n--;
    }
    if (d->files.n == 1)
        judge_again(d);
    describe_silence(d);
    VEC_FOREACH (&d->files, f) {
        bad += f->bad;
        f->judged = !f->twin && (!f->bad || f->bytes > 0);
    }
    return bad;
}
