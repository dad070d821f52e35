/* SPDX-License-Identifier: Apache-2.0 */

/* How far reknit may go with a job: the terms (rules and comment), its owner's wish and an
 * operator's word, in whatever order they are said. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched_world.h"

enum voice { TERMS, OWNER, OPERATOR };

static struct mode_facts word_of(enum voice who, enum mode mode)
{
    return (struct mode_facts){.mode = mode, .asked = who != TERMS, .owner = who == OWNER};
}

static void say(struct world *w, enum voice who, enum mode mode)
{
    struct event e = of_job(w, EVENT_MODE);

    e.mode = word_of(who, mode);
    world_feed(w, e);
}

static enum mode mode_of(const struct world *w)
{
    return sched_of(w)->mode;
}

/* Whatever was said before, and in that order. */
static void an_owner_never_gets_more_than_operators_allow(void **state)
{
    (void)state;
    for (unsigned walk = 0; walk < 12u * 12 * 12 * 12; walk++) {
        struct mode_words words = {0};
        enum mode allowed = MODE_OBSERVE, wish = MODE_ACT;
        bool ordered = false;

        for (unsigned k = 0, left = walk; k < 4; k++, left /= 12) {
            enum voice who = (enum voice)(left % 12 / MODE_MAX);
            enum mode mode = (enum mode)(left % MODE_MAX);
            struct mode_facts f = word_of(who, mode);

            mode_hear(&words, &f);
            if (who == OPERATOR || (who == TERMS && !ordered))
                allowed = mode;
            if (who != TERMS)
                wish = who == OWNER ? mode : MODE_ACT;
            ordered |= who == OPERATOR;
            assert_int_equal(mode_allowed(&words), allowed);
            assert_int_equal(mode_in_force(&words), wish < allowed ? wish : allowed);
        }
    }
}

static void rules_that_fall_are_above_the_owners_word(void **state)
{
    struct world *w = *state;

    say(w, OWNER, MODE_ACT); /* as it is: later it must not be more than that */
    say(w, TERMS, MODE_OBSERVE);
    assert_int_equal(mode_of(w), MODE_OBSERVE);
    fail_job(w);
    world_wait(w, 10 * MIN);
    assert_int_equal(asked_anything(w), 0);
}

static void a_restart_that_was_begun_ends_with_the_rules(void **state)
{
    struct world *w = *state;

    say(w, OWNER, MODE_ACT);
    fail_with_node(w, "n2");
    say(w, TERMS, MODE_OBSERVE);
    grant_requeue(w, 0);
    assert_int_equal(asked(w, INTENT_AMEND), 0);
}

static void rules_that_say_off_let_it_go_whatever_its_owner_said(void **state)
{
    struct world *w = *state;

    say(w, OWNER, MODE_ACT);
    say(w, TERMS, MODE_OFF);
    assert_int_equal(world_job(w)->state, JOB_ENDED);
    assert_true(sched_of(w)->let_go);
}

static void an_owner_lowers_and_may_take_it_back(void **state)
{
    struct world *w = *state;

    say(w, OWNER, MODE_OBSERVE);
    say(w, TERMS, MODE_PROPOSE);
    say(w, TERMS, MODE_ACT);
    assert_int_equal(mode_of(w), MODE_OBSERVE); /* rules do not end a wish */
    say(w, OWNER, MODE_ACT);
    assert_int_equal(mode_of(w), MODE_ACT);
    fail_job(w);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

static void an_operators_word_goes_beyond_the_rules(void **state)
{
    struct world *w = *state;

    say(w, OPERATOR, MODE_ACT);
    assert_int_equal(mode_of(w), MODE_ACT);
    say(w, TERMS, MODE_OBSERVE);
    say(w, OWNER, MODE_PROPOSE);
    assert_int_equal(mode_of(w), MODE_PROPOSE);
    say(w, OWNER, MODE_ACT);
    say(w, OPERATOR, MODE_OBSERVE);
    assert_int_equal(mode_of(w), MODE_OBSERVE);
    say(w, OWNER, MODE_ACT);
    assert_int_equal(mode_of(w), MODE_OBSERVE);
    say(w, OPERATOR, MODE_ACT);
    fail_job(w);
    assert_int_equal(asked(w, INTENT_REQUEUE), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_never_gets_more_than_operators_allow),
        IN(act, rules_that_fall_are_above_the_owners_word),
        IN(act, a_restart_that_was_begun_ends_with_the_rules),
        IN(act, rules_that_say_off_let_it_go_whatever_its_owner_said),
        IN(act, an_owner_lowers_and_may_take_it_back),
        IN(observe, an_operators_word_goes_beyond_the_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
