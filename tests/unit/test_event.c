/* SPDX-License-Identifier: Apache-2.0 */

/* The field tables against the structs they describe. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "core/model/event_fields.h"

#include <string.h>

static void mark(char *map, size_t at, size_t n)
{
    memset(map + at, 1, n);
}

static void cover(const struct field *fields, size_t at, char *map)
{
    for (const struct field *f = fields; !fields_end(f); f++) {
        if (f->type == FIELD_UNION)
            continue;
        if (f->max && !f->index_name)
            mark(map, at + f->count, sizeof(uint32_t));
        for (size_t i = 0; i < (f->max ? f->max : 1); i++) {
            size_t offset = at + f->offset + i * f->size;

            if (f->type == FIELD_STRUCT)
                cover(f->sub, offset, map);
            else
                mark(map, offset, f->size);
        }
    }
}

/* Bytes that no field describes may only be padding: at most 7 in a row. Looks at the first `part`
 * bytes of a struct of `size` bytes. */
static void check_covered(const char *name, const struct field *fields, size_t part, size_t size)
{
    char *map = test_calloc(1, size);
    size_t run = 0;

    cover(fields, 0, map);
    for (size_t i = 0; i < part; i++) {
        run = map[i] ? 0 : run + 1;
        if (run >= 8)
            fail_msg("%s: no field covers byte %zu", name, i);
    }
    test_free(map);
}

static void fields_cover_every_member(void **state)
{
    for (int k = 0; k < EVENT_MAX; k++) {
        const struct field *body = event_body((enum event_kind)k);

        if (body && k != EVENT_SIGNAL && k != EVENT_NODE_FACT)
            check_covered(body->name, body->sub, body->size, body->size);
    }
    /* A signal is covered up to its union, and each variant in itself. */
    check_covered("signal", event_body(EVENT_SIGNAL)->sub, offsetof(struct signal, step),
                  sizeof(struct signal));
    check_covered("fact", event_body(EVENT_NODE_FACT)->sub, offsetof(struct node_fact, signal.step),
                  sizeof(struct node_fact));
    for (int k = 0; k < SIGNAL_MAX; k++) {
        struct signal s = signal_make((enum signal_kind)k, PROVENANCE_KERNEL);
        const struct field *f = event_body(EVENT_SIGNAL)->sub;

        while (f->type != FIELD_UNION)
            f++;
        f = field_variant(f, &s);
        if (f)
            check_covered(f->name, f->sub, f->size, f->size);
    }
}

/* signal_make() and the tables must agree on what "unknown" is. */
static void a_made_signal_is_absent_but_for_its_kind(void **state)
{
    for (int k = 0; k < SIGNAL_MAX; k++) {
        struct event e = {.kind = EVENT_SIGNAL};
        _cleanup_strbuf_ struct strbuf text = {0};

        e.signal = signal_make((enum signal_kind)k, PROVENANCE_JOB_TEXT);
        fields_print(event_body(EVENT_SIGNAL)->sub, &e.signal, &text);
        assert_null(strstr(strbuf_str(&text), "92233720"));
        assert_null(strstr(strbuf_str(&text), "rank="));
        assert_null(strstr(strbuf_str(&text), "step=-1"));
    }
}

static void differences_are_named(void **state)
{
    struct event a = {.kind = EVENT_SIGNAL, .seq = 3}, b;
    char where[128];

    a.signal = signal_make(SIGNAL_STEP, PROVENANCE_AGENT);
    b = a;
    assert_string_equal(event_differs(&a, &b, where), "");
    b.signal.who.rank = 4;
    assert_string_equal(event_differs(&a, &b, where), "signal.who.rank");
    b = a;
    b.signal.step.loss = 4;
    assert_string_equal(event_differs(&a, &b, where), "signal.step.loss");
    b = a;
    b.seq = 9;
    assert_string_equal(event_differs(&a, &b, where), "seq");

    memset(&a, 0, sizeof(a));
    a.kind = EVENT_VERDICT;
    a.incident.culprits.n_ranks = 1;
    b = a;
    STR_COPY(b.incident.evidence[0].text, "not in use, so not compared");
    assert_string_equal(event_differs(&a, &b, where), "");
    b.incident.culprits.ranks[0] = 7;
    assert_string_equal(event_differs(&a, &b, where), "incident.culprits.ranks");
    b.incident.culprits.n_ranks = 2;
    assert_string_equal(event_differs(&a, &b, where), "incident.culprits.ranks");
}

static void events_print(void **state)
{
    struct event e = {.kind = EVENT_DECISION, .seq = 9, .parent = 8, .attempt = 2};
    _cleanup_strbuf_ struct strbuf text = {0};

    STR_COPY(e.job, "train");
    e.decision.action = ACTION_RESTART;
    STR_COPY(e.decision.rule, "retry");
    e.decision.delay = 30 * USEC_PER_SEC;
    e.decision.after_step = STEP_NONE;
    fields_print(event_fields, &e, &text);
    assert_string_equal(strbuf_str(&text),
                        "seq=9 parent=8 kind=decision job=\"train\" attempt=2 "
                        "decision={action=restart rule=\"retry\" delay=30000000}");
}

#define CHECK_WORDS(prefix, max)                                                                   \
    do {                                                                                           \
        for (int v = 0; v < (int)(max); v++) {                                                     \
            assert_non_null(prefix##_name((enum prefix)v));                                        \
            assert_int_equal(prefix##_from_name(prefix##_name((enum prefix)v)), v);                \
        }                                                                                          \
        assert_null(prefix##_name((enum prefix)max));                                              \
        assert_int_equal(prefix##_from_name("no such word"), -EINVAL);                             \
    } while (0)

static void every_word_has_a_name(void **state)
{
    CHECK_WORDS(event_kind, EVENT_MAX);
    CHECK_WORDS(finding, FINDING_MAX);
    CHECK_WORDS(action, ACTION_MAX);
    CHECK_WORDS(intent, INTENT_MAX);
    CHECK_WORDS(outcome, OUTCOME_MAX);
    CHECK_WORDS(request, REQUEST_MAX);
    CHECK_WORDS(signal_kind, SIGNAL_MAX);
    CHECK_WORDS(phase, PHASE_MAX);
    CHECK_WORDS(edge, EDGE_MAX);
    CHECK_WORDS(incident_class, CLASS_MAX);
    CHECK_WORDS(cause, CAUSE_MAX);
    CHECK_WORDS(domain, DOMAIN_MAX);
    CHECK_WORDS(advice, ADVICE_MAX);
    CHECK_WORDS(role, ROLE_MAX);
    CHECK_WORDS(layer, LAYER_MAX);
    CHECK_WORDS(blame, BLAME_MAX);
    CHECK_WORDS(isolation, ISOLATION_MAX);
    CHECK_WORDS(mode, MODE_MAX);
    CHECK_WORDS(keep_place, KEEP_PLACE_MAX);
    CHECK_WORDS(log_level, LOG_LEVEL_MAX);
    CHECK_WORDS(provenance, PROVENANCE_MAX);
}

/* What the journal would do with the tables: every enum field knows its words both ways. */
static void enum_fields_know_their_words(void **state)
{
    for (const struct field *f = event_body(EVENT_SIGNAL)->sub; !fields_end(f); f++)
        if (f->type == FIELD_ENUM) {
            assert_non_null(f->enum_name(0));
            assert_int_equal(f->enum_from_name(f->enum_name(1)), 1);
            assert_int_equal(f->size, sizeof(int));
        }
    assert_null(event_body(EVENT_INVALID));
    assert_null(event_body(EVENT_TICK));
}

/* What core and the ledger of nodes rest on. */
static void a_fact_is_a_witness_s(void **state)
{
    struct event good = {.kind = EVENT_NODE_FACT, .fact = {.node = "n7", .count = 1}}, e;

    good.fact.signal = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL);
    assert_true(event_is_sane(&good));
    e = good;
    e.fact.node[0] = '\0';
    assert_false(event_is_sane(&e));
    e = good;
    e.fact.count = 0;
    assert_false(event_is_sane(&e));
    e = good;
    e.fact.code = -1;
    assert_false(event_is_sane(&e));
    e = good;
    e.fact.signal.provenance = PROVENANCE_JOB_TEXT;
    assert_false(event_is_sane(&e));
    e = good;
    e.fact.signal.kind = SIGNAL_EXIT;
    assert_false(event_is_sane(&e));
    e = good;
    e.fact.signal.time_us = -5;
    assert_false(event_is_sane(&e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_cover_every_member),
        cmocka_unit_test(a_made_signal_is_absent_but_for_its_kind),
        cmocka_unit_test(differences_are_named),
        cmocka_unit_test(events_print),
        cmocka_unit_test(every_word_has_a_name),
        cmocka_unit_test(enum_fields_know_their_words),
        cmocka_unit_test(a_fact_is_a_witness_s),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
