/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/judge.h"

#include "base/sig.h"
#include "base/str.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* One sentence for a person: what happened, to whom, when, and the words of the decisive line. */

#define QUOTE_MAX 130

static const char *what_failed(enum cause c)
{
    static const char *const text[CAUSE_MAX] = {
        [CAUSE_NONE] = "The job failed",
        [CAUSE_UNKNOWN] = "The job failed",
        [CAUSE_GPU_HARDWARE] = "A GPU failed",
        [CAUSE_NETWORK] = "The network between the ranks failed",
        [CAUSE_NODE_HARDWARE] = "Hardware or driver of a node failed",
        [CAUSE_NODE_FAILURE] = "A node was lost",
        [CAUSE_STORAGE] = "Storage failed",
        [CAUSE_GPU_OOM] = "A GPU ran out of memory",
        [CAUSE_HOST_OOM] = "A process was killed, most likely for want of host memory",
        [CAUSE_FRAMEWORK] = "The framework failed",
        [CAUSE_USER_CODE] = "The program failed by an error of its own",
        [CAUSE_USER_CONFIG] = "The job is set up wrongly",
        [CAUSE_NUMERICAL] = "The training diverged",
        [CAUSE_EXTERNAL_SERVICE] = "A service outside of the cluster failed",
        [CAUSE_TIME_LIMIT] = "The job reached its time limit",
        [CAUSE_PREEMPTION] = "The job was preempted",
        [CAUSE_CANCELLED] = "The job was cancelled",
    };

    return text[c];
}

static void add_who(struct strbuf *b, const struct incident *in)
{
    const struct culprits *c = &in->culprits;
    const char *device = in->cause == CAUSE_GPU_HARDWARE ? "GPU" : "device", *sep = " (";

    for (uint32_t i = 0; i < c->n_nodes && i < 3; i++, sep = ", ")
        strbuf_addf(b, "%snode %s", sep, c->nodes[i]);
    for (uint32_t i = 0; i < c->n_ranks && i < 3; i++, sep = ", ")
        strbuf_addf(b, "%srank %d", sep, c->ranks[i]);
    for (uint32_t i = 0; i < c->n_devices && i < 3; i++, sep = ", ")
        strbuf_addf(b, "%s%s %s", sep, device, c->devices[i]);
    if (*sep == ',')
        strbuf_addc(b, ')');
}

/* Which process printed the decisive line, when one alone did: a fact about a failure of the
 * program, no blame. */
static void add_where(struct strbuf *b, const struct judge *j)
{
    const struct entity *who = j->primary ? &j->primary->s.who : NULL;

    if (!who || j->in->culprits.n_ranks > 0 || cause_domain(j->in->cause) != DOMAIN_WORKLOAD)
        return;
    for (size_t i = 0; i < j->n_current; i++)
        if (j->current[i] != j->primary && streq(j->current[i]->s.signature, j->in->signature))
            return;
    if (who->rank != RANK_NONE)
        strbuf_addf(b, " on rank %d", who->rank);
    else if (who->local_rank != RANK_NONE)
        strbuf_addf(b, " on local rank %d", who->local_rank);
}

/* What a crash spares, nobody needs to do again: the reader should not look for it in the work. */
static void add_done(struct strbuf *b, const struct judge *j)
{
    const struct progress_summary *p = &j->in->progress;

    strbuf_adds(b, j->e->finished ? " after its work was done" : " after its last step");
    if (p->last_step == STEP_NONE)
        return;
    strbuf_addf(b, " (step %" PRId64, p->last_step);
    if (p->total_steps != NUMBER_NONE && p->total_steps >= p->last_step)
        strbuf_addf(b, " of %" PRId64, p->total_steps);
    strbuf_addc(b, ')');
}

static void add_when(struct strbuf *b, const struct progress_summary *p)
{
    if (p->last_step != STEP_NONE)
        strbuf_addf(b, " after step %" PRId64, p->last_step);
    else if (p->steps_seen > 0)
        strbuf_adds(b, " in the middle of the work");
}

static void add_quote(struct strbuf *b, const char *text)
{
    char quote[QUOTE_MAX];
    bool whole;

    while (*text == ' ')
        text++;
    if (!*text)
        return;
    whole = STR_COPY(quote, text);
    for (size_t n = strlen(quote); n > 0 && quote[n - 1] == ' '; n--)
        quote[n - 1] = '\0';
    strbuf_addf(b, ": \"%s%s\"", quote, whole ? "" : "…");
}

/* Two digits behind the point, as people quote a loss. */
static void add_metric(struct strbuf *b, int64_t v)
{
    int64_t cents = (v < 0 ? -v : v) / (METRIC_SCALE / 100);

    strbuf_addf(b, "%s%" PRId64 ".%02" PRId64, v < 0 ? "-" : "", cents / 100, cents % 100);
}

static void add_loss(struct strbuf *b, const struct series *s, enum divergence d)
{
    if (d == DIVERGENCE_NAN) {
        strbuf_adds(b, ": the loss is no longer a number");
        return;
    }
    strbuf_adds(b, ": the loss rose from ");
    add_metric(b, d == DIVERGENCE_CLIMB ? s->best : s->level);
    strbuf_adds(b, " to ");
    add_metric(b, d == DIVERGENCE_CLIMB ? s->level : series_level_after(s));
    strbuf_adds(b, " and stays there");
}

/* The last lines may be read after the exit was told of: whether steps came after it is no matter.
 */
static bool was_unkept(const struct evidence *e)
{
    VEC_FOREACH (&e->exits, x)
        if (x->unkept)
            return true;
    return false;
}

static bool is_sooner(const struct exit_seen *a, const struct exit_seen *b)
{
    if (a->time_us != USEC_UNKNOWN && b->time_us != USEC_UNKNOWN && a->time_us != b->time_us)
        return a->time_us < b->time_us;
    return a->order < b->order;
}

/* The scheduler's plugin saw which task ended first. What srun prints of that comes later, and
 * anybody can print it. A line that knows more than that is better than either. */
static const struct exit_seen *witnessed_death(const struct judge *j)
{
    const struct exit_seen *first = NULL;

    if (j->primary && j->primary->s.role != ROLE_CASCADE &&
        (j->primary->s.layer != LAYER_SCHEDULER ||
         provenance_is_privileged(j->primary->s.provenance)))
        return NULL;
    VEC_FOREACH (&j->e->exits, x) {
        bool failed = x->has_code && (x->code != 0 || x->signal != 0);

        if (x->provenance == PROVENANCE_SPANK && failed &&
            !sig_ended(x->code, x->signal, SIGTERM) && (!first || is_sooner(x, first)))
            first = x;
    }
    return first;
}

static void add_witness(struct strbuf *b, const struct exit_seen *x)
{
    char name[SIG_NAME_LEN];

    strbuf_addf(b, ": task %s", x->who.tasks);
    if (x->who.node[0])
        strbuf_addf(b, " on %s", x->who.node);
    strbuf_adds(b, " was the first to end, ");
    if (x->signal != 0)
        strbuf_addf(b, "killed by %s", sig_name(x->signal, name));
    else
        strbuf_addf(b, "with status %d", x->code);
}

static void describe_crash(struct judge *j, struct strbuf *b)
{
    bool adrift = j->primary && hit_is_adrift(j->e, j->primary);
    bool unkept = j->in->cause == CAUSE_UNKNOWN && was_unkept(j->e);
    const struct exit_seen *witnessed = witnessed_death(j);

    strbuf_adds(b, unkept ? "The job's keeper process was killed" : what_failed(j->in->cause));
    add_who(b, j->in);
    add_where(b, j);
    if (!adrift && j->in->finished)
        add_done(b, j);
    else if (!adrift)
        add_when(b, &j->in->progress);
    if (unkept)
        strbuf_adds(b, ", and the job with it; who killed it is not known");
    else if (j->in->cause == CAUSE_UNKNOWN)
        strbuf_adds(b, ", and the log does not show why");
    if (j->loss)
        add_loss(b, j->loss, j->divergence);
    else if (j->gradient_lost)
        strbuf_adds(b, ": the gradient is no longer a number");
    else if (witnessed)
        add_witness(b, witnessed);
    else if (j->primary)
        add_quote(b, j->primary->s.text + j->primary->s.message);
    if (adrift)
        strbuf_adds(b,
                    "; its clock counts from boot, so its time can't be compared with the job's");
}

static void add_holdup(struct strbuf *b, const struct judge *j)
{
    const struct holdup_finding *f = &j->holdup;
    _cleanup_strbuf_ struct strbuf ranks = {0};
    const char *op = *f->op ? f->op : "collective";

    intset_format(&f->ranks, &ranks);
    switch (f->kind) {
    case HOLDUP_DESYNC:
        strbuf_addf(
            b, "rank %s runs another operation than the others, which wait in %s number %" PRId64,
            strbuf_str(&ranks), op, f->seq);
        break;
    case HOLDUP_BEHIND:
        strbuf_addf(b, "rank %s has not reached %s number %" PRId64 ", in which the others wait",
                    strbuf_str(&ranks), op, f->seq);
        break;
    case HOLDUP_STUCK:
        strbuf_addf(b,
                    "rank %s is still in an operation that the others have finished; they wait "
                    "in %s number %" PRId64,
                    strbuf_str(&ranks), op, f->seq);
        break;
    case HOLDUP_APART:
        strbuf_addf(b, "rank %s is not at %s, where the others wait", strbuf_str(&ranks), op);
        break;
    case HOLDUP_SILENT:
        strbuf_addf(b, "the others wait in a collective, and rank %s is not there",
                    strbuf_str(&ranks));
        break;
    case HOLDUP_SPREAD:
        strbuf_addf(b, "%u ranks ", j->e->waits.reporters);
        if (j->e->roster.ranks.n > j->e->waits.reporters)
            strbuf_addf(b, "of at least %zu ", j->e->roster.ranks.n);
        strbuf_addf(b,
                    "report that they wait, rank %d in number %" PRId64 ", the furthest in %s "
                    "number %" PRId64 "; that does not prove who holds them up",
                    f->least_rank, f->least, op, f->seq);
        break;
    case HOLDUP_UNKNOWN:
        if (j->e->waits.reporters == 1)
            strbuf_adds(b, "one rank reports that it waits in a collective, and no other; the log "
                           "does not show why");
        else
            strbuf_addf(b,
                        "%u ranks wait in the same collective and none of them is behind; the log "
                        "does not show why",
                        j->e->waits.reporters);
        break;
    }
}

/* It stood still, and somebody who did not know ended it at last. */
static void add_end(struct strbuf *b, const struct judge *j)
{
    static const char *const ends[CAUSE_MAX] = {
        [CAUSE_TIME_LIMIT] = "its time limit ended it",
        [CAUSE_PREEMPTION] = "it was preempted",
        [CAUSE_CANCELLED] = "it was cancelled",
    };
    const char *end = j->interrupt ? ends[j->interrupt->s.cause] : NULL;
    char idle[DURATION_TEXT_MAX];

    if (!end)
        return;
    if (j->idle > 0)
        strbuf_addf(b, "; %s later %s", duration_format(j->idle, idle), end);
    else
        strbuf_addf(b, "; then %s", end);
}

static void add_standstill(struct strbuf *b, struct judge *j)
{
    char gap[DURATION_TEXT_MAX];

    strbuf_adds(b, "The job stopped making progress");
    add_when(b, &j->in->progress);
    if (j->e->waits.reporters > 0) {
        strbuf_adds(b, ": ");
        add_holdup(b, j);
    } else if (j->e->stopped.n > 0) {
        strbuf_adds(b, ": a process is stopped");
        add_who(b, j->in);
    } else if (j->e->blocked.n > 0) {
        strbuf_adds(b, ": a process is blocked in the kernel");
        add_who(b, j->in);
    } else if (j->first_exit && j->in->culprits.n_ranks > 0) {
        strbuf_adds(b, ": a process is dead and the others wait for it");
        add_who(b, j->in);
    } else if (j->silence > j->patience) {
        strbuf_addf(b, "; other output went on for %s", duration_format(j->silence, gap));
    }
}

static void describe_hang(struct judge *j, struct strbuf *b)
{
    if (j->in->finished)
        strbuf_adds(b, "The job finished its work but does not exit");
    else
        add_standstill(b, j);
    add_end(b, j);
}

/* The log of a job that runs, and of one that was killed from outside, look alike. */
static bool stops_short(const struct judge *j)
{
    const struct progress_summary *p = &j->in->progress;

    return j->ending == ENDING_UNKNOWN && !j->in->finished && !j->e->gap &&
           p->last_step != STEP_NONE && p->total_steps != NUMBER_NONE &&
           p->last_step < p->total_steps;
}

static void describe_healthy(struct judge *j, struct strbuf *b)
{
    if (stops_short(j)) {
        strbuf_addf(b,
                    "The log stops at step %" PRId64 " of %" PRId64
                    " without saying why: the job is still running, or was killed from outside",
                    j->in->progress.last_step, j->in->progress.total_steps);
        return;
    }
    if (j->e->seen == 0)
        strbuf_adds(b, "Nothing to judge: no line tells of a failure or of progress");
    else if (j->in->finished)
        strbuf_adds(b, "The job finished its work");
    else if (j->e->gap)
        strbuf_adds(b, "Nothing is wrong in what could be read");
    else if (j->in->progress.steps_seen > 0)
        strbuf_adds(b, "Nothing is wrong as far as the log goes");
    else if (rules_only_sign(j))
        strbuf_addf(
            b,
            "The log shows neither that the job ran nor that it failed; only \"%.120s\" would "
            "be a sign of trouble: give the whole log",
            rules_only_sign(j)->s.text);
    else
        strbuf_adds(b, "Nothing in the log points to a failure");
    if (j->in->progress.last_step != STEP_NONE)
        strbuf_addf(b, "; last step %" PRId64, j->in->progress.last_step);
}

static void describe_straggler(struct judge *j, struct strbuf *b)
{
    char before[DURATION_TEXT_MAX], after[DURATION_TEXT_MAX];

    if (!j->slow) {
        strbuf_adds(b, "The job waits for its slowest part at every step");
        add_who(b, j->in);
        return;
    }
    if (j->slow->level < 0) /* a rate */
        strbuf_addf(b, "The job became slower and stayed so: its throughput fell by %d %%",
                    (int)(100 - 100 * series_level_after(j->slow) / j->slow->level));
    else
        strbuf_addf(b, "The job became slower and stayed so: a step took %s and takes %s",
                    duration_format(j->slow->level, before),
                    duration_format(series_level_after(j->slow), after));
    if (j->slow->n_onset > 0 && j->slow->onset[0].step != STEP_NONE)
        strbuf_addf(b, " from step %" PRId64 " on", j->slow->onset[0].step);
}

static void describe_interrupted(struct judge *j, struct strbuf *b)
{
    bool somebody = j->ending == ENDING_REQUESTED && !j->interrupt;
    bool user = j->ending == ENDING_BY_USER && j->in->cause == CAUSE_CANCELLED;
    bool asked = somebody || user;

    strbuf_adds(b, asked ? "The job was ended on request" : what_failed(j->in->cause));
    add_when(b, &j->in->progress);
    strbuf_adds(b, "; nothing failed before");
}

void summary_write(struct judge *j)
{
    _cleanup_strbuf_ struct strbuf b = {0};

    switch (j->in->class) {
    case CLASS_CRASH:
        describe_crash(j, &b);
        break;
    case CLASS_HANG:
        describe_hang(j, &b);
        break;
    case CLASS_STRAGGLER:
        describe_straggler(j, &b);
        break;
    case CLASS_INTERRUPTED:
        describe_interrupted(j, &b);
        break;
    default:
        describe_healthy(j, &b);
        break;
    }
    if (j->e->gap)
        strbuf_adds(&b, "; not all of the input could be read");
    strbuf_addc(&b, '.');
    STR_COPY(j->in->summary, strbuf_str(&b));
}
