/* SPDX-License-Identifier: Apache-2.0 */

/* usage: journal_fill PATH [EVENTS [RUNNING]]
 *
 * Writes the journal of a busy site's month for bench/journal: EVENTS (2,000,000), of which half
 * are of jobs that ended, and RUNNING (200) jobs of it still run. */

#include "base/alloc.h"
#include "base/str.h"
#include "journal/journal.h"

#include <stdio.h>
#include <stdlib.h>

#define DAYS 30

struct month {
    struct journal *journal;
    struct journal_batch *batch;
    struct event e;
    uint64_t seq, most;
    usec_t began, now;
};

static void add(struct month *m, enum event_kind kind, long long job, uint32_t attempt)
{
    struct err err = {0};

    m->e.kind = kind;
    m->e.seq = ++m->seq;
    m->now = m->began + (usec_t)((double)m->seq / (double)m->most * DAYS * (double)USEC_PER_DAY);
    m->e.time_us = m->now;
    m->e.attempt = attempt;
    STR_PRINTF(m->e.job, "%lld-1767225600", job);
    journal_batch_add(m->batch, &m->e);
    m->e = (struct event){0};
    if (journal_batch_size(m->batch) >= 10000 &&
        journal_commit(m->journal, m->batch, false, &err) < 0) {
        fprintf(stderr, "journal_fill: %s\n", err.text);
        exit(EXIT_FAILURE);
    }
}

static void begin(struct month *m, long long job)
{
    m->e.seen.scheduled = true;
    m->e.seen.id = (uint32_t)job;
    STR_COPY(m->e.seen.name, "train");
    STR_COPY(m->e.seen.partition, "main");
    add(m, EVENT_JOB_SEEN, job, 0);
    m->e.look.state = SCHED_RUNNING;
    STR_COPY(m->e.look.nodes, "n[1-10]");
    add(m, EVENT_LOOK, job, 1);
    add(m, EVENT_ATTEMPT_STARTED, job, 1);
}

static void step(struct month *m, long long job, int64_t number)
{
    m->e.signal = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);
    m->e.signal.step.step = number;
    m->e.signal.step.total = 5000000;
    m->e.signal.step.loss = 2100000;
    m->e.signal.offset = (uint64_t)number * 300;
    STR_COPY(m->e.signal.signature, "progress.megatron");
    STR_COPY(m->e.signal.text, "iteration 100/5000000 | consumed samples: 102400 | lm loss: 2.1");
    add(m, EVENT_SIGNAL, job, 1);
}

static void end(struct month *m, long long job)
{
    m->e.look.state = SCHED_COMPLETED;
    add(m, EVENT_LOOK, job, 1);
    m->e.exited.code = 0;
    add(m, EVENT_ATTEMPT_EXITED, job, 1);
    add(m, EVENT_ATTEMPT_GONE, job, 1);
    m->e.incident.class = CLASS_HEALTHY;
    add(m, EVENT_VERDICT, job, 1);
    m->e.decision.action = ACTION_COMPLETE;
    m->e.decision.after_step = STEP_NONE;
    add(m, EVENT_DECISION, job, 1);
    m->e.ended.action = ACTION_COMPLETE;
    add(m, EVENT_JOB_ENDED, job, 1);
}

int main(int argc, char **argv)
{
    struct month m = {.most = 2000000};
    long long events = 2000000, running = 200, ended = 1000000;
    struct err err = {0};

    if (argc < 2 || (argc > 2 && str_to_i64(argv[2], &events) < 0) ||
        (argc > 3 && str_to_i64(argv[3], &running) < 0) || running < 1 ||
        journal_open(argv[1], JOURNAL_WRITE, &m.journal, &err) < 0) {
        fprintf(stderr, "usage: journal_fill PATH [EVENTS [RUNNING]] %s\n", err.text);
        return EXIT_FAILURE;
    }
    m.most = (uint64_t)events;
    m.began = now_us() - DAYS * USEC_PER_DAY;
    m.batch = journal_batch_new();
    for (long long job = 1; job <= running; job++)
        begin(&m, job);
    for (int64_t number = 1; m.seq < m.most; number++, ended++) {
        for (long long job = 1; job <= running; job++)
            step(&m, job, number);
        begin(&m, ended);
        for (long long i = 1; i <= running; i++)
            step(&m, ended, i);
        end(&m, ended);
    }
    if (journal_commit(m.journal, m.batch, true, &err) < 0)
        fprintf(stderr, "journal_fill: %s\n", err.text);
    journal_batch_free(m.batch);
    journal_free(m.journal);
    return *err.text ? EXIT_FAILURE : EXIT_SUCCESS;
}
