/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/lines.h"

#include <errno.h>
#include <string.h>

void lines_done(struct lines *l)
{
    strbuf_done(&l->in);
}

void lines_add(struct lines *l, const char *bytes, size_t n)
{
    strbuf_add(&l->in, bytes, n);
}

/* Gives up what was read. */
static void shift(struct lines *l)
{
    memmove(l->in.s, l->in.s + l->at, l->in.len - l->at + 1);
    l->in.len -= l->at;
    l->at = 0;
}

int lines_next(struct lines *l, const char **ret_line, size_t *ret_len)
{
    while (l->at < l->in.len) {
        const char *line = l->in.s + l->at, *end = memchr(line, '\n', l->in.len - l->at);
        size_t len = end ? (size_t)(end - line) : l->in.len - l->at;
        bool skipped = l->skipping;

        if (!end && len <= l->max && !skipped)
            break;
        l->at += len + (end != NULL);
        l->skipping = !end;
        if (skipped)
            continue; /* it was told when it became too long */
        if (len > l->max)
            return -E2BIG;
        *ret_line = line;
        *ret_len = len;
        return 1;
    }
    if (l->at > 0)
        shift(l);
    return 0;
}
