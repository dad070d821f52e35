/* SPDX-License-Identifier: Apache-2.0 */

/* Two things tell a label from a word about some rank: what closes it (a bracket, a colon, a bar;
 * "rank3" in one word needs nothing), and that no prose stands in front of it. The rank within a
 * node, or the number of the node, is not the one that is sought. */

#include "extract/speaker.h"

#include "base/str.h"
#include "core/model/signal.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define FIND_BYTES 96 /* a label behind more than that is none */
#define GAP_MAX    3  /* bytes between the noun and its number */

struct cursor {
    const char *s, *end;
};

static bool skip_char(struct cursor *c, char want)
{
    if (c->s == c->end || *c->s != want)
        return false;
    c->s++;
    return true;
}

static size_t skip_all(struct cursor *c, const char *set)
{
    const char *from = c->s;

    while (c->s < c->end && *c->s && strchr(set, *c->s))
        c->s++;
    return (size_t)(c->s - from);
}

static bool skip_word(struct cursor *c, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(c->end - c->s) < n || strncasecmp(c->s, word, n) != 0)
        return false;
    c->s += n;
    return true;
}

static bool skip_digits(struct cursor *c, int32_t *ret)
{
    const char *from = c->s;

    for (*ret = 0; c->s < c->end && isdigit((unsigned char)*c->s) && c->s - from < 7; c->s++)
        *ret = *ret * 10 + (*c->s - '0');
    return c->s > from && (c->s == c->end || !isalnum((unsigned char)*c->s));
}

/* "rank", "global rank"; in brackets also what JAX and MPI call it. */
static bool skip_noun(struct cursor *c, bool bracket)
{
    if (skip_word(c, "global") || skip_word(c, "dist"))
        skip_all(c, " _-");
    return skip_word(c, "rank") ||
           (bracket && (skip_word(c, "process") || skip_word(c, "proc") || skip_word(c, "task")));
}

/* "/8", " of 8": how many there are. */
static void skip_total(struct cursor *c)
{
    struct cursor rest = *c;
    int32_t all;

    if ((skip_char(&rest, '/') || skip_word(&rest, " of ")) && skip_digits(&rest, &all))
        *c = rest;
}

static bool skip_close(struct cursor *c, char open, bool glued)
{
    static const char opens[] = "[(<{", closes[] = "])>}";
    struct cursor bar = *c;

    if (open)
        return skip_char(c, closes[strchr(opens, open) - opens]) &&
               (skip_char(c, ':') || c->s < c->end);
    if (skip_char(c, ':'))
        return c->s == c->end || *c->s == ' ' || glued;
    if (skip_char(&bar, ' ') && bar.s < bar.end && strchr("|-", *bar.s) &&
        !(bar.s + 1 < bar.end && bar.s[1] == '-')) { /* a dash of prose */
        c->s = bar.s + 1;
        return true;
    }
    return skip_char(c, '|') || (glued && skip_char(c, ' '));
}

size_t speaker_take(const char *s, size_t len, int32_t *ret_rank)
{
    struct cursor c = {s, s + len};
    char open = len > 0 && strchr("[(<{", *s) ? *s : '\0';
    size_t gap;

    c.s += open != '\0';
    if (!skip_noun(&c, open != '\0'))
        return 0;
    gap = skip_all(&c, " =:_#-");
    if (gap > GAP_MAX || !skip_digits(&c, ret_rank))
        return 0;
    skip_total(&c);
    if (!skip_close(&c, open, gap == 0))
        return 0;
    skip_all(&c, " |");
    return (size_t)(c.s - s);
}

/* Whether the word of letters at s[*at] is prose, and not a level ("ERROR"), the name of a logger
 * ("root:", "trainer]") or of a host ("n03"). Moves behind it. */
static bool is_prose(const char *s, size_t len, size_t *at)
{
    bool small = false, digits = false;

    for (; *at < len && (isalnum((unsigned char)s[*at]) || strchr("_.-", s[*at])); ++*at) {
        small |= islower((unsigned char)s[*at]);
        digits |= isdigit((unsigned char)s[*at]);
    }
    return small && !digits && (*at == len || strchr(" ,;'", s[*at])) &&
           !(*at + 1 < len && strchr("|-:", s[*at + 1]));
}

int32_t speaker_find(const char *s, size_t len)
{
    int32_t rank;

    if (len > FIND_BYTES)
        len = FIND_BYTES;
    for (size_t i = 0; i < len;) {
        if (speaker_take(s + i, len - i, &rank) > 0)
            return rank;
        if (!isalpha((unsigned char)s[i]))
            i++;
        else if (is_prose(s, len, &i))
            break;
    }
    return RANK_NONE;
}
