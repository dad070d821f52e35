/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/users.h"

#include "base/str.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>

#define USERS_MAX 1024 /* remembered; a place is given to whoever asked last */

const char *users_name(uid_t uid)
{
    static struct {
        bool known;
        uid_t uid;
        char name[64];
    } users[USERS_MAX];
    size_t i = uid % USERS_MAX;

    if (!users[i].known || users[i].uid != uid) {
        const struct passwd *p = getpwuid(uid);

        users[i].known = true;
        users[i].uid = uid;
        if (p)
            STR_COPY(users[i].name, p->pw_name);
        else
            STR_PRINTF(users[i].name, "%u", (unsigned)uid);
    }
    return users[i].name;
}
