/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <assert.h>
#include <stdbool.h>
#include <sys/ioctl.h>

#define GAP        2 /* between columns */
#define SCREEN_MIN 60

struct layout {
    size_t widths[TABLE_COLUMNS_MAX];
    bool left_out[TABLE_COLUMNS_MAX];
};

void table_done(struct table *t)
{
    VEC_FOREACH (&t->cells, c)
        strbuf_done(c);
    VEC_DONE(&t->cells);
}

struct strbuf *table_cell(struct table *t)
{
    return VEC_PUSH(&t->cells);
}

/* Columns as a terminal counts them: continuation bytes of UTF-8 take none. */
static size_t width_of(const char *s)
{
    size_t n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static size_t line_width(const struct table *t, const struct layout *l)
{
    size_t sum = 0;

    for (unsigned c = 0; c < t->columns; c++)
        if (!l->left_out[c])
            sum += l->widths[c] + (sum > 0 ? GAP : 0);
    return sum;
}

static void measure(const struct table *t, struct layout *ret)
{
    for (size_t i = 0; i < t->cells.n; i++) {
        size_t c = i % t->columns, w = width_of(strbuf_str(&t->cells.v[i]));

        if (c == 0 && t->first_most > 0 && w > t->first_most)
            continue;
        if (w > ret->widths[c])
            ret->widths[c] = w;
    }
}

static void fit(const struct table *t, size_t width, struct layout *l)
{
    size_t *yields = &l->widths[t->yields], wanted = *yields;

    while (line_width(t, l) > width && *yields > t->yields_least)
        (*yields)--;
    if (line_width(t, l) <= width)
        return;
    l->left_out[t->spare] = true;
    while (*yields < wanted && line_width(t, l) < width)
        (*yields)++;
}

static void add_cell(const char *text, size_t columns, bool right, bool last, struct strbuf *out)
{
    size_t w = width_of(text), pad = w < columns ? columns - w : 0;

    if (right)
        strbuf_addf(out, "%*s", (int)pad, "");
    strbuf_adds(out, text);
    if (!last)
        strbuf_addf(out, "%*s", (int)(right ? GAP : pad + GAP), "");
}

static void add_cut(const char *text, size_t columns, struct strbuf *out)
{
    size_t n = 0;

    if (width_of(text) <= columns || columns == 0) {
        strbuf_adds(out, text);
        return;
    }
    for (size_t used = 0; text[n]; n++)
        if (((unsigned char)text[n] & 0xc0) != 0x80 && ++used == columns)
            break;
    strbuf_add(out, text, n);
    strbuf_adds(out, "…");
}

static void add_row(const struct table *t, const struct layout *l, size_t row, struct strbuf *out)
{
    for (unsigned c = 0; c < t->columns; c++) {
        const char *text = strbuf_str(&t->cells.v[row + c]);
        _cleanup_strbuf_ struct strbuf cut = {0};

        if (l->left_out[c])
            continue;
        if (c == t->yields) {
            add_cut(text, l->widths[c], &cut);
            text = strbuf_str(&cut);
        }
        add_cell(text, l->widths[c], t->right >> c & 1, c + 1 == t->columns, out);
    }
}

size_t table_screen(FILE *out)
{
    struct winsize w;

    if (ioctl(fileno(out), TIOCGWINSZ, &w) < 0 || w.ws_col == 0)
        return SIZE_MAX;
    return w.ws_col > SCREEN_MIN ? w.ws_col : SCREEN_MIN;
}

void table_print(const struct table *t, size_t width, void (*line)(void *ctx, const char *text),
                 void *ctx)
{
    struct layout l = {0};

    assert(t->columns > 0 && t->columns <= TABLE_COLUMNS_MAX && t->yields < t->columns);
    measure(t, &l);
    fit(t, width, &l);
    for (size_t row = 0; row + t->columns <= t->cells.n; row += t->columns) {
        _cleanup_strbuf_ struct strbuf b = {0};

        add_row(t, &l, row, &b);
        line(ctx, strbuf_str(&b));
    }
}
