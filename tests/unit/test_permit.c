/* SPDX-License-Identifier: Apache-2.0 */

/* What may still be done once it was asked for. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/plan/permit.h"

#include <stdlib.h>

/* The columns of the table. */
static const struct {
    enum mode mode;
    bool approved;
} columns[] = {
    {MODE_OFF},           {MODE_OBSERVE}, {MODE_OBSERVE, true}, {MODE_PROPOSE},
    {MODE_PROPOSE, true}, {MODE_ACT},     {MODE_ACT, true},
};

#define BEGIN      (5 * USEC_PER_MIN)
#define NODE       "n1"
#define NEVER      "-------"
#define ALWAYS     "+++++++"
#define AS_DECIDED "----+++"
#define IN_ACT     "-----++"

static const struct row {
    const char *name;
    enum intent intent;
    const char *free, *frozen;
    bool nodes, first, unwanted, held, undecided, constrained, unwatched, armed;
    usec_t at;
    const char *lost;
} rows[] = {
    {"requeue", INTENT_REQUEUE, AS_DECIDED, NEVER},
    {"hold", INTENT_HOLD, AS_DECIDED, NEVER},
    {"fence", INTENT_FENCE, "-----+-", NEVER, .nodes = true, .lost = NODE},
    {"fence what answers again", INTENT_FENCE, NEVER, NEVER, .nodes = true},
    {"fence another", INTENT_FENCE, NEVER, NEVER, .nodes = true, .lost = "n2"},
    {"keep nodes out", INTENT_AMEND, AS_DECIDED, NEVER, .nodes = true},
    {"put first", INTENT_AMEND, AS_DECIDED, NEVER, .first = true},
    {"start sooner", INTENT_AMEND, AS_DECIDED, NEVER},
    {"take exclusions back", INTENT_AMEND, ALWAYS, NEVER, .constrained = true},
    {"start sooner what is let go", INTENT_AMEND, AS_DECIDED, NEVER, .unwatched = true},
    {"undo what is let go", INTENT_AMEND, ALWAYS, NEVER, .unwatched = true, .at = BEGIN},
    {"keep nodes out of what is let go", INTENT_AMEND, AS_DECIDED, NEVER, .nodes = true,
     .unwatched = true, .at = BEGIN},
    {"cancel", INTENT_CANCEL, AS_DECIDED, NEVER},
    {"cancel what a late requeue brought back", INTENT_CANCEL, ALWAYS, NEVER, .unwanted = true},
    {"reserve", INTENT_RESERVE, AS_DECIDED, NEVER},
    {"reserve as it dies", INTENT_RESERVE, IN_ACT, NEVER, .undecided = true},
    {"arm", INTENT_ARM, AS_DECIDED, NEVER},
    {"arm as it runs", INTENT_ARM, IN_ACT, NEVER, .undecided = true},
    {"disarm", INTENT_DISARM, "++++---", NEVER, .armed = true},
    {"disarm as it runs", INTENT_DISARM, "+++++--", NEVER, .armed = true, .undecided = true},
    {"disarm what is not armed by us", INTENT_DISARM, NEVER, NEVER},
    {"guard", INTENT_GUARD, IN_ACT, NEVER},
    {"lengthen a hold", INTENT_GUARD, IN_ACT, IN_ACT, .held = true},
    {"mend", INTENT_MEND, "---++++", NEVER},
    {"release", INTENT_RELEASE, ALWAYS, NEVER},
    {"yield", INTENT_YIELD, ALWAYS, NEVER},
    {"give nodes back", INTENT_UNRESERVE, ALWAYS, ALWAYS},
};

struct world {
    struct model *model;
    struct job job;
};

static int set_up(void **state)
{
    struct world *w = xnew(struct world);

    w->model = model_new();
    w->job.scheduled = true;
    w->job.state = JOB_DECIDED;
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    model_free(w->model);
    free(w);
    return 0;
}

static void check(struct world *w, const struct row *r)
{
    struct intent_facts f = {
        .intent = r->intent, .n_nodes = r->nodes, .first = r->first, .not_before = r->at};
    struct sched *s = &w->job.sched;

    w->job.attempt.decision.mode = r->undecided ? MODE_OFF : MODE_ACT;
    s->unwanted = r->unwanted;
    s->look.held = r->held;
    s->look.constrained = r->constrained;
    s->look.n_kept_out = r->constrained;
    s->unwatched = r->unwatched;
    s->armed = r->armed;
    STR_COPY(s->look.lost_node, r->lost ? r->lost : "");
    STR_COPY(f.nodes[0], NODE);
    s->look.begin = s->own_begin = BEGIN;
    for (size_t i = 0; i < 2 * ARRAY_SIZE(columns); i++) {
        size_t c = i % ARRAY_SIZE(columns);

        w->model->frozen = i != c;
        s->mode = columns[c].mode;
        s->approved = columns[c].approved;
        if (plan_sched_permits(w->model, &w->job, &f) !=
            ((w->model->frozen ? r->frozen : r->free)[c] == '+'))
            fail_msg("%s, column %zu%s", r->name, c, w->model->frozen ? ", frozen" : "");
    }
}

static void each_is_permitted_where_it_is_asked_for(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        check(*state, &rows[i]);
}

static void what_was_proposed_waits_in_mode_act_too(void **state)
{
    struct world *w = *state;
    struct intent_facts f = {.intent = INTENT_REQUEUE};

    w->job.sched.mode = MODE_ACT;
    w->job.attempt.decision.mode = MODE_PROPOSE;
    assert_false(plan_sched_permits(w->model, &w->job, &f));
    w->job.sched.approved = true;
    assert_true(plan_sched_permits(w->model, &w->job, &f));
    w->job.sched.rejected = true;
    assert_false(plan_sched_permits(w->model, &w->job, &f));
}

/* A look has shown another job that waited for its end. */
static void who_has_a_successor_waits_for_approval(void **state)
{
    struct world *w = *state;
    struct intent_facts f = {.intent = INTENT_REQUEUE};

    w->job.sched.mode = w->job.attempt.decision.mode = MODE_ACT;
    w->job.sched.succeeded = true;
    assert_false(plan_sched_permits(w->model, &w->job, &f));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_is_permitted_where_it_is_asked_for),
        TEST(what_was_proposed_waits_in_mode_act_too),
        TEST(who_has_a_successor_waits_for_approval),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
