/* SPDX-License-Identifier: Apache-2.0 */

/* Nothing that has a backslash may be put into a pattern that has none, where it would switch off
 * what was replaced before: it is left to whoever replaces the rest. */

#include "slurm/log_path.h"

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
    if (!*name || log_pattern_is_escaped(name))
        return false;
    add_literal(b, name);
    return true;
}

static bool replace(const struct log_part *part, const struct log_path_job *j, struct strbuf *b)
{
    if (part->what == 'u')
        return add_name(b, j->user);
    if (part->what == 'x')
        return add_name(b, j->name);
    return log_part_add_number(part, &j->numbers, b);
}

void log_path_add(const char *pattern, const struct log_path_job *j, struct strbuf *ret)
{
    struct log_part part;
    bool escaped;

    if (!pattern || !*pattern)
        pattern = log_pattern_default(&j->numbers);
    escaped = log_pattern_is_escaped(pattern);
    if (pattern[0] != '/' && *j->work_dir && !escaped && !log_pattern_is_escaped(j->work_dir)) {
        add_literal(ret, j->work_dir);
        strbuf_addc(ret, '/');
    }
    if (escaped)
        strbuf_adds(ret, pattern);
    else
        while (log_pattern_next(&pattern, &part))
            if (!replace(&part, j, ret))
                strbuf_add(ret, part.text, part.len);
}
