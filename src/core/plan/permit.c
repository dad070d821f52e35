/* SPDX-License-Identifier: Apache-2.0 */

/* Between an intent and what is done about it, people may say something else: while the scheduler
 * cannot be asked, after a restart before the first look, and in one edit of the configuration. So
 * before it is carried out, what it was made by is asked for again; no more, for whether the job is
 * still as it was, the scheduler itself compares.
 *
 * What only takes back what is Reknit's own is allowed in every mode. But an amendment looks the
 * same whether it does that or moves a start forward: what matters is what it would do now. While
 * all is frozen, nothing is done but to give nodes back, and to keep a hold from running out. */

#include "core/plan/permit.h"

#include "core/plan/scheduled.h"

#include "base/str.h"

static bool may_act(const struct model *m, const struct job *j)
{
    return plan_sched_may_act(m, j, NULL, 0);
}

/* Asked for before there was a decision, too, in mode act. */
static bool is_cared_for(const struct model *m, const struct job *j)
{
    return !m->frozen && plan_sched_cares(m, j);
}

static bool is_lost(const struct job *j, const struct intent_facts *f)
{
    const char *node = sched_lost_node(j);

    return node && f->n_nodes > 0 && streq(node, f->nodes[0]);
}

/* With our nodes it cannot run at all; or it is let go, and starts no sooner than the scheduler has
 * said, or would have. */
static bool takes_back(const struct job *j, const struct intent_facts *f)
{
    const struct sched *s = &j->sched;

    if (f->n_nodes > 0 || f->first)
        return false;
    if (s->unwatched)
        return f->not_before >= usec_min(s->own_begin, s->look.begin);
    return s->look.constrained && s->look.n_kept_out > 0;
}

bool plan_sched_permits(const struct model *m, const struct job *j, const struct intent_facts *f)
{
    const struct sched *s = &j->sched;

    switch (f->intent) {
    case INTENT_REQUEUE:
    case INTENT_HOLD:
        return may_act(m, j);
    case INTENT_FENCE: /* the others are compared by the scheduler, this one by nobody */
        return may_act(m, j) && is_lost(j, f);
    case INTENT_AMEND:
        return may_act(m, j) || (takes_back(j, f) && !m->frozen);
    case INTENT_CANCEL:
        return s->unwanted ? !m->frozen : may_act(m, j);
    case INTENT_RESERVE:
    case INTENT_ARM:
        return is_cared_for(m, j);
    case INTENT_DISARM:
        return s->armed && !m->frozen && !plan_sched_cares(m, j);
    case INTENT_GUARD:
        return s->mode == MODE_ACT && (!m->frozen || s->look.held);
    case INTENT_MEND:
        return s->mode > MODE_OBSERVE && !m->frozen;
    case INTENT_RELEASE:
    case INTENT_YIELD:
        return !m->frozen;
    default:
        return true;
    }
}
