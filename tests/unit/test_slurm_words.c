/* SPDX-License-Identifier: Apache-2.0 */

/* Slurm's numbers and host lists in the words of docs/ADAPTER.md. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hostlist.h"
#include "base/str.h"
#include "slurm/adapter.h"
#include "slurm/hosts.h"
#include "slurm/text.h"
#include "slurm/words.h"

#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <string.h>

static void test_states_of_jobs(void **state)
{
    static const struct {
        uint32_t slurm;
        enum slurm_state want;
    } cases[] = {
        {JOB_PENDING, SLURM_STATE_PENDING},
        {JOB_PENDING | JOB_COMPLETING, SLURM_STATE_PENDING},
        {JOB_PENDING | JOB_SPECIAL_EXIT, SLURM_STATE_SPECIAL_EXIT},
        {JOB_RUNNING, SLURM_STATE_RUNNING},
        {JOB_RUNNING | JOB_CONFIGURING, SLURM_STATE_CONFIGURING},
        {JOB_RUNNING | JOB_POWER_UP_NODE, SLURM_STATE_CONFIGURING},
        {JOB_RUNNING | JOB_STOPPED, SLURM_STATE_SUSPENDED},
        {JOB_SUSPENDED, SLURM_STATE_SUSPENDED},
        {JOB_COMPLETE | JOB_COMPLETING, SLURM_STATE_COMPLETED},
        {JOB_CANCELLED | JOB_COMPLETING, SLURM_STATE_CANCELLED},
        {JOB_FAILED | JOB_LAUNCH_FAILED, SLURM_STATE_FAILED},
        {JOB_TIMEOUT, SLURM_STATE_TIMEOUT},
        {JOB_NODE_FAIL, SLURM_STATE_NODE_FAIL},
        {JOB_NODE_FAIL | JOB_REQUEUE, SLURM_STATE_REQUEUED},
        {JOB_PREEMPTED, SLURM_STATE_PREEMPTED},
        {JOB_BOOT_FAIL, SLURM_STATE_BOOT_FAIL},
        {JOB_DEADLINE, SLURM_STATE_DEADLINE},
        {JOB_OOM, SLURM_STATE_OUT_OF_MEMORY},
        {JOB_END, SLURM_STATE_UNKNOWN}, /* one that a later release invents */
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(words_job_state(cases[i].slurm), cases[i].want);
}

static void test_reasons(void **state)
{
    assert_string_equal(words_reason(WAIT_TIME), "BeginTime");
    assert_string_equal(words_reason_kind(WAIT_TIME), "time");
    assert_string_equal(words_reason_kind(FAIL_BAD_CONSTRAINTS), "constraints");
    assert_string_equal(words_reason_kind(WAIT_DEP_INVALID), "dependency-never");
    assert_string_equal(words_reason_kind(WAIT_HELD_USER), "held-by-user");
    assert_string_equal(words_reason_kind(WAIT_QOS_MAX_JOB_PER_USER), "limits");
    assert_string_equal(words_reason_kind(WAIT_PART_TIME_LIMIT), "limits");
    assert_string_equal(words_reason_kind(FAIL_SYSTEM), "other");
    assert_string_equal(words_reason_kind(1000000), "other");
}

static bool has_flag(uint32_t node_state, const char *word)
{
    json_t *flags = words_node_flags(node_state);
    const json_t *flag;
    bool has = false;
    size_t i;

    json_array_foreach (flags, i, flag)
        has = has || streq(json_string_value(flag), word);
    json_decref(flags);
    return has;
}

static void test_states_of_nodes(void **state)
{
    assert_string_equal(words_node_state(NODE_STATE_IDLE | NODE_STATE_DRAIN), "idle");
    assert_string_equal(words_node_state(NODE_STATE_MIXED), "mixed");
    assert_string_equal(words_node_state(NODE_STATE_DOWN), "down");
    assert_string_equal(words_node_state(NODE_STATE_FUTURE), "unknown");
    assert_true(has_flag(NODE_STATE_IDLE | NODE_STATE_DRAIN, "drain"));
    assert_false(has_flag(NODE_STATE_IDLE, "drain"));
    assert_true(has_flag(NODE_STATE_ALLOCATED | NODE_STATE_NO_RESPOND, "not-responding"));

    assert_true(words_node_is_usable(NODE_STATE_IDLE));
    assert_true(words_node_is_usable(NODE_STATE_ALLOCATED | NODE_STATE_COMPLETING));
    assert_true(words_node_is_usable(NODE_STATE_IDLE | NODE_STATE_POWERED_DOWN));
    assert_false(words_node_is_usable(NODE_STATE_IDLE | NODE_STATE_DRAIN));
    assert_false(words_node_is_usable(NODE_STATE_MIXED | NODE_STATE_FAIL));
    assert_true(words_node_is_usable(NODE_STATE_IDLE | NODE_STATE_NO_RESPOND)); /* for now */
    assert_false(words_node_is_usable(NODE_STATE_DOWN));
    assert_true(words_node_is_usable(NODE_STATE_UNKNOWN)); /* yet */
}

static void test_a_broken_conversation_is_unknown_only_if_something_was_asked(void **state)
{
    static const int broken[] = {
        SLURMCTLD_COMMUNICATIONS_RECEIVE_ERROR,
        SLURMCTLD_COMMUNICATIONS_SEND_ERROR,
        SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT,
        SLURM_PROTOCOL_AUTHENTICATION_ERROR,
        ESLURM_AUTH_CRED_INVALID,
        ETIMEDOUT,
        ECONNRESET,
    };

    for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
        assert_int_equal(words_fault(broken[i], true), FAULT_UNKNOWN);
        assert_int_equal(words_fault(broken[i], false), FAULT_UNREACHABLE);
    }
    assert_int_equal(words_fault(SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR, true),
                     FAULT_UNREACHABLE);
    assert_int_equal(words_fault(ESLURM_IN_STANDBY_MODE, true), FAULT_UNREACHABLE);
    assert_int_equal(words_fault(0, true), FAULT_UNKNOWN); /* it failed and does not say how */
    assert_int_equal(words_fault(ESLURM_JOB_PENDING, true), FAULT_ALREADY_DONE);
    assert_int_equal(words_fault(ESLURM_JOB_PENDING, false), FAULT_NO_SUCH_JOB);
    assert_int_equal(words_fault(ESLURM_DISABLED, true), FAULT_NOT_ALLOWED);
    assert_int_equal(words_fault(ESLURM_INVALID_NODE_NAME, true), FAULT_INVALID_REQUEST);
    assert_int_equal(words_fault(ESLURM_NODES_BUSY, true), FAULT_FAILED);
}

static void assert_hosts(const char *list, size_t n, const char *first, const char *last)
{
    json_t *names = hosts_json(list);

    assert_int_equal(json_array_size(names), n);
    if (n > 0) {
        assert_string_equal(json_string_value(json_array_get(names, 0)), first);
        assert_string_equal(json_string_value(json_array_get(names, n - 1)), last);
    }
    json_decref(names);
}

static void test_host_lists_are_expanded_within_bounds(void **state)
{
    assert_hosts(NULL, 0, NULL, NULL);
    assert_hosts("", 0, NULL, NULL);
    assert_hosts("n1", 1, "n1", "n1");
    assert_hosts("n[1-3,07],gpu-a[1-2]", 6, "n1", "gpu-a2");
    assert_hosts("n[00001-60000]", 60000, "n00001", "n60000");
    assert_hosts("a[1-60000],b[1-60000]", TEXT_HOSTS_MAX, "a1", "b5536");
}

static void assert_hosts_text(const char *names, int result, const char *want)
{
    json_t *j = json_loads(names, JSON_DECODE_ANY, NULL);
    char *text = NULL;

    assert_int_equal(hosts_text(j, &text), result);
    if (want)
        assert_string_equal(text, want);
    free(text);
    json_decref(j);
}

static void test_only_names_are_taken_as_hosts(void **state)
{
    assert_hosts_text("[]", 0, "");
    assert_hosts_text("[\"n1\",\"gpu-a.b_2\"]", 0, "n1,gpu-a.b_2");
    assert_hosts_text("[\"n[1-9]\"]", -EINVAL, NULL);
    assert_hosts_text("[\"n1,n2\"]", -EINVAL, NULL);
    assert_hosts_text("[\"\"]", -EINVAL, NULL);
    assert_hosts_text("[\"-a\"]", -EINVAL, NULL);
    assert_hosts_text("[\"/etc/passwd\"]", -EINVAL, NULL);
    assert_hosts_text("[1]", -EINVAL, NULL);
    assert_hosts_text("\"n1\"", -EINVAL, NULL);
}

static json_t *record_of(job_info_t *j)
{
    static char no_user[] = "alice";

    j->job_id = 42;
    j->user_name = no_user;
    return job_json(j);
}

/* Every second of many nodes: so the list is one of ranges, as a fragmented cluster makes it. */
static void add_nodes(struct strbuf *list, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        strbuf_addf(list, "%s%u", i > 0 ? "," : "n[", 10000 + 2 * i);
    strbuf_adds(list, "]");
}

static const char *text_of(const json_t *record, const char *name)
{
    return json_string_value(json_object_get(record, name));
}

static void test_a_long_list_of_nodes_is_told_whole(void **state)
{
    _cleanup_strbuf_ struct strbuf nodes = {0};
    job_info_t job = {0};
    json_t *r;

    add_nodes(&nodes, 5000); /* 30 KB */
    job.nodes = nodes.s;
    r = record_of(&job);
    assert_string_equal(text_of(r, "nodes_text"), nodes.s);
    assert_int_equal(json_array_size(json_object_get(r, "nodes")), 5000);
    assert_int_equal(json_array_size(json_object_get(r, "cut")), 0);
    json_decref(r);
}

/* Whoever is asked whether a node is on it must not say no, only because the list was cut. */
static void test_one_that_is_too_long_is_cut_behind_a_name(void **state)
{
    _cleanup_strbuf_ struct strbuf nodes = {0};
    job_info_t job = {0};
    const char *text;
    json_t *r;

    add_nodes(&nodes, 20000);
    job.nodes = nodes.s;
    r = record_of(&job);
    text = text_of(r, "nodes_text");
    assert_true(strlen(text) > 60000 && strlen(text) <= TEXT_LIST_MAX);
    assert_true(hostlist_is_cut(text));
    assert_true(hostlist_has(text, "n10000"));
    assert_true(hostlist_has(text, "n30000"));
    assert_string_equal(json_string_value(json_array_get(json_object_get(r, "cut"), 0)),
                        "nodes_text");
    json_decref(r);
}

static void test_what_is_only_a_beginning_is_named(void **state)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    job_info_t job = {0};
    json_t *r;

    strbuf_adds(&text, "afterok:1");
    for (unsigned i = 0; text.len < TEXT_LIST_MAX; i++)
        strbuf_addf(&text, ":%u", 100000 + i % 100);
    job.dependency = text.s;
    job.comment = "short";
    r = record_of(&job);
    assert_int_equal(json_array_size(json_object_get(r, "cut")), 1);
    assert_string_equal(json_string_value(json_array_get(json_object_get(r, "cut"), 0)),
                        "dependency");
    json_decref(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states_of_jobs),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_states_of_nodes),
        cmocka_unit_test(test_a_broken_conversation_is_unknown_only_if_something_was_asked),
        cmocka_unit_test(test_host_lists_are_expanded_within_bounds),
        cmocka_unit_test(test_only_names_are_taken_as_hosts),
        cmocka_unit_test(test_a_long_list_of_nodes_is_told_whole),
        cmocka_unit_test(test_one_that_is_too_long_is_cut_behind_a_name),
        cmocka_unit_test(test_what_is_only_a_beginning_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
