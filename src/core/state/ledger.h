/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_STATE_LEDGER_H
#define REKNIT_CORE_STATE_LEDGER_H

/* The books of a job: every restart is paid for, and only progress refills (algorithm b.7).
 *
 *   root ledger      how often each failure (fingerprint) came back without progress in between
 *   no progress      attempts in a row, of whatever failure, that advanced nothing
 *   no step          attempts in a row that completed not one step
 *   unexplained      failures whose cause is not known, since the last progress
 *   caps             restarts in the life of the job and in the last 24 hours; nothing refills them
 *   time             what the last 24 hours of its GPUs' time led to
 *
 * An attempt advanced when the newest durable checkpoint is further than the one before, or, in a
 * job that shows no checkpoints, when its highest step is. Not knowing is not the same as standing
 * still: an attempt whose progress cannot be told counts in the caps alone. */

#include "core/model/incident.h"
#include "core/model/policy.h"

#define FAILURES_MAX 32 /* fingerprints that are remembered; the oldest gives way */
#define SPANS_MAX    64 /* attempts whose time is remembered */
#define RECENT_MAX   RESTARTS_PER_DAY_MAX

enum advance {
    ADVANCE_NO,
    ADVANCE_YES,
    ADVANCE_UNKNOWN,
};

struct failure {
    char fingerprint[17];
    uint32_t count; /* since the last progress */
    uint64_t order; /* for giving way */
};

/* Restarts in the last 24 hours. */
struct recent {
    uint32_t n; /* ascending times */
    usec_t at[RECENT_MAX];
};

/* The time of one attempt, and the part of it whose work is kept. */
struct span {
    usec_t began, ended;
    usec_t kept_from, kept_until; /* equal: nothing */
    uint32_t devices;             /* that spent it; 1: not known how many */
    bool counted;                 /* what is not kept of it is waste */
};

struct spans {
    uint32_t n, next;
    struct span v[SPANS_MAX];
};

struct ledger {
    uint32_t judged;   /* attempts that ended and were judged */
    uint32_t restarts; /* in the life of the job, without the free ones */
    struct recent paid;
    struct recent free;   /* after a time limit or a preemption: no failure of the job */
    struct recent futile; /* those of `paid` that followed an attempt without progress */
    struct spans spans;

    uint32_t n_failures;
    struct failure failures[FAILURES_MAX];
    uint32_t same; /* count of the failure of the last attempt, itself included */

    uint32_t without_progress, without_step, unexplained;
    uint32_t in_a_row;     /* failures without progress, patience or not: for the backoff */
    usec_t stalled_since;  /* end of the first of them; USEC_NEVER = none */
    uint64_t last_culprit; /* hash of the hardware that the last stepless attempt proved, or 0 */
    int64_t failed_step;   /* last step of the attempt before the last, or STEP_NONE */
    bool same_step;        /* the last two failed with the same failure at the same step */

    enum advance advance; /* of the last attempt */
    bool patient;         /* the last failure was not counted: patience */
    bool steps_known, checkpoints_known;
    int64_t best_step, best_checkpoint; /* of all attempts so far, or STEP_NONE */
};

/* What a finished attempt did, as the ledger needs it. */
struct attempt_account {
    usec_t began, ended;                  /* from its start to the interruption */
    usec_t new_from, new_until, saved_at; /* as in struct attempt */
    uint32_t devices;                     /* that it used, at least 1 */
    int64_t steps_seen, highest_step, last_step, checkpoint_step, loaded_step;
    bool numbers_reset; /* step numbers went back within the attempt: not comparable */
    usec_t startup;     /* how long such an attempt may go without a first step */
};

void ledger_init(struct ledger *l);
void ledger_judge(struct ledger *l, const struct policy *p, const struct incident *i,
                  const struct attempt_account *a);
void ledger_restart(struct ledger *l, const struct incident *i, usec_t now);

/* The step up to which work is kept, for an attempt that began at `loaded`: steps beyond it are
 * new. STEP_NONE: none. */
int64_t ledger_kept(const struct ledger *l, int64_t loaded);

/* Of the 24 h before now: the time of all attempts, how much of it led to nothing, and both times
 * the devices that spent it. What is no failure of the job, is borne with patience, or whose
 * progress cannot be told is no waste. */
struct waste {
    usec_t ran, lost;
    usec_t devices_ran, devices_lost;
};
struct waste ledger_waste(const struct ledger *l, usec_t now);

/* Time limit and preemption are no failures: restarts after them are not paid for. */
bool cause_is_free(enum cause cause);
/* How many of r lie in the 24 h before now. */
uint32_t ledger_recent(const struct recent *r, usec_t now);

#endif
