/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/line.h"

#include "base/str.h"

#include <ctype.h>
#include <string.h>

static size_t skip_escape(const char *s, size_t len)
{
    size_t i = 1;

    if (len < 2 || s[1] != '[')
        return 1;
    for (i = 2; i < len && (s[i] < 0x40 || s[i] > 0x7e); i++)
        ;
    return i < len ? i + 1 : len;
}

static const char *number_at(const char *s, const char *end, int32_t *ret)
{
    int64_t v = 0;
    const char *from = s;

    for (; s < end && isdigit((unsigned char)*s) && v < INT32_MAX / 10; s++)
        v = v * 10 + (*s - '0');
    *ret = (int32_t)v;
    return s == from ? NULL : s;
}

static bool peel(struct line *l)
{
    const char *s = l->text, *end = s + l->len, *behind;
    int32_t n;

    if (l->len > 6 && memcmp(s, "[rank", 5) == 0 && (behind = number_at(s + 5, end, &n)) &&
        end - behind >= 2 && behind[0] == ']' && behind[1] == ':') {
        l->rank = n;
        behind += 2;
    } else if (l->len > 9 && memcmp(s, "[default", 8) == 0 &&
               (behind = number_at(s + 8, end, &n)) && end - behind >= 2 && behind[0] == ']' &&
               behind[1] == ':') {
        l->local_rank = n;
        behind += 2;
    } else {
        return false;
    }
    if (behind < end && *behind == ' ')
        behind++;
    l->text = behind;
    l->len = (size_t)(end - behind);
    return true;
}

void line_clean(const char *raw, size_t len, char *buf, struct line *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < len;) {
        if (raw[i] == '\033') {
            i += skip_escape(raw + i, len - i);
        } else if (raw[i] == '\0') {
            i++;
        } else {
            buf[n++] = raw[i++];
        }
    }
    while (n > 0 && isspace((unsigned char)buf[n - 1]))
        n--;
    buf[n] = '\0';
    *ret = (struct line){
        .whole = buf,
        .whole_len = n,
        .text = buf,
        .len = n,
        .time_us = USEC_UNKNOWN,
        .rank = RANK_NONE,
        .local_rank = RANK_NONE,
    };
    while (peel(ret))
        ;
}
