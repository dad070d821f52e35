/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_TESTS_SCHED_WORLD_H
#define REKNIT_TESTS_SCHED_WORLD_H

/* The scheduler's side of a core_world: its words are those of the tests. */

#include "core_world.h"

#define S   USEC_PER_SEC
#define MIN USEC_PER_MIN

/* An event about the job. */
struct event of_job(const struct world *w, enum event_kind kind);
void set_mode(struct world *w, enum mode mode);
void set_brakes(struct world *w, struct brakes b);
void operate(struct world *w, enum request what, uint64_t of);
/* What a look shows; of a job that does not wait, on n[1-4]. */
struct look_facts facts_of(enum sched_state state, uint32_t restarts);
void look_at(struct world *w, struct look_facts l);
void look(struct world *w, enum sched_state state, uint32_t restarts);
/* The next attempt runs. */
void begin_attempt(struct world *w);
/* The present one has ended, its processes with it. */
void end_attempt(struct world *w, enum sched_state state, int code);
/* The plugin tells that a task died, while the others still run. */
void one_task_dies(struct world *w);
/* The policy. */
void keep_place(struct world *w, enum keep_place how);
void launch_failed(struct world *w, uint32_t attempt);
/* The attempt fails, by the network, at once. */
void fail_job(struct world *w);
/* A node of it is proven guilty. */
void blame_node(struct world *w, const char *node);
/* It fails by a node. */
void fail_with_node(struct world *w, const char *node);
/* How often this was asked for, and anything. */
int asked(const struct world *w, enum intent intent);
int asked_anything(const struct world *w);
/* To the last intent of the kind. */
void answer(struct world *w, enum intent intent, enum outcome outcome);
/* The requeue is done, and the job waits. */
void grant_requeue(struct world *w, usec_t begin);
const struct sched *sched_of(const struct world *w);
uint64_t decision_seq(const struct world *w);

/* Setups: a job that runs for a minute, in a mode; an interactive one. */
int in_act(void **state);
int in_propose(void **state);
int in_observe(void **state);
int in_interactive(void **state);
#define IN(mode, name) cmocka_unit_test_setup_teardown(name, in_##mode, world_teardown)

#endif
