/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs. Slurm gives all of them or none: a list that did not change costs one small message, one
 * that did is made into JSON whole (job_record.c) and compared with what the client was told. */

#include "slurm/adapter.h"
#include "slurm/list.h"

#include "base/alloc.h"

#include <slurm/slurm_errno.h>
#include <stdlib.h>

/* LOCAL: otherwise each look would first ask whether there is a federation of clusters. */
#define LOAD_FLAGS (SHOW_ALL | SHOW_DETAIL | SHOW_LOCAL)

struct jobs {
    struct list list;
    job_info_msg_t *msg; /* the last one; NULL = none yet */
};

/* Not in slurm.h, as little as the header of what it frees. */
extern void slurm_xfree(void **item) __attribute__((weak));

void job_list_free(job_info_msg_t *list)
{
    /* 22.05 forgets one member, which on a busy cluster is a gigabyte a day. Freed and cleared here
     * it does no harm to a release that frees it itself. */
    for (uint32_t i = 0; slurm_xfree && i < list->record_count; i++)
        slurm_xfree((void **)&list->job_array[i].admin_comment);
    slurm_free_job_info_msg(list);
}

struct jobs *jobs_new(void)
{
    struct jobs *j = xnew(struct jobs);

    j->list.told = diff_new();
    return j;
}

struct jobs *jobs_free(struct jobs *j)
{
    if (j) {
        diff_free(j->list.told);
        if (j->msg)
            job_list_free(j->msg);
        free(j);
    }
    return NULL;
}

static int refresh(void *ctx, time_t *ret_time)
{
    struct jobs *j = ctx;
    job_info_msg_t *msg = NULL;

    if (slurm_load_jobs(j->msg ? j->msg->last_update : 0, &msg, LOAD_FLAGS) == SLURM_SUCCESS) {
        if (j->msg)
            job_list_free(j->msg);
        j->msg = msg;
        j->list.is_told = false;
    } else if (slurm_get_errno() != SLURM_NO_CHANGE_IN_DATA) {
        return slurm_get_errno();
    }
    *ret_time = j->msg->last_update;
    return 0;
}

static void add_records(const void *ctx, struct diff *told, struct strbuf *out)
{
    const struct jobs *j = ctx;

    for (uint32_t i = 0; i < j->msg->record_count; i++) {
        json_t *record = job_json(&j->msg->job_array[i]);

        diff_add(told, json_string_value(json_object_get(record, "id")), record, out);
        json_decref(record);
    }
}

void jobs_answer(struct jobs *j, const struct request *r, struct answer *ret)
{
    static const struct list_kind kind = {"jobs", refresh, add_records};

    list_answer(&j->list, &kind, j, r, ret);
}

bool job_id_of(const struct request *r, uint32_t *ret_id, struct answer *ret)
{
    const json_t *v = json_object_get(r->body, "job");
    long long id = -1;

    if (json_is_integer(v))
        id = json_integer_value(v);
    else if (json_is_string(v) && str_to_i64(json_string_value(v), &id) < 0)
        id = -1;
    if (id < 1 || id >= NO_VAL) {
        answer_fail(ret, FAULT_INVALID_REQUEST, 0, "job is no job id, such as \"4242\"");
        return false;
    }
    *ret_id = (uint32_t)id;
    return true;
}

bool job_load(const struct request *r, job_info_msg_t **ret_list, job_info_t **ret_job,
              struct answer *ret)
{
    job_info_msg_t *list = NULL;
    uint32_t id;

    if (!job_id_of(r, &id, ret))
        return false;
    if (slurm_load_job(&list, id, LOAD_FLAGS) != SLURM_SUCCESS) {
        answer_slurm(ret, slurm_get_errno(), false, "the job");
        return false;
    }
    /* The id of an array or a heterogeneous job brings all of it. */
    for (uint32_t i = 0; i < list->record_count; i++) {
        if (list->job_array[i].job_id == id) {
            *ret_job = &list->job_array[i];
            *ret_list = list;
            return true;
        }
    }
    job_list_free(list);
    answer_fail(ret, FAULT_NO_SUCH_JOB, 0, "there is no job %u", id);
    return false;
}

void job_answer(const struct request *r, struct answer *ret)
{
    job_info_msg_t *list;
    job_info_t *job;

    if (!job_load(r, &list, &job, ret))
        return;
    answer_set(ret, "job", job_json(job));
    job_list_free(list);
}
