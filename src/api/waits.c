/* SPDX-License-Identifier: Apache-2.0 */
#include "api/waits.h"

#include "base/str.h"
#include "core/plan/scheduled.h"

#include <strings.h>

static void wait_for_node(const char *node, char *ret, size_t size)
{
    str_printf(
        ret, size,
        "node %s, which does not answer and may still run it: until it answers, or its agent "
        "or the fence command says that nothing of the job is left there, or somebody "
        "approves the restart",
        node);
}

static void wait_for_release(const struct sched *s, char *ret, size_t size)
{
    if (s->guarded)
        str_copy(ret, size, "a hold of Reknit's, which is about to be taken back");
    else if (s->held_for_people)
        str_printf(
            ret, size,
            "somebody to look at it, as its policy says: 'scontrol release %s' lets it go on",
            s->label);
    else if (strcasecmp(s->look.reason, "JobHeldAdmin") == 0)
        str_printf(ret, size,
                   "an operator, as its user may not release it (%s): 'scontrol release %s' ends "
                   "that",
                   s->look.reason, s->label);
    else
        str_printf(ret, size, "whoever holds it (%s): 'scontrol release %s' ends that",
                   s->look.reason[0] ? s->look.reason : "held", s->label);
}

static void wait_for_time(const struct job *j, usec_t now, char *ret, size_t size)
{
    bool ours = j->sched.amends > 0 && j->sched.asked_begin == j->sched.look.begin;
    char text[DURATION_TEXT_MAX];

    str_printf(ret, size, "its start time, in %s%s",
               duration_format(j->sched.look.begin - now, text),
               ours ? ", that Reknit asked for" : "");
}

/* The scheduler's word, with what it means. */
static void wait_for_scheduler(const struct look_facts *l, char *ret, size_t size)
{
    static const struct {
        const char *reason, *means;
    } known[] = {
        {"Dependency", "the jobs that it depends on"},
        {"DependencyNeverSatisfied", "a dependency that can never be fulfilled"},
        {"Resources", "nodes that are free"},
        {"Priority", "jobs that come before it"},
    };
    const char *means = l->constrained ? "nodes that cannot come together" : "the scheduler";

    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (strcasecmp(l->reason, known[i].reason) == 0)
            means = known[i].means;
    str_printf(ret, size, "%s%s%s%s", means, l->reason[0] ? " (" : "", l->reason,
               l->reason[0] ? ")" : "");
}

static void wait_in_queue(const struct job *j, usec_t now, char *ret, size_t size)
{
    const struct look_facts *l = &j->sched.look;

    if (l->held)
        wait_for_release(&j->sched, ret, size);
    else if (l->begin > now)
        wait_for_time(j, now, ret, size);
    else
        wait_for_scheduler(l, ret, size);
}

/* Of one that is to be queued again, and is not yet. */
static bool wait_for_requeue(const struct model *m, const struct job *j, usec_t now, char *ret,
                             size_t size)
{
    usec_t free_at = brakes_free_at(m, j);
    char text[DURATION_TEXT_MAX];

    if (j->sched.look.completing)
        str_copy(ret, size, "the scheduler, which still ends what is left of the attempt");
    else if (free_at > now)
        str_printf(ret, size, "the brakes: so much was done for jobs that it is its turn in %s",
                   duration_format(free_at - now, text));
    else
        return false;
    return true;
}

bool waits_for(const struct model *m, const struct job *j, usec_t now, char *ret, size_t size)
{
    const struct look_facts *l = &j->sched.look;
    bool restarts = action_restarts(j->attempt.decision.action);
    bool undone = restarts && j->state == JOB_DECIDED && plan_sched_may_act(m, j, NULL, 0);
    const char *lost = sched_lost_node(j);

    if (lost && (l->state == SCHED_PENDING || undone)) {
        wait_for_node(lost, ret, size);
        return true;
    }
    if (l->state == SCHED_PENDING) {
        wait_in_queue(j, now, ret, size);
        return true;
    }
    return undone && wait_for_requeue(m, j, now, ret, size);
}
