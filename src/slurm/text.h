/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_TEXT_H
#define REKNIT_SLURM_TEXT_H

/* Text of users and of the scheduler as JSON. */

#include "base/str.h"

#include <jansson.h>

#define TEXT_MAX       1024 /* names and other short text */
#define TEXT_PATH_MAX  4096
#define TEXT_LONG_MAX  16384 /* comments */
#define TEXT_LIST_MAX  65535 /* dependencies, compressed lists of hosts */
#define TEXT_HOSTS_MAX 65536 /* names in one list */

/* At most max bytes of s (NULL = ""), always valid: where s is no UTF-8, without what is not. */
json_t *text_json(const char *s, size_t max);

/* A compressed list of hosts, of at most TEXT_LIST_MAX bytes. One that is longer is cut behind a
 * whole name, and ends with ",...". */
json_t *text_hosts_json(const char *list);

/* The elements of "a,b,,c" */
json_t *text_words_json(const char *s);

/* How many GPUs "cpu=4,gres/gpu=8,gres/gpu:a100=8" counts, or gres "gpu:a100:8(S:0-1),gpu:2". */
long text_tres_gpus(const char *tres);
long text_gres_gpus(const char *gres);

/* Compact JSON added to out: whole, or of an object what stands between its braces. */
void json_add(struct strbuf *out, const json_t *j);
void json_add_members(struct strbuf *out, const json_t *object);

#endif
