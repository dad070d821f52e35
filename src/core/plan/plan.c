/* SPDX-License-Identifier: Apache-2.0 */

/* From a decision to intents. Nothing is started before every process of the last attempt is gone;
 * when they cannot be got rid of in time, policy stops the job instead. */

#include "core/plan/plan.h"

#include "core/plan/scheduled.h"

#include "base/sig.h"

#include <signal.h>
#include <string.h>

#define EXIT_STOPPED_JOB 75 /* EX_TEMPFAIL */
#define EXIT_NOT_STARTED 1

/* A launcher that ends takes its children along a moment later. */
#define LINGER    ((usec_t)(200 * USEC_PER_MSEC))
#define KILLS_MAX 3

static bool may_kill(const struct job *j)
{
    return (j->state == JOB_ENDING || j->state == JOB_JUDGED || j->state == JOB_DECIDED) &&
           j->attempt.number != 0 && !j->attempt.gone;
}

static usec_t kill_due(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;

    if (!may_kill(j) || a->kills >= KILLS_MAX || (a->kills > 0 && !a->kill_due_again))
        return USEC_NEVER;
    if (a->kills > 0 || !a->exited)
        return a->interrupted_at;
    if (a->exit.code == 0 && a->exit.signal == 0) /* helpers may finish what they upload */
        return a->exited_at + policy_of(m, j)->kill_grace;
    return a->exited_at + LINGER;
}

static bool wants_inspection(const struct job *j)
{
    return j->state == JOB_RUNNING && j->attempt.suspicion != SUSPICION_NONE &&
           !j->attempt.inspected && !j->attempt.progressed;
}

static bool wants_start(const struct job *j)
{
    return j->state == JOB_DECIDED && action_restarts(j->attempt.decision.action) &&
           j->attempt.gone;
}

bool plan_intent(const struct model *m, const struct job *j, struct intent_facts *ret,
                 uint32_t *ret_attempt)
{
    const struct attempt *a = &j->attempt;

    if (j->scheduled)
        return plan_sched_intent(m, j, ret, ret_attempt);
    *ret_attempt = a->number;
    if (wants_inspection(j)) {
        *ret = (struct intent_facts){.intent = INTENT_INSPECT, .after_step = STEP_NONE};
        return true;
    }
    if (m->now >= kill_due(m, j)) {
        *ret = (struct intent_facts){.intent = INTENT_KILL,
                                     .signal = a->kills == 0 ? SIGTERM : SIGKILL,
                                     .grace = a->kills == 0 ? policy_of(m, j)->kill_grace : 0,
                                     .after_step = STEP_NONE};
        return true;
    }
    if (wants_start(j)) {
        *ret = (struct intent_facts){.intent = INTENT_START,
                                     .not_before = a->decided_at + a->decision.delay,
                                     .after_step = a->decision.after_step,
                                     .n_without = j->n_without};
        memcpy(ret->without, j->without, sizeof(ret->without));
        *ret_attempt = a->number + 1;
        return true;
    }
    return false;
}

usec_t plan_due(const struct model *m, const struct job *j)
{
    usec_t due = kill_due(m, j), limit = kill_limit(m, j);

    if (j->scheduled)
        return plan_sched_due(m, j);
    if (j->state != JOB_DECIDED)
        return due;
    return due < limit ? due : limit;
}

static int32_t own_exit_code(const struct job *j)
{
    const struct exit_fact *x = &j->attempt.exit;

    if (j->attempt.number == 0 && j->requested && j->request_signal == 0)
        return EXIT_NOT_STARTED;
    if (!j->attempt.exited)
        return sig_status(0, j->requested ? j->request_signal : SIGTERM);
    return sig_status(x->code, x->signal);
}

bool plan_ended(const struct model *m, const struct job *j, struct ended_facts *ret)
{
    const struct attempt *a = &j->attempt;

    if (j->scheduled) {
        bool complete = a->decision.action == ACTION_COMPLETE;

        *ret = (struct ended_facts){.action = j->sched.unwatched ? ACTION_NONE
                                              : complete         ? ACTION_COMPLETE
                                                                 : ACTION_STOP,
                                    .exit_code = a->exit.code};
        return plan_sched_ended(m, j);
    }
    if (j->state != JOB_DECIDED || action_restarts(a->decision.action))
        return false;
    if (a->number != 0 && !a->gone && m->now < kill_limit(m, j))
        return false;
    ret->action = a->decision.action;
    if (ret->action == ACTION_COMPLETE)
        ret->exit_code = 0;
    else if (j->requested || a->incident.cause == CAUSE_CANCELLED || a->exit.error != 0)
        ret->exit_code = own_exit_code(j);
    else
        ret->exit_code = EXIT_STOPPED_JOB;
    return true;
}
