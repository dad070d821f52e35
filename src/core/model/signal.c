/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/signal.h"

#include "base/str.h"

#include <string.h>

static const char *const signal_kind_names[SIGNAL_MAX] = {
    [SIGNAL_HIT] = "hit",
    [SIGNAL_STEP] = "step",
    [SIGNAL_CHECKPOINT] = "checkpoint",
    [SIGNAL_PHASE] = "phase",
    [SIGNAL_COLLECTIVE] = "collective",
    [SIGNAL_EXIT] = "exit",
    [SIGNAL_ACTIVITY] = "activity",
    [SIGNAL_LAYOUT] = "layout",
    [SIGNAL_OUTPUT] = "output",
};
DEFINE_NAMES(signal_kind, enum signal_kind, signal_kind_names);

static const char *const phase_names[PHASE_MAX] = {
    [PHASE_STEADY] = "steady",         [PHASE_STARTUP] = "startup",
    [PHASE_CHECKPOINT] = "checkpoint", [PHASE_EVALUATION] = "evaluation",
    [PHASE_LOADING] = "loading",       [PHASE_COMPILATION] = "compilation",
    [PHASE_SHUTDOWN] = "shutdown",
};
DEFINE_NAMES(phase, enum phase, phase_names);

static const char *const edge_names[EDGE_MAX] = {
    [EDGE_POINT] = "point",
    [EDGE_BEGIN] = "begin",
    [EDGE_END] = "end",
};
DEFINE_NAMES(edge, enum edge, edge_names);

struct signal signal_make(enum signal_kind kind, enum provenance provenance)
{
    struct signal s = {
        .kind = kind,
        .provenance = provenance,
        .time_us = USEC_UNKNOWN,
        .role = ROLE_NOISE,
        .cause = CAUSE_NONE,
        .who = {.rank = RANK_NONE, .local_rank = RANK_NONE},
    };

    switch (kind) {
    case SIGNAL_STEP:
        s.step = (struct step_fact){.step = STEP_NONE,
                                    .total = NUMBER_NONE,
                                    .duration = NUMBER_NONE,
                                    .loss = NUMBER_NONE,
                                    .grad_norm = NUMBER_NONE,
                                    .rate = NUMBER_NONE};
        break;
    case SIGNAL_CHECKPOINT:
        s.checkpoint.step = STEP_NONE;
        break;
    case SIGNAL_COLLECTIVE:
        s.collective = (struct collective_fact){.seq = NUMBER_NONE,
                                                .numel = NUMBER_NONE,
                                                .enqueued = NUMBER_NONE,
                                                .completed = NUMBER_NONE,
                                                .waited = NUMBER_NONE};
        break;
    default:
        break;
    }
    return s;
}

bool signature_matches(const char *pattern, const char *signature)
{
    size_t n = strlen(pattern);

    if (n > 0 && pattern[n - 1] == '*')
        return strncmp(pattern, signature, n - 1) == 0;
    return streq(pattern, signature);
}
