/* SPDX-License-Identifier: Apache-2.0 */

/* What Slurm does and its manual does not say: a backslash anywhere in a pattern switches off all
 * replacements; a width counts for numbers alone, and beyond 10 is 10. So nothing that has a
 * backslash may be put into a pattern that has none: it is left to whoever replaces the rest. */

#include "slurm/log_path.h"

#include <string.h>

#define WIDTH_MAX 10

static bool has_backslash(const char *s)
{
    return strchr(s, '\\') != NULL;
}

/* Text that means itself. */
static void add_literal(struct strbuf *b, const char *s)
{
    for (; *s; s++) {
        if (*s == '%')
            strbuf_addc(b, '%');
        strbuf_addc(b, *s);
    }
}

static bool add_name(struct strbuf *b, const char *name)
{
    if (!*name || has_backslash(name))
        return false;
    add_literal(b, name);
    return true;
}

/* Whether c is replaced. */
static bool replace(struct strbuf *b, char c, int width, const struct log_path_job *j)
{
    uint32_t task = j->in_array ? j->array_task : UINT32_MAX - 1; /* Slurm's number for "none" */

    switch (c) {
    case 'A':
        strbuf_addf(b, "%0*u", width, j->in_array ? j->array_id : j->id);
        return true;
    case 'a':
        strbuf_addf(b, "%0*u", width, task);
        return true;
    case 'b':
        strbuf_addf(b, "%0*u", width, task % 10);
        return true;
    case 'j':
        strbuf_addf(b, "%0*u", width, j->id);
        return true;
    case 'u':
        return add_name(b, j->user);
    case 'x':
        return add_name(b, j->name);
    default:
        return false;
    }
}

static void add_replaced(const char *p, const struct log_path_job *j, struct strbuf *b)
{
    while (*p) {
        size_t len = 1;
        int width = 0;

        if (*p == '%' && p[1] == '%') {
            len = 2;
        } else if (*p == '%') {
            for (; p[len] >= '0' && p[len] <= '9'; len++)
                width = width > WIDTH_MAX ? width : width * 10 + (p[len] - '0');
            if (p[len] && replace(b, p[len], width > WIDTH_MAX ? WIDTH_MAX : width, j)) {
                p += len + 1;
                continue;
            }
        }
        strbuf_add(b, p, len);
        p += len;
    }
}

void log_path_add(const char *pattern, const struct log_path_job *j, struct strbuf *ret)
{
    if (!pattern || !*pattern)
        pattern = j->in_array ? "slurm-%A_%a.out" : "slurm-%j.out";
    if (pattern[0] != '/' && *j->work_dir && !has_backslash(pattern) &&
        !has_backslash(j->work_dir)) {
        add_literal(ret, j->work_dir);
        strbuf_addc(ret, '/');
    }
    if (has_backslash(pattern))
        strbuf_adds(ret, pattern);
    else
        add_replaced(pattern, j, ret);
}
