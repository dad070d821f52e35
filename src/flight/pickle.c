/* SPDX-License-Identifier: Apache-2.0 */

/* A pickle is a program for a machine with a stack and numbered shelves (the memo). This one has
 * the opcodes that make numbers, texts, lists and maps, and no others. It recurses nowhere: nesting
 * is depth of the stack, and lists are filled by reference. Every length is compared with what is
 * left of the input before it is believed; stack, shelves, values and lists have limits. */

#include "flight/pickle.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>

struct machine {
    const char *data;
    size_t len, at, op_at; /* op_at: where the opcode is that is being done */
    struct tree *tree;
    VEC(struct tree_value) stack, memo;
    VEC(uint32_t) marks; /* heights of the stack */
    struct err *e;
    bool stopped;
};

static void machine_done(struct machine *m)
{
    VEC_DONE(&m->stack);
    VEC_DONE(&m->memo);
    VEC_DONE(&m->marks);
}

static int broken(struct machine *m, const char *why)
{
    return err_set(m->e, -EBADMSG, "at byte %zu: %s", m->op_at, why);
}

static int cut_short(struct machine *m)
{
    return broken(m, "the file ends inside of the dump (cut short)");
}

/* ---- the input ---- */

static int take(struct machine *m, uint64_t n, const char **ret)
{
    if (n > m->len - m->at)
        return cut_short(m);
    *ret = m->data + m->at;
    m->at += n;
    return 0;
}

/* A little-endian number without sign. */
static int take_number(struct machine *m, size_t bytes, uint64_t *ret)
{
    const char *p = NULL;
    uint64_t v = 0;
    int r = take(m, bytes, &p);

    if (r < 0)
        return r;
    for (size_t i = bytes; i-- > 0;)
        v = v << 8 | (uint8_t)p[i];
    *ret = v;
    return 0;
}

/* Up to the end of the line, which is taken too but no part of it. */
static int take_line(struct machine *m, const char **ret, size_t *ret_len)
{
    const char *p = m->data + m->at, *end = memchr(p, '\n', m->len - m->at);

    if (!end)
        return cut_short(m);
    m->at += (size_t)(end - p) + 1;
    *ret = p;
    *ret_len = (size_t)(end - p);
    return 0;
}

/* ---- the stack ---- */

static int push(struct machine *m, struct tree_value v)
{
    if (m->stack.n >= PICKLE_STACK_MAX)
        return err_set(m->e, -E2BIG, "at byte %zu: more than %u values are unfinished", m->op_at,
                       PICKLE_STACK_MAX);
    *VEC_PUSH(&m->stack) = v;
    return 0;
}

static int push_int(struct machine *m, int64_t v)
{
    return push(m, (struct tree_value){.kind = TREE_INT, .number = v});
}

/* How many values stand above the last mark. */
static size_t above_mark(const struct machine *m)
{
    return m->stack.n - (m->marks.n > 0 ? m->marks.v[m->marks.n - 1] : 0);
}

static int need(struct machine *m, size_t n)
{
    return above_mark(m) < n ? broken(m, "takes more values than there are") : 0;
}

static int pop_mark(struct machine *m, size_t *ret_n)
{
    if (m->marks.n == 0)
        return broken(m, "goes back to a mark that is not there");
    *ret_n = above_mark(m);
    m->marks.n--;
    return 0;
}

/* ---- numbers ---- */

static int64_t sign_extend(uint64_t v, size_t bytes)
{
    unsigned shift = (unsigned)(64 - 8 * bytes);

    return (int64_t)(v << shift) >> shift;
}

static int op_int(struct machine *m, size_t bytes, bool has_sign)
{
    uint64_t v = 0;
    int r = take_number(m, bytes, &v);

    if (r < 0)
        return r;
    return push_int(m, has_sign ? sign_extend(v, bytes) : (int64_t)v);
}

static int64_t from_long(const char *p, uint64_t n)
{
    bool minus = n > 0 && (p[n - 1] & 0x80);
    uint64_t v = 0;

    for (uint64_t i = 8; i < n; i++)
        if ((uint8_t)p[i] != (minus ? 0xff : 0) || minus != !!(p[7] & 0x80))
            return minus ? INT64_MIN : INT64_MAX;
    for (uint64_t i = n < 8 ? n : 8; i-- > 0;)
        v = v << 8 | (uint8_t)p[i];
    return n > 0 && n < 8 ? sign_extend(v, n) : (int64_t)v;
}

static int op_long(struct machine *m, size_t length_bytes)
{
    uint64_t n = 0;
    const char *p = NULL;
    int r = take_number(m, length_bytes, &n);

    if (r < 0 || (r = take(m, n, &p)) < 0)
        return r;
    return push_int(m, from_long(p, n));
}

static int op_float(struct machine *m)
{
    struct tree_value v = {.kind = TREE_REAL};
    uint64_t bits;
    const char *p = NULL;
    int r = take(m, 8, &p);

    if (r < 0)
        return r;
    memcpy(&bits, p, sizeof(bits));
    bits = __builtin_bswap64(bits);
    memcpy(&v.real, &bits, sizeof(bits));
    return push(m, v);
}

/* A number as text, with the L of a long; "00" and "01" are how protocol 0 writes a bool. */
static int op_number_line(struct machine *m, bool real)
{
    char text[64], *end;
    const char *p = NULL;
    size_t n = 0;
    int r = take_line(m, &p, &n);

    if (r < 0)
        return r;
    if (n == 0 || n >= sizeof(text))
        return broken(m, "is no number");
    str_copy_n(text, sizeof(text), p, n);
    if (real) {
        double v = strtod(text, &end);

        return *end ? broken(m, "is no number")
                    : push(m, (struct tree_value){.kind = TREE_REAL, .real = v});
    }
    if (streq(text, "00") || streq(text, "01"))
        return push(m, (struct tree_value){.kind = TREE_BOOL, .number = text[1] == '1'});
    r = push_int(m, strtoll(text, &end, 10));
    return end == text || (*end && !streq(end, "L")) ? broken(m, "is no number") : r;
}

/* ---- texts ---- */

static int push_text(struct machine *m, const char *p, uint64_t n)
{
    if (n > UINT32_MAX)
        return broken(m, "is a text of more than 4 GiB");
    return push(m, (struct tree_value){.kind = TREE_TEXT, .len = (uint32_t)n, .text = p});
}

static int op_text(struct machine *m, size_t length_bytes)
{
    uint64_t n = 0;
    const char *p = NULL;
    int r = take_number(m, length_bytes, &n);

    if (r < 0 || (r = take(m, n, &p)) < 0)
        return r;
    return push_text(m, p, n);
}

/* Escapes stay as they are: names of operations and states have none. */
static int op_text_line(struct machine *m, bool quoted)
{
    const char *p = NULL;
    size_t n = 0;
    int r = take_line(m, &p, &n);

    if (r < 0)
        return r;
    if (quoted && (n < 2 || p[0] != p[n - 1] || (p[0] != '\'' && p[0] != '"')))
        return broken(m, "is a text without quotes");
    return quoted ? push_text(m, p + 1, n - 2) : push_text(m, p, n);
}

/* ---- lists and maps ---- */

static int op_empty(struct machine *m, enum tree_kind kind)
{
    struct tree_value v;
    int r = tree_new_box(m->tree, kind, &v, m->e);

    return r < 0 ? r : push(m, v);
}

/* The n values on top become one. A tuple, a set: lists. */
static int op_gather(struct machine *m, enum tree_kind kind, size_t n)
{
    struct tree_value v;
    int r = need(m, n);

    if (r == 0 && kind == TREE_MAP && n % 2)
        r = broken(m, "makes a map of a key without a value");
    if (r < 0 || (r = tree_new_box(m->tree, kind, &v, m->e)) < 0 ||
        (r = tree_add(m->tree, v.box, m->stack.v + m->stack.n - n, n, m->e)) < 0)
        return r;
    m->stack.n -= n;
    return push(m, v);
}

static int op_gather_marked(struct machine *m, enum tree_kind kind)
{
    size_t n = above_mark(m), marked;
    int r = pop_mark(m, &marked);

    if (r < 0)
        return r;
    return op_gather(m, kind, n);
}

/* The n values on top go into the box below them. */
static int add_to(struct machine *m, enum tree_kind kind, size_t n)
{
    const struct tree_value *box;
    int r = need(m, n + 1);

    if (r < 0)
        return r;
    box = &m->stack.v[m->stack.n - n - 1];
    if (box->kind != (uint32_t)kind || (kind == TREE_MAP && n % 2))
        return broken(m, "adds to what is no such list or map");
    r = tree_add(m->tree, box->box, box + 1, n, m->e);
    m->stack.n -= n;
    return r;
}

static int add_marked(struct machine *m, enum tree_kind kind)
{
    size_t n = 0;
    int r = pop_mark(m, &n);

    return r < 0 ? r : add_to(m, kind, n);
}

/* ---- the stack itself, and the memo ---- */

static int op_mark(struct machine *m)
{
    if (m->marks.n >= PICKLE_STACK_MAX)
        return err_set(m->e, -E2BIG, "at byte %zu: more than %u marks", m->op_at, PICKLE_STACK_MAX);
    *VEC_PUSH(&m->marks) = (uint32_t)m->stack.n;
    return 0;
}

static int op_pop(struct machine *m)
{
    if (above_mark(m) == 0 && m->marks.n > 0)
        m->marks.n--;
    else if (m->stack.n > 0)
        m->stack.n--;
    else
        return broken(m, "takes a value where none is");
    return 0;
}

static int op_pop_mark(struct machine *m)
{
    size_t n = 0;
    int r = pop_mark(m, &n);

    m->stack.n -= r < 0 ? 0 : n;
    return r;
}

static int op_dup(struct machine *m)
{
    int r = need(m, 1);

    return r < 0 ? r : push(m, m->stack.v[m->stack.n - 1]);
}

/* A shelf has a number of at least one byte, so there are fewer than the file has bytes. */
static int put(struct machine *m, uint64_t i)
{
    int r = need(m, 1);

    if (r < 0)
        return r;
    if (i >= PICKLE_MEMO_MAX || i > m->len)
        return err_set(m->e, -E2BIG, "at byte %zu: remembers a value under a number beyond all",
                       m->op_at);
    if (i >= m->memo.n) {
        VEC_GROW(&m->memo, i + 1);
        memset(&m->memo.v[m->memo.n], 0, (i + 1 - m->memo.n) * sizeof(m->memo.v[0]));
        m->memo.n = i + 1;
    }
    m->memo.v[i] = m->stack.v[m->stack.n - 1];
    return 0;
}

static int get(struct machine *m, uint64_t i)
{
    if (i >= m->memo.n || m->memo.v[i].kind == TREE_ABSENT)
        return broken(m, "recalls a value that was never remembered");
    return push(m, m->memo.v[i]);
}

static int op_memo(struct machine *m, size_t bytes, int (*fn)(struct machine *, uint64_t))
{
    uint64_t i = 0;
    int r = take_number(m, bytes, &i);

    return r < 0 ? r : fn(m, i);
}

static int op_memo_line(struct machine *m, int (*fn)(struct machine *, uint64_t))
{
    char text[24], *end;
    const char *p = NULL;
    size_t n = 0;
    int r = take_line(m, &p, &n);

    if (r < 0)
        return r;
    if (n == 0 || n >= sizeof(text) || p[0] < '0' || p[0] > '9')
        return broken(m, "is no number");
    str_copy_n(text, sizeof(text), p, n);
    r = fn(m, strtoull(text, &end, 10));
    return *end ? broken(m, "is no number") : r;
}

/* ---- the opcodes ---- */

static const struct {
    uint8_t op;
    const char *name;
} refused[] = {
    {'c', "GLOBAL"},        {'R', "REDUCE"},       {'b', "BUILD"},
    {'i', "INST"},          {'o', "OBJ"},          {'P', "PERSID"},
    {'Q', "BINPERSID"},     {0x81, "NEWOBJ"},      {0x82, "EXT1"},
    {0x83, "EXT2"},         {0x84, "EXT4"},        {0x92, "NEWOBJ_EX"},
    {0x93, "STACK_GLOBAL"}, {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
};

static int refuse(struct machine *m, uint8_t op)
{
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
        if (refused[i].op == op)
            return err_set(m->e, -EPERM,
                           "at byte %zu: opcode %s would make or run a Python object; a dump has "
                           "data only, so this is none",
                           m->op_at, refused[i].name);
    return err_set(m->e, -EBADMSG, "at byte %zu: 0x%02x is no opcode of a pickle", m->op_at, op);
}

static int take_frame(struct machine *m)
{
    uint64_t n = 0;
    int r = take_number(m, 8, &n);

    return r < 0 ? r : n > m->len - m->at ? cut_short(m) : 0;
}

static int take_protocol(struct machine *m)
{
    uint64_t v = 0;
    int r = take_number(m, 1, &v);

    return r < 0 ? r : v > 5 ? broken(m, "is a protocol newer than 5") : 0;
}

static int op_number(struct machine *m, uint8_t op)
{
    switch (op) {
    case 'N':
        return push(m, (struct tree_value){.kind = TREE_NONE});
    case 0x88:
    case 0x89:
        return push(m, (struct tree_value){.kind = TREE_BOOL, .number = op == 0x88});
    case 'K':
        return op_int(m, 1, false);
    case 'M':
        return op_int(m, 2, false);
    case 'J':
        return op_int(m, 4, true);
    case 0x8a:
        return op_long(m, 1);
    case 0x8b:
        return op_long(m, 4);
    case 'I':
    case 'L':
        return op_number_line(m, false);
    case 'F':
        return op_number_line(m, true);
    case 'G':
        return op_float(m);
    default:
        return refuse(m, op);
    }
}

static int op_texts(struct machine *m, uint8_t op)
{
    switch (op) {
    case 'U':
    case 'C':
    case 0x8c:
        return op_text(m, 1);
    case 'T':
    case 'B':
    case 'X':
        return op_text(m, 4);
    case 0x8d:
    case 0x8e:
    case 0x96:
        return op_text(m, 8);
    case 'S':
        return op_text_line(m, true);
    case 'V':
        return op_text_line(m, false);
    default:
        return op_number(m, op);
    }
}

static int op_boxes(struct machine *m, uint8_t op)
{
    switch (op) {
    case ']':
    case ')':
    case 0x8f:
        return op_empty(m, TREE_LIST);
    case '}':
        return op_empty(m, TREE_MAP);
    case 't':
    case 'l':
    case 0x91:
        return op_gather_marked(m, TREE_LIST);
    case 'd':
        return op_gather_marked(m, TREE_MAP);
    case 0x85:
    case 0x86:
    case 0x87:
        return op_gather(m, TREE_LIST, op - 0x84U);
    case 'a':
        return add_to(m, TREE_LIST, 1);
    case 's':
        return add_to(m, TREE_MAP, 2);
    case 'e':
    case 0x90:
        return add_marked(m, TREE_LIST);
    case 'u':
        return add_marked(m, TREE_MAP);
    default:
        return op_texts(m, op);
    }
}

static int step(struct machine *m, uint8_t op)
{
    switch (op) {
    case 'q':
        return op_memo(m, 1, put);
    case 'r':
        return op_memo(m, 4, put);
    case 'h':
        return op_memo(m, 1, get);
    case 'j':
        return op_memo(m, 4, get);
    case 0x94:
        return put(m, m->memo.n);
    case 'p':
        return op_memo_line(m, put);
    case 'g':
        return op_memo_line(m, get);
    case '(':
        return op_mark(m);
    case '0':
        return op_pop(m);
    case '1':
        return op_pop_mark(m);
    case '2':
        return op_dup(m);
    case 0x80:
        return take_protocol(m);
    case 0x95:
        return take_frame(m);
    case '.':
        m->stopped = true;
        return need(m, 1);
    default:
        return op_boxes(m, op);
    }
}

int pickle_read(const char *data, size_t len, struct tree *t, struct tree_value *ret, struct err *e)
{
    _cleanup_(machine_done) struct machine m = {.data = data, .len = len, .tree = t, .e = e};
    int r = 0;

    while (r == 0 && !m.stopped) {
        m.op_at = m.at;
        r = m.at < len ? step(&m, (uint8_t)data[m.at++]) : cut_short(&m);
    }
    if (r < 0)
        return r;
    *ret = m.stack.v[m.stack.n - 1];
    return 0;
}
