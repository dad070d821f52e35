/* SPDX-License-Identifier: Apache-2.0 */

/* A terminal shows less than what was written, and collectors write more than what was shown: the
 * ESC of a code may be missing ("[31m"), or be spelled ("#033[31m" by rsyslog, "^[[31m",
 * "\x1b[31m",
 * "\u001b[31m"). Whether "[31m" without ESC is a code or text is decided by its number: only those
 * that set or reset a colour or weight are. */

#include "extract/line.h"

#include "base/str.h"
#include "extract/prefix.h"

#include <ctype.h>
#include <string.h>

#define LEVEL_WITHIN 80 /* bytes of the message: some loggers write the level behind their name */

/* Bytes that may begin something to take out. */
static bool is_special(unsigned char c)
{
    return (c < 0x20 && c != '\t') || c == 0x7f || c == '[' || c == '#' || c == '^' || c == '\\' ||
           c == 0xef;
}

/* Parameters and final byte of a control sequence (ECMA-48) at s; the length, 0 = it is none. */
static size_t sequence_length(const char *s, size_t len)
{
    size_t i = 0;

    while (i < len && i < 32 && s[i] >= 0x20 && s[i] <= 0x3f)
        i++;
    return i < len && s[i] >= 0x40 && s[i] <= 0x7e ? i + 1 : 0;
}

/* Behind ESC. */
static size_t escape_length(const char *s, size_t len)
{
    size_t n;

    if (len == 0)
        return 0;
    if (*s == '[') {
        n = sequence_length(s + 1, len - 1);
        return n > 0 ? n + 1 : 1;
    }
    if (*s == ']') {
        /* A title or link, up to BEL or ESC \. */
        for (n = 1; n < len && n < 512; n++)
            if (s[n] == '\a' || s[n] == '\033')
                return s[n] == '\a' || n + 1 == len ? n + 1 : n + 2;
        return 1;
    }
    return (unsigned char)*s >= 0x20 && (unsigned char)*s < 0x7f ? 1 : 0;
}

/* The number of a code that sets or resets colour or weight. */
static bool is_graphic_code(int v)
{
    return v <= 4 || v == 7 || v == 9 || (v >= 21 && v <= 29) || (v >= 30 && v <= 49) ||
           (v >= 90 && v <= 107);
}

/* At "[" without ESC: "[31m", "[1;32m", "[38;5;208m", "[0m", and what moves the cursor, "[K",
 * "[A", "[2K". Its length, 0 = it is text. */
static size_t bare_code_length(const char *s, size_t len)
{
    int v = 0, first = -1;
    size_t i = 1;

    for (; i < len && i < 20 && (isdigit((unsigned char)s[i]) || s[i] == ';'); i++) {
        if (s[i] == ';') {
            first = first < 0 ? v : first;
            v = 0;
        } else if (v < 1000) {
            v = v * 10 + (s[i] - '0');
        }
    }
    if (i >= len || (i + 1 < len && s[i + 1] == ']'))
        return 0;
    if (s[i] == 'm' && i > 1)
        return is_graphic_code(first < 0 ? v : first) ? i + 1 : 0;
    /* Between words "[A" may be text; at the end of a record it is none. */
    if ((s[i] == 'K' || s[i] == 'A') && i <= 3)
        return i + 1 == len || s[i + 1] == '\r' || s[i + 1] == '[' || s[i + 1] == '#' ? i + 1 : 0;
    return 0;
}

/* An ESC that was spelled out, followed by "[": the length of the spelling, 0 = none. */
static size_t spelled_escape(const char *s, size_t len)
{
    static const char *const spellings[] = {"#033",  "^[",    "\\x1b",  "\\u001b",
                                            "\\033", "\\x1B", "\\u001B"};

    for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) {
        size_t n = strlen(spellings[i]);

        if (len > n && memcmp(s, spellings[i], n) == 0 && s[n] == '[')
            return n;
    }
    return 0;
}

/* What stands at s: how many bytes to leave out (0 = it is text), and what to put there instead
 * ('\0' = nothing). */
static size_t special_length(const char *s, size_t len, char *ret_instead)
{
    size_t n;

    *ret_instead = '\0';
    switch (*s) {
    case '\033':
        return 1 + escape_length(s + 1, len - 1);
    case '[':
        return bare_code_length(s, len);
    case '#':
        if (len >= 4 && memcmp(s, "#015", 4) == 0)
            *ret_instead = '\r';
        else if (len >= 4 && memcmp(s, "#011", 4) == 0)
            *ret_instead = '\t';
        if (*ret_instead)
            return 4;
        break;
    case '^':
    case '\\':
        break;
    case '\r':
    case '\n':
    case '\b':
        /* Backspaces rewrite a bar, as CR does. */
        for (n = 1; *s == '\b' && n < len && s[n] == '\b'; n++)
            ;
        *ret_instead = '\r';
        return n;
    case '\xef':
        return len >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    default:
        return 1;
    }
    n = spelled_escape(s, len);
    return n > 0 ? n + escape_length(s + n, len - n) : 0;
}

size_t line_strip(const char *raw, size_t len, char *buf)
{
    size_t n = 0;

    for (size_t i = 0; i < len;) {
        size_t from = i, length;
        char instead;

        while (i < len && !is_special((unsigned char)raw[i]))
            i++;
        memcpy(buf + n, raw + from, i - from);
        n += i - from;
        if (i == len)
            break;
        length = special_length(raw + i, len - i, &instead);
        if (length == 0)
            buf[n++] = raw[i++];
        else if (instead)
            buf[n++] = instead;
        i += length;
    }
    return n;
}

/* "... [repeated 14x across cluster]": Ray shows one line for many. */
static uint32_t read_repeats(const struct line *l)
{
    static const char word[] = "[repeated ";
    const char *at = memmem(l->text, l->len, word, sizeof(word) - 1), *end = l->text + l->len;
    uint32_t n = 0;

    if (!at)
        return 1;
    for (at += sizeof(word) - 1; at < end && isdigit((unsigned char)*at) && n < 1000000; at++)
        n = n * 10 + (uint32_t)(*at - '0');
    return n > 0 && end - at > 10 && memcmp(at, "x across c", 10) == 0 ? n : 1;
}

void line_read(struct log_clock *clock, const char *text, size_t len, struct line *ret)
{
    while (len > 0 && (isspace((unsigned char)text[len - 1])))
        len--;
    *ret = (struct line){
        .whole = text,
        .whole_len = len,
        .text = text,
        .len = len,
        .time_us = USEC_UNKNOWN,
        .rank = RANK_NONE,
        .local_rank = RANK_NONE,
        .label = RANK_NONE,
        .repeats = 1,
    };
    prefix_take_all(clock, ret);
    if (ret->stream && ret->len > 30 && ret->text[ret->len - 1] != '|')
        ret->repeats = read_repeats(ret);
}

void line_clean(struct log_clock *clock, const char *raw, size_t len, char *buf, struct line *ret)
{
    size_t n = line_strip(raw, len, buf);

    for (size_t i = 0; i < n; i++)
        if (buf[i] == '\r')
            buf[i] = ' ';
    buf[n] = '\0';
    line_read(clock, buf, n, ret);
}

static bool is_letter_or_digit(const char *s, const char *from, const char *end)
{
    return s >= from && s < end && isalnum((unsigned char)*s);
}

static bool has_level(const char *s, const char *end, const char *level)
{
    size_t n = strlen(level);

    for (const char *at = s; (at = memmem(at, (size_t)(end - at), level, n)) != NULL; at += n)
        if (!is_letter_or_digit(at - 1, s, end) && !is_letter_or_digit(at + n, s, end))
            return true;
    return false;
}

/* "I0206 15:00:10" (absl), "[I206 15:00:10" (c10) */
static bool has_letter_level(const char *s, const char *end)
{
    for (const char *at = s; (at = memchr(at, 'I', (size_t)(end - at))) != NULL; at++) {
        size_t digits = 0;

        while (is_letter_or_digit(at + 1 + digits, s, end) &&
               isdigit((unsigned char)at[1 + digits]))
            digits++;
        if (digits >= 3 && digits <= 4 && end - at > 9 && at[1 + digits] == ' ' &&
            at[4 + digits] == ':' && !is_letter_or_digit(at - 1, s, end))
            return true;
    }
    return false;
}

bool line_is_informative(const struct line *line)
{
    static const char *const levels[] = {"INFO",      "DEBUG",      "\"info\"",
                                         "\"debug\"", "level=info", "level=debug"};
    size_t head = (size_t)(line->text - line->whole) + LEVEL_WITHIN;
    const char *s = line->whole, *end = s + (head < line->whole_len ? head : line->whole_len);

    for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
        if (has_level(s, end, levels[i]))
            return true;
    return has_letter_level(s, end);
}

uint32_t line_label(const struct line *line)
{
    bool tells =
        line->label >= 0 && line->mark == 0 && line->rank != RANK_NONE && line->rank != line->label;

    return tells ? (uint32_t)line->label + 1 : 0;
}
