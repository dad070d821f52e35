/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_CLOCK_H
#define REKNIT_EXTRACT_CLOCK_H

/* The time that a line shows, in any of the forms that loggers, launchers and kernels write. */

#include "base/time.h"

#include <stdbool.h>

/* What is known so far about a log; gives times without a year one. */
struct log_clock {
    usec_t now_us;  /* nothing in the log is later than this, but for a day; USEC_UNKNOWN */
    usec_t last_us; /* last time with a full date, USEC_UNKNOWN: none yet */
    usec_t boot_us; /* when the machine was booted whose kernel wrote it; 0 = not known */
};

struct clock_reading {
    usec_t time_us;    /* USEC_UNKNOWN: a time of day without a date */
    size_t begin, end; /* where it stands */
};

/* Finds a time near the beginning of s. Times without a zone are taken as UTC. */
bool clock_read(struct log_clock *c, const char *s, size_t len, struct clock_reading *ret);

/* "[ 2207.114806]" and "[12345.678901]" at s: microseconds since boot. Returns bytes, 0 = none. */
size_t clock_read_uptime(const char *s, size_t len, usec_t *ret);

/* Learns from the message behind an uptime when the machine was booted, if it tells the date. */
void clock_learn_boot(struct log_clock *c, usec_t uptime, const char *message, size_t len);

#endif
