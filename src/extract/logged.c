/* SPDX-License-Identifier: Apache-2.0 */

/* A bare traceback in the middle of a log may be anybody's, so it is given to a process only where
 * it stands right below a line of that process's logger, and that line is an error's. It ends with
 * the line that names the exception, unless another is chained to it. */

#include "extract/logged.h"

#include "base/str.h"

#include <string.h>

#define HEADER "Traceback (most recent call last):"

static bool contains(const struct line *l, const char *word)
{
    return memmem(l->whole, l->whole_len, word, strlen(word)) != NULL;
}

static bool begins(const struct line *l, const char *word)
{
    return l->len >= strlen(word) && memcmp(l->text, word, strlen(word)) == 0;
}

static bool tells_error(const struct line *l)
{
    return contains(l, "ERROR") || contains(l, "CRITICAL") || contains(l, "FATAL");
}

static bool is_bare(const struct line *l)
{
    return l->rank == RANK_NONE && l->stream == 0;
}

static bool is_chain(const struct line *l)
{
    return begins(l, "During handling of the above") || begins(l, "The above exception was");
}

static void listen(struct logged *s, const struct line *l, uint64_t number)
{
    *s = (struct logged){.number = number};
    s->any = (l->rank != RANK_NONE || *l->node) && tells_error(l);
    if (!s->any)
        return;
    s->rank = l->rank;
    s->local_rank = l->local_rank;
    s->stream = l->stream;
    s->time_us = l->time_us;
    s->uptime = l->uptime;
    STR_COPY(s->node, l->node);
}

static void fill(const struct logged *s, struct line *l)
{
    l->rank = s->rank;
    l->local_rank = s->local_rank;
    l->stream = s->stream;
    if (l->node[0] == '\0')
        STR_COPY(l->node, s->node);
    if (l->time_us != USEC_UNKNOWN)
        return;
    l->time_us = s->time_us;
    l->uptime = s->uptime;
}

void logged_follow(struct logged *s, struct line *l, uint64_t number)
{
    if (!is_bare(l)) {
        listen(s, l, number);
        return;
    }
    if (!s->any || l->len == 0)
        return;
    if (begins(l, HEADER) && (s->is_behind || number == s->number + 1))
        s->within = true;
    else if (!s->within && !(s->is_behind && is_chain(l)))
        s->any = false;
    if (!s->within)
        return;
    fill(s, l);
    s->is_behind = *l->text != ' ' && *l->text != '\t' && !begins(l, HEADER);
    s->within = !s->is_behind;
}
