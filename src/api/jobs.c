/* SPDX-License-Identifier: Apache-2.0 */

/* The jobs that are known now, the newest first. A page ends with where the next one begins, so
 * that jobs that come and go in between move nothing: "SEEN_US:KEY" of its last job. */

#include "api/routes.h"
#include "api/views.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct filter {
    const char *user, *partition, *state, *phase, *mode, *id; /* NULL = any */
    usec_t below_seen; /* the page begins behind this job; 0 = at the newest */
    const char *below_key;
};

/* Newest first, and of the same moment by name, so that the order is total. */
static int order(usec_t seen_a, const char *key_a, usec_t seen_b, const char *key_b)
{
    if (seen_a != seen_b)
        return seen_a > seen_b ? -1 : 1;
    return strcmp(key_a, key_b);
}

static int by_age(const void *a, const void *b)
{
    const struct job *x = *(const struct job *const *)a, *y = *(const struct job *const *)b;

    return order(x->seen_at, x->name, y->seen_at, y->name);
}

static bool is(const char *wanted, const char *value)
{
    return !wanted || (value && streq(wanted, value));
}

/* One that waits in several partitions is in each of them. */
static bool is_in(const char *partition, const struct job *j)
{
    return !partition || str_lists_overlap(partition, j->sched.partition);
}

static bool passes(const struct filter *f, const struct job *j)
{
    char id[16];

    STR_PRINTF(id, "%" PRIu32, j->sched.id);
    if (f->below_key && order(f->below_seen, f->below_key, j->seen_at, j->name) >= 0)
        return false;
    return is(f->user, j->sched.user) && is_in(f->partition, j) &&
           is(f->state, sched_state_name(j->sched.look.state)) &&
           is(f->phase, job_state_name(j->state)) && is(f->mode, mode_name(j->sched.mode)) &&
           is(f->id, id);
}

static bool read_cursor(const char *text, struct filter *f)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    char number[24];
    long long v;

    if (!text)
        return true;
    if (!colon || (size_t)(colon - text) >= sizeof(number))
        return false;
    str_copy_n(number, sizeof(number), text, (size_t)(colon - text));
    if (str_to_i64(number, &v) < 0)
        return false;
    f->below_seen = v;
    f->below_key = colon + 1;
    return true;
}

static bool read_filter(const struct api_request *r, struct filter *f, struct api_answer *a)
{
    *f = (struct filter){
        .user = request_arg(r, "user"),
        .partition = request_arg(r, "partition"),
        .state = request_arg(r, "state"),
        .phase = request_arg(r, "phase"),
        .mode = request_arg(r, "mode"),
        .id = request_arg(r, "id"),
    };
    if (f->state && (int)sched_state_from_name(f->state) < 0)
        answer_error(a, 400, "state: there is no '%s'", f->state);
    else if (f->phase && (int)job_state_from_name(f->phase) < 0)
        answer_error(a, 400, "phase: there is no '%s'", f->phase);
    else if (f->mode && (int)mode_from_name(f->mode) < 0)
        answer_error(a, 400, "mode: there is no '%s'", f->mode);
    else if (!read_cursor(request_arg(r, "page"), f))
        answer_error(a, 400, "page: give what 'next' of an answer says");
    else
        return true;
    return false;
}

void get_jobs(struct store *store, const struct api_request *r, const struct route_params *p,
              struct api_answer *ret)
{
    const struct model *m = store_model(store);
    _cleanup_(freep) const struct job **jobs = xcalloc(m->jobs.n + 1, sizeof(*jobs));
    json_t *list, *answer;
    struct filter f;
    size_t limit, n = 0;

    if (!read_filter(r, &f, ret) || !request_limit(r, &limit, ret))
        return;
    VEC_FOREACH (&m->jobs, j)
        if (access_sees(r->asker, (*j)->sched.uid) && passes(&f, *j))
            jobs[n++] = *j;
    qsort(jobs, n, sizeof(*jobs), by_age);
    list = json_array();
    for (size_t i = 0; i < n && i < limit; i++)
        json_array_append_new(list, view_job(store, jobs[i]));
    answer = json_pack("{s:o, s:I}", "jobs", list, "now_us", (json_int_t)store_now(store));
    if (n > limit) {
        char next[JOB_NAME_LEN + 32];

        STR_PRINTF(next, "%" PRId64 ":%s", jobs[limit - 1]->seen_at, jobs[limit - 1]->name);
        json_object_set_new(answer, "next", json_string(next));
    }
    answer_json(ret, 200, answer);
}

void get_job(struct store *store, const struct api_request *r, const struct route_params *p,
             struct api_answer *ret)
{
    _cleanup_found_job_ struct found_job f = {0};
    json_t *v;

    if (!answer_found(store, r, p->name, &f, ret))
        return;
    v = f.job ? view_job(store, f.job) : view_past_job(&f);
    if (f.job && f.job->state >= JOB_JUDGED && f.job->attempt.incident.class != CLASS_HEALTHY)
        json_object_set_new(v, "incident", view_incident(&f.job->attempt.incident, true));
    json_object_set_new(v, "now_us", json_integer(store_now(store)));
    answer_json(ret, 200, v);
}
