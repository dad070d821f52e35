/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/reserved.h"

#include "base/str.h"
#include "core/model/sched.h"

#include <stdlib.h>
#include <string.h>

static const json_t *job_of(const json_t *jobs, const char *id, size_t length)
{
    size_t i;
    json_t *job;

    json_array_foreach (jobs, i, job) {
        const char *is = json_string_value(json_object_get(job, "id"));

        if (is && strlen(is) == length && strncmp(is, id, length) == 0)
            return job;
    }
    return NULL;
}

bool reservation_is_stale(const json_t *reservation, const json_t *jobs)
{
    const char *name = json_string_value(json_object_get(reservation, "name")), *state, *dash;
    const json_t *job;

    if (!name || !str_startswith(name, RESERVATION_PREFIX))
        return false;
    name += strlen(RESERVATION_PREFIX);
    dash = strchr(name, '-');
    job = dash ? job_of(jobs, name, (size_t)(dash - name)) : NULL;
    state = json_string_value(json_object_get(job, "state"));
    if (!state || streq(state, "completed") || streq(state, "cancelled"))
        return true;
    return streq(state, "running") &&
           json_integer_value(json_object_get(job, "restarts")) > strtoll(dash + 1, NULL, 10);
}
