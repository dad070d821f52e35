/* SPDX-License-Identifier: Apache-2.0 */

/* A job as JSON.
 *
 * What changes without anything having happened to a job (forecasts of its start, when it was last
 * looked at) stays out of its record, or every job would be news at every look. */

#include "slurm/adapter.h"
#include "slurm/hosts.h"
#include "slurm/log_path.h"
#include "slurm/text.h"
#include "slurm/users.h"
#include "slurm/words.h"

#include <string.h>
#include <sys/wait.h>

static void set(json_t *o, const char *name, json_t *value)
{
    json_object_set_new_nocheck(o, name, value);
}

/* Who takes a part for the whole of it must be able to tell. */
static void note_cut(json_t *o, const char *name, const char *text, size_t max)
{
    if (text && strnlen(text, max + 1) > max)
        json_array_append_new(json_object_get(o, "cut"), json_string(name));
}

static void set_text(json_t *o, const char *name, const char *text, size_t max)
{
    note_cut(o, name, text, max);
    set(o, name, text_json(text, max));
}

static void set_number(json_t *o, const char *name, long long n)
{
    set(o, name, json_integer(n));
}

static json_t *id_json(uint32_t id)
{
    return json_sprintf("%u", id);
}

bool job_is_array_task(const job_info_t *j)
{
    return j->array_job_id && j->array_task_id != NO_VAL;
}

bool job_is_array_rest(const job_info_t *j)
{
    return !job_is_array_task(j) && j->array_task_str;
}

static json_t *label_json(const job_info_t *j)
{
    if (job_is_array_task(j))
        return json_sprintf("%u_%u", j->array_job_id, j->array_task_id);
    if (job_is_array_rest(j))
        return json_sprintf("%u_[%.200s]", j->array_job_id, j->array_task_str);
    if (j->het_job_id)
        return json_sprintf("%u+%u", j->het_job_id, j->het_job_offset);
    return id_json(j->job_id);
}

static void set_identity(json_t *o, const job_info_t *j)
{
    json_t *array = json_null(), *het = json_null();

    if (job_is_array_task(j))
        array = json_pack("{s:o, s:I}", "job", id_json(j->array_job_id), "task",
                          (json_int_t)j->array_task_id);
    else if (job_is_array_rest(j))
        array = json_pack("{s:o, s:o}", "job", id_json(j->array_job_id), "tasks",
                          text_json(j->array_task_str, TEXT_MAX));
    if (j->het_job_id)
        het = json_pack("{s:o, s:I}", "leader", id_json(j->het_job_id), "offset",
                        (json_int_t)j->het_job_offset);
    set(o, "id", id_json(j->job_id));
    set(o, "label", label_json(j));
    set(o, "array", array);
    set(o, "het", het);
}

static const char *user_name(const job_info_t *j)
{
    return j->user_name ? j->user_name : users_name(j->user_id);
}

static void set_owner(json_t *o, const job_info_t *j)
{
    set_text(o, "name", j->name, TEXT_MAX);
    set_text(o, "user", user_name(j), TEXT_MAX);
    set_number(o, "uid", j->user_id);
    set_number(o, "gid", j->group_id);
    set_text(o, "account", j->account, TEXT_MAX);
    set_text(o, "partition", j->partition, TEXT_MAX);
    set_text(o, "qos", j->qos, TEXT_MAX);
    set_text(o, "reservation", j->resv_name, TEXT_MAX);
    set_text(o, "features", j->features, TEXT_MAX);
    set_text(o, "dependency", j->dependency, TEXT_LIST_MAX);
    set_text(o, "comment", j->comment, TEXT_LONG_MAX);
    set_text(o, "admin_comment", j->admin_comment, TEXT_LONG_MAX);
}

/* "" of what writes no log of its own: interactive jobs, tasks of an array that have no record. */
static void set_log_path(json_t *o, const char *name, const char *pattern, const job_info_t *j)
{
    const struct log_path_job names = {
        .numbers = {.job = j->job_id,
                    .array_job = j->array_job_id,
                    .array_task = job_is_array_task(j) ? j->array_task_id : LOG_NO_TASK},
        .name = j->name ? j->name : "",
        .user = user_name(j),
        .work_dir = j->work_dir ? j->work_dir : "",
    };
    _cleanup_strbuf_ struct strbuf path = {0};

    if (j->batch_flag && !job_is_array_rest(j))
        log_path_add(pattern, &names, &path);
    set_text(o, name, strbuf_str(&path), TEXT_PATH_MAX);
}

static void set_files(json_t *o, const job_info_t *j)
{
    set_text(o, "command", j->command, TEXT_PATH_MAX);
    set_text(o, "work_dir", j->work_dir, TEXT_PATH_MAX);
    set_text(o, "stdout", j->std_out, TEXT_PATH_MAX);
    set_text(o, "stderr", j->std_err, TEXT_PATH_MAX);
    set_log_path(o, "stdout_path", j->std_out, j);
    set_log_path(o, "stderr_path", j->std_err ? j->std_err : j->std_out, j);
}

static bool is_waiting(const job_info_t *j)
{
    return (j->job_state & JOB_STATE_BASE) == JOB_PENDING;
}

/* One that runs may be held too: it is told of what happens should it be queued again. */
static bool is_held(const job_info_t *j)
{
    return (j->job_state & JOB_STATE_BASE) < JOB_COMPLETE && j->priority == 0;
}

static json_t *exit_json(uint32_t status)
{
    if (status == NO_VAL)
        status = 0;
    return json_pack("{s:i, s:i}", "code", WEXITSTATUS(status), "signal", WTERMSIG(status));
}

static const char *reason_kind(const job_info_t *j)
{
    return j->job_state & JOB_LAUNCH_FAILED ? "launch" : words_reason_kind(j->state_reason);
}

static void set_state(json_t *o, const job_info_t *j)
{
    set(o, "batch", json_boolean(j->batch_flag));
    set(o, "requeue", json_boolean(j->requeue));
    set_number(o, "restarts", j->restart_cnt);
    set(o, "state", json_string(slurm_state_name(words_job_state(j->job_state))));
    set(o, "completing", json_boolean(j->job_state & JOB_COMPLETING));
    set(o, "power_up", json_boolean(j->job_state & JOB_POWER_UP_NODE));
    set(o, "held", json_boolean(is_held(j)));
    set_text(o, "reason", words_reason(j->state_reason), TEXT_MAX);
    set_text(o, "reason_text", j->state_desc, TEXT_MAX);
    set(o, "reason_kind", json_string(reason_kind(j)));
    set_number(o, "priority", j->priority);
    set(o, "exit", exit_json(j->exit_code));
    set(o, "derived_exit", exit_json(j->derived_ec));
}

static long long limit_seconds(uint32_t minutes)
{
    return minutes == INFINITE || minutes == NO_VAL ? 0 : (long long)minutes * 60;
}

static void set_times(json_t *o, const job_info_t *j)
{
    bool ended = !is_waiting(j) && slurm_state_is_end(words_job_state(j->job_state));

    set_number(o, "submit", j->submit_time);
    set_number(o, "eligible", j->eligible_time);
    set_number(o, "start", is_waiting(j) ? 0 : j->start_time);
    set_number(o, "end", ended ? j->end_time : 0);
    set_number(o, "time_limit", limit_seconds(j->time_limit));
}

static const char *failed_node(const job_info_t *j)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
    return j->failed_node;
#else
    return NULL;
#endif
}

static void set_places(json_t *o, const job_info_t *j)
{
    set(o, "nodes", hosts_json(j->nodes));
    note_cut(o, "nodes_text", j->nodes, TEXT_LIST_MAX);
    set(o, "nodes_text", text_hosts_json(j->nodes));
    set_number(o, "n_nodes", j->num_nodes);
    set_number(o, "n_tasks", j->num_tasks);
    set_number(o, "n_cpus", j->num_cpus);
    set_number(o, "gpus", text_tres_gpus(j->tres_alloc_str ? j->tres_alloc_str : j->tres_req_str));
    set(o, "exclude", hosts_json(j->exc_nodes));
    set(o, "required", hosts_json(j->req_nodes));
    set_text(o, "failed_node", failed_node(j), TEXT_MAX);
    set_text(o, "batch_host", j->batch_host, TEXT_MAX);
}

json_t *job_json(const job_info_t *j)
{
    json_t *o = json_pack("{s:[]}", "cut");

    set_identity(o, j);
    set_owner(o, j);
    set_files(o, j);
    set_state(o, j);
    set_times(o, j);
    set_places(o, j);
    return o;
}

void job_look(const job_info_t *j, struct job_look *ret)
{
    *ret = (struct job_look){
        .restarts = j->restart_cnt,
        .uid = j->user_id,
        .submit = j->submit_time,
        .state = words_job_state(j->job_state),
        .completing = j->job_state & JOB_COMPLETING,
        .held = is_held(j),
        .requeue = j->requeue,
        .name = j->name ? j->name : "",
        .dependency = j->dependency ? j->dependency : "",
    };
}
