/* SPDX-License-Identifier: Apache-2.0 */

/* Two kinds of lines come in sections. Kernel messages that an epilog, pdsh -b or a person put
 * together stand below the name of their node: "## kernel n13", "---- n13 ----", "n13 | CHANGED
 * >>". And tracebacks stand below a line that says whose they are, for loggers write their prefix
 * once: "rank 3 | ERROR | step failed", "-- Process 3 terminated with the following error:".
 *
 * A heading holds for what follows it at once and as long as that goes on, so a word too much does
 * little harm. */

#include "extract/section.h"

#include "base/str.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define HEADING_BYTES 160
#define WORDS_MAX     12

struct word {
    const char *s;
    size_t len;
};

static bool is_rule_char(char c)
{
    return c && strchr("#=-*>+~_<|", c);
}

static size_t rule_length(const char *s, size_t len)
{
    size_t n = 0;

    while (n < len && is_rule_char(s[n]))
        n++;
    return n;
}

static bool is_word(const struct word *w, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(words[i]) == w->len && strncasecmp(words[i], w->s, w->len) == 0)
            return true;
    return false;
}

/* A name with a number in it, as nodes have. */
static bool is_host(const struct word *w)
{
    bool digit = false;

    for (size_t i = 0; i < w->len; i++) {
        if (!isalnum((unsigned char)w->s[i]) && !strchr("-._", w->s[i]))
            return false;
        digit |= isdigit((unsigned char)w->s[i]);
    }
    return w->len > 1 && digit && isalpha((unsigned char)w->s[0]);
}

/* The words of a heading, without what they are decorated with. */
static size_t split(const struct line *l, struct word words[WORDS_MAX])
{
    const char *s = l->text, *end = s + l->len;
    size_t n = 0;

    while (s < end && n < WORDS_MAX) {
        const char *from;

        while (s < end && (strchr(" \t:,()[]", *s) || rule_length(s, 1)))
            s++;
        for (from = s; s < end && !strchr(" \t:,()[]=|", *s);)
            s++;
        if (s > from)
            words[n++] = (struct word){from, (size_t)(s - from)};
    }
    return n;
}

static void read_node(struct section *s, const struct line *l)
{
    static const char *const what[] = {"kernel",   "dmesg", "journal", "journalctl", "syslog",
                                       "messages", "node",  "host",    "hostname",   "on",
                                       "from",     "of",    "log",     "logs",       "kern",
                                       "the",      "lines", "output",  "since"};
    struct word words[WORDS_MAX], *name = NULL;
    size_t n = split(l, words);
    bool ansible = l->len > 2 && memcmp(l->text + l->len - 2, ">>", 2) == 0;

    for (size_t i = 0; i < n && !name; i++) {
        if (is_host(&words[i]))
            name = &words[i];
        else if (!is_word(&words[i], what, ARRAY_SIZE(what)))
            return;
    }
    if (name &&
        (n == 1 || ansible || rule_length(l->text, l->len) >= 2 || l->text[l->len - 1] == ':'))
        str_copy_n(s->node, sizeof(s->node), name->s, name->len);
}

/* "-- Process 3 terminated with the following error:" of torch.multiprocessing. */
static int32_t spawned_process(const struct line *l)
{
    static const char begin[] = "-- Process ", middle[] = " terminated with the following error";
    const char *s = l->text + sizeof(begin) - 1, *end = l->text + l->len;
    int32_t v = 0;

    if (l->len < sizeof(begin) + sizeof(middle) || memcmp(l->text, begin, sizeof(begin) - 1) != 0)
        return RANK_NONE;
    for (; s < end && isdigit((unsigned char)*s) && v < 100000; s++)
        v = v * 10 + (*s - '0');
    return memmem(s, (size_t)(end - s), middle, sizeof(middle) - 1) == s ? v : RANK_NONE;
}

static bool contains(const struct line *l, const char *word)
{
    return memmem(l->whole, l->whole_len, word, strlen(word)) != NULL;
}

/* What a step line above a traceback says of itself is no introduction. */
static bool tells_of_error(const struct line *l)
{
    static const char *const words[] = {"ERROR",  "CRITICAL", "FATAL",  "rror",     "xception",
                                        "failed", "FAILED",   "raised", "raceback", "crash"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (contains(l, words[i]))
            return true;
    return false;
}

/* "rank 3" anywhere in a line that announces something. */
static int32_t announced_rank(const struct line *l)
{
    for (size_t i = 0; i + 5 < l->len; i++) {
        size_t n = i + 4;
        int32_t v = 0;

        if (strncasecmp(l->text + i, "rank", 4) != 0 ||
            (i > 0 && (isalnum((unsigned char)l->text[i - 1]) || l->text[i - 1] == '_')))
            continue;
        while (n < l->len && n < i + 7 && strchr(" =:#", l->text[n]))
            n++;
        if (!isdigit((unsigned char)l->text[n]))
            continue;
        for (; n < l->len && isdigit((unsigned char)l->text[n]) && v < 10000000; n++)
            v = v * 10 + (l->text[n] - '0');
        return v;
    }
    return RANK_NONE;
}

static void introduce(struct section *s, const struct line *l)
{
    bool announces = l->text[l->len - 1] == ':' || rule_length(l->text, l->len) >= 2;

    s->rank = s->local_rank = RANK_NONE;
    if (l->rank != RANK_NONE || l->local_rank != RANK_NONE) {
        if (tells_of_error(l)) {
            s->rank = l->rank;
            s->local_rank = l->local_rank;
        }
        return;
    }
    if (l->len > HEADING_BYTES || !announces)
        return;
    s->local_rank = spawned_process(l);
    if (s->local_rank == RANK_NONE)
        s->rank = announced_rank(l);
}

static void note_heading(struct section *s, const struct line *l)
{
    bool is_rule = rule_length(l->text, l->len) == l->len;

    introduce(s, l);
    if (is_rule && !s->after_rule && *s->node) { /* below the name */
        s->after_rule = true;
        return;
    }
    s->node[0] = '\0';
    if (!is_rule && l->len <= HEADING_BYTES)
        read_node(s, l);
    s->after_rule = false;
}

void section_feed(struct section *s, struct line *line, enum traceback_part part)
{
    bool anonymous = line->rank == RANK_NONE && line->local_rank == RANK_NONE && line->stream == 0;

    if (line->of_system) {
        if (!line->node[0])
            STR_COPY(line->node, s->node);
        return;
    }
    if (line->len == 0)
        return;
    if (part == TRACEBACK_NONE) {
        s->is_open = s->is_done = false;
        note_heading(s, line);
        return;
    }
    if (s->is_done && contains(line, "Traceback (")) /* another's, right behind */
        s->rank = s->local_rank = RANK_NONE;
    s->is_done = part == TRACEBACK_EXCEPTION;
    s->is_open |= part == TRACEBACK_BODY && (s->rank != RANK_NONE || s->local_rank != RANK_NONE);
    if (!s->is_open || !anonymous)
        return;
    line->rank = s->rank;
    line->local_rank = s->local_rank;
}
