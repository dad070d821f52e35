/* SPDX-License-Identifier: Apache-2.0 */

/* The site's fence command: what its end means, and that nothing of it is left. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "core/state/observe.h"
#include "daemon/daemon.h"
#include "until.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define KEY           "42-1700000000"
#define NODE_AT_FAULT "n7"

/* The linker puts this before the real one: how much later it is than it was when a time was set.
 */
static usec_t ahead;

usec_t __real_mono_us(void);
usec_t __wrap_mono_us(void);

usec_t __wrap_mono_us(void)
{
    return __real_mono_us() + ahead;
}

/* What fence.c tells, in place of the rest of the daemon. */
static struct {
    bool agent_vouches;
    unsigned reports, fenced, pokes;
    enum outcome outcome;
    char detail[128], node[64], job[64];
    uint32_t attempt;
} told;

bool node_watch_fences(struct node_watch *w, const char *key, const char *node)
{
    return told.agent_vouches;
}

void act_report(struct daemon *d, const struct event *intent, enum outcome outcome,
                const char *detail)
{
    told.reports++;
    told.outcome = outcome;
    STR_COPY(told.detail, detail);
}

/* What core knows. */
static struct model *model;
static struct job *job;

const struct model *pump_model(const struct pump *p)
{
    return model;
}

uint64_t pump_input(struct pump *p, const struct event *e)
{
    assert_int_equal(e->kind, EVENT_FENCED);
    assert_int_equal(told.reports, 0); /* core has the fact before the result */
    told.fenced++;
    told.attempt = e->attempt;
    STR_COPY(told.job, e->job);
    STR_COPY(told.node, e->fenced.node);
    return 1;
}

void sched_watch_poke(struct sched_watch *w)
{
    told.pokes++;
}

struct fixture {
    struct daemon d;
    struct event intent;
};

static int set_up(void **state)
{
    struct fixture *f = xnew(struct fixture);
    sigset_t mask;

    memset(&told, 0, sizeof(told));
    model = model_new();
    job = model_add_job(model, KEY);
    STR_COPY(job->sched.look.lost_node, NODE_AT_FAULT);
    ahead = 0;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    assert_return_code(sd_event_new(&f->d.event), 0);
    f->d.config = xnew(struct daemon_config);
    f->intent = (struct event){.kind = EVENT_INTENT, .attempt = 3};
    STR_COPY(f->intent.job, KEY);
    f->intent.intended.n_nodes = 1;
    STR_COPY(f->intent.intended.nodes[0], NODE_AT_FAULT);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    model_free(model);
    sd_event_unref(f->d.event);
    free(f->d.config);
    free(f);
    return 0;
}

/* The command is `sh -c script sh {node}`. */
static void fence_with(struct fixture *f, const char *script)
{
    struct command *c = &f->d.config->fence;

    c->n = 6;
    STR_COPY(c->argv[0], "/bin/sh");
    STR_COPY(c->argv[1], "-c");
    STR_COPY(c->argv[2], script);
    STR_COPY(c->argv[3], "sh");
    STR_COPY(c->argv[4], "node={node}.mgmt");
    STR_COPY(c->argv[5], "{node}{node} -bmc={node}");
    fence_start(&f->d, &f->intent);
}

static void await_report(struct fixture *f)
{
    UNTIL(told.reports > 0, sd_event_run(f->d.event, USEC_PER_SEC));
    assert_int_equal(told.reports, 1);
}

static void assert_failed(const char *why)
{
    assert_int_equal(told.fenced, 0);
    assert_int_equal(told.outcome, OUTCOME_FAILED);
    assert_string_equal(told.detail, why);
}

static void status_zero_is_a_fence(void **state)
{
    fence_with(*state, "test \"$1\" = node=" NODE_AT_FAULT ".mgmt && "
                       "test \"$2\" = '" NODE_AT_FAULT NODE_AT_FAULT " -bmc=" NODE_AT_FAULT "'");
    assert_int_equal(told.reports, 0); /* nobody waited for it */
    await_report(*state);
    assert_int_equal(told.fenced, 1);
    assert_int_equal(told.pokes, 1);
    assert_string_equal(told.node, NODE_AT_FAULT);
    assert_string_equal(told.job, KEY);
    assert_int_equal(told.attempt, 3);
    assert_int_equal(told.outcome, OUTCOME_DONE);
}

static void a_node_that_answers_again_meanwhile_is_not_fenced(void **state)
{
    fence_with(*state, "exit 0");
    job->sched.look.lost_node[0] = '\0';
    await_report(*state);
    assert_int_equal(told.fenced, 0);
    assert_int_equal(told.outcome, OUTCOME_DONE);
}

static void any_other_end_is_none(void **state)
{
    fence_with(*state, "exit 3");
    await_report(*state);
    assert_failed("the fence command ended with status 3");
    memset(&told, 0, sizeof(told));
    fence_with(*state, "kill -9 $$");
    await_report(*state);
    assert_failed("the fence command was killed by SIGKILL");
}

static void a_command_that_is_not_there_fences_nothing(void **state)
{
    struct fixture *f = *state;

    f->d.config->fence.n = 1;
    STR_COPY(f->d.config->fence.argv[0], "/nowhere/fence");
    fence_start(&f->d, &f->intent);
    await_report(f);
    assert_failed(strerror(ENOENT));
}

static pid_t read_pid(int fd)
{
    char text[32] = "";
    long long pid;

    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    text[strcspn(text, "\n")] = '\0';
    assert_int_equal(str_to_i64(text, &pid), 0);
    return (pid_t)pid;
}

/* It hangs, as does what it waits for: after its time, neither is left. That it would have said
 * that the node is off, were it not killed, counts for nothing. */
static void what_hangs_is_killed_with_its_children(void **state)
{
    struct fixture *f = *state;
    int status = 0, pipes[2];
    char script[128];
    pid_t child;

    assert_return_code(pipe(pipes), errno); /* the shell inherits its end */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    STR_PRINTF(script, "trap 'exit 0' TERM; sleep 600 & echo $! >&%d; wait; exit 0", pipes[1]);
    ahead = -60 * USEC_PER_SEC + 300 * USEC_PER_MSEC; /* its minute is up in a moment */
    fence_with(f, script);
    ahead = 0;
    child = read_pid(pipes[0]);
    await_report(f);
    assert_failed("the fence command did not end in time");
    assert_int_equal(waitpid(child, &status, 0), child); /* ours now, and dead */
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    close(pipes[0]);
    close(pipes[1]);
}

static void the_agents_word_is_enough(void **state)
{
    told.agent_vouches = true;
    fence_with(*state, "exit 1");
    assert_int_equal(told.reports, 1);
    assert_int_equal(told.outcome, OUTCOME_DONE);
    assert_int_equal(told.fenced, 0); /* core was told by who heard it */
}

static void without_a_command_it_is_said_that_the_job_waits(void **state)
{
    struct fixture *f = *state;

    fence_start(&f->d, &f->intent);
    assert_int_equal(told.reports, 1);
    assert_int_equal(told.outcome, OUTCOME_FAILED);
    assert_non_null(strstr(told.detail, "no fence command"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(status_zero_is_a_fence),
        TEST(a_node_that_answers_again_meanwhile_is_not_fenced),
        TEST(any_other_end_is_none),
        TEST(a_command_that_is_not_there_fences_nothing),
        TEST(what_hangs_is_killed_with_its_children),
        TEST(the_agents_word_is_enough),
        TEST(without_a_command_it_is_said_that_the_job_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
