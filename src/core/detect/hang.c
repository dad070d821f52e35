/* SPDX-License-Identifier: Apache-2.0 */

/* Hang: no progress for longer than this job ever needs, and the processes agree (algorithm b.3).
 *
 * At any time one window says how much silence is allowed: until the first step, between two steps,
 * in an open phase (checkpoint, evaluation, ...), after the work is done. Of several the one that
 * ends last counts. A phase that never closes therefore runs out by its own length and then is out
 * of the way.
 *
 *   0.6 T        suspected: evidence is collected while the processes still hang
 *   T            a hang, if the processes are idle, stopped or blocked
 *                otherwise extended once, because a log can be silent while the job works
 *   2 T          a hang, if they have burnt CPU time without any I/O or output for T, and the job
 *                has a rhythm that it fell out of; else unproven: people are told, and what would
 *                prove it
 *
 * What proves a hang may also come later; then it is one at once. Without samples of the processes
 * nothing is ever killed: silence of a collector is no evidence about a job. Nor is that of a
 * reader, so each window begins when the logs are read (again) at the earliest. Nor is that of a
 * job that its scheduler has suspended, so each begins when it runs (again) at the earliest. */

#include "core/detect/detect.h"

#include "base/str.h"

#define STORAGE_GRACE (15 * USEC_PER_MIN) /* shared storage that went away often comes back */
#define CONFIRM_MAX   USEC_PER_MIN
#define SPIN_FACTOR   5 /* times timeout_min */

static usec_t longest_of(usec_t a, usec_t b)
{
    return a > b ? a : b;
}

const struct rhythm *best_rhythm(const struct job *j)
{
    if (rhythm_known(&j->timing.present))
        return &j->timing.present;
    return rhythm_known(&j->timing.learned) ? &j->timing.learned : NULL;
}

static struct allowance more_of(struct allowance a, struct allowance b)
{
    return b.time > a.time ? b : a;
}

static struct allowance times(unsigned n, usec_t of, const char *rule)
{
    return (struct allowance){.time = n * of, .rule = rule, .of = of};
}

static struct allowance by_policy(usec_t time, const char *rule)
{
    return (struct allowance){.time = time, .rule = rule};
}

/* T of one rhythm: max(kappa * q99, q50 + 10 * 1.4826 * MAD, 1.5 * longest), not yet clamped. */
static struct allowance rhythm_allowance(const struct hang_policy *p, const struct rhythm *r)
{
    struct allowance most =
                         times(p->factor, r->q99, "hang.factor x the 99th percentile of its steps"),
                     spread = {.time = r->median + r->mad * 14826 / 1000,
                               .rule = "10 deviations above the median step",
                               .of = r->median},
                     longest = {.time = r->longest + r->longest / 2,
                                .rule = "1.5 x the longest step so far",
                                .of = r->longest};

    if (!rhythm_known(r))
        return (struct allowance){0};
    return more_of(more_of(most, spread), longest);
}

static struct allowance steady_allowance(const struct hang_policy *p, const struct timing *t)
{
    struct allowance a =
        more_of(rhythm_allowance(p, &t->present), rhythm_allowance(p, &t->learned));

    a = more_of(by_policy(p->timeout_min, "hang.timeout_min"), a);
    return a.time < p->timeout_max ? a : by_policy(p->timeout_max, "hang.timeout_max");
}

static struct allowance open_phase(const struct model *m, const struct job *j, enum phase phase)
{
    const struct hang_policy *p = &policy_of(m, j)->hang;
    usec_t longest = phase >= 0 && phase < PHASE_MAX ? j->timing.phase[phase] : 0;
    struct allowance learned = times(5, longest, "5 x the longest so far");

    switch (phase) {
    case PHASE_CHECKPOINT:
        return more_of(by_policy(p->checkpoint, "hang.checkpoint"), learned);
    case PHASE_EVALUATION:
        return more_of(by_policy(p->evaluation, "hang.evaluation"), learned);
    case PHASE_COMPILATION:
        return more_of(by_policy(p->compilation, "hang.compilation"), learned);
    case PHASE_STARTUP:
    case PHASE_LOADING:
        return more_of(by_policy(p->first_step, "hang.first_step"), learned);
    case PHASE_SHUTDOWN:
        return more_of(by_policy(p->shutdown, "hang.shutdown"), learned);
    case PHASE_STEADY:
    case PHASE_MAX:
    case PHASE_INVALID:
        break;
    }
    return (struct allowance){0};
}

usec_t phase_allowance(const struct model *m, const struct job *j, enum phase phase)
{
    return open_phase(m, j, phase).time;
}

static struct allowance startup(const struct model *m, const struct job *j)
{
    usec_t time = startup_allowance(m, j), first = j->timing.first_step;

    if (first == 0)
        return by_policy(time, "hang.first_step");
    if (time == 3 * first)
        return times(3, first, "3 x the longest start so far");
    if (time == policy_of(m, j)->hang.timeout_min)
        return by_policy(time, "hang.timeout_min");
    return by_policy(time, time == policy_of(m, j)->hang.first_step ? "hang.first_step"
                                                                    : "a third of hang.first_step");
}

static struct window window_of(const struct job *j, usec_t since, enum phase phase,
                               struct allowance a)
{
    return (struct window){
        .base = silent_since(&j->attempt, since), .timeout = a.time, .phase = phase, .why = a};
}

static struct window before_first_step(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;
    /* A job that was never seen to step may print what nobody can read; then any line is life. */
    bool readable = j->timing.first_step > 0;

    return window_of(j, readable ? a->started : a->last_output, PHASE_STARTUP, startup(m, j));
}

/* Until a rhythm is known, a step may take as long as a start, and never less than the least that
 * any step may take later. */
static struct window between_steps(const struct model *m, const struct job *j)
{
    const struct hang_policy *p = &policy_of(m, j)->hang;
    struct allowance a;

    if (best_rhythm(j))
        a = steady_allowance(p, &j->timing);
    else
        a = more_of(by_policy(p->timeout_min, "hang.timeout_min"), startup(m, j));
    return window_of(j, j->attempt.last_progress, PHASE_STEADY, a);
}

static struct window base_window(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;

    if (a->finished_at != USEC_NEVER)
        return window_of(j, longest_of(a->finished_at, a->last_progress), PHASE_SHUTDOWN,
                         open_phase(m, j, PHASE_SHUTDOWN));
    return a->steps_seen == 0 ? before_first_step(m, j) : between_steps(m, j);
}

struct window hang_window(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;
    struct window w = base_window(m, j);

    for (int p = 0; p < PHASE_MAX; p++) {
        enum phase phase = (enum phase)p;
        struct window open = window_of(j, a->phase_began[p], phase, open_phase(m, j, phase));

        if (a->phase_began[p] == USEC_NEVER)
            continue;
        if (p == PHASE_COMPILATION) /* compiling comes on top */
            open.timeout += w.timeout;
        if (open.base + open.timeout > w.base + w.timeout)
            w = open;
    }
    if (a->storage_at != USEC_NEVER)
        w.timeout += STORAGE_GRACE;
    return w;
}

static usec_t part(usec_t timeout, int tenths)
{
    return timeout / 10 * tenths + timeout % 10 * tenths / 10;
}

static usec_t confirm_span(const struct window *w)
{
    usec_t span = part(w->timeout, 3);

    return span < CONFIRM_MAX ? span : CONFIRM_MAX;
}

static const char *phase_words(enum phase p)
{
    static const char *const words[PHASE_MAX] = {
        [PHASE_STEADY] = "no new step for",
        [PHASE_STARTUP] = "no first step for",
        [PHASE_CHECKPOINT] = "writing a checkpoint for",
        [PHASE_EVALUATION] = "evaluating for",
        [PHASE_LOADING] = "loading for",
        [PHASE_COMPILATION] = "compiling for",
        [PHASE_SHUTDOWN] = "its work is done, but it has not exited for",
    };

    return words[p];
}

/* "2min 00s allowed: hang.timeout_min", "12.0s allowed: 3 x the longest start so far, 4.0s" */
static void allowed_text(const struct job *j, const struct window *w, char *ret, size_t size)
{
    char time[DURATION_TEXT_MAX], of[DURATION_TEXT_MAX];
    bool early = w->phase == PHASE_STEADY && !best_rhythm(j);

    str_printf(ret, size, "%s allowed%s: %s%s%s%s%s", duration_format(w->timeout, time),
               early ? " until the rhythm is known" : "", w->why.rule, w->why.of > 0 ? ", " : "",
               w->why.of > 0 ? duration_format(w->why.of, of) : "",
               w->phase == PHASE_COMPILATION ? " on top" : "",
               j->attempt.storage_at != USEC_NEVER ? ", and 15min for storage" : "");
}

static bool find(const struct model *m, const struct job *j, const struct window *w,
                 enum finding finding, enum liveness l, const char *consequence,
                 struct finding_facts *ret)
{
    char silent[DURATION_TEXT_MAX], allowed[128], life[128];

    *ret = (struct finding_facts){.finding = finding,
                                  .timeout = w->timeout,
                                  .silent =
                                      m->now - silent_since(&j->attempt, j->attempt.last_progress),
                                  .phase = w->phase};
    liveness_text(j, l, life, sizeof(life));
    allowed_text(j, w, allowed, sizeof(allowed));
    STR_PRINTF(ret->why, "%s %s (%s); %s%s", phase_words(w->phase),
               duration_format(m->now - w->base, silent), allowed, life, consequence);
    return true;
}

/* CPU time without I/O or output is the weakest sign: an evaluation that logs nothing looks alike.
 * So it must last so long, and only counts in a job that is known to step; USEC_NEVER = it does
 * not. */
static usec_t spin_limit(const struct model *m, const struct job *j, const struct window *w)
{
    bool fell_out = best_rhythm(j) || w->phase == PHASE_SHUTDOWN;

    return fell_out ? longest_of(w->timeout, SPIN_FACTOR * policy_of(m, j)->hang.timeout_min)
                    : USEC_NEVER;
}

/* What would end the attempt although nothing proves a hang yet. */
static bool unproven(const struct model *m, const struct job *j, const struct window *w,
                     enum liveness l, struct finding_facts *ret)
{
    usec_t spin = spin_limit(m, j, w);
    char idle[DURATION_TEXT_MAX], busy[DURATION_TEXT_MAX + 32] = "", until[128];

    if (spin != USEC_NEVER)
        str_printf(busy, sizeof(busy), ", or only burn CPU for %s", duration_format(spin, idle));
    STR_PRINTF(until,
               "; no proof of a hang: left running for now, ended if they do nothing for %s%s",
               duration_format(confirm_span(w), idle), busy);
    return find(m, j, w, FINDING_HANG_UNPROVEN, l, until, ret);
}

/* T has passed. */
static bool overdue(const struct model *m, const struct job *j, const struct window *w,
                    struct finding_facts *ret)
{
    enum liveness l = liveness_of(m, j, confirm_span(w));
    bool twice = m->now >= w->base + 2 * w->timeout;

    if (l == LIVENESS_IDLE || l == LIVENESS_STOPPED || l == LIVENESS_BLOCKED)
        return find(m, j, w, FINDING_HANG, l, "", ret);
    if (j->attempt.suspicion == SUSPICION_RAISED)
        return find(m, j, w, FINDING_HANG_EXTENDED, l, "; waiting once more as long", ret);
    if (twice && l == LIVENESS_SPINNING && j->attempt.streaks.spinning >= spin_limit(m, j, w))
        return find(m, j, w, FINDING_HANG, l, "", ret);
    if (!twice || j->attempt.suspicion == SUSPICION_UNPROVEN)
        return false;
    return unproven(m, j, w, l, ret);
}

static bool is_watched(const struct model *m, const struct job *j)
{
    return j->state == JOB_RUNNING && policy_of(m, j)->hang.enabled && !j->attempt.hung &&
           !j->attempt.crashed && !j->attempt.exited && !j->attempt.gone &&
           !j->attempt.progressed && !j->attempt.unread && !sched_is_suspended(j);
}

usec_t hang_due(const struct model *m, const struct job *j)
{
    struct window w;

    if (!is_watched(m, j))
        return USEC_NEVER;
    w = hang_window(m, j);
    switch (j->attempt.suspicion) {
    case SUSPICION_NONE:
        return w.base + part(w.timeout, 6);
    case SUSPICION_RAISED:
        return w.base + w.timeout;
    case SUSPICION_EXTENDED:
        return w.base + 2 * w.timeout;
    case SUSPICION_UNPROVEN:
        break;
    }
    return USEC_NEVER;
}

bool detect_hang(const struct model *m, const struct job *j, struct finding_facts *ret)
{
    struct window w;

    if (!is_watched(m, j))
        return false;
    w = hang_window(m, j);
    if (j->attempt.suspicion == SUSPICION_NONE)
        return m->now >= w.base + part(w.timeout, 6) &&
               find(m, j, &w, FINDING_HANG_SUSPECTED, liveness_of(m, j, confirm_span(&w)), "", ret);
    return m->now >= w.base + w.timeout && overdue(m, j, &w, ret);
}
