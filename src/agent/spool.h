/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_SPOOL_H
#define REKNIT_AGENT_SPOOL_H

/* Messages that wait until reknitd has them, in memory and in a file, so that they outlive the
 * agent. Bounded: the oldest go first, and are counted. */

#include "base/cleanup.h"
#include "base/err.h"
#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPOOL_MESSAGES_MAX 4096
#define SPOOL_BYTES_MAX    (4 * 1024 * 1024) /* of the file */

struct spool;

/* Takes up what the file holds; a file that is damaged is read as far as it is sound. now: the name
 * of a new spool, when there was none. */
int spool_open(const char *path, usec_t now, struct spool **ret, struct err *e);
struct spool *spool_free(struct spool *s);
DEFINE_CLEANUP(struct spool *, spool_free);

/* A line without line feeds. It is in memory even where it could not be written (-errno). */
int spool_add(struct spool *s, const char *text);

/* Numbers go up by one, from spool_first() to spool_end() - 1. */
uint64_t spool_first(const struct spool *s);
uint64_t spool_end(const struct spool *s);
const char *spool_get(const struct spool *s, uint64_t id); /* valid until the next change */
void spool_ack(struct spool *s, uint64_t id);              /* it and all before it are delivered */

/* With the number it names a message for good. */
usec_t spool_origin(const struct spool *s);
uint64_t spool_dropped(const struct spool *s); /* since spool_open() */

#endif
