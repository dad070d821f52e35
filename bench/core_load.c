/* SPDX-License-Identifier: Apache-2.0 */

/* usage: core_load [JOBS [SIGNALS]]
 *
 * What core costs: JOBS (1,000) running jobs of a scheduler, SIGNALS (100,000) steps of them in
 * turn, a thousand a second, the deadline asked for after each as the pump does. Prints the CPU
 * time of one second of that, and of the same job alone. */

#include "core/core.h"
#include "core/state/state.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BEGINNING ((usec_t)1767225600 * USEC_PER_SEC)
#define PER_SEC   1000
#define SHARE_MAX 5.0 /* percent */

struct load {
    struct core *core;
    struct core_output out;
    uint64_t seq, ticks;
    usec_t now;
};

static void feed(struct load *l, struct event e)
{
    e.seq = ++l->seq;
    e.time_us = l->now;
    core_step(l->core, &e, &l->out);
    l->seq += l->out.events.n;
}

static struct event about(long long job, enum event_kind kind)
{
    struct event e = {.kind = kind};

    STR_PRINTF(e.job, "%lld-1767225600", 1000 + job);
    return e;
}

static void begin(struct load *l, long long job)
{
    struct event e = about(job, EVENT_JOB_SEEN);

    e.seen.scheduled = true;
    feed(l, e);
    e = about(job, EVENT_LOOK);
    e.look = (struct look_facts){.state = SCHED_RUNNING, .requeueable = true};
    feed(l, e);
    e = about(job, EVENT_ATTEMPT_STARTED);
    e.attempt = 1;
    feed(l, e);
}

static void tick(struct load *l)
{
    usec_t due;

    while ((due = core_deadline(l->core)) <= l->now) {
        feed(l, (struct event){.kind = EVENT_TICK});
        l->ticks++;
    }
}

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double measure(long long jobs, long long signals)
{
    struct load l = {.core = core_new(), .now = BEGINNING};
    double began, share;

    for (long long i = 0; i < jobs; i++)
        begin(&l, i);
    began = cpu_seconds();
    for (long long i = 0; i < signals; i++) {
        struct event e = about(i % jobs, EVENT_SIGNAL);

        l.now += USEC_PER_SEC / PER_SEC;
        tick(&l);
        e.attempt = 1;
        e.signal = signal_make(SIGNAL_STEP, PROVENANCE_JOB_TEXT);
        e.signal.role = ROLE_PROGRESS;
        e.signal.step.step = i / jobs + 1;
        feed(&l, e);
    }
    share = 100 * (cpu_seconds() - began) / ((double)signals / PER_SEC);
    printf("%5lld jobs, %d signals a second: %.2f %% of a core, %llu ticks\n", jobs, PER_SEC, share,
           (unsigned long long)l.ticks);
    core_output_done(&l.out);
    core_free(l.core);
    return share;
}

/* A row for bench/run; see bench/rows.py. */
static void tell(long long jobs, double share)
{
    const char *path = getenv("REKNIT_BENCH_ROWS");
    FILE *f = path ? fopen(path, "a") : NULL;

    if (!f)
        return;
    fprintf(f,
            "{\"what\": \"core with %lld jobs and %d signals a second\", \"measured\": "
            "\"%.1f %% of a core\", \"budget\": \"below %.0f %%\", \"kept\": %s}\n",
            jobs, PER_SEC, share, SHARE_MAX, share <= SHARE_MAX ? "true" : "false");
    fclose(f);
}

int main(int argc, char **argv)
{
    long long jobs = 1000, signals = 100000;
    double share;

    if (argc > 1 && (str_to_i64(argv[1], &jobs) < 0 || jobs < 1 || jobs > JOBS_MAX))
        return 64;
    if (argc > 2 && (str_to_i64(argv[2], &signals) < 0 || signals < 1))
        return 64;
    measure(1, signals);
    share = measure(jobs, signals);
    tell(jobs, share);
    return share <= SHARE_MAX ? 0 : 1;
}
