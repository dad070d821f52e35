/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_STORY_H
#define REKNIT_CLI_STORY_H

/* A journal's events, told as runs of a job and their attempts: what `run` sums up at its end,
 * `jobs` lists and `explain` explains. Goodput is defined in docs/OPERATIONS.md. */

#include "base/vec.h"
#include "core/model/event.h"
#include "core/model/mode.h"

#define STORY_ATTEMPTS_MAX 10000 /* of one run; later ones are counted, not kept */
#define STORY_RUNS_MAX     1000
#define STORY_FACTS_MAX    64   /* findings, decisions and results of one attempt */
#define STORY_POINTS_MAX   2048 /* (time, step) of one attempt; thinned out beyond */

struct story_point {
    usec_t at;
    int64_t step;
};

struct story_attempt {
    uint32_t number;
    usec_t started, ended; /* ended: no process is left; USEC_NEVER: running */
    char log[256];
    struct exit_fact exit;
    bool exited, lost;           /* lost: reknit died meanwhile */
    enum sched_state look_state; /* what a scheduler last said of it */
    bool put_down;               /* reknit ended it: how it exited then tells nothing */
    usec_t asked_at;             /* when somebody first asked for its end; USEC_NEVER */
    bool asked_again;            /* which ends everything at once */
    bool forced; /* it was asked, did not end, and reknit sent SIGKILL: put_down too */

    int64_t steps_seen, first_step, last_step; /* STEP_NONE */
    int64_t loaded_step, checkpoint_step;
    usec_t checkpoint_at;
    bool numbers_reset;
    VEC(struct story_point) points;
    unsigned stride, skipped; /* of the thinning */

    struct incident *incident; /* the verdict; NULL = none */
    bool decided;
    struct decision_facts decision;
    VEC(struct event *)
    facts; /* FINDING, INTERRUPTED, INTENT, RESULT, OPERATOR, LOOK, MODE, LOG_NAMED, in order */

    usec_t useful; /* time that produced steps that were kept; by story_account() */
    usec_t span;   /* from its start to its end, or until now */
};

struct story_run {
    struct job_facts seen;
    uint32_t number;     /* of the job's runs */
    usec_t began, ended; /* USEC_NEVER: not ended */
    bool over, lost;
    bool unrecorded; /* it ended in order, but its end is not in the journal */
    struct ended_facts end;
    struct policy policy;
    struct mode_facts
        mode; /* a scheduler's job: that its first attempt began in; why "": not told */
    VEC(struct story_attempt) attempts;
    uint32_t attempts_dropped; /* after those: how many are told of nowhere else */
    usec_t wall, useful;       /* by story_account() */
};

struct story {
    char job[JOB_NAME_LEN];
    usec_t last_event;
    uint64_t lost_events; /* of the journal: committed once, and not in it any more */
    bool last_run_only;   /* forget each run when the next begins; set it before the first event */
    VEC(struct story_run) runs;
    struct policy policy; /* the newest */
    struct mode_words words;
    struct mode_facts mode; /* the newest that was said, and what follows from it */
};

void story_add(struct story *s, const struct event *e);

/* The same for a journal that is read from somewhere in its middle: what is missing is assumed. */
void story_add_tail(struct story *s, const struct event *e);
void story_done(struct story *s);
#define _cleanup_story_ __attribute__((cleanup(story_done)))

/* Nobody runs the job now: if its last run did not end, it was killed at the last sign of life; or
 * it ended in order, on a full disk. */
void story_nobody_runs(struct story *s, bool in_order);

struct story_run *story_last_run(struct story *s);               /* NULL = none */
struct story_run *story_run(struct story *s, uint32_t number);   /* NULL = none such */
struct story_attempt *story_last_attempt(struct story_run *run); /* NULL = none */

/* Whether a step was seen; without one there is no goodput to speak of. */
bool story_has_steps(const struct story_run *run);

/* Fills span and useful of the attempts, wall and useful of the run. now: for a run that lasts. */
void story_account(struct story_run *run, usec_t now);

#endif
