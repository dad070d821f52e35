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
 *                has a rhythm that it fell out of; else unproven: people are told, nothing is
 * killed
 *
 * What proves a hang may also come later; then it is one at once. Without samples of the processes
 * nothing is ever killed: silence of a collector is no evidence about a job. */

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

/* T of one rhythm: max(kappa * q99, q50 + 10 * 1.4826 * MAD, 1.5 * longest), not yet clamped. */
static usec_t rhythm_timeout(const struct hang_policy *p, const struct rhythm *r)
{
    usec_t t = longest_of(r->q99 * p->factor, r->median + r->mad * 14826 / 1000);

    return rhythm_known(r) ? longest_of(t, r->longest + r->longest / 2) : 0;
}

static usec_t steady_timeout(const struct hang_policy *p, const struct timing *t)
{
    usec_t timeout = longest_of(rhythm_timeout(p, &t->present), rhythm_timeout(p, &t->learned));

    timeout = longest_of(timeout, p->timeout_min);
    return timeout < p->timeout_max ? timeout : p->timeout_max;
}

usec_t phase_allowance(const struct model *m, const struct job *j, enum phase phase)
{
    const struct hang_policy *p = &m->policy.hang;
    usec_t learned = phase >= 0 && phase < PHASE_MAX ? 5 * j->timing.phase[phase] : 0;

    switch (phase) {
    case PHASE_CHECKPOINT:
        return longest_of(p->checkpoint, learned);
    case PHASE_EVALUATION:
        return longest_of(p->evaluation, learned);
    case PHASE_COMPILATION:
        return longest_of(p->compilation, learned);
    case PHASE_STARTUP:
    case PHASE_LOADING:
        return longest_of(p->first_step, learned);
    case PHASE_SHUTDOWN:
        return longest_of(p->shutdown, learned);
    case PHASE_STEADY:
    case PHASE_MAX:
    case PHASE_INVALID:
        break;
    }
    return 0;
}

static struct window before_first_step(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;
    /* A job that was never seen to step may print what nobody can read; then any line is life. */
    bool readable = j->timing.first_step > 0;

    return (struct window){.base = readable ? a->started : a->last_output,
                           .timeout = startup_allowance(m, j),
                           .phase = PHASE_STARTUP};
}

static struct window between_steps(const struct model *m, const struct job *j)
{
    bool known = best_rhythm(j) != NULL;

    return (struct window){.base = j->attempt.last_progress,
                           .timeout = known ? steady_timeout(&m->policy.hang, &j->timing)
                                            : startup_allowance(m, j),
                           .phase = PHASE_STEADY};
}

static struct window base_window(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;

    if (a->finished_at != USEC_NEVER)
        return (struct window){.base = longest_of(a->finished_at, a->last_progress),
                               .timeout = phase_allowance(m, j, PHASE_SHUTDOWN),
                               .phase = PHASE_SHUTDOWN};
    return a->steps_seen == 0 ? before_first_step(m, j) : between_steps(m, j);
}

struct window hang_window(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;
    struct window w = base_window(m, j);

    for (int p = 0; p < PHASE_MAX; p++) {
        struct window open = {.base = a->phase_began[p], .phase = (enum phase)p};

        if (open.base == USEC_NEVER)
            continue;
        open.timeout = phase_allowance(m, j, open.phase);
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

static bool find(const struct model *m, const struct job *j, const struct window *w,
                 enum finding finding, enum liveness l, const char *consequence,
                 struct finding_facts *ret)
{
    char silent[DURATION_TEXT_MAX], allowed[DURATION_TEXT_MAX], life[128];

    *ret = (struct finding_facts){.finding = finding,
                                  .timeout = w->timeout,
                                  .silent = m->now - j->attempt.last_progress,
                                  .phase = w->phase};
    liveness_text(j, l, life, sizeof(life));
    STR_PRINTF(ret->why, "%s %s (%s allowed); %s%s", phase_words(w->phase),
               duration_format(m->now - w->base, silent), duration_format(w->timeout, allowed),
               life, consequence);
    return true;
}

/* CPU time without I/O or output is the weakest sign: an evaluation that logs nothing looks alike.
 * So it must last, and only counts in a job that is known to step. */
static bool spun_too_long(const struct model *m, const struct job *j, const struct window *w)
{
    usec_t spun = j->attempt.streaks.spinning;
    bool fell_out = best_rhythm(j) || w->phase == PHASE_SHUTDOWN;

    return fell_out && spun >= w->timeout && spun >= SPIN_FACTOR * m->policy.hang.timeout_min;
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
    if (twice && l == LIVENESS_SPINNING && spun_too_long(m, j, w))
        return find(m, j, w, FINDING_HANG, l, "", ret);
    if (!twice || j->attempt.suspicion == SUSPICION_UNPROVEN)
        return false;
    return find(m, j, w, FINDING_HANG_UNPROVEN, l,
                "; that is no proof of a hang, so it is left running", ret);
}

static bool is_watched(const struct model *m, const struct job *j)
{
    return j->state == JOB_RUNNING && m->policy.hang.enabled && !j->attempt.hung &&
           !j->attempt.crashed && !j->attempt.exited && !j->attempt.gone && !j->attempt.progressed;
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
