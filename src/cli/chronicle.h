/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_CHRONICLE_H
#define REKNIT_CLI_CHRONICLE_H

/* A job's journal, read into a story; and the story as JSON. */

#include "base/err.h"
#include "cli/story.h"

#include <jansson.h>

/* ret must be zeroed; call story_done() in any case. A run that nobody runs any more is over in it.
 */
int chronicle_read(const char *name, struct story *ret, struct err *e);

/* The same from where that run is: the journal, or one that was put aside. -ESRCH: nowhere. */
int chronicle_read_run(const char *name, uint32_t number, struct story *ret, struct err *e);

/* Of the job that was active last. -ENOENT: there is none yet. */
int chronicle_newest(char ret[JOB_NAME_LEN], struct err *e);

/* Whether a reknit process runs the job right now. */
bool chronicle_is_alive(const char *name);

/* One run with its attempts; `full`: with verdicts, evidence and decisions. Owned by the caller. */
json_t *chronicle_run_json(const struct story *s, const struct story_run *run, bool alive,
                           bool full);

/* The same of a run that never began: no attempts, nothing known. */
json_t *chronicle_no_run_json(void);

#endif
