/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_READER_WORD_H
#define REKNIT_SOURCE_READER_WORD_H

/* What a reader says, made safe. It is its user's process, who may have put any other in its place:
 * so kinds, numbers and texts are checked, and how many there are is counted. */

#include "base/time.h"
#include "core/model/event.h"
#include "source/reader_state.h"

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>

#define READER_FILES_MAX READER_MARKS_MAX /* of one attempt, in one place */

/* A signal of a log, which is the job's own text whatever it calls itself. False: it is none. */
bool reader_word_signal(const json_t *t, struct event *ret);

struct reader_file {
    uint32_t file;
    char path[PATH_MAX];
    char trouble[256]; /* why it cannot be read; "" = it is read */
    bool local;        /* its file system is the reader's host's alone */
};

/* False: a file of no such number, of this and of the next. */
bool reader_word_file(const json_t *t, struct reader_file *ret);
bool reader_word_number(const json_t *t, uint32_t *ret);

/* That member, "" = there is no such text. */
void reader_word_text(const json_t *t, const char *key, char *ret, size_t size);

/* How many there were since a second began. */
struct reader_rate {
    usec_t since; /* monotonic */
    unsigned n;
};

/* One more; the how manieth it is. */
unsigned reader_rate_count(struct reader_rate *r, usec_t now);

#endif
