/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/narrate.h"

#include "base/sig.h"
#include "cli/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CAUSE_MIN  8 /* columns */
#define ROWS_FIRST 5 /* of a long table: so many at both ends */
#define ROWS_LAST  10

void narrate_exit(const struct exit_fact *x, struct strbuf *out)
{
    char name[SIG_NAME_LEN];

    if (x->signal == 0 && x->code < 0)
        strbuf_adds(out, "ended by the scheduler, without an exit status");
    else if (x->signal == 0)
        strbuf_addf(out, "exit status %d", (int)x->code);
    else
        strbuf_addf(out, "killed by %s", sig_name(x->signal, name));
}

/* How it exited is news when reknit had no hand in it. */
static bool tells_exit(const struct story_attempt *a)
{
    return a->exited && !a->put_down;
}

static const char *class_words(const struct incident *i)
{
    switch (i->class) {
    case CLASS_HEALTHY:
        return "ended";
    case CLASS_HANG:
        return "hung";
    case CLASS_STRAGGLER:
        return "was slow";
    case CLASS_INTERRUPTED:
        return "was interrupted";
    default:
        return "crashed";
    }
}

static void add_where(const struct story_attempt *a, struct strbuf *out)
{
    if (a->last_step != STEP_NONE)
        strbuf_addf(out, " after step %" PRId64, a->last_step);
    else if (a->steps_seen == 0)
        strbuf_adds(out, " before its first step");
}

/* Without its full stop: the line goes on. */
static void add_summary(const struct incident *i, struct strbuf *out)
{
    size_t n = strlen(i->summary);

    if (n > 0 && i->summary[n - 1] == '.')
        n--;
    strbuf_adds(out, ": ");
    if (n > 0)
        strbuf_add(out, i->summary, n);
    else
        strbuf_adds(out, "no cause was found");
}

void narrate_verdict(const struct story_attempt *a, struct strbuf *out)
{
    const struct incident *i = a->incident;

    if (!i)
        return;
    strbuf_addf(out, "attempt %" PRIu32 " ", a->number);
    if (i->class == CLASS_HEALTHY) {
        strbuf_adds(out, a->exited && a->exit.code == 0 ? "ended well" : "ended");
        add_where(a, out);
        return;
    }
    strbuf_adds(out, class_words(i));
    if (!strstr(i->summary, "step")) /* it often says where by itself */
        add_where(a, out);
    if (tells_exit(a)) {
        strbuf_adds(out, ", ");
        narrate_exit(&a->exit, out);
    } else if (a->forced) {
        strbuf_addf(out, ", killed by reknit %s",
                    a->asked_again ? "when it was asked again" : "after the grace");
    }
    add_summary(i, out);
    strbuf_addf(out, " (%s, %d %%)", cause_name(i->cause), (int)i->confidence);
}

void narrate_decision(const struct story_attempt *a, struct strbuf *out)
{
    const struct decision_facts *d = &a->decision;
    char delay[DURATION_TEXT_MAX];

    if (!a->decided)
        return;
    switch (d->action) {
    case ACTION_RESTART:
    case ACTION_RESTART_EXCLUDING:
        if (d->delay > 0)
            strbuf_addf(out, "restarting in %s", duration_format(d->delay, delay));
        else
            strbuf_adds(out, "restarting now");
        break;
    case ACTION_COMPLETE:
        strbuf_adds(out, "the job is done");
        break;
    case ACTION_WAIT:
        strbuf_adds(out, "left to the scheduler");
        break;
    default:
        strbuf_adds(out, "stopping");
    }
    if (d->why[0])
        strbuf_addf(out, " (%s)", d->why);
}

bool narrate_finding(const struct event *e, struct strbuf *out)
{
    static const char *const words[FINDING_MAX] = {
        [FINDING_HANG_SUSPECTED] = "may hang",
        [FINDING_HANG_EXTENDED] = "may hang",
        [FINDING_HANG_UNPROVEN] = "makes no progress",
        [FINDING_HANG] = "hangs",
        [FINDING_RECOVERED] = "goes on",
    };

    if (!words[e->finding.finding])
        return false; /* a crash: the verdict says it better */
    strbuf_addf(out, "attempt %" PRIu32 " %s: %s", e->attempt, words[e->finding.finding],
                e->finding.why);
    return true;
}

static void add_nodes(const char (*nodes)[NODE_NAME_LEN], uint32_t n, struct strbuf *out)
{
    for (uint32_t i = 0; i < n; i++)
        strbuf_addf(out, "%s%s", i > 0 ? ", " : "", nodes[i]);
}

static void add_amend(const struct intent_facts *f, usec_t at, struct strbuf *out)
{
    char in[DURATION_TEXT_MAX];

    strbuf_adds(out, "asked the scheduler to start it");
    if (f->n_nodes > 0) {
        strbuf_adds(out, " without ");
        add_nodes(f->nodes, f->n_nodes, out);
    }
    if (f->first)
        strbuf_adds(out, ", before the others that wait");
    if (f->not_before > at)
        strbuf_addf(out, ", not for the next %s", duration_format(f->not_before - at, in));
    else
        strbuf_adds(out, ", now");
}

static void add_intent(const struct intent_facts *f, usec_t at, struct strbuf *out)
{
    switch (f->intent) {
    case INTENT_REQUEUE:
        strbuf_adds(out, "asked the scheduler to queue it again");
        break;
    case INTENT_AMEND:
        add_amend(f, at, out);
        break;
    case INTENT_CANCEL:
        strbuf_adds(out, "asked the scheduler to end it");
        break;
    case INTENT_ARM:
        strbuf_adds(out, "asked the scheduler to let it be queued again");
        break;
    case INTENT_DISARM:
        strbuf_adds(out, "asked the scheduler to let it be queued again no more");
        break;
    case INTENT_RESERVE:
        strbuf_adds(out, "asked the scheduler to keep its nodes free");
        break;
    case INTENT_UNRESERVE:
        strbuf_adds(out, "gave its nodes back");
        break;
    case INTENT_YIELD:
        strbuf_adds(out, "gave its place before the others back");
        break;
    case INTENT_MEND:
        strbuf_adds(out, "told those that wait for its success once more to wait");
        break;
    case INTENT_INSPECT:
        strbuf_adds(out, "wanted its processes to be looked at");
        break;
    case INTENT_GUARD:
        strbuf_adds(out, "asked the scheduler to hold it, lest it starts beside itself");
        break;
    case INTENT_RELEASE:
        strbuf_adds(out, "asked the scheduler to take that hold back");
        break;
    case INTENT_FENCE:
        strbuf_adds(out, "asked whether nothing of it runs any more on ");
        add_nodes(f->nodes, f->n_nodes, out);
        break;
    case INTENT_HOLD:
        strbuf_adds(out, "asked the scheduler to keep it, held, for somebody to look at");
        break;
    default:
        break;
    }
}

static void add_look_words(const struct look_facts *l, struct strbuf *out)
{
    strbuf_addf(out, "the scheduler says: %s", sched_state_name(l->state));
    if (l->nodes[0] && l->state != SCHED_PENDING)
        strbuf_addf(out, " on %s", l->nodes);
    if (l->reason[0] && strcasecmp(l->reason, sched_state_name(l->state)) != 0 &&
        strcasecmp(l->reason, "none") != 0)
        strbuf_addf(out, " (%s)", l->reason);
}

static void add_log_words(const struct log_facts *f, struct strbuf *out)
{
    if (f->trouble[0])
        strbuf_addf(out, "its log %s is not read: %s", f->path, f->trouble);
    else
        strbuf_addf(out, "its log %s is read after all", f->path);
}

static void add_request_words(const struct request_facts *r, struct strbuf *out)
{
    if (r->request == REQUEST_APPROVE)
        strbuf_addf(out, "approved by %s", r->who);
    else if (r->request == REQUEST_REJECT)
        strbuf_addf(out, "rejected by %s", r->who);
    else if (r->request == REQUEST_INTERRUPT)
        strbuf_addf(out, "%s asked to end it", r->who[0] ? r->who : "somebody");
}

void narrate_scheduled(const struct event *e, struct strbuf *out)
{
    switch (e->kind) {
    case EVENT_LOOK:
        add_look_words(&e->look, out);
        break;
    case EVENT_INTENT:
        add_intent(&e->intended, e->time_us, out);
        break;
    case EVENT_RESULT:
        if (e->result.outcome != OUTCOME_DONE)
            strbuf_addf(out, "that is %s: %s", outcome_name(e->result.outcome), e->result.detail);
        break;
    case EVENT_OPERATOR:
        add_request_words(&e->request, out);
        break;
    case EVENT_MODE:
        strbuf_addf(out, "mode %s from here on: %s", mode_name(e->mode.mode), e->mode.why);
        break;
    case EVENT_LOG_NAMED:
        add_log_words(&e->log, out);
        break;
    case EVENT_JOB_ENDED:
        strbuf_adds(out, "it is not watched any more");
        break;
    case EVENT_ATTEMPT_STARTED:
        strbuf_adds(out, "it is watched again");
        break;
    case EVENT_LAUNCH_FAILED:
        strbuf_addf(out, "the scheduler could not start it: %s", e->result.detail);
        break;
    default:
        break;
    }
}

void narrate_steps(const struct story_attempt *a, struct strbuf *out)
{
    if (a->first_step == STEP_NONE && a->steps_seen == 0)
        strbuf_addc(out, '-');
    else if (a->first_step == STEP_NONE)
        strbuf_addf(out, "%" PRId64 " seen", a->steps_seen);
    else
        strbuf_addf(out, "%" PRId64 "-%" PRId64, a->first_step, a->last_step);
}

static void add_ranks(const struct culprits *c, struct strbuf *out)
{
    for (uint32_t i = 0; i < c->n_ranks && i < 4; i++)
        strbuf_addf(out, "%s%d", i ? "," : ", rank ", (int)c->ranks[i]);
    if (c->n_ranks > 4)
        strbuf_adds(out, ",...");
}

void narrate_cause(const struct story_attempt *a, struct strbuf *out)
{
    const struct incident *i = a->incident;

    if (a->lost) {
        strbuf_adds(out, "reknit killed");
        return;
    }
    if (!i || i->class == CLASS_HEALTHY) {
        strbuf_addc(out, '-');
        return;
    }
    if (i->class == CLASS_HANG)
        strbuf_adds(out, "hang: ");
    if (i->cause == CAUSE_CANCELLED && a->decided && streq(a->decision.rule, "requested"))
        strbuf_adds(out, "on request");
    else
        strbuf_adds(out, cause_name(i->cause));
    add_ranks(&i->culprits, out);
}

static const char *action_words(const struct story_run *run, const struct story_attempt *a)
{
    if (!a->decided)
        return a->lost           ? "died with it"
               : run->over       ? "-"
               : run->unrecorded ? "not recorded"
                                 : "running";
    switch (a->decision.action) {
    case ACTION_RESTART:
    case ACTION_RESTART_EXCLUDING:
        return "restart";
    case ACTION_COMPLETE:
        return "done";
    case ACTION_WAIT:
        return "wait";
    default:
        return "stop";
    }
}

static void add_exit(const struct story_attempt *a, struct strbuf *out)
{
    char name[SIG_NAME_LEN];

    if (!tells_exit(a))
        strbuf_addc(out, '-');
    else if (a->exit.signal != 0)
        strbuf_adds(out, sig_name(a->exit.signal, name));
    else if (a->exit.code < 0)
        strbuf_addc(out, '-');
    else
        strbuf_addf(out, "%d", (int)a->exit.code);
}

static const char *const heads[] = {"attempt", "steps",  "time",     "exit",
                                    "cause",   "action", "time lost"};
#define COLUMN_EXIT  3
#define COLUMN_CAUSE 4

static void add_row(struct table *t, const struct story_run *run, const struct story_attempt *a)
{
    char text[DURATION_TEXT_MAX];

    strbuf_addf(table_cell(t), "%" PRIu32, a->number);
    narrate_steps(a, table_cell(t));
    strbuf_adds(table_cell(t), duration_format(a->span, text));
    add_exit(a, table_cell(t));
    narrate_cause(a, table_cell(t));
    strbuf_adds(table_cell(t), action_words(run, a));
    strbuf_adds(table_cell(t), duration_format(a->span - a->useful, text));
}

static void add_goodput(const struct story_run *run, struct strbuf *out)
{
    char useful[DURATION_TEXT_MAX], wall[DURATION_TEXT_MAX];

    if (run->wall <= 0)
        return;
    duration_format(run->wall, wall);
    if (!story_has_steps(run))
        strbuf_addf(out, "goodput unknown: no steps seen in %s", wall);
    else
        strbuf_addf(out, "goodput %d %%: %s of %s produced steps that were kept",
                    (int)(run->useful * 100 / run->wall), duration_format(run->useful, useful),
                    wall);
}

void narrate_summary(const struct story_run *run, size_t width,
                     void (*line)(void *ctx, const char *text), void *ctx)
{
    _cleanup_table_ struct table t = {.columns = ARRAY_SIZE(heads),
                                      .yields = COLUMN_CAUSE,
                                      .yields_least = CAUSE_MIN,
                                      .spare = COLUMN_EXIT};
    _cleanup_strbuf_ struct strbuf goodput = {0};

    for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
        strbuf_adds(table_cell(&t), heads[i]);
    for (size_t i = 0; i < run->attempts.n; i++)
        if (i < ROWS_FIRST || i + ROWS_LAST >= run->attempts.n)
            add_row(&t, run, &run->attempts.v[i]);
        else if (i == ROWS_FIRST)
            for (size_t c = 0; c < ARRAY_SIZE(heads); c++)
                strbuf_adds(table_cell(&t), "...");
    table_print(&t, width, line, ctx);
    if (run->attempts_dropped > 0) {
        char more[64];

        snprintf(more, sizeof(more), "%" PRIu32 " later attempts are not listed",
                 run->attempts_dropped);
        line(ctx, more);
    }
    add_goodput(run, &goodput);
    if (goodput.len > 0)
        line(ctx, goodput.s);
}

void narrate_lost_events(uint64_t n, struct strbuf *out)
{
    strbuf_addf(out,
                "%" PRIu64 " entr%s of the journal %s lost: a file of it was damaged or removed, "
                "or the power was cut",
                n, n == 1 ? "y" : "ies", n == 1 ? "is" : "are");
}

void narrate_state(const struct story_run *run, bool alive, struct strbuf *out)
{
    if (run->unrecorded)
        strbuf_adds(out, "unrecorded");
    else if (run->lost || (!run->over && !alive))
        strbuf_adds(out, "killed");
    else if (!run->over)
        strbuf_adds(out, "running");
    else
        strbuf_adds(out, run->end.action == ACTION_COMPLETE ? "done" : "stopped");
}
