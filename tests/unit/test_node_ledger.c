/* SPDX-License-Identifier: Apache-2.0 */

/* From what witnesses of nodes saw to what is done about the nodes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched_world.h"

#include "base/str.h"

#include <string.h>

#define H USEC_PER_HOUR

static void set_terms(struct world *w, struct node_terms t)
{
    struct event e = {.kind = EVENT_NODE_TERMS, .node_terms = t};

    world_feed(w, e);
}

static int in_nodes_act(void **state)
{
    world_setup(state);
    set_terms(*state, (struct node_terms){.mode = MODE_ACT, .nodes = 100});
    return 0;
}

static int in_nodes_observe(void **state)
{
    world_setup(state);
    set_terms(*state, (struct node_terms){.mode = MODE_OBSERVE, .nodes = 100});
    return 0;
}

#define NODES(name)   cmocka_unit_test_setup_teardown(name, in_nodes_act, world_teardown)
#define OBSERVE(name) cmocka_unit_test_setup_teardown(name, in_nodes_observe, world_teardown)

static struct node_fact fact_of(const char *node, const char *signature, enum isolation i)
{
    struct node_fact f = {.isolation = i, .count = 1};

    f.signal = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL);
    f.signal.layer = LAYER_KERNEL;
    f.signal.role = ROLE_ROOT;
    f.signal.cause = CAUSE_NODE_HARDWARE;
    f.signal.blame = BLAME_NODE;
    f.signal.confidence = 95;
    STR_COPY(f.node, node);
    STR_COPY(f.signal.signature, signature);
    STR_COPY(f.signal.who.node, node);
    return f;
}

static void tell(struct world *w, const struct node_fact *f)
{
    struct event e = {.kind = EVENT_NODE_FACT, .fact = *f};

    world_feed(w, e);
}

static struct node_fact xid_of(const char *node, const char *gpu, int code, enum isolation i)
{
    struct node_fact f = fact_of(node, "gpu.xid", i);

    f.code = code;
    f.signal.cause = i == ISOLATION_REPEATED ? CAUSE_USER_CODE : CAUSE_GPU_HARDWARE;
    f.signal.role = i == ISOLATION_REPEATED ? ROLE_SYMPTOM : ROLE_ROOT;
    f.signal.blame = BLAME_DEVICE;
    STR_COPY(f.signal.who.device, gpu);
    return f;
}

static void xid(struct world *w, const char *node, const char *gpu, int code, enum isolation i)
{
    struct node_fact f = xid_of(node, gpu, code, i);

    tell(w, &f);
}

static void look_at_node(struct world *w, const char *node, bool drain, const char *reason,
                         usec_t booted)
{
    struct event e = {.kind = EVENT_NODE_LOOK,
                      .node_look = {.out = drain, .drain = drain, .booted = booted}};

    STR_COPY(e.node_look.node, node);
    STR_COPY(e.node_look.reason, reason);
    world_feed(w, e);
}

static void order(struct world *w, enum request r, const char *node)
{
    struct event e = {.kind = EVENT_OPERATOR, .request = {.request = r}};

    STR_COPY(e.request.node, node);
    STR_COPY(e.request.who, "root");
    world_feed(w, e);
}

static void answer_node(struct world *w, enum intent intent, enum outcome outcome)
{
    struct event e = {.kind = EVENT_RESULT};
    const struct event *i = world_intent(w, intent);

    assert_non_null(i);
    e.result.intent = i->seq;
    e.result.outcome = outcome;
    world_feed(w, e);
}

static const struct node_ledger *node(const struct world *w, const char *name)
{
    return nodes_find(&core_model(w->core)->nodes, name);
}

static enum isolation stands(const struct world *w, const char *name)
{
    return node(w, name) ? node(w, name)->verdict.isolation : ISOLATION_NONE;
}

static const char *why(const struct world *w, const char *name)
{
    return node(w, name)->verdict.why;
}

#define GPU0 "0000:9b:00"
#define GPU1 "0000:bb:00"

static void a_gpu_off_the_bus_drains_its_node_at_once(void **state)
{
    struct world *w = *state;
    const struct event *i;

    xid(w, "n3", GPU0, 79, ISOLATION_REBOOT);
    assert_int_equal(stands(w, "n3"), ISOLATION_REBOOT);
    assert_string_equal(why(w, "n3"), "GPU 0000:9b:00 has fallen off the bus (Xid 79)");
    i = world_intent(w, INTENT_DRAIN);
    assert_non_null(i);
    assert_string_equal(i->job, "");
    assert_string_equal(i->intended.nodes[0], "n3");
    assert_string_equal(i->intended.reason,
                        "reknit: GPU 0000:9b:00 has fallen off the bus (Xid 79)");
    assert_true(model_awaits(core_model(w->core), i));
    answer_node(w, INTENT_DRAIN, OUTCOME_DONE);
    assert_true(node(w, "n3")->drained);
    assert_false(model_awaits(core_model(w->core), world_intent(w, INTENT_DRAIN)));
    xid(w, "n3", GPU0, 79, ISOLATION_REBOOT); /* it goes on */
    assert_int_equal(world_count_intents(w, INTENT_DRAIN), 1);
    assert_int_equal(world_count(w, EVENT_NODE_VERDICT), 1);
}

static void observed_nodes_are_judged_and_left_alone(void **state)
{
    struct world *w = *state;

    xid(w, "n3", GPU0, 79, ISOLATION_REBOOT);
    assert_int_equal(stands(w, "n3"), ISOLATION_REBOOT);
    world_wait(w, 2 * H);
    assert_null(world_intent(w, INTENT_DRAIN));
}

static void nothing_is_judged_where_nodes_are_nobodys_business(void **state)
{
    struct world *w = *state;

    xid(w, "n3", GPU0, 79, ISOLATION_REBOOT);
    assert_int_equal(world_count(w, EVENT_NODE_VERDICT), 0);
    set_terms(w, (struct node_terms){.mode = MODE_ACT});
    assert_int_equal(stands(w, "n3"), ISOLATION_REBOOT);
    assert_non_null(world_intent(w, INTENT_DRAIN));
}

static void the_heaviest_of_several_stands(void **state)
{
    struct world *w = *state;

    xid(w, "n3", GPU0, 63, ISOLATION_NONE);
    assert_int_equal(stands(w, "n3"), ISOLATION_NONE);
    xid(w, "n3", GPU0, 94, ISOLATION_EXCLUDE);
    assert_int_equal(stands(w, "n3"), ISOLATION_EXCLUDE);
    assert_null(world_intent(w, INTENT_DRAIN));
    xid(w, "n3", GPU0, 48, ISOLATION_RESET);
    xid(w, "n3", GPU0, 45, ISOLATION_NONE);
    assert_int_equal(stands(w, "n3"), ISOLATION_RESET);
    assert_int_equal(world_count_intents(w, INTENT_DRAIN), 1);
}

static void what_keeps_one_job_away_is_over_after_a_day(void **state)
{
    struct world *w = *state;

    xid(w, "n3", GPU0, 94, ISOLATION_EXCLUDE);
    world_wait(w, 23 * H);
    assert_int_equal(stands(w, "n3"), ISOLATION_EXCLUDE);
    world_wait(w, 2 * H);
    assert_int_equal(stands(w, "n3"), ISOLATION_NONE);
}

/* Repeated */

static void a_fault_of_a_program_convicts_a_gpu_the_third_time(void **state)
{
    struct world *w = *state;

    xid(w, "n3", GPU0, 31, ISOLATION_REPEATED);
    world_wait(w, H);
    xid(w, "n3", GPU0, 31, ISOLATION_REPEATED);
    xid(w, "n3", GPU0, 31, ISOLATION_REPEATED); /* of the same burst */
    assert_int_equal(stands(w, "n3"), ISOLATION_NONE);
    world_wait(w, H);
    xid(w, "n3", GPU0, 31, ISOLATION_REPEATED);
    assert_int_equal(stands(w, "n3"), ISOLATION_RESET);
    assert_string_equal(node(w, "n3")->verdict.rule, "gpu.xid 31 repeated");
    world_wait(w, 40 * H); /* it does not get well by waiting */
    assert_int_equal(stands(w, "n3"), ISOLATION_RESET);
}

static void three_times_in_more_than_a_day_are_none(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 4; i++) {
        xid(w, "n3", GPU0, 31, ISOLATION_REPEATED);
        world_wait(w, 13 * H);
    }
    assert_int_equal(world_count(w, EVENT_NODE_VERDICT), 0);
}

static void what_other_gpus_show_too_is_the_program(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 4; i++) {
        xid(w, "n3", GPU0, 13, ISOLATION_REPEATED);
        xid(w, "n3", GPU1, 13, ISOLATION_REPEATED);
        world_wait(w, H);
    }
    assert_int_equal(world_count(w, EVENT_NODE_VERDICT), 0);
}

/* A person must give it back, but nothing stands against it. */
static void a_gpu_is_acquitted_when_others_show_the_same(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 3; i++) {
        xid(w, "n3", GPU0, 31, ISOLATION_REPEATED);
        world_wait(w, MIN);
    }
    assert_int_equal(stands(w, "n3"), ISOLATION_RESET);
    xid(w, "n3", GPU1, 31, ISOLATION_REPEATED);
    assert_int_equal(stands(w, "n3"), ISOLATION_NONE);
}

static void what_it_asks_for_is_said_where_there_is_no_code(void **state)
{
    static const char *const rows[][2] = {
        {"gpu.recovery_reset", "GPU 0000:9b:00 wants to be reset (gpu.recovery_reset)"},
        {"gpu.off_bus", "GPU 0000:9b:00 has fallen off the bus"},
        {"gpu.xid.46", "GPU 0000:9b:00 wants to be reset (gpu.xid.46)"},
    };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct node_fact f = fact_of("n1", rows[i][0], ISOLATION_RESET);

        STR_PRINTF(f.node, "n%zu", i);
        STR_COPY(f.signal.who.device, GPU0);
        tell(w, &f);
        assert_string_equal(why(w, f.node), rows[i][1]);
        assert_string_equal(node(w, f.node)->verdict.rule, rows[i][0]);
    }
}

static void one_unit_of_a_gpu_needs_two(void **state)
{
    struct world *w = *state;
    struct node_fact f = xid_of("n3", GPU0, 13, ISOLATION_REPEATED);

    STR_COPY(f.signal.text, "Graphics Exception on (GPC 2, TPC 1, SM 0): Out Of Range Address");
    tell(w, &f);
    world_wait(w, H);
    STR_COPY(f.signal.text, "Graphics Exception on (GPC 5, TPC 1, SM 0): Out Of Range Address");
    tell(w, &f);
    assert_int_equal(stands(w, "n3"), ISOLATION_NONE);
    world_wait(w, H);
    STR_COPY(f.signal.text, "Graphics Exception on (GPC 2, TPC 1, SM 1): Out Of Range Address");
    tell(w, &f);
    assert_int_equal(stands(w, "n3"), ISOLATION_RESET);
}

static void what_one_job_meets_again_and_again_keeps_that_job_away(void **state)
{
    struct world *w = *state;

    set_terms(w, (struct node_terms){.mode = MODE_ACT, .nodes = 100});
    for (int i = 0; i < 3; i++) {
        xid(w, "n3", GPU0, 31, ISOLATION_REPEATED);
        world_wait(w, 30 * S);
    }
    assert_int_equal(stands(w, "n3"), ISOLATION_EXCLUDE);
    assert_null(world_intent(w, INTENT_DRAIN));
}

/* Clearing */

static void drained(struct world *w, const char *name)
{
    xid(w, name, GPU0, 48, ISOLATION_RESET);
    answer_node(w, INTENT_DRAIN, OUTCOME_DONE);
    look_at_node(w, name, true, node(w, name)->reason, w->now - 10 * H);
    assert_true(node(w, name)->drained);
}

static void clear(struct world *w, const char *name)
{
    struct node_fact f = xid_of(name, GPU0, 154, ISOLATION_NONE);

    f.cleared = true;
    tell(w, &f);
}

static void what_the_driver_takes_back_stands_no_more(void **state)
{
    struct world *w = *state;

    drained(w, "n3");
    clear(w, "n3");
    assert_int_equal(stands(w, "n3"), ISOLATION_NONE);
    assert_true(node(w, "n3")->drained);
    assert_null(world_intent(w, INTENT_CHECK_NODE)); /* nobody could say */
    assert_null(world_intent(w, INTENT_UNDRAIN));
}

static void a_node_that_a_check_finds_well_is_given_back(void **state)
{
    struct world *w = *state;

    set_terms(w, (struct node_terms){.mode = MODE_ACT, .nodes = 100, .check = true});
    drained(w, "n3");
    look_at_node(w, "n3", true, node(w, "n3")->reason, w->now + 60 * S); /* it boots */
    assert_int_equal(stands(w, "n3"), ISOLATION_NONE);
    answer_node(w, INTENT_CHECK_NODE, OUTCOME_UNKNOWN);
    assert_int_equal(world_count_intents(w, INTENT_CHECK_NODE), 1);
    world_wait(w, 11 * MIN);
    assert_int_equal(world_count_intents(w, INTENT_CHECK_NODE), 2);
    answer_node(w, INTENT_CHECK_NODE, OUTCOME_FAILED);
    world_wait(w, 10 * H);
    assert_int_equal(world_count_intents(w, INTENT_CHECK_NODE), 2);
    clear(w, "n3");
    answer_node(w, INTENT_CHECK_NODE, OUTCOME_DONE);
    assert_string_equal(world_intent(w, INTENT_UNDRAIN)->intended.reason, node(w, "n3")->reason);
    answer_node(w, INTENT_UNDRAIN, OUTCOME_DONE);
    assert_false(node(w, "n3")->drained);
}

static void a_person_gives_back_what_was_drained(void **state)
{
    struct world *w = *state;

    drained(w, "n3");
    order(w, REQUEST_RESUME, "n4"); /* nothing is known of it */
    assert_null(world_intent(w, INTENT_UNDRAIN));
    order(w, REQUEST_RESUME, "n3");
    assert_int_equal(stands(w, "n3"), ISOLATION_NONE);
    answer_node(w, INTENT_UNDRAIN, OUTCOME_UNKNOWN);
    world_wait(w, 2 * MIN);
    assert_int_equal(world_count_intents(w, INTENT_UNDRAIN), 2);
    answer_node(w, INTENT_UNDRAIN, OUTCOME_DONE);
    assert_false(node(w, "n3")->drained);
    xid(w, "n3", GPU0, 48, ISOLATION_RESET); /* it was not well */
    assert_int_equal(world_count_intents(w, INTENT_DRAIN), 2);
}

static void whoever_takes_it_back_behind_us_says_that_it_is_well(void **state)
{
    struct world *w = *state;

    drained(w, "n3");
    look_at_node(w, "n3", false, "", w->now - 20 * H);
    assert_false(node(w, "n3")->drained);
    assert_int_equal(stands(w, "n3"), ISOLATION_NONE);
    assert_int_equal(world_count_intents(w, INTENT_DRAIN), 1);
}

static void what_somebody_else_drained_is_his(void **state)
{
    struct world *w = *state;

    look_at_node(w, "n3", true, "NHC: disk", 0);
    xid(w, "n3", GPU0, 79, ISOLATION_REBOOT);
    assert_int_equal(stands(w, "n3"), ISOLATION_REBOOT);
    order(w, REQUEST_RESUME, "n3");
    assert_null(world_intent(w, INTENT_DRAIN));
    assert_null(world_intent(w, INTENT_UNDRAIN));
}

/* A look that was asked for before shows nothing of it yet. */
static void a_look_of_before_a_drain_takes_nothing_back(void **state)
{
    struct world *w = *state;

    xid(w, "n3", GPU0, 79, ISOLATION_REBOOT);
    answer_node(w, INTENT_DRAIN, OUTCOME_DONE);
    look_at_node(w, "n3", false, "", 0);
    assert_true(node(w, "n3")->drained);
    assert_int_equal(stands(w, "n3"), ISOLATION_REBOOT);
}

/* Shared */

static struct node_fact nfs(const char *node, enum isolation i)
{
    struct node_fact f = fact_of(node, "storage.nfs_not_responding", i);

    f.signal.cause = CAUSE_STORAGE;
    STR_COPY(f.signal.who.peer, "nas1");
    return f;
}

static void trouble_of_many_nodes_is_of_what_they_share(void **state)
{
    static const char *const names[] = {"n1", "n2", "n3", "n4"};
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct node_fact f = nfs(names[i], ISOLATION_DRAIN);

        tell(w, &f);
        world_wait(w, 5 * S);
    }
    world_wait(w, 10 * MIN);
    assert_int_equal(world_count(w, EVENT_NODE_VERDICT), 1);
    assert_string_equal(world_last(w, EVENT_NODE_VERDICT)->node_verdict.node, "");
    assert_string_equal(world_last(w, EVENT_NODE_VERDICT)->node_verdict.rule, "shared");
    assert_null(world_intent(w, INTENT_DRAIN));
}

static void storage_of_one_node_is_that_nodes(void **state)
{
    struct world *w = *state;
    struct node_fact f = nfs("n1", ISOLATION_DRAIN);

    tell(w, &f);
    world_wait(w, 30 * S);
    assert_int_equal(stands(w, "n1"), ISOLATION_NONE);
    world_wait(w, 31 * S);
    assert_int_equal(stands(w, "n1"), ISOLATION_DRAIN);
}

static void a_server_that_one_node_misses_convicts_nobody(void **state)
{
    struct world *w = *state;
    struct node_fact f = nfs("n1", ISOLATION_NONE);

    tell(w, &f);
    world_wait(w, 10 * MIN);
    assert_int_equal(world_count(w, EVENT_NODE_VERDICT), 0);
}

/* Bounds */

static void off_the_bus(struct world *w, int n)
{
    char name[16];

    STR_PRINTF(name, "m%03d", n);
    xid(w, name, GPU0, 79, ISOLATION_REBOOT);
}

static void answer_all(struct world *w)
{
    for (size_t i = 0; i < w->log.n; i++) {
        struct event e = {.kind = EVENT_RESULT};

        if (w->log.v[i].kind != EVENT_INTENT)
            continue;
        e.result.intent = w->log.v[i].seq;
        e.result.outcome = OUTCOME_DONE;
        world_feed(w, e);
    }
}

static void no_more_nodes_are_drained_at_once_than_may_be(void **state)
{
    struct world *w = *state;

    set_terms(w, (struct node_terms){.mode = MODE_ACT, .nodes = 100, .max_drained = 2});
    for (int i = 0; i < 4; i++)
        off_the_bus(w, i);
    answer_all(w);
    assert_int_equal(world_count_intents(w, INTENT_DRAIN), 2);
    world_wait(w, H);
    order(w, REQUEST_RESUME, "m000");
    answer_node(w, INTENT_UNDRAIN, OUTCOME_DONE);
    assert_int_equal(world_count_intents(w, INTENT_DRAIN), 3);
}

static void no_more_nodes_are_drained_in_an_hour_than_may_be(void **state)
{
    struct world *w = *state;

    set_terms(w, (struct node_terms){.mode = MODE_ACT, .nodes = 100, .drains_per_hour = 2});
    for (int i = 0; i < 4; i++)
        off_the_bus(w, i);
    answer_all(w);
    assert_int_equal(world_count_intents(w, INTENT_DRAIN), 2);
    world_wait(w, 61 * MIN);
    assert_int_equal(world_count_intents(w, INTENT_DRAIN), 4);
}

static void a_rule_that_wants_too_much_is_stopped(void **state)
{
    struct world *w = *state;

    set_terms(w, (struct node_terms){
                     .mode = MODE_ACT, .nodes = 100, .drains_per_hour = 4, .breaker_nodes = 10});
    for (int i = 0; i < 30; i++)
        off_the_bus(w, i);
    answer_all(w);
    assert_true(nodes_rule_is_stopped(&core_model(w->core)->nodes, "gpu.xid 79"));
    world_wait(w, 5 * H);
    assert_int_equal(world_count_intents(w, INTENT_DRAIN), 4);
    xid(w, "m050", GPU0, 48, ISOLATION_RESET); /* another rule goes on */
    assert_int_equal(world_count_intents(w, INTENT_DRAIN), 5);
    order(w, REQUEST_REARM, "");
    assert_false(nodes_rule_is_stopped(&core_model(w->core)->nodes, "gpu.xid 79"));
    assert_true(world_count_intents(w, INTENT_DRAIN) > 5);
}

static void while_all_is_frozen_no_node_is_touched(void **state)
{
    struct world *w = *state;

    operate(w, REQUEST_FREEZE, 0);
    xid(w, "n3", GPU0, 79, ISOLATION_REBOOT);
    assert_int_equal(stands(w, "n3"), ISOLATION_REBOOT);
    assert_null(world_intent(w, INTENT_DRAIN));
    operate(w, REQUEST_THAW, 0);
    assert_non_null(world_intent(w, INTENT_DRAIN));
}

static void what_is_refused_is_given_up(void **state)
{
    struct world *w = *state;

    xid(w, "n3", GPU0, 79, ISOLATION_REBOOT);
    for (int i = 0; i < 3; i++) {
        answer_node(w, INTENT_DRAIN, OUTCOME_FAILED);
        world_wait(w, 11 * MIN);
    }
    world_wait(w, 3 * H);
    assert_int_equal(world_count_intents(w, INTENT_DRAIN), 3);
}

static void what_was_not_done_is_no_try(void **state)
{
    struct world *w = *state;

    set_terms(w, (struct node_terms){.mode = MODE_ACT, .nodes = 100, .drains_per_hour = 2});
    xid(w, "n3", GPU0, 79, ISOLATION_REBOOT);
    for (int i = 0; i < 6; i++) {
        answer_node(w, INTENT_DRAIN, OUTCOME_VOID);
        world_wait(w, 2 * MIN);
    }
    assert_int_equal(world_count_intents(w, INTENT_DRAIN), 7);
    answer_node(w, INTENT_DRAIN, OUTCOME_DONE);
    off_the_bus(w, 1); /* the second in this hour */
    assert_int_equal(world_count_intents(w, INTENT_DRAIN), 8);
}

/* Evidence of jobs */

static void a_fact_is_evidence_of_who_runs_there(void **state)
{
    struct world *w = *state;

    xid(w, "n3", GPU0, 79, ISOLATION_REBOOT);
    assert_true(world_job(w)->attempt.root_at != USEC_NEVER);
}

static void a_fact_is_no_evidence_of_who_runs_elsewhere(void **state)
{
    struct world *w = *state;

    xid(w, "n5", GPU0, 79, ISOLATION_REBOOT);
    assert_true(world_job(w)->attempt.root_at == USEC_NEVER);
}

static void what_happened_before_an_attempt_is_no_evidence_of_it(void **state)
{
    struct world *w = *state;
    struct node_fact f = xid_of("n3", GPU0, 79, ISOLATION_REBOOT);

    f.signal.time_us = w->now - 2 * H;
    tell(w, &f);
    assert_true(world_job(w)->attempt.root_at == USEC_NEVER);
    assert_true(node(w, "n3")->seen.v[0].at == f.signal.time_us);
}

static void an_old_fact_of_a_node_that_booted_since_stands_no_more(void **state)
{
    struct world *w = *state;
    struct node_fact f = xid_of("n3", GPU0, 79, ISOLATION_REBOOT);

    look_at_node(w, "n3", true, "reknit: of before", w->now - H);
    f.signal.time_us = w->now - 2 * H;
    tell(w, &f);
    assert_int_equal(stands(w, "n3"), ISOLATION_NONE);
}

static void no_more_nodes_are_kept_than_may_be(void **state)
{
    struct world *w = *state;

    set_terms(w, (struct node_terms){.mode = MODE_OFF});
    for (int i = 0; i < LEDGER_NODES_MAX + 10; i++) {
        struct event e = {.kind = EVENT_NODE_LOOK};

        STR_PRINTF(e.node_look.node, "x%d", i);
        w->now++;
        world_feed(w, e);
    }
    assert_int_equal(core_model(w->core)->nodes.list.n, LEDGER_NODES_MAX);
    assert_null(node(w, "x0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NODES(a_gpu_off_the_bus_drains_its_node_at_once),
        OBSERVE(observed_nodes_are_judged_and_left_alone),
        WORLD_TEST(nothing_is_judged_where_nodes_are_nobodys_business),
        NODES(the_heaviest_of_several_stands),
        NODES(what_keeps_one_job_away_is_over_after_a_day),
        NODES(a_fault_of_a_program_convicts_a_gpu_the_third_time),
        NODES(three_times_in_more_than_a_day_are_none),
        NODES(what_other_gpus_show_too_is_the_program),
        NODES(a_gpu_is_acquitted_when_others_show_the_same),
        NODES(what_it_asks_for_is_said_where_there_is_no_code),
        NODES(one_unit_of_a_gpu_needs_two),
        IN(act, what_one_job_meets_again_and_again_keeps_that_job_away),
        NODES(what_the_driver_takes_back_stands_no_more),
        NODES(a_node_that_a_check_finds_well_is_given_back),
        NODES(a_person_gives_back_what_was_drained),
        NODES(whoever_takes_it_back_behind_us_says_that_it_is_well),
        NODES(what_somebody_else_drained_is_his),
        NODES(a_look_of_before_a_drain_takes_nothing_back),
        NODES(trouble_of_many_nodes_is_of_what_they_share),
        NODES(storage_of_one_node_is_that_nodes),
        NODES(a_server_that_one_node_misses_convicts_nobody),
        NODES(no_more_nodes_are_drained_at_once_than_may_be),
        NODES(no_more_nodes_are_drained_in_an_hour_than_may_be),
        NODES(a_rule_that_wants_too_much_is_stopped),
        NODES(while_all_is_frozen_no_node_is_touched),
        NODES(what_is_refused_is_given_up),
        NODES(what_was_not_done_is_no_try),
        IN(act, a_fact_is_evidence_of_who_runs_there),
        IN(act, a_fact_is_no_evidence_of_who_runs_elsewhere),
        IN(act, what_happened_before_an_attempt_is_no_evidence_of_it),
        NODES(an_old_fact_of_a_node_that_booted_since_stands_no_more),
        NODES(no_more_nodes_are_kept_than_may_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
