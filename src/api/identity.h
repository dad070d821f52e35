/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_IDENTITY_H
#define REKNIT_API_IDENTITY_H

/* Who asks. On a Unix socket the kernel says so; on TCP a token does, whose lines "USER TOKEN" are
 * read when the daemon starts and when it is told to read its configuration again. */

#include "api/access.h"
#include "api/api.h"

#include <jansson.h>

struct identity;

int identity_new(const struct api_config *c, struct identity **ret, struct err *e);
struct identity *identity_free(struct identity *i);
DEFINE_CLEANUP(struct identity *, identity_free);

/* From now on, i is what fresh is, which is freed. Whether that makes a difference. */
bool identity_replace(struct identity *i, struct identity *fresh);
/* The scheduler's own user, who is an operator. Whether that is new. */
bool identity_set_admin(struct identity *i, uid_t admin);

/* Of a connected Unix socket. */
void identity_of_socket(const struct identity *i, int fd, struct asker *ret);

/* "MUNGE CREDENTIAL", of which this is the credential; NULL: it is none, or none is taken. */
const char *identity_credential(const struct identity *i, const char *header);
/* Of what reknit-seal says of a credential, which must be made for this very request: its claim is
 * as in wire/request_claim.h. */
void identity_of_credential(const struct identity *i, const json_t *opened, const char *claim,
                            struct asker *ret);

/* Of an Authorization header, NULL = there is none. ret->known = false: nobody. */
void identity_of_header(const struct identity *i, const char *header, struct asker *ret);

#endif
