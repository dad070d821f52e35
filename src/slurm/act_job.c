/* SPDX-License-Identifier: Apache-2.0 */

/* What is done to jobs. Each action loads the job, compares it with what the caller expects and
 * acts at once. Between the look and the act lies one call; slurmctld has no way to close that gap.
 *
 * A requeue resurrects what was cancelled, if it is let to; so that is refused here as well,
 * whoever asks for it. */

#include "slurm/adapter.h"
#include "slurm/comment.h"
#include "slurm/deadline.h"
#include "slurm/hosts.h"
#include "slurm/text.h"
#include "slurm/words.h"

#include "base/cleanup.h"

#include <signal.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>

/* A job about to be acted on. */
struct target {
    job_info_msg_t *list;
    job_info_t *job;
    struct job_look look;
};

static void target_done(struct target *t)
{
    if (t->list)
        job_list_free(t->list);
}
#define _cleanup_target_ __attribute__((cleanup(target_done)))

static void fail_with_look(const struct target *t, struct answer *ret, enum fault fault,
                           const char *text)
{
    answer_fail(ret, fault, 0, "%s", text);
    if (fault == FAULT_CHANGED)
        ret->now = job_json(t->job);
}

/* Loads the job of the request and compares it with its `expect`. demand: that may not be left out.
 */
static bool take_aim(const struct request *r, bool demand, struct target *t, struct answer *ret)
{
    struct err e = {0};
    int result;

    if (!job_load(r, &t->list, &t->job, ret))
        return false;
    job_look(t->job, &t->look);
    result = expect_holds(&t->look, json_object_get(r->body, "expect"), demand, &e);
    if (result < 0)
        fail_with_look(t, ret, result == -ESTALE ? FAULT_CHANGED : FAULT_INVALID_REQUEST, e.text);
    return result == 0;
}

/* Answers for a call that changes something, which has just returned. */
static void tell_result(const struct target *t, int result, struct answer *ret, const char *what)
{
    int error = slurm_get_errno();

    if (result == SLURM_SUCCESS)
        return;
    answer_slurm(ret, error, true, what);
    if (ret->fault == FAULT_CHANGED)
        ret->now = job_json(t->job);
}

/* Why the job must not be requeued, whatever anybody says; NULL = it may be. */
static const char *requeue_obstacle(const struct target *t)
{
    const job_info_t *j = t->job;

    if (t->look.state == SLURM_STATE_CANCELLED)
        return "it was cancelled, and a requeue would bring it back";
    if (!j->batch_flag)
        return "it is interactive";
    if (!j->requeue)
        return "its user does not want it requeued";
    if (j->het_job_id && j->het_job_offset != 0)
        return "it is part of a heterogeneous job, whose leader must be named";
    return NULL;
}

static int requeue_flags(const struct request *r, uint32_t *ret_flags, struct err *e)
{
    static const struct {
        const char *name;
        uint32_t flag;
    } options[] = {
        {"special_exit", JOB_SPECIAL_EXIT},
        {"hold", JOB_REQUEUE_HOLD},
        {"running_only", JOB_RUNNING},
    };

    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        bool on = false;

        if (request_flag(r, options[i].name, &on, e) == -EINVAL)
            return -EINVAL;
        *ret_flags |= on ? options[i].flag : 0;
    }
    return 0;
}

void requeue_answer(const struct request *r, struct answer *ret)
{
    _cleanup_target_ struct target t = {0};
    const char *obstacle;
    uint32_t flags = 0;
    struct err e = {0};

    if (requeue_flags(r, &flags, &e) < 0) {
        answer_fail(ret, FAULT_INVALID_REQUEST, 0, "%s", e.text);
        return;
    }
    if (!take_aim(r, true, &t, ret))
        return;
    obstacle = requeue_obstacle(&t);
    if (obstacle) {
        answer_fail(ret, FAULT_NOT_ALLOWED, 0, "%s", obstacle);
        return;
    }
    deadline_acting();
    tell_result(&t, slurm_requeue(t.job->job_id, flags), ret, "the requeue");
}

void cancel_answer(const struct request *r, struct answer *ret)
{
    _cleanup_target_ struct target t = {0};
    char name[32];

    if (!take_aim(r, true, &t, ret))
        return;
    if (slurm_state_is_end(t.look.state)) {
        answer_fail(ret, FAULT_ALREADY_DONE, 0, "it has ended");
        return;
    }
    if (job_is_array_rest(t.job)) {
        answer_fail(ret, FAULT_NOT_ALLOWED, 0, "they are several tasks, none of which has begun");
        return;
    }
    /* The number of an array's last task is that of the whole array, too. */
    if (job_is_array_task(t.job))
        STR_PRINTF(name, "%u_%u", t.job->array_job_id, t.job->array_task_id);
    else
        STR_PRINTF(name, "%u", t.job->job_id);
    deadline_acting();
    tell_result(&t, slurm_kill_job2(name, SIGKILL, 0, NULL), ret, "the cancellation");
}

/* One update under way: what is to be sent, and what of it must be freed. */
struct update {
    job_desc_msg_t message;
    const struct target *target;
    char *exclude, *comment, *admin_comment;
    json_t *left_out; /* of what may be; NULL = nothing */
};

static void update_done(struct update *u)
{
    json_decref(u->left_out);
    free(u->exclude);
    free(u->comment);
    free(u->admin_comment);
}
#define _cleanup_update_ __attribute__((cleanup(update_done)))

static int set_exclude(struct update *u, const json_t *v, struct err *e)
{
    if (hosts_text(v, &u->exclude) < 0)
        return err_set(e, -EINVAL, "exclude is no list of node names");
    u->message.exc_nodes = u->exclude;
    return 0;
}

static int set_eligible(struct update *u, const json_t *v, struct err *e)
{
    if (!json_is_integer(v) || json_integer_value(v) < 1)
        return err_set(e, -EINVAL, "eligible is no time");
    if (u->target->look.state != SLURM_STATE_PENDING || u->target->look.completing)
        return err_set(e, -ESTALE, "only a job that is pending, and completing no more, keeps one");
    u->message.begin_time = json_integer_value(v);
    return 0;
}

static int set_requeue(struct update *u, const json_t *v, struct err *e)
{
    if (!json_is_boolean(v))
        return err_set(e, -EINVAL, "requeue is neither true nor false");
    u->message.requeue = json_is_true(v);
    return 0;
}

static int set_held(struct update *u, const json_t *v, struct err *e)
{
    if (!json_is_boolean(v))
        return err_set(e, -EINVAL, "held is neither true nor false");
    u->message.priority = json_is_true(v) ? 0 : INFINITE;
    if (json_is_true(v))
        u->message.alloc_sid = ALLOC_SID_ADMIN_HOLD;
    return 0;
}

static int set_priority(struct update *u, const json_t *v, struct err *e)
{
    if (u->message.priority != NO_VAL)
        return err_set(e, -EINVAL, "held and priority exclude each other");
    if (json_is_null(v)) { /* the one that Slurm gives it */
        u->message.priority = INFINITE;
        return 0;
    }
    if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) >= NO_VAL)
        return err_set(e, -EINVAL, "priority is no number above 0");
    u->message.priority = (uint32_t)json_integer_value(v);
    return 0;
}

static int set_dependency(struct update *u, const json_t *v, struct err *e)
{
    if (!json_is_string(v) || json_string_length(v) > TEXT_LIST_MAX)
        return err_set(e, -EINVAL, "dependency is no text");
    u->message.dependency = (char *)json_string_value(v);
    return 0;
}

static int set_reservation(struct update *u, const json_t *v, struct err *e)
{
    if (!json_is_string(v) || json_string_length(v) > TEXT_MAX)
        return err_set(e, -EINVAL, "reservation is no name");
    u->message.reservation = (char *)json_string_value(v);
    return 0;
}

static int set_time_limit(struct update *u, const json_t *v, struct err *e)
{
    if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > INT32_MAX)
        return err_set(e, -EINVAL, "time_limit is no number of seconds");
    u->message.time_limit = (uint32_t)((json_integer_value(v) + 59) / 60);
    return 0;
}

static int set_comment(struct update *u, const json_t *v, struct err *e)
{
    int r = comment_merge(u->target->job->comment, v, &u->comment, e);

    u->message.comment = u->comment;
    return r;
}

static int set_admin_comment(struct update *u, const json_t *v, struct err *e)
{
    int r = comment_merge(u->target->job->admin_comment, v, &u->admin_comment, e);

    u->message.admin_comment = u->admin_comment;
    return r;
}

static const struct {
    const char *name;
    int (*set)(struct update *u, const json_t *v, struct err *e);
} settings[] = {
    {"exclude", set_exclude},         {"eligible", set_eligible},
    {"requeue", set_requeue},         {"held", set_held},
    {"priority", set_priority},       {"dependency", set_dependency},
    {"reservation", set_reservation}, {"time_limit", set_time_limit},
    {"comment", set_comment},         {"admin_comment", set_admin_comment},
};

/* Whether the request can do without it: something else is in its place. */
static bool leave_out(struct update *u, const json_t *optional, const char *name, int why)
{
    size_t i;
    json_t *v;

    json_array_foreach (optional, i, v) {
        const char *may = json_string_value(v);

        if ((why != -EEXIST && why != -E2BIG) || !may || !streq(may, name))
            continue;
        if (!u->left_out)
            u->left_out = json_array();
        json_array_append(u->left_out, v);
        return true;
    }
    return false;
}

/* 0; -EINVAL = not understood; -ESTALE, -EEXIST, -E2BIG = not as the job is. */
static int build_update(struct update *u, const json_t *set, const json_t *optional, struct err *e)
{
    size_t known = 0;

    slurm_init_job_desc_msg(&u->message);
    u->message.job_id = u->target->job->job_id;
    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        const json_t *v = json_object_get(set, settings[i].name);
        int r = v ? settings[i].set(u, v, e) : 0;

        if (r < 0 && !leave_out(u, optional, settings[i].name, r))
            return r;
        known += v != NULL;
    }
    if (known == 0 || known != json_object_size(set))
        return err_set(e, -EINVAL, "set is no object of things that can be set");
    return 0;
}

static enum fault fault_of_update(int result)
{
    switch (result) {
    case -ESTALE:
        return FAULT_CHANGED;
    case -EEXIST:
    case -E2BIG:
        return FAULT_NOT_ALLOWED;
    default:
        return FAULT_INVALID_REQUEST;
    }
}

void update_answer(const struct request *r, struct answer *ret)
{
    _cleanup_target_ struct target t = {0};
    _cleanup_update_ struct update u = {.target = &t};
    struct err e = {0};
    int result;

    if (!take_aim(r, false, &t, ret))
        return;
    result =
        build_update(&u, json_object_get(r->body, "set"), json_object_get(r->body, "optional"), &e);
    if (result < 0) {
        fail_with_look(&t, ret, fault_of_update(result), e.text);
        return;
    }
    if (u.left_out) {
        answer_set(ret, "left_out", json_incref(u.left_out));
        answer_set(ret, "text", json_string(e.text));
    }
    deadline_acting();
    tell_result(&t, slurm_update_job(&u.message), ret, "the update");
}
