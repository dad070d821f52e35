/* SPDX-License-Identifier: Apache-2.0 */

/* Crash: the first process ended, and not with status 0; or a line that names a root failure was
 * followed by no progress for so long that the job will not get over it, although its processes
 * live on (algorithm b.1). A root line with progress behind it is an error that was survived.
 *
 * A line is only text: before processes are ended for it, they must not be visibly at work.
 *
 * Progress is read in the logs. So while nobody reads them (reknitd was away, a reader is dead or
 * hangs), there is nothing to be found but an end that others saw; and when somebody does again,
 * the job has the whole of its time anew; likewise while it is suspended. docs/decisions/011 */

#include "core/detect/detect.h"

#include "base/sig.h"
#include "base/str.h"

#define ROOT_WAIT_MIN USEC_PER_MIN
#define QUIET_SPAN    (30 * USEC_PER_SEC)

/* A task that was seen to die takes its job along, or the others wait for it; those of a job that
 * can do without it go on. */
#define TASK_WAIT (10 * USEC_PER_SEC)

bool detect_recovery(const struct model *m, const struct job *j, struct finding_facts *ret)
{
    const struct attempt *a = &j->attempt;

    if (!sched_has_recovered(j) && (j->state != JOB_RUNNING || !a->progressed))
        return false;
    *ret = (struct finding_facts){.finding = FINDING_RECOVERED};
    if (a->suspicion != SUSPICION_NONE)
        STR_PRINTF(ret->why, "it makes progress again");
    else
        STR_PRINTF(ret->why, "it made progress after %s", a->root);
    return true;
}

static bool waits_for_root(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;

    return policy_of(m, j)->hang.enabled && a->root_at != USEC_NEVER && !a->progressed &&
           !a->crashed && !a->hung && !a->unread && !sched_is_suspended(j);
}

static bool ever_stepped(const struct job *j)
{
    return j->timing.first_step > 0;
}

/* How long the job may take to get over an error. While it starts, nobody knows its pace. */
static usec_t recovery_time(const struct model *m, const struct job *j)
{
    const struct rhythm *r = best_rhythm(j);

    if (r && j->attempt.steps_seen > 0)
        return usec_max(3 * r->q99, ROOT_WAIT_MIN);
    return usec_max(policy_of(m, j)->hang.first_step / 6, 2 * j->timing.first_step);
}

/* Until when progress may still come after the root line. Of a job that was never seen to step,
 * any further line is progress. */
static usec_t root_limit(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;
    usec_t base = ever_stepped(j) ? a->root_at : usec_max(a->root_at, a->last_output);
    usec_t limit = silent_since(a, base) + recovery_time(m, j);

    for (int p = 0; p < PHASE_MAX; p++)
        if (a->phase_began[p] != USEC_NEVER)
            limit = usec_max(limit, silent_since(a, a->phase_began[p]) +
                                        phase_allowance(m, j, (enum phase)p));
    return limit;
}

/* Without any sample, the line alone must do, if the job is known to step. */
static bool looks_dead(const struct job *j, enum liveness l)
{
    switch (l) {
    case LIVENESS_IDLE:
    case LIVENESS_STOPPED:
    case LIVENESS_BLOCKED:
        return true;
    case LIVENESS_SPINNING:
        return ever_stepped(j);
    case LIVENESS_UNKNOWN:
        return ever_stepped(j) && j->attempt.streaks.sampled == USEC_NEVER;
    case LIVENESS_BUSY:
        break;
    }
    return false;
}

static bool has_ended(const struct attempt *a)
{
    return a->exited || a->gone;
}

/* While others of the step live: behind a step that ended as a whole, a script may start the next.
 * Of a task that died when nobody read, nobody knows how its job took it: then that takes as long
 * as with any other error. */
static usec_t task_limit(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;
    uint32_t tasks = j->sched.look.tasks;

    if (!waits_for_root(m, j) || a->task_died_at == USEC_NEVER ||
        (tasks > 0 && a->tasks_ended >= tasks))
        return USEC_NEVER;
    if (a->read_at > a->task_died_at)
        return usec_max(a->read_at, a->last_output) + recovery_time(m, j);
    return usec_max(a->task_died_at, a->last_output) + TASK_WAIT;
}

usec_t crash_due(const struct model *m, const struct job *j)
{
    usec_t limit, task, asked = job_asked_at(m, j);

    if (j->state != JOB_RUNNING || has_ended(&j->attempt) || !waits_for_root(m, j))
        return USEC_NEVER;
    task = task_limit(m, j);
    limit = root_limit(m, j);
    if (asked < task && task < limit)
        return task;
    if (asked < limit)
        return limit;
    return asked < task ? task : USEC_NEVER; /* from then on the next sample decides */
}

static void say_how_it_ended(const struct attempt *a, struct finding_facts *ret)
{
    char name[SIG_NAME_LEN];

    if (!a->exited)
        STR_PRINTF(ret->why, "its processes vanished");
    else if (a->exit.code < 0 && a->exit.signal == 0)
        STR_PRINTF(ret->why, "its scheduler ended it");
    else if (a->exit.signal != 0)
        STR_PRINTF(ret->why, "it was ended by %s", sig_name(a->exit.signal, name));
    else
        STR_PRINTF(ret->why, "it ended with status %d", a->exit.code);
}

static bool detect_task(const struct model *m, const struct job *j, struct finding_facts *ret)
{
    usec_t limit = task_limit(m, j);
    usec_t since = silent_since(&j->attempt, j->attempt.task_died_at);
    char waited[DURATION_TEXT_MAX];

    if (m->now < limit || limit == USEC_NEVER)
        return false;
    ret->timeout = limit - since;
    STR_PRINTF(ret->why, "%s, and for %s the others did nothing that shows", j->attempt.task_death,
               duration_format(m->now - since, waited));
    return true;
}

static bool detect_root(const struct model *m, const struct job *j, struct finding_facts *ret)
{
    usec_t since = silent_since(&j->attempt, j->attempt.root_at);
    char waited[DURATION_TEXT_MAX], life[128];
    enum liveness l;

    if (!waits_for_root(m, j) || m->now < root_limit(m, j))
        return false;
    l = liveness_of(m, j, QUIET_SPAN);
    if (!looks_dead(j, l))
        return false;
    ret->timeout = root_limit(m, j) - since;
    liveness_text(j, l, life, sizeof(life));
    STR_PRINTF(ret->why, "no progress for %s after %s; %s", duration_format(m->now - since, waited),
               j->attempt.root, life);
    return true;
}

bool detect_crash(const struct model *m, const struct job *j, struct finding_facts *ret)
{
    const struct attempt *a = &j->attempt;

    if (j->state != JOB_RUNNING || a->end_found || a->lost)
        return false;
    if (j->requested && has_ended(a)) /* as was wished */
        return false;
    *ret = (struct finding_facts){.finding = FINDING_CRASH,
                                  .silent = m->now - silent_since(a, a->last_progress)};
    if (!has_ended(a))
        return detect_task(m, j, ret) || detect_root(m, j, ret);
    say_how_it_ended(a, ret);
    return true;
}
