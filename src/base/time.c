/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static usec_t read_clock(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (usec_t)ts.tv_sec * USEC_PER_SEC + ts.tv_nsec / 1000;
}

usec_t now_us(void)
{
    return read_clock(CLOCK_REALTIME);
}

usec_t mono_us(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int poll_timeout(usec_t deadline)
{
    usec_t now = mono_us();

    if (deadline <= now)
        return 0;
    if (deadline - now >= USEC_PER_HOUR)
        return (int)(USEC_PER_HOUR / USEC_PER_MSEC);
    return (int)((deadline - now - 1) / USEC_PER_MSEC) + 1;
}

static const struct {
    const char *name;
    usec_t us;
} units[] = {
    {"us", 1},           {"ms", USEC_PER_MSEC}, {"s", USEC_PER_SEC},  {"sec", USEC_PER_SEC},
    {"m", USEC_PER_MIN}, {"min", USEC_PER_MIN}, {"h", USEC_PER_HOUR}, {"d", USEC_PER_DAY},
};

static usec_t unit_us(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strlen(units[i].name) == len && memcmp(units[i].name, name, len) == 0)
            return units[i].us;
    return 0;
}

/* One "12.5min" at *text, which moves behind it. */
static int parse_term(const char **text, usec_t *ret_us)
{
    const char *s = *text;
    usec_t whole = 0, frac = 0, scale = 1, us;
    const char *name;

    if (!isdigit((unsigned char)*s))
        return -EINVAL;
    for (; isdigit((unsigned char)*s); s++)
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, *s - '0', &whole))
            return -ERANGE;
    if (*s == '.')
        for (s++; isdigit((unsigned char)*s); s++)
            if (scale < 1000000) {
                frac = frac * 10 + (*s - '0');
                scale *= 10;
            }
    while (*s == ' ')
        s++;
    for (name = s; isalpha((unsigned char)*s); s++)
        ;
    us = unit_us(name, (size_t)(s - name));
    if (us == 0)
        return -EINVAL;
    if (__builtin_mul_overflow(whole, us, &whole))
        return -ERANGE;
    /* us / scale first would lose digits; frac < 10^6 and us < 2^37 cannot overflow. */
    *ret_us = whole + frac * us / scale;
    *text = s;
    return 0;
}

int duration_parse(const char *text, usec_t *ret_us)
{
    usec_t sum = 0, term;
    bool any = false;

    for (;;) {
        int r;

        while (*text == ' ')
            text++;
        if (*text == '\0')
            break;
        r = parse_term(&text, &term);
        if (r < 0)
            return r;
        if (__builtin_add_overflow(sum, term, &sum))
            return -ERANGE;
        any = true;
    }
    if (!any)
        return -EINVAL;
    *ret_us = sum;
    return 0;
}

const char *duration_format(usec_t us, char buf[DURATION_TEXT_MAX])
{
    const char *sign = us < 0 ? "-" : "";
    long long s;

    if (us == USEC_NEVER) {
        snprintf(buf, DURATION_TEXT_MAX, "never");
        return buf;
    }
    if (us < 0)
        us = us == USEC_UNKNOWN ? 0 : -us;
    s = (long long)(us / USEC_PER_SEC);
    if (us < USEC_PER_SEC)
        snprintf(buf, DURATION_TEXT_MAX, "%s%lldms", sign, (long long)(us / USEC_PER_MSEC));
    else if (s < 60)
        snprintf(buf, DURATION_TEXT_MAX, "%s%lld.%llds", sign, s,
                 (long long)(us % USEC_PER_SEC / (USEC_PER_SEC / 10)));
    else if (s < 3600)
        snprintf(buf, DURATION_TEXT_MAX, "%s%lldmin %02llds", sign, s / 60, s % 60);
    else if (s < 86400)
        snprintf(buf, DURATION_TEXT_MAX, "%s%lldh %02lldmin", sign, s / 3600, s % 3600 / 60);
    else
        snprintf(buf, DURATION_TEXT_MAX, "%s%lldd %lldh", sign, s / 86400, s % 86400 / 3600);
    return buf;
}

int64_t days_from_civil(int64_t year, unsigned month, unsigned day)
{
    int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

const char *timestamp_format(usec_t us, char buf[TIMESTAMP_TEXT_MAX])
{
    time_t s = (time_t)(us / USEC_PER_SEC);
    long ms = (long)(us % USEC_PER_SEC / USEC_PER_MSEC);
    struct tm tm;
    size_t n;

    if (ms < 0) {
        ms += 1000;
        s--;
    }
    if (us == USEC_UNKNOWN || us == USEC_NEVER || !gmtime_r(&s, &tm)) {
        snprintf(buf, TIMESTAMP_TEXT_MAX, "-");
        return buf;
    }
    n = strftime(buf, TIMESTAMP_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(buf + n, TIMESTAMP_TEXT_MAX - n, ".%03ldZ", ms);
    return buf;
}
