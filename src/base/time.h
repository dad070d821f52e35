/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_TIME_H
#define REKNIT_BASE_TIME_H

/* Time is integer microseconds everywhere. A point in time counts from the Unix epoch, UTC.
 * Nothing here reads a clock but now_us(), mono_us() and poll_timeout(), which core must not call.
 */

#include <stddef.h>
#include <stdint.h>

typedef int64_t usec_t;

#define USEC_PER_MSEC ((usec_t)1000)
#define USEC_PER_SEC  ((usec_t)1000000)
#define USEC_PER_MIN  (60 * USEC_PER_SEC)
#define USEC_PER_HOUR (60 * USEC_PER_MIN)
#define USEC_PER_DAY  (24 * USEC_PER_HOUR)
#define USEC_NEVER    INT64_MAX /* a deadline that is not set */
#define USEC_UNKNOWN  INT64_MIN /* a point in time that the source did not give */

static inline usec_t usec_min(usec_t a, usec_t b)
{
    return a < b ? a : b;
}

static inline usec_t usec_max(usec_t a, usec_t b)
{
    return a > b ? a : b;
}

usec_t now_us(void);  /* wall clock */
usec_t mono_us(void); /* monotonic clock, for intervals and loop deadlines */

/* How long poll(2) may wait for a deadline of mono_us(), in ms: 0 once it is past (a negative
 * number would wait for ever), rounded up, an hour at most. */
int poll_timeout(usec_t deadline);

/* "850ms", "90s", "5m", "1h 30m", "2d": numbers with units, summed. A bare number is an error,
 * because nobody remembers which unit it means. Returns 0, -EINVAL, -ERANGE. */
int duration_parse(const char *text, usec_t *ret_us);

#define DURATION_TEXT_MAX 32
/* The two largest units that matter: "1.4s", "2min 03s", "3h 20min", "12d 4h". Returns buf. */
const char *duration_format(usec_t us, char buf[DURATION_TEXT_MAX]);

#define TIMESTAMP_TEXT_MAX 32
/* ISO 8601 in UTC with milliseconds, "2026-01-02T03:04:05.678Z". Returns buf. */
const char *timestamp_format(usec_t us, char buf[TIMESTAMP_TEXT_MAX]);

/* Days since 1970-01-01 of a proleptic Gregorian date (month 1..12). */
int64_t days_from_civil(int64_t year, unsigned month, unsigned day);

#endif
