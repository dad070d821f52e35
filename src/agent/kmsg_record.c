/* SPDX-License-Identifier: Apache-2.0 */

/* "priority and facility, number, microseconds, flags[, more];text". The kernel writes bytes that
 * are not printable ASCII, and the backslash, as \xNN; other fields may be added before the ';'. */

#include "agent/kmsg_record.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define FACILITY_SHIFT 3

/* Decimal digits up to a comma; moves behind it. */
static bool read_number(const char **at, const char *end, uint64_t *ret)
{
    const char *s = *at;
    uint64_t v = 0;

    for (; s < end && isdigit((unsigned char)*s); s++)
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
            return false;
    if (s == *at || s == end || *s != ',')
        return false;
    *at = s + 1;
    *ret = v;
    return true;
}

static int hex_digit(char c)
{
    if (isdigit((unsigned char)c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that stands at s, and how long it is written; 0: as it is. */
static size_t read_escape(const char *s, const char *end, char *ret)
{
    if (end - s < 4 || s[0] != '\\' || s[1] != 'x' || hex_digit(s[2]) < 0 || hex_digit(s[3]) < 0)
        return 0;
    *ret = (char)(hex_digit(s[2]) << 4 | hex_digit(s[3]));
    return 4;
}

static void read_text(const char *s, const char *end, char *ret, size_t size)
{
    size_t n = 0;

    while (s < end && n + 1 < size) {
        char c = *s;
        size_t len = read_escape(s, end, &c);

        if (c == '\n' || c == '\0')
            break;
        ret[n++] = c;
        s += len > 0 ? len : 1;
    }
    ret[n] = '\0';
}

int kmsg_record_parse(const char *line, size_t len, struct kmsg_record *ret)
{
    const char *at = line, *end = line + len, *text = memchr(line, ';', len);
    uint64_t prio, seq, boot;

    if (!text || !read_number(&at, text, &prio) || !read_number(&at, text, &seq) ||
        !read_number(&at, text, &boot) || seq > INT64_MAX || boot > INT64_MAX / 2)
        return -EBADMSG;
    ret->by_kernel = prio >> FACILITY_SHIFT == 0;
    ret->seq = seq;
    ret->boot_us = (usec_t)boot;
    read_text(text + 1, end, ret->text, sizeof(ret->text));
    return 0;
}
