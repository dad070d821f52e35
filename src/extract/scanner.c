/* SPDX-License-Identifier: Apache-2.0 */

/* Most of a large log is progress, and every progress line matches something: looking closely at
 * all of them would cost minutes and tell nothing. So the log is cut into blocks at fixed offsets,
 * and of a block only these records are looked at closely:
 *
 *   - those with a trigger (trigger.h: a word of an entry that is more than progress);
 *   - all around a record that turns out to be a failure, a launch or an end;
 *   - a few at the beginning of the block, for progress.
 *
 * Which words make triggers is learned from the log: when many records of a block have triggers for
 * nothing, their text is common, and a new set without its words is made.
 *
 * The first blocks and the last two are looked at closely as a whole. Which block is one of the
 * last two is known only two blocks later; so one block is always held back, unless the caller
 * knows the size of the log beforehand: then nothing is held back, and nothing is copied.
 * Failures are never sampled. What is chosen depends on offsets alone, never on how the bytes
 * arrive; but of a live log each flush has an end of its own.
 *
 * A record ends at LF or CR (bars). A record that crosses the border of a block is put together in
 * `carry` and always looked at. A record that does not fit there is looked at in pieces that
 * overlap, so that a message on the border is whole in one of them. */

#include "extract/scanner.h"

#include "base/alloc.h"
#include "base/str.h"
#include "extract/record.h"
#include "extract/trigger.h"

#include <assert.h>
#include <string.h>

#define BLOCK_BYTES    ((size_t)256 << 10)   /* fits the L2 cache */
#define OVERLAP_BYTES  ((size_t)1 << 10)     /* of the pieces of a longer one */
#define HEAD_BYTES     ((uint64_t)4 << 20)   /* looked at as a whole */
#define LARGE_BYTES    ((uint64_t)256 << 20) /* a log known to be larger: */
#define LARGE_HEAD     ((uint64_t)1 << 20)   /* its head; and its samples are further apart */
#define DENSE_BYTES    ((uint64_t)64 << 20)  /* up to here, samples are closer together */
#define DENSE_INTERVAL ((size_t)32 << 10)
#define BEFORE_BYTES   ((size_t)8 << 10) /* around a failure, looked at as a whole */
#define AFTER_BYTES    ((size_t)32 << 10)
#define END_BYTES      ((size_t)4 << 10) /* of what is flushed, looked at as a whole */
#define VAIN_MAX       32   /* triggers for nothing in a block that make the scanner learn, ... */
#define VAIN_SUM_MAX   2048 /* or so many since it last did: they cost what learning costs */
#define RELEARN_MAX    8
#define SAMPLE_RECORDS 8 /* looked at, at most, ... */
#define SAMPLE_STEPS   1 /* ... to find so many steps */

struct scanner {
    struct matcher *matcher;
    struct record_reader *reader;
    uint64_t size; /* of the log, 0 = not known */
    struct scanner_counters counters;

    uint64_t line;       /* number of the line in which the next record begins */
    uint64_t offset;     /* of the next byte to be processed */
    uint64_t full_until; /* offset up to which all is looked at, because of a failure before */

    size_t held_len, fill; /* of held: a whole block that waits; of next: the block being filled */
    char *held, *next;

    size_t carry_len; /* begun record, from offset carry_from on */
    uint64_t carry_from;
    bool carry_is_piece; /* the first OVERLAP_BYTES of it have been looked at */
    char carry[RECORD_BYTES];

    struct trigger_set *trigger_set; /* made when first needed */
    unsigned relearned;              /* how often it was made anew */
    unsigned vain, vain_sum;         /* triggers that led to nothing: in this block, in all since */
    struct rarity common;            /* text of their records */
    struct triggers triggers;
};

struct scanner *scanner_new(struct matcher *m, const struct scanner_options *o,
                            scanner_sink_fn sink, void *ctx)
{
    struct scanner *s = xnew(struct scanner);

    s->matcher = m;
    s->reader = record_reader_new(m, o, sink, ctx);
    s->size = o->size;
    s->line = 1;
    s->held = xmalloc(BLOCK_BYTES);
    s->next = xmalloc(BLOCK_BYTES);
    return s;
}

struct scanner *scanner_free(struct scanner *s)
{
    if (!s)
        return NULL;
    trigger_set_free(s->trigger_set);
    record_reader_free(s->reader);
    free(s->held);
    free(s->next);
    free(s);
    return NULL;
}

/* The byte behind the first record end in data, NULL = it has none. */
static const char *first_record_end(const char *data, size_t len)
{
    /* In steps: where all records end with CR, the next LF is far away. */
    for (size_t at = 0; at < len; at += 512) {
        size_t n = len - at < 512 ? len - at : 512;
        const char *lf = memchr(data + at, '\n', n);
        const char *cr = memchr(data + at, '\r', lf ? (size_t)(lf - data) - at : n);

        if (cr || lf)
            return cr ? cr + 1 : lf + 1;
    }
    return NULL;
}

/* The byte behind the last record end, NULL = none. */
static const char *last_record_end(const char *data, size_t len)
{
    const char *lf = memrchr(data, '\n', len), *from = lf ? lf + 1 : data;
    const char *cr = memrchr(from, '\r', (size_t)(data + len - from));

    return cr ? cr + 1 : lf ? lf + 1 : NULL;
}

static void read_record(struct scanner *s, const char *raw, size_t len, size_t seen,
                        uint64_t offset)
{
    struct place place = {s->line, offset};

    record_read(s->reader, raw, len, seen, &place);
}

/* A record of any length, in pieces where it must be. */
static void read_long_record(struct scanner *s, const char *raw, size_t len, uint64_t offset)
{
    size_t seen = 0;

    while (len > RECORD_BYTES) {
        read_record(s, raw, RECORD_BYTES, seen, offset);
        seen = OVERLAP_BYTES;
        raw += RECORD_BYTES - OVERLAP_BYTES;
        len -= RECORD_BYTES - OVERLAP_BYTES;
        offset += RECORD_BYTES - OVERLAP_BYTES;
    }
    read_record(s, raw, len, seen, offset);
}

/* A stretch of whole records within a block. */
struct span {
    const char *data;
    size_t len;
    size_t pos;      /* processed up to here; s->line is the line of this byte */
    size_t weighed;  /* records that begin before it need not be weighed again */
    uint64_t offset; /* of data[0] */
};

/* Moves on without looking. */
static void skip_to(struct scanner *s, struct span *span, size_t pos)
{
    assert(pos >= span->pos && pos <= span->len);
    s->line += str_count(span->data + span->pos, pos - span->pos, '\n');
    span->pos = pos;
}

static size_t record_begin(const struct span *span, size_t at)
{
    const char *end = last_record_end(span->data, at);

    return end ? (size_t)(end - span->data) : 0;
}

/* Looks closely at the record at span->pos. */
static void scan_next(struct scanner *s, struct span *span)
{
    const char *from = span->data + span->pos;
    const char *end = first_record_end(from, span->len - span->pos);
    size_t whole = end ? (size_t)(end - from) : span->len - span->pos;
    size_t text = end ? whole - 1 : whole;

    read_long_record(s, from, text, span->offset + span->pos);
    if (end && end[-1] == '\n')
        s->line++;
    span->pos += whole;
}

static void scan_up_to(struct scanner *s, struct span *span, size_t pos)
{
    while (span->pos < pos)
        scan_next(s, span);
}

/* A few records for their progress, until so many steps have been seen. */
static void sample(struct scanner *s, struct span *span, uint64_t enough)
{
    for (int i = 0; i < SAMPLE_RECORDS && span->pos < span->len; i++) {
        if (record_steps(s->reader) >= enough)
            break;
        scan_next(s, span);
    }
}

/* Weighs the record around data[at]; learns from those that weigh nothing. */
static enum record_weight weigh_record(struct scanner *s, struct span *span, size_t at)
{
    size_t begin = record_begin(span, at);
    const char *raw = span->data + begin, *end = first_record_end(raw, span->len - begin);
    size_t len = (end ? (size_t)(end - span->data) : span->len) - begin;
    enum record_weight weight = record_weigh(s->reader, raw, len);

    span->weighed = begin + len;
    if (weight == RECORD_NONE) {
        s->vain_sum++;
        if (s->vain++ < 2 * VAIN_MAX)
            rarity_learn(&s->common, raw, len);
    }
    return weight;
}

/* Finds the triggers of a span; makes a better set first, when the last block asked for it. */
static void find_triggers(struct scanner *s, const struct span *span)
{
    bool learn = s->vain > VAIN_MAX || s->vain_sum > VAIN_SUM_MAX;

    if (!s->trigger_set || (learn && s->relearned < RELEARN_MAX)) {
        s->relearned += s->trigger_set != NULL;
        trigger_set_free(s->trigger_set);
        s->trigger_set = trigger_set_new(s->matcher, learn ? &s->common : NULL);
        s->vain_sum = 0;
    }
    s->vain = 0;
    if (s->trigger_set)
        trigger_set_scan(s->trigger_set, span->data, span->len, &s->triggers);
    else
        s->triggers.overflow = true;
}

/* Looks at what the triggers point at, up to `end` of the span. */
static void scan_triggered(struct scanner *s, struct span *span, size_t *next, size_t end)
{
    struct triggers *t = &s->triggers;

    for (; *next < t->n && t->at[*next] < end; ++*next) {
        size_t at = t->at[*next];

        enum record_weight weight;

        if (at < span->pos || at < span->weighed)
            continue;
        weight = weigh_record(s, span, at);
        if (weight == RECORD_GRAVE) {
            size_t back =
                at > span->pos + BEFORE_BYTES ? record_begin(span, at - BEFORE_BYTES) : span->pos;

            if (back > span->pos)
                skip_to(s, span, back);
            s->full_until = span->offset + at + AFTER_BYTES;
            scan_up_to(s, span, at + AFTER_BYTES < span->len ? at + AFTER_BYTES : span->len);
        } else if (weight == RECORD_LIGHT) {
            skip_to(s, span, record_begin(span, at));
            scan_next(s, span);
        }
    }
}

/* Looks at the chosen records of a span in the middle of the log; `steps` had been seen before the
 * block that the span is of, whose first record is read already. */
static void scan_choice(struct scanner *s, struct span *span, uint64_t steps)
{
    bool is_dense = span->offset < DENSE_BYTES && s->size <= LARGE_BYTES;
    size_t interval = is_dense ? DENSE_INTERVAL : BLOCK_BYTES, next = 0;
    uint64_t line = s->line;

    find_triggers(s, span);
    if (s->triggers.dirty || s->triggers.overflow) {
        scan_up_to(s, span, span->len);
        return;
    }
    if (s->full_until > span->offset)
        scan_up_to(s, span,
                   s->full_until - span->offset < span->len ? (size_t)(s->full_until - span->offset)
                                                            : span->len);
    for (size_t at = 0; at < span->len; at += interval) {
        size_t end = at + interval < span->len ? at + interval : span->len;

        if (span->pos <= at) {
            scan_triggered(s, span, &next, at);
            if (span->pos <= at) {
                if (at > 0)
                    skip_to(s, span, record_begin(span, at));
                sample(s, span, (at == 0 ? steps : record_steps(s->reader)) + SAMPLE_STEPS);
            }
        }
        scan_triggered(s, span, &next, end);
    }
    span->pos = span->len;
    s->line = line + s->triggers.line_ends;
}

/* Adds to the begun record; when it gets too long, looks at what there is and keeps the overlap. */
static void extend_carry(struct scanner *s, const char *data, size_t len)
{
    while (len > 0) {
        size_t room = RECORD_BYTES - s->carry_len, n = len < room ? len : room;

        assert(s->carry_len < RECORD_BYTES); /* so room > 0, and this ends */
        memcpy(s->carry + s->carry_len, data, n);
        s->carry_len += n;
        data += n;
        len -= n;
        if (s->carry_len < RECORD_BYTES)
            return;
        read_record(s, s->carry, s->carry_len, s->carry_is_piece ? OVERLAP_BYTES : 0,
                    s->carry_from);
        memmove(s->carry, s->carry + s->carry_len - OVERLAP_BYTES, OVERLAP_BYTES);
        s->carry_from += s->carry_len - OVERLAP_BYTES;
        s->carry_len = OVERLAP_BYTES;
        s->carry_is_piece = true;
    }
}

static void finish_carry(struct scanner *s, bool at_end)
{
    struct place place = {s->line, s->carry_from};
    size_t seen = s->carry_is_piece ? OVERLAP_BYTES : 0;

    if (at_end)
        record_read_last(s->reader, s->carry, s->carry_len, seen, &place);
    else
        record_read(s->reader, s->carry, s->carry_len, seen, &place);
    s->carry_len = 0;
    s->carry_is_piece = false;
}

/* Processes bytes that follow those processed before; `all` = look at every record. */
static void process(struct scanner *s, const char *data, size_t len, bool all)
{
    uint64_t steps = record_steps(s->reader);
    struct span span;
    const char *end;

    if (s->carry_len > 0) {
        size_t n;

        end = first_record_end(data, len);
        n = end ? (size_t)(end - data) : len;
        extend_carry(s, data, end ? n - 1 : n);
        data += n;
        len -= n;
        s->offset += n;
        if (!end)
            return;
        finish_carry(s, false);
        s->line += end[-1] == '\n';
    }
    end = last_record_end(data, len);
    span = (struct span){.data = data, .len = end ? (size_t)(end - data) : 0, .offset = s->offset};
    if (all)
        scan_up_to(s, &span, span.len);
    else if (span.len > 0)
        scan_choice(s, &span, steps);
    s->offset += span.len;
    s->carry_from = s->offset;
    extend_carry(s, data + span.len, len - span.len);
    s->offset += len - span.len;
}

static bool is_head(const struct scanner *s)
{
    return s->offset < (s->size > LARGE_BYTES ? LARGE_HEAD : HEAD_BYTES);
}

/* Whether the block at s->offset is one of the last two of a log whose size is known. */
static bool is_tail(const struct scanner *s)
{
    return s->size != 0 && s->offset + 2 * BLOCK_BYTES > s->size;
}

static void release_held(struct scanner *s, bool all)
{
    size_t len = s->held_len;

    s->held_len = 0;
    if (len > 0)
        process(s, s->held, len, all || is_head(s));
}

/* A whole block has arrived. */
static void take_block(struct scanner *s, const char *data)
{
    release_held(s, false);
    if (s->size != 0) {
        process(s, data, BLOCK_BYTES, is_head(s) || is_tail(s));
        return;
    }
    if (data == s->next) {
        char *swap = s->held;

        s->held = s->next;
        s->next = swap;
    } else {
        memcpy(s->held, data, BLOCK_BYTES);
    }
    s->held_len = BLOCK_BYTES;
}

void scanner_feed(struct scanner *s, const char *data, size_t len)
{
    s->counters.bytes += len;
    while (len > 0) {
        size_t n = BLOCK_BYTES - s->fill < len ? BLOCK_BYTES - s->fill : len;

        if (n == BLOCK_BYTES) {
            take_block(s, data);
        } else {
            memcpy(s->next + s->fill, data, n);
            s->fill += n;
            if (s->fill == BLOCK_BYTES) {
                s->fill = 0;
                take_block(s, s->next);
            }
        }
        data += n;
        len -= n;
    }
}

/* What ends where the log ends for now: how far its job has got stands in the last records. */
static void process_end(struct scanner *s, const char *data, size_t len)
{
    size_t before = len > END_BYTES && !is_head(s) ? len - END_BYTES : 0;

    if (before > 0)
        process(s, data, before, false);
    process(s, data + before, len - before, true);
}

void scanner_flush(struct scanner *s)
{
    size_t fill = s->fill, held_len = s->held_len;

    s->fill = 0;
    if (fill > 0) {
        release_held(s, false);
        process_end(s, s->next, fill);
    } else if (held_len > 0) {
        s->held_len = 0;
        process_end(s, s->held, held_len);
    }
    record_flush(s->reader);
}

void scanner_finish(struct scanner *s)
{
    size_t fill = s->fill;

    release_held(s, true);
    s->fill = 0;
    process(s, s->next, fill, true);
    if (s->carry_len > 0) {
        finish_carry(s, true);
        s->line++;
    }
    record_end(s->reader);
    s->counters.lines = s->line - 1;
}

const struct scanner_counters *scanner_counters(const struct scanner *s)
{
    return &s->counters;
}
