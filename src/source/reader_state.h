/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_READER_STATE_H
#define REKNIT_SOURCE_READER_STATE_H

/* How far the logs of each job have been read, kept in a file for when the daemon is started
 * again. The marks are those of reknit-reader (reader/serve.c), an object of them by path.
 *
 * Jobs may write one after the other into one file. So when a job is forgotten, the marks of files
 * that have no name of its own are left for the next jobs of its owner. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#define READER_MARKS_MAX 2048 /* of one job */

/* Puts the well formed ones of a list into `marks`. Whether all were. */
bool reader_marks_merge(json_t *marks, const json_t *list);
json_t *reader_marks_list(const json_t *marks); /* owned by the caller */

struct reader_record {
    const char *job;
    uid_t uid;
    uint32_t attempt;
    json_t *marks, *before; /* of this attempt, of the one before; borrowed */
};

struct reader_state;

/* folder: a descriptor, borrowed; -1: nothing is kept. list: puts each job that is followed. NULL
 * when the loop refuses. */
struct reader_state *reader_state_new(sd_event *event, int folder,
                                      void (*list)(void *ctx, json_t *jobs), void *ctx);
/* Writes it, so jobs must be there still. */
struct reader_state *reader_state_free(struct reader_state *s);
void reader_state_put(json_t *jobs, const struct reader_record *r);

void reader_state_changed(struct reader_state *s); /* it is written after a while */
void reader_state_save(struct reader_state *s);    /* now */

/* Adds to the record's marks what was kept of that job before the daemon was started. */
void reader_state_recall(struct reader_state *s, struct reader_record *r);

/* The job is forgotten: leaves its marks for the next jobs of its owner. Those that are left: by
 * path, NULL = none. */
void reader_state_leave(struct reader_state *s, const struct reader_record *r);
const json_t *reader_state_left(const struct reader_state *s, uid_t uid);

#endif
