/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/event.h"

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
    [EVENT_FINDING] = "finding",
    [EVENT_INTERRUPTED] = "interrupted",
    [EVENT_VERDICT] = "verdict",
    [EVENT_DECISION] = "decision",
    [EVENT_INTENT] = "intent",
    [EVENT_JOB_ENDED] = "job-ended",
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
};
DEFINE_NAMES(action, enum action, action_names);

static const char *const intent_names[INTENT_MAX] = {
    [INTENT_INSPECT] = "inspect",
    [INTENT_KILL] = "kill",
    [INTENT_START] = "start",
};
DEFINE_NAMES(intent, enum intent, intent_names);

static const char *const outcome_names[OUTCOME_MAX] = {
    [OUTCOME_DONE] = "done",
    [OUTCOME_FAILED] = "failed",
    [OUTCOME_UNKNOWN] = "unknown",
};
DEFINE_NAMES(outcome, enum outcome, outcome_names);

static const char *const request_names[REQUEST_MAX] = {
    [REQUEST_INTERRUPT] = "interrupt",
};
DEFINE_NAMES(request, enum request, request_names);
