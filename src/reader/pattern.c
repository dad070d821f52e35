/* SPDX-License-Identifier: Apache-2.0 */

/* An expanded path is text in which the byte WILD announces a place: WILD 'n' W (a number of at
 * least W digits, W as '0' + width), WILD 's' (a step), WILD '.' (a dot and a step, or nothing),
 * WILD 'h' (a host), WILD '*' (anything), WILD WILD (the byte itself). No place stands for '/'.
 *
 * Of a pattern that has a backslash, the backslashes are taken out. */

#include "reader/pattern.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define WILD       '\x01'
#define EFFORT_MAX 20000 /* of one match: many places in a row could be tried for ever */

static void add_text(struct strbuf *b, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (s[i] == WILD)
            strbuf_addc(b, WILD);
        strbuf_addc(b, s[i]);
    }
}

static void add_name(struct strbuf *b, const char *name)
{
    if (name && *name) {
        add_text(b, name, strlen(name));
    } else {
        strbuf_addc(b, WILD);
        strbuf_addc(b, '*');
    }
}

static void add_place(struct strbuf *b, char what)
{
    strbuf_addc(b, WILD);
    strbuf_addc(b, what);
}

static void add_part(struct strbuf *b, const struct log_part *part, const struct pattern_names *n)
{
    struct log_part number = *part;

    switch (part->what) {
    case '%':
        add_text(b, "%", 1);
        break;
    case 'J':
        number.what = 'j';
        log_part_add_number(&number, &n->numbers, b);
        add_place(b, '.');
        break;
    case 'n':
    case 't':
        add_place(b, 'n');
        strbuf_addc(b, (char)('0' + part->width));
        break;
    case 's':
        add_place(b, 's');
        break;
    case 'N':
        add_place(b, 'h');
        break;
    case 'u':
        add_name(b, n->user_name);
        break;
    case 'x':
        add_name(b, n->job_name);
        break;
    default:
        if (!log_part_add_number(part, &n->numbers, b))
            add_text(b, part->text, part->len);
    }
}

static void add_replaced(struct strbuf *b, const char *pattern, const struct pattern_names *names)
{
    struct log_part part;

    while (log_pattern_next(&pattern, &part))
        add_part(b, &part, names);
}

/* Without its backslashes; a pair is one. */
static void add_escaped(struct strbuf *b, const char *p)
{
    for (; *p; p++) {
        if (*p == '\\' && *++p == '\0')
            return;
        add_text(b, p, 1);
    }
}

int pattern_expand(const char *pattern, const char *dir, const struct pattern_names *names,
                   struct strbuf *ret)
{
    strbuf_reset(ret);
    if (*pattern == '\0' || strlen(pattern) >= PATH_MAX)
        return -EINVAL;
    if (*pattern != '/') {
        if (!dir || *dir != '/' || strlen(dir) >= PATH_MAX)
            return -EINVAL;
        add_text(ret, dir, strlen(dir));
        if (!str_endswith(dir, "/"))
            strbuf_addc(ret, '/');
    }
    if (log_pattern_is_escaped(pattern))
        add_escaped(ret, pattern);
    else
        add_replaced(ret, pattern, names);
    return ret->len < PATH_MAX ? 0 : -EINVAL;
}

bool pattern_is_wild_part(const char *s, size_t len)
{
    for (size_t i = 0; i + 1 < len; i++)
        if (s[i] == WILD && s[++i] != WILD)
            return true;
    return false;
}

bool pattern_is_wild(const char *path)
{
    return pattern_is_wild_part(path, strlen(path));
}

void pattern_literal(const char *path, size_t len, struct strbuf *ret)
{
    for (size_t i = 0; i < len; i++) {
        if (path[i] == WILD && i + 1 < len)
            i++;
        strbuf_addc(ret, path[i]);
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_of_host(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

/* How many bytes of the name a step may be: its number, or the word for one without. */
static size_t step_length(const char *name)
{
    static const char *const words[] = {"batch", "extern", "interactive"};
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_startswith(name, words[i]))
            return strlen(words[i]);
    while (is_digit(name[n]))
        n++;
    return n;
}

struct match {
    const char *end; /* of the component */
    unsigned effort;
    const char *host; /* of the name, that %N stood for, NULL = none */
    size_t host_len;
};

static bool fits(struct match *m, const char *p, const char *name);

/* The place takes `least` to `most` bytes of the name, as many as let the rest fit. */
static bool fits_some(struct match *m, const char *rest, const char *name, size_t least,
                      size_t most)
{
    for (size_t n = most; n + 1 > least; n--)
        if (fits(m, rest, name + n))
            return true;
    return false;
}

static bool fits_place(struct match *m, const char *p, const char *name)
{
    size_t n = 0, width;

    switch (*p) {
    case 'n':
        width = (size_t)(p[1] - '0');
        while (is_digit(name[n]))
            n++;
        return fits_some(m, p + 2, name, width > 1 ? width : 1, n);
    case 's':
        return fits_some(m, p + 1, name, 1, step_length(name));
    case '.':
        n = *name == '.' ? step_length(name + 1) : 0;
        return (n > 0 && fits(m, p + 1, name + 1 + n)) || fits(m, p + 1, name);
    case 'h':
        while (is_of_host(name[n]))
            n++;
        for (; n > 0; n--)
            if (fits(m, p + 1, name + n)) {
                m->host = name;
                m->host_len = n;
                return true;
            }
        return false;
    default:
        return fits_some(m, p + 1, name, 1, strlen(name));
    }
}

static bool fits(struct match *m, const char *p, const char *name)
{
    if (++m->effort > EFFORT_MAX)
        return false;
    for (; p < m->end; p++, name++) {
        if (*p == WILD && p + 1 < m->end && *++p != WILD)
            return fits_place(m, p, name);
        if (*p != *name || *name == '\0')
            return false;
    }
    return *name == '\0';
}

bool pattern_fits(const char *path, size_t len, const char *name)
{
    struct match m = {.end = path + len};

    return fits(&m, path, name);
}

bool pattern_host(const char *path, const char *file, char *ret, size_t size)
{
    char name[NAME_MAX + 1];

    *ret = '\0';
    while (*path && *file) { /* component by component */
        size_t len = strcspn(path, "/"), n = strcspn(file, "/");
        struct match m = {.end = path + len};

        if (!str_copy_n(name, sizeof(name), file, n) || !fits(&m, path, name))
            break;
        if (m.host)
            str_copy_n(ret, size, m.host, m.host_len);
        path += len + strspn(path + len, "/");
        file += n + strspn(file + n, "/");
    }
    if (!*path && !*file)
        return true;
    *ret = '\0';
    return false;
}
