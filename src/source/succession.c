/* SPDX-License-Identifier: Apache-2.0 */
#include "source/succession.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What stands behind the number of a job or an array: the whole of it, or this very task. */
static bool means(const char *rest, const struct sched_job *r)
{
    char task[16];

    if (rest[0] != '_')
        return !(rest[0] >= '0' && rest[0] <= '9');
    STR_PRINTF(task, "%" PRIu32, r->array_task);
    rest++;
    return r->array_id != 0 && (rest[0] == '*' || (strspn(rest, "0123456789") == strlen(task) &&
                                                   strncmp(rest, task, strlen(task)) == 0));
}

/* list: "25(failed):26_*:27_3", up to the end of its kind. */
static bool lists(const char *list, size_t length, uint32_t id, const struct sched_job *r)
{
    char number[16];
    size_t n;

    STR_PRINTF(number, "%" PRIu32, id);
    n = strlen(number);
    for (const char *p = list; p < list + length; p += strcspn(p, ":") + 1)
        if (strncmp(p, number, n) == 0 && means(p + n, r))
            return true;
    return false;
}

static bool waits_for(const char *dependency, const char *kind, const struct sched_job *r)
{
    for (const char *s = dependency; (s = strstr(s, kind)); s++) {
        const char *list = s + strlen(kind);
        size_t length = strcspn(list, ",?");

        if (lists(list, length, r->id, r) ||
            (r->array_id != 0 && lists(list, length, r->array_id, r)))
            return true;
    }
    return false;
}

/* One that was there beside it takes nobody's place. */
static bool is_behind(const struct sched_job *next, const struct sched_job *r)
{
    return next->state == SCHED_PENDING ||
           (r->end > 0 && next->start >= r->end && next->start > r->start);
}

bool sched_job_succeeds(const struct sched_job *next, const struct sched_job *r)
{
    if (next == r || (next->array_id != 0 && next->array_id == r->array_id) ||
        (next->het_leader != 0 && next->het_leader == r->het_leader))
        return false;
    if (waits_for(next->dependency, "afterany:", r) ||
        waits_for(next->dependency, "afternotok:", r))
        return true; /* it starts when r fails */
    if (next->dependency_cut && next->uid == r->uid)
        return true; /* it may */
    return sched_has_ended(r->state) && next->uid == r->uid && streq(next->name, r->name) &&
           next->submit >= r->submit && next->restarts == 0 && is_behind(next, r);
}

bool sched_job_waits_for_failure(const struct sched_job *next)
{
    return next->dependency_cut || strstr(next->dependency, "afterany:") ||
           strstr(next->dependency, "afternotok:");
}

bool sched_job_is_stranded(const struct sched_job *next, const struct sched_job *r)
{
    return next->state == SCHED_PENDING && next->uid == r->uid &&
           streq(next->reason_kind, "dependency-never") &&
           (waits_for(next->dependency, "afterok:", r) ||
            waits_for(next->dependency, "aftercorr:", r));
}

void sched_job_dependency_anew(const struct sched_job *next, struct strbuf *out)
{
    for (const char *s = next->dependency; *s;) {
        size_t n = strcspn(s, "(");

        strbuf_add(out, s, n);
        s += n;
        s += strcspn(s, ")");
        s += *s == ')';
    }
}
