/* SPDX-License-Identifier: Apache-2.0 */

/* From a verdict to a decision, by the first rule that has something to say.
 *
 * A wrong stop leaves machines idle for a night, a missed stop costs one bounded retry. So the last
 * rule restarts, and every rule that stops names the budget that is used up. The order is: what the
 * user wants; what needs no restart; what no restart can help; the caps; the ledgers.
 * docs/OPERATIONS.md explains each rule to those who run jobs: keep it in step. */

#include "core/policy/decide.h"

#include "core/policy/exclude.h"

#include "base/sig.h"
#include "base/str.h"

#include <inttypes.h>

#define CERTAIN           90 /* percent, from which a verdict needs no second try to be believed */
#define STARTS_FAILED_MAX 3

typedef bool rule_fn(const struct model *m, const struct job *j, struct decision_facts *ret);

#define VERDICT(ret_, action_, rule_, used_, allowed_, ...)                                        \
    ((ret_)->action = (action_), STR_COPY((ret_)->rule, (rule_)), (ret_)->used = (used_),          \
     (ret_)->allowed = (allowed_), STR_PRINTF((ret_)->why, __VA_ARGS__), true)
#define STOP(ret, rule, used, allowed, ...)                                                        \
    VERDICT(ret, ACTION_STOP, rule, used, allowed, __VA_ARGS__)
#define COMPLETE(ret, rule, ...) VERDICT(ret, ACTION_COMPLETE, rule, 0, 0, __VA_ARGS__)
#define WAIT(ret, rule, ...)     VERDICT(ret, ACTION_WAIT, rule, 0, 0, __VA_ARGS__)
#define RESTART(ret, rule, used, allowed, ...)                                                     \
    VERDICT(ret, ACTION_RESTART, rule, used, allowed, __VA_ARGS__)

static const char *cause_words(const struct job *j)
{
    enum cause cause = j->attempt.incident.cause;

    return cause == CAUSE_UNKNOWN ? "unknown cause" : cause_name(cause);
}

/* Doubles with each failure without progress in a row. */
static usec_t backoff(const struct model *m, const struct job *j)
{
    const struct cause_policy *p = &policy_of(m, j)->cause[j->attempt.incident.cause];
    usec_t delay = p->backoff;

    for (uint32_t i = 1; i < j->ledger.in_a_row && delay < p->backoff_max; i++)
        delay *= 2;
    return delay < p->backoff_max ? delay : p->backoff_max;
}

/* What the user wants, and the end of the work */

static bool ended_well(const struct attempt *a)
{
    return !a->hung && !a->crashed && a->exited && a->exit.code == 0 && a->exit.signal == 0;
}

static bool rule_requested(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    char sender[SIG_SENDER_LEN];

    if (!j->requested)
        return false;
    if (ended_well(&j->attempt) && j->attempt.incident.class == CLASS_HEALTHY)
        return false; /* the wish came when its work was done */
    if (j->scheduled)
        return STOP(ret, "requested", 0, 0, "it was cancelled");
    if (j->request_signal == 0)
        return STOP(ret, "requested", 0, 0, "%s",
                    j->attempt.exited ? "no further attempt could be started"
                                      : "it could not be started");
    return STOP(ret, "requested", 0, 0, "%s ended it", sig_sender(j->request_signal, sender));
}

static bool rule_completed(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    if (!ended_well(&j->attempt))
        return false;
    return COMPLETE(ret, "completed", "it ended with status 0");
}

/* The processes of a job that says it is done are only in the way; but not if it was still writing
 * its last checkpoint. See docs/decisions/004. */
static bool rule_finished(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    const struct attempt *a = &j->attempt;
    bool finished = a->finished_at != USEC_NEVER || a->incident.finished;

    if (!a->hung || !finished || a->phase_began[PHASE_CHECKPOINT] != USEC_NEVER)
        return false;
    return COMPLETE(ret, "finished", "its work was done, only its processes did not exit");
}

static bool rule_runner_lost(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    if (!j->attempt.lost)
        return false;
    if (j->scheduled)
        return STOP(ret, "forgotten", 0, 0, "the scheduler does not know it any more");
    return STOP(ret, "runner-lost", 0, 0, "reknit itself was killed, and the job with it");
}

/* What is no failure */

static bool rule_cancelled(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    if (j->attempt.incident.cause != CAUSE_CANCELLED)
        return false;
    return STOP(ret, "cancelled", 0, 0, "it was cancelled");
}

/* A scheduler that preempts a job also queues it again, if it is to be. */
static bool rule_preempted(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    if (!j->scheduled || j->attempt.incident.cause != CAUSE_PREEMPTION)
        return false;
    return WAIT(ret, "preempted", "it was preempted or queued again, and not by Reknit");
}

/* The end of the time that was asked for is what its user planned with, unless he says otherwise.
 */
static bool rule_time_limit(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    if (!j->scheduled || j->attempt.incident.cause != CAUSE_TIME_LIMIT ||
        policy_of(m, j)->continue_after_time_limit)
        return false;
    return STOP(ret, "time-limit", 0, 0,
                "its time was up; to go on from there, let the policy say "
                "continue_after_time_limit: true");
}

static bool rule_free(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    uint32_t used = ledger_recent(&j->ledger.free, m->now) + 1;
    uint32_t allowed = policy_of(m, j)->max_restarts_per_day;

    if (!cause_is_free(j->attempt.incident.cause))
        return false;
    if (used > allowed)
        return STOP(ret, "interrupted-too-often", used - 1, allowed,
                    "%s, %" PRIu32 " times in 24 h; the limit is %" PRIu32, cause_words(j),
                    used - 1, allowed);
    ret->delay = backoff(m, j);
    return RESTART(ret, "not-its-fault", used, allowed,
                   "%s is no failure of the job, so no retry is spent", cause_words(j));
}

/* What no restart can help */

static bool rule_never_retried(const struct model *m, const struct job *j,
                               struct decision_facts *ret)
{
    if (policy_of(m, j)->cause[j->attempt.incident.cause].retries > 0)
        return false;
    return STOP(ret, "never-retried", 0, 0, "the policy allows no retry (%s)", cause_words(j));
}

/* Its launcher has restarted it as often as it may, or knows that the same would come again. */
static bool rule_told_to_stop(const struct model *m, const struct job *j,
                              struct decision_facts *ret)
{
    if (!j->attempt.incident.no_restart)
        return false;
    return STOP(ret, "told-to-stop", 0, 0,
                "a process ended with status 93: its launcher says that it must not be started "
                "again");
}

/* A shell's word for "cannot be executed" and "not found". */
static bool cannot_run(const struct attempt *a)
{
    return a->exited && (a->exit.code == 126 || a->exit.code == 127);
}

static bool is_certain(const struct job *j)
{
    const struct incident *i = &j->attempt.incident;

    if (i->cause != CAUSE_USER_CODE && i->cause != CAUSE_USER_CONFIG)
        return false;
    return cannot_run(&j->attempt) || (i->advice == ADVICE_STOP && i->confidence >= CERTAIN);
}

static bool rule_hopeless(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    if (j->ledger.judged > 1 || j->attempt.steps_seen > 0 || !is_certain(j))
        return false;
    return STOP(ret, "hopeless", 0, 0,
                "%s before the first step, sure to come back: mend it and start it again",
                cause_words(j));
}

/* The caps */

static bool used_up(struct decision_facts *ret, const char *rule, uint32_t used, uint32_t allowed,
                    const char *of_what)
{
    if (used < allowed)
        return false;
    return STOP(ret, rule, used, allowed, "%" PRIu32 " %s; the limit is %" PRIu32, used, of_what,
                allowed);
}

static bool rule_max_restarts(const struct model *m, const struct job *j,
                              struct decision_facts *ret)
{
    return used_up(ret, "max-restarts", j->ledger.restarts, policy_of(m, j)->max_restarts,
                   "restarts in its life");
}

static bool rule_max_restarts_per_day(const struct model *m, const struct job *j,
                                      struct decision_facts *ret)
{
    return used_up(ret, "max-restarts-per-day", ledger_recent(&j->ledger.paid, m->now),
                   policy_of(m, j)->max_restarts_per_day, "restarts in 24 h");
}

/* A restart of many nodes costs the others who wait for them, too. One that leads nowhere may be
 * repeated as often as the number of its nodes lets it. */
static bool rule_fleet(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    uint64_t allowed = policy_of(m, j)->max_node_restarts_per_day, nodes = j->nodes;
    uint64_t used = nodes * ledger_recent(&j->ledger.futile, m->now);

    if (allowed == 0 || j->ledger.advance != ADVANCE_NO || used == 0 || used + nodes <= allowed)
        return false;
    return STOP(ret, "fleet", used < UINT32_MAX ? (uint32_t)used : UINT32_MAX, (uint32_t)allowed,
                "%" PRIu64 " nodes were restarted in vain in 24 h, and %" PRIu64
                " more would be; the limit is %" PRIu64,
                used, nodes, allowed);
}

static bool rule_waste(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    struct waste w = ledger_waste(&j->ledger, m->now);
    uint32_t allowed = policy_of(m, j)->max_waste, percent;
    char lost[DURATION_TEXT_MAX], ran[DURATION_TEXT_MAX];

    if (allowed == 0 || w.lost == 0 || w.lost < policy_of(m, j)->waste_floor)
        return false;
    percent = (uint32_t)(w.devices_lost * 100 / w.devices_ran);
    if (percent <= allowed)
        return false;
    return STOP(ret, "waste", percent, allowed,
                "in the last 24 h it ran for %s, %s of it for nothing: %" PRIu32
                " %% of its GPU time; the limit is %" PRIu32 " %%",
                duration_format(w.ran, ran), duration_format(w.lost, lost), percent, allowed);
}

static bool rule_unexplained(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    uint32_t large = policy_of(m, j)->large_job, used = j->ledger.unexplained;

    if (large == 0 || j->gpus < large || used < policy_of(m, j)->max_unexplained)
        return false;
    return STOP(ret, "unexplained", used, policy_of(m, j)->max_unexplained,
                "%" PRIu32 " failures without progress whose cause is not known, on %" PRIu32
                " GPUs: look before it takes them again",
                used, j->gpus);
}

/* The ledgers */

/* The same failure came twice behind the same step, and it is one that the work at that step can
 * make; a network that breaks there again is chance. */
static bool is_of_the_step(const struct job *j)
{
    enum domain domain = cause_domain(j->attempt.incident.cause);

    return j->ledger.same_step && (domain == DOMAIN_WORKLOAD || domain == DOMAIN_UNKNOWN);
}

/* The same data makes the same failure, unless it is left out: see the environment of the job. */
static bool may_be_the_data(const struct job *j)
{
    enum cause cause = j->attempt.incident.cause;

    return is_of_the_step(j) && (cause == CAUSE_NUMERICAL || cause == CAUSE_USER_CODE);
}

/* Of the failure that ended the attempt. */
static uint32_t retries_allowed(const struct model *m, const struct job *j)
{
    uint32_t retries = policy_of(m, j)->cause[j->attempt.incident.cause].retries;
    uint32_t more = may_be_the_data(j) ? policy_of(m, j)->same_step_retries : 0;

    return more > retries ? more : retries;
}

static bool rule_same_failure(const struct model *m, const struct job *j,
                              struct decision_facts *ret)
{
    const struct ledger *l = &j->ledger;
    uint32_t used = l->same > 0 ? l->same - 1 : 0, allowed = retries_allowed(m, j);

    if (l->same <= allowed)
        return false;
    if (is_of_the_step(j))
        return STOP(ret, "same-step", used, allowed,
                    "%s after step %" PRId64 " again, %" PRIu32 " of %" PRIu32
                    " retries used: it is what comes there, not chance%s",
                    cause_words(j), l->failed_step, used, allowed,
                    may_be_the_data(j) ? "; leave out its data, or go on from an older checkpoint"
                                       : "");
    return STOP(ret, "same-failure", used, allowed,
                "the same failure (%s) again, and no progress in between; %" PRIu32 " of %" PRIu32
                " retries used",
                cause_words(j), used, allowed);
}

static bool rule_no_step(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    return used_up(ret, "no-step", j->ledger.without_step, policy_of(m, j)->max_without_step,
                   "attempts in a row completed not one step");
}

static bool rule_no_progress(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    return used_up(ret, "no-progress", j->ledger.without_progress,
                   policy_of(m, j)->max_without_progress, "attempts in a row made no progress");
}

/* Otherwise: restart, and say from which budget */

static bool rule_restart(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    const struct ledger *l = &j->ledger;
    uint32_t restarts = l->restarts + 1, cap = policy_of(m, j)->max_restarts, allowed;

    ret->delay = backoff(m, j);
    if (l->advance == ADVANCE_YES)
        return RESTART(ret, "advanced", restarts, cap,
                       "it had made progress; restart %" PRIu32 " of %" PRIu32, restarts, cap);
    if (l->patient)
        return RESTART(ret, "patience", restarts, cap,
                       "%s may come back by itself; restart %" PRIu32 " of %" PRIu32,
                       cause_words(j), restarts, cap);
    if (l->advance == ADVANCE_UNKNOWN)
        return RESTART(ret, "progress-unknown", restarts, cap,
                       "whether it made progress cannot be told; restart %" PRIu32 " of %" PRIu32,
                       restarts, cap);
    allowed = retries_allowed(m, j);
    if (is_of_the_step(j))
        return RESTART(ret, "same-step", l->same, allowed,
                       "%s after step %" PRId64 " again: retry %" PRIu32 " of %" PRIu32
                       " for this failure, and the job is told the step",
                       cause_words(j), l->failed_step, l->same, allowed);
    return RESTART(ret, "retry", l->same, allowed,
                   "%s, no progress: retry %" PRIu32 " of %" PRIu32 " for this failure",
                   cause_words(j), l->same, allowed);
}

static rule_fn *const rules[] = {
    rule_requested,
    rule_completed,
    rule_finished,
    rule_runner_lost,
    rule_cancelled,
    rule_preempted,
    rule_time_limit,
    rule_free,
    rule_told_to_stop,
    rule_never_retried,
    rule_hopeless,
    rule_max_restarts,
    rule_max_restarts_per_day,
    rule_fleet,
    rule_waste,
    rule_unexplained,
    rule_same_failure,
    rule_no_step,
    rule_no_progress,
    rule_restart,
};

static bool decide_verdict(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        if (rules[i](m, j, ret))
            break;
    return true;
}

/* A START that did not come about. Unknown means that the attempt may run: starting another would
 * risk two copies. */
static bool decide_failed_start(const struct model *m, const struct job *j,
                                struct decision_facts *ret)
{
    uint32_t tries = j->starts_failed + !j->start_failed, allowed = STARTS_FAILED_MAX;
    uint32_t used = tries < allowed ? tries : allowed;
    const char *detail =
        j->start_failed ? j->start_detail : "the scheduler was asked, and did not queue it again";

    if (j->start_unknown)
        return STOP(ret, "start-unknown", 0, 0, "whether it was started cannot be told: %s",
                    j->start_detail);
    if (j->start_final)
        return STOP(ret, "start-refused", 0, 0, "it cannot be started: %s", detail);
    if (tries > allowed)
        return STOP(ret, "start-failed", used, allowed, "it cannot be started: %s", detail);
    if (rule_max_restarts(m, j, ret) || rule_max_restarts_per_day(m, j, ret))
        return true;
    ret->delay = backoff(m, j);
    return RESTART(ret, "start-failed", used, allowed, "it could not be started: %s", detail);
}

/* What looked dead was not, and has ended well by itself. */
static bool rule_completed_after_all(const struct job *j, struct decision_facts *ret)
{
    if (j->sched.look.state != SCHED_COMPLETED || sched_was_requeued(j))
        return false;
    return COMPLETE(ret, "completed", "it ended with status 0 before it was started again");
}

/* Nothing is proposed that cannot be done. What is only observed is judged as if it had been acted
 * on: then it would have been let in time. */
static bool rule_no_requeue(const struct job *j, struct decision_facts *ret)
{
    if (!sched_is_forbidden(j) || j->sched.mode <= MODE_OBSERVE || sched_was_requeued(j) ||
        job_awaits(j, INTENT_REQUEUE))
        return false;
    return STOP(ret, "no-requeue", 0, 0,
                "its user does not let it be requeued (--no-requeue), and that cannot be changed "
                "once it has ended: submit it again");
}

/* The limit was lowered before anything was done about it. What is no failure does not count. */
static bool rule_lowered(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    if (j->sched.requeue_asked || sched_was_requeued(j) || cause_is_free(j->attempt.incident.cause))
        return false;
    return rule_max_restarts(m, j, ret) || rule_max_restarts_per_day(m, j, ret);
}

/* Of a job that a scheduler starts. */
static bool decide_start_again(const struct model *m, const struct job *j,
                               struct decision_facts *ret)
{
    if (rule_completed_after_all(j, ret))
        return true;
    if (!action_restarts(j->attempt.decision.action))
        return false;
    if (rule_no_requeue(j, ret) || rule_lowered(m, j, ret))
        return true;
    return (j->start_failed || m->now >= sched_requeue_limit(j)) && decide_failed_start(m, j, ret);
}

/* A decision to go on meets a reason not to. */
static bool decide_again(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    if (rule_requested(m, j, ret) || rule_runner_lost(m, j, ret))
        return true;
    if (j->scheduled)
        return decide_start_again(m, j, ret);
    if (j->state == JOB_STARTING && j->start_failed)
        return decide_failed_start(m, j, ret);
    if (m->now < kill_limit(m, j))
        return false;
    return STOP(ret, "unkillable", j->attempt.kills, j->attempt.kills,
                "its processes cannot be ended, and two copies must never run");
}

static bool goes_on(enum action a)
{
    return action_restarts(a) || a == ACTION_WAIT;
}

static bool decide_now(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    switch (j->state) {
    case JOB_JUDGED:
        return decide_verdict(m, j, ret);
    case JOB_DECIDED:
    case JOB_STARTING:
        return goes_on(j->attempt.decision.action) && decide_again(m, j, ret);
    case JOB_NEW:
        return rule_requested(m, j, ret) || rule_runner_lost(m, j, ret);
    default:
        return false;
    }
}

/* Being queued again is pause enough for a job that got on, or whose culprit is left out. */
static bool needs_no_pause(const struct job *j, const struct decision_facts *d)
{
    return j->ledger.advance == ADVANCE_YES || d->action == ACTION_RESTART_EXCLUDING;
}

bool decide(const struct model *m, const struct job *j, struct decision_facts *ret)
{
    *ret = (struct decision_facts){.action = ACTION_NONE, .after_step = STEP_NONE};
    if (!decide_now(m, j, ret))
        return false;
    if (action_restarts(ret->action) && rule_no_requeue(j, ret))
        ret->delay = 0;
    if (ret->action == ACTION_RESTART && is_of_the_step(j))
        ret->after_step = j->ledger.failed_step;
    if (ret->action == ACTION_RESTART)
        exclude_culprits(m, j, ret);
    if (j->scheduled && j->state == JOB_JUDGED && needs_no_pause(j, ret))
        ret->delay = 0;
    return true;
}
