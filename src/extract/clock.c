/* SPDX-License-Identifier: Apache-2.0 */

/* All forms but one ("2026-01-02 03:04") have HH:MM:SS in common. That is sought first; then the
 * date is read leftwards from it, and fraction, zone and the year of ctime rightwards:
 *
 *   2026-01-02T03:04:05.678901Z    2026-01-02 03:04:05,678 +0100   2026/01/02 03:04:05
 *   10/23/2024 17:14:38            02/26 21:14:05                  Feb  6 03:08:40 (syslog)
 *   Wed Mar 11 02:13:53 2026       I1115 03:04:05.678901 (absl)    E321 03:04:05.678901234 (c10) */

#include "extract/clock.h"

#include <ctype.h>
#include <string.h>

#define SEARCH_BYTES 72
#define MINUTE_BYTES 40 /* a time without seconds stands right at the beginning */

struct date {
    int64_t year; /* 0 = not given */
    unsigned month, day;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* n digits at s, -1 = they are none. */
static int digits(const char *s, size_t n)
{
    int v = 0;

    for (size_t i = 0; i < n; i++) {
        if (!is_digit(s[i]))
            return -1;
        v = v * 10 + (s[i] - '0');
    }
    return v;
}

static bool is_time_of_day(const char *s)
{
    return s[2] == ':' && s[5] == ':' && digits(s, 2) >= 0 && digits(s, 2) < 24 &&
           digits(s + 3, 2) >= 0 && digits(s + 3, 2) < 60 && digits(s + 6, 2) >= 0 &&
           digits(s + 6, 2) <= 60;
}

static unsigned month_of_name(const char *s)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    for (unsigned i = 0; i < 12; i++)
        if (memcmp(s, names + (size_t)3 * i, 3) == 0)
            return i + 1;
    return 0;
}

static bool set_date(struct date *d, int64_t year, int month, int day)
{
    if (month < 1 || month > 12 || day < 1 || day > 31 || (year != 0 && year < 1980))
        return false;
    *d = (struct date){year, (unsigned)month, (unsigned)day};
    return true;
}

/* "2026-01-02", "2026/01/02", "10/23/2024", "23-10-2024" ending at s + n. */
static bool read_long_date(const char *s, size_t n, struct date *ret, size_t *ret_begin)
{
    const char *d = s + n - 10;
    int a, b;

    if (n < 10 || (n > 10 && is_digit(d[-1])))
        return false;
    *ret_begin = n - 10;
    if ((d[4] == '-' || d[4] == '/') && d[7] == d[4])
        return digits(d, 4) > 0 && set_date(ret, digits(d, 4), digits(d + 5, 2), digits(d + 8, 2));
    if ((d[2] != '/' && d[2] != '-') || d[5] != d[2] || digits(d + 6, 4) < 0)
        return false;
    a = digits(d, 2);
    b = digits(d + 3, 2);
    return set_date(ret, digits(d + 6, 4), a, b) || set_date(ret, digits(d + 6, 4), b, a);
}

/* "02/26" or "02-26" ending at s + n. */
static bool read_short_date(const char *s, size_t n, struct date *ret, size_t *ret_begin)
{
    const char *d = s + n - 5;

    if (n < 5 || (d[2] != '/' && d[2] != '-') ||
        (n > 5 && (is_digit(d[-1]) || d[-1] == '/' || d[-1] == '-')))
        return false;
    *ret_begin = n - 5;
    return set_date(ret, 0, digits(d, 2), digits(d + 3, 2));
}

/* "I1115" (absl: month and day), "E321" (c10: neither padded to two digits at the left). */
static bool read_glog_date(const char *s, size_t n, struct date *ret, size_t *ret_begin)
{
    size_t from = n;

    while (from > 0 && n - from < 4 && is_digit(s[from - 1]))
        from--;
    if (n - from < 3 || from == 0 || !strchr("IWEFDV", s[from - 1]) ||
        (from > 1 && isalnum((unsigned char)s[from - 2])))
        return false;
    *ret_begin = from - 1;
    return set_date(ret, 0, digits(s + from, n - from - 2), digits(s + n - 2, 2));
}

/* "Mar 11", "Feb  6", with "Wed " before it or not, ending at s + n. */
static bool read_named_date(const char *s, size_t n, struct date *ret, size_t *ret_begin)
{
    size_t from = n;
    unsigned month;
    int day;

    while (from > 0 && n - from < 2 && is_digit(s[from - 1]))
        from--;
    day = n == from ? -1 : digits(s + from, n - from);
    while (from > 0 && s[from - 1] == ' ' && n - from < 4)
        from--;
    if (day < 0 || from < 3 || !(month = month_of_name(s + from - 3)))
        return false;
    from -= 3;
    if (from >= 4 && s[from - 1] == ' ' && isupper((unsigned char)s[from - 4]) &&
        islower((unsigned char)s[from - 3]) && islower((unsigned char)s[from - 2]) &&
        (from == 4 || !isalpha((unsigned char)s[from - 5])))
        from -= 4;
    *ret_begin = from;
    return set_date(ret, 0, (int)month, day);
}

/* The date in front of the time of day at s + at, with the one character between them. */
static bool read_date(const char *s, size_t at, struct date *ret, size_t *ret_begin)
{
    if (at < 4 || !strchr(" T_", s[at - 1]))
        return false;
    at--;
    return read_long_date(s, at, ret, ret_begin) || read_named_date(s, at, ret, ret_begin) ||
           read_glog_date(s, at, ret, ret_begin) || read_short_date(s, at, ret, ret_begin);
}

/* ".678901" or ",678" at *at, which moves behind it. */
static usec_t read_fraction(const char *s, size_t len, size_t *at)
{
    usec_t v = 0, scale = USEC_PER_SEC;
    size_t i = *at + 1;

    if (i >= len || (s[*at] != '.' && s[*at] != ',') || !is_digit(s[i]))
        return 0;
    for (; i < len && is_digit(s[i]); i++) {
        scale /= 10;
        v += (s[i] - '0') * scale;
    }
    *at = i;
    return v;
}

/* "Z", " UTC", "+01:00", " -0500" at *at, which moves behind it; what to add to get UTC. */
static usec_t read_zone(const char *s, size_t len, size_t *at)
{
    size_t i = *at;
    int hours, minutes;

    if (i < len && s[i] == 'Z') {
        ++*at;
        return 0;
    }
    if (len - i >= 4 && (memcmp(s + i, " UTC", 4) == 0 || memcmp(s + i, " GMT", 4) == 0)) {
        *at += 4;
        return 0;
    }
    i += i < len && s[i] == ' ';
    if (len - i < 5 || (s[i] != '+' && s[i] != '-'))
        return 0;
    hours = digits(s + i + 1, 2);
    minutes = s[i + 3] == ':' ? (len - i >= 6 ? digits(s + i + 4, 2) : -1) : digits(s + i + 3, 2);
    if (hours < 0 || hours > 14 || minutes < 0 || minutes > 59)
        return 0;
    *at = i + (s[i + 3] == ':' ? 6 : 5);
    return (s[i] == '+' ? -1 : 1) * (hours * USEC_PER_HOUR + minutes * USEC_PER_MIN);
}

/* " 2026" of ctime at *at, which moves behind it; 0 = none. */
static int64_t read_late_year(const char *s, size_t len, size_t *at)
{
    int year;

    if (len - *at < 5 || s[*at] != ' ' || (len - *at > 5 && is_digit(s[*at + 5])))
        return 0;
    year = digits(s + *at + 1, 4);
    if (year < 1980 || year > 2200)
        return 0;
    *at += 5;
    return year;
}

static usec_t at_midnight(int64_t year, const struct date *d)
{
    return days_from_civil(year, d->month, d->day) * USEC_PER_DAY;
}

static int64_t year_of(usec_t us)
{
    int64_t year = 1970 + us / USEC_PER_DAY / 366;

    while (days_from_civil(year + 1, 1, 1) * USEC_PER_DAY <= us)
        year++;
    return year;
}

/* The year that brings the date nearest to the last full one of the log, else the last year in
 * which it is not later than now. */
static int64_t guess_year(const struct log_clock *c, const struct date *d)
{
    bool has_last = c->last_us != USEC_UNKNOWN;
    usec_t near = has_last ? c->last_us : c->now_us, best_distance = INT64_MAX;
    int64_t year, best = 0;

    if (near == USEC_UNKNOWN || near <= 0)
        return 0;
    year = year_of(near);
    for (int64_t y = year - 1; y <= year + 1; y++) {
        usec_t distance = at_midnight(y, d) - near;

        if (!has_last && distance > USEC_PER_DAY)
            continue;
        distance = distance < 0 ? -distance : distance;
        if (distance < best_distance) {
            best_distance = distance;
            best = y;
        }
    }
    return best;
}

static void finish_reading(struct log_clock *c, const char *s, size_t len, size_t at,
                           struct date *d, struct clock_reading *r)
{
    bool has_year;

    r->time_us = digits(s + at, 2) * USEC_PER_HOUR + digits(s + at + 3, 2) * USEC_PER_MIN +
                 digits(s + at + 6, 2) * USEC_PER_SEC;
    r->end = at + 8;
    r->time_us += read_fraction(s, len, &r->end);
    r->time_us += read_zone(s, len, &r->end);
    if (d->year == 0)
        d->year = read_late_year(s, len, &r->end);
    has_year = d->year != 0;
    if (!has_year)
        d->year = guess_year(c, d);
    if (d->year == 0) {
        r->time_us = USEC_UNKNOWN;
        return;
    }
    r->time_us += at_midnight(d->year, d);
    if (has_year)
        c->last_us = r->time_us;
}

/* "2026-01-02 03:04", as watchers write that look every few minutes. */
static bool read_minute(struct log_clock *c, const char *s, size_t len, struct clock_reading *ret)
{
    for (size_t at = 11; at + 5 <= len && at < MINUTE_BYTES; at++) {
        int hour = digits(s + at, 2), minute = digits(s + at + 3, 2);
        struct date d;

        if (s[at + 2] != ':' || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
            (s[at - 1] != ' ' && s[at - 1] != 'T') ||
            (at + 5 < len && (is_digit(s[at + 5]) || s[at + 5] == ':')) ||
            !read_long_date(s, at - 1, &d, &ret->begin))
            continue;
        ret->end = at + 5;
        ret->time_us = at_midnight(d.year, &d) + hour * USEC_PER_HOUR + minute * USEC_PER_MIN;
        c->last_us = ret->time_us;
        return true;
    }
    return false;
}

bool clock_read(struct log_clock *c, const char *s, size_t len, struct clock_reading *ret)
{
    size_t n = len < SEARCH_BYTES ? len : SEARCH_BYTES;
    struct date date = {0};

    for (size_t at = 0; at + 8 <= n; at++) {
        size_t begin;

        if (s[at + 2] != ':' || !is_time_of_day(s + at) ||
            (at > 0 && (is_digit(s[at - 1]) || s[at - 1] == ':')) ||
            (at + 8 < len && (is_digit(s[at + 8]) || s[at + 8] == ':')))
            continue;
        if (read_date(s, at, &date, &begin)) {
            ret->begin = begin;
            finish_reading(c, s, len, at, &date, ret);
            return true;
        }
        if (at > 1)
            continue;
        *ret = (struct clock_reading){USEC_UNKNOWN, at, at + 8};
        read_fraction(s, len, &ret->end);
        return true;
    }
    return read_minute(c, s, len, ret);
}

size_t clock_read_uptime(const char *s, size_t len, usec_t *ret)
{
    usec_t seconds = 0;
    size_t i = 1, from;
    int micros;

    if (len < 10 || s[0] != '[')
        return 0;
    while (i < len && s[i] == ' ')
        i++;
    for (from = i; i < len && is_digit(s[i]) && i - from < 10; i++)
        seconds = seconds * 10 + (s[i] - '0');
    if (i == from || len - i < 8 || s[i] != '.' || s[i + 7] != ']')
        return 0;
    micros = digits(s + i + 1, 6);
    if (micros < 0)
        return 0;
    *ret = seconds * USEC_PER_SEC + micros;
    return i + 8;
}

/* Digits behind the first `word` in s as a date of this century, in seconds; 0 = there is none. */
static usec_t epoch_behind(const char *s, size_t len, const char *word)
{
    const char *at = memmem(s, len, word, strlen(word)), *end = s + len;
    int high, low;

    if (!at || (size_t)(end - at) < strlen(word) + 11)
        return 0;
    at += strlen(word);
    high = digits(at, 5);
    low = digits(at + 5, 5);
    if (high < 10000 || low < 0 || !strchr(".)", at[10]))
        return 0;
    return (usec_t)high * 100000 + low;
}

/* The kernel tells the date itself: when it sets its clock while it boots, "rtc_cmos 00:04: setting
 * system clock to 2026-03-05T02:00:00 UTC (1772676000)", and in every record of its audit system,
 * "audit: type=1400 audit(1772676012.345:7): ...". */
void clock_learn_boot(struct log_clock *c, usec_t uptime, const char *message, size_t len)
{
    usec_t seconds = 0;

    if (len > 6 && memcmp(message, "audit: ", 7) == 0)
        seconds = epoch_behind(message, len, " audit(");
    else if (memmem(message, len < SEARCH_BYTES ? len : SEARCH_BYTES, "setting system clock to ",
                    24))
        seconds = epoch_behind(message, len, " UTC (");
    if (seconds > 0)
        c->boot_us = seconds * USEC_PER_SEC - uptime;
}
