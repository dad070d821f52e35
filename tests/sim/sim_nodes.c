/* SPDX-License-Identifier: Apache-2.0 */

/* A cluster of 200 nodes over four weeks in virtual time: jobs of many users come and go, fail by
 * their own faults, and by their nodes. Some nodes are lemons, some are only busy. What must hold:
 * most of what is called a lemon is one; nodes that are only busy, or used by one who writes wrong
 * scripts, are not; and a rule that would drain a third of the cluster is stopped. */

#include "base/str.h"
#include "core/core.h"
#include "core/policy/lemon.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NODES     200
#define DAYS      28
#define SEEDS     4
#define LEMONS    4  /* the first nodes */
#define BUSY      20 /* the next ones: one user's, whose scripts are wrong */
#define PRECISION 85 /* percent, of the published method */
#define RECALL    70

struct cluster {
    struct core *core;
    uint64_t seq, random;
    usec_t now;
    uint32_t jobs;
};

static uint32_t draw(struct cluster *c, uint32_t below)
{
    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;
    return (uint32_t)(c->random >> 33) % below;
}

static bool chance(struct cluster *c, uint32_t of_a_million)
{
    return draw(c, 1000000) < of_a_million;
}

static void feed(struct cluster *c, struct event *e)
{
    struct core_output out = {0};

    e->seq = ++c->seq;
    e->time_us = c->now;
    core_step(c->core, e, &out);
    c->seq += out.events.n;
    core_output_done(&out);
}

struct run {
    char key[JOB_NAME_LEN], nodes[64];
    uint32_t uid, n;
};

static void feed_of(struct cluster *c, const struct run *r, enum event_kind kind, uint32_t attempt)
{
    static struct event e;

    memset(&e, 0, sizeof(e));
    e.kind = kind;
    e.attempt = attempt;
    STR_COPY(e.job, r->key);
    if (kind == EVENT_JOB_SEEN) {
        e.seen.scheduled = true;
        e.seen.id = c->jobs;
        e.seen.uid = r->uid;
        e.seen.nodes = r->n;
    }
    if (kind == EVENT_MODE)
        e.mode.mode = MODE_OBSERVE;
    feed(c, &e);
}

static void look(struct cluster *c, const struct run *r, enum sched_state state)
{
    static struct event e;

    memset(&e, 0, sizeof(e));
    e.kind = EVENT_LOOK;
    e.look.state = state;
    STR_COPY(e.job, r->key);
    STR_COPY(e.look.nodes, r->nodes);
    feed(c, &e);
}

static void begin(struct cluster *c, struct run *r)
{
    STR_PRINTF(r->key, "%" PRIu32 "-1", ++c->jobs);
    feed_of(c, r, EVENT_JOB_SEEN, 0);
    feed_of(c, r, EVENT_MODE, 0);
    look(c, r, SCHED_RUNNING);
    feed_of(c, r, EVENT_ATTEMPT_STARTED, 1);
}

static void end(struct cluster *c, const struct run *r, bool fails)
{
    static struct event e;

    memset(&e, 0, sizeof(e));
    e.kind = EVENT_ATTEMPT_EXITED;
    e.attempt = 1;
    e.exited.code = fails;
    STR_COPY(e.job, r->key);
    look(c, r, fails ? SCHED_FAILED : SCHED_COMPLETED);
    feed(c, &e);
    feed_of(c, r, EVENT_ATTEMPT_GONE, 1);
    feed_of(c, r, EVENT_LOGS_DRAINED, 1);
    look(c, r, SCHED_FORGOTTEN);
}

/* The kernel of the node says that a GPU failed. */
static void fault(struct cluster *c, uint32_t node, const char *signature, enum isolation i)
{
    static struct event e;

    memset(&e, 0, sizeof(e));
    e.kind = EVENT_NODE_FACT;
    e.fact.isolation = i;
    e.fact.count = 1;
    e.fact.signal = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL);
    e.fact.signal.layer = LAYER_KERNEL;
    e.fact.signal.role = ROLE_ROOT;
    e.fact.signal.cause = CAUSE_GPU_HARDWARE;
    e.fact.signal.confidence = 90;
    STR_COPY(e.fact.signal.signature, signature);
    STR_PRINTF(e.fact.node, "n%" PRIu32, node);
    feed(c, &e);
}

static void set_terms(struct cluster *c, enum mode mode)
{
    struct event e = {.kind = EVENT_NODE_TERMS};

    e.node_terms = (struct node_terms){.mode = mode,
                                       .nodes = NODES,
                                       .max_drained = NODES / 20,
                                       .drains_per_hour = 4,
                                       .breaker_nodes = NODES / 10};
    feed(c, &e);
}

static struct cluster cluster_of(uint64_t seed, enum mode mode)
{
    struct cluster c = {.core = core_new(), .random = seed * 0x9e3779b97f4a7c15u + 1};

    c.now = (usec_t)1767225600 * USEC_PER_SEC;
    set_terms(&c, mode);
    return c;
}

/* Hardware fails on a lemon every other day, elsewhere every five months. */
static bool node_fails(struct cluster *c, uint32_t node)
{
    return chance(c, node < LEMONS ? 500000 : 6500);
}

/* A day of a node: a job of its own, by one of a few users; on busy ones ten, which mostly fail. */
static void day_of(struct cluster *c, uint32_t node)
{
    bool busy = node >= LEMONS && node < LEMONS + BUSY;
    uint32_t jobs = busy ? 10 : 1;

    for (uint32_t k = 0; k < jobs; k++) {
        struct run r = {.uid = busy ? 2000 : 1000 + draw(c, 12), .n = 1};
        bool bad_node = k == 0 && node_fails(c, node);

        STR_PRINTF(r.nodes, "n%" PRIu32, node);
        begin(c, &r);
        c->now += USEC_PER_DAY / NODES / jobs;
        if (bad_node && chance(c, 600000)) /* else nobody sees why */
            fault(c, node, "gpu.memory", ISOLATION_EXCLUDE);
        end(c, &r, bad_node || chance(c, busy ? 700000 : 20000));
    }
}

static void judge(const struct cluster *c, uint32_t *ret_right, uint32_t *ret_called)
{
    const struct model *m = core_model(c->core);

    for (uint32_t node = 0; node < NODES; node++) {
        struct lemon_score s = {0};
        const struct node_ledger *l;
        char name[16];

        STR_PRINTF(name, "n%" PRIu32, node);
        l = nodes_find(&m->nodes, name);
        if (l)
            lemon_score(m, l, &s);
        *ret_called += s.lemon;
        *ret_right += s.lemon && node < LEMONS;
        if (s.lemon && node >= LEMONS && node < LEMONS + BUSY) {
            printf("%s is only busy, and called a lemon\n", name);
            assert(false);
        }
    }
}

static void find_lemons(void)
{
    uint32_t right = 0, called = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct cluster c = cluster_of(seed, MODE_OBSERVE);

        for (int day = 0; day < DAYS; day++)
            for (uint32_t node = 0; node < NODES; node++)
                day_of(&c, node);
        judge(&c, &right, &called);
        core_free(c.core);
    }
    printf("lemons: %" PRIu32 " of %d found, %" PRIu32 " of those called so\n", right,
           LEMONS * SEEDS, called);
    assert(right * 100 >= called * PRECISION);
    assert(right * 100 >= LEMONS * SEEDS * RECALL);
}

/* A release of the driver says of 60 nodes that they are sick. */
static void stop_a_rule(void)
{
    struct cluster c = cluster_of(7, MODE_ACT);
    const struct model *m = core_model(c.core);
    size_t asked = 0;

    for (uint32_t k = 0; k < NODES * 3 / 10; k++) {
        c.now += 30 * USEC_PER_SEC;
        fault(&c, k, "gpu.nonsense", ISOLATION_DRAIN);
    }
    for (int hour = 0; hour < 24; hour++) {
        struct event tick = {.kind = EVENT_TICK};

        c.now += USEC_PER_HOUR;
        feed(&c, &tick);
    }
    asked = nodes_drained(&m->nodes);
    printf("a rule that wants 60 nodes drained had %zu, and is stopped\n", asked);
    assert(nodes_rule_is_stopped(&m->nodes, "gpu.nonsense"));
    assert(asked == 4);
    core_free(c.core);
}

int main(void)
{
    find_lemons();
    stop_a_rule();
    return 0;
}
