/* SPDX-License-Identifier: Apache-2.0 */

/* usage: replay_cases FOLDER              tests every case in it
 *        replay_cases --update CASE...    writes down what is derived now
 *        replay_cases --export JOURNAL    prints a journal as a case
 *
 * A case is a file NAME.jsonl: a sentence behind "#" that says what is right about it, then events,
 * one JSON object a line, as `reknit run` recorded them or as somebody wrote them: inputs, each
 * followed by what core is to derive from it. To add one, put it into cases/; nothing else is
 * needed. A case that somebody writes needs the inputs alone, with time_us, and no seq: --update
 * adds the rest, and the diff is there to be read. */

#include "base/cleanup.h"
#include "base/str.h"
#include "base/vec.h"
#include "core/core.h"
#include "core/model/event_fields.h"
#include "wire/codec.h"
#include "journal/journal.h"

#include <glob.h>
#include <stdio.h>

typedef VEC(struct event *) event_list;

struct kase {
    struct strbuf notes; /* the lines with "#" */
    event_list events;
};

static void case_done(struct kase *k)
{
    strbuf_done(&k->notes);
    VEC_FOREACH (&k->events, e)
        free(*e);
    VEC_DONE(&k->events);
}

static int read_event(const char *line, struct event *ret, struct err *e)
{
    json_error_t error;
    json_t *j = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    int r = j ? codec_json_event(j, ret, e) : err_set(e, -EBADMSG, "%s", error.text);

    json_decref(j);
    return r;
}

static int read_case(const char *path, struct kase *k, struct err *err)
{
    _cleanup_(fclosep) FILE *f = fopen(path, "re");
    _cleanup_(freep) char *line = NULL;
    struct event e;
    size_t cap = 0;

    if (!f)
        return err_set(err, -errno, "%s: %s", path, strerror(errno));
    for (int n = 1; getline(&line, &cap, f) > 0; n++) {
        if (line[0] == '#') {
            strbuf_adds(&k->notes, line);
            continue;
        }
        if (read_event(line, &e, err) < 0)
            return err_prefix(err, -EBADMSG, "%s:%d", path, n);
        *VEC_PUSH(&k->events) = xmemdup(&e, sizeof(e));
    }
    return 0;
}

static void write_event(FILE *f, const struct event *e)
{
    json_t *j = codec_event_json(e);

    json_dumpf(j, f, JSON_SORT_KEYS | JSON_COMPACT);
    fputc('\n', f);
    json_decref(j);
}

/* Testing */

static void explain(const char *what, const struct event *e)
{
    _cleanup_strbuf_ struct strbuf text = {0};

    fields_print(event_fields, e, &text);
    printf("# %s: %s\n", what, strbuf_str(&text));
}

/* Of a verdict, what decisions rest on; how it is worded and proven has tests of its own. */
static struct event essence(const struct event *e)
{
    struct event copy = *e;

    if (e->kind == EVENT_VERDICT) {
        copy.incident.summary[0] = copy.incident.fingerprint[0] = '\0';
        copy.incident.n_evidence = copy.incident.n_ruled_out = 0;
    }
    return copy;
}

static bool is_same(const struct event *a, const struct event *b)
{
    struct event x = essence(a), y = essence(b);
    char where[128];

    return event_differs(&x, &y, where)[0] == '\0';
}

/* Whether core derives from the input before `at` just what follows there. */
static bool same_output(const event_list *events, size_t at, const struct core_output *out)
{
    for (size_t i = 0; i < out->events.n; i++, at++) {
        bool recorded = at < events->n && !event_is_input(events->v[at]->kind);

        if (recorded && is_same(&out->events.v[i], events->v[at]))
            continue;
        if (recorded)
            explain("recorded", events->v[at]);
        explain("now     ", &out->events.v[i]);
        return false;
    }
    if (at < events->n && !event_is_input(events->v[at]->kind)) {
        explain("recorded", events->v[at]);
        return false;
    }
    return true;
}

static bool test_case(const struct kase *k)
{
    _cleanup_(core_freep) struct core *c = core_new();
    struct core_output out = {0};
    bool same = k->events.n > 0;

    for (size_t i = 0; same && i < k->events.n; i++) {
        if (!event_is_input(k->events.v[i]->kind))
            continue; /* was compared with its input */
        core_step(c, k->events.v[i], &out);
        same = same_output(&k->events, i + 1, &out);
    }
    core_output_done(&out);
    return same;
}

static bool test_file(const char *path)
{
    struct kase k = {0};
    struct err e = {0};
    bool ok = read_case(path, &k, &e) == 0;

    if (!ok)
        printf("# %s\n", e.text);
    else if (!k.notes.s || strlen(k.notes.s) < 20)
        ok = !printf("# %s: begin with a sentence that says what is right about it\n", path);
    else
        ok = test_case(&k);
    case_done(&k);
    return ok;
}

static int test_folder(const char *folder)
{
    char pattern[4096];
    glob_t g = {0};
    int failed = 0;

    STR_PRINTF(pattern, "%s/*.jsonl", folder);
    if (glob(pattern, 0, NULL, &g) != 0) {
        printf("1..1\nnot ok 1 - no case in %s\n", folder);
        return 1;
    }
    printf("1..%zu\n", g.gl_pathc);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        bool ok = test_file(g.gl_pathv[i]);

        printf("%sok %zu - %s\n", ok ? "" : "not ", i + 1, strrchr(g.gl_pathv[i], '/') + 1);
        failed += !ok;
    }
    globfree(&g);
    return failed > 0;
}

/* Writing */

typedef VEC(uint64_t) seq_list;

/* The id that the intent with the id *seq has now: the first intent is still the first. A case that
 * is written by hand counts them instead: 1 is its first intent. */
static void mend_id(const seq_list *old, const seq_list *now, uint64_t *seq)
{
    size_t i = 0;

    while (i < old->n && old->v[i] != *seq)
        i++;
    if (old->n == 0)
        i = *seq - 1;
    if (i < now->n)
        *seq = now->v[i];
}

static void mend_ids(const seq_list *old, const seq_list *now, struct event *e)
{
    if (e->kind == EVENT_RESULT)
        mend_id(old, now, &e->result.intent);
    else if (e->kind == EVENT_ATTEMPT_STARTED && e->started.intent != 0)
        mend_id(old, now, &e->started.intent);
}

static void derive_again(const struct kase *k, FILE *f)
{
    _cleanup_(core_freep) struct core *c = core_new();
    struct core_output out = {0};
    seq_list old = {0}, now = {0};
    uint64_t seq = 0;

    fputs(strbuf_str(&k->notes), f);
    VEC_FOREACH (&k->events, e)
        if ((*e)->kind == EVENT_INTENT)
            *VEC_PUSH(&old) = (*e)->seq;
    VEC_FOREACH (&k->events, e) {
        if (!event_is_input((*e)->kind))
            continue;
        (*e)->seq = ++seq;
        mend_ids(&old, &now, *e);
        core_step(c, *e, &out);
        write_event(f, *e);
        VEC_FOREACH (&out.events, d) {
            write_event(f, d);
            if (d->kind == EVENT_INTENT)
                *VEC_PUSH(&now) = d->seq;
        }
        seq += out.events.n;
    }
    VEC_DONE(&old);
    VEC_DONE(&now);
    core_output_done(&out);
}

static int update_file(const char *path)
{
    struct kase k = {0};
    struct err e = {0};
    int r = read_case(path, &k, &e);

    if (r == 0) {
        _cleanup_(fclosep) FILE *f = fopen(path, "we");

        if (f)
            derive_again(&k, f);
        else
            r = err_set(&e, -errno, "%s: %s", path, strerror(errno));
    }
    if (r < 0)
        fprintf(stderr, "%s\n", e.text);
    case_done(&k);
    return r < 0;
}

static int export_journal(const char *path)
{
    _cleanup_(journal_freep) struct journal *j = NULL;
    _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;
    struct event event;
    struct err e = {0};
    int r = journal_open(path, JOURNAL_READ, &j, &e);

    if (r == 0)
        r = journal_read(j, 0, &cursor, &e);
    puts("# (what is right about this decision?)");
    while (r >= 0 && (r = journal_next(cursor, &event, &e)) > 0)
        write_event(stdout, &event);
    if (r < 0)
        fprintf(stderr, "%s\n", e.text);
    return r < 0;
}

int main(int argc, char **argv)
{
    int failed = 0;

    if (argc == 3 && streq(argv[1], "--export"))
        return export_journal(argv[2]);
    if (argc >= 3 && streq(argv[1], "--update")) {
        for (int i = 2; i < argc; i++)
            failed += update_file(argv[i]);
        return failed > 0;
    }
    if (argc == 2)
        return test_folder(argv[1]);
    fputs("usage: replay_cases FOLDER | --update CASE... | --export JOURNAL\n", stderr);
    return 64;
}
