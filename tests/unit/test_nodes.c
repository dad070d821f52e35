/* SPDX-License-Identifier: Apache-2.0 */

/* What agents say of attempts that core knows, does not know yet, or never will; and of clocks that
 * do not agree. The test is the rest of reknitd. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "source/agents.h"
#include "source/node_readers.h"
#include "model_tell.h"
#include "until.h"

#define KEY    "42-1700000000"
#define SUBMIT 1700000000
#define NODE   "n7"

static struct {
    struct model *model;
    struct sched_job record;
    bool known; /* to the scheduler, as far as it was looked at */
    usec_t look_began, submitted;
    const struct agents_handlers *handlers;
    void *ctx;
    unsigned deaths, files, gone, done, facts;
    struct node_fact last_fact;
    struct agent_receipt last_done;
    uint64_t next_seq, written;
    sd_event *event;
} world;

/* ---- the rest of reknitd ---- */

const struct model *pump_model(const struct pump *p)
{
    return world.model;
}

uint64_t pump_input(struct pump *p, const struct event *e)
{
    world.deaths += e->kind == EVENT_SIGNAL && e->signal.kind == SIGNAL_EXIT;
    if (e->kind == EVENT_NODE_FACT) {
        world.facts++;
        world.last_fact = e->fact;
    }
    return ++world.next_seq;
}

usec_t pump_now(const struct pump *p)
{
    return SUBMIT * USEC_PER_SEC;
}

uint64_t journal_last_seq(const struct journal *j)
{
    return world.written;
}

const struct sched_job *sched_watch_find(const struct sched_watch *w, uint32_t id,
                                         const char **ret_key)
{
    *ret_key = KEY;
    return world.known && id == 42 ? &world.record : NULL;
}

void sched_watch_each_part(const struct sched_watch *w, const struct sched_job *r,
                           void (*fn)(void *ctx, const struct sched_job *part), void *ctx)
{
}

usec_t sched_watch_look_began(const struct sched_watch *w)
{
    return world.look_began;
}

usec_t sched_watch_to_mono(const struct sched_watch *w, int64_t seconds)
{
    return world.submitted + (seconds - SUBMIT) * USEC_PER_SEC;
}

size_t sched_watch_nodes(const struct sched_watch *w)
{
    return 1;
}

const char *sched_watch_address(const struct sched_watch *w, const char *node)
{
    return node;
}

void sched_watch_poke(struct sched_watch *w)
{
}

void log_watch_found(struct log_watch *w, const char *key, uint32_t attempt, const char *path,
                     const char *node)
{
    world.files++;
}

void log_watch_node_up(struct log_watch *w, const char *node)
{
}

struct vacated *vacated_new(struct daemon *d)
{
    return NULL;
}

struct vacated *vacated_free(struct vacated *v)
{
    return NULL;
}

/* As the real one, which knows the attempts of core. */
void vacated_message(struct vacated *v, const struct node_message *m)
{
    const struct job *j = model_job(world.model, KEY);

    if (j && j->attempt.number == m->restart + 1)
        world.gone = m->kind == NODE_MESSAGE_GONE;
}

void vacated_forget(struct vacated *v, const char *key)
{
}

bool vacated_fences(struct vacated *v, const char *key, const char *node)
{
    return false;
}

void node_readers_connect(struct node_readers *all, node_readers_ask_fn ask, void *ctx)
{
}

void node_readers_answer(struct node_readers *all, const char *node, int64_t question, int fd,
                         const char *trouble)
{
}

void node_readers_lost(struct node_readers *all, const char *node, const char *why)
{
}

int agents_new(sd_event *event, const struct agents_config *c,
               const struct agents_handlers *handlers, void *ctx, struct agents **ret,
               struct err *e)
{
    world.handlers = handlers;
    world.ctx = ctx;
    *ret = (struct agents *)&world; /* it is asked nothing */
    return 0;
}

int agents_move(struct agents *a, const struct agents_config *c, struct err *e)
{
    return 0;
}

struct agents *agents_free(struct agents *a)
{
    return NULL;
}

void agents_done(struct agents *a, const struct agent_receipt *r)
{
    world.done++;
    world.last_done = *r;
}

int agents_ask(struct agents *a, const char *node, int64_t question, uid_t uid, gid_t gid)
{
    return -ENOTCONN;
}

int agents_look(const struct agents *a, const char *node, struct agent_view *ret)
{
    return -ENOENT;
}

void agents_each(const struct agents *a,
                 bool (*fn)(void *ctx, const char *node, const struct agent_view *v), void *ctx)
{
}

void agents_counts(const struct agents *a, struct agents_counts *ret)
{
}

/* ---- the world ---- */

static void apply(enum event_kind kind, uint32_t attempt)
{
    model_tell(world.model, KEY, kind, attempt, SUBMIT * USEC_PER_SEC);
}

/* The scheduler is looked at, and shows the job's attempt, which core takes. */
static void look_shows_it(void)
{
    world.look_began = mono_us();
    world.known = true;
    world.record.state = SCHED_RUNNING;
    if (!model_job(world.model, KEY))
        apply(EVENT_JOB_SEEN, 0);
    apply(EVENT_ATTEMPT_STARTED, world.record.restarts + 1);
}

static int set_up(void **state)
{
    static struct daemon_config config;
    static struct daemon d;
    char nodes[] = NODE;

    memset(&world, 0, sizeof(world));
    STR_COPY(config.agents.listen, "127.0.0.1:1");
    assert_true(sd_event_new(&world.event) >= 0);
    world.model = model_new();
    world.submitted = mono_us() - USEC_PER_MIN;
    world.look_began = mono_us() - USEC_PER_SEC;
    world.record = (struct sched_job){.id = 42, .submit = SUBMIT, .nodes = xstrdup(nodes)};
    d = (struct daemon){.event = world.event, .config = &config, .logs = (struct log_watch *)&d};
    d.nodes = node_watch_new(&d);
    UNTIL(world.handlers, sd_event_run(world.event, 20 * USEC_PER_MSEC));
    *state = d.nodes;
    return 0;
}

static int tear_down(void **state)
{
    node_watch_free(*state);
    free(world.record.nodes);
    model_free(world.model);
    sd_event_unref(world.event);
    return 0;
}

static struct node_message about(enum node_message_kind kind)
{
    struct node_message m = {.kind = kind, .job = 42, .mono_us = mono_us(), .node = NODE};

    m.time_us = SUBMIT * USEC_PER_SEC;
    if (kind == NODE_MESSAGE_EXIT) {
        STR_COPY(m.step, "0");
        m.task.status = 256;
    } else if (kind == NODE_MESSAGE_LOGS) {
        node_paths_add(&m.paths, "/home/a/train.log");
    }
    return m;
}

static enum agent_taken tell(const struct node_message *m, int64_t id)
{
    struct agent_receipt r = {.node = NODE, .origin = 1, .id = id};

    return world.handlers->message(world.ctx, m, &r);
}

static enum agent_taken say(enum node_message_kind kind, int64_t id)
{
    struct node_message m = about(kind);

    return tell(&m, id);
}

/* Until what is held was tried again. */
static void try_again(void)
{
    usec_t until = mono_us() + 600 * USEC_PER_MSEC;

    while (mono_us() < until)
        sd_event_run(world.event, (uint64_t)(until - mono_us() > 0 ? until - mono_us() : 0));
}

/* ---- what is not known yet ---- */

static void a_death_before_the_attempt_was_seen_is_told_when_it_is(void **state)
{
    assert_int_equal(say(NODE_MESSAGE_EXIT, 1), AGENT_TAKEN_OPEN);
    assert_int_equal(say(NODE_MESSAGE_LOGS, 0), AGENT_TAKEN_OPEN);
    look_shows_it();
    UNTIL(world.deaths == 1 && world.files == 1, sd_event_run(world.event, 20 * USEC_PER_MSEC));
}

/* However long nobody can be asked: time alone decides nothing. */
static void what_is_held_waits_for_a_look(void **state)
{
    struct node_message m = about(NODE_MESSAGE_EXIT);

    assert_int_equal(tell(&m, 1), AGENT_TAKEN_OPEN);
    try_again();
    assert_int_equal(world.done, 0);
    world.look_began = mono_us(); /* it shows no such job */
    UNTIL(world.done == 1, sd_event_run(world.event, 20 * USEC_PER_MSEC));
    assert_int_equal(world.last_done.id, 1);
    assert_int_equal(world.deaths, 0);
}

/* A look that was asked for before the message came proves nothing about it. */
static void a_look_that_was_under_way_is_none(void **state)
{
    usec_t began = mono_us();
    struct node_message m = about(NODE_MESSAGE_EXIT);

    assert_int_equal(tell(&m, 1), AGENT_TAKEN_OPEN);
    world.look_began = began;
    try_again();
    assert_int_equal(world.done, 0);
}

/* Core judges the attempt before: the record says that the next one runs. */
static void a_death_waits_until_core_has_taken_its_attempt(void **state)
{
    struct node_message m = about(NODE_MESSAGE_EXIT);

    look_shows_it();
    world.record.restarts = m.restart = 1;
    assert_int_equal(tell(&m, 1), AGENT_TAKEN_OPEN);
    world.look_began = mono_us();
    try_again();
    assert_int_equal(world.done, 0);
    world.record.restarts = 2; /* and so on */
    UNTIL(world.done == 1, sd_event_run(world.event, 20 * USEC_PER_MSEC));
    assert_int_equal(world.deaths, 0);
}

static void a_death_behind_the_end_is_told_to_nobody(void **state)
{
    look_shows_it();
    assert_int_equal(say(NODE_MESSAGE_EXIT, 1), AGENT_TAKEN_OPEN);
    model_job(world.model, KEY)->state = JOB_ENDED;
    assert_int_equal(say(NODE_MESSAGE_EXIT, 2), AGENT_TAKEN);
    assert_int_equal(world.deaths, 1);
}

static void that_nothing_is_left_is_held_too(void **state)
{
    assert_int_equal(say(NODE_MESSAGE_GONE, 1), AGENT_TAKEN_OPEN);
    assert_false(world.gone);
    look_shows_it();
    UNTIL(world.gone, sd_event_run(world.event, 20 * USEC_PER_MSEC));
    assert_int_equal(world.done, 1);
}

/* Not even if core knows the attempt by now. */
static void who_is_gone_had_lived_before(void **state)
{
    assert_int_equal(say(NODE_MESSAGE_EXIT, 1), AGENT_TAKEN_OPEN);
    look_shows_it();
    assert_int_equal(say(NODE_MESSAGE_GONE, 2), AGENT_TAKEN_OPEN);
    UNTIL(world.done == 1, sd_event_run(world.event, 20 * USEC_PER_MSEC));
    assert_true(world.gone);
    assert_int_equal(world.deaths, 1);
}

static void a_sign_of_life_takes_back_what_is_held(void **state)
{
    assert_int_equal(say(NODE_MESSAGE_GONE, 1), AGENT_TAKEN_OPEN);
    assert_int_equal(say(NODE_MESSAGE_ACTIVITY, 0), AGENT_TAKEN);
    assert_int_equal(world.done, 1);
    look_shows_it();
    try_again();
    assert_false(world.gone);
}

static void what_there_is_no_room_for_comes_again(void **state)
{
    int64_t id = 0;

    while (say(NODE_MESSAGE_EXIT, ++id) == AGENT_TAKEN_OPEN)
        assert_true(id <= 4096);
    assert_int_equal(id, 4097);
    assert_int_equal(say(NODE_MESSAGE_EXIT, id), AGENT_NO_ROOM);
    assert_int_equal(say(NODE_MESSAGE_LOGS, 0), AGENT_NO_ROOM);
    world.look_began = mono_us();
    UNTIL(world.done == 4096, sd_event_run(world.event, 20 * USEC_PER_MSEC));
    assert_int_equal(say(NODE_MESSAGE_EXIT, id), AGENT_TAKEN_OPEN);
}

/* ---- clocks ---- */

/* The node's says that it was an hour ago, or in an hour. */
static void a_node_whose_clock_is_wrong_is_heard(void **state)
{
    struct node_message m = about(NODE_MESSAGE_EXIT);

    m.time_us -= USEC_PER_HOUR;
    assert_int_equal(tell(&m, 1), AGENT_TAKEN_OPEN);
    look_shows_it();
    UNTIL(world.deaths == 1, sd_event_run(world.event, 20 * USEC_PER_MSEC));
    assert_int_equal(tell(&m, 2), AGENT_TAKEN_OPEN); /* for the journal */
    m.time_us += 2 * USEC_PER_HOUR;
    assert_int_equal(tell(&m, 3), AGENT_TAKEN_OPEN);
    assert_int_equal(world.deaths, 3);
}

/* The number was another job's; or a look of long after it did not show it. */
static void what_happened_long_ago_is_of_no_attempt(void **state)
{
    struct node_message m = about(NODE_MESSAGE_EXIT);

    m.mono_us = world.look_began - 2 * USEC_PER_MIN;
    assert_int_equal(tell(&m, 1), AGENT_TAKEN);
    look_shows_it();
    m.mono_us = world.submitted - 2 * USEC_PER_MIN;
    assert_int_equal(tell(&m, 2), AGENT_TAKEN);
    m.mono_us = world.submitted + USEC_PER_SEC;
    assert_int_equal(tell(&m, 3), AGENT_TAKEN_OPEN);
    assert_int_equal(world.deaths, 1);
}

/* ---- the journal ---- */

static void a_death_is_safe_when_it_is_written(void **state)
{
    look_shows_it();
    assert_int_equal(say(NODE_MESSAGE_EXIT, 1), AGENT_TAKEN_OPEN);
    node_watch_written(*state);
    assert_int_equal(world.done, 0);
    world.written = 1;
    node_watch_written(*state);
    assert_int_equal(world.done, 1);
    world.written = 2; /* a busy turn: it is written before we are told its number */
    assert_int_equal(say(NODE_MESSAGE_EXIT, 2), AGENT_TAKEN);
}

/* Of the node that is proven, whatever it says, and whatever is known of jobs. */
static void a_fact_is_the_nodes_and_safe_when_it_is_written(void **state)
{
    struct node_message m = about(NODE_MESSAGE_FACT);

    m.job = 0;
    m.fact = (struct node_fact){.node = "n8", .job = 42, .count = 1, .code = 79};
    m.fact.signal = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL);
    assert_int_equal(tell(&m, 1), AGENT_TAKEN_OPEN);
    assert_int_equal(world.facts, 1);
    assert_int_equal(world.last_fact.code, 79);
    assert_string_equal(world.last_fact.node, NODE);
    assert_string_equal(world.last_fact.signal.who.node, NODE);
    node_watch_written(*state);
    assert_int_equal(world.done, 0);
    world.written = 1;
    node_watch_written(*state);
    assert_int_equal(world.done, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(a_death_before_the_attempt_was_seen_is_told_when_it_is),
        TEST(what_is_held_waits_for_a_look),
        TEST(a_look_that_was_under_way_is_none),
        TEST(a_death_waits_until_core_has_taken_its_attempt),
        TEST(a_death_behind_the_end_is_told_to_nobody),
        TEST(that_nothing_is_left_is_held_too),
        TEST(who_is_gone_had_lived_before),
        TEST(a_sign_of_life_takes_back_what_is_held),
        TEST(what_there_is_no_room_for_comes_again),
        TEST(a_node_whose_clock_is_wrong_is_heard),
        TEST(what_happened_long_ago_is_of_no_attempt),
        TEST(a_death_is_safe_when_it_is_written),
        TEST(a_fact_is_the_nodes_and_safe_when_it_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
