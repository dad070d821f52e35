/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/people.h"

#include "base/str.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>

#define PEOPLE_MAX 1024 /* remembered; a place is given to whoever asked last */

const char *people_name(uid_t uid)
{
    static struct {
        bool known;
        uid_t uid;
        char name[64];
    } people[PEOPLE_MAX];
    size_t i = uid % PEOPLE_MAX;

    if (!people[i].known || people[i].uid != uid) {
        const struct passwd *p = getpwuid(uid);

        people[i].known = true;
        people[i].uid = uid;
        if (p)
            STR_COPY(people[i].name, p->pw_name);
        else
            STR_PRINTF(people[i].name, "%u", (unsigned)uid);
    }
    return people[i].name;
}
