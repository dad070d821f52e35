/* SPDX-License-Identifier: Apache-2.0 */

/* The field tables, from the leaves up to struct event, and the walks over them.
 *
 * The type of a number is taken from the member itself, so that a table cannot lie about it. A
 * test walks every table and fails when bytes of a struct belong to no field: that is how a new
 * member that was forgotten here is found. */

#include "core/model/event_fields.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TYPE_OF(T, member)                                                                         \
    _Generic(((T *)0)->member, bool                                                                \
             : FIELD_BOOL, int32_t                                                                 \
             : FIELD_I32, uint32_t                                                                 \
             : FIELD_U32, int64_t                                                                  \
             : FIELD_I64, uint64_t                                                                 \
             : FIELD_U64)
#define PLACE(T, member) .offset = offsetof(T, member), .size = sizeof(((T *)0)->member)
#define ELEMENTS(T, member)                                                                        \
    .offset = offsetof(T, member), .size = sizeof(((T *)0)->member[0]),                            \
    .max = ARRAY_SIZE(((T *)0)->member)

#define TEXT(T, member)                                                                            \
    {                                                                                              \
        .name = #member, .type = FIELD_TEXT, PLACE(T, member)                                      \
    }
#define NUMBER_OR(T, member, none)                                                                 \
    {                                                                                              \
        .name = #member, .type = TYPE_OF(T, member), PLACE(T, member), .absent = (none)            \
    }
#define NUMBER(T, member) NUMBER_OR(T, member, 0)
#define WORD_OR_NONE(T, member, prefix)                                                            \
    {                                                                                              \
        .name = #member, .type = FIELD_ENUM, PLACE(T, member), .enum_name = prefix##_word,         \
        .enum_from_name = prefix##_from_word                                                       \
    }
#define WORD(T, member, prefix)                                                                    \
    {                                                                                              \
        .name = #member, .type = FIELD_ENUM, PLACE(T, member), .enum_name = prefix##_word,         \
        .enum_from_name = prefix##_from_word, .always = true                                       \
    }
#define NESTED(T, member, fields)                                                                  \
    {                                                                                              \
        .name = #member, .type = FIELD_STRUCT, PLACE(T, member), .sub = (fields)                   \
    }
#define LIST(T, member, n, element, ...)                                                           \
    {                                                                                              \
        .name = #member, .type = (element), ELEMENTS(T, member), .count = offsetof(T, n),          \
        __VA_ARGS__                                                                                \
    }
#define ONE_OF(T, kind, table)                                                                     \
    {                                                                                              \
        .type = FIELD_UNION, .selector = offsetof(T, kind), .variants = (table),                   \
        .n_variants = ARRAY_SIZE(table)                                                            \
    }
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* Enum names by plain int, so that one pointer type serves all enums. */
#define WORDS(prefix)                                                                              \
    static const char *prefix##_word(int v)                                                        \
    {                                                                                              \
        return prefix##_name((enum prefix)v);                                                      \
    }                                                                                              \
    static int prefix##_from_word(const char *s)                                                   \
    {                                                                                              \
        return (int)prefix##_from_name(s);                                                         \
    }                                                                                              \
    struct _words_needs_semicolon_

WORDS(action);
WORDS(advice);
WORDS(blame);
WORDS(cause);
WORDS(edge);
WORDS(event_kind);
WORDS(finding);
WORDS(incident_class);
WORDS(intent);
WORDS(isolation);
WORDS(layer);
WORDS(outcome);
WORDS(mode);
WORDS(keep_place);
WORDS(phase);
WORDS(provenance);
WORDS(request);
WORDS(role);
WORDS(sched_state);
WORDS(signal_kind);

static const struct field cause_policy_fields[] = {
    NUMBER(struct cause_policy, retries),
    NUMBER(struct cause_policy, backoff),
    NUMBER(struct cause_policy, backoff_max),
    NUMBER(struct cause_policy, patience),
    END,
};

static const struct field hang_policy_fields[] = {
    NUMBER(struct hang_policy, enabled),     NUMBER(struct hang_policy, timeout_min),
    NUMBER(struct hang_policy, timeout_max), NUMBER(struct hang_policy, factor),
    NUMBER(struct hang_policy, first_step),  NUMBER(struct hang_policy, checkpoint),
    NUMBER(struct hang_policy, evaluation),  NUMBER(struct hang_policy, compilation),
    NUMBER(struct hang_policy, shutdown),    END,
};

static const struct field policy_fields[] = {
    TEXT(struct policy, name),
    NUMBER(struct policy, max_restarts),
    NUMBER(struct policy, max_restarts_per_day),
    NUMBER(struct policy, max_without_progress),
    NUMBER(struct policy, max_without_step),
    NUMBER(struct policy, same_step_retries),
    NUMBER(struct policy, continue_after_time_limit),
    WORD_OR_NONE(struct policy, keep_place, keep_place),
    NUMBER(struct policy, hold_on_stop),
    NUMBER(struct policy, max_waste),
    NUMBER(struct policy, waste_floor),
    NUMBER(struct policy, max_node_restarts_per_day),
    NUMBER(struct policy, large_job),
    NUMBER(struct policy, max_unexplained),
    NUMBER(struct policy, exclude_devices),
    NUMBER(struct policy, min_devices),
    NUMBER(struct policy, verdict_wait),
    NUMBER(struct policy, kill_grace),
    NESTED(struct policy, hang, hang_policy_fields),
    {.name = "cause",
     .type = FIELD_STRUCT,
     ELEMENTS(struct policy, cause),
     .index_name = cause_word,
     .sub = cause_policy_fields},
    END,
};

static const struct field job_facts_fields[] = {
    TEXT(struct job_facts, command),
    TEXT(struct job_facts, directory),
    TEXT(struct job_facts, user),
    TEXT(struct job_facts, host),
    TEXT(struct job_facts, program),
    NUMBER(struct job_facts, run),
    NUMBER(struct job_facts, nodes),
    NUMBER(struct job_facts, gpus),
    LIST(struct job_facts, devices, n_devices, FIELD_TEXT),
    NUMBER(struct job_facts, scheduled),
    TEXT(struct job_facts, name),
    TEXT(struct job_facts, partition),
    TEXT(struct job_facts, account),
    TEXT(struct job_facts, qos),
    NUMBER(struct job_facts, id),
    TEXT(struct job_facts, label),
    NUMBER(struct job_facts, uid),
    NUMBER(struct job_facts, interactive),
    NUMBER(struct job_facts, over),
    END,
};

static const struct field attempt_facts_fields[] = {
    NUMBER(struct attempt_facts, pid),
    NUMBER(struct attempt_facts, intent),
    TEXT(struct attempt_facts, log),
    END,
};

static const struct field entity_fields[] = {
    NUMBER_OR(struct entity, rank, RANK_NONE),
    NUMBER_OR(struct entity, local_rank, RANK_NONE),
    TEXT(struct entity, node),
    TEXT(struct entity, device),
    TEXT(struct entity, peer),
    TEXT(struct entity, address),
    TEXT(struct entity, tasks),
    NUMBER(struct entity, label),
    NUMBER(struct entity, pid),
    END,
};

static const struct field step_fields[] = {
    NUMBER_OR(struct step_fact, step, STEP_NONE),
    NUMBER_OR(struct step_fact, total, NUMBER_NONE),
    NUMBER_OR(struct step_fact, duration, NUMBER_NONE),
    NUMBER_OR(struct step_fact, loss, NUMBER_NONE),
    NUMBER_OR(struct step_fact, grad_norm, NUMBER_NONE),
    NUMBER_OR(struct step_fact, rate, NUMBER_NONE),
    NUMBER(struct step_fact, skipped),
    NUMBER(struct step_fact, more),
    END,
};

static const struct field checkpoint_fields[] = {
    WORD(struct checkpoint_fact, edge, edge),
    NUMBER_OR(struct checkpoint_fact, step, STEP_NONE),
    END,
};

static const struct field phase_fields[] = {
    WORD(struct phase_fact, phase, phase),
    WORD(struct phase_fact, edge, edge),
    END,
};

static const struct field collective_fields[] = {
    TEXT(struct collective_fact, group),
    TEXT(struct collective_fact, op),
    NUMBER_OR(struct collective_fact, seq, NUMBER_NONE),
    NUMBER_OR(struct collective_fact, numel, NUMBER_NONE),
    NUMBER_OR(struct collective_fact, enqueued, NUMBER_NONE),
    NUMBER_OR(struct collective_fact, completed, NUMBER_NONE),
    NUMBER_OR(struct collective_fact, waited, NUMBER_NONE),
    END,
};

static const struct field exit_fields[] = {
    NUMBER(struct exit_fact, pid),    NUMBER(struct exit_fact, code),
    NUMBER(struct exit_fact, signal), NUMBER(struct exit_fact, error),
    NUMBER(struct exit_fact, unkept), END,
};

static const struct field activity_fields[] = {
    NUMBER(struct activity_fact, interval),
    NUMBER(struct activity_fact, cpu),
    NUMBER(struct activity_fact, io),
    NUMBER(struct activity_fact, processes),
    NUMBER(struct activity_fact, stopped),
    NUMBER(struct activity_fact, blocked),
    END,
};

static const struct field layout_fields[] = {
    NUMBER(struct layout_fact, step),
    NUMBER(struct layout_fact, tasks),
    END,
};

static const struct field signal_step = NESTED(struct signal, step, step_fields);
static const struct field signal_checkpoint = NESTED(struct signal, checkpoint, checkpoint_fields);
static const struct field signal_phase = NESTED(struct signal, phase, phase_fields);
static const struct field signal_collective = NESTED(struct signal, collective, collective_fields);
static const struct field signal_exit = NESTED(struct signal, exit, exit_fields);
static const struct field signal_activity = NESTED(struct signal, activity, activity_fields);
static const struct field signal_layout = NESTED(struct signal, layout, layout_fields);

static const struct field *const signal_variants[SIGNAL_MAX] = {
    [SIGNAL_HIT] = NULL,
    [SIGNAL_STEP] = &signal_step,
    [SIGNAL_CHECKPOINT] = &signal_checkpoint,
    [SIGNAL_PHASE] = &signal_phase,
    [SIGNAL_COLLECTIVE] = &signal_collective,
    [SIGNAL_EXIT] = &signal_exit,
    [SIGNAL_ACTIVITY] = &signal_activity,
    [SIGNAL_LAYOUT] = &signal_layout,
    [SIGNAL_OUTPUT] = NULL,
};

static const struct field signal_fields[] = {
    WORD(struct signal, kind, signal_kind),
    WORD(struct signal, provenance, provenance),
    NUMBER_OR(struct signal, time_us, USEC_UNKNOWN),
    NUMBER(struct signal, uptime),
    NUMBER(struct signal, file),
    NUMBER(struct signal, line),
    NUMBER(struct signal, offset),
    TEXT(struct signal, signature),
    WORD_OR_NONE(struct signal, layer, layer),
    WORD_OR_NONE(struct signal, role, role),
    WORD_OR_NONE(struct signal, cause, cause),
    WORD_OR_NONE(struct signal, blame, blame),
    WORD_OR_NONE(struct signal, advice, advice),
    NUMBER(struct signal, confidence),
    NUMBER(struct signal, hang),
    NUMBER(struct signal, straggler),
    NUMBER(struct signal, raised),
    NUMBER(struct signal, cut),
    TEXT(struct signal, clears),
    NUMBER(struct signal, nodes),
    NESTED(struct signal, who, entity_fields),
    NUMBER(struct signal, message),
    TEXT(struct signal, text),
    ONE_OF(struct signal, kind, signal_variants),
    END,
};

static const struct field node_fact_fields[] = {
    TEXT(struct node_fact, node),
    NUMBER(struct node_fact, job),
    WORD(struct node_fact, isolation, isolation),
    NUMBER(struct node_fact, code),
    NUMBER(struct node_fact, count),
    NUMBER(struct node_fact, cleared),
    NESTED(struct node_fact, signal, signal_fields),
    END,
};

static const struct field node_terms_fields[] = {
    WORD_OR_NONE(struct node_terms, mode, mode),
    NUMBER(struct node_terms, check),
    NUMBER(struct node_terms, nodes),
    NUMBER(struct node_terms, max_drained),
    NUMBER(struct node_terms, drains_per_hour),
    NUMBER(struct node_terms, breaker_nodes),
    END,
};

static const struct field node_look_fields[] = {
    TEXT(struct node_look, node),     NUMBER(struct node_look, out),
    NUMBER(struct node_look, drain),  TEXT(struct node_look, reason),
    NUMBER(struct node_look, booted), END,
};

static const struct field node_verdict_fields[] = {
    TEXT(struct node_verdict, node),
    TEXT(struct node_verdict, device),
    WORD(struct node_verdict, isolation, isolation),
    WORD(struct node_verdict, cause, cause),
    TEXT(struct node_verdict, signature),
    TEXT(struct node_verdict, rule),
    TEXT(struct node_verdict, why),
    END,
};

static const struct field finding_fields[] = {
    WORD(struct finding_facts, finding, finding),
    NUMBER(struct finding_facts, timeout),
    NUMBER(struct finding_facts, silent),
    WORD(struct finding_facts, phase, phase),
    TEXT(struct finding_facts, why),
    END,
};

static const struct field culprits_fields[] = {
    LIST(struct culprits, nodes, n_nodes, FIELD_TEXT),
    LIST(struct culprits, ranks, n_ranks, FIELD_I32),
    LIST(struct culprits, devices, n_devices, FIELD_TEXT),
    END,
};

static const struct field evidence_line_fields[] = {
    NUMBER(struct evidence_line, file),     NUMBER(struct evidence_line, line),
    NUMBER(struct evidence_line, offset),   NUMBER(struct evidence_line, count),
    WORD(struct evidence_line, role, role), TEXT(struct evidence_line, signature),
    TEXT(struct evidence_line, text),       END,
};

static const struct field evidence_log_fields[] = {
    NUMBER(struct evidence_log, file),
    TEXT(struct evidence_log, path),
    END,
};

static const struct field ruled_out_fields[] = {
    TEXT(struct ruled_out, what),
    TEXT(struct ruled_out, why),
    END,
};

static const struct field progress_fields[] = {
    NUMBER_OR(struct progress_summary, first_step, STEP_NONE),
    NUMBER_OR(struct progress_summary, last_step, STEP_NONE),
    NUMBER_OR(struct progress_summary, total_steps, NUMBER_NONE),
    NUMBER_OR(struct progress_summary, checkpoint_step, STEP_NONE),
    NUMBER(struct progress_summary, steps_seen),
    NUMBER_OR(struct progress_summary, median_step, NUMBER_NONE),
    END,
};

static const struct field incident_fields[] = {
    WORD(struct incident, class, incident_class),
    WORD_OR_NONE(struct incident, cause, cause),
    WORD_OR_NONE(struct incident, advice, advice),
    NUMBER(struct incident, confidence),
    NUMBER(struct incident, finished),
    NUMBER(struct incident, no_restart),
    NESTED(struct incident, culprits, culprits_fields),
    TEXT(struct incident, signature),
    TEXT(struct incident, fingerprint),
    TEXT(struct incident, summary),
    LIST(struct incident, evidence, n_evidence, FIELD_STRUCT, .sub = evidence_line_fields),
    LIST(struct incident, logs, n_logs, FIELD_STRUCT, .sub = evidence_log_fields),
    LIST(struct incident, ruled_out, n_ruled_out, FIELD_STRUCT, .sub = ruled_out_fields),
    NESTED(struct incident, progress, progress_fields),
    NUMBER(struct incident, dropped),
    END,
};

static const struct field decision_fields[] = {
    WORD_OR_NONE(struct decision_facts, action, action),
    TEXT(struct decision_facts, rule),
    TEXT(struct decision_facts, why),
    NUMBER(struct decision_facts, used),
    NUMBER(struct decision_facts, allowed),
    NUMBER(struct decision_facts, delay),
    NUMBER_OR(struct decision_facts, after_step, STEP_NONE),
    LIST(struct decision_facts, without, n_without, FIELD_TEXT),
    LIST(struct decision_facts, nodes, n_nodes, FIELD_TEXT),
    WORD(struct decision_facts, mode, mode),
    END,
};

static const struct field intended_fields[] = {
    WORD(struct intent_facts, intent, intent),
    NUMBER(struct intent_facts, not_before),
    NUMBER(struct intent_facts, signal),
    NUMBER(struct intent_facts, grace),
    NUMBER_OR(struct intent_facts, after_step, STEP_NONE),
    LIST(struct intent_facts, without, n_without, FIELD_TEXT),
    LIST(struct intent_facts, nodes, n_nodes, FIELD_TEXT),
    NUMBER(struct intent_facts, first),
    TEXT(struct intent_facts, reservation),
    NUMBER(struct intent_facts, restarts),
    TEXT(struct intent_facts, reason),
    END,
};

static const struct field result_fields[] = {
    NUMBER(struct result_facts, intent),
    WORD(struct result_facts, outcome, outcome),
    NUMBER(struct result_facts, final),
    TEXT(struct result_facts, detail),
    END,
};

static const struct field request_fields[] = {
    WORD(struct request_facts, request, request),
    NUMBER(struct request_facts, signal),
    NUMBER(struct request_facts, of),
    TEXT(struct request_facts, node),
    TEXT(struct request_facts, who),
    TEXT(struct request_facts, why),
    END,
};

static const struct field learned_fields[] = {
    NUMBER(struct learned_facts, n),
    NUMBER(struct learned_facts, median),
    NUMBER(struct learned_facts, mad),
    NUMBER(struct learned_facts, q99),
    NUMBER(struct learned_facts, longest),
    NUMBER(struct learned_facts, first_step),
    LIST(struct learned_facts, phases, n_phases, FIELD_I64),
    END,
};

static const struct field look_fields[] = {
    WORD_OR_NONE(struct look_facts, state, sched_state),
    NUMBER(struct look_facts, completing),
    NUMBER(struct look_facts, held),
    NUMBER(struct look_facts, noted),
    NUMBER(struct look_facts, constrained),
    NUMBER(struct look_facts, requeueable),
    NUMBER(struct look_facts, successor),
    LIST(struct look_facts, successors, n_successors, FIELD_U32),
    NUMBER(struct look_facts, stranded),
    NUMBER(struct look_facts, outranked),
    TEXT(struct look_facts, label),
    TEXT(struct look_facts, partition),
    TEXT(struct look_facts, reason),
    NUMBER(struct look_facts, restarts),
    NUMBER(struct look_facts, tasks),
    NUMBER(struct look_facts, submitted),
    NUMBER(struct look_facts, begin),
    NUMBER(struct look_facts, noted_until),
    NUMBER(struct look_facts, started),
    NUMBER(struct look_facts, ended),
    TEXT(struct look_facts, nodes),
    TEXT(struct look_facts, lost_node),
    TEXT(struct look_facts, required),
    LIST(struct look_facts, kept_out, n_kept_out, FIELD_TEXT),
    END,
};

static const struct field mode_fields[] = {
    WORD(struct mode_facts, mode, mode),  TEXT(struct mode_facts, why),
    NUMBER(struct mode_facts, asked),     NUMBER(struct mode_facts, owner),
    NUMBER(struct mode_facts, withdrawn), END,
};

static const struct field brakes_fields[] = {
    NUMBER(struct brakes, actions_per_hour),      NUMBER(struct brakes, actions_per_partition_hour),
    NUMBER(struct brakes, actions_per_user_hour), NUMBER(struct brakes, exclusions_per_node_hour),
    NUMBER(struct brakes, max_excluded),          NUMBER(struct brakes, storm_jobs),
    NUMBER(struct brakes, storm_window),          NUMBER(struct brakes, storm_per_minute),
    NUMBER(struct brakes, proposal_life),         NUMBER(struct brakes, early_start),
    NUMBER(struct brakes, exclusion_life),        END,
};

static const struct field fence_fields[] = {
    TEXT(struct fence_facts, node),
    TEXT(struct fence_facts, by),
    END,
};

static const struct field log_fields[] = {
    NUMBER(struct log_facts, file),
    TEXT(struct log_facts, path),
    TEXT(struct log_facts, trouble),
    END,
};

static const struct field ended_fields[] = {
    WORD_OR_NONE(struct ended_facts, action, action),
    NUMBER(struct ended_facts, exit_code),
    END,
};

static const struct field body_policy = NESTED(struct event, policy, policy_fields);
static const struct field body_seen = NESTED(struct event, seen, job_facts_fields);
static const struct field body_started = NESTED(struct event, started, attempt_facts_fields);
static const struct field body_signal = NESTED(struct event, signal, signal_fields);
static const struct field body_exited = NESTED(struct event, exited, exit_fields);
static const struct field body_result = NESTED(struct event, result, result_fields);
static const struct field body_request = NESTED(struct event, request, request_fields);
static const struct field body_learned = NESTED(struct event, learned, learned_fields);
static const struct field body_look = NESTED(struct event, look, look_fields);
static const struct field body_mode = NESTED(struct event, mode, mode_fields);
static const struct field body_fenced = NESTED(struct event, fenced, fence_fields);
static const struct field body_log = NESTED(struct event, log, log_fields);
static const struct field body_fact = NESTED(struct event, fact, node_fact_fields);
static const struct field body_brakes = NESTED(struct event, brakes, brakes_fields);
static const struct field body_finding = NESTED(struct event, finding, finding_fields);
static const struct field body_incident = NESTED(struct event, incident, incident_fields);
static const struct field body_decision = NESTED(struct event, decision, decision_fields);
static const struct field body_intended = NESTED(struct event, intended, intended_fields);
static const struct field body_ended = NESTED(struct event, ended, ended_fields);
static const struct field body_node_terms = NESTED(struct event, node_terms, node_terms_fields);
static const struct field body_node_look = NESTED(struct event, node_look, node_look_fields);
static const struct field body_node_verdict =
    NESTED(struct event, node_verdict, node_verdict_fields);

static const struct field *const bodies[EVENT_MAX] = {
    [EVENT_POLICY] = &body_policy,
    [EVENT_JOB_SEEN] = &body_seen,
    [EVENT_ATTEMPT_STARTED] = &body_started,
    [EVENT_SIGNAL] = &body_signal,
    [EVENT_ATTEMPT_EXITED] = &body_exited,
    [EVENT_ATTEMPT_GONE] = NULL,
    [EVENT_LOGS_DRAINED] = NULL,
    [EVENT_TICK] = NULL,
    [EVENT_RESULT] = &body_result,
    [EVENT_OPERATOR] = &body_request,
    [EVENT_RUNNER_LOST] = NULL,
    [EVENT_LEARNED] = &body_learned,
    [EVENT_LOOK] = &body_look,
    [EVENT_LAUNCH_FAILED] = &body_result,
    [EVENT_MODE] = &body_mode,
    [EVENT_BRAKES] = &body_brakes,
    [EVENT_FENCED] = &body_fenced,
    [EVENT_LOGS_UNREAD] = NULL,
    [EVENT_LOG_NAMED] = &body_log,
    [EVENT_LOGS_READ] = NULL,
    [EVENT_NODE_FACT] = &body_fact,
    [EVENT_NODE_TERMS] = &body_node_terms,
    [EVENT_NODE_LOOK] = &body_node_look,
    [EVENT_FINDING] = &body_finding,
    [EVENT_INTERRUPTED] = NULL,
    [EVENT_VERDICT] = &body_incident,
    [EVENT_DECISION] = &body_decision,
    [EVENT_INTENT] = &body_intended,
    [EVENT_JOB_ENDED] = &body_ended,
    [EVENT_NODE_VERDICT] = &body_node_verdict,
};

const struct field event_fields[] = {
    NUMBER(struct event, seq),
    NUMBER(struct event, parent),
    NUMBER(struct event, time_us),
    WORD(struct event, kind, event_kind),
    TEXT(struct event, job),
    NUMBER(struct event, attempt),
    ONE_OF(struct event, kind, bodies),
    END,
};

const struct field *event_body(enum event_kind kind)
{
    return kind >= 0 && kind < EVENT_MAX ? bodies[kind] : NULL;
}

bool fields_end(const struct field *f)
{
    return !f->name && f->type != FIELD_UNION;
}

const struct field *field_variant(const struct field *f, const void *object)
{
    int v;

    assert(f->type == FIELD_UNION);
    memcpy(&v, (const char *)object + f->selector, sizeof(v));
    return v >= 0 && (size_t)v < f->n_variants ? f->variants[v] : NULL;
}

uint32_t field_count(const struct field *f, const void *object)
{
    uint32_t n;

    if (f->max == 0)
        return 1;
    if (f->index_name)
        return f->max;
    memcpy(&n, (const char *)object + f->count, sizeof(n));
    return n < f->max ? n : f->max;
}

int64_t field_number(const struct field *f, const void *at)
{
    switch (f->type) {
    case FIELD_BOOL:
        return *(const bool *)at;
    case FIELD_I32:
    case FIELD_ENUM:
        return *(const int32_t *)at;
    case FIELD_U32:
        return *(const uint32_t *)at;
    case FIELD_I64:
        return *(const int64_t *)at;
    case FIELD_U64:
        return (int64_t)(*(const uint64_t *)at);
    case FIELD_TEXT:
    case FIELD_STRUCT:
    case FIELD_UNION:
        break;
    }
    assert(!"a number");
    return 0;
}

/* Puts name in front of what is in where. */
static const char *prefix_where(const char *name, char *where, size_t size)
{
    char rest[96];

    STR_COPY(rest, where);
    snprintf(where, size, "%s%s%s", name, rest[0] ? "." : "", rest);
    return where;
}

static bool elements_differ(const struct field *f, const void *a, const void *b, char *where,
                            size_t size)
{
    uint32_t n = field_count(f, a);

    if (n != field_count(f, b))
        return true;
    for (uint32_t i = 0; i < n; i++) {
        const void *x = FIELD_AT(a, f, i), *y = FIELD_AT(b, f, i);

        if (f->type == FIELD_STRUCT) {
            if (fields_differ(f->sub, x, y, where, size)[0])
                return true;
        } else if (f->type == FIELD_TEXT) {
            if (!streq(x, y))
                return true;
        } else if (field_number(f, x) != field_number(f, y)) {
            return true;
        }
    }
    return false;
}

const char *fields_differ(const struct field *fields, const void *a, const void *b, char *where,
                          size_t size)
{
    where[0] = '\0';
    for (const struct field *f = fields; !fields_end(f); f++) {
        const struct field *g = f;

        if (f->type == FIELD_UNION) /* its selector comes earlier in the list, so it is equal */
            g = field_variant(f, a);
        if (g && elements_differ(g, a, b, where, size))
            return prefix_where(g->name, where, size);
    }
    return where;
}

static void print_element(const struct field *f, const void *at, struct strbuf *out)
{
    const char *word;

    switch (f->type) {
    case FIELD_TEXT:
        strbuf_addf(out, "\"%s\"", (const char *)at);
        break;
    case FIELD_ENUM:
        word = f->enum_name((int)field_number(f, at));
        strbuf_adds(out, word ? word : "?");
        break;
    case FIELD_STRUCT:
        strbuf_addc(out, '{');
        fields_print(f->sub, at, out);
        strbuf_addc(out, '}');
        break;
    default:
        strbuf_addf(out, "%" PRId64, field_number(f, at));
    }
}

static bool is_absent(const struct field *f, const void *object)
{
    if (f->max != 0)
        return field_count(f, object) == 0;
    if (f->type == FIELD_STRUCT)
        return false;
    if (f->type == FIELD_TEXT)
        return *(const char *)FIELD_AT(object, f, 0) == '\0';
    return field_number(f, FIELD_AT(object, f, 0)) == f->absent;
}

static void print_field(const struct field *f, const void *object, struct strbuf *out)
{
    uint32_t n = field_count(f, object);

    strbuf_addf(out, "%s=", f->name);
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0)
            strbuf_addc(out, ',');
        if (f->index_name)
            strbuf_addf(out, "%s:", f->index_name((int)i));
        print_element(f, FIELD_AT(object, f, i), out);
    }
}

void fields_print(const struct field *fields, const void *object, struct strbuf *out)
{
    bool first = true;

    for (const struct field *f = fields; !fields_end(f); f++) {
        const struct field *g = f->type == FIELD_UNION ? field_variant(f, object) : f;

        if (!g || is_absent(g, object))
            continue;
        if (!first)
            strbuf_addc(out, ' ');
        print_field(g, object, out);
        first = false;
    }
}
