/* SPDX-License-Identifier: Apache-2.0 */

/* What Slurm does and its manual does not say: a width beyond 10 is 10; what is no replacement
 * stays as it is; outside of an array, the task is Slurm's number for "none". */

#include "base/log_pattern.h"

#include <string.h>

#define REPLACEMENTS "AabJjNnstux"
#define WIDTH_MAX    10
#define SLURM_NONE   (UINT32_MAX - 1)

const char *log_pattern_default(const struct log_numbers *n)
{
    return n->array_task != LOG_NO_TASK ? "slurm-%A_%a.out" : "slurm-%j.out";
}

bool log_pattern_is_escaped(const char *pattern)
{
    return strchr(pattern, '\\') != NULL;
}

bool log_pattern_next(const char **pattern, struct log_part *ret)
{
    const char *p = *pattern, *q = p + 1;
    int width = 0;

    if (*p == '\0')
        return false;
    *ret = (struct log_part){.text = p};
    if (*p != '%') {
        q += strcspn(q, "%");
    } else if (*q == '%') {
        ret->what = *q++;
    } else {
        for (; *q >= '0' && *q <= '9'; q++)
            width = width > WIDTH_MAX ? width : width * 10 + (*q - '0');
        ret->width = width > WIDTH_MAX ? WIDTH_MAX : width;
        if (*q && strchr(REPLACEMENTS, *q))
            ret->what = *q++;
    }
    ret->len = (size_t)(q - p);
    *pattern = q;
    return true;
}

bool log_part_add_number(const struct log_part *p, const struct log_numbers *n, struct strbuf *ret)
{
    bool in_array = n->array_task != LOG_NO_TASK;
    uint32_t task = in_array ? n->array_task : SLURM_NONE, number;

    switch (p->what) {
    case 'A':
        number = in_array ? n->array_job : n->job;
        break;
    case 'a':
        number = task;
        break;
    case 'b':
        number = task % 10;
        break;
    case 'j':
        number = n->job;
        break;
    default:
        return false;
    }
    strbuf_addf(ret, "%0*u", p->width, number);
    return true;
}
