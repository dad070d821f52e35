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

/* origin and number name it for good. */
struct spool_message {
    usec_t origin;
    uint64_t number; /* from 1 */
    char *text;
};

/* Takes up what the file holds; a file that is damaged is read as far as it is sound. now: the
 * origin of what will be added, unless the file knows a later one. */
int spool_open(const char *path, usec_t now, struct spool **ret, struct err *e);
struct spool *spool_free(struct spool *s);
DEFINE_CLEANUP(struct spool *, spool_free);

/* A line without line feeds. It is in memory even where it could not be written (-errno). */
int spool_add(struct spool *s, const char *text);

/* What waits has places that go up by one, from spool_first() to spool_end() - 1. */
uint64_t spool_first(const struct spool *s);
uint64_t spool_end(const struct spool *s);
const struct spool_message *spool_get(const struct spool *s, uint64_t place); /* until a change */
/* That message and all before it are delivered; no message of that name: nothing. */
void spool_ack(struct spool *s, usec_t origin, uint64_t number);

uint64_t spool_dropped(const struct spool *s); /* since spool_open() */

#endif
