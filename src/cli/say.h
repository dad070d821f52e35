/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_SAY_H
#define REKNIT_CLI_SAY_H

/* reknit's own lines on standard error, between the job's, never inside of one. */

#include "base/cleanup.h"

#include <stdbool.h>
#include <systemd/sd-event.h>

struct say;

/* quiet: only say_loud() is heard. NULL: the loop takes no more timers. */
struct say *say_new(sd_event *event, bool quiet);
struct say *say_free(struct say *s); /* what still waits is written */
DEFINE_CLEANUP(struct say *, say_free);

/* How many columns a line of a table may have: of the terminal, else of a usual one. A sentence is
 * wrapped on a terminal, and one line elsewhere, so that grep finds it whole. */
size_t say_columns(const struct say *s);

/* Whether the job's output stands at the beginning of a line now, wherever that shares the screen
 * or file with standard error. While it does not, lines wait for a moment. */
void say_set_mid_line(struct say *s, bool mid_line);
/* The job has said all it will say for now: no line waits, mid-line or not. */
void say_set_alone(struct say *s, bool alone);
/* The terminal is raw: lines need their own carriage return. */
void say_set_raw(struct say *s, bool raw);

void say(struct say *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void say_loud(struct say *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
