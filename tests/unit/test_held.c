/* SPDX-License-Identifier: Apache-2.0 */

/* What is about attempts that nothing is known of yet: kept in its order, within bounds, until
 * something is known. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/vec.h"
#include "daemon/held.h"
#include "until.h"

#include <stdlib.h>

struct fixture {
    sd_event *event;
    struct held *held;
    bool known;       /* what everything is about */
    unsigned asked;   /* how often */
    usec_t came;      /* of the last */
    VEC(int64_t) ids; /* in the order in which they were taken */
    int64_t forgotten;
};

static bool again(void *ctx, const struct node_message *m, const struct agent_receipt *r,
                  usec_t came)
{
    struct fixture *f = ctx;

    f->asked++;
    f->came = came;
    if (f->known)
        *VEC_PUSH(&f->ids) = r->id;
    return f->known;
}

static void forgotten(void *ctx, const struct agent_receipt *r)
{
    ((struct fixture *)ctx)->forgotten = r->id;
}

static int set_up(void **state)
{
    static const struct held_handlers handlers = {.again = again, .forgotten = forgotten};
    struct fixture *f = calloc(1, sizeof(*f));

    assert_return_code(sd_event_new(&f->event), 0);
    f->held = held_new(f->event, &handlers, f);
    assert_non_null(f->held);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    held_free(f->held);
    sd_event_unref(f->event);
    VEC_DONE(&f->ids);
    free(f);
    return 0;
}

static struct node_message about(enum node_message_kind kind, uint32_t job, const char *node)
{
    struct node_message m = {.kind = kind, .job = job, .uid = 1000};

    STR_COPY(m.node, node);
    return m;
}

static enum agent_taken add(struct fixture *f, enum node_message_kind kind, int64_t id)
{
    struct node_message m = about(kind, 42, "n7");
    struct agent_receipt r = {.node = "n7", .origin = 1, .id = id};

    return held_add(f->held, &m, &r);
}

static void it_is_tried_again_in_order_until_it_is_known(void **state)
{
    struct fixture *f = *state;
    usec_t before = mono_us();

    for (int64_t id = 1; id <= 3; id++)
        assert_int_equal(add(f, NODE_MESSAGE_EXIT, id), AGENT_TAKEN_OPEN);
    UNTIL(f->asked >= 6, sd_event_run(f->event, USEC_PER_SEC));
    assert_true(f->came >= before && f->came <= before + USEC_PER_SEC); /* not of the trying */
    f->known = true;
    UNTIL(f->ids.n == 3, sd_event_run(f->event, USEC_PER_SEC));
    for (int64_t id = 1; id <= 3; id++)
        assert_int_equal(f->ids.v[id - 1], id);
    f->asked = 0;
    sd_event_run(f->event, 300 * USEC_PER_MSEC);
    assert_int_equal(f->asked, 0);
}

static void what_follows_it_is_known(void **state)
{
    struct fixture *f = *state;
    struct node_message same = about(NODE_MESSAGE_ACTIVITY, 42, "n7");
    struct node_message job = about(NODE_MESSAGE_EXIT, 43, "n7");
    struct node_message node = about(NODE_MESSAGE_EXIT, 42, "n8");

    assert_false(held_is_before(f->held, &same));
    add(f, NODE_MESSAGE_EXIT, 1);
    assert_true(held_is_before(f->held, &same));
    assert_false(held_is_before(f->held, &job) || held_is_before(f->held, &node));
}

static void a_sign_of_life_takes_back_that_nothing_is_left(void **state)
{
    struct fixture *f = *state;
    struct node_message life = about(NODE_MESSAGE_ACTIVITY, 42, "n7"), stranger = life;

    add(f, NODE_MESSAGE_GONE, 5);
    stranger.uid = 1001; /* who has called the processes so */
    held_hear(f->held, &stranger);
    assert_true(held_is_before(f->held, &life));
    held_hear(f->held, &life);
    assert_int_equal(f->forgotten, 5);
    assert_false(held_is_before(f->held, &life));
}

static void what_comes_again_by_itself_is_not_kept(void **state)
{
    assert_int_equal(add(*state, NODE_MESSAGE_ACTIVITY, 0), AGENT_TAKEN);
}

/* Files that are told of leave room for deaths. */
static void room_is_bounded(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < HELD_LOGS; i++)
        assert_int_equal(add(f, NODE_MESSAGE_LOGS, 0), AGENT_TAKEN_OPEN);
    assert_int_equal(add(f, NODE_MESSAGE_LOGS, 0), AGENT_NO_ROOM);
    for (int i = HELD_LOGS; i < HELD_MAX; i++)
        assert_int_equal(add(f, NODE_MESSAGE_EXIT, i), AGENT_TAKEN_OPEN);
    assert_int_equal(add(f, NODE_MESSAGE_EXIT, HELD_MAX), AGENT_NO_ROOM);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(it_is_tried_again_in_order_until_it_is_known),
        TEST(what_follows_it_is_known),
        TEST(a_sign_of_life_takes_back_that_nothing_is_left),
        TEST(what_comes_again_by_itself_is_not_kept),
        TEST(room_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
