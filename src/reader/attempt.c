/* SPDX-License-Identifier: Apache-2.0 */

/* A file is looked at when inotify says so, and where it cannot (network file systems), ever more
 * rarely the longer it is quiet. Literal paths are streams from the beginning, wild ones once
 * something fits; they are sought again when a folder changes, and ever more rarely.
 *
 * A file that was last written before the attempt began does not belong to what a wild path means:
 * it is another job's.
 *
 * Folders that are missing are told: this may be a host that has no such file system, and another
 * reader elsewhere does better. That a file is missing says nothing, it may be late.
 *
 * Marks are told only in moments in which the coalescer holds nothing, so that what stands before
 * them is out. After an attempt was drained, what comes is told (file systems deliver late, and it
 * may go on after all), but the marks stay: it may also be the next attempt's. Text that begins
 * anew then is; it ends the reading. */

#include "reader/attempt.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/vec.h"
#include "reader/find.h"
#include "reader/pattern.h"
#include "source/coalesce.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define LOCAL_EVERY  (10 * USEC_PER_SEC) /* although inotify would tell */
#define QUICK_EVERY  (500 * USEC_PER_MSEC)
#define SLOW_EVERY   (4 * USEC_PER_SEC)
#define ABSENT_EVERY (2 * USEC_PER_SEC)
#define ABSENT_LAST  (20 * USEC_PER_SEC)   /* a folder's notice comes sooner, where there are any */
#define SEEK_SOON    (500 * USEC_PER_MSEC) /* least time between two searches */
#define SEEK_FIRST   USEC_PER_SEC
#define SEEK_LAST    (30 * USEC_PER_SEC)
#define SLEEP_AFTER  (60 * USEC_PER_SEC)
#define UNTOLD_MAX   (5 * USEC_PER_SEC) /* marks come at least so often */
#define TURN_US      (100 * USEC_PER_MSEC)
#define FOLDERS_MAX  64
#define SLACK_US     (2 * USEC_PER_SEC)
#define LEAVE_US     (2 * USEC_PER_SEC) /* a file that is told of is there by then */
#define LACK_US      USEC_PER_SEC /* a folder that is missing so long, is: mounts take a moment */

struct pattern {
    char *path; /* "" = none stands for the file */
    enum stream_mode mode;
    bool wild;
};

struct entry_file {
    struct stream *stream;
    usec_t due;
    unsigned absences; /* looks in a row that found nothing to read */
    int number;        /* of the notice */
    bool pending;      /* has to be read to its end for the drain */
    usec_t added;      /* somebody said that it is there; 0 = nobody did */
};

struct mark_list {
    VEC(struct attempt_mark) v;
};

struct attempt {
    struct attempt_options options;
    struct attempt_handlers handlers;
    void *ctx;
    VEC(struct pattern) patterns;
    VEC(struct entry_file) files;
    VEC(int) folders; /* numbers of the notice */
    struct mark_list resumed, before, beside;
    struct coalesce *coalesce;
    uint32_t next_file;
    usec_t held_until, told_at, seek_at, seek_every, sought_at;
    usec_t lacking_since; /* a folder is missing; 0 = none is */
    bool told_lack;
    size_t turn; /* the file that is to be read first */
    bool draining, drained, over, marks_due, full, leave;
};

static void marks_done(struct mark_list *l)
{
    VEC_FOREACH (&l->v, m)
        free(m->path);
    VEC_DONE(&l->v);
}

static void on_coalesced(void *ctx, const struct signal *s)
{
    struct attempt *a = ctx;

    a->handlers.signal(a->ctx, s);
}

struct attempt *attempt_new(const struct attempt_options *o,
                            const struct attempt_handlers *handlers, void *ctx)
{
    struct attempt *a = xnew(struct attempt);

    a->options = *o;
    a->handlers = *handlers;
    a->ctx = ctx;
    a->coalesce = coalesce_new(on_coalesced, a);
    a->seek_every = SEEK_FIRST;
    a->held_until = USEC_NEVER;
    return a;
}

static void drop_notices(struct attempt *a)
{
    VEC_FOREACH (&a->files, f) {
        notice_drop(a->options.notice, f->number);
        f->number = NOTICE_NONE;
    }
    VEC_FOREACH (&a->folders, folder)
        notice_drop(a->options.notice, *folder);
    VEC_DONE(&a->folders);
}

struct attempt *attempt_free(struct attempt *a)
{
    if (!a)
        return NULL;
    drop_notices(a);
    VEC_FOREACH (&a->files, f)
        stream_free(f->stream);
    VEC_DONE(&a->files);
    VEC_FOREACH (&a->patterns, p)
        free(p->path);
    VEC_DONE(&a->patterns);
    marks_done(&a->resumed);
    marks_done(&a->before);
    marks_done(&a->beside);
    coalesce_free(a->coalesce);
    free(a);
    return NULL;
}

/* ---- its files ---- */

static void on_signal(void *ctx, const struct signal *s)
{
    struct attempt *a = ctx;

    if (!a->over)
        coalesce_signal(a->coalesce, s, mono_us());
}

static void on_gap(void *ctx, const char *path, const char *text)
{
    struct attempt *a = ctx;

    a->handlers.gap(a->ctx, path, text);
}

/* What is held was there before. */
static void on_anew(void *ctx, uint32_t file)
{
    struct attempt *a = ctx;

    a->held_until = coalesce_flush(a->coalesce, mono_us(), true);
    if (!a->drained)
        a->handlers.anew(a->ctx, file);
    a->over |= a->drained;
}

static bool is_read(const struct attempt *a, uint64_t dev, uint64_t ino)
{
    VEC_FOREACH (&a->files, f)
        if (tail_ino(stream_tail(f->stream)) == ino && tail_dev(stream_tail(f->stream)) == dev)
            return true;
    return false;
}

/* The stream that asks has the file open already: two streams are one too many. */
static bool on_opened(void *ctx, const char *path, uint64_t dev, uint64_t ino)
{
    const struct attempt *a = ctx;
    unsigned n = 0;

    VEC_FOREACH (&a->files, f)
        n += tail_ino(stream_tail(f->stream)) == ino && tail_dev(stream_tail(f->stream)) == dev;
    return n <= 1;
}

static void on_trouble(void *ctx, uint32_t file, const char *path, const char *text)
{
    struct attempt *a = ctx;

    bool local = false;

    VEC_FOREACH (&a->files, f)
        local |= stream_file(f->stream) == file && tail_ino(stream_tail(f->stream)) != 0 &&
                 !tail_is_remote(stream_tail(f->stream));
    a->handlers.file(a->ctx, file, path, text, local);
}

static const struct attempt_mark *find_mark(const struct mark_list *l, const char *path)
{
    VEC_FOREACH (&l->v, m)
        if (streq(m->path, path))
            return m;
    return NULL;
}

static const struct entry_file *find_file(const struct attempt *a, const char *path)
{
    VEC_FOREACH (&a->files, f)
        if (streq(stream_path(f->stream), path))
            return f;
    return NULL;
}

/* Where another job's text ends in it, whether that is still read or not. */
static void find_other(const struct attempt *a, const char *path, struct tail_mark *ret)
{
    const struct attempt_mark *beside = find_mark(&a->beside, path);

    if (a->handlers.elsewhere && a->handlers.elsewhere(a->ctx, path, ret))
        return;
    if (beside)
        *ret = beside->mark;
}

static struct entry_file *add_file(struct attempt *a, const char *path, const struct pattern *p)
{
    static const struct stream_handlers handlers = {.signal = on_signal,
                                                    .gap = on_gap,
                                                    .anew = on_anew,
                                                    .opened = on_opened,
                                                    .trouble = on_trouble};
    const struct attempt_mark *mark = find_mark(&a->resumed, path);
    const struct attempt_mark *before = find_mark(&a->before, path);
    char node[NODE_NAME_LEN];
    struct stream_begin begin = {.started_us = a->options.started_us,
                                 .owner = a->options.owner,
                                 .mode = p->mode,
                                 .node = node,
                                 .unnamed = !*p->path};
    struct entry_file *f;

    if (a->files.n == ATTEMPT_FILES_MAX) {
        if (!a->full)
            a->handlers.gap(a->ctx, path, "the attempt has more files than are followed");
        a->full = true;
        return NULL;
    }
    pattern_host(p->path, path, node, sizeof(node));
    if (mark)
        begin.mark = mark->mark;
    if (before)
        begin.before = before->mark;
    begin.own = a->options.own_number > 0 && str_has_number(path, a->options.own_number);
    find_other(a, path, &begin.other);
    f = VEC_PUSH(&a->files);
    f->stream = stream_new(a->options.matcher, mark ? mark->file : a->next_file++, path, &begin,
                           &handlers, a);
    f->number = NOTICE_NONE;
    f->pending = a->draining;
    return f;
}

int attempt_add_path(struct attempt *a, const char *path, enum stream_mode mode)
{
    _cleanup_strbuf_ struct strbuf literal = {0};
    struct pattern *p;

    VEC_FOREACH (&a->patterns, known)
        if (streq(known->path, path))
            return 0;
    if (a->patterns.n == ATTEMPT_PATTERNS_MAX)
        return -E2BIG;
    p = VEC_PUSH(&a->patterns);
    p->path = xstrdup(path);
    p->mode = mode;
    p->wild = pattern_is_wild(path);
    a->seek_at = 0;
    if (p->wild)
        return 0;
    pattern_literal(path, strlen(path), &literal);
    if (!find_file(a, strbuf_str(&literal)))
        add_file(a, strbuf_str(&literal), p);
    return 0;
}

static void add_mark(struct mark_list *l, const struct attempt_mark *m)
{
    struct attempt_mark *own;

    if (l->v.n == ATTEMPT_FILES_MAX)
        return;
    own = VEC_PUSH(&l->v);
    *own = *m;
    own->path = xstrdup(m->path);
}

void attempt_add_file(struct attempt *a, const char *path)
{
    const struct pattern any = {.path = (char *)"", .mode = STREAM_MODE_UNKNOWN}, *known = &any;
    char node[NODE_NAME_LEN];
    struct entry_file *f;

    if (find_file(a, path))
        return;
    VEC_FOREACH (&a->patterns, p)
        if (p->wild && pattern_host(p->path, path, node, sizeof(node)))
            known = p;
    f = add_file(a, path, known);
    if (f)
        f->added = mono_us();
}

void attempt_leave(struct attempt *a, bool leave)
{
    a->leave = leave;
}

void attempt_add_resumed(struct attempt *a)
{
    VEC_FOREACH (&a->resumed.v, m)
        attempt_add_file(a, m->path);
}

void attempt_resume(struct attempt *a, const struct attempt_mark *m)
{
    add_mark(&a->resumed, m);
    if (m->file >= a->next_file)
        a->next_file = m->file + 1;
}

void attempt_follow_up(struct attempt *a, const struct attempt_mark *m)
{
    add_mark(&a->before, m);
}

void attempt_beside(struct attempt *a, const struct attempt_mark *m)
{
    add_mark(&a->beside, m);
}

/* ---- searching ---- */

struct search {
    struct attempt *attempt;
    const struct pattern *pattern;
};

static void on_found(void *ctx, const char *path)
{
    const struct search *s = ctx;
    struct attempt *a = s->attempt;
    struct stat st;

    if (find_file(a, path) || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    if ((usec_t)st.st_mtim.tv_sec * USEC_PER_SEC < a->options.started_us - SLACK_US &&
        !find_mark(&a->resumed, path))
        return;
    if (is_read(a, st.st_dev, st.st_ino))
        return;
    add_file(a, path, s->pattern);
    a->seek_every = SEEK_FIRST;
}

static void on_folder(void *ctx, const char *path)
{
    struct attempt *a = ctx;
    int number = notice_folder(a->options.notice, path);

    bool known = false;

    VEC_FOREACH (&a->folders, folder)
        known |= *folder == number;
    if (known || a->folders.n == FOLDERS_MAX)
        notice_drop(a->options.notice, number);
    else if (number != NOTICE_NONE)
        *VEC_PUSH(&a->folders) = number;
}

static bool is_complete(const struct attempt *a)
{
    VEC_FOREACH (&a->patterns, p)
        if (p->wild)
            return false;
    VEC_FOREACH (&a->files, f)
        if (tail_ino(stream_tail(f->stream)) == 0)
            return false;
    return true;
}

static const char *missing_folder(const struct attempt *a)
{
    VEC_FOREACH (&a->patterns, p)
        if (!find_has_folder(p->path))
            return p->path;
    return NULL;
}

static void look_for_folders(struct attempt *a, usec_t now)
{
    const char *path = missing_folder(a);

    if (!path) {
        a->lacking_since = 0;
        a->told_lack = false;
        return;
    }
    if (a->lacking_since == 0)
        a->lacking_since = now;
    if (a->told_lack || (!a->draining && now - a->lacking_since < LACK_US))
        return;
    a->told_lack = true;
    a->handlers.nowhere(a->ctx, path);
}

static void seek(struct attempt *a, usec_t now)
{
    if (a->handlers.nowhere)
        look_for_folders(a, now);
    VEC_FOREACH (&a->patterns, p) {
        struct search s = {a, p};

        find_folders(p->path, FOLDERS_MAX, on_folder, a);
        if (p->wild && !find_files(p->path, ATTEMPT_FILES_MAX, on_found, &s) && !a->full) {
            a->handlers.gap(a->ctx, "", "there are more files of that name than are looked at");
            a->full = true;
        }
    }
    a->sought_at = now;
    a->seek_at = now + a->seek_every;
    a->seek_every = a->seek_every * 2 > SEEK_LAST ? SEEK_LAST : a->seek_every * 2;
    if (is_complete(a))
        a->seek_at = USEC_NEVER;
}

/* ---- reading ---- */

/* Of many quiet files, all are looked at in one moment: that wakes the process once. */
static usec_t in_step(usec_t due)
{
    return due + USEC_PER_SEC - due % USEC_PER_SEC;
}

/* Of one that is read by another name already there is nothing to read either. */
static usec_t next_look(struct entry_file *f, usec_t now)
{
    const struct tail *t = stream_tail(f->stream);
    usec_t quiet = now - stream_grew_at(f->stream), every;

    f->absences = tail_ino(t) == 0 ? f->absences + 1 : 0;
    if (f->absences > 0) {
        every = ABSENT_EVERY * f->absences / 4;
        return in_step(now + (every < ABSENT_EVERY  ? ABSENT_EVERY
                              : every < ABSENT_LAST ? every
                                                    : ABSENT_LAST));
    }
    if (f->number != NOTICE_NONE && !tail_is_remote(t))
        return in_step(now + LOCAL_EVERY);
    every = quiet / 8;
    if (every < USEC_PER_SEC)
        return now + (every < QUICK_EVERY ? QUICK_EVERY : every);
    return in_step(now + (every > SLOW_EVERY ? SLOW_EVERY : every));
}

static bool watch_file(struct attempt *a, struct entry_file *f)
{
    int number = notice_file(a->options.notice, tail_fd(stream_tail(f->stream)));

    notice_drop(a->options.notice, f->number);
    f->number = number;
    return number != NOTICE_NONE;
}

static void read_file(struct attempt *a, struct entry_file *f, usec_t now)
{
    uint64_t ino = tail_ino(stream_tail(f->stream));
    bool more = stream_read(f->stream, true);

    a->marks_due = true;
    f->due = more ? now : next_look(f, now);
    if (tail_ino(stream_tail(f->stream)) != ino && watch_file(a, f))
        f->due = now; /* for what came before it was watched */
    f->pending &= more;
    if (!more && now - stream_grew_at(f->stream) > SLEEP_AFTER)
        stream_sleep(f->stream);
}

static bool is_pending(const struct attempt *a)
{
    VEC_FOREACH (&a->files, f)
        if (f->pending)
            return true;
    return false;
}

static void tell_marks(struct attempt *a, usec_t now)
{
    if (!a->marks_due || a->held_until != USEC_NEVER || a->drained)
        return;
    a->marks_due = false;
    a->told_at = now;
    a->handlers.marks(a->ctx);
}

static void flush(struct attempt *a, usec_t now, bool all)
{
    if (now - a->told_at > UNTOLD_MAX)
        all = true;
    a->held_until = coalesce_flush(a->coalesce, now, all);
    tell_marks(a, now);
}

static void end_drain(struct attempt *a, usec_t now)
{
    VEC_FOREACH (&a->files, f)
        stream_finish(f->stream);
    a->draining = false;
    a->marks_due = true;
    flush(a, now, true);
    a->drained = true;
    a->handlers.drained(a->ctx);
}

void attempt_drain(struct attempt *a)
{
    if (a->over) { /* all of it was read before the text of the next one took its place */
        a->handlers.drained(a->ctx);
        return;
    }
    a->draining = true;
    a->drained = false;
    a->seek_at = 0;
    VEC_FOREACH (&a->files, f) {
        f->pending = true;
        f->due = 0;
    }
}

/* What is due, for a while; the others are first the next time. */
static void read_files(struct attempt *a, usec_t now)
{
    for (size_t i = 0; i < a->files.n; i++) {
        struct entry_file *f = &a->files.v[(a->turn + i) % a->files.n];

        if (now < f->due)
            continue;
        read_file(a, f, now);
        if (mono_us() - now > TURN_US) {
            a->turn = (a->turn + i + 1) % a->files.n;
            return;
        }
    }
}

/* Whoever told of them sees another file system than we do. */
static void leave_absent(struct attempt *a, usec_t now)
{
    for (size_t i = a->files.n; i > 0; i--) {
        struct entry_file *f = &a->files.v[i - 1];
        struct stream *s = f->stream;

        if (f->added == 0 || !stream_is_absent(s) || (!a->draining && now < f->added + LEAVE_US))
            continue;
        notice_drop(a->options.notice, f->number);
        VEC_REMOVE(&a->files, i - 1);
        a->handlers.left(a->ctx, stream_path(s));
        stream_free(s);
    }
}

usec_t attempt_run(struct attempt *a, usec_t now)
{
    usec_t due;

    if (a->over) {
        drop_notices(a);
        return USEC_NEVER;
    }
    if (now >= a->seek_at)
        seek(a, now);
    read_files(a, now);
    if (a->leave)
        leave_absent(a, now);
    if (a->draining && !is_pending(a))
        end_drain(a, now);
    else
        flush(a, now, false);
    due = a->seek_at < a->held_until ? a->seek_at : a->held_until;
    VEC_FOREACH (&a->files, f)
        due = f->due < due ? f->due : due;
    return due;
}

bool attempt_changed(struct attempt *a, int number)
{
    usec_t soon = a->sought_at + SEEK_SOON;
    bool is_mine = false;

    VEC_FOREACH (&a->files, f)
        if (f->number == number || number == NOTICE_NONE) {
            f->due = 0;
            is_mine = true;
        }
    VEC_FOREACH (&a->folders, folder)
        if (*folder == number || number == NOTICE_NONE) {
            a->seek_at = soon < a->seek_at ? soon : a->seek_at;
            VEC_FOREACH (&a->files, f) /* it may be there, or be another, by now */
                f->due = soon < f->due ? soon : f->due;
            return true;
        }
    return is_mine;
}

void attempt_marks(struct attempt *a, attempt_mark_fn fn, void *ctx)
{
    VEC_FOREACH (&a->files, f) {
        struct attempt_mark m = {.file = stream_file(f->stream),
                                 .path = (char *)stream_path(f->stream)};

        if (stream_mark(f->stream, &m.mark))
            fn(ctx, &m);
    }
}

void attempt_end(struct attempt *a, usec_t next_us, attempt_mark_fn fn, void *ctx)
{
    VEC_FOREACH (&a->files, f) {
        struct attempt_mark m = {.file = stream_file(f->stream),
                                 .path = (char *)stream_path(f->stream)};

        if (stream_mark_at(f->stream, next_us > 0 ? next_us : USEC_NEVER, &m.mark))
            fn(ctx, &m);
    }
}

bool attempt_was_at(const struct attempt *a, const char *path, usec_t when_us,
                    struct tail_mark *ret)
{
    const struct entry_file *f = find_file(a, path);

    return f && stream_mark_at(f->stream, when_us > 0 ? when_us : USEC_NEVER, ret);
}

size_t attempt_files(const struct attempt *a)
{
    return a->files.n;
}

size_t attempt_awake(const struct attempt *a)
{
    size_t n = 0;

    VEC_FOREACH (&a->files, f)
        n += stream_is_awake(f->stream);
    return n;
}

void attempt_sleep(struct attempt *a, usec_t before)
{
    VEC_FOREACH (&a->files, f)
        if (stream_grew_at(f->stream) < before)
            stream_sleep(f->stream);
}
