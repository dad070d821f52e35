/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/judge.h"

#include "base/sig.h"
#include "base/str.h"

#include <signal.h>

/* What happened: the first rule that holds decides class, cause and decisive line. The order of
 * the table is the argument, so read it top down:
 *
 *   nothing to judge           an empty input is healthy
 *   ended well                 exit status 0 outweighs every scary line
 *   numbers diverged           a job that computes nonsense has failed although its process lives
 *   a root came first          before the watchdogs spoke, before the scheduler ended the job
 *   a rank failed first        by an ambiguous error, and the others waited for it
 *   ranks waited               watchdog time-outs without a root
 *   somebody ended it          time limit, preemption, cancel, while it was working
 *   it stood still             a live detector says so, or other output went on without steps
 *   one device again and again  harmless by itself, a fault of the device by repetition; of the
 *                              program where other devices show the same
 *   a symptom                  ambiguous, but the best there is
 *   taken down                 by the scheduler, and nothing failed: a cancel
 *   only victims spoke         cascade, teardown, exit codes: a crash of unknown cause
 *   it became slow             and stayed so
 *   someone is slow            a tool that compares the ranks says so again and again
 *   healthy                    the rest; in doubt nobody is blamed
 */

#define FINISHED_GRACE    (2 * USEC_PER_MIN) /* tear-down after the last step may take so long */
#define SYMPTOM_ALONE     60                 /* confidence that needs no sign of an end beside it */
#define SYMPTOM_STOPS     50                 /* ... when steps were made and stopped with it */
#define CASCADE_STRONG    60
#define FAILED_CONFIDENCE 30 /* what a rank says of its own end, with others waiting for it */
#define LONG_BEFORE       USEC_PER_MIN
#define END_CERTAIN       50 /* confidence of a line that tells of an end by itself */
#define GRADIENT_LOST     20 /* lines in a row with nan: more than a loss scale needs to settle */
#define ADRIFT_WORTH      65 /* percent of its confidence */
#define INTERRUPT_CERTAIN 50 /* of a word that ended the job, whatever was before */
#define ASKED_BY_USER     95 /* that it was cancelled */
#define ASKED_BY_SOMEBODY 60
#define FINISHED_GAP      60 /* ... when the work was done in the part that could be read */

static void set(struct judge *j, enum incident_class class, enum cause cause, int32_t confidence)
{
    j->in->class = class;
    j->in->cause = class != CLASS_HEALTHY && cause == CAUSE_NONE ? CAUSE_UNKNOWN : cause;
    j->in->confidence = confidence;
}

static bool rule_empty(struct judge *j)
{
    if (j->e->seen > 0 || j->ending != ENDING_UNKNOWN)
        return false;
    set(j, CLASS_HEALTHY, CAUSE_NONE, CONFIDENCE_UNTOLD);
    return true;
}

static bool exited_well(const struct judge *j)
{
    const struct exit_seen *x = evidence_own_exit(j->e);

    return x && x->code == 0 && x->signal == 0;
}

static bool was_asked_to_end(const struct judge *j)
{
    return j->ending == ENDING_REQUESTED || j->ending == ENDING_BY_USER;
}

/* Reknit passed the wish on: that is surer than what a program makes of the signal. But a scheduler
 * asks with the same signal as a person does, also for a limit or for somebody else. */
static void set_asked_to_end(struct judge *j)
{
    int32_t asked = j->ending == ENDING_BY_USER ? ASKED_BY_USER : ASKED_BY_SOMEBODY;
    enum cause cause = j->interrupt ? j->interrupt->s.cause : CAUSE_CANCELLED;
    int32_t told = j->interrupt ? j->interrupt->s.confidence : 0;

    j->primary = j->interrupt;
    set(j, CLASS_INTERRUPTED, cause, cause == CAUSE_CANCELLED && asked > told ? asked : told);
}

/* Status 0 of a job that was asked to end says that it did as it was told, and not that its work is
 * done. */
static bool rule_ended_well(struct judge *j)
{
    bool asked = was_asked_to_end(j);

    if ((j->ending != ENDING_EXITED && !asked) || !exited_well(j))
        return false;
    if (asked && !j->in->finished) {
        set_asked_to_end(j);
        return true;
    }
    j->in->finished = true;
    set(j, CLASS_HEALTHY, CAUSE_NONE, 95);
    return true;
}

/* ---- numbers ---- */

static bool is_collapsing(const struct judge *j)
{
    if (j->e->pace.skipped_run >= 5)
        return true;
    for (size_t i = 0; i < j->n_current; i++)
        if (j->current[i]->s.cause == CAUSE_NUMERICAL && j->current[i]->count >= 5)
            return true;
    return false;
}

static bool rule_numbers(struct judge *j)
{
    bool collapsing = is_collapsing(j);

    for (uint32_t i = 0; i < j->e->n_loss && !j->loss; i++) {
        j->divergence = loss_diverged(j->e->loss[i], collapsing);
        if (j->divergence != DIVERGENCE_NONE)
            j->loss = j->e->loss[i];
    }
    j->gradient_lost = j->e->pace.nan_run >= GRADIENT_LOST;
    if (j->primary && j->primary->s.cause != CAUSE_NUMERICAL) {
        j->loss = NULL;
        j->gradient_lost = false;
    }
    if (!j->loss && !j->gradient_lost)
        return false;
    set(j, CLASS_CRASH, CAUSE_NUMERICAL, !j->loss || j->divergence == DIVERGENCE_NAN ? 85 : 75);
    return true;
}

/* ---- roots ---- */

/* What a node's kernel tells of waiting explains a hang, but no error that the job itself met. */
static const struct hit *first_wait_of_job(const struct judge *j)
{
    for (size_t i = 0; j->first_wait && i < j->n_current; i++)
        if (j->current[i]->s.layer != LAYER_KERNEL && !hit_before(j->current[i], j->first_wait) &&
            hit_is_wait(j->current[i]))
            return j->current[i];
    return NULL;
}

/* The decisive line may be the one that explains most, and not the first that tells of its cause.
 */
static bool told_before(const struct judge *j, const struct hit *p, const struct hit *w)
{
    for (size_t i = 0; i < j->n_current; i++) {
        const struct hit *h = j->current[i];

        if (h->s.role == ROLE_ROOT && h->s.cause == p->s.cause && !h->s.hang && hit_before(h, w))
            return true;
    }
    return false;
}

static bool wait_came_first(const struct judge *j)
{
    const struct hit *w = first_wait_of_job(j), *p = j->primary;

    if (p->s.hang)
        return true;
    return w && hit_category(p) != CATEGORY_HARDWARE && !told_before(j, p, w);
}

/* Signals make programs fail in their own ways: what comes with the scheduler's word or after it is
 * its effect. */
static bool interrupt_came_first(const struct judge *j)
{
    const struct hit *i = j->interrupt, *p = j->primary;

    if (!i)
        return false;
    if (hit_is_adrift(j->e, p) || hit_before(i, p))
        return true;
    return hits_concurrent(i, p) && hit_category(p) == CATEGORY_GENERIC;
}

static bool rule_root(struct judge *j)
{
    const struct hit *p = j->primary;

    if (!p || wait_came_first(j) || interrupt_came_first(j))
        return false;
    set(j, CLASS_CRASH, p->s.cause, rules_confidence(j, p->s.cause, p->s.confidence));
    return true;
}

/* ---- hangs ---- */

/* The line that says most about a wait: a root, else a symptom, else any; one that knows why. */
static const struct hit *telling_wait(const struct judge *j)
{
    const struct hit *best = NULL;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct hit *h = j->current[i];

        if (h->s.hang && (!best || h->s.role < best->s.role ||
                          (h->s.role == best->s.role && best->s.cause == CAUSE_UNKNOWN &&
                           h->s.cause != CAUSE_UNKNOWN)))
            best = h;
    }
    return best;
}

static enum cause cause_of_wait(const struct judge *j, const struct hit *telling)
{
    if (j->holdup.kind == HOLDUP_DESYNC)
        return CAUSE_USER_CODE;
    return telling && telling->s.cause != CAUSE_NONE ? telling->s.cause : CAUSE_UNKNOWN;
}

/* Whether lines may be missing at the end of a file; not where the launcher has told the end. */
static bool is_cut(const struct evidence *e)
{
    VEC_FOREACH (&e->streams, s)
        if (s->cut)
            return true;
    return e->gap;
}

/* What a rank told of itself before the others waited, if it is not among those that wait: it died,
 * and what looks like a hang is what it left behind. */
static const struct hit *failed_before_wait(const struct judge *j)
{
    const struct collectives *c = &j->e->waits;

    for (size_t i = 0; i < j->n_current && hit_before(j->current[i], j->first_wait); i++) {
        const struct hit *h = j->current[i];
        int32_t rank = h->s.who.rank;

        if (h->s.role == ROLE_SYMPTOM && h->s.layer == LAYER_JOB && !h->s.hang &&
            h->s.kind == SIGNAL_HIT && h->s.confidence >= FAILED_CONFIDENCE && rank != RANK_NONE &&
            c->reporters > 0 && !collectives_waits(c, rank))
            return h;
    }
    return NULL;
}

/* Ranks that wait say so together. Who lost its peers long before that did not wait for them. */
static bool is_long_before(const struct hit *h, const struct hit *wait)
{
    return h->s.confidence >= CASCADE_HEARD && signal_time(&h->s) != USEC_UNKNOWN &&
           signal_time(&wait->s) != USEC_UNKNOWN && wait->time_us - h->time_us >= LONG_BEFORE;
}

/* A transport that gave up after all its retries, or victims that died: who waits, waits for what
 * cannot come. */
static bool network_gave_up(const struct judge *j)
{
    for (size_t i = 0; i < j->n_current && hit_before(j->current[i], j->first_wait); i++) {
        const struct hit *h = j->current[i];

        if (h->s.role == ROLE_CASCADE &&
            ((h->s.cause == CAUSE_NETWORK && h->s.confidence >= CASCADE_STRONG) ||
             is_long_before(h, j->first_wait)))
            return true;
    }
    return false;
}

static bool rule_failed_before_wait(struct judge *j)
{
    const struct hit *h = j->first_wait ? failed_before_wait(j) : NULL;

    if (!h || (j->interrupt && hit_before(j->interrupt, h)))
        return false;
    j->primary = h;
    set(j, CLASS_CRASH, h->s.cause, rules_confidence(j, h->s.cause, h->s.confidence));
    return true;
}

static int32_t told_confidence(const struct judge *j, const struct hit *h)
{
    return hit_is_adrift(j->e, h) ? h->s.confidence * ADRIFT_WORTH / 100 : h->s.confidence;
}

/* Whether the kernel of one of several nodes, and of no other, tells of waiting. */
static bool one_node_waits(const struct judge *j)
{
    const char *node = NULL;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;

        if (!s->hang || s->layer != LAYER_KERNEL)
            continue;
        if (!*s->who.node || (node && !streq(node, s->who.node)))
            return false;
        node = s->who.node;
    }
    return node && j->e->roster.nodes.n > 1;
}

/* A rank that says nothing may have said it in lines that are lost, or wait like all others for a
 * file system. */
static void doubt_silence(struct judge *j, const struct hit *telling)
{
    const char *why = NULL;

    if (is_cut(j->e) && !j->told_end)
        why = j->e->gap ? "not all of the log could be read"
                        : "the log ends within a line: it may have been cut";
    else if (telling && telling->s.cause == CAUSE_STORAGE && !one_node_waits(j))
        why = "the file system did not answer: any rank may wait for it";
    if (j->holdup.kind != HOLDUP_SILENT || !why)
        return;
    j->holdup.kind = HOLDUP_UNKNOWN;
    intset_clear(&j->holdup.ranks);
    ruled_add(j, "a rank that says nothing", "%s", why);
}

static bool rule_waits(struct judge *j)
{
    const struct hit *telling = telling_wait(j);
    int32_t confidence = 30;

    if (!j->first_wait || (j->interrupt && hit_before(j->interrupt, j->first_wait)) ||
        (j->told_end && !first_wait_of_job(j)) || network_gave_up(j))
        return false;
    collectives_judge(&j->e->waits, &j->e->roster.ranks, &j->holdup);
    doubt_silence(j, telling);
    if (j->holdup.ranks.n > 0)
        confidence = j->holdup.kind == HOLDUP_SILENT ? 50 : 75;
    else if (telling && told_confidence(j, telling) > confidence)
        confidence = told_confidence(j, telling);
    j->telling = telling;
    set(j, CLASS_HANG, cause_of_wait(j, telling), confidence);
    return true;
}

/* A gap of whole hours is two time zones in one file, not an idle job; one of weeks is a wrong
 * guess of a year. */
#define CLOCKS_DISAGREE (14 * USEC_PER_DAY)

static bool is_zone_shift(usec_t gap, usec_t slack)
{
    usec_t rest = gap % USEC_PER_HOUR;

    if (gap > CLOCKS_DISAGREE)
        return true;

    return gap >= USEC_PER_HOUR - slack && (rest <= slack || rest >= USEC_PER_HOUR - slack);
}

/* Only where the last step shows its own clock: with those of a scheduler or collector around it,
 * it may have been made at any time since the last of them. */
static usec_t gap_before(const struct judge *j, const struct hit *end)
{
    usec_t slack = 30 * USEC_PER_SEC, gap;

    if (end->s.time_us == USEC_UNKNOWN || end->time_us == USEC_UNKNOWN ||
        j->e->pace.last.time_us == USEC_UNKNOWN || j->e->pace.last_us == USEC_UNKNOWN)
        return 0;
    gap = end->time_us - j->e->pace.last_us;
    if (j->in->progress.median_step != NUMBER_NONE &&
        j->in->progress.median_step < USEC_PER_HOUR / 4)
        slack += j->in->progress.median_step;
    return is_zone_shift(gap, slack) ? 0 : gap;
}

static usec_t idle_after_finish(const struct judge *j)
{
    if (!j->interrupt || j->interrupt->s.time_us == USEC_UNKNOWN || j->e->finish_us == USEC_UNKNOWN)
        return 0;
    return j->interrupt->time_us - j->e->finish_us;
}

/* How long nothing useful had been done when the end came. */
static usec_t idle_before_interrupt(const struct judge *j)
{
    usec_t idle = gap_before(j, j->interrupt);

    if (j->in->finished && idle_after_finish(j) > idle)
        idle = idle_after_finish(j);
    return j->silence > idle ? j->silence : idle;
}

static int interrupt_rank(const struct hit *h)
{
    return (h->s.layer == LAYER_SCHEDULER ? 2 : 0) + (h->s.cause != CAUSE_CANCELLED ? 1 : 0);
}

/* Programs that are told to end say so in their own ways, and before the scheduler gives its reason
 * in a report. */
static const struct hit *reason_of_interrupt(const struct judge *j)
{
    const struct hit *best = j->interrupt;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct hit *h = j->current[i];

        if (hit_is_interrupt(h) && hit_before(best, h) && interrupt_rank(h) > interrupt_rank(best))
            best = h;
    }
    return best;
}

/* A time limit behind work that was done, of which no clock tells how long it was: jobs that end do
 * not wait for their limit. */
static bool sat_out_limit(const struct judge *j)
{
    return j->e->finished && !j->notice && j->interrupt->s.cause == CAUSE_TIME_LIMIT &&
           (j->interrupt->s.time_us == USEC_UNKNOWN || j->e->finish_us == USEC_UNKNOWN);
}

/* A launcher that was told to end after a process of it had failed: whoever told it, cleared up. */
static bool failed_before_interrupt(const struct judge *j)
{
    const struct hit *i = j->interrupt;

    return i && i->s.layer != LAYER_SCHEDULER && i->s.confidence < INTERRUPT_CERTAIN &&
           j->first_exit && j->first_exit->has_code && j->first_exit->code > 0 &&
           j->first_exit->order < i->order;
}

static bool rule_interrupted(struct judge *j)
{
    bool asked = was_asked_to_end(j);

    if (!j->interrupt && !asked)
        return false;
    if (!j->interrupt) {
        set_asked_to_end(j);
        return true;
    }
    j->interrupt = reason_of_interrupt(j);
    if (failed_before_interrupt(j))
        return false;
    j->idle = idle_before_interrupt(j);
    if (sat_out_limit(j) || (j->in->finished && j->idle > FINISHED_GRACE)) {
        set(j, CLASS_HANG, CAUSE_FRAMEWORK, 60);
        return true;
    }
    if (j->idle > j->patience) {
        set(j, CLASS_HANG, CAUSE_UNKNOWN, 60);
        return true;
    }
    if (asked) {
        set_asked_to_end(j);
        return true;
    }
    j->primary = j->interrupt;
    set(j, CLASS_INTERRUPTED, j->interrupt->s.cause, j->interrupt->s.confidence);
    return true;
}

static bool rule_stood_still(struct judge *j)
{
    if (j->ending == ENDING_HUNG) {
        set(j, CLASS_HANG, j->in->finished ? CAUSE_FRAMEWORK : CAUSE_UNKNOWN, 70);
        return true;
    }
    if (j->ending != ENDING_UNKNOWN || (!j->e->pace.any && j->e->phase != PHASE_STARTUP) ||
        j->silence <= j->patience)
        return false;
    set(j, CLASS_HANG, j->in->finished ? CAUSE_FRAMEWORK : CAUSE_UNKNOWN, 60);
    return true;
}

/* ---- what is left ---- */

static const struct series *rate_of(const struct judge *j, const struct series *time)
{
    for (uint32_t i = 0; i < j->e->n_rate; i++)
        if (streq(j->e->rate[i]->signature, time->signature))
            return j->e->rate[i];
    return NULL;
}

static const struct series *find_slow(const struct judge *j)
{
    for (uint32_t i = 0; i < j->e->n_time; i++)
        if (steps_slowed(j->e->time[i], rate_of(j, j->e->time[i])))
            return j->e->time[i];
    for (uint32_t i = 0; i < j->e->n_rate && j->e->n_time == 0; i++)
        if (rate_fell(j->e->rate[i]))
            return j->e->rate[i];
    return NULL;
}

static bool rule_symptom(struct judge *j)
{
    const struct hit *s = primary_symptom(j);
    int32_t confidence;

    if (!s || (j->slow && !j->told_end) || (j->first_wait && hit_is_wait(s) && network_gave_up(j)))
        return false;
    j->primary = s;
    confidence = rules_confidence(j, s->s.cause, s->s.confidence);
    if (!j->told_end && confidence < (j->e->pace.any ? SYMPTOM_STOPS : SYMPTOM_ALONE))
        return false;
    set(j, CLASS_CRASH, s->s.cause, confidence);
    return true;
}

static const struct hit *first_soft_repeat(const struct judge *j)
{
    for (size_t i = 0; i < j->n_current; i++)
        if (hit_is_soft_repeat(j->current[i]))
            return j->current[i];
    return NULL;
}

static bool rule_soft_repeats(struct judge *j)
{
    const struct hit *h = first_soft_repeat(j);

    if (!h)
        return false;
    j->primary = h;
    if (hit_is_everywhere(j, h)) {
        set(j, CLASS_CRASH, h->s.cause, 55);
        ruled_add(j, "a faulty device", "other devices of the node show the same");
        return true;
    }
    set(j, CLASS_CRASH, CAUSE_GPU_HARDWARE, 55);
    ruled_add(j, "an error of the program",
              "it comes again and again on the same device, over a long time");
    return true;
}

static const struct hit *scheduler_teardown(const struct judge *j)
{
    for (size_t i = 0; i < j->n_current; i++)
        if (j->current[i]->s.role == ROLE_TEARDOWN && j->current[i]->s.cause == CAUSE_CANCELLED)
            return j->current[i];
    return NULL;
}

/* The scheduler took the job down and nobody failed: somebody asked for it. */
static bool rule_taken_down(struct judge *j)
{
    const struct hit *t = scheduler_teardown(j);

    if (!t || j->first_exit || episode_first(j, ROLE_CASCADE) || j->ending != ENDING_UNKNOWN)
        return false;
    if (gap_before(j, t) > j->patience) {
        set(j, CLASS_HANG, j->in->finished ? CAUSE_FRAMEWORK : CAUSE_UNKNOWN, 50);
        return true;
    }
    j->primary = t;
    set(j, CLASS_INTERRUPTED, CAUSE_CANCELLED, 50);
    return true;
}

static enum cause cause_of_exit(const struct exit_seen *x)
{
    if (!x || x->unkept) /* why its keeper was killed is not known */
        return CAUSE_UNKNOWN;
    if (sig_ended(x->code, x->signal, SIGKILL))
        return CAUSE_HOST_OOM;
    return x->code == 126 || x->code == 127 ? CAUSE_USER_CONFIG : CAUSE_UNKNOWN;
}

/* What victims say is of little worth, but a transport that gave up after all its retries is a
 * statement about the network all the same. */
static const struct hit *strongest_cascade(const struct judge *j)
{
    const struct hit *best = NULL;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct hit *h = j->current[i];

        if (h->s.role == ROLE_CASCADE &&
            (h->s.confidence >= CASCADE_HEARD || (h->s.raised && !j->e->finished)) &&
            (!best || (h->s.confidence >= CASCADE_STRONG && best->s.confidence < CASCADE_STRONG)))
            best = h;
    }
    return best;
}

/* Something was told to have failed after the last step (a traceback of an unknown exception), and
 * no step came after it. In a job that made none the line must be sure of it. */
static const struct hit *unexplained(const struct judge *j)
{
    int32_t least = j->e->pace.any ? 0 : END_CERTAIN;

    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;

        if (s->role == ROLE_CONFIRM && s->cause == CAUSE_UNKNOWN && s->confidence >= least &&
            !s->hang)
            return j->current[i];
    }
    return NULL;
}

static bool rule_victims(struct judge *j)
{
    const struct hit *c = strongest_cascade(j);

    if (!c && !j->first_exit)
        c = unexplained(j);
    if (!j->first_exit && (!c || j->in->finished) && j->ending != ENDING_EXITED)
        return false;
    j->primary = c ? c : primary_last_resort(j);
    if (!c)
        set(j, CLASS_CRASH, cause_of_exit(j->first_exit), 30);
    else
        set(j, CLASS_CRASH, c->s.confidence >= CASCADE_STRONG ? c->s.cause : CAUSE_UNKNOWN,
            c->s.confidence >= CASCADE_STRONG ? c->s.confidence : 30);
    return true;
}

static bool rule_slow(struct judge *j)
{
    if (!j->slow || j->in->finished)
        return false;
    set(j, CLASS_STRAGGLER, CAUSE_UNKNOWN, 60);
    return true;
}

/* Whether a tool that compares ranks or nodes named this one more than once, and still does near
 * the end. A device that is held back proves nothing as long as steps are as fast as before. */
#define TOLD_SLOW 2

static bool is_told_slow(const struct evidence *e, const struct hit *h)
{
    bool lately = h->last_order >= e->order - e->order / 4;

    return h->s.straggler && h->count >= TOLD_SLOW && lately &&
           ((h->s.blame == BLAME_RANK && h->s.who.rank != RANK_NONE) ||
            (h->s.blame == BLAME_NODE && *h->s.who.node));
}

static bool rule_told_slow(struct judge *j)
{
    VEC_FOREACH (&j->e->hits, h)
        if (is_told_slow(j->e, h) && (!j->telling || h->last_order > j->telling->last_order))
            j->telling = h;
    if (!j->telling || j->in->finished)
        return false;
    set(j, CLASS_STRAGGLER, j->telling->s.cause, 60);
    return true;
}

const struct hit *rules_only_sign(const struct judge *j)
{
    return j->e->pace.any || j->in->finished ? NULL : episode_first(j, ROLE_SYMPTOM);
}

static bool rule_healthy(struct judge *j)
{
    int32_t confidence = j->in->finished ? 90 : rules_only_sign(j) ? CONFIDENCE_UNTOLD : 70;

    if (j->e->gap)
        confidence = j->in->finished ? FINISHED_GAP : CONFIDENCE_UNTOLD;
    j->primary = NULL;
    set(j, CLASS_HEALTHY, CAUSE_NONE, confidence);
    return true;
}

void rules_apply(struct judge *j)
{
    static bool (*const rules[])(struct judge *) = {
        rule_empty,       rule_ended_well,         rule_numbers,
        rule_root,        rule_failed_before_wait, rule_waits,
        rule_interrupted, rule_stood_still,        rule_soft_repeats,
        rule_symptom,     rule_taken_down,         rule_victims,
        rule_slow,        rule_told_slow,          rule_healthy,
    };

    j->slow = find_slow(j);
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        if (rules[i](j))
            break;
    if (j->in->class != CLASS_CRASH && j->in->class != CLASS_INTERRUPTED)
        j->primary = NULL;
    if (j->in->class != CLASS_STRAGGLER)
        j->slow = NULL;
    if (j->in->class == CLASS_HEALTHY)
        j->telling = NULL;
}

static void add_doubt(int64_t *doubt, int32_t confidence)
{
    *doubt = *doubt * (100 - confidence) / 100;
}

/* Independent pieces of evidence for one cause: 1 - prod(1 - c_i) (algorithms b.2.7). Those adrift
 * share one doubt: whether they belong to this failure at all. */
int32_t rules_confidence(const struct judge *j, enum cause cause, int32_t own)
{
    int64_t placed = 100, adrift = 100, doubt; /* percent */
    const char *counted[8];
    size_t n = 0;

    add_doubt(j->primary && hit_is_adrift(j->e, j->primary) ? &adrift : &placed, own);
    for (size_t i = 0; i < j->n_current && n < ARRAY_SIZE(counted); i++) {
        const struct signal *s = &j->current[i]->s;
        bool again = j->primary && streq(s->signature, j->primary->s.signature);

        for (size_t k = 0; k < n && !again; k++)
            again = streq(counted[k], s->signature);
        if (again || s->cause != cause || (s->role != ROLE_ROOT && s->role != ROLE_SYMPTOM))
            continue;
        counted[n++] = s->signature;
        add_doubt(hit_is_adrift(j->e, j->current[i]) ? &adrift : &placed, s->confidence);
    }
    add_doubt(&placed, (int32_t)(100 - adrift) * ADRIFT_WORTH / 100);
    doubt = placed;
    return doubt < 1 ? 99 : (int32_t)(100 - doubt);
}
