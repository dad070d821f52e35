/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_JOURNAL_HIGH_WATER_H
#define REKNIT_JOURNAL_HIGH_WATER_H

/* The number of the last event that was committed, kept beside the journal (in FILE-last). SQLite
 * takes the first damaged frame of a write-ahead log for its end, and silently forgets all that was
 * committed after it; the same when the log is gone. This number tells. */

#include <stdint.h>

int high_water_create(const char *journal); /* a file descriptor, the caller's; negative errno */

/* Written after each commit: what is noted was committed. A failure is only less to tell later. */
void high_water_note(int fd, uint64_t seq);
uint64_t high_water_read(const char *journal); /* 0: nothing is noted */

#endif
