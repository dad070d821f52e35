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

static struct mode_facts nothing_more_of(enum voice who)
{
    return (struct mode_facts){.asked = true, .owner = who == OWNER, .withdrawn = true};
}

static void take_back(struct world *w, enum voice who)
{
    struct event e = of_job(w, EVENT_MODE);

    e.mode = nothing_more_of(who);
    world_feed(w, e);
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

/* Each mode in each voice, and what is taken back. */
#define WORDS (3u * MODE_MAX + 2)

static struct mode_facts word_number(unsigned n)
{
    if (n >= 3 * MODE_MAX)
        return nothing_more_of(n == 3 * MODE_MAX ? OWNER : OPERATOR);
    return word_of((enum voice)(n / MODE_MAX), (enum mode)(n % MODE_MAX));
}

/* Whatever was said before, and in that order. */
static void an_owner_never_gets_more_than_operators_allow(void **state)
{
    (void)state;
    for (unsigned walk = 0; walk < WORDS * WORDS * WORDS * WORDS; walk++) {
        struct mode_words words = {0};
        enum mode allowed = MODE_OBSERVE, wish = MODE_ACT, terms = MODE_OBSERVE;
        bool ordered = false;

        for (unsigned k = 0, left = walk; k < 4; k++, left /= WORDS) {
            struct mode_facts f = word_number(left % WORDS);

            mode_hear(&words, &f);
            terms = f.asked ? terms : f.mode;
            if (f.asked && !f.owner)
                ordered = !f.withdrawn;
            if (!ordered)
                allowed = terms;
            else if (f.asked && !f.owner)
                allowed = f.mode;
            if (f.asked && (f.owner || !f.withdrawn))
                wish = f.owner && !f.withdrawn ? f.mode : MODE_ACT;
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

static void an_operator_takes_back_his_word(void **state)
{
    struct world *w = *state;

    say(w, OPERATOR, MODE_OBSERVE);
    take_back(w, OPERATOR);
    assert_int_equal(mode_of(w), MODE_ACT);
    say(w, TERMS, MODE_PROPOSE); /* rules count, also from then on */
    assert_int_equal(mode_of(w), MODE_PROPOSE);
    take_back(w, OPERATOR);
    assert_int_equal(mode_of(w), MODE_PROPOSE);
}

static void each_takes_back_his_own_word(void **state)
{
    struct world *w = *state;

    say(w, OWNER, MODE_PROPOSE); /* ended by the operator's word, and stays so */
    say(w, OPERATOR, MODE_ACT);
    take_back(w, OPERATOR);
    assert_int_equal(mode_of(w), MODE_ACT);
    say(w, OPERATOR, MODE_PROPOSE);
    say(w, OWNER, MODE_OBSERVE);
    take_back(w, OPERATOR);
    assert_int_equal(mode_of(w), MODE_OBSERVE);
    take_back(w, OWNER);
    assert_int_equal(mode_of(w), MODE_ACT);
    say(w, OPERATOR, MODE_PROPOSE);
    take_back(w, OWNER);
    assert_int_equal(mode_of(w), MODE_PROPOSE);
}

static void a_job_that_was_let_go_is_taken_up_again_by_the_rules(void **state)
{
    struct world *w = *state;

    say(w, OPERATOR, MODE_OFF);
    assert_true(sched_of(w)->let_go);
    take_back(w, OPERATOR);
    assert_int_equal(mode_of(w), MODE_ACT);
    assert_true(sched_of(w)->resumed);
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
        IN(act, an_operator_takes_back_his_word),
        IN(act, each_takes_back_his_own_word),
        IN(act, a_job_that_was_let_go_is_taken_up_again_by_the_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
