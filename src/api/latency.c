/* SPDX-License-Identifier: Apache-2.0 */
#include "api/latency.h"

#include "base/str.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

#define TRACKS_MAX 8192
#define ASKED_MAX  4                   /* intents of one job that wait for their result */
#define SKEW_MAX   (10 * USEC_PER_MIN) /* a node's clock that says otherwise is not believed */

const usec_t latency_bounds[LATENCY_BUCKETS] = {
    10 * USEC_PER_MSEC,  50 * USEC_PER_MSEC, 100 * USEC_PER_MSEC, 250 * USEC_PER_MSEC,
    500 * USEC_PER_MSEC, 1 * USEC_PER_SEC,   2 * USEC_PER_SEC,    5 * USEC_PER_SEC,
    10 * USEC_PER_SEC,   30 * USEC_PER_SEC,  120 * USEC_PER_SEC,  600 * USEC_PER_SEC,
    3600 * USEC_PER_SEC,
};

struct asked {
    uint64_t seq; /* 0 = a free place */
    usec_t at;
};

struct track {
    char job[JOB_NAME_LEN];
    usec_t died, interrupted, judged, decided; /* 0 = not, or measured already */
    struct asked asked[ASKED_MAX];
    uint64_t requeue; /* the intent that a requeue is asked for with */
};

void latency_done(struct latency *l)
{
    VEC_DONE(&l->tracks);
}

static void measure(struct latency *l, enum leg leg, usec_t from, usec_t to)
{
    struct histogram *h = &l->leg[leg];
    usec_t took = to > from ? to - from : 0;
    size_t i = 0;

    if (from == 0)
        return;
    while (i < LATENCY_BUCKETS && took > latency_bounds[i])
        i++;
    h->in[i]++;
    h->n++;
    h->sum += took;
}

static size_t position(const struct latency *l, const char *job)
{
    return VEC_BISECT(&l->tracks, t, strcmp(t->job, job) < 0);
}

/* NULL: nothing is measured of it, and shall not be. */
static struct track *track_of(struct latency *l, const char *job, bool make)
{
    size_t i = position(l, job);
    struct track *t;

    if (i < l->tracks.n && streq(l->tracks.v[i].job, job))
        return &l->tracks.v[i];
    if (!make || l->tracks.n == TRACKS_MAX)
        return NULL;
    t = VEC_INSERT(&l->tracks, i);
    STR_COPY(t->job, job);
    return t;
}

static void forget(struct latency *l, const char *job)
{
    size_t i = position(l, job);

    if (i < l->tracks.n && streq(l->tracks.v[i].job, job))
        VEC_REMOVE(&l->tracks, i);
}

/* What a witness saw of a death before core knew; its clock counts while it can be right. */
static void note_death(struct latency *l, const struct event *e, usec_t at)
{
    struct track *t = track_of(l, e->job, true);

    if (!t || t->interrupted != 0)
        return;
    if (at <= 0 || at > e->time_us || e->time_us - at > SKEW_MAX)
        at = e->time_us;
    if (t->died == 0 || at < t->died)
        t->died = at;
}

static bool tells_death(const struct event *e)
{
    return e->signal.kind == SIGNAL_EXIT && provenance_is_privileged(e->signal.provenance) &&
           (e->signal.exit.code != 0 || e->signal.exit.signal != 0);
}

static void note_interrupted(struct latency *l, const struct event *e)
{
    struct track *t = track_of(l, e->job, true);

    if (!t)
        return;
    measure(l, LEG_DETECTION, t->died, e->time_us);
    t->died = 0;
    t->interrupted = e->time_us;
    t->judged = t->decided = 0;
}

static void note_verdict(struct latency *l, const struct event *e)
{
    struct track *t = track_of(l, e->job, false);

    if (!t || t->judged != 0)
        return;
    measure(l, LEG_VERDICT, t->interrupted, e->time_us);
    t->judged = e->time_us;
}

static void note_decision(struct latency *l, const struct event *e)
{
    struct track *t = track_of(l, e->job, false);

    if (!t || t->decided != 0)
        return;
    measure(l, LEG_DECISION, t->judged, e->time_us);
    t->decided = e->time_us;
}

static void note_intent(struct latency *l, const struct event *e)
{
    struct track *t = track_of(l, e->job, true);
    size_t oldest = 0;

    for (size_t i = 0; t && i < ASKED_MAX; i++)
        if (t->asked[i].seq < t->asked[oldest].seq)
            oldest = i;
    if (!t)
        return;
    t->asked[oldest] = (struct asked){.seq = e->seq, .at = e->time_us};
    if (e->intended.intent == INTENT_REQUEUE)
        t->requeue = e->seq;
}

static void note_result(struct latency *l, const struct event *e)
{
    struct track *t = track_of(l, e->job, false);

    for (size_t i = 0; t && e->result.intent > 0 && i < ASKED_MAX; i++)
        if (t->asked[i].seq == e->result.intent) {
            measure(l, LEG_SCHEDULER, t->asked[i].at, e->time_us);
            t->asked[i].seq = 0;
        }
    if (!t || t->requeue == 0 || t->requeue != e->result.intent ||
        e->result.outcome != OUTCOME_DONE)
        return;
    measure(l, LEG_ACTION, t->decided, e->time_us);
    t->requeue = 0;
}

static void note_start(struct latency *l, const struct event *e)
{
    struct track *t = track_of(l, e->job, false);

    if (!t)
        return;
    measure(l, LEG_RECOVERY, t->interrupted, e->time_us);
    t->died = t->interrupted = t->judged = t->decided = 0;
}

void latency_happened(struct latency *l, const struct event *e)
{
    switch (e->kind) {
    case EVENT_SIGNAL:
        if (tells_death(e))
            note_death(l, e, signal_time(&e->signal));
        break;
    case EVENT_LOOK:
        if (sched_has_ended(e->look.state) && e->look.state != SCHED_COMPLETED)
            note_death(l, e, e->look.ended);
        break;
    case EVENT_ATTEMPT_EXITED:
        note_death(l, e, e->time_us);
        break;
    case EVENT_INTERRUPTED:
        note_interrupted(l, e);
        break;
    case EVENT_VERDICT:
        note_verdict(l, e);
        break;
    case EVENT_DECISION:
        note_decision(l, e);
        break;
    case EVENT_INTENT:
        note_intent(l, e);
        break;
    case EVENT_RESULT:
        note_result(l, e);
        break;
    case EVENT_ATTEMPT_STARTED:
        note_start(l, e);
        break;
    case EVENT_JOB_ENDED:
        forget(l, e->job);
        break;
    default:
        break;
    }
}
