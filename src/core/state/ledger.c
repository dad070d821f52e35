/* SPDX-License-Identifier: Apache-2.0 */

/* Keeping the books. Written by the model alone, when a verdict or a decision is folded in; read
 * by policy. */

#include "core/state/ledger.h"

#include "base/hash.h"
#include "base/str.h"

#include <assert.h>
#include <string.h>

void ledger_init(struct ledger *l)
{
    memset(l, 0, sizeof(*l));
    l->stalled_since = USEC_NEVER;
    l->best_step = l->best_checkpoint = STEP_NONE;
    l->failed_step = STEP_NONE;
}

bool cause_is_free(enum cause cause)
{
    return cause == CAUSE_TIME_LIMIT || cause == CAUSE_PREEMPTION;
}

static int64_t further(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t ledger_kept(const struct ledger *l, int64_t loaded)
{
    return l->checkpoints_known ? further(l->best_checkpoint, loaded) : l->best_step;
}

static enum advance judge_advance(const struct ledger *l, const struct incident *i,
                                  const struct attempt_account *a)
{
    bool lived = i->class != CLASS_HANG && a->ended - a->began > a->startup;

    if (l->checkpoints_known)
        return a->checkpoint_step > l->best_checkpoint ? ADVANCE_YES : ADVANCE_NO;
    if (a->steps_seen > 0) {
        if (a->numbers_reset || a->highest_step == STEP_NONE)
            return ADVANCE_UNKNOWN;
        return a->highest_step > l->best_step ? ADVANCE_YES : ADVANCE_NO;
    }
    /* A program whose steps nobody can read: whoever lives longer than starting up takes did
     * something, unless it hung. */
    return !l->steps_known && lived ? ADVANCE_UNKNOWN : ADVANCE_NO;
}

static struct failure *find_failure(struct ledger *l, const char *fingerprint)
{
    struct failure *oldest = &l->failures[0];

    for (uint32_t i = 0; i < l->n_failures; i++) {
        if (streq(l->failures[i].fingerprint, fingerprint))
            return &l->failures[i];
        if (l->failures[i].order < oldest->order)
            oldest = &l->failures[i];
    }
    if (l->n_failures < FAILURES_MAX)
        oldest = &l->failures[l->n_failures++];
    memset(oldest, 0, sizeof(*oldest));
    STR_COPY(oldest->fingerprint, fingerprint);
    return oldest;
}

static void refill(struct ledger *l)
{
    for (uint32_t i = 0; i < l->n_failures; i++)
        l->failures[i].count = 0;
    l->without_progress = l->without_step = l->unexplained = l->in_a_row = 0;
    l->stalled_since = USEC_NEVER;
    l->last_culprit = 0;
}

static uint64_t hash_culprit(const struct incident *i)
{
    const struct culprits *c = &i->culprits;
    uint64_t h = HASH_INIT;

    if (cause_domain(i->cause) != DOMAIN_INFRASTRUCTURE || c->n_nodes + c->n_devices == 0)
        return 0;
    for (uint32_t n = 0; n < c->n_nodes; n++)
        h = hash_bytes(h, c->nodes[n], strlen(c->nodes[n]) + 1);
    for (uint32_t n = 0; n < c->n_devices; n++)
        h = hash_bytes(h, c->devices[n], strlen(c->devices[n]) + 1);
    return h ? h : 1;
}

/* Different hardware proven guilty each time is bad luck, not a job that cannot start. */
static void count_step(struct ledger *l, const struct incident *i, const struct attempt_account *a)
{
    uint64_t culprit = hash_culprit(i);

    if (a->steps_seen > 0) {
        l->without_step = 0;
        l->last_culprit = 0;
        return;
    }
    if (culprit == 0 || culprit == l->last_culprit)
        l->without_step++;
    l->last_culprit = culprit;
}

static void count_failure(struct ledger *l, const struct policy *p, const struct incident *i,
                          const struct attempt_account *a)
{
    struct failure *f = find_failure(l, i->fingerprint);
    int64_t step = a->last_step;

    if (l->stalled_since == USEC_NEVER)
        l->stalled_since = a->ended;
    l->patient = a->ended - l->stalled_since < p->cause[i->cause].patience;
    f->order = l->judged;
    l->in_a_row++;
    l->same_step = f->count > 0 && step != STEP_NONE && step == l->failed_step;
    l->failed_step = step;
    if (l->advance != ADVANCE_UNKNOWN && !l->patient) {
        f->count++;
        l->without_progress += l->advance == ADVANCE_NO;
        count_step(l, i, a);
    }
    l->unexplained += i->cause == CAUSE_UNKNOWN;
    l->same = f->count;
}

/* What is kept is what a checkpoint holds, or, in a job that shows none, all that is new. */
static void add_span(struct ledger *l, const struct incident *i, const struct attempt_account *a)
{
    usec_t until = l->checkpoints_known ? a->saved_at : a->new_until;
    usec_t from = a->new_from != USEC_NEVER ? a->new_from : a->began;
    bool any = until != USEC_NEVER && until > from;

    l->spans.v[l->spans.next] = (struct span){
        .began = a->began,
        .ended = a->ended,
        .devices = a->devices,
        .kept_from = any ? from : a->began,
        .kept_until = any ? until : a->began,
        .counted = i->class != CLASS_HEALTHY && !cause_is_free(i->cause) && !l->patient &&
                   l->advance != ADVANCE_UNKNOWN,
    };
    l->spans.next = (l->spans.next + 1) % SPANS_MAX;
    if (l->spans.n < SPANS_MAX)
        l->spans.n++;
}

static usec_t overlap(usec_t from, usec_t until, usec_t since)
{
    from = from > since ? from : since;
    return until > from ? until - from : 0;
}

struct waste ledger_waste(const struct ledger *l, usec_t now)
{
    struct waste w = {0};
    usec_t since = now - USEC_PER_DAY;

    for (uint32_t i = 0; i < l->spans.n; i++) {
        const struct span *s = &l->spans.v[i];
        usec_t ran = overlap(s->began, s->ended, since);
        usec_t lost = s->counted ? ran - overlap(s->kept_from, s->kept_until, since) : 0;

        w.ran += ran;
        w.lost += lost;
        w.devices_ran += ran * s->devices;
        w.devices_lost += lost * s->devices;
    }
    return w;
}

void ledger_judge(struct ledger *l, const struct policy *p, const struct incident *i,
                  const struct attempt_account *a)
{
    l->judged++;
    l->steps_known |= a->steps_seen > 0;
    l->checkpoints_known |= a->checkpoint_step != STEP_NONE;
    l->best_checkpoint = further(l->best_checkpoint, a->loaded_step);
    l->advance = judge_advance(l, i, a);
    l->best_step = further(l->best_step, a->highest_step);
    l->best_checkpoint = further(l->best_checkpoint, a->checkpoint_step);
    l->same = 0;
    l->patient = l->same_step = false;
    if (l->advance == ADVANCE_YES)
        refill(l);
    if (i->class != CLASS_HEALTHY && !cause_is_free(i->cause))
        count_failure(l, p, i, a);
    add_span(l, i, a);
}

uint32_t ledger_recent(const struct recent *r, usec_t now)
{
    uint32_t n = 0;

    while (n < r->n && r->at[r->n - 1 - n] > now - USEC_PER_DAY)
        n++;
    return n;
}

static void recent_add(struct recent *r, usec_t now)
{
    if (r->n == RECENT_MAX) {
        memmove(&r->at[0], &r->at[1], (RECENT_MAX - 1) * sizeof(r->at[0]));
        r->n--;
    }
    r->at[r->n++] = now;
}

void ledger_restart(struct ledger *l, const struct incident *i, usec_t now)
{
    if (cause_is_free(i->cause)) {
        recent_add(&l->free, now);
        return;
    }
    l->restarts++;
    recent_add(&l->paid, now);
    if (l->advance == ADVANCE_NO)
        recent_add(&l->futile, now);
}
