/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_TESTS_CORE_WORLD_H
#define REKNIT_TESTS_CORE_WORLD_H

/* A world around the unmodified core, in virtual time: feeds inputs, ticks when core asks for it,
 * keeps every event in order, and checks after each step what must always hold. */

#include "states.h"

#include "core/core.h"
#include "core/model/event_fields.h"
#include "core/state/state.h"

struct world {
    struct core *core;
    usec_t now;
    VEC(struct event) log; /* inputs and derived, as a journal would hold them */
    char job[JOB_NAME_LEN];
    uint32_t attempt; /* that inputs are about */
};

/* From a fixed instant on; the job "train" is seen. */
void world_init(struct world *w);
void world_done(struct world *w);

/* Of a test: *state is a world. Whatever the test does, folding its journal must give the same
 * state. */
int world_setup(void **state);
int world_setup_started(void **state); /* the first attempt runs */
int world_teardown(void **state);
#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

/* Stamps and steps; returns the number of derived events, the last of the log. */
size_t world_feed(struct world *w, struct event e);
/* Lets time pass; core gets a tick at each of its deadlines. */
void world_wait(struct world *w, usec_t span);

/* The job is seen again, with these facts about it. */
void world_seen(struct world *w, const struct job_facts *facts);
void world_policy(struct world *w, const struct policy *p);
void world_start(struct world *w); /* the next attempt */
void world_signal(struct world *w, struct signal s);
void world_step(struct world *w, int64_t step);
void world_checkpoint(struct world *w, enum edge edge, int64_t step);
void world_phase(struct world *w, enum phase phase, enum edge edge);
/* A root line as the judge of the tests understands it. */
void world_root(struct world *w, const char *signature, enum cause cause);
void world_sample(struct world *w, usec_t interval, struct activity_fact f);
/* `n` samples of `interval`, time passing in between. */
void world_samples(struct world *w, int n, usec_t interval, struct activity_fact f);
void world_exit(struct world *w, int code, int signal); /* first process only */
void world_gone(struct world *w);                       /* the rest, and its output */
void world_die(struct world *w, int code);              /* all of it at once */
/* 5 min later, an attempt: steps from..to a second apart, then the failure. */
void world_attempt(struct world *w, int64_t from, int64_t to, const char *failure,
                   enum cause cause);
void world_interrupt(struct world *w, int signal);
void world_result(struct world *w, uint64_t intent, enum outcome outcome, const char *detail);

/* The newest event of the kind, NULL = none. */
const struct event *world_last(const struct world *w, enum event_kind kind);
const struct event *world_intent(const struct world *w, enum intent intent);
int world_count(const struct world *w, enum event_kind kind);
int world_count_intents(const struct world *w, enum intent intent);
const struct job *world_job(const struct world *w);

/* The first arrow of the diagram in core/state/state.h that no journal of a test so far took, "" =
 * none. */
const char *world_arrow_left(char buf[64]);

/* The newest decision, and what became of it. */
const struct decision_facts *world_decision(const struct world *w);
void world_check_restart(const struct world *w, const char *rule, uint32_t used, uint32_t allowed);
void world_check_stop(const struct world *w, const char *rule, uint32_t used, uint32_t allowed);

/* Folds the log from `from` on, in a new core. */
struct core *world_folded(const struct world *w, size_t n);

#define IDLE_SAMPLE ((struct activity_fact){.processes = 4})
#define BUSY_SAMPLE(interval)                                                                      \
    ((struct activity_fact){.processes = 4, .cpu = 4 * (interval), .io = 50000000})
#define SPIN_SAMPLE(interval) ((struct activity_fact){.processes = 4, .cpu = 4 * (interval)})

#endif
