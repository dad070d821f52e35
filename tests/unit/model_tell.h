/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_TESTS_MODEL_TELL_H
#define REKNIT_TESTS_MODEL_TELL_H

#include "base/alloc.h"
#include "base/str.h"
#include "core/state/state.h"

#include <stdlib.h>

/* An event without a body about a scheduler's job; it must be one that the model takes. Include
 * cmocka.h before. */
static inline void model_tell(struct model *m, const char *key, enum event_kind kind,
                              uint32_t attempt, usec_t when)
{
    static uint64_t seq;
    struct event *e = xnew(struct event);

    e->seq = ++seq;
    e->kind = kind;
    e->attempt = attempt;
    e->time_us = when;
    STR_COPY(e->job, key);
    if (kind == EVENT_JOB_SEEN)
        e->seen.scheduled = true;
    assert_true(model_apply(m, e));
    free(e);
}

#endif
