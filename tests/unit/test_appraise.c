/* SPDX-License-Identifier: Apache-2.0 */

/* What people did, beside what was decided: each row is a story, told as a journal would. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "cli/appraise.h"

#include <string.h>

#define S   USEC_PER_SEC
#define DAY USEC_PER_DAY

struct book {
    struct appraise a;
    uint64_t seq;
    usec_t now;
    const char *job;
};

static struct event *next(struct book *b, enum event_kind kind, uint32_t attempt)
{
    static struct event e;

    memset(&e, 0, sizeof(e));
    e.seq = ++b->seq;
    e.kind = kind;
    e.time_us = b->now += S;
    e.attempt = attempt;
    STR_COPY(e.job, b->job);
    return &e;
}

static void seen(struct book *b, const char *job, const char *label, const char *name)
{
    struct event *e;

    b->job = job;
    e = next(b, EVENT_JOB_SEEN, 0);
    e->seen.uid = 1000;
    STR_COPY(e->seen.label, label);
    STR_COPY(e->seen.name, name);
    STR_COPY(e->seen.user, "alice");
    STR_COPY(e->seen.partition, "gpu");
    appraise_add(&b->a, e);
}

static void look(struct book *b, enum sched_state state, uint32_t restarts)
{
    struct event *e = next(b, EVENT_LOOK, restarts + 1);

    e->look.state = state;
    e->look.restarts = restarts;
    appraise_add(&b->a, e);
}

static void verdict(struct book *b, uint32_t attempt, enum cause cause, const char *fingerprint)
{
    struct event *e = next(b, EVENT_VERDICT, attempt);

    e->incident.class = CLASS_CRASH;
    e->incident.cause = cause;
    STR_COPY(e->incident.fingerprint, fingerprint);
    appraise_add(&b->a, e);
}

static uint64_t decide(struct book *b, uint32_t attempt, enum action action)
{
    struct event *e = next(b, EVENT_DECISION, attempt);

    e->decision.action = action;
    e->decision.mode = MODE_OBSERVE;
    STR_COPY(e->decision.rule, "retry");
    appraise_add(&b->a, e);
    return e->seq;
}

static uint64_t intend(struct book *b, enum intent intent, uint32_t attempt)
{
    struct event *e = next(b, EVENT_INTENT, attempt);

    e->intended.intent = intent;
    appraise_add(&b->a, e);
    return e->seq;
}

static void result(struct book *b, uint64_t intent, enum outcome outcome)
{
    struct event *e = next(b, EVENT_RESULT, 1);

    e->result.intent = intent;
    e->result.outcome = outcome;
    appraise_add(&b->a, e);
}

static void request(struct book *b, enum request request, uint64_t of)
{
    struct event *e = next(b, EVENT_OPERATOR, 1);

    e->request.request = request;
    e->request.of = of;
    STR_COPY(e->request.who, "bob");
    appraise_add(&b->a, e);
}

/* A job that failed in its first attempt, and what was decided then. */
static uint64_t failed(struct book *b, enum action action)
{
    *b = (struct book){.now = 1000 * S};
    seen(b, "7-1", "7", "train");
    look(b, SCHED_RUNNING, 0);
    look(b, SCHED_FAILED, 0);
    verdict(b, 1, CAUSE_NETWORK, "aa");
    return decide(b, 1, action);
}

static void check(struct book *b, usec_t later, enum aftermath after, enum agreement agreement)
{
    appraise_end(&b->a, b->now + later);
    assert_true(b->a.cases.n >= 1);
    assert_string_equal(aftermath_name(b->a.cases.v[0].after), aftermath_name(after));
    assert_string_equal(agreement_name(b->a.cases.v[0].agreement), agreement_name(agreement));
    appraise_done(&b->a);
}

static void test_nothing(void **state)
{
    struct book b;

    failed(&b, ACTION_RESTART);
    check(&b, DAY / 2, AFTER_OPEN, AGREEMENT_NONE);
    failed(&b, ACTION_RESTART);
    check(&b, DAY, AFTER_LEFT, AGREEMENT_NO);
    failed(&b, ACTION_STOP);
    check(&b, DAY / 2, AFTER_OPEN, AGREEMENT_NONE);
    failed(&b, ACTION_STOP);
    check(&b, DAY, AFTER_LEFT, AGREEMENT_YES);
}

static void test_requeued(void **state)
{
    struct book b;

    failed(&b, ACTION_RESTART);
    look(&b, SCHED_PENDING, 1);
    check(&b, DAY, AFTER_REQUEUED, AGREEMENT_YES);
    failed(&b, ACTION_STOP);
    look(&b, SCHED_RUNNING, 1);
    check(&b, DAY, AFTER_REQUEUED, AGREEMENT_NO);
}

/* Nobody was asked when Slurm does it. */
static void test_requeued_by_slurm(void **state)
{
    struct book b;

    failed(&b, ACTION_RESTART);
    look(&b, SCHED_NODE_FAIL, 0);
    look(&b, SCHED_PENDING, 1);
    check(&b, DAY, AFTER_SLURM, AGREEMENT_NONE);
}

/* One that the scheduler requeued is seen to run, and then to wait, before anybody has judged it.
 */
static void lost(struct book *b, const char *lost_node, enum cause cause, enum sched_state last)
{
    struct event *e;

    *b = (struct book){.now = 1000 * S};
    seen(b, "7-1", "7", "train");
    e = next(b, EVENT_LOOK, 1);
    e->look.state = SCHED_RUNNING;
    STR_COPY(e->look.lost_node, lost_node);
    appraise_add(&b->a, e);
    if (last != SCHED_RUNNING)
        look(b, last, 0);
    look(b, SCHED_PENDING, 1);
    verdict(b, 1, cause, "aa");
    decide(b, 1, ACTION_RESTART);
    look(b, SCHED_PENDING, 1);
}

static void test_requeued_by_slurm_at_once(void **state)
{
    struct book b;

    lost(&b, "", CAUSE_NODE_FAILURE, SCHED_RUNNING);
    check(&b, DAY, AFTER_SLURM, AGREEMENT_NONE);
    lost(&b, "", CAUSE_PREEMPTION, SCHED_RUNNING);
    check(&b, DAY, AFTER_SLURM, AGREEMENT_NONE);
    lost(&b, "n2", CAUSE_UNKNOWN, SCHED_RUNNING);
    check(&b, DAY, AFTER_SLURM, AGREEMENT_NONE);
    lost(&b, "", CAUSE_UNKNOWN, SCHED_PREEMPTED);
    check(&b, DAY, AFTER_SLURM, AGREEMENT_NONE);
    /* people: of a job that only ran slowly, and of one that had ended */
    lost(&b, "", CAUSE_NETWORK, SCHED_RUNNING);
    check(&b, DAY, AFTER_REQUEUED, AGREEMENT_YES);
    lost(&b, "n2", CAUSE_NODE_FAILURE, SCHED_FAILED);
    check(&b, DAY, AFTER_REQUEUED, AGREEMENT_YES);
}

/* What a lost node did to the attempt before is no sign of what became of this one. */
static void test_requeued_by_people_after_slurm(void **state)
{
    struct book b;

    lost(&b, "n2", CAUSE_NODE_FAILURE, SCHED_RUNNING);
    look(&b, SCHED_RUNNING, 1);
    look(&b, SCHED_FAILED, 1);
    verdict(&b, 2, CAUSE_NETWORK, "bb");
    decide(&b, 2, ACTION_RESTART);
    look(&b, SCHED_PENDING, 2);
    appraise_end(&b.a, b.now + DAY);
    assert_int_equal(b.a.cases.n, 2);
    assert_int_equal(b.a.cases.v[0].after, AFTER_SLURM);
    assert_int_equal(b.a.cases.v[1].after, AFTER_REQUEUED);
    appraise_done(&b.a);
}

static void test_done_by_reknit(void **state)
{
    struct book b;
    uint64_t intent;

    failed(&b, ACTION_RESTART);
    intent = intend(&b, INTENT_REQUEUE, 1);
    look(&b, SCHED_PENDING, 1); /* may come before the result */
    result(&b, intent, OUTCOME_DONE);
    check(&b, DAY, AFTER_DONE, AGREEMENT_NONE);

    failed(&b, ACTION_RESTART);
    intent = intend(&b, INTENT_REQUEUE, 1);
    result(&b, intent, OUTCOME_DONE);
    look(&b, SCHED_PENDING, 1);
    look(&b, SCHED_CANCELLED, 1);
    check(&b, DAY, AFTER_UNDONE, AGREEMENT_NO);

    failed(&b, ACTION_RESTART); /* somebody was quicker */
    intent = intend(&b, INTENT_REQUEUE, 1);
    look(&b, SCHED_PENDING, 1);
    result(&b, intent, OUTCOME_VOID);
    check(&b, DAY, AFTER_REQUEUED, AGREEMENT_YES);

    failed(&b, ACTION_RESTART); /* long after, it is no answer to the restart any more */
    result(&b, intend(&b, INTENT_REQUEUE, 1), OUTCOME_DONE);
    look(&b, SCHED_RUNNING, 1);
    b.now += APPRAISE_UNDO;
    look(&b, SCHED_CANCELLED, 1);
    check(&b, DAY, AFTER_DONE, AGREEMENT_NONE);
}

static void test_submitted_again(void **state)
{
    struct book b;

    failed(&b, ACTION_RESTART);
    seen(&b, "9-1", "9", "train");
    check(&b, DAY, AFTER_RESUBMITTED, AGREEMENT_YES);

    failed(&b, ACTION_RESTART);
    seen(&b, "9-1", "9", "other");
    check(&b, DAY, AFTER_LEFT, AGREEMENT_NO);

    failed(&b, ACTION_RESTART);
    b.now += DAY;
    seen(&b, "9-1", "9", "train");
    check(&b, DAY, AFTER_LEFT, AGREEMENT_NO);
}

/* Tasks of one array bear one name, and are none another's successor. */
static void test_an_array_does_not_submit_itself_again(void **state)
{
    struct book b = {.now = 1000 * S};

    seen(&b, "7-1", "5_1", "sweep");
    look(&b, SCHED_FAILED, 0);
    decide(&b, 1, ACTION_RESTART);
    seen(&b, "8-1", "5_2", "sweep");
    check(&b, DAY, AFTER_LEFT, AGREEMENT_NO);
}

/* One that still runs has not been replaced by its namesake. */
static void test_a_namesake_beside_it(void **state)
{
    struct book b = {.now = 1000 * S};

    seen(&b, "7-1", "7", "train");
    look(&b, SCHED_RUNNING, 0);
    decide(&b, 1, ACTION_RESTART);
    seen(&b, "8-1", "8", "train");
    look(&b, SCHED_RUNNING, 0);
    check(&b, DAY / 2, AFTER_OPEN, AGREEMENT_NONE);
}

static void test_cancelled(void **state)
{
    struct book b = {.now = 1000 * S};

    seen(&b, "7-1", "7", "train");
    look(&b, SCHED_RUNNING, 0);
    decide(&b, 1, ACTION_RESTART);
    look(&b, SCHED_CANCELLED, 0);
    check(&b, DAY, AFTER_CANCELLED, AGREEMENT_NO);

    b = (struct book){.now = 1000 * S};
    seen(&b, "7-1", "7", "train");
    look(&b, SCHED_RUNNING, 0);
    decide(&b, 1, ACTION_RESTART);
    look(&b, SCHED_CANCELLED, 0);
    seen(&b, "8-1", "8", "train"); /* by hand, as decided */
    check(&b, DAY, AFTER_RESUBMITTED, AGREEMENT_YES);
}

static void test_gone_on(void **state)
{
    struct book b = {.now = 1000 * S};

    seen(&b, "7-1", "7", "train");
    look(&b, SCHED_RUNNING, 0);
    decide(&b, 1, ACTION_RESTART);
    look(&b, SCHED_COMPLETED, 0);
    check(&b, DAY, AFTER_GONE_ON, AGREEMENT_NO);
}

static void test_answered(void **state)
{
    struct book b;

    request(&b, REQUEST_APPROVE, failed(&b, ACTION_RESTART));
    result(&b, intend(&b, INTENT_REQUEUE, 1), OUTCOME_DONE);
    check(&b, DAY, AFTER_APPROVED, AGREEMENT_YES);
    request(&b, REQUEST_REJECT, failed(&b, ACTION_RESTART));
    look(&b, SCHED_PENDING, 1);
    check(&b, DAY, AFTER_REJECTED, AGREEMENT_NO);
    request(&b, REQUEST_APPROVE, failed(&b, ACTION_RESTART) + 17); /* of another decision */
    check(&b, 0, AFTER_OPEN, AGREEMENT_NONE);
}

/* After a stop, the program may have been mended: only the same failure again tells. */
static void test_a_stop_and_a_new_submission(void **state)
{
    struct book b;

    failed(&b, ACTION_STOP);
    seen(&b, "9-1", "9", "train");
    verdict(&b, 1, CAUSE_NETWORK, "bb");
    check(&b, DAY, AFTER_RESUBMITTED, AGREEMENT_NONE);
    failed(&b, ACTION_STOP);
    seen(&b, "9-1", "9", "train");
    verdict(&b, 1, CAUSE_NETWORK, "aa");
    check(&b, DAY, AFTER_RESUBMITTED, AGREEMENT_YES);
}

static void test_a_later_decision_replaces(void **state)
{
    struct book b;

    failed(&b, ACTION_RESTART);
    decide(&b, 1, ACTION_STOP);
    decide(&b, 2, ACTION_RESTART);
    assert_int_equal(b.a.cases.n, 2);
    assert_int_equal(b.a.cases.v[0].action, ACTION_STOP);
    check(&b, DAY, AFTER_LEFT, AGREEMENT_YES);
}

/* A decision also lists the nodes that an earlier one keeps out still. */
static void test_only_who_is_blamed_counts(void **state)
{
    struct book b;
    struct event *e;

    failed(&b, ACTION_STOP);
    for (uint32_t attempt = 2; attempt <= 3; attempt++) {
        e = next(&b, EVENT_VERDICT, attempt);
        e->incident.class = CLASS_CRASH;
        e->incident.cause = attempt == 2 ? CAUSE_GPU_HARDWARE : CAUSE_NETWORK;
        if (attempt == 2)
            STR_COPY(e->incident.culprits.nodes[e->incident.culprits.n_nodes++], "n1");
        appraise_add(&b.a, e);
        e = next(&b, EVENT_DECISION, attempt);
        e->decision.action = ACTION_RESTART_EXCLUDING;
        STR_COPY(e->decision.nodes[e->decision.n_nodes++], "n1");
        appraise_add(&b.a, e);
    }
    assert_int_equal(b.a.cases.n, 3);
    assert_int_equal(b.a.cases.v[1].n_nodes, 1);
    assert_string_equal(b.a.cases.v[1].nodes[0], "n1");
    assert_int_equal(b.a.cases.v[2].n_nodes, 0);
    appraise_done(&b.a);
}

static void test_counts(void **state)
{
    struct book b = {.now = 1000 * S};
    struct appraise_tally *t;

    seen(&b, "1-1", "1", "a");
    verdict(&b, 1, CAUSE_NETWORK, "");
    decide(&b, 1, ACTION_RESTART);
    look(&b, SCHED_PENDING, 1);
    seen(&b, "2-1", "2", "b");
    verdict(&b, 1, CAUSE_NETWORK, "");
    decide(&b, 1, ACTION_RESTART);
    look(&b, SCHED_CANCELLED, 0);
    seen(&b, "3-1", "3", "c");
    verdict(&b, 1, CAUSE_STORAGE, "");
    decide(&b, 1, ACTION_RESTART);
    result(&b, intend(&b, INTENT_REQUEUE, 1), OUTCOME_DONE);
    appraise_end(&b.a, b.now);
    assert_int_equal(appraise_count(&b.a, appraise_by_cause, &t), 2);
    assert_string_equal(t[0].word, "network");
    assert_int_equal(t[0].decisions, 2);
    assert_int_equal(appraise_rate(&t[0]), 50);
    assert_int_equal(t[1].done, 1);
    assert_int_equal(appraise_rate(&t[1]), -1);
    free(t);
    assert_int_equal(appraise_count(&b.a, appraise_by_partition, &t), 1);
    assert_string_equal(t[0].word, "gpu");
    free(t);
    appraise_done(&b.a);
}

static void test_words(void **state)
{
    for (int i = 0; i < AFTER_MAX; i++)
        assert_int_equal(aftermath_from_name(aftermath_name((enum aftermath)i)), i);
    for (int i = 0; i < AGREEMENT_MAX; i++)
        assert_int_equal(agreement_from_name(agreement_name((enum agreement)i)), i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_requeued),
        cmocka_unit_test(test_requeued_by_slurm),
        cmocka_unit_test(test_requeued_by_slurm_at_once),
        cmocka_unit_test(test_requeued_by_people_after_slurm),
        cmocka_unit_test(test_done_by_reknit),
        cmocka_unit_test(test_submitted_again),
        cmocka_unit_test(test_an_array_does_not_submit_itself_again),
        cmocka_unit_test(test_a_namesake_beside_it),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_gone_on),
        cmocka_unit_test(test_answered),
        cmocka_unit_test(test_a_stop_and_a_new_submission),
        cmocka_unit_test(test_a_later_decision_replaces),
        cmocka_unit_test(test_only_who_is_blamed_counts),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
