/* SPDX-License-Identifier: Apache-2.0 */
#include "source/succession.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* "afterany:25" and "afternotok:25_*" start when job 25 fails, and would run beside it then. */
static bool waits_for_failure(const char *dependency, uint32_t id)
{
    static const char *const kinds[] = {"afterany:", "afternotok:"};
    char number[16];
    size_t n;

    STR_PRINTF(number, "%" PRIu32, id);
    n = strlen(number);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        for (const char *s = dependency; (s = strstr(s, kinds[i])); s++) {
            const char *list = s + strlen(kinds[i]);
            size_t length = strcspn(list, ",?");

            for (const char *p = list; p < list + length; p += strcspn(p, ":") + 1)
                if (strncmp(p, number, n) == 0 && !(p[n] >= '0' && p[n] <= '9'))
                    return true;
        }
    return false;
}

bool sched_job_succeeds(const struct sched_job *next, const struct sched_job *r)
{
    if (next == r || (next->array_id != 0 && next->array_id == r->array_id) ||
        (next->het_leader != 0 && next->het_leader == r->het_leader))
        return false;
    if (*next->dependency && (waits_for_failure(next->dependency, r->id) ||
                              (r->array_id && waits_for_failure(next->dependency, r->array_id))))
        return true;
    return next->state == SCHED_PENDING && next->uid == r->uid && streq(next->name, r->name) &&
           next->submit >= r->submit && next->restarts == 0;
}

bool sched_job_waits_for_failure(const struct sched_job *next)
{
    return strstr(next->dependency, "afterany:") || strstr(next->dependency, "afternotok:");
}
