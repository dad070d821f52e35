/* SPDX-License-Identifier: Apache-2.0 */

/* When the scheduler is asked where tasks run: ever more seldom, but only because it answered. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "daemon/sched.h"

#include "model_tell.h"

#define KEY "42-1700000000"

static struct {
    struct model *model;
    usec_t now;
    adapter_reply_fn *reply;
    void *ctx;
    unsigned asked;
} world;

usec_t __wrap_mono_us(void);

/* The linker puts it before the real one. */
usec_t __wrap_mono_us(void)
{
    return world.now;
}

const struct model *pump_model(const struct pump *p)
{
    return world.model;
}

uint64_t pump_input(struct pump *p, const struct event *e)
{
    return 1;
}

void adapter_ask(struct adapter *a, json_t *request, usec_t deadline, adapter_reply_fn *reply,
                 void *ctx)
{
    json_decref(request);
    world.asked++;
    world.reply = reply;
    world.ctx = ctx;
}

static void apply(enum event_kind kind, uint32_t attempt)
{
    model_tell(world.model, KEY, kind, attempt, USEC_PER_DAY);
}

static int set_up(void **state)
{
    static struct daemon_config config;
    static struct daemon d = {.config = &config};
    struct sched_job record = {.id = 42, .state = SCHED_RUNNING};
    struct layouts *l;

    memset(&world, 0, sizeof(world));
    world.now = USEC_PER_DAY;
    world.model = model_new();
    apply(EVENT_JOB_SEEN, 0);
    apply(EVENT_ATTEMPT_STARTED, 1);
    l = layouts_new(&d);
    layouts_follow(l, &record, KEY);
    *state = l;
    return 0;
}

static int tear_down(void **state)
{
    layouts_free(*state);
    model_free(world.model);
    return 0;
}

/* How long it was until it was asked again. */
static usec_t asked_after(struct layouts *l)
{
    unsigned before = world.asked;
    usec_t since = world.now;

    while (world.asked == before) {
        layouts_look(l);
        if (world.asked == before)
            world.now += 500 * USEC_PER_MSEC;
    }
    return world.now - since;
}

static void answer(enum adapter_outcome outcome)
{
    json_t *none = json_pack("{s:[]}", "steps");

    world.reply(world.ctx, outcome, outcome == ADAPTER_DONE ? none : NULL, "as the test wants");
    json_decref(none);
}

/* Also an adapter that says no, or hangs at it. */
static void it_is_asked_ever_more_seldom(void **state)
{
    static const enum adapter_outcome outcomes[] = {ADAPTER_DONE, ADAPTER_REFUSED, ADAPTER_UNKNOWN};
    usec_t last = 0;

    for (int i = 0; i < 8; i++) {
        usec_t after = asked_after(*state);

        assert_true(after >= last);
        last = after;
        answer(outcomes[i % 3]);
    }
    assert_true(last > USEC_PER_MIN / 2);
}

static void while_nobody_can_be_asked_no_pause_grows(void **state)
{
    for (int i = 0; i < 8; i++) {
        assert_true(asked_after(*state) <= 2 * USEC_PER_SEC);
        answer(ADAPTER_UNREACHABLE);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(it_is_asked_ever_more_seldom),
        TEST(while_nobody_can_be_asked_no_pause_grows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
