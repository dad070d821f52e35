/* SPDX-License-Identifier: Apache-2.0 */

/* A scanner counts bytes and lines from where it was begun; here they become those of the file.
 *
 * The safe place is behind the last line that is whole: what was before it has been told. A scanner
 * that begins there would not know what a traceback is about, or whose lines these are. So it
 * begins some KiB earlier, and what it says about text before the safe place is dropped
 * (`told`). That makes scanners cheap to put away: one of a quiet log is, and of too many.
 *
 * Where an attempt begins in a file that is there already, by the first that holds:
 */
/* clang-format off */
/*
 *   its own mark fits                                     there
 *   it has one                                            at 0: the file was written anew
 *   the mark of the attempt before fits                   there, and at 0 should the file be cut
 *   there is one                                          at 0: that attempt read another text
 *   the mark of another job in that file fits             there, likewise
 *   the file was last written before the attempt began    at the end, likewise
 *   it is older, and not known to be truncated by each    at the end, and a gap is told: where this
 *     attempt, nor this attempt's by its name               attempt's text begins cannot be seen
 *   else                                                  at 0
 */
/* clang-format on */

#include "reader/stream.h"

#include "base/alloc.h"
#include "base/str.h"
#include "extract/scanner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define READ_BYTES    ((size_t)256 << 10)  /* a block of the scanner */
#define TURN_US       (50 * USEC_PER_MSEC) /* then it is another stream's turn */
#define PLACES_MAX    64
#define PROBE_BYTES   4096                 /* at the beginning, of a file that may be data */
#define BURST_US      (20 * USEC_PER_MSEC) /* of what comes so soon one after the other, the last */
#define CONTEXT_BYTES ((size_t)16 << 10)
#define UNSAFE_MAX    ((uint64_t)128 << 10) /* of a line without an end; then it counts as safe */
#define SLACK_US      (2 * USEC_PER_SEC)    /* clocks of file servers, and whole seconds */

/* Where reading was, and when. */
struct place {
    usec_t when_us;
    bool is_kept; /* a beginning, or the end as far as is known */
    struct tail_mark mark;
};

struct stream {
    struct matcher *matcher;
    struct stream_handlers handlers;
    void *ctx;
    uint32_t file;
    char *path;
    struct stream_begin begin;
    struct entity who; /* prints what does not say by whom it is */
    struct tail *tail;
    bool placed; /* a file is open, and reading goes on at the tail's offset */
    bool data;   /* it is no text: given up */
    bool absent;
    struct scanner *scanner;
    uint64_t base, base_line; /* of the scanner's first byte */
    uint64_t told;            /* signals before it were told */
    uint64_t floor;           /* what is before it is not this attempt's, or no text */
    uint64_t line;            /* of the next byte */
    uint64_t safe, safe_line;
    struct tail_mark marked; /* the last that was asked for */
    usec_t grew_at;
    struct place places[PLACES_MAX]; /* the newest last */
    unsigned n_places;
    int trouble; /* errno that was told, 0 = none */
};

static char read_buffer[READ_BYTES]; /* one process, one thread, one read at a time */

struct stream *stream_new(struct matcher *m, uint32_t file, const char *path,
                          const struct stream_begin *begin, const struct stream_handlers *handlers,
                          void *ctx)
{
    struct stream *s = xnew(struct stream);

    s->matcher = m;
    s->file = file;
    s->path = xstrdup(path);
    s->begin = *begin;
    s->who = (struct entity){.rank = RANK_NONE, .local_rank = RANK_NONE};
    STR_COPY(s->who.node, begin->node ? begin->node : "");
    s->handlers = *handlers;
    s->ctx = ctx;
    s->tail = tail_new(path, begin->owner);
    return s;
}

struct stream *stream_free(struct stream *s)
{
    if (!s)
        return NULL;
    scanner_free(s->scanner);
    tail_free(s->tail);
    free(s->path);
    free(s);
    return NULL;
}

static void on_signal(void *ctx, const struct signal *found)
{
    struct stream *s = ctx;
    struct signal told;

    if (found->kind == SIGNAL_HIT && found->role == ROLE_NOISE)
        return;
    if (s->base + found->offset < s->told)
        return;
    told = *found;
    told.offset += s->base;
    told.line += s->base_line - 1;
    s->handlers.signal(s->ctx, &told);
}

/* ---- where to begin ---- */

static void note_place(struct stream *s)
{
    usec_t now = now_us();
    unsigned n = s->n_places;

    if (n > 0 && now - s->places[n - 1].when_us < BURST_US && !s->places[n - 1].is_kept) {
        n--;
    } else if (n == PLACES_MAX) {
        memmove(&s->places[0], &s->places[1], (PLACES_MAX - 1) * sizeof(s->places[0]));
        n--;
    }
    s->places[n] = (struct place){.when_us = now};
    tail_here(s->tail, s->line, &s->places[n].mark);
    s->n_places = n + 1;
}

static void place(struct stream *s, uint64_t offset, uint64_t line)
{
    s->scanner = scanner_free(s->scanner);
    tail_place(s->tail, offset);
    s->safe = s->told = s->floor = offset;
    s->line = s->safe_line = line > 0 ? line : 1;
    s->placed = true;
    s->n_places = 0;
    note_place(s);
    s->places[0].is_kept = true;
}

static void tell_gap(struct stream *s, const char *text)
{
    s->handlers.gap(s->ctx, s->path, text);
}

/* Whether the text may begin with that of others, as far as can be told. A file system that does
 * not keep when a file was born leaves only the mode to go by. */
static bool may_hold_others(const struct stream *s)
{
    usec_t born = tail_born(s->tail);

    if (s->begin.own || s->begin.started_us <= 0 || s->begin.mode == STREAM_MODE_TRUNCATE)
        return false;
    if (born == USEC_UNKNOWN)
        return s->begin.mode == STREAM_MODE_APPEND;
    return born < s->begin.started_us - SLACK_US;
}

/* Nothing is known about the file from before. */
static void place_unknown(struct stream *s)
{
    usec_t started = s->begin.started_us;

    if (started > 0 && tail_written(s->tail) < started - SLACK_US) {
        place(s, tail_size(s->tail), 1);
    } else if (may_hold_others(s)) {
        tell_gap(s, "it was being appended to when reading began: what this attempt wrote before "
                    "cannot be told from what was there");
        place(s, tail_size(s->tail), 1);
    } else {
        place(s, 0, 1);
    }
}

static void place_first(struct stream *s)
{
    const struct tail_mark *mark = &s->begin.mark, *before = &s->begin.before;
    const struct tail_mark *other = &s->begin.other;

    if (mark->ino != 0 && tail_knows(s->tail, mark)) {
        place(s, mark->offset, mark->line);
        s->floor = 0;
    } else if (mark->ino != 0) {
        tell_gap(s, "it was replaced or written anew while nobody read it");
        s->handlers.anew(s->ctx, s->file);
        place(s, 0, 1);
    } else if (before->ino != 0 && tail_knows(s->tail, before)) {
        place(s, before->offset, before->line);
    } else if (before->ino != 0) {
        place(s, 0, 1);
    } else if (other->ino != 0 && tail_knows(s->tail, other)) {
        place(s, other->offset, other->line);
    } else {
        place_unknown(s);
    }
    s->begin.mark.ino = s->begin.before.ino = s->begin.other.ino =
        0; /* from here on the stream knows more */
    s->begin.started_us = 0;
}

static const char *trouble_text(int e)
{
    switch (e) {
    case EMEDIUMTYPE:
        return "it is no regular file";
    case EPERM:
        return "it lies where others can put a file, and is not the user's own";
    case EMLINK:
        return "it lies where others can put a file, and is a symbolic link";
    case EILSEQ:
        return "it begins with data, not with text, and is not read on";
    default:
        return strerror(e);
    }
}

static void tell_trouble(struct stream *s, int e)
{
    if (e == s->trouble)
        return;
    s->trouble = e;
    s->handlers.trouble(s->ctx, s->file, s->path, e == 0 ? NULL : trouble_text(e));
}

/* ---- reading ---- */

static size_t smaller(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

static void wake(struct stream *s)
{
    size_t context = smaller(s->safe - s->floor, CONTEXT_BYTES);
    struct scanner_options o = {
        .file = s->file, .provenance = PROVENANCE_JOB_TEXT, .who = &s->who, .now_us = now_us()};

    tail_place(s->tail, s->safe);
    s->told = s->base = s->safe;
    s->line = s->base_line = s->safe_line;
    s->scanner = scanner_new(s->matcher, &o, on_signal, s);
    if (context == 0)
        return;
    tail_place(s->tail, s->safe - context);
    if (tail_read(s->tail, read_buffer, context) == (ssize_t)context) {
        uint64_t lines = str_count(read_buffer, context, '\n');

        s->base -= context;
        s->base_line = s->safe_line > lines ? s->safe_line - lines : 1;
        scanner_feed(s->scanner, read_buffer, context);
    } else {
        tail_place(s->tail, s->safe);
    }
}

static const char *last_end(const char *data, size_t len)
{
    const char *lf = memrchr(data, '\n', len), *from = lf ? lf : data;
    const char *cr = memrchr(from, '\r', (size_t)(data + len - from));

    return cr ? cr : lf;
}

static void take(struct stream *s, const char *data, size_t len)
{
    const char *end = last_end(data, len);

    scanner_feed(s->scanner, data, len);
    s->line += str_count(data, len, '\n');
    if (end)
        s->safe = tail_offset(s->tail) - (uint64_t)(data + len - (end + 1));
    else if (tail_offset(s->tail) - s->safe > UNSAFE_MAX)
        s->safe = tail_offset(s->tail);
    else
        return;
    s->safe_line = s->line;
}

static void finish(struct stream *s)
{
    if (!s->scanner)
        return;
    scanner_finish(s->scanner);
    s->scanner = scanner_free(s->scanner);
    s->safe = tail_offset(s->tail);
    s->safe_line = s->line;
}

static bool is_zero(const char *data, size_t len)
{
    return len > 0 && data[0] == '\0' && memcmp(data, data + 1, len - 1) == 0;
}

/* A hole at the beginning is left where a log was cut and its writer does not append. */
static bool is_data(const char *data, size_t len)
{
    size_t from = 0;

    while (from < len && data[from] == '\0')
        from++;
    return from < len && memchr(data + from, '\0', smaller(PROBE_BYTES, len - from)) != NULL;
}

static bool give_up_data(struct stream *s, uint64_t offset, size_t len)
{
    s->data = s->begin.unnamed && offset < PROBE_BYTES && is_data(read_buffer, len);
    if (!s->data)
        return false;
    s->scanner = scanner_free(s->scanner);
    s->placed = false;
    tail_close(s->tail);
    tell_trouble(s, EILSEQ);
    return true;
}

/* What follows a hole is another text to the scanner. */
static void skip_hole(struct stream *s)
{
    if (!tail_skip_hole(s->tail))
        return;
    finish(s);
    s->safe = s->floor = tail_offset(s->tail);
}

/* For TURN_US; whether there is more. */
static int read_turn(struct stream *s)
{
    usec_t end = mono_us() + TURN_US;
    ssize_t n = 0;

    if (!s->scanner && tail_size(s->tail) <= tail_offset(s->tail))
        return 0;
    do {
        uint64_t offset;

        if (!s->scanner)
            wake(s);
        offset = tail_offset(s->tail);
        n = tail_read(s->tail, read_buffer, READ_BYTES);
        if (n <= 0)
            break;
        if (give_up_data(s, offset, (size_t)n))
            return 0;
        take(s, read_buffer, (size_t)n);
        if (n == READ_BYTES && is_zero(read_buffer, READ_BYTES))
            skip_hole(s);
        s->grew_at = mono_us();
    } while (s->grew_at < end);
    note_place(s);
    if (n == 0)
        scanner_flush(s->scanner);
    return n < 0 ? (int)n : n > 0;
}

static bool opened(struct stream *s)
{
    if (!s->handlers.opened(s->ctx, s->path, tail_dev(s->tail), tail_ino(s->tail))) {
        tail_close(s->tail);
        return false;
    }
    s->trouble = -1; /* so that it is told that there is none */
    tell_trouble(s, 0);
    return true;
}

static void begin_anew(struct stream *s)
{
    uint64_t lost = tail_lost(s->tail);
    char text[96];

    finish(s);
    if (lost > 0) {
        snprintf(text, sizeof(text), "%llu bytes were cut off before they were read",
                 (unsigned long long)lost);
        tell_gap(s, text);
    }
    s->handlers.anew(s->ctx, s->file);
    place(s, tail_offset(s->tail), 1);
}

/* The name is another file's now, and this one was read to its end. */
static int go_over(struct stream *s)
{
    int r;

    stream_finish(s);
    s->placed = false;
    r = tail_switch(s->tail);
    if (r < 0)
        return r;
    if (!opened(s))
        return 0;
    s->handlers.anew(s->ctx, s->file);
    place(s, 0, 1);
    return read_turn(s);
}

static int read_some(struct stream *s, bool fresh)
{
    int look = tail_look(s->tail, fresh), r;

    s->absent = look == TAIL_ABSENT;
    if (look < 0 || look == TAIL_ABSENT) {
        s->placed = s->placed && look != TAIL_ABSENT;
        return look < 0 ? look : 0;
    }
    if (look == TAIL_OPENED) {
        if (!opened(s))
            return 0;
        place_first(s);
    } else if (look == TAIL_ANEW) {
        begin_anew(s);
    }
    r = read_turn(s);
    return r == 0 && look == TAIL_REPLACED ? go_over(s) : r;
}

bool stream_read(struct stream *s, bool fresh)
{
    int r = s->data ? 0 : read_some(s, fresh);

    if (r < 0)
        tell_trouble(s, -r);
    else if (s->placed)
        tell_trouble(s, 0);
    return r > 0;
}

void stream_finish(struct stream *s)
{
    uint64_t end = tail_offset(s->tail);

    if (!s->scanner && s->placed && s->safe < end) { /* a line was begun before it went to sleep */
        ssize_t n;

        wake(s);
        while (tail_offset(s->tail) < end &&
               (n = tail_read(s->tail, read_buffer,
                              smaller(end - tail_offset(s->tail), READ_BYTES))) > 0)
            take(s, read_buffer, (size_t)n);
    }
    finish(s);
    if (s->placed) {
        note_place(s);
        s->places[s->n_places - 1].is_kept = true;
    }
}

void stream_sleep(struct stream *s)
{
    if (!s->scanner)
        return;
    scanner_flush(s->scanner);
    s->scanner = scanner_free(s->scanner);
}

bool stream_is_awake(const struct stream *s)
{
    return s->scanner != NULL;
}

usec_t stream_grew_at(const struct stream *s)
{
    return s->grew_at;
}

bool stream_mark(struct stream *s, struct tail_mark *ret)
{
    if (!s->placed)
        return false;
    if (s->marked.ino == tail_ino(s->tail) && s->marked.offset == s->safe &&
        s->marked.line == s->safe_line) {
        *ret = s->marked;
        return false;
    }
    tail_mark(s->tail, s->safe, s->safe_line, ret);
    s->marked = *ret;
    return true;
}

bool stream_mark_at(const struct stream *s, usec_t when_us, struct tail_mark *ret)
{
    unsigned i = s->n_places;

    if (!s->placed || i == 0)
        return false;
    while (i > 1 && s->places[i - 1].when_us > when_us)
        i--;
    *ret = s->places[i - 1].mark;
    return true;
}

bool stream_is_absent(const struct stream *s)
{
    return s->absent;
}

uint32_t stream_file(const struct stream *s)
{
    return s->file;
}

const char *stream_path(const struct stream *s)
{
    return s->path;
}

const struct tail *stream_tail(const struct stream *s)
{
    return s->tail;
}
