/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_READER_STATE_H
#define REKNIT_SOURCE_READER_STATE_H

/* How far the logs of each job have been read, kept in a file for when the daemon is started
 * again. The marks are those of reknit-reader (reader/serve.c), an object of them by path. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/* All records of a file, {} where there is none or it is damaged. Owned by the caller, as is
 * *ret_left: by uid, marks by path that jobs left which are forgotten. */
json_t *reader_state_load(const char *path, json_t **ret_left);

/* The file's text. Takes jobs over. */
char *reader_state_text(json_t *jobs, const json_t *left);
void reader_state_put(json_t *state, const struct reader_record *r);
bool reader_state_get(const json_t *state, const char *job, struct reader_record *ret);

/* In one step: the old file, or the new one. Negative errno. */
int reader_state_save(const char *path, const char *text);

#endif
