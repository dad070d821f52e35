/* SPDX-License-Identifier: Apache-2.0 */

/* Signals of a live attempt become state: progress, open phases, the last root line, streaks of
 * (in)activity, learned timings.
 *
 * A sign of progress is a step with a new number, a durable checkpoint, the end of a phase. A
 * progress bar that is drawn again, or the same step reported by another rank, is none: a job that
 * hangs while its bar is refreshed must not look alive. */

#include "core/state/observe.h"

#include "base/sig.h"
#include "base/str.h"

#include <string.h>

#define ROOT_CONFIDENCE  60 /* percent; below, a root line alone ends nothing */
#define RECOVERIES_SHOWN 8  /* a job that prints errors at every step shall not fill the journal */

/* A process counts as idle below 2 % of a core and 0.5 % more for each process: threads that wait
 * for the network or a queue wake up now and then. */
#define IDLE_CORE_SHARE    50  /* 1/50 */
#define IDLE_PROCESS_SHARE 200 /* 1/200 */
#define FLAT_IO_PER_SEC    4096

void attempt_reset(struct attempt *a)
{
    evidence_free(a->evidence);
    log_names_done(&a->logs);
    memset(a, 0, sizeof(*a));
    a->first_step = a->last_step = a->highest_step = STEP_NONE;
    a->checkpoint_step = a->loaded_step = STEP_NONE;
    a->leader_rank = RANK_NONE;
    a->first_step_at = a->finished_at = a->storage_at = a->root_at = USEC_NEVER;
    a->new_from = a->new_until = a->saved_at = USEC_NEVER;
    a->streaks.sampled = a->task_died_at = USEC_NEVER;
    a->interrupted_at = a->exited_at = a->gone_at = a->killed_at = USEC_NEVER;
    for (int p = 0; p < PHASE_MAX; p++)
        a->phase_began[p] = USEC_NEVER;
}

void attempt_begin(struct job *j, uint32_t number, usec_t now)
{
    struct attempt *a = &j->attempt;

    attempt_reset(a);
    a->number = number;
    a->started = a->last_progress = a->last_output = a->last_step_at = now;
    a->evidence = evidence_new();
    timing_next_attempt(&j->timing);
}

/* What was printed before a task died may be read a moment after it was seen to. */
#define IN_FLIGHT (2 * USEC_PER_SEC)

/* ... and one that is read late, because nobody did meanwhile, may be of either time. */
static bool may_be_older_than_death(const struct attempt *a, usec_t now)
{
    usec_t read = a->task_died_at > a->read_at ? a->task_died_at : a->read_at;

    return a->task_died_at != USEC_NEVER && now < read + IN_FLIGHT;
}

static void streaks_begin(struct streaks *s)
{
    *s = (struct streaks){.sampled = s->sampled, .last = s->last};
}

static void progress(struct attempt *a, usec_t now)
{
    a->last_progress = now;
    if (may_be_older_than_death(a, now))
        return;
    a->storage_at = a->task_died_at = USEC_NEVER;
    streaks_begin(&a->streaks);
    if (a->suspicion != SUSPICION_NONE ||
        (a->root_at != USEC_NEVER && a->recoveries < RECOVERIES_SHOWN))
        a->progressed = true;
    else
        a->root_at = USEC_NEVER;
}

void attempt_counts_anew(struct attempt *a, usec_t now)
{
    streaks_begin(&a->streaks); /* there may have been progress */
    a->read_at = now;
}

/* Lines that were read late say nothing of the time between them, nor those between which the job
 * was suspended; that it runs again is seen a moment behind the first of them. */
static bool is_measured_since(const struct job *j, usec_t then)
{
    return j->attempt.read_at <= then && !sched_is_suspended(j);
}

static void phase_open(struct attempt *a, enum phase phase, usec_t now)
{
    if (phase != PHASE_STEADY)
        a->phase_began[phase] = now;
}

static void phase_close(struct job *j, enum phase phase, usec_t now)
{
    struct attempt *a = &j->attempt;
    usec_t began = a->phase_began[phase];

    if (began == USEC_NEVER)
        return;
    if (is_measured_since(j, began))
        timing_add_phase(&j->timing, phase, now - began);
    if (began >= a->last_step_at) /* otherwise steps went on meanwhile */
        a->held_up += now - began;
    a->phase_began[phase] = USEC_NEVER;
}

/* Training steps again: whatever holds training up is over. A checkpoint may be written in the
 * background, so that one stays open. */
static void close_blocking_phases(struct job *j, usec_t now)
{
    for (int p = 0; p < PHASE_MAX; p++)
        if (p != PHASE_CHECKPOINT)
            phase_close(j, (enum phase)p, now);
}

/* Whether the step is a new one; notes numbers that go back (an epoch that counts from 0). */
static bool step_is_new(struct attempt *a, const struct signal *s)
{
    int64_t step = s->step.step;

    if (step == STEP_NONE || a->last_step == STEP_NONE)
        return true;
    if (s->who.rank != a->leader_rank || s->file != a->leader_file)
        return step > a->highest_step;
    if (step + 1 < a->last_step) {
        a->numbers_reset = true;
        return true;
    }
    return step > a->last_step;
}

static void note_step_number(struct attempt *a, const struct signal *s)
{
    int64_t step = s->step.step;

    if (step == STEP_NONE)
        return;
    if (a->last_step == STEP_NONE) {
        a->first_step = step;
        a->leader_rank = s->who.rank;
        a->leader_file = s->file;
    }
    if (step > a->highest_step)
        a->highest_step = step;
    a->last_step = step;
}

/* A step that no earlier attempt did, or did in vain. */
static void note_new_work(struct job *j, const struct signal *s, usec_t now)
{
    struct attempt *a = &j->attempt;

    if (s->step.step == STEP_NONE || s->step.step <= ledger_kept(&j->ledger, a->loaded_step))
        return;
    if (a->new_from == USEC_NEVER)
        a->new_from = a->steps_seen > 0 ? a->last_step_at : now;
    a->new_until = now;
}

/* A reader begins a moment behind the first attempt of its user. Of a first start, which then took
 * longer than is known, too long a time is better than none: the job is known to step. */
static bool is_start_measured(const struct job *j, usec_t now)
{
    const struct attempt *a = &j->attempt;

    return j->timing.first_step == 0 || now - a->started >= 2 * (a->read_at - a->started);
}

static void observe_step(struct job *j, const struct signal *s, usec_t now)
{
    struct attempt *a = &j->attempt;

    if (!step_is_new(a, s))
        return;
    note_step_number(a, s);
    note_new_work(j, s, now);
    close_blocking_phases(j, now);
    if (a->steps_seen == 0) {
        a->first_step_at = now;
        if (is_start_measured(j, now))
            timing_add_first_step(&j->timing, now - a->started);
    } else if (is_measured_since(j, a->last_step_at)) {
        timing_add_gap(&j->timing, now - a->last_step_at - a->held_up);
    }
    a->steps_seen++;
    a->last_step_at = now;
    a->held_up = 0;
    a->finished_at = USEC_NEVER;
    progress(a, now);
}

static void observe_checkpoint(struct job *j, const struct checkpoint_fact *c, usec_t now)
{
    struct attempt *a = &j->attempt;
    int64_t step = c->step != STEP_NONE ? c->step : a->last_step;

    switch (c->edge) {
    case EDGE_BEGIN:
        phase_open(a, PHASE_CHECKPOINT, now);
        break;
    case EDGE_END:
        if (step > a->checkpoint_step)
            a->checkpoint_step = step;
        if (step > ledger_kept(&j->ledger, a->loaded_step))
            a->saved_at = now;
        phase_close(j, PHASE_CHECKPOINT, now);
        progress(a, now);
        break;
    case EDGE_POINT:
        if (c->step > a->loaded_step)
            a->loaded_step = c->step;
        progress(a, now);
        break;
    case EDGE_MAX:
    case EDGE_INVALID:
        break;
    }
}

static void observe_phase(struct job *j, const struct phase_fact *p, usec_t now)
{
    if (p->edge == EDGE_END) {
        phase_close(j, p->phase, now);
        progress(&j->attempt, now);
    } else {
        phase_open(&j->attempt, p->phase, now);
    }
}

static usec_t extend(usec_t streak, bool holds, usec_t interval)
{
    return holds ? streak + interval : 0;
}

static void observe_activity(struct attempt *a, const struct activity_fact *f, usec_t now)
{
    struct streaks *s = &a->streaks;
    usec_t interval = f->interval < 0               ? 0
                      : f->interval > USEC_PER_HOUR ? USEC_PER_HOUR
                                                    : f->interval;
    bool quiet =
        f->cpu <= interval / IDLE_CORE_SHARE + interval / IDLE_PROCESS_SHARE * f->processes;
    bool seen = f->io != NUMBER_NONE;
    bool flat = seen && f->io <= interval * FLAT_IO_PER_SEC / USEC_PER_SEC;

    s->observed += interval;
    s->idle = extend(s->idle, quiet && flat, interval);
    s->veiled = extend(s->veiled, quiet && !seen, interval);
    s->still = extend(s->still, f->cpu == 0 && !seen, interval);
    s->spinning = extend(s->spinning, !quiet && flat, interval);
    s->stopped = extend(s->stopped, f->stopped > 0, interval);
    s->blocked = extend(s->blocked, quiet && f->blocked > 0, interval);
    s->sampled = now;
    s->last = *f;
}

static void note_root(struct attempt *a, const char *what, usec_t now)
{
    if (a->root_at != USEC_NEVER)
        return;
    a->root_at = now;
    a->progressed = a->suspicion != SUSPICION_NONE && a->progressed;
    STR_COPY(a->root, what);
}

static void observe_hit(struct attempt *a, const struct signal *s, usec_t now)
{
    a->node_failed |= s->role == ROLE_ROOT && s->cause == CAUSE_NODE_FAILURE &&
                      provenance_is_privileged(s->provenance);
    if (s->role == ROLE_FINISH && a->finished_at == USEC_NEVER)
        a->finished_at = now;
    else if (s->layer == LAYER_KERNEL && s->cause == CAUSE_STORAGE && a->storage_at == USEC_NEVER)
        a->storage_at = now;
    else if (s->role == ROLE_ROOT && s->confidence >= ROOT_CONFIDENCE)
        note_root(a, s->signature, now);
}

void attempt_observe_fact(struct attempt *a, const struct signal *s, usec_t now)
{
    observe_hit(a, s, now);
}

/* The launcher may not notice that a rank is gone. A witness that the job cannot write to saw it
 * die; a line that says so is only a line. tasks: of the step, 0 = not known. */
static void observe_exit(struct attempt *a, const struct signal *s, uint32_t tasks, usec_t now)
{
    char name[SIG_NAME_LEN];
    const struct exit_fact *x = &s->exit;
    bool witnessed = s->provenance == PROVENANCE_SPANK;

    if (witnessed && tasks > 0 && a->tasks_ended >= tasks) { /* of the next step */
        a->tasks_ended = 0;
        a->task_died_at = USEC_NEVER;
    }
    a->tasks_ended += witnessed;
    if ((s->who.rank == RANK_NONE && !*s->who.tasks) || (x->code == 0 && x->signal == 0))
        return;
    note_root(a, "exit of a rank", now);
    if (!witnessed || a->task_died_at != USEC_NEVER)
        return;
    a->task_died_at = now;
    if (x->signal != 0)
        STR_PRINTF(a->task_death, "task %.12s on %.48s was ended by %s", s->who.tasks, s->who.node,
                   sig_name(x->signal, name));
    else
        STR_PRINTF(a->task_death, "task %.12s on %.48s ended with status %d", s->who.tasks,
                   s->who.node, x->code);
}

void attempt_observe(struct job *j, const struct signal *s, usec_t now)
{
    struct attempt *a = &j->attempt;

    if (s->kind != SIGNAL_ACTIVITY && s->kind != SIGNAL_EXIT && s->kind != SIGNAL_LAYOUT)
        a->last_output = now;
    switch (s->kind) {
    case SIGNAL_STEP:
        observe_step(j, s, now);
        break;
    case SIGNAL_CHECKPOINT:
        observe_checkpoint(j, &s->checkpoint, now);
        break;
    case SIGNAL_PHASE:
        observe_phase(j, &s->phase, now);
        break;
    case SIGNAL_ACTIVITY:
        if (s->who.rank == RANK_NONE) /* one rank's part says nothing about the others */
            observe_activity(a, &s->activity, now);
        break;
    case SIGNAL_HIT:
    case SIGNAL_COLLECTIVE:
        observe_hit(a, s, now);
        break;
    case SIGNAL_EXIT:
        observe_exit(a, s, j->sched.look.tasks, now);
        break;
    case SIGNAL_LAYOUT:
    case SIGNAL_OUTPUT:
    case SIGNAL_MAX:
    case SIGNAL_INVALID:
        break;
    }
}
