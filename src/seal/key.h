/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SEAL_KEY_H
#define REKNIT_SEAL_KEY_H

/* A key that all nodes share, in place of MUNGE: a text is sealed with HMAC-SHA-256 over it and the
 * time. Who has the key can seal as any node. */

#include "base/cleanup.h"
#include "base/err.h"
#include "base/time.h"

#define KEY_BYTES_MIN 32
#define KEY_BYTES_MAX 4096
#define KEY_TTL       (300 * USEC_PER_SEC) /* how far both clocks may differ, too */

struct key;

/* The whole file is the key. -EPERM when others than its owner may read it. */
int key_load(const char *path, struct key **ret, struct err *e);
struct key *key_free(struct key *k);
DEFINE_CLEANUP(struct key *, key_free);

char *key_seal(const struct key *k, const char *text, usec_t now); /* the caller frees it */
/* -EBADMSG: by another key, changed, or of another time. ret_text points into sealed. */
int key_open(const struct key *k, const char *sealed, usec_t now, const char **ret_text,
             struct err *e);

#endif
