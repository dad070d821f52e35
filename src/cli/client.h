/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_CLIENT_H
#define REKNIT_CLI_CLIENT_H

/* Asks reknitd, over its Unix socket: $REKNIT_SOCKET, or the usual one; or at $REKNIT_SERVER, a URL
 * of another host, with the token of $REKNIT_TOKEN_FILE or a MUNGE credential. docs/openapi.json
 * says what can be asked. */

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>

#define CLIENT_SOCKET "/run/reknit/reknitd.sock"

/* Whether a daemon ever ran here, or one is named. */
bool client_has_socket(void);

/* 0 and the answer, an object. -ECONNREFUSED: nobody answers, and e says where and what to do.
 * What the daemon refused: -ENOENT (404), -EACCES (401, 403), -EBUSY (409), -EIO (others), in its
 * words. */
int client_get(const char *path, json_t **ret, struct err *e);
int client_post(const char *path, json_t *body, json_t **ret, struct err *e); /* takes body */

/* Hands over the data of each server-sent event, until fn says no, the stream ends (0), or an
 * error. */
int client_follow(const char *path, bool (*fn)(void *ctx, const char *data), void *ctx,
                  struct err *e);

/* Some bytes of a name or number from the command line, for use in a path. */
void client_escape(const char *text, char *ret, size_t size);

#endif
