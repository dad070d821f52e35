/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/narrate.h"

#include "base/sig.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS    6
#define ROWS_FIRST 5 /* of a long table: so many at both ends */
#define ROWS_LAST  10

void narrate_exit(const struct exit_fact *x, struct strbuf *out)
{
    char name[SIG_NAME_LEN];

    if (x->signal == 0)
        strbuf_addf(out, "exited with status %d", (int)x->code);
    else
        strbuf_addf(out, "was ended by %s", sig_name(x->signal, name));
}

static const char *class_words(const struct incident *i)
{
    switch (i->class) {
    case CLASS_HEALTHY:
        return "ended";
    case CLASS_HANG:
        return "hung";
    case CLASS_STRAGGLER:
        return "was slow";
    case CLASS_INTERRUPTED:
        return "was interrupted";
    default:
        return "crashed";
    }
}

static void add_where(const struct story_attempt *a, struct strbuf *out)
{
    if (a->last_step != STEP_NONE)
        strbuf_addf(out, " after step %" PRId64, a->last_step);
    else if (a->steps_seen == 0)
        strbuf_adds(out, " before its first step");
}

/* Without its full stop: the line goes on. */
static void add_summary(const struct incident *i, struct strbuf *out)
{
    size_t n = strlen(i->summary);

    if (n > 0 && i->summary[n - 1] == '.')
        n--;
    strbuf_adds(out, ": ");
    if (n > 0)
        strbuf_add(out, i->summary, n);
    else
        strbuf_adds(out, "no cause was found");
}

void narrate_verdict(const struct story_attempt *a, struct strbuf *out)
{
    const struct incident *i = a->incident;

    if (!i)
        return;
    strbuf_addf(out, "attempt %" PRIu32 " ", a->number);
    if (i->class == CLASS_HEALTHY) {
        strbuf_adds(out, a->exited && a->exit.code == 0 ? "ended well" : "ended");
        add_where(a, out);
        return;
    }
    strbuf_adds(out, class_words(i));
    if (!strstr(i->summary, "step")) /* it often says where by itself */
        add_where(a, out);
    add_summary(i, out);
    strbuf_addf(out, " (%s, %d %%)", cause_name(i->cause), (int)i->confidence);
}

void narrate_decision(const struct story_attempt *a, struct strbuf *out)
{
    const struct decision_facts *d = &a->decision;
    char delay[DURATION_TEXT_MAX];

    if (!a->decided)
        return;
    switch (d->action) {
    case ACTION_RESTART:
    case ACTION_RESTART_EXCLUDING:
        if (d->delay > 0)
            strbuf_addf(out, "restarting in %s", duration_format(d->delay, delay));
        else
            strbuf_adds(out, "restarting now");
        break;
    case ACTION_COMPLETE:
        strbuf_adds(out, "the job is done");
        break;
    default:
        strbuf_adds(out, "stopping");
    }
    if (d->why[0])
        strbuf_addf(out, " (%s)", d->why);
}

bool narrate_finding(const struct event *e, struct strbuf *out)
{
    static const char *const words[FINDING_MAX] = {
        [FINDING_HANG_SUSPECTED] = "may hang",
        [FINDING_HANG_EXTENDED] = "may hang",
        [FINDING_HANG_UNPROVEN] = "makes no progress",
        [FINDING_HANG] = "hangs",
        [FINDING_RECOVERED] = "goes on",
    };

    if (!words[e->finding.finding])
        return false; /* a crash: the verdict says it better */
    strbuf_addf(out, "attempt %" PRIu32 " %s: %s", e->attempt, words[e->finding.finding],
                e->finding.why);
    return true;
}

void narrate_steps(const struct story_attempt *a, struct strbuf *out)
{
    if (a->first_step == STEP_NONE && a->steps_seen == 0)
        strbuf_addc(out, '-');
    else if (a->first_step == STEP_NONE)
        strbuf_addf(out, "%" PRId64 " seen", a->steps_seen);
    else
        strbuf_addf(out, "%" PRId64 "-%" PRId64, a->first_step, a->last_step);
}

static void add_ranks(const struct culprits *c, struct strbuf *out)
{
    for (uint32_t i = 0; i < c->n_ranks && i < 4; i++)
        strbuf_addf(out, "%s%d", i ? "," : ", rank ", (int)c->ranks[i]);
    if (c->n_ranks > 4)
        strbuf_adds(out, ",...");
}

void narrate_cause(const struct story_attempt *a, struct strbuf *out)
{
    const struct incident *i = a->incident;

    if (a->lost) {
        strbuf_adds(out, "reknit killed");
        return;
    }
    if (!i || i->class == CLASS_HEALTHY) {
        strbuf_addc(out, '-');
        return;
    }
    if (i->class == CLASS_HANG)
        strbuf_adds(out, "hang: ");
    strbuf_adds(out, cause_name(i->cause));
    add_ranks(&i->culprits, out);
}

void narrate_action(const struct story_run *run, const struct story_attempt *a, struct strbuf *out)
{
    char delay[DURATION_TEXT_MAX];

    if (!a->decided) {
        strbuf_adds(out, a->lost ? "died with it" : run->over ? "-" : "running");
        return;
    }
    switch (a->decision.action) {
    case ACTION_RESTART:
    case ACTION_RESTART_EXCLUDING:
        if (a->decision.delay > 0)
            strbuf_addf(out, "restart after %s", duration_format(a->decision.delay, delay));
        else
            strbuf_adds(out, "restart");
        break;
    case ACTION_COMPLETE:
        strbuf_adds(out, "done");
        break;
    default:
        strbuf_adds(out, "stop");
    }
}

/* A table whose columns are as wide as what is in them. */
struct table {
    VEC(struct strbuf) cells; /* row by row */
};

static struct strbuf *cell(struct table *t)
{
    return VEC_PUSH(&t->cells);
}

static void table_done(struct table *t)
{
    VEC_FOREACH (&t->cells, c)
        strbuf_done(c);
    VEC_DONE(&t->cells);
}

/* Columns as a terminal counts them: continuation bytes of UTF-8 take none. */
static size_t width(const char *s)
{
    size_t n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static void print_table(struct table *t, void (*line)(void *ctx, const char *text), void *ctx)
{
    size_t widths[COLUMNS] = {0};

    for (size_t i = 0; i < t->cells.n; i++)
        if (width(strbuf_str(&t->cells.v[i])) > widths[i % COLUMNS])
            widths[i % COLUMNS] = width(strbuf_str(&t->cells.v[i]));
    for (size_t row = 0; row + COLUMNS <= t->cells.n; row += COLUMNS) {
        _cleanup_strbuf_ struct strbuf b = {0};

        for (size_t c = 0; c < COLUMNS; c++) {
            const char *text = strbuf_str(&t->cells.v[row + c]);

            strbuf_adds(&b, text);
            if (c + 1 < COLUMNS)
                strbuf_addf(&b, "%*s", (int)(widths[c] - width(text) + 2), "");
        }
        line(ctx, strbuf_str(&b));
    }
}

static void add_row(struct table *t, const struct story_run *run, const struct story_attempt *a)
{
    char text[DURATION_TEXT_MAX];

    strbuf_addf(cell(t), "%" PRIu32, a->number);
    narrate_steps(a, cell(t));
    strbuf_adds(cell(t),
                duration_format(a->ended == USEC_NEVER ? a->span : a->ended - a->started, text));
    narrate_cause(a, cell(t));
    narrate_action(run, a, cell(t));
    strbuf_adds(cell(t), duration_format(a->span - a->useful, text));
}

void narrate_summary(const struct story_run *run, void (*line)(void *ctx, const char *text),
                     void *ctx)
{
    static const char *const heads[COLUMNS] = {"attempt", "steps",  "time",
                                               "cause",   "action", "time lost"};
    __attribute__((cleanup(table_done))) struct table t = {0};
    _cleanup_strbuf_ struct strbuf b = {0};
    char useful[DURATION_TEXT_MAX], wall[DURATION_TEXT_MAX];

    for (size_t i = 0; i < COLUMNS; i++)
        strbuf_adds(cell(&t), heads[i]);
    for (size_t i = 0; i < run->attempts.n; i++)
        if (i < ROWS_FIRST || i + ROWS_LAST >= run->attempts.n)
            add_row(&t, run, &run->attempts.v[i]);
        else if (i == ROWS_FIRST)
            for (size_t c = 0; c < COLUMNS; c++)
                strbuf_adds(cell(&t), "...");
    print_table(&t, line, ctx);
    if (run->wall <= 0)
        return;
    if (!story_has_steps(run)) {
        strbuf_addf(&b, "goodput unknown: no steps seen in %s", duration_format(run->wall, wall));
        line(ctx, strbuf_str(&b));
        return;
    }
    strbuf_addf(&b, "goodput %d %%: %s of %s produced steps that were kept",
                (int)(run->useful * 100 / run->wall), duration_format(run->useful, useful),
                duration_format(run->wall, wall));
    line(ctx, strbuf_str(&b));
}

void narrate_state(const struct story_run *run, bool alive, struct strbuf *out)
{
    if (run->lost || (!run->over && !alive))
        strbuf_adds(out, "killed");
    else if (!run->over)
        strbuf_adds(out, "running");
    else
        strbuf_adds(out, run->end.action == ACTION_COMPLETE ? "done" : "stopped");
}
