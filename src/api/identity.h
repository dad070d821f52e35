/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_IDENTITY_H
#define REKNIT_API_IDENTITY_H

/* Who asks. On a Unix socket the kernel says so; on TCP a token does, whose lines "USER TOKEN" are
 * read once, when the daemon starts. */

#include "api/access.h"
#include "api/api.h"

struct identity;

int identity_new(const struct api_config *c, struct identity **ret, struct err *e);
struct identity *identity_free(struct identity *i);
DEFINE_CLEANUP(struct identity *, identity_free);

/* Of a connected Unix socket. */
void identity_of_socket(const struct identity *i, int fd, struct asker *ret);

/* Of an Authorization header, NULL = there is none. ret->known = false: nobody. */
void identity_of_header(const struct identity *i, const char *header, struct asker *ret);

#endif
