/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/scanner.h"

#include "base/alloc.h"
#include "base/str.h"
#include "extract/facts.h"
#include "extract/line.h"

#include <assert.h>
#include <string.h>

#define WINDOW_BYTES ((size_t)128 << 10)

struct scanner {
    struct matcher *matcher;
    struct scanner_options options;
    scanner_sink_fn sink;
    void *ctx;
    struct scanner_counters counters;
    char node[NODE_NAME_LEN];
    uint64_t line;   /* number of the line that begins at buf[0] */
    uint64_t offset; /* of buf[0] in the log */
    size_t fill;
    char buf[WINDOW_BYTES];
    char clean[WINDOW_BYTES + 1];
};

struct scanner *scanner_new(struct matcher *m, const struct scanner_options *o,
                            scanner_sink_fn sink, void *ctx)
{
    struct scanner *s = xnew(struct scanner);

    s->matcher = m;
    s->options = *o;
    s->sink = sink;
    s->ctx = ctx;
    s->line = 1;
    if (o->node)
        STR_COPY(s->node, o->node);
    return s;
}

struct scanner *scanner_free(struct scanner *s)
{
    free(s);
    return NULL;
}

static void scan_record(struct scanner *s, const char *raw, size_t len, uint64_t offset)
{
    struct hit hits[HITS_MAX];
    struct line line;
    size_t n;

    line_clean(raw, len, s->clean, &line);
    if (line.len == 0)
        return;
    if (line.node[0] == '\0')
        STR_COPY(line.node, s->node);
    n = matcher_line(s->matcher, line.text, line.len, hits);
    for (size_t i = 0; i < n; i++) {
        struct signal signal;

        if (hits[i].dropped_by)
            continue;
        signal =
            facts_from_hit(matcher_catalog(s->matcher), &hits[i], &line, s->options.provenance);
        signal.file = s->options.file;
        signal.line = s->line;
        signal.offset = offset;
        s->counters.signals++;
        s->sink(s->ctx, &signal);
    }
}

/* Scans the records in buf[0..len), the last of which ends there. */
static void scan_span(struct scanner *s, size_t len)
{
    size_t from = 0;

    while (from < len) {
        size_t end = from;

        while (end < len && s->buf[end] != '\n' && s->buf[end] != '\r')
            end++;
        scan_record(s, s->buf + from, end - from, s->offset + from);
        if (end < len && s->buf[end] == '\n')
            s->line++;
        from = end + 1;
    }
    memmove(s->buf, s->buf + len, s->fill - len);
    s->fill -= len;
    s->offset += len;
}

void scanner_flush(struct scanner *s)
{
    size_t len = s->fill;

    while (len > 0 && s->buf[len - 1] != '\n' && s->buf[len - 1] != '\r')
        len--;
    scan_span(s, len);
}

void scanner_feed(struct scanner *s, const char *data, size_t len)
{
    s->counters.bytes += len;
    while (len > 0) {
        size_t n = WINDOW_BYTES - s->fill < len ? WINDOW_BYTES - s->fill : len;

        memcpy(s->buf + s->fill, data, n);
        s->fill += n;
        data += n;
        len -= n;
        if (s->fill == WINDOW_BYTES) {
            scanner_flush(s);
            if (s->fill == WINDOW_BYTES) {
                s->counters.cut_lines++;
                scan_span(s, s->fill);
            }
        }
    }
}

void scanner_finish(struct scanner *s)
{
    scanner_flush(s);
    if (s->fill > 0) {
        scan_span(s, s->fill);
        s->line++;
    }
    s->counters.lines = s->line - 1;
}

const struct scanner_counters *scanner_counters(const struct scanner *s)
{
    return &s->counters;
}
