/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "base/alloc.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool str_startswith(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_endswith(const char *s, const char *suffix)
{
    size_t ls = strlen(s), lx = strlen(suffix);

    return ls >= lx && memcmp(s + ls - lx, suffix, lx) == 0;
}

bool str_copy_n(char *dst, size_t size, const char *src, size_t len)
{
    bool whole = len < size;

    assert(size > 0);
    if (!whole) {
        len = size - 1;
        while (len > 0 && ((unsigned char)src[len] & 0xc0) == 0x80)
            len--;
    }
    memcpy(dst, src, len);
    dst[len] = '\0';
    return whole;
}

/* In lanes of 16 that every processor has, 255 of them before the counts could overflow. */
bool str_has_number(const char *s, uint64_t number)
{
    char text[24];
    size_t n;

    STR_PRINTF(text, "%" PRIu64, number);
    n = strlen(text);
    for (const char *p = s; (p = strstr(p, text)); p++)
        if ((p == s || !isdigit((unsigned char)p[-1])) && !isdigit((unsigned char)p[n]))
            return true;
    return false;
}

static bool list_has(const char *list, const char *element, size_t length)
{
    for (;; list++) {
        size_t n = strcspn(list, ",");

        if (n == length && memcmp(list, element, n) == 0)
            return true;
        list += n;
        if (!*list)
            return false;
    }
}

bool str_lists_overlap(const char *a, const char *b)
{
    for (;; a++) {
        size_t n = strcspn(a, ",");

        if (list_has(b, a, n))
            return true;
        a += n;
        if (!*a)
            return false;
    }
}

size_t str_count(const char *s, size_t len, char c)
{
    typedef char lane __attribute__((vector_size(16)));
    typedef unsigned char counts __attribute__((vector_size(16)));
    size_t n = 0, i = 0;

    while (len - i >= sizeof(lane)) {
        size_t rounds = (len - i) / sizeof(lane);
        counts sum = {0};

        for (rounds = rounds < 255 ? rounds : 255; rounds > 0; rounds--, i += sizeof(lane)) {
            lane v;

            memcpy(&v, s + i, sizeof(v));
            sum -= (counts)(v == c); /* a true element is -1 */
        }
        for (size_t j = 0; j < sizeof(sum); j++)
            n += sum[j];
    }
    for (; i < len; i++)
        n += s[i] == c;
    return n;
}

bool str_copy(char *dst, size_t size, const char *src)
{
    return str_copy_n(dst, size, src, strlen(src));
}

void str_printf(char *dst, size_t size, const char *format, ...)
{
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(dst, size, format, ap);
    va_end(ap);
    if (n < 0) {
        dst[0] = '\0';
    } else if ((size_t)n >= size) { /* the byte that the terminator replaced is not known */
        size_t len = size - 1;

        while (len > 0 && ((unsigned char)dst[len - 1] & 0xc0) == 0x80)
            len--;
        if (len > 0 && (unsigned char)dst[len - 1] >= 0xc0)
            len--;
        dst[len] = '\0';
    }
}

int str_to_i64(const char *s, long long *ret)
{
    char *end;
    long long v;

    errno = 0;
    v = strtoll(s, &end, 10);
    if (errno == ERANGE)
        return -ERANGE;
    if (end == s || *end != '\0')
        return -EINVAL;
    *ret = v;
    return 0;
}

/* Length of the valid UTF-8 sequence at s (RFC 3629), 0 when there is none; its code point. */
static size_t utf8_decode(const unsigned char *s, size_t len, uint32_t *ret_code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n;
    uint32_t code;

    if (s[0] < 0x80) {
        *ret_code = s[0];
        return 1;
    }
    n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || len < n)
        return 0;
    code = s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *ret_code = code;
    return n;
}

/* Codes that show nothing (Unicode's Default_Ignorable_Code_Point, and the marks of annotations),
 * so that two names could look alike; or that reorder what a terminal or page shows (UAX #9), or
 * begin a line on some. Ascending. */
static bool is_unseen(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } unseen[] = {
        {0x00ad, 0x00ad},   {0x034f, 0x034f}, {0x061c, 0x061c},   {0x115f, 0x1160},
        {0x17b4, 0x17b5},   {0x180b, 0x180f}, {0x200b, 0x200f},   {0x2028, 0x202e},
        {0x2060, 0x206f},   {0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
        {0xffa0, 0xffa0},   {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
        {0xe0000, 0xe0fff},
    };

    for (size_t i = 0; i < ARRAY_SIZE(unseen) && code >= unseen[i].first; i++)
        if (code <= unseen[i].last)
            return true;
    return false;
}

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

size_t str_sanitize(char *dst, size_t size, const char *src, size_t len)
{
    static const char replacement[] = "\xef\xbf\xbd";
    const unsigned char *s = (const unsigned char *)src;
    size_t out = 0;

    assert(size > 0);
    for (size_t i = 0; i < len;) {
        uint32_t code = 0;
        size_t n = utf8_decode(s + i, len - i, &code), width = n;
        const char *from = src + i;

        if (code == '\t' || code == '\r' || code == '\n') {
            from = " ";
        } else if (n == 0 || is_control(code) || is_unseen(code)) {
            width = 3;
            from = replacement;
        }
        if (n == 0)
            n = 1;
        if (out + width >= size)
            break;
        memcpy(dst + out, from, width);
        out += width;
        i += n;
    }
    dst[out] = '\0';
    return out;
}

size_t str_fit(const char *text, size_t columns)
{
    size_t n = 0, blank = 0;

    for (size_t used = 0; text[n]; n++) {
        if (((unsigned char)text[n] & 0xc0) == 0x80)
            continue;
        if (used++ == columns)
            return text[n] == ' ' || blank == 0 ? n : blank;
        if (text[n] == ' ')
            blank = n;
    }
    return n;
}

#define WORD_MAX 64

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t str_distance(const char *a, const char *b)
{
    size_t n = strnlen(a, WORD_MAX - 1), m = strnlen(b, WORD_MAX - 1);
    size_t rows[3][WORD_MAX], *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= m; j++)
        last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *spare = before;

        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        before = last;
        last = row;
        row = spare;
    }
    return last[m];
}

size_t str_tolerance(const char *word)
{
    return least((strlen(word) + 1) / 2, 3);
}

void strbuf_done(struct strbuf *b)
{
    free(b->s);
    memset(b, 0, sizeof(*b));
}

void strbuf_reset(struct strbuf *b)
{
    b->len = 0;
    if (b->s)
        b->s[0] = '\0';
}

static void strbuf_reserve(struct strbuf *b, size_t more)
{
    size_t need = b->len + more + 1;

    if (need <= b->cap)
        return;
    b->cap = need < 64 ? 64 : need + need / 2;
    b->s = xreallocarray(b->s, b->cap, 1);
}

void strbuf_add(struct strbuf *b, const char *s, size_t len)
{
    strbuf_reserve(b, len);
    memcpy(b->s + b->len, s, len);
    b->len += len;
    b->s[b->len] = '\0';
}

void strbuf_adds(struct strbuf *b, const char *s)
{
    strbuf_add(b, s, strlen(s));
}

void strbuf_addc(struct strbuf *b, char c)
{
    strbuf_add(b, &c, 1);
}

void strbuf_addf(struct strbuf *b, const char *format, ...)
{
    va_list ap, again;
    int n;

    va_start(ap, format);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    assert(n >= 0);
    strbuf_reserve(b, (size_t)n);
    vsnprintf(b->s + b->len, (size_t)n + 1, format, again);
    va_end(again);
    b->len += (size_t)n;
}

const char *strbuf_str(const struct strbuf *b)
{
    return b->s ? b->s : "";
}

void strbuf_add_shell_word(struct strbuf *b, const char *word)
{
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789@%_-+=:,./";

    if (word[0] && word[strspn(word, harmless)] == '\0') {
        strbuf_adds(b, word);
        return;
    }
    strbuf_addc(b, '\'');
    for (const char *s = word; *s; s++) {
        if (*s == '\'')
            strbuf_adds(b, "'\\''");
        else
            strbuf_addc(b, *s);
    }
    strbuf_addc(b, '\'');
}
