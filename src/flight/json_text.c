/* SPDX-License-Identifier: Apache-2.0 */

/* Values that are not finished stand on a stack, with the boxes they belong to; a box takes its
 * members when it is closed, so all of them lie side by side. A text is kept as it is written,
 * escapes included: the keys and words that a dump is read for have none. */

#include "flight/json_text.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <errno.h>

struct reader {
    const char *data;
    size_t len, at;
    struct tree *tree;
    VEC(struct tree_value) stack;
    struct {
        enum tree_kind kind;
        size_t height; /* of the stack when it was opened */
    } open[JSON_TEXT_DEPTH_MAX];
    size_t depth;
    struct err *e;
};

#define JSON_STACK_MAX (1U << 20)

static void reader_done(struct reader *r)
{
    VEC_DONE(&r->stack);
}

static int broken(struct reader *r, const char *why)
{
    return err_set(r->e, -EBADMSG, "at byte %zu: %s", r->at, why);
}

static int push(struct reader *r, struct tree_value v)
{
    if (r->stack.n >= JSON_STACK_MAX)
        return err_set(r->e, -E2BIG, "at byte %zu: more than %u values are unfinished", r->at,
                       JSON_STACK_MAX);
    *VEC_PUSH(&r->stack) = v;
    return 0;
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->len && memchr(" \t\r\n", r->data[r->at], 4))
        r->at++;
}

static bool take_char(struct reader *r, char c)
{
    skip_blanks(r);
    if (r->at >= r->len || r->data[r->at] != c)
        return false;
    r->at++;
    return true;
}

static bool take_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);

    if (r->len - r->at < n || memcmp(r->data + r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

static int read_text(struct reader *r)
{
    size_t from = ++r->at;

    while (r->at < r->len && r->data[r->at] != '"')
        r->at += r->data[r->at] == '\\' ? 2 : 1;
    if (r->at >= r->len) {
        r->at = r->len;
        return broken(r, "the file ends inside of a text (cut short)");
    }
    return push(r, (struct tree_value){.kind = TREE_TEXT,
                                       .len = (uint32_t)(r->at++ - from),
                                       .text = r->data + from});
}

static int read_number(struct reader *r)
{
    char text[64], *end;
    size_t n = 0;
    long long v;

    while (r->at + n < r->len && n < sizeof(text) - 1 &&
           memchr("+-.0123456789eE", r->data[r->at + n], 15))
        n++;
    str_copy_n(text, sizeof(text), r->data + r->at, n);
    if (n == 0)
        return broken(r, r->at < r->len ? "is no value of JSON"
                                        : "the file ends inside of the dump (cut short)");
    r->at += n;
    v = strtoll(text, &end, 10);
    if (end > text && !*end)
        return push(r, (struct tree_value){.kind = TREE_INT, .number = v});
    return push(r, (struct tree_value){.kind = TREE_REAL, .real = strtod(text, NULL)});
}

static int open_box(struct reader *r, enum tree_kind kind)
{
    if (r->depth >= JSON_TEXT_DEPTH_MAX)
        return err_set(r->e, -E2BIG, "at byte %zu: is nested deeper than any dump", r->at);
    r->open[r->depth].kind = kind;
    r->open[r->depth++].height = r->stack.n;
    r->at++;
    return 0;
}

static int close_box(struct reader *r)
{
    size_t from = r->open[--r->depth].height, n = r->stack.n - from;
    struct tree_value v;
    int x = tree_new_box(r->tree, r->open[r->depth].kind, &v, r->e);

    if (x < 0 || (x = tree_add(r->tree, v.box, r->stack.v + from, n, r->e)) < 0)
        return x;
    r->stack.n = from;
    return push(r, v);
}

/* One value that is no box, or the beginning of one. PyTorch writes what has no value yet as NaN.
 */
static int read_value(struct reader *r)
{
    char c;

    skip_blanks(r);
    c = r->at < r->len ? r->data[r->at] : '\0';
    if (c == '{' || c == '[')
        return open_box(r, c == '{' ? TREE_MAP : TREE_LIST);
    if (c == '"')
        return read_text(r);
    if (take_word(r, "null") || take_word(r, "NaN"))
        return push(r, (struct tree_value){.kind = TREE_NONE});
    if (take_word(r, "true"))
        return push(r, (struct tree_value){.kind = TREE_BOOL, .number = 1});
    if (take_word(r, "false"))
        return push(r, (struct tree_value){.kind = TREE_BOOL});
    return read_number(r);
}

static int read_key(struct reader *r)
{
    int x;

    skip_blanks(r);
    if (r->at >= r->len || r->data[r->at] != '"')
        return broken(r, r->at < r->len ? "a key is missing"
                                        : "the file ends inside of the dump (cut short)");
    x = read_text(r);
    if (x < 0)
        return x;
    return take_char(r, ':') ? 0 : broken(r, "a colon is missing");
}

/* Closes what ends here; afterwards either everything is closed or a value follows. */
static int after_value(struct reader *r)
{
    while (r->depth > 0) {
        bool map = r->open[r->depth - 1].kind == TREE_MAP;
        int x;

        if (take_char(r, ','))
            return map ? read_key(r) : 0;
        if (!take_char(r, map ? '}' : ']'))
            return broken(r, r->at < r->len ? "a comma is missing"
                                            : "the file ends inside of the dump (cut short)");
        if ((x = close_box(r)) < 0)
            return x;
    }
    return 0;
}

/* A box was opened: it is empty, or its first member follows. */
static int first_member(struct reader *r)
{
    bool map = r->open[r->depth - 1].kind == TREE_MAP;
    int x;

    if (!take_char(r, map ? '}' : ']'))
        return map ? read_key(r) : 0;
    x = close_box(r);
    return x < 0 ? x : after_value(r);
}

int json_text_read(const char *data, size_t len, struct tree *t, struct tree_value *ret,
                   struct err *e)
{
    _cleanup_(reader_done) struct reader r = {.data = data, .len = len, .tree = t, .e = e};
    int x;

    do {
        size_t depth = r.depth;

        x = read_value(&r);
        if (x == 0)
            x = r.depth > depth ? first_member(&r) : after_value(&r);
    } while (x == 0 && r.depth > 0);
    if (x < 0)
        return x;
    skip_blanks(&r);
    if (r.at < len)
        return broken(&r, "something follows the dump");
    *ret = r.stack.v[0];
    return 0;
}
