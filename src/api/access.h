/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_ACCESS_H
#define REKNIT_API_ACCESS_H

/* Who sees and commands what. A user: his own jobs. Operators: all of them, and what concerns no
 * single job. A job that somebody may not see does not exist for him: "not found", whatever he
 * asks. */

#include "core/model/kinds.h"

#include <stdbool.h>
#include <sys/types.h>

#define ASKER_NAME_LEN 64

struct asker {
    bool known; /* by his uid, which the kernel or a credential vouches for */
    bool is_operator;
    bool is_monitor; /* a program that tells of nodes: it may do nothing else */
    uid_t uid;
    char name[ASKER_NAME_LEN]; /* for the journal: "alice", "uid 1000" */
    const char *why;           /* not known: what is wrong with what was shown; or NULL */
};

/* owner: uid of the job's user; 0 (root, or not known) is operators' business alone. */
bool access_sees(const struct asker *who, uid_t owner);
/* Only an operator can give a job more than operators allow. */
bool access_sets_mode(const struct asker *who, uid_t owner, enum mode allowed, enum mode wanted);

#endif
