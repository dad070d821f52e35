/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/event.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const event_kind_names[EVENT_MAX] = {
    [EVENT_POLICY] = "policy",
    [EVENT_JOB_SEEN] = "job-seen",
    [EVENT_ATTEMPT_STARTED] = "attempt-started",
    [EVENT_SIGNAL] = "signal",
    [EVENT_ATTEMPT_EXITED] = "attempt-exited",
    [EVENT_ATTEMPT_GONE] = "attempt-gone",
    [EVENT_LOGS_DRAINED] = "logs-drained",
    [EVENT_TICK] = "tick",
    [EVENT_RESULT] = "result",
    [EVENT_OPERATOR] = "operator",
    [EVENT_RUNNER_LOST] = "runner-lost",
    [EVENT_LEARNED] = "learned",
    [EVENT_LOOK] = "look",
    [EVENT_LAUNCH_FAILED] = "launch-failed",
    [EVENT_MODE] = "mode",
    [EVENT_BRAKES] = "brakes",
    [EVENT_FENCED] = "fenced",
    [EVENT_LOGS_UNREAD] = "logs-unread",
    [EVENT_LOG_NAMED] = "log-named",
    [EVENT_LOGS_READ] = "logs-read",
    [EVENT_NODE_FACT] = "node-fact",
    [EVENT_NODE_TERMS] = "node-terms",
    [EVENT_NODE_LOOK] = "node-look",
    [EVENT_FINDING] = "finding",
    [EVENT_INTERRUPTED] = "interrupted",
    [EVENT_VERDICT] = "verdict",
    [EVENT_DECISION] = "decision",
    [EVENT_INTENT] = "intent",
    [EVENT_JOB_ENDED] = "job-ended",
    [EVENT_NODE_VERDICT] = "node-verdict",
};
DEFINE_NAMES(event_kind, enum event_kind, event_kind_names);

static const char *const finding_names[FINDING_MAX] = {
    [FINDING_HANG_SUSPECTED] = "hang-suspected",
    [FINDING_HANG_EXTENDED] = "hang-extended",
    [FINDING_HANG_UNPROVEN] = "hang-unproven",
    [FINDING_HANG] = "hang",
    [FINDING_CRASH] = "crash",
    [FINDING_RECOVERED] = "recovered",
};
DEFINE_NAMES(finding, enum finding, finding_names);

static const char *const action_names[ACTION_MAX] = {
    [ACTION_NONE] = "none",
    [ACTION_RESTART] = "restart",
    [ACTION_RESTART_EXCLUDING] = "restart-excluding",
    [ACTION_STOP] = "stop",
    [ACTION_COMPLETE] = "complete",
    [ACTION_WAIT] = "wait",
};
DEFINE_NAMES(action, enum action, action_names);

static const char *const intent_names[INTENT_MAX] = {
    [INTENT_INSPECT] = "inspect",
    [INTENT_KILL] = "kill",
    [INTENT_START] = "start",
    [INTENT_REQUEUE] = "requeue",
    [INTENT_AMEND] = "amend",
    [INTENT_CANCEL] = "cancel",
    [INTENT_ARM] = "arm",
    [INTENT_DISARM] = "disarm",
    [INTENT_FENCE] = "fence",
    [INTENT_GUARD] = "guard",
    [INTENT_RELEASE] = "release",
    [INTENT_RESERVE] = "reserve",
    [INTENT_UNRESERVE] = "unreserve",
    [INTENT_YIELD] = "yield",
    [INTENT_MEND] = "mend",
    [INTENT_HOLD] = "hold",
    [INTENT_DRAIN] = "drain",
    [INTENT_UNDRAIN] = "undrain",
    [INTENT_CHECK_NODE] = "check-node",
};
DEFINE_NAMES(intent, enum intent, intent_names);

static const char *const outcome_names[OUTCOME_MAX] = {
    [OUTCOME_DONE] = "done",
    [OUTCOME_FAILED] = "failed",
    [OUTCOME_UNKNOWN] = "unknown",
    [OUTCOME_VOID] = "void",
};
DEFINE_NAMES(outcome, enum outcome, outcome_names);

static const char *const request_names[REQUEST_MAX] = {
    [REQUEST_INTERRUPT] = "interrupt", [REQUEST_APPROVE] = "approve", [REQUEST_REJECT] = "reject",
    [REQUEST_FREEZE] = "freeze",       [REQUEST_THAW] = "thaw",       [REQUEST_RESUME] = "resume",
    [REQUEST_REARM] = "rearm",
};
DEFINE_NAMES(request, enum request, request_names);

const char *incident_path(const struct incident *in, const struct evidence_line *l)
{
    for (uint32_t i = 0; l->line > 0 && i < in->n_logs; i++)
        if (in->logs[i].file == l->file)
            return in->logs[i].path;
    return "";
}

void decision_add(struct decision_facts *d, const char *format, ...)
{
    char text[sizeof(d->why)];
    size_t n = strlen(d->why);
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    str_copy(d->why + n, sizeof(d->why) - n, text);
}

static bool time_is_sane(usec_t t)
{
    return t >= 0 && t <= EVENT_TIME_MAX;
}

static bool number_is_sane(int64_t v)
{
    return v == NUMBER_NONE || (v >= -NUMBER_MAX && v <= NUMBER_MAX);
}

static bool step_is_sane(int64_t step)
{
    return step >= STEP_NONE && step <= NUMBER_MAX;
}

/* A length of time. */
static bool span_is_sane(usec_t t)
{
    return t >= 0 && t <= NUMBER_MAX;
}

static bool exit_is_sane(const struct exit_fact *x)
{
    return x->signal >= 0 && x->signal <= SIGNAL_NUMBER_MAX;
}

static bool learned_is_sane(const struct learned_facts *l)
{
    bool sane = l->n_phases <= PHASE_MAX && span_is_sane(l->median) && span_is_sane(l->mad) &&
                span_is_sane(l->q99) && span_is_sane(l->longest) && span_is_sane(l->first_step);

    for (uint32_t p = 0; sane && p < l->n_phases; p++)
        sane = span_is_sane(l->phases[p]);
    return sane;
}

static bool look_is_sane(const struct look_facts *l)
{
    return time_is_sane(l->submitted) && time_is_sane(l->begin) && time_is_sane(l->started) &&
           time_is_sane(l->ended) && l->restarts < ATTEMPT_MAX && l->n_kept_out <= KEPT_OUT_MAX &&
           l->n_successors <= SUCCESSORS_MAX;
}

static bool brakes_are_sane(const struct brakes *b)
{
    return span_is_sane(b->storm_window) && span_is_sane(b->proposal_life) &&
           span_is_sane(b->early_start) && span_is_sane(b->exclusion_life);
}

static bool collective_is_sane(const struct collective_fact *c)
{
    return number_is_sane(c->seq) && number_is_sane(c->numel) && number_is_sane(c->enqueued) &&
           number_is_sane(c->completed) && number_is_sane(c->waited);
}

static bool activity_is_sane(const struct activity_fact *a)
{
    return span_is_sane(a->interval) && span_is_sane(a->cpu) && a->processes >= 0 &&
           a->stopped >= 0 && a->blocked >= 0;
}

static bool signal_is_sane(const struct signal *s)
{
    if (s->time_us != USEC_UNKNOWN && !time_is_sane(s->time_us))
        return false;
    switch (s->kind) {
    case SIGNAL_STEP:
        return step_is_sane(s->step.step) && number_is_sane(s->step.total) &&
               number_is_sane(s->step.duration) && s->step.more >= 0 && s->step.more <= NUMBER_MAX;
    case SIGNAL_CHECKPOINT:
        return step_is_sane(s->checkpoint.step);
    case SIGNAL_COLLECTIVE:
        return collective_is_sane(&s->collective);
    case SIGNAL_EXIT:
        return exit_is_sane(&s->exit);
    case SIGNAL_ACTIVITY:
        return activity_is_sane(&s->activity);
    case SIGNAL_LAYOUT:
        return s->layout.step >= 0 && s->layout.step <= NUMBER_MAX && s->layout.tasks >= 0 &&
               s->layout.tasks <= INT32_MAX;
    default:
        return true;
    }
}

static bool node_fact_is_sane(const struct node_fact *f)
{
    return f->node[0] != '\0' && f->count > 0 && f->code >= 0 && f->signal.kind == SIGNAL_HIT &&
           f->signal.provenance >= PROVENANCE_MONITOR && signal_is_sane(&f->signal);
}

static bool node_look_is_sane(const struct node_look *l)
{
    return l->node[0] != '\0' && time_is_sane(l->booted);
}

static bool intent_is_of_nodes(enum intent i)
{
    return i == INTENT_DRAIN || i == INTENT_UNDRAIN || i == INTENT_CHECK_NODE;
}

bool event_is_of_nodes(const struct event *e)
{
    switch (e->kind) {
    case EVENT_NODE_FACT:
    case EVENT_NODE_TERMS:
    case EVENT_NODE_LOOK:
    case EVENT_NODE_VERDICT:
        return true;
    case EVENT_OPERATOR:
        return e->request.request == REQUEST_RESUME || e->request.request == REQUEST_REARM;
    case EVENT_INTENT:
        return intent_is_of_nodes(e->intended.intent);
    case EVENT_RESULT:
        return e->job[0] == '\0';
    default:
        return false;
    }
}

static bool intent_is_sane(const struct intent_facts *f)
{
    return time_is_sane(f->not_before) && span_is_sane(f->grace) &&
           f->signal <= SIGNAL_NUMBER_MAX &&
           (!intent_is_of_nodes(f->intent) || (f->n_nodes == 1 && f->nodes[0][0] != '\0'));
}

static bool body_is_sane(const struct event *e)
{
    switch (e->kind) {
    case EVENT_SIGNAL:
        return signal_is_sane(&e->signal);
    case EVENT_ATTEMPT_EXITED:
        return exit_is_sane(&e->exited);
    case EVENT_OPERATOR:
        return e->request.signal >= 0 && e->request.signal <= SIGNAL_NUMBER_MAX;
    case EVENT_LEARNED:
        return learned_is_sane(&e->learned);
    case EVENT_LOOK:
        return look_is_sane(&e->look);
    case EVENT_BRAKES:
        return brakes_are_sane(&e->brakes);
    case EVENT_NODE_FACT:
        return node_fact_is_sane(&e->fact);
    case EVENT_FINDING:
        return span_is_sane(e->finding.timeout) && span_is_sane(e->finding.silent);
    case EVENT_DECISION:
        return span_is_sane(e->decision.delay) && step_is_sane(e->decision.after_step);
    case EVENT_NODE_LOOK:
        return node_look_is_sane(&e->node_look);
    case EVENT_INTENT:
        return intent_is_sane(&e->intended);
    default:
        return true;
    }
}

bool event_can_be_applied(const struct event *e)
{
    return time_is_sane(e->time_us) && e->attempt <= ATTEMPT_MAX && body_is_sane(e);
}

bool event_is_sane(const struct event *e)
{
    return e->seq <= EVENT_SEQ_MAX && e->parent <= EVENT_SEQ_MAX && event_can_be_applied(e);
}
