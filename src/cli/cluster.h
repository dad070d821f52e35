/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_CLUSTER_H
#define REKNIT_CLI_CLUSTER_H

/* What reknitd knows, in the words and forms of the other verbs. */

#include "base/err.h"
#include "cli/story.h"

#include <jansson.h>

/* "4242", "25_3", "4242-1796035193": what Slurm or reknitd calls a job. */
bool cluster_is_job(const char *name);

/* One job as the API gives it. */
/* Of a job, and what of it: "/v1/jobs/4242/mode". -EINVAL: that can be no job. */
int cluster_path(const char *name, const char *rest, char *ret, size_t size, struct err *e);
int cluster_job(const char *name, json_t **ret, struct err *e);

/* All that was recorded of it, as a story. ret must be zeroed; call story_done() in any case. */
int cluster_story(const char *name, struct story *ret, struct err *e);

/* Calls fn for each element of the member `name` of all pages of a path ("/v1/jobs?limit=500"). fn
 * may keep what it is given by json_incref(). `next` is the argument that the pages go on by. */
int cluster_each(const char *path, const char *name, const char *next,
                 int (*fn)(void *ctx, json_t *element), void *ctx, struct err *e);

/* Asks for an object, and shows it: as one line of JSON, or by print. The program's exit status. */
int cluster_show(const char *path, bool json, void (*print)(const json_t *v));

/* Members of an object: "" and `absent` where there is none. */
const char *cluster_text(const json_t *j, const char *key);
int64_t cluster_number(const json_t *j, const char *key, int64_t absent);

#endif
