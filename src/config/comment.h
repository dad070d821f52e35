/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CONFIG_COMMENT_H
#define REKNIT_CONFIG_COMMENT_H

/* What a job's comment asks of Reknit. A comment belongs to the user and is shared with other
 * tools, so it is one of these, or something that is none of our business:
 *
 *   reknit    reknit:POLICY    reknit:MODE      alone, or between commas or semicolons
 *   {"reknit": {"policy": "big", "mode": "observe", "max_restarts": 5, "logs": ["/x/train.log"],
 *               "continue_after_time_limit": true}}
 *   {"reknit": true}    {"reknit": "POLICY"}    {"reknit": false}      the last asks for no
 * watching
 *   {"APS": {"auto_resume_mode": "requeue", "max_requeue_times": 1}}   NVIDIA's job recovery
 *
 * Anything may stand in one: reading it never fails, is bounded, and what was meant for Reknit but
 * not understood is said in words. */

#include "core/model/kinds.h"

#include <stddef.h>
#include <stdint.h>

#define COMMENT_MAX       (64 * 1024) /* bytes that are looked at; a longer one asks for nothing */
#define COMMENT_LOGS_MAX  8
#define COMMENT_LOG_LEN   512
#define RESTARTS_NOT_SAID UINT32_MAX

struct comment {
    bool opts_in;
    bool is_aps;           /* in the words of NVIDIA's tool, which may be at work here too */
    enum mode mode;        /* MODE_INVALID = not said */
    char policy[64];       /* "" = not said */
    uint32_t max_restarts; /* or RESTARTS_NOT_SAID */
    int continue_after_time_limit; /* -1 = not said */
    unsigned n_logs;
    char logs[COMMENT_LOGS_MAX][COMMENT_LOG_LEN]; /* patterns as in sbatch --output, as written */
    bool misunderstood; /* something in it was meant for Reknit, and is not understood */
    char notes[320];    /* what was not understood, printable, for the user; "" = all was */
};

/* text: as the scheduler gives it, NULL = none. */
void comment_read(const char *text, struct comment *ret);

#endif
