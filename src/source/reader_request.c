/* SPDX-License-Identifier: Apache-2.0 */
#include "source/reader_request.h"

#include "base/str.h"

#include <string.h>

static void add_text(json_t *object, const char *key, const char *text)
{
    json_t *j = text ? json_string(text) : NULL;

    if (j)
        json_object_set_new(object, key, j);
}

static json_t *names_json(const struct log_paths *p)
{
    json_t *names = json_pack("{s:I,s:I}", "job_id", (json_int_t)p->job_id, "array_job_id",
                              (json_int_t)p->array_job_id);

    if (p->array_task_id != LOG_NO_TASK)
        json_object_set_new(names, "array_task_id", json_integer(p->array_task_id));
    add_text(names, "job_name", p->job_name);
    add_text(names, "user_name", p->user_name);
    return names;
}

/* Whether the list has room for it. */
static bool add_pattern(json_t *list, const char *pattern, size_t max)
{
    json_t *j = json_string(pattern), *known;
    size_t i;

    json_array_foreach (list, i, known)
        if (j && streq(json_string_value(known), pattern)) {
            json_decref(j);
            return true;
        }
    if (!j || json_array_size(list) >= max) {
        json_decref(j);
        return false;
    }
    json_array_append_new(list, j);
    return true;
}

bool reader_request_add(json_t *request, const struct log_paths *p)
{
    json_t *own = json_object_get(request, "patterns");
    json_t *more = json_object_get(request, "more");
    bool all = add_pattern(own, p->std_out ? p->std_out : "", LOG_PATTERNS_MAX);

    if (p->std_err && *p->std_err)
        all &= add_pattern(own, p->std_err, LOG_PATTERNS_MAX);
    for (size_t i = 0; i < p->n_more; i++)
        all &= *p->more[i] && add_pattern(more, p->more[i], LOG_PATTERNS_MAX);
    return all;
}

json_t *reader_request_new(const char *job, uid_t uid, uint32_t attempt, const struct log_paths *p)
{
    static const char *const modes[] = {"unknown", "truncate", "append"};
    json_t *q =
        json_pack("{s:s,s:s,s:I,s:I,s:[],s:[],s:I,s:s,s:o}", "op", "follow", "job", job, "uid",
                  (json_int_t)uid, "attempt", (json_int_t)attempt, "patterns", "more", "started_us",
                  (json_int_t)p->started_us, "mode", modes[p->mode], "names", names_json(p));

    add_text(q, "dir", p->work_dir);
    return q;
}
