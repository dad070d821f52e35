/* SPDX-License-Identifier: Apache-2.0 */

/* What a scheduler says changes the state here, and so does what it was asked for.
 *
 * An intent is only a wish: whether it was granted is seen by a later look, never taken from the
 * answer. After "done" and "unknown" alike a look is awaited, and what it does not show within a
 * while has not come about. A call that timed out may yet be carried out, much later, when another
 * that was made in its place has long been granted: so it is kept in mind for some minutes. Should
 * the job be cancelled and come back then, that was us, and it is cancelled again. */

#include "core/state/scheduled.h"

#include "core/state/observe.h"

#include "base/hostlist.h"
#include "base/str.h"

#include <assert.h>
#include <string.h>

/* A requeue that was granted shows at once, but for the time that it takes to look; one that was
 * answered with "done" and does not show has been lost. */
#define REQUEUE_PATIENCE (30 * USEC_PER_SEC)

/* How often one decision may be void because things changed meanwhile. */
#define VOIDS_MAX 5

/* Whole seconds, told by clocks that may differ by one. */
#define DOUBT_LASTS (5 * USEC_PER_MIN)

#define BEGIN_SLACK (2 * USEC_PER_SEC)

/* Amendments that lie further apart than that are not a row of them. */
#define HASTE_LASTS (5 * USEC_PER_MIN)

/* Readings of the state */

bool sched_is_let_go(const struct job *j)
{
    return j->scheduled && j->state == JOB_ENDED && j->sched.unwatched;
}

bool sched_is_suspended(const struct job *j)
{
    return j->scheduled && j->sched.look.state == SCHED_SUSPENDED;
}

bool sched_was_requeued(const struct job *j)
{
    return j->sched.look.state != SCHED_NONE && j->sched.look.state != SCHED_FORGOTTEN &&
           j->sched.look.restarts > j->sched.base_restarts;
}

bool sched_is_forbidden(const struct job *j)
{
    const struct look_facts *look = &j->sched.look;

    return j->scheduled && !j->sched.interactive && sched_has_ended(look->state) &&
           look->state != SCHED_FORGOTTEN && !look->requeueable;
}

bool sched_requires(const struct job *j, const char *node)
{
    return hostlist_has(j->sched.look.required, node);
}

bool sched_is_fenced(const struct job *j, const char *node)
{
    for (uint32_t i = 0; i < j->sched.n_fenced; i++)
        if (streq(j->sched.fenced[i], node))
            return true;
    return false;
}

/* Who approves a restart says that nothing is left. */
const char *sched_lost_node(const struct job *j)
{
    const char *node = j->sched.look.lost_node;

    return node[0] && !sched_is_fenced(j, node) && !j->sched.approved ? node : NULL;
}

usec_t sched_requeue_limit(const struct job *j)
{
    const struct sched *s = &j->sched;

    if (!j->scheduled || j->state != JOB_STARTING || !s->requeue_asked ||
        job_awaits(j, INTENT_REQUEUE) || s->requeue_answered_at == USEC_NEVER || s->look_due ||
        s->look.completing || sched_was_requeued(j))
        return USEC_NEVER;
    return s->requeue_answered_at + REQUEUE_PATIENCE;
}

bool sched_is_in_doubt(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return (s->requeue_to_come || s->doubts > 0) && s->look.state != SCHED_FORGOTTEN &&
           (s->look_due || job_awaits(j, INTENT_REQUEUE) || m->now < s->doubt_until);
}

bool sched_has_recovered(const struct job *j)
{
    const struct attempt *a = &j->attempt;
    const struct sched *s = &j->sched;

    return j->scheduled && j->state == JOB_DECIDED && (a->hung || a->crashed) && !a->exited &&
           !a->gone && !j->requested && !s->requeue_asked && s->cancels == 0 &&
           !sched_was_requeued(j) && a->last_progress > j->attempt.decided_at;
}

static bool is_arming(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return job_awaits(j, INTENT_ARM) || s->arm_granted ||
           (s->arm_doubts > 0 && m->now < s->arming_until);
}

bool sched_may_be_armed(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return (s->armed && s->disarms < WISH_TRIES) || is_arming(m, j);
}

/* Inputs */

void sched_seen(struct job *j, const struct job_facts *f)
{
    struct mode_words words = j->sched.words;
    enum mode mode = j->sched.mode;
    bool unwatched = j->sched.unwatched;

    j->scheduled = f->scheduled;
    j->sched = (struct sched){.interactive = f->interactive,
                              .words = words,
                              .mode = mode,
                              .unwatched = unwatched,
                              .pending_since = USEC_NEVER,
                              .fence_asked_at = USEC_NEVER,
                              .requeue_answered_at = USEC_NEVER};
    j->sched.over = f->over;
    j->sched.id = f->id;
    j->sched.uid = f->uid;
    STR_COPY(j->sched.label, f->label);
    STR_COPY(j->sched.user, f->user);
    STR_COPY(j->sched.name, f->name);
    STR_COPY(j->sched.account, f->account);
    STR_COPY(j->sched.qos, f->qos);
    STR_COPY(j->sched.partition, f->partition);
}

static void drop_expired(struct sched *s, usec_t now)
{
    for (uint32_t i = s->n_kept; i-- > 0;) {
        if (s->kept[i].until > now)
            continue;
        s->n_kept--;
        memmove(&s->kept[i], &s->kept[i + 1], (s->n_kept - i) * sizeof(s->kept[0]));
        memset(&s->kept[s->n_kept], 0, sizeof(s->kept[0]));
    }
}

/* Whoever heeds no amendment of one attempt will hardly heed those of the next: their row goes on
 * behind a decision, so that its pauses grow on. Only the first comes at once. */
static void forget_amendments(struct sched *s)
{
    s->amends = s->reverts = 0;
    s->tries = s->firsts = 0;
    s->hasty = s->unheeded ? s->hasty : 0;
    s->amended = false;
    s->asked_begin = s->given_begin = 0;
    s->amend_due = true;
}

static void forget_wishes(struct sched *s)
{
    s->requeue_asked = s->requeue_refused = s->not_while_completing = false;
    s->requeue_answered_at = USEC_NEVER;
    s->voids = s->cancels = s->holds = 0;
    s->in_force = s->nodes_refused = s->held_for_people = false;
    s->cancel_due = true;
    forget_amendments(s);
}

/* Who starts a job again that was cancelled wants it again; unless that was us, by mistake. */
static void renew_wish(struct job *j)
{
    if (j->sched.look.state == SCHED_CANCELLED || j->sched.unwanted)
        return;
    j->requested = false;
    j->request_signal = 0;
}

static void doubt_arming(struct sched *s, usec_t now)
{
    s->arm_doubts = now < s->arming_until ? s->arm_doubts + 1 : 1;
    s->arming_until = now + DOUBT_LASTS;
}

/* What was asked for was about the attempt before, or about this one while it waited. */
static void drop_pending(struct job *j, usec_t now)
{
    for (size_t i = j->pending.n; i-- > 0;) {
        const struct intent_facts *f = &j->pending.v[i].intended;

        if (f->intent == INTENT_ARM)
            doubt_arming(&j->sched, now);
        if (f->intent != INTENT_CANCEL || f->restarts + 1 != j->attempt.number)
            VEC_REMOVE(&j->pending, i);
    }
}

void sched_attempt_begun(struct model *m, struct job *j)
{
    struct sched *s = &j->sched;
    const struct look_facts *look = &s->look;

    drop_pending(j, m->now);
    renew_wish(j);
    s->let_go = s->resumed = false;
    s->base_restarts = j->attempt.number - 1;
    STR_COPY(s->ran_on, look->restarts == s->base_restarts ? look->nodes : "");
    s->node_lost = s->in_storm = false;
    s->n_fenced = 0;
    s->returned_at = 0;
    s->fence_asked_at = USEC_NEVER;
    s->guards = s->releases = s->reserves = s->yields = s->mends = 0;
    s->is_first = false;
    s->yield_due = s->mend_due = true;
    s->pending_since = USEC_NEVER;
    s->arms = s->disarms = 0;
    s->arm_due = s->disarm_due = true;
    s->approved = s->rejected = false;
    forget_wishes(s);
    drop_expired(s, m->now);
}

static bool is_kept_out(const struct look_facts *look, const char *node)
{
    for (uint32_t i = 0; i < look->n_kept_out; i++)
        if (streq(look->kept_out[i], node))
            return true;
    return false;
}

/* What was decided is done about it, or will be. */
static bool goes_on(const struct job *j)
{
    const struct sched *s = &j->sched;
    enum mode decided = j->attempt.decision.mode;
    bool acts = s->approved || (s->mode == MODE_ACT && decided == MODE_ACT);

    return (j->state == JOB_DECIDED || j->state == JOB_STARTING) && acts && !s->rejected &&
           !j->requested && action_restarts(j->attempt.decision.action);
}

bool sched_keeps_out(const struct model *m, const struct job *j, uint32_t k)
{
    const struct sched *s = &j->sched;
    const struct keep_out *n = &s->kept[k];
    bool judged = j->state == JOB_DECIDED || j->state == JOB_STARTING;
    bool over = j->state == JOB_ENDED || s->look.state == SCHED_FORGOTTEN ||
                (judged && sched_has_ended(s->look.state) && !goes_on(j));

    if (over || n->until <= m->now || sched_requires(j, n->node))
        return false;
    return (n->asked && is_kept_out(&s->look, n->node)) ||
           (goes_on(j) && !s->nodes_refused && !s->in_force && s->tries < NODES_TRIES);
}

uint32_t sched_kept_out(const struct model *m)
{
    uint32_t n = 0;

    VEC_FOREACH (&m->jobs, j)
        for (uint32_t k = 0; k < (*j)->sched.n_kept; k++)
            n += sched_keeps_out(m, *j, k);
    return n;
}

bool sched_lacks_exclusions(const struct job *j)
{
    const struct sched *s = &j->sched;

    for (uint32_t i = 0; !s->nodes_refused && i < s->n_kept; i++)
        if (!sched_requires(j, s->kept[i].node) && !is_kept_out(&s->look, s->kept[i].node))
            return true;
    return false;
}

static bool is_near(usec_t a, usec_t b)
{
    return a <= b + BEGIN_SLACK && b <= a + BEGIN_SLACK;
}

bool sched_begins_as_it_was(const struct job *j)
{
    const struct sched *s = &j->sched;

    return is_near(s->look.begin, s->asked_begin) || is_near(s->look.begin, s->given_begin);
}

bool sched_start_is_moved(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;

    return s->pending_since != USEC_NEVER && s->look.begin > m->now + BEGIN_SLACK &&
           s->asked_begin > s->own_begin + BEGIN_SLACK && is_near(s->look.begin, s->asked_begin);
}

/* Nobody knows how it has fared since its last look, but from the next one on. */
static void resume(struct sched *s)
{
    s->resumed = true;
    s->look_due = true;
}

void sched_mode(struct job *j, const struct mode_facts *f)
{
    struct sched *s = &j->sched;
    bool was_let_go = sched_is_let_go(j), off;
    enum mode before = s->mode;

    mode_hear(&s->words, f);
    s->mode = mode_in_force(&s->words);
    off = s->mode == MODE_OFF;
    if (s->mode != before)
        s->arms = s->disarms = 0;
    s->undoes = s->unwatched && off ? s->undoes : 0;
    s->yields = s->unwatched && off ? s->yields : 0;
    s->unwatched = off;
    s->resumed &= !off;
    if (was_let_go && !off)
        resume(s);
}

static void note_attempt(struct sched *s, const struct look_facts *look)
{
    if (look->restarts != s->base_restarts || look->state == SCHED_FORGOTTEN)
        return;
    if (look->nodes[0] != '\0')
        STR_COPY(s->ran_on, look->nodes);
    s->node_lost |= look->state == SCHED_NODE_FAIL;
}

/* A requeue shows as more restarts: rather the one that was granted than one that was lost. */
static void settle_doubt(struct model *m, struct job *j, uint32_t restarts_before)
{
    struct sched *s = &j->sched;
    bool doubted = sched_is_in_doubt(m, j);

    if (s->look_due)
        s->doubt_until = m->now + DOUBT_LASTS;
    s->unwanted = sched_lives(s->look.state) && j->requested && (s->unwanted || doubted);
    for (uint32_t n = restarts_before; n < s->look.restarts; n++) {
        if (!s->requeue_to_come && s->doubts > 0)
            s->doubts--;
        s->requeue_to_come = false;
    }
    if (!doubted && !s->look_due) {
        s->requeue_to_come = false;
        s->doubts = 0;
    }
}

/* What was answered before this look and does not show in it may be asked for again. */
static void see_what_is_due(struct job *j)
{
    struct sched *s = &j->sched;

    s->look_due = false;
    s->amend_due |= !job_awaits(j, INTENT_AMEND);
    s->cancel_due |= !job_awaits(j, INTENT_CANCEL);
    s->arm_due |= !job_awaits(j, INTENT_ARM);
    s->disarm_due |= !job_awaits(j, INTENT_DISARM);
    s->yield_due |= !job_awaits(j, INTENT_YIELD);
    s->mend_due |= !job_awaits(j, INTENT_MEND);
}

/* before: the number of restarts in the look before. */
static void see_whether_heeded(struct job *j, uint32_t before)
{
    struct sched *s = &j->sched;

    if (s->amended && s->look.restarts == before && is_near(s->look.begin, s->asked_begin) &&
        !sched_lacks_exclusions(j))
        s->unheeded = false;
}

/* forbidden: it was not requeueable, as the look before showed. */
static void see_whether_armed(const struct model *m, struct job *j, bool forbidden)
{
    struct sched *s = &j->sched;

    if (!s->look.requeueable) {
        s->armed = false;
    } else if (forbidden && is_arming(m, j)) {
        s->armed = true;
        s->disarms = 0;
        s->arm_doubts -= !s->arm_granted && !job_awaits(j, INTENT_ARM);
    }
    s->arm_granted = false;
    if (s->look.state == SCHED_FORGOTTEN) { /* who comes now is another */
        s->armed = false;
        s->arm_doubts = 0;
    }
}

static void see_it_wait(struct sched *s, usec_t now)
{
    s->pending_since = now;
    s->asked_begin = s->given_begin = s->own_begin = s->look.begin;
}

static void fence(struct job *j, const char *node)
{
    struct sched *s = &j->sched;

    if (!sched_is_fenced(j, node) && s->n_fenced < FENCED_MAX)
        STR_COPY(s->fenced[s->n_fenced++], node);
}

/* A node that answers again does what its scheduler says, and soon has ended what it was told to
 * end (plan/lost.c); the job that runs on, it was told nothing about. */
static void note_return(struct job *j, const struct look_facts *look, usec_t now)
{
    const char *before = j->sched.look.lost_node;

    if (before[0] == '\0' || look->lost_node[0] != '\0' || look->state == SCHED_RUNNING)
        return;
    if (!sched_is_fenced(j, before))
        j->sched.returned_at = now;
    fence(j, before);
}

bool sched_fenced(struct job *j, const struct fence_facts *f)
{
    if (!j->scheduled || !streq(f->node, j->sched.look.lost_node))
        return false;
    fence(j, f->node);
    if (sched_is_fenced(j, f->node)) /* there was room for it */
        j->sched.fence_asked_at = USEC_NEVER;
    j->sched.look_due = true; /* another may be lost, too: first see */
    j->sched.amend_due = false;
    return true;
}

/* By a call that came late, or by a reknitd whose journal is lost. It lasts as long as its note
 * says; without that it would be taken back at once, and a second copy could start. */
static void find_guard(struct sched *s, const struct look_facts *look, usec_t now)
{
    s->guarded = true;
    s->guarded_at = now;
    if (look->noted_until > 0 && look->noted_until < now + GUARD_LIFE)
        s->guarded_at = look->noted_until > GUARD_LIFE ? look->noted_until - GUARD_LIFE : 0;
}

/* Once one has begun nothing may show any more that it is one: so who is not named stays, and who
 * is named until he was withdrawn. */
static void see_successors(struct sched *s, const struct look_facts *look)
{
    s->succeeded = look->successor || (s->succeeded && s->look.n_successors == 0);
}

bool sched_look(struct model *m, struct job *j, const struct look_facts *look)
{
    struct sched *s = &j->sched;
    bool forbidden, suspended = sched_is_suspended(j);
    uint32_t before;

    if (!j->scheduled)
        return false;
    before = s->look.restarts;
    forbidden = s->look.state != SCHED_NONE && !s->look.requeueable;
    note_return(j, look, m->now);
    see_successors(s, look);
    s->look = *look;
    if (suspended && look->state == SCHED_RUNNING)
        attempt_counts_anew(&j->attempt, m->now);
    if (look->label[0])
        STR_COPY(s->label, look->label);
    if (look->partition[0])
        STR_COPY(s->partition, look->partition);
    s->over &= !sched_lives(look->state);
    s->resumed &= look->state != SCHED_PENDING; /* what it is going to do is seen */
    if (!look->held && !look->completing && !sched_has_ended(look->state))
        s->guarded &= job_awaits(j, INTENT_GUARD); /* somebody else has released it */
    if (look->held && look->noted && !s->guarded)
        find_guard(s, look, m->now);
    note_attempt(s, look);
    settle_doubt(m, j, before);
    see_what_is_due(j);
    see_whether_heeded(j, before);
    see_whether_armed(m, j, forbidden);
    if (look->state != SCHED_PENDING || !sched_was_requeued(j) || look->completing)
        s->pending_since = USEC_NEVER;
    else if (s->pending_since == USEC_NEVER || look->restarts != before)
        see_it_wait(s, m->now);
    s->in_force |= s->pending_since != USEC_NEVER && s->amends > 0 && !sched_lacks_exclusions(j);
    return true;
}

static void note_failed_start(struct job *j, const char *detail)
{
    STR_COPY(j->start_detail, detail);
    j->start_failed = true;
    j->start_unknown = false;
    j->starts_failed++;
}

/* The next requeue counts from there on. */
bool sched_launch_failed(struct job *j, const struct event *e)
{
    if (!j->scheduled || e->attempt <= j->attempt.number ||
        e->attempt - 1 <= j->sched.base_restarts ||
        (j->state != JOB_STARTING && j->state != JOB_DECIDED))
        return false;
    note_failed_start(j, e->result.detail);
    j->sched.base_restarts = e->attempt - 1;
    j->sched.pending_since = USEC_NEVER;
    return true;
}

/* Derived events */

/* Also those that failed in it before it was known to be one. */
static void join_storm(struct model *m)
{
    VEC_FOREACH (&m->jobs, j) {
        usec_t at = (*j)->attempt.interrupted_at;

        if (at != USEC_NEVER && at + m->brakes.storm_window > m->now)
            (*j)->sched.in_storm = true;
    }
}

void sched_interrupted(struct model *m, struct job *j)
{
    if (!j->scheduled)
        return;
    model_add_deed(m, DEED_INTERRUPTED, j->sched.partition);
    if (model_storm_until(m) > m->now)
        join_storm(m);
}

static void count_exclusion(struct model *m, struct keep_out *k)
{
    if (!k->counted)
        model_add_deed(m, DEED_EXCLUDED, k->node);
    k->counted = true;
}

/* will_be: nobody has to be asked first. Otherwise it is no deed before somebody has approved. */
static void keep_out(struct model *m, struct sched *s, const char *node, bool will_be)
{
    struct keep_out *k = NULL;

    for (uint32_t i = 0; i < s->n_kept; i++)
        if (streq(s->kept[i].node, node))
            k = &s->kept[i];
    if (!k) {
        if (s->n_kept == KEPT_OUT_MAX)
            return;
        k = &s->kept[s->n_kept++];
        *k = (struct keep_out){.until = m->now + m->brakes.exclusion_life};
        STR_COPY(k->node, node);
    }
    if (will_be)
        count_exclusion(m, k);
}

static void note_asked(struct model *m, struct sched *s, const struct intent_facts *f)
{
    for (uint32_t i = 0; i < f->n_nodes; i++)
        for (uint32_t k = 0; k < s->n_kept; k++)
            if (streq(s->kept[k].node, f->nodes[i])) {
                s->kept[k].asked = true;
                count_exclusion(m, &s->kept[k]);
            }
}

/* before: the state in which it was made. Who approved a restart that then did not come about need
 * not do so again, nor who rejected it. */
void sched_decided(struct model *m, struct job *j, const struct event *e, enum job_state before)
{
    struct sched *s = &j->sched;
    bool overdue = before == JOB_STARTING && !j->start_failed && m->now >= sched_requeue_limit(j);

    if (!j->scheduled)
        return;
    if (overdue) {
        j->starts_failed++;
        s->doubts += s->requeue_to_come; /* granted, and lost */
        s->requeue_to_come = false;
    }
    s->decision = e->seq;
    s->of_verdict = before == JOB_JUDGED;
    s->approved = s->approved && !s->of_verdict;
    s->requeued_by_us = s->requeued_by_us && !s->of_verdict;
    s->mends = s->of_verdict ? 0 : s->mends;
    s->rejected = s->rejected && !s->of_verdict;
    forget_wishes(s);
    s->requeue_refused = j->start_refused;
    j->start_refused = j->start_final = false;
    drop_expired(s, m->now);
    for (uint32_t i = 0; i < e->decision.n_nodes && i < KEPT_OUT_MAX; i++)
        keep_out(m, s, e->decision.nodes[i], s->mode == MODE_ACT && e->decision.mode == MODE_ACT);
}

static void note_amendment(struct model *m, struct job *j, const struct intent_facts *f)
{
    struct sched *s = &j->sched;
    bool in_a_row = (s->amended || s->unheeded) && m->now < s->amended_at + HASTE_LASTS;
    bool reverts = s->look.constrained && f->n_nodes == 0;

    if (s->unwatched)
        s->undoes++;
    else if (reverts)
        s->reverts++;
    else
        s->amends += s->look.lost_node[0] == '\0'; /* moving a start away is no failed try */
    s->nodes_refused |= reverts;
    s->tries += f->n_nodes > 0 && sched_lacks_exclusions(j);
    s->firsts += f->first;
    s->hasty = in_a_row ? s->hasty + 1 : 0;
    note_asked(m, s, f);
    s->amend_due = false;
    s->amended = s->unheeded = true;
    s->amended_at = m->now;
    if (s->unwatched) /* what it was moved to is to be known as long as it is there */
        return;
    s->given_begin = s->look.begin;
    s->asked_begin = f->not_before;
}

static void note_acted(struct model *m, const struct sched *s)
{
    model_add_deed(m, DEED_ACTED, s->partition);
    model_add_deed(m, DEED_ACTED_FOR, s->user);
}

bool sched_intent(struct model *m, struct job *j, const struct event *e)
{
    struct sched *s = &j->sched;

    if (!j->scheduled)
        return false;
    switch (e->intended.intent) {
    case INTENT_REQUEUE:
        s->requeue_asked = true;
        s->requeue_answered_at = USEC_NEVER;
        s->requeue_to_come = s->requeued_by_us = true;
        note_acted(m, s);
        return true;
    case INTENT_HOLD:
        s->holds++;
        note_acted(m, s);
        return true;
    case INTENT_AMEND:
        note_amendment(m, j, &e->intended);
        return true;
    case INTENT_CANCEL:
        s->cancels++;
        s->cancel_due = false;
        note_acted(m, s);
        return true;
    case INTENT_ARM:
        s->arms++;
        s->arm_due = false;
        return true;
    case INTENT_DISARM:
        s->disarms++;
        s->disarm_due = false;
        return true;
    case INTENT_FENCE:
        s->fence_asked_at = m->now;
        return true;
    case INTENT_GUARD:
        s->guarded = true;
        s->guarded_at = m->now;
        s->guards += !s->look.held; /* otherwise it is lengthened */
        s->releases = s->look.held ? s->releases : 0;
        return true;
    case INTENT_RELEASE:
        s->releases++;
        s->released_at = m->now;
        return true;
    default:
        return sched_place_asked(s, &e->intended, m->now);
    }
}

/* Nothing was done, and nothing will be. */
static void requeue_not_done(struct job *j, const struct result_facts *r, bool of_this_decision)
{
    struct sched *s = &j->sched;
    bool is_void = r->outcome == OUTCOME_VOID && s->voids < VOIDS_MAX;

    if (!of_this_decision || sched_was_requeued(j))
        return;
    if (is_void || (s->look.completing && !s->not_while_completing)) {
        s->voids += is_void;
        s->not_while_completing |= !is_void;
        s->requeue_asked = false;
        return;
    }
    note_failed_start(j, r->detail);
    j->start_refused = true;
    j->start_final = r->final;
}

/* Who was answered "changed" was overtaken by somebody who wants the same. */
static void note_arming(struct sched *s, enum outcome outcome, usec_t now)
{
    bool seen = s->armed; /* by a look meanwhile */

    if (outcome == OUTCOME_DONE)
        s->arm_granted = !seen;
    else if (outcome != OUTCOME_UNKNOWN)
        s->armed &= s->arm_doubts > 0 && now < s->arming_until;
    else if (!seen)
        doubt_arming(s, now);
}

void sched_result(struct model *m, struct job *j, const struct event *intent,
                  const struct result_facts *r)
{
    struct sched *s = &j->sched;
    bool of_this_decision = intent->seq > s->decision;
    bool not_done = r->outcome == OUTCOME_FAILED || r->outcome == OUTCOME_VOID;

    switch (intent->intended.intent) {
    case INTENT_REQUEUE:
        if (of_this_decision)
            s->requeue_answered_at = m->now;
        /* unless a look has shown it meanwhile */
        s->doubts += r->outcome == OUTCOME_UNKNOWN && (s->requeue_to_come || !of_this_decision);
        s->requeue_to_come &= r->outcome == OUTCOME_DONE;
        if (not_done)
            requeue_not_done(j, r, of_this_decision);
        break;
    case INTENT_HOLD:
        s->held_for_people |= r->outcome == OUTCOME_DONE && of_this_decision;
        break;
    case INTENT_AMEND: /* the first time it may have been something else than the nodes */
        sched_place_answered(s, &intent->intended, r);
        s->nodes_refused |= r->outcome == OUTCOME_FAILED && intent->intended.n_nodes > 0 &&
                            of_this_decision && s->tries > 1;
        break;
    case INTENT_ARM:
        note_arming(s, r->outcome, m->now);
        break;
    case INTENT_CANCEL:
    case INTENT_DISARM:
    case INTENT_GUARD:
    case INTENT_MEND:
        break;
    case INTENT_RELEASE:
        s->guards = r->outcome == OUTCOME_DONE ? 0 : s->guards;
        break;
    case INTENT_RESERVE:
    case INTENT_UNRESERVE:
    case INTENT_YIELD:
        sched_place_answered(s, &intent->intended, r);
        break;
    default:
        return;
    }
    s->look_due = true;
}
