/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_TESTS_SIM_MACHINE_H
#define REKNIT_TESTS_SIM_MACHINE_H

/* A machine in virtual time that runs one training job under the unmodified core: processes, a
 * sampler, a launcher that carries out intents, and faults in all of them, all drawn from a seed.
 *
 * The machine knows the truth (who lives, what was really saved), and fails the run when what core
 * does is wrong by it. */

#include "history.h"

#include "core/core.h"
#include "core/state/state.h"

enum trouble {
    FAIL_NEVER,
    FAIL_CRASH,      /* a root line, then a status */
    FAIL_MUTE_CRASH, /* no line */
    FAIL_IMPORT,     /* before the first step */
    FAIL_IDLE,       /* hangs without CPU time */
    FAIL_STOPPED,    /* one rank is stopped */
    FAIL_SPIN,       /* hangs with CPU time */
    FAIL_NO_EXIT,    /* does its work and does not exit */
    FAIL_WEDGED,     /* a root line, then silence */
    FAIL_GPU,        /* the bad GPU falls off the bus; only with that GPU */
    FAIL_MAX,
};

/* What kind of job this is; constant during a run. */
struct script {
    int64_t steps, save_every;
    usec_t step_time, save_time, startup;
    bool readable;     /* prints step numbers */
    bool saves_shown;  /* prints when a checkpoint is durable */
    bool save_is_long; /* prints when one begins, too */
    unsigned trouble;  /* percent of attempts that fail */
    bool always;       /* the same failure every time, at the same step */
    enum trouble fixed;
    int64_t fixed_at;
    usec_t sampled_every;
    enum cause cause;
    uint32_t nodes, gpus; /* 0: not known */
    int32_t bad_gpu;      /* which of them, -1 = none */
    struct policy policy;
    unsigned ignores_term, unkillable; /* percent */
    unsigned action_trouble;           /* percent of intents that go wrong */
    bool sampler;                      /* the sampler works */
    bool interrupts, loses_runner, clock_jumps;
};

/* One attempt as it really is. */
struct copy {
    uint32_t number;
    bool first, rest; /* alive: the first process, any other */
    bool drained;
    enum trouble failure;
    int64_t fails_at, step;
    usec_t began, ended;
    int64_t durable_before;
    bool with_bad, told_bad; /* it uses the bad GPU; the kernel told of it */
    bool hanging, done, unkillable, ignores_term;
    usec_t hangs_since;
};

struct machine {
    uint64_t seed;
    struct rng rng;
    struct script script;
    bool trace;

    struct core *core;
    struct journal journal;
    usec_t now;
    uint64_t seq;

    VEC(struct item) items; /* what will happen, see machine.c */
    uint64_t order;
    VEC(struct copy) copies;
    int64_t durable;  /* last step that was really saved */
    int64_t rhythmic; /* steps shown by the steadiest attempt */

    bool ended;
    struct ended_facts end;
    unsigned starts, restarts, idle_attempts, asked; /* restarts: that core wanted */
    bool lost;
};

struct item {
    usec_t at;
    uint64_t order;
    void (*happen)(struct machine *m, uint64_t arg);
    uint64_t arg;
};

void machine_init(struct machine *m, uint64_t seed, bool trace);
void machine_done(struct machine *m);
/* Until the job ends or nothing happens any more. */
void machine_run(struct machine *m);

/* Of the script's GPUs. */
void machine_name_gpu(uint32_t i, char ret[DEVICE_NAME_LEN]);

/* Prints seed, time and text, and ends the program. */
void machine_fail(const struct machine *m, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

#endif
