/* SPDX-License-Identifier: Apache-2.0 */

/* What a reader has told stands in two notes. Its marks are what it vouches for: everything before
 * them was told. Of each file it is also kept how far signals came (`seen`): the next reader begins
 * at the marks, and what it repeats is dropped until it is past that.
 *
 * A reader is its user's process. So of what it says, everything is checked: here that the job is
 * its user's and the attempt the present one, all else by reader_word.c. */

#include "source/reading.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/str.h"
#include "source/reader_word.h"

#include <string.h>

#define SIGNALS_MAX    500  /* of one job in a second */
#define COMPLAINTS_MAX 20   /* of one reader in a second: they end in a log */
#define NAMED_MAX      1024 /* files of an attempt at one place whose paths are told */
#define NAMED_WELL     64   /* ... as long as they tell of nothing but progress */
#define TROUBLES_MAX   16   /* told of an attempt at one place: they are read by people */
#define FAILURES_MAX   2    /* of a node's reader, and its jobs go elsewhere */

static struct reader_seen *seen_of(struct reading *j, uint32_t file)
{
    while (j->seen.n <= file)
        VEC_PUSH(&j->seen);
    return &j->seen.v[file];
}

/* Other readers of the attempt count from 0 too: the files of parts come behind those of home. */
static uint32_t number_of(struct reading *j, uint32_t file)
{
    struct reader_seen *s = seen_of(j, file);
    struct reading *home = reading_find(j->owner->readers, j->key);

    if (!j->part)
        return file;
    if (s->number == 0)
        s->number =
            READER_FILES_MAX +
            (home->n_numbers < READER_FILES_MAX - 1 ? home->n_numbers++ : READER_FILES_MAX - 1);
    return s->number;
}

static bool may_complain(struct reading_owner *o)
{
    return reader_rate_count(&o->complaints, mono_us()) <= COMPLAINTS_MAX;
}

static bool is_too_much(struct reading *j)
{
    unsigned n = reader_rate_count(&j->signals, mono_us());

    if (n == SIGNALS_MAX + 1)
        reading_gap(j, "its reader tells more than is listened to");
    return n > SIGNALS_MAX;
}

/* A verdict may rest on its lines: of thousands of files few are ever quoted. */
static bool is_worth_a_name(const struct reading *j, const struct signal *s)
{
    bool tells = s->kind == SIGNAL_HIT || s->kind == SIGNAL_COLLECTIVE || s->kind == SIGNAL_EXIT;

    return s->kind != SIGNAL_OUTPUT && j->n_named < (tells ? NAMED_MAX : NAMED_WELL);
}

static void tell_name(struct reading *j, struct reader_seen *seen, const struct signal *s)
{
    struct readers *r = j->owner->readers;
    char *path = seen->untold;

    if (!path || !r->handlers.named || !is_worth_a_name(j, s))
        return;
    seen->untold = NULL;
    j->n_named++;
    r->handlers.named(r->ctx, j->key, j->attempt, s->file, path, NULL);
    free(path);
}

/* The end of a path says more than its beginning. */
char *reading_shorten(const char *path)
{
    size_t len = strlen(path);
    const char *end = path;

    if (len < LOG_PATH_LEN)
        return xstrdup(path);
    end += len - (LOG_PATH_LEN - sizeof("..."));
    while ((*end & 0xC0) == 0x80) /* within a character */
        end++;
    return xasprintf("...%s", end);
}

/* Whoever was told that it cannot be read is told when it can. */
static void tell_trouble(struct reading *j, struct reader_seen *seen, uint32_t number,
                         const struct reader_file *f)
{
    const struct readers *r = j->owner->readers;
    bool trouble = *f->trouble != '\0';
    _cleanup_(freep) char *path = NULL;

    if (!r->handlers.named || trouble == seen->in_trouble ||
        (trouble && j->n_troubles >= TROUBLES_MAX))
        return;
    j->n_troubles += trouble;
    seen->in_trouble = trouble;
    path = reading_shorten(f->path);
    r->handlers.named(r->ctx, j->key, j->attempt, number, path, f->trouble);
}

static void take_signal(struct reading *j, const json_t *t)
{
    struct readers *r = j->owner->readers;
    struct signal *s = &r->decoded.signal;
    struct reader_seen *seen;

    if (!reader_word_signal(t, &r->decoded)) {
        if (may_complain(j->owner))
            reading_gap(j, "its reader told something that is no signal of a log");
        return;
    }
    seen = seen_of(j, s->file);
    if (reader_seen_is_repeated(seen, s->offset) || is_too_much(j))
        return;
    reader_seen_note(seen, s->offset);
    s->file = number_of(j, s->file);
    tell_name(j, seen, s);
    r->counts.signals++;
    r->handlers.signal(r->ctx, j->key, j->attempt, s);
}

static void take_file(struct reading *j, const json_t *t)
{
    struct readers *r = j->owner->readers;
    struct reader_file f;
    struct reader_seen *seen;
    uint32_t number;
    uint64_t hash;

    if (!reader_word_file(t, &f))
        return;
    number = number_of(j, f.file);
    seen = seen_of(j, f.file);
    hash = hash_bytes(HASH_INIT, f.path, strlen(f.path));
    if (seen->path != hash) {
        reader_seen_forget(seen);
        seen->path = hash;
        seen->in_trouble = false;
        free(seen->untold);
        seen->untold = reading_shorten(f.path);
    }
    reading_note_file(j, seen, &f);
    if (*f.trouble && !may_complain(j->owner))
        return;
    j->nowhere &= *f.trouble != '\0';
    tell_trouble(j, seen, number, &f);
    r->handlers.file(r->ctx, j->key, j->attempt, number, f.path, *f.trouble ? f.trouble : NULL);
    if (!*f.trouble)
        reading_settle_file(j, f.path, f.local);
}

static void take_anew(struct reading *j, const json_t *t)
{
    uint32_t file;

    if (reader_word_number(t, &file))
        reader_seen_forget(seen_of(j, file));
}

static void take_gap(const struct reading *j, const json_t *t)
{
    char text[512];

    if (!may_complain(j->owner)) {
        j->owner->readers->counts.gaps++;
        return;
    }
    reader_word_text(t, "text", text, sizeof(text));
    reading_gap(j, text);
}

static bool is_drained(const struct readers *r, const char *key)
{
    for (size_t i = reading_place(r, key); i < r->jobs.n && streq(r->jobs.v[i]->key, key); i++)
        if (r->jobs.v[i]->draining)
            return false;
    return true;
}

/* It is not there: whoever else has told of it, has it. */
static void take_left(struct reading *j, const json_t *t)
{
    const char *path = json_string_value(json_object_get(t, "path"));
    json_t *tellers = path ? told_files_leave(j->files, path) : NULL;

    if (tellers) {
        j->owner->n_files--;
        reading_place_file(reading_find(j->owner->readers, j->key), path, tellers, j->owner->node);
    }
    json_decref(tellers);
}

/* A reader says so once of a job. To look for another place all agents are asked about, so one that
 * goes on saying it is not listened to. */
static void take_nowhere(struct reading *j)
{
    j->nowhere = true;
    if (!*j->owner->node && may_complain(j->owner))
        reading_elsewhere(j, NULL);
}

static void take_full(struct reading *j)
{
    if (j->refused)
        return;
    j->refused = true;
    reading_tell_read(j);
    reading_gap(j, "its logs are not read as long as so many others of its user are");
}

static void take_about(struct reading_owner *o, struct reading *j, const char *kind,
                       const json_t *t)
{
    struct readers *r = o->readers;

    if (streq(kind, "signal")) {
        take_signal(j, t);
    } else if (streq(kind, "marks")) {
        reader_marks_merge(j->marks, json_object_get(t, "marks"));
        reader_state_changed(r->state);
    } else if (streq(kind, "file")) {
        take_file(j, t);
    } else if (streq(kind, "anew")) {
        take_anew(j, t);
    } else if (streq(kind, "gap")) {
        take_gap(j, t);
    } else if (streq(kind, "full")) {
        take_full(j);
    } else if (streq(kind, "nowhere")) {
        take_nowhere(j);
    } else if (streq(kind, "left")) {
        take_left(j, t);
    } else if (streq(kind, "drained") && j->draining) {
        j->draining = false;
        if (is_drained(r, j->key))
            r->handlers.drained(r->ctx, j->key, j->attempt);
    }
}

static void tell_state(void *ctx, const char *text)
{
    struct reading_owner *o = ctx;
    bool runs = streq(text, "running");

    if (runs)
        o->failures = 0;
    STR_COPY(o->trouble, runs ? "" : text);
    o->readers->handlers.reader_state(o->readers->ctx, o->uid, o->node, text);
}

static void take_own(struct reading_owner *o, const char *kind, const json_t *t)
{
    char text[256];

    if (json_is_false(json_object_get(t, "ok")) || (kind && streq(kind, "failed"))) {
        reader_word_text(t, "text", text, sizeof(text));
        if (may_complain(o))
            tell_state(o, text);
    }
}

static void take_said(void *ctx, const json_t *t)
{
    struct reading_owner *o = ctx;
    const char *kind = json_string_value(json_object_get(t, "kind"));
    const char *key = json_string_value(json_object_get(t, "job"));
    struct reading *j = key ? reading_find_at(o, key) : NULL;

    if (!kind || !key)
        take_own(o, kind, t);
    else if (j && json_integer_value(json_object_get(t, "attempt")) == (json_int_t)j->attempt)
        take_about(o, j, kind, t);
}

/* A node's reader that was merely killed is there again at once. */
static void take_end(void *ctx, const char *why)
{
    struct reading_owner *o = ctx;
    struct readers *r = o->readers;

    r->counts.replaced++;
    tell_state(o, why);
    o->failures += *o->node != '\0';
    for (size_t i = 0; o->failures >= FAILURES_MAX && i < r->jobs.n; i++)
        if (r->jobs.v[i]->owner == o && !r->jobs.v[i]->part)
            reading_elsewhere(r->jobs.v[i], o->node);
    reading_tell_all(o);
}

const struct reader_process_handlers reading_handlers = {.started = reading_ask_all,
                                                         .runs = reading_tell_all,
                                                         .said = take_said,
                                                         .state = tell_state,
                                                         .ended = take_end};
