/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/judge.h"

#include "base/sig.h"
#include "base/str.h"

#include <signal.h>
#include <stdlib.h>

/* The terminal episode (algorithms b.2.3): what the attempt has not survived. Within a file that
 * shows steps, only what stands after the last of them counts. A file without steps of its own (a
 * kernel log, the stderr of another process) is placed by its clock: node-side evidence counts
 * from ten minutes before the last progress, because a sick GPU speaks before the job notices;
 * a job's other output, and what tells that somebody waits, from the last progress on.
 *
 * A clock that counts from the boot of a machine places nothing beside other files: such lines are
 * adrift, and believed less (rules_confidence).
 *
 * Output of a dying process may be flushed late, and ranks write concurrently, so one or two steps
 * may stand behind the fatal line. Such a line is taken back into the episode only if something
 * else says that the job failed and nothing later explains it. */

#define BEFORE_KERNEL   (10 * USEC_PER_MIN)
#define CLOCK_SKEW      (2 * USEC_PER_SEC)
#define NEAR_LINES      400 /* without clocks: two tracebacks of one failure are not farther apart */
#define LATE_STEPS      3
#define SPARSE          (2 * USEC_PER_MIN)  /* between two lines of a watcher, at least */
#define SILENCE_MAX     (14 * USEC_PER_DAY) /* more is two clocks that disagree about the year */
#define SPARSE_FEW      20                  /* lines of the end of work that do not count */
#define PATIENCE_MIN    (15 * USEC_PER_MIN)
#define PATIENCE_START  (30 * USEC_PER_MIN)
#define PATIENCE_PHASE  (90 * USEC_PER_MIN)
#define PATIENCE_FACTOR 20
#define WAIT_TOLD       30 /* confidence of a line that tells of a wait by itself */
#define WAIT_REPEATS    8
#define NOTICE_CERTAIN  50                  /* confidence of a notice that is believed */
#define NOTICE_GRACE    (10 * USEC_PER_MIN) /* between the notice and the end */
#define NOTICE_STEPS    20                  /* the same without clocks */

/* One key for each hit, whether it has a clock or not: two rules for one list would make circles.
 */
bool hit_before(const struct hit *a, const struct hit *b)
{
    if (a->place_us != b->place_us)
        return a->place_us < b->place_us;
    return a->order < b->order;
}

bool hits_concurrent(const struct hit *a, const struct hit *b)
{
    bool clocks = a->time_us != USEC_UNKNOWN && b->time_us != USEC_UNKNOWN;
    uint64_t apart = a->s.line > b->s.line ? a->s.line - b->s.line : b->s.line - a->s.line;

    if (a->s.uptime && b->s.uptime && a->s.file == b->s.file)
        return llabs(a->s.time_us - b->s.time_us) <= CLOCK_SKEW;
    if (clocks && llabs(a->time_us - b->time_us) > CLOCK_SKEW)
        return false;
    if (clocks && a->s.time_us != USEC_UNKNOWN && b->s.time_us != USEC_UNKNOWN)
        return true;
    return a->s.file != b->s.file || apart <= NEAR_LINES;
}

/* A kernel whose clock counts from its boot does not say when a job failed that has another clock:
 * what such a line tells may be days old. */
bool hit_is_adrift(const struct evidence *e, const struct hit *h)
{
    const struct stream *own = evidence_stream(e, h->s.file);

    if (!h->s.uptime)
        return false;
    VEC_FOREACH (&e->streams, s)
        if (s != own && s->alive && !s->uptime)
            return true;
    return false;
}

/* The scheduler itself says how the attempt ended, when it has: no step comes after that, only its
 * log may be read later. */
static bool is_final(const struct hit *h)
{
    return h->s.provenance == PROVENANCE_SCHEDULER;
}

static int64_t steps_after(const struct evidence *e, const struct hit *h)
{
    if (is_final(h))
        return 0;
    return evidence_stream(e, h->s.file)->advance - h->advance;
}

static bool before_last_progress(const struct evidence *e, const struct hit *h)
{
    usec_t slack = h->s.layer == LAYER_KERNEL && !h->s.hang ? BEFORE_KERNEL : CLOCK_SKEW;

    if (is_final(h) || h->s.file == e->pace.last.file || !e->pace.any)
        return false;
    return h->last_us != USEC_UNKNOWN && e->pace.last_us != USEC_UNKNOWN &&
           h->last_us < e->pace.last_us - slack;
}

bool episode_is_current(const struct evidence *e, const struct hit *h)
{
    return steps_after(e, h) == 0 && !before_last_progress(e, h);
}

static int compare_hits(const void *a, const void *b)
{
    const struct hit *x = *(const struct hit *const *)a, *y = *(const struct hit *const *)b;

    if (x == y)
        return 0;
    return hit_before(x, y) ? -1 : 1;
}

/* The scheduler's or user's word that it ends the job. */
bool hit_is_interrupt(const struct hit *h)
{
    return cause_domain(h->s.cause) == DOMAIN_SCHEDULER && h->s.role <= ROLE_CONFIRM;
}

/* Whether the line tells of waiting. One that jobs print in passing tells so once it comes again
 * and again. */
bool hit_is_wait(const struct hit *h)
{
    const struct signal *s = &h->s;

    if (s->role == ROLE_NOISE || s->role == ROLE_CASCADE || s->role == ROLE_TEARDOWN)
        return false;
    return s->kind == SIGNAL_COLLECTIVE ||
           (s->hang && (s->confidence >= WAIT_TOLD || h->count >= WAIT_REPEATS));
}

/* Whether the line says that processes ended badly. What libraries print while they are closed is
 * the same after success. An exception may be one that was caught, but no step came after it. */
static bool tells_end(const struct evidence *e, const struct signal *s)
{
    if (s->raised && !e->finished)
        return true;
    if (s->kind == SIGNAL_EXIT)
        return s->exit.code != 0 || s->exit.signal != 0;
    if (s->role == ROLE_CASCADE || s->role == ROLE_TEARDOWN)
        return s->confidence >= CASCADE_HEARD || s->layer == LAYER_SCHEDULER;
    return s->role == ROLE_CONFIRM && !s->straggler;
}

/* Schedulers and clouds announce the end, seconds to minutes ahead, and a trainer that listens
 * makes a few more steps and a checkpoint before it obeys. So an announcement is not survived as a
 * failure is: only steps for longer than any grace show that it came to nothing. */
static bool is_announced(const struct evidence *e, const struct hit *h)
{
    int64_t steps = steps_after(e, h);

    if (!hit_is_interrupt(h) || h->s.confidence < NOTICE_CERTAIN || steps <= 0)
        return false;
    if (h->last_us != USEC_UNKNOWN && e->last_us != USEC_UNKNOWN)
        return e->last_us - h->last_us <= NOTICE_GRACE;
    return steps <= NOTICE_STEPS;
}

/* Whether the first process died by a fault of its own: no scheduler or user sends such a signal.
 */
static bool died_by_fault(const struct judge *j)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
    const struct exit_seen *x = evidence_own_exit(j->e);

    for (size_t i = 0; x && i < ARRAY_SIZE(faults); i++)
        if (sig_ended(x->code, x->signal, faults[i]))
            return true;
    return false;
}

/* Whether the first process ended as one that was told to: by a signal that tells it. */
static bool ended_as_told(const struct exit_seen *x)
{
    static const int told[] = {SIGTERM, SIGKILL, SIGINT,  SIGHUP,
                               SIGQUIT, SIGUSR1, SIGUSR2, SIGXCPU};

    for (size_t i = 0; i < ARRAY_SIZE(told); i++)
        if (sig_ended(x->code, x->signal, told[i]))
            return true;
    return x->code == 0 && x->signal == 0;
}

/* Whether the job went on, and met an error of its own, of which it ended. A word about the
 * scheduler among the job's lines is only text, and how it ended is a fact. */
static bool is_belied(const struct judge *j)
{
    const struct exit_seen *x = evidence_own_exit(j->e);

    if (j->ending != ENDING_EXITED || !x || ended_as_told(x))
        return false;
    if (died_by_fault(j))
        return true;
    for (size_t i = 0; i < j->n_current; i++)
        if (j->current[i]->s.layer == LAYER_JOB &&
            (j->current[i]->s.raised || j->current[i]->s.role == ROLE_SYMPTOM))
            return true;
    return false;
}

static void look_for_notice(struct judge *j)
{
    VEC_FOREACH (&j->e->hits, h)
        if (is_announced(j->e, h) && (!j->notice || hit_before(h, j->notice)))
            j->notice = h;
}

static void look_at_ends(struct judge *j)
{
    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;

        if (hit_is_interrupt(j->current[i]) && !j->interrupt)
            j->interrupt = j->current[i];
        if (hit_is_wait(j->current[i]) && !j->first_wait)
            j->first_wait = j->current[i];
        j->told_end |= tells_end(j->e, s);
    }
    j->told_end |= j->ending == ENDING_EXITED;
}

static bool is_hard_fact(const struct signal *s)
{
    return s->role == ROLE_ROOT && s->confidence >= HARD_FACT;
}

static void collect(struct judge *j, int64_t late)
{
    const struct evidence *e = j->e;

    j->n_current = 0;
    VEC_FOREACH (&e->hits, h) {
        bool root = h->s.role == ROLE_ROOT || h->s.role == ROLE_SYMPTOM;

        if (before_last_progress(e, h) || steps_after(e, h) > (root ? late : 0))
            continue;
        if (j->adrift_out && hit_is_adrift(e, h) && (j->in->finished || !is_hard_fact(&h->s)))
            continue;
        j->current[j->n_current++] = h;
    }
    qsort(j->current, j->n_current, sizeof(*j->current), compare_hits);
}

static bool has_role(const struct judge *j, enum role role)
{
    for (size_t i = 0; i < j->n_current; i++)
        if (j->current[i]->s.role == role && j->current[i]->s.confidence >= SYMPTOM_HEARD)
            return true;
    return false;
}

/* How long other lines went on after the last progress. Only sparse ones count, as watchers and
 * status loops print them: a program that writes all the time makes progress of a kind that is not
 * known here. Behind the word that ended the job it is clearing up. */
static usec_t silence_of(const struct judge *j)
{
    const struct evidence *e = j->e;
    usec_t span, end;

    if (e->silence_first_us == USEC_UNKNOWN)
        return 0;
    end = e->silence_end_us;
    if (j->interrupt && j->interrupt->time_us != USEC_UNKNOWN && j->interrupt->time_us < end)
        end = j->interrupt->time_us;
    span = end - e->silence_first_us;
    if (span > SILENCE_MAX)
        return 0;
    return (usec_t)e->silence_lines * SPARSE <= span + SPARSE * SPARSE_FEW ? span : 0;
}

static void measure_silence(struct judge *j)
{
    const struct pace *p = &j->e->pace;
    usec_t step = j->in->progress.median_step != NUMBER_NONE ? j->in->progress.median_step : 0;

    j->patience = PATIENCE_FACTOR * step;
    if (2 * p->max_gap > j->patience)
        j->patience = 2 * p->max_gap;
    if (j->patience < PATIENCE_MIN)
        j->patience = PATIENCE_MIN;
    if (j->e->phase == PHASE_STARTUP && j->patience < PATIENCE_START)
        j->patience = PATIENCE_START;
    else if (j->e->phase != PHASE_STEADY && j->patience < PATIENCE_PHASE)
        j->patience = PATIENCE_PHASE;
    j->silence = silence_of(j);
}

static bool all_steps_done(const struct evidence *e)
{
    VEC_FOREACH (&e->tracks, t)
        if (t->total != NUMBER_NONE && t->total > 1 && t->resets == 0 && t->highest >= t->total)
            return true;
    return false;
}

/* Whether the job itself shows that something is wrong. */
static bool shows_trouble(const struct judge *j)
{
    for (size_t i = 0; i < j->n_current; i++)
        if (!hit_is_adrift(j->e, j->current[i]) && j->current[i]->s.role <= ROLE_CASCADE)
            return true;
    return j->ending == ENDING_HUNG || j->ending == ENDING_EXITED;
}

/* Lines adrift are asked for the reason of what is known to have happened, they are no reason to
 * think that something did: only a hard fact is, and not against work that was finished. */
static void look_for_adrift(struct judge *j)
{
    j->adrift_out = false;
    VEC_FOREACH (&j->e->hits, h)
        j->adrift_out |= hit_is_adrift(j->e, h);
    if (!j->adrift_out)
        return;
    collect(j, 0);
    look_at_ends(j);
    j->adrift_out = !j->told_end && !j->interrupt && !j->first_wait && !shows_trouble(j);
    j->interrupt = j->first_wait = NULL;
    j->told_end = false;
}

void episode_build(struct judge *j)
{
    j->current = xcalloc(j->e->hits.n + 1, sizeof(*j->current));
    j->in->finished = j->e->finished || all_steps_done(j->e);
    look_for_adrift(j);
    collect(j, 0);
    look_at_ends(j);
    if (j->told_end && !j->interrupt && !j->first_wait && !has_role(j, ROLE_ROOT) &&
        !has_role(j, ROLE_SYMPTOM))
        collect(j, LATE_STEPS);
    look_for_notice(j);
    if (j->notice && is_belied(j))
        j->notice = NULL;
    if (!j->interrupt && !j->e->finished && !has_role(j, ROLE_ROOT))
        j->interrupt = j->notice;
    measure_silence(j);
}

const struct hit *episode_first(const struct judge *j, enum role role)
{
    for (size_t i = 0; i < j->n_current; i++)
        if (j->current[i]->s.role == role)
            return j->current[i];
    return NULL;
}
