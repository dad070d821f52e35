/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_ATTEMPT_ID_H
#define REKNIT_AGENT_ATTEMPT_ID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Job and restart may be what an environment says, which its user has written: so they name an
 * attempt only together with the user whose processes it is made of. */
struct attempt_id {
    uint32_t job, restart;
    uid_t user;
};

static inline bool attempt_id_is(const struct attempt_id *a, const struct attempt_id *b)
{
    return a->job == b->job && a->restart == b->restart && a->user == b->user;
}

#endif
