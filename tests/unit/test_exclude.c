/* SPDX-License-Identifier: Apache-2.0 */

/* What is kept out of the next attempt, and what is said when nothing can be. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched_world.h"

#include "base/str.h"

#include <string.h>

static void give_gpus(struct world *w, uint32_t n)
{
    struct job_facts facts = {.n_devices = n};

    for (uint32_t i = 0; i < n; i++)
        STR_PRINTF(facts.devices[i], "0000:%02x:00", i);
    world_seen(w, &facts);
}

static void allow(struct world *w, uint32_t least)
{
    struct policy p;

    policy_default(&p);
    p.exclude_devices = true;
    p.min_devices = least;
    p.max_without_progress = p.max_without_step = 100;
    p.cause[CAUSE_GPU_HARDWARE].retries = 100;
    world_policy(w, &p);
}

/* An attempt that a GPU ended; "" = which one is not known. */
static void lose_gpu(struct world *w, const char *device, int32_t rank)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL);

    s.role = ROLE_ROOT;
    s.cause = CAUSE_GPU_HARDWARE;
    s.confidence = 95;
    s.advice = ADVICE_RESTART_EXCLUDING;
    s.who.rank = rank;
    STR_COPY(s.signature, "gpu.xid.79");
    STR_COPY(s.who.device, device);
    world_wait(w, USEC_PER_MIN);
    world_start(w);
    world_signal(w, s);
    world_die(w, 1);
}

static void check_kept_out(const struct world *w, const char *list)
{
    const struct intent_facts *start = &world_intent(w, INTENT_START)->intended;
    _cleanup_strbuf_ struct strbuf text = {0};

    for (uint32_t i = 0; i < start->n_without; i++)
        strbuf_addf(&text, "%s%s", i > 0 ? " " : "", start->without[i]);
    assert_string_equal(strbuf_str(&text), list);
}

static void check_why(const struct world *w, const char *end)
{
    if (!str_endswith(world_decision(w)->why, end))
        fail_msg("'%s' does not end with '%s'", world_decision(w)->why, end);
}

static void a_bad_gpu_stays_out_of_all_later_attempts(void **state)
{
    struct world *w = *state;

    allow(w, 1);
    give_gpus(w, 4);
    lose_gpu(w, "0000:02:00", RANK_NONE);
    assert_int_equal(world_decision(w)->action, ACTION_RESTART_EXCLUDING);
    check_why(w, "; without GPU 0000:02:00, 3 of 4 are left");
    check_kept_out(w, "0000:02:00");
    world_attempt(w, 1, 5, "nccl", CAUSE_NETWORK);
    assert_int_equal(world_decision(w)->action, ACTION_RESTART);
    check_kept_out(w, "0000:02:00");
    lose_gpu(w, "0000:00:00", RANK_NONE);
    check_why(w, "; without GPU 0000:00:00, 2 of 4 are left");
    check_kept_out(w, "0000:02:00 0000:00:00");
    world_interrupt(w, 2);
    give_gpus(w, 4); /* a new run begins with all of them */
    w->attempt = 0;
    world_attempt(w, 1, 5, "nccl", CAUSE_NETWORK);
    check_kept_out(w, "");
}

static void a_start_that_failed_keeps_it_out_too(void **state)
{
    struct world *w = *state;

    allow(w, 1);
    give_gpus(w, 4);
    lose_gpu(w, "0000:02:00", RANK_NONE);
    world_result(w, world_intent(w, INTENT_START)->seq, OUTCOME_FAILED, "no memory");
    world_check_restart(w, "start-failed", 1, 3);
    check_kept_out(w, "0000:02:00");
}

static void it_stays_in_unless_the_policy_lets_it_out(void **state)
{
    struct world *w = *state;

    give_gpus(w, 4);
    lose_gpu(w, "0000:02:00", RANK_NONE);
    assert_int_equal(world_decision(w)->action, ACTION_RESTART);
    check_why(w, "; GPU 0000:02:00 stays in (exclude_devices is false): test it, or leave it out");
    check_kept_out(w, "");
}

static void it_stays_in_when_too_few_would_be_left(void **state)
{
    struct world *w = *state;

    allow(w, 3);
    give_gpus(w, 4);
    lose_gpu(w, "0000:02:00", RANK_NONE);
    check_kept_out(w, "0000:02:00");
    lose_gpu(w, "0000:03:00", RANK_NONE);
    check_why(w, "; GPU 0000:03:00 stays in: 2 of 4 would be left, min_devices is 3; replace it");
    check_kept_out(w, "0000:02:00");
}

static void the_last_gpu_is_never_kept_out(void **state)
{
    struct world *w = *state;

    allow(w, 0);
    give_gpus(w, 1);
    lose_gpu(w, "0000:00:00", RANK_NONE);
    check_why(w, "; GPU 0000:00:00 stays in: 0 of 1 would be left, min_devices is 1; replace it");
    check_kept_out(w, "");
}

static void what_the_job_does_not_have_cannot_be_kept_out(void **state)
{
    struct world *w = *state;

    allow(w, 1);
    lose_gpu(w, "0000:02:00", RANK_NONE);
    check_why(w, "; GPU 0000:02:00 stays in: which GPUs the job has is not known; leave it out");
    world_interrupt(w, 2);
    give_gpus(w, 2);
    w->attempt = 0;
    lose_gpu(w, "0000:02:00", RANK_NONE);
    check_why(w, "; GPU 0000:02:00 is not among those the job has");
    check_kept_out(w, "");
    lose_gpu(w, "0000:01:00", RANK_NONE);
    lose_gpu(w, "0000:01:00", RANK_NONE); /* from a kernel log that also shows the past */
    check_why(w, "; GPU 0000:01:00 is not among those the job has");
    check_kept_out(w, "0000:01:00");
}

static void without_a_name_a_person_has_to_look(void **state)
{
    struct world *w = *state;

    allow(w, 1);
    give_gpus(w, 4);
    lose_gpu(w, "", 7);
    check_why(w, "; which GPU rank 7 has is not known, so it stays in: test them");
    lose_gpu(w, "", RANK_NONE);
    check_why(w, "; this machine is to blame, and is the only one: test it, or move the job");
    check_kept_out(w, "");
}

static void a_stop_keeps_nothing_out(void **state)
{
    struct world *w = *state;
    struct policy p;

    policy_default(&p);
    p.exclude_devices = true;
    p.cause[CAUSE_GPU_HARDWARE].retries = 0;
    world_policy(w, &p);
    give_gpus(w, 4);
    lose_gpu(w, "0000:02:00", RANK_NONE);
    world_check_stop(w, "never-retried", 0, 0);
    assert_int_equal(world_decision(w)->n_without, 0);
}

/* Nodes of a scheduler's job */

static void only_nodes_of_the_job_are_blamed(void **state)
{
    struct world *w = *state;
    const struct incident *i;

    fail_with_node(w, "n9");
    i = &world_last(w, EVENT_VERDICT)->incident;
    assert_int_equal(i->culprits.n_nodes, 0);
    assert_string_equal(i->ruled_out[i->n_ruled_out - 1].what, "node n9");
    assert_int_equal(world_decision(w)->action, ACTION_RESTART);
    assert_int_equal(world_decision(w)->n_nodes, 0);
}

static void a_node_is_known_by_the_name_of_its_host(void **state)
{
    struct world *w = *state;

    fail_with_node(w, "n2.cluster.example.org");
    assert_string_equal(world_last(w, EVENT_VERDICT)->incident.culprits.nodes[0], "n2");
    assert_int_equal(world_decision(w)->action, ACTION_RESTART_EXCLUDING);
    assert_string_equal(world_decision(w)->nodes[0], "n2");
}

/* Slurm has queued it again when the verdict comes, and shows no nodes any more. */
static void the_nodes_of_the_attempt_are_remembered(void **state)
{
    struct world *w = *state;
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_SCHEDULER);

    s.role = ROLE_ROOT;
    s.cause = CAUSE_NODE_FAILURE;
    s.advice = ADVICE_RESTART_EXCLUDING;
    s.confidence = 98;
    STR_COPY(s.signature, "scheduler.node_fail");
    STR_COPY(s.who.node, "n3");
    look(w, SCHED_PENDING, 1);
    world_signal(w, s);
    world_die(w, 1);
    assert_int_equal(world_decision(w)->n_nodes, 1);
    assert_string_equal(world_decision(w)->nodes[0], "n3");
    assert_int_equal(world_intent(w, INTENT_AMEND)->intended.n_nodes, 1);
}

static void an_exclusion_expires(void **state)
{
    struct world *w = *state;

    fail_with_node(w, "n2");
    grant_requeue(w, 0);
    begin_attempt(w);
    assert_int_equal(sched_of(w)->n_kept, 1);
    world_wait(w, 59 * MIN);
    fail_with_node(w, "n3");
    assert_int_equal(world_decision(w)->n_nodes, 2); /* the old and the new one */
    world_wait(w, 2 * MIN);
    grant_requeue(w, 0);
    begin_attempt(w);
    assert_int_equal(sched_of(w)->n_kept, 1);
    assert_string_equal(sched_of(w)->kept[0].node, "n3");
}

static void a_node_that_fails_again_is_kept_out_again(void **state)
{
    struct world *w = *state;

    fail_with_node(w, "n2");
    grant_requeue(w, 0);
    begin_attempt(w);
    world_wait(w, 2 * USEC_PER_HOUR);
    fail_with_node(w, "n2");
    assert_int_equal(sched_of(w)->n_kept, 1);
    assert_true(sched_of(w)->kept[0].until > w->now);
}

/* By a GPU, as its own text says, which names no node. */
static void fail_where_it_ran(struct world *w, const char *nodes, const char *required)
{
    struct signal s = signal_make(SIGNAL_HIT, PROVENANCE_JOB_TEXT);
    struct look_facts l = facts_of(SCHED_RUNNING, 0);

    s.role = ROLE_ROOT;
    s.cause = CAUSE_GPU_HARDWARE;
    s.blame = BLAME_NODE;
    s.confidence = 95;
    s.advice = ADVICE_RESTART_EXCLUDING;
    STR_COPY(s.signature, "cuda.ecc");
    STR_COPY(l.nodes, nodes);
    STR_COPY(l.required, required);
    look_at(w, l);
    world_signal(w, s);
    l.state = SCHED_FAILED;
    look_at(w, l);
    world_die(w, 1);
}

static void the_only_node_is_the_one_that_is_meant(void **state)
{
    struct world *w = *state;

    fail_where_it_ran(w, "n7", "");
    assert_int_equal(world_decision(w)->action, ACTION_RESTART_EXCLUDING);
    assert_int_equal(world_decision(w)->n_nodes, 1);
    assert_string_equal(world_decision(w)->nodes[0], "n7");
}

static void of_several_nodes_none_is_meant(void **state)
{
    fail_where_it_ran(*state, "n[7-8]", "");
    assert_int_equal(world_decision(*state)->n_nodes, 0);
}

static void of_a_list_of_nodes_none_is_meant(void **state)
{
    fail_where_it_ran(*state, "n7,n8", "");
    assert_int_equal(world_decision(*state)->n_nodes, 0);
}

static void the_only_node_stays_in_if_it_is_required(void **state)
{
    struct world *w = *state;

    fail_where_it_ran(w, "n7", "n7");
    assert_int_equal(world_decision(w)->action, ACTION_RESTART);
    assert_int_equal(world_decision(w)->n_nodes, 0);
    assert_non_null(strstr(world_decision(w)->why, "its user requires n7, which stays in"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_bad_gpu_stays_out_of_all_later_attempts),
        WORLD_TEST(a_start_that_failed_keeps_it_out_too),
        WORLD_TEST(it_stays_in_unless_the_policy_lets_it_out),
        WORLD_TEST(it_stays_in_when_too_few_would_be_left),
        WORLD_TEST(the_last_gpu_is_never_kept_out),
        WORLD_TEST(what_the_job_does_not_have_cannot_be_kept_out),
        WORLD_TEST(without_a_name_a_person_has_to_look),
        WORLD_TEST(a_stop_keeps_nothing_out),
        IN(act, only_nodes_of_the_job_are_blamed),
        IN(act, a_node_is_known_by_the_name_of_its_host),
        IN(act, the_nodes_of_the_attempt_are_remembered),
        IN(act, an_exclusion_expires),
        IN(act, a_node_that_fails_again_is_kept_out_again),
        IN(act, the_only_node_is_the_one_that_is_meant),
        IN(act, of_several_nodes_none_is_meant),
        IN(act, of_a_list_of_nodes_none_is_meant),
        IN(act, the_only_node_stays_in_if_it_is_required),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
