/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched_world.h"

#include "base/str.h"

#include <signal.h>

struct event of_job(const struct world *w, enum event_kind kind)
{
    struct event e = {.kind = kind};

    STR_COPY(e.job, w->job);
    return e;
}

void set_mode(struct world *w, enum mode mode)
{
    struct event e = of_job(w, EVENT_MODE);

    e.mode.mode = mode;
    world_feed(w, e);
}

void set_brakes(struct world *w, struct brakes b)
{
    struct event e = {.kind = EVENT_BRAKES};

    e.brakes = b;
    world_feed(w, e);
}

void operate(struct world *w, enum request what, uint64_t of)
{
    struct event e = of_job(w, EVENT_OPERATOR);

    if (what == REQUEST_FREEZE || what == REQUEST_THAW)
        e.job[0] = '\0';
    e.request = (struct request_facts){.request = what, .of = of, .signal = SIGTERM};
    world_feed(w, e);
}

struct look_facts facts_of(enum sched_state state, uint32_t restarts)
{
    struct look_facts l = {.state = state, .restarts = restarts, .requeueable = true, .tasks = 4};

    if (state != SCHED_PENDING)
        STR_COPY(l.nodes, "n[1-4]");
    return l;
}

void look_at(struct world *w, struct look_facts l)
{
    struct event e = of_job(w, EVENT_LOOK);

    e.look = l;
    world_feed(w, e);
}

void look(struct world *w, enum sched_state state, uint32_t restarts)
{
    look_at(w, facts_of(state, restarts));
}

void begin_attempt(struct world *w)
{
    look(w, SCHED_RUNNING, w->attempt);
    world_start(w);
}

void end_attempt(struct world *w, enum sched_state state, int code)
{
    look(w, state, w->attempt - 1);
    world_die(w, code);
}

void one_task_dies(struct world *w)
{
    struct signal s = signal_make(SIGNAL_EXIT, PROVENANCE_SPANK);

    STR_COPY(s.who.tasks, "2");
    STR_COPY(s.who.node, "n2");
    s.exit = (struct exit_fact){.pid = 7, .code = 1};
    world_signal(w, s);
}

void keep_place(struct world *w, enum keep_place how)
{
    struct policy p;

    policy_default(&p);
    p.keep_place = how;
    world_policy(w, &p);
}

void launch_failed(struct world *w, uint32_t attempt)
{
    struct event e = of_job(w, EVENT_LAUNCH_FAILED);

    e.attempt = attempt;
    e.result.outcome = OUTCOME_FAILED;
    STR_COPY(e.result.detail, "the credential was revoked");
    world_feed(w, e);
}

static int setup_in_mode(void **state, struct job_facts facts, enum mode mode)
{
    struct world *w;

    world_setup(state);
    w = *state;
    facts.scheduled = true;
    STR_COPY(facts.partition, "batch");
    world_seen(w, &facts);
    set_mode(w, mode);
    set_brakes(w, (struct brakes){.early_start = 2 * S,
                                  .exclusion_life = USEC_PER_HOUR,
                                  .proposal_life = 4 * MIN});
    begin_attempt(w);
    world_wait(w, MIN);
    return 0;
}

int in_act(void **state)
{
    return setup_in_mode(state, (struct job_facts){0}, MODE_ACT);
}

int in_propose(void **state)
{
    return setup_in_mode(state, (struct job_facts){0}, MODE_PROPOSE);
}

int in_observe(void **state)
{
    return setup_in_mode(state, (struct job_facts){0}, MODE_OBSERVE);
}

int in_interactive(void **state)
{
    return setup_in_mode(state, (struct job_facts){.interactive = true}, MODE_ACT);
}

/* The attempt fails, by the network, at once. */
void fail_job(struct world *w)
{
    world_root(w, "net.link", CAUSE_NETWORK);
    end_attempt(w, SCHED_FAILED, 1);
}

void blame_node(struct world *w, const char *node)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL);

    s.role = ROLE_ROOT;
    s.cause = CAUSE_NODE_HARDWARE;
    s.confidence = 95;
    s.advice = ADVICE_RESTART_EXCLUDING;
    STR_COPY(s.signature, "node.mce");
    STR_COPY(s.who.node, node);
    world_signal(w, s);
}

void fail_with_node(struct world *w, const char *node)
{
    blame_node(w, node);
    end_attempt(w, SCHED_FAILED, 1);
}

int asked(const struct world *w, enum intent intent)
{
    return world_count_intents(w, intent);
}

int asked_anything(const struct world *w)
{
    return world_count(w, EVENT_INTENT);
}

void answer(struct world *w, enum intent intent, enum outcome outcome)
{
    world_result(w, world_intent(w, intent)->seq, outcome, "as the test wants");
}

/* The requeue is done, and the job waits. */
void grant_requeue(struct world *w, usec_t begin)
{
    struct look_facts l = facts_of(SCHED_PENDING, w->attempt);

    answer(w, INTENT_REQUEUE, OUTCOME_DONE);
    l.begin = begin;
    look_at(w, l);
}

const struct sched *sched_of(const struct world *w)
{
    return &world_job(w)->sched;
}

uint64_t decision_seq(const struct world *w)
{
    return world_last(w, EVENT_DECISION)->seq;
}
