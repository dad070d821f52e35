/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_COMMENT_H
#define REKNIT_SLURM_COMMENT_H

#include "base/err.h"

#include <jansson.h>

#define COMMENT_MAX 16384 /* bytes of a comment that we would write */

/* A comment is shared: by its user, by other tools. Puts value (null: takes it away) under the key
 * "reknit" of the JSON object that stands in it, and keeps the rest. ret is for free(): "" where
 * nothing is left, NULL where nothing of ours is there to be taken away: it stays as it is then,
 * whatever it says. -EINVAL: value is neither object nor null; -EEXIST: something stands there that
 * is no JSON object, which would be lost; -E2BIG. */
int comment_merge(const char *comment, const json_t *value, char **ret, struct err *e);

#endif
