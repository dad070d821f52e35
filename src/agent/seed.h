/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_SEED_H
#define REKNIT_AGENT_SEED_H

/* What an agent's random() begins with. Thousands of them start in the same second, of one image
 * and so with the same few process ids: the node's name is what they are sure to differ in, and
 * each then comes back to reknitd after a pause of its own. */

#include "base/hash.h"
#include "base/time.h"

#include <string.h>
#include <sys/types.h>

static inline unsigned seed_of(const char *node, usec_t now, pid_t pid)
{
    uint64_t h = hash_bytes(HASH_INIT, node, strlen(node));

    h = hash_bytes(h, &now, sizeof(now));
    h = hash_bytes(h, &pid, sizeof(pid));
    return (unsigned)(h ^ h >> 32);
}

#endif
