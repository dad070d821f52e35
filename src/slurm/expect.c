/* SPDX-License-Identifier: Apache-2.0 */

/* A precondition that is not understood must stop the action as one that does not hold does; so
 * every member of `expect` is looked up in one table, and what is not in it is refused. */

#include "slurm/expect.h"

#include "base/str.h"

#include <assert.h>
#include <string.h>

static const char *const slurm_state_names[SLURM_STATE_MAX] = {
    [SLURM_STATE_UNKNOWN] = "unknown",
    [SLURM_STATE_PENDING] = "pending",
    [SLURM_STATE_CONFIGURING] = "configuring",
    [SLURM_STATE_RUNNING] = "running",
    [SLURM_STATE_SUSPENDED] = "suspended",
    [SLURM_STATE_COMPLETED] = "completed",
    [SLURM_STATE_FAILED] = "failed",
    [SLURM_STATE_TIMEOUT] = "timeout",
    [SLURM_STATE_NODE_FAIL] = "node-fail",
    [SLURM_STATE_OUT_OF_MEMORY] = "out-of-memory",
    [SLURM_STATE_PREEMPTED] = "preempted",
    [SLURM_STATE_CANCELLED] = "cancelled",
    [SLURM_STATE_DEADLINE] = "deadline",
    [SLURM_STATE_BOOT_FAIL] = "boot-fail",
    [SLURM_STATE_SPECIAL_EXIT] = "special-exit",
    [SLURM_STATE_REQUEUED] = "requeued",
};
DEFINE_NAMES(slurm_state, enum slurm_state, slurm_state_names);

static int check_number(const char *what, int64_t is, const json_t *want, struct err *e)
{
    if (!json_is_integer(want))
        return err_set(e, -EINVAL, "expect.%s is no integer", what);
    if (json_integer_value(want) != is)
        return err_set(e, -ESTALE, "%s is %lld, not %lld", what, (long long)is,
                       (long long)json_integer_value(want));
    return 0;
}

static int check_flag(const char *what, bool is, const json_t *want, struct err *e)
{
    if (!json_is_boolean(want))
        return err_set(e, -EINVAL, "expect.%s is neither true nor false", what);
    if (json_is_true(want) != is)
        return err_set(e, -ESTALE, "%s is %s", what, is ? "true" : "false");
    return 0;
}

static int check_restarts(const struct job_look *l, const json_t *want, struct err *e)
{
    return check_number("restarts", l->restarts, want, e);
}

static int check_submit(const struct job_look *l, const json_t *want, struct err *e)
{
    return check_number("submit", l->submit, want, e);
}

static int check_uid(const struct job_look *l, const json_t *want, struct err *e)
{
    return check_number("uid", l->uid, want, e);
}

static int check_completing(const struct job_look *l, const json_t *want, struct err *e)
{
    return check_flag("completing", l->completing, want, e);
}

static int check_held(const struct job_look *l, const json_t *want, struct err *e)
{
    return check_flag("held", l->held, want, e);
}

static int check_requeue(const struct job_look *l, const json_t *want, struct err *e)
{
    return check_flag("requeue", l->requeue, want, e);
}

static int check_cancelled(const struct job_look *l, const json_t *want, struct err *e)
{
    return check_flag("user_cancelled", l->state == SLURM_STATE_CANCELLED, want, e);
}

static int check_text(const char *what, const char *is, const json_t *want, struct err *e)
{
    if (!json_is_string(want))
        return err_set(e, -EINVAL, "expect.%s is no text", what);
    if (!streq(json_string_value(want), is))
        return err_set(e, -ESTALE, "%s is another", what);
    return 0;
}

static int check_name(const struct job_look *l, const json_t *want, struct err *e)
{
    return check_text("name", l->name, want, e);
}

static int check_dependency(const struct job_look *l, const json_t *want, struct err *e)
{
    return check_text("dependency", l->dependency, want, e);
}

static int check_states(const struct job_look *l, const json_t *want, struct err *e)
{
    bool is = false;
    const json_t *word;
    size_t i;

    if (!json_is_array(want) || json_array_size(want) == 0)
        return err_set(e, -EINVAL, "expect.states is no list of states");
    json_array_foreach (want, i, word) {
        enum slurm_state s = json_is_string(word) ? slurm_state_from_name(json_string_value(word))
                                                  : SLURM_STATE_INVALID;

        if (s < 0)
            return err_set(e, -EINVAL, "expect.states has what is no state");
        is = is || s == l->state;
    }
    return is ? 0 : err_set(e, -ESTALE, "state is %s", slurm_state_name(l->state));
}

static const struct {
    const char *name;
    int (*check)(const struct job_look *l, const json_t *want, struct err *e);
    bool demanded;
} conditions[] = {
    {"restarts", check_restarts, true},  {"submit", check_submit, true},
    {"states", check_states, true},      {"uid", check_uid},
    {"completing", check_completing},    {"held", check_held},
    {"user_cancelled", check_cancelled}, {"name", check_name},
    {"requeue", check_requeue},          {"dependency", check_dependency},
};

static int check_known(const json_t *expect, struct err *e)
{
    const char *name;
    const json_t *v;

    json_object_foreach ((json_t *)expect, name, v) {
        size_t i = 0;

        while (i < ARRAY_SIZE(conditions) && !streq(conditions[i].name, name))
            i++;
        if (i == ARRAY_SIZE(conditions))
            return err_set(e, -EINVAL, "expect.%s is no condition that is known", name);
    }
    return 0;
}

int expect_holds(const struct job_look *look, const json_t *expect, bool demand, struct err *e)
{
    int r = 0, first = 0;

    if (expect && !json_is_object(expect))
        return err_set(e, -EINVAL, "expect is no object");
    if (expect)
        r = check_known(expect, e);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(conditions); i++) {
        const json_t *want = json_object_get(expect, conditions[i].name);
        struct err why = {0};

        if (!want && demand && conditions[i].demanded)
            return err_set(e, -EINVAL, "expect.%s is missing", conditions[i].name);
        r = want ? conditions[i].check(look, want, &why) : 0;
        /* The first that does not hold is told, but only if all were understood. */
        if (r == -EINVAL || (r < 0 && first == 0)) {
            if (e)
                *e = why;
            first = r;
        }
        if (r == -EINVAL)
            break;
    }
    return first;
}
