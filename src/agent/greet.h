/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_GREET_H
#define REKNIT_AGENT_GREET_H

/* Whether who answers at reknitd's address is reknitd: the beginning of each connection there, and
 * all that an agent says before it knows (wire/greeting.h). */

#include "wire/greeting.h"
#include "wire/helper.h"
#include "wire/lines.h"

struct greet_config {
    struct helper *opener; /* reknit-seal; it looks up users, and may hang */
    const char *node;      /* our name */
    const char *asker;     /* who else than root is reknitd: a user's name, or a uid */
};

struct greet;

/* For the connection `fd`, on which `lines` are. The config is copied, but for the opener. done:
 * once, from greet_take() or from the loop; why: NULL = it is reknitd. */
struct greet *greet_new(const struct greet_config *c, struct lines *lines, int fd,
                        void (*done)(void *ctx, const char *why), void *ctx);
struct greet *greet_free(struct greet *g);

/* What came on the connection before it was done. */
void greet_take(struct greet *g, const json_t *line);

/* Once it is done, and well: the words, and as which user reknitd runs. */
const struct greeting *greet_words(const struct greet *g);
uid_t greet_uid(const struct greet *g);

/* Whether what the opener answers was sealed by root or by the asker: by number, or by the name
 * that its number has here. */
bool greet_is_askers(const char *asker, const json_t *opened);

#endif
