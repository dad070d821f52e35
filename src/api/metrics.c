/* SPDX-License-Identifier: Apache-2.0 */

/* families[] is the one table: a row is a metric, with the function that says its samples. What
 * happened is counted as it happens; what is so is read from the state when somebody asks. */

#include "api/metrics.h"

#include "api/latency.h"
#include "api/views.h"
#include "base/str.h"
#include "core/plan/scheduled.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct metrics {
    uint64_t events[EVENT_MAX];
    uint64_t incidents[CLASS_MAX][CAUSE_MAX];
    uint64_t decisions[ACTION_MAX][MODE_MAX];
    uint64_t findings[FINDING_MAX];
    uint64_t results[INTENT_MAX][OUTCOME_MAX];
    uint64_t requests[REQUEST_MAX];
    uint64_t excluded; /* nodes, in decisions */
    struct latency latency;
    /* Which kind of intent a result belongs to. */
    struct {
        uint64_t seq;
        enum intent intent;
    } asked[1024];
};

struct metrics *metrics_new(void)
{
    return xnew(struct metrics);
}

struct metrics *metrics_free(struct metrics *x)
{
    if (x)
        latency_done(&x->latency);
    free(x);
    return NULL;
}

static void count_result(struct metrics *x, const struct event *e)
{
    size_t i = e->result.intent % ARRAY_SIZE(x->asked);

    if (e->result.intent > 0 && x->asked[i].seq == e->result.intent)
        x->results[x->asked[i].intent][e->result.outcome]++;
}

void metrics_happened(struct metrics *x, const struct event *e)
{
    x->events[e->kind]++;
    latency_happened(&x->latency, e);
    switch (e->kind) {
    case EVENT_VERDICT:
        x->incidents[e->incident.class][e->incident.cause]++;
        break;
    case EVENT_DECISION:
        x->decisions[e->decision.action][e->decision.mode]++;
        x->excluded += e->decision.n_nodes;
        break;
    case EVENT_FINDING:
        x->findings[e->finding.finding]++;
        break;
    case EVENT_INTENT:
        x->asked[e->seq % ARRAY_SIZE(x->asked)].seq = e->seq;
        x->asked[e->seq % ARRAY_SIZE(x->asked)].intent = e->intended.intent;
        break;
    case EVENT_RESULT:
        count_result(x, e);
        break;
    case EVENT_OPERATOR:
        x->requests[e->request.request]++;
        break;
    default:
        break;
    }
}

/* The text */

struct family;

struct sheet {
    struct strbuf text;
    const struct metrics *x;
    const struct store *store;
    const struct model *m;
    const struct api_status *s;
    const struct family *family; /* that is being written */
};

struct family {
    const char *name, *type, *help;
    void (*fill)(struct sheet *s);
    int arg; /* for fill: which of several alike */
};

/* labels: "a=\"b\"", or NULL */
static void sample(struct sheet *s, const char *suffix, const char *labels, int64_t value)
{
    strbuf_addf(&s->text, "%s%s", s->family->name, suffix);
    if (labels)
        strbuf_addf(&s->text, "{%s}", labels);
    strbuf_addf(&s->text, " %" PRId64 "\n", value);
}

/* Prometheus counts in seconds. */
static void sample_seconds(struct sheet *s, const char *suffix, const char *labels, usec_t value)
{
    strbuf_addf(&s->text, "%s%s", s->family->name, suffix);
    if (labels)
        strbuf_addf(&s->text, "{%s}", labels);
    if (value < 0)
        value = 0;
    strbuf_addf(&s->text, " %" PRId64 ".%06" PRId64 "\n", value / USEC_PER_SEC,
                value % USEC_PER_SEC);
}

static const char *label(char buf[96], const char *key, const char *value)
{
    snprintf(buf, 96, "%s=\"%s\"", key, value);
    return buf;
}

static const char *labels(char buf[96], const char *key, const char *value, const char *key2,
                          const char *value2)
{
    snprintf(buf, 96, "%s=\"%s\",%s=\"%s\"", key, value, key2, value2);
    return buf;
}

/* A value that the daemon or a user gave, inside of quotes. */
static void add_quoted(struct strbuf *b, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            strbuf_addc(b, '\\');
        if (*text == '\n')
            strbuf_adds(b, "\\n");
        else
            strbuf_addc(b, *text);
    }
}

static void fill_build(struct sheet *s)
{
    strbuf_addf(&s->text, "%s{version=\"", s->family->name);
    add_quoted(&s->text, s->s->version ? s->s->version : "");
    strbuf_adds(&s->text, "\"} 1\n");
}

static void fill_started(struct sheet *s)
{
    sample_seconds(s, "", NULL, s->s->started);
}

static void fill_jobs(struct sheet *s)
{
    int64_t n[JOB_STATE_MAX][MODE_MAX] = {0};
    char buf[96];

    VEC_FOREACH (&s->m->jobs, j)
        n[(*j)->state][(*j)->sched.mode]++;
    for (int state = 0; state < JOB_STATE_MAX; state++)
        for (int mode = 0; mode < MODE_MAX; mode++)
            sample(s, "",
                   labels(buf, "phase", job_state_name((enum job_state)state), "mode",
                          mode_name((enum mode)mode)),
                   n[state][mode]);
}

static void fill_incidents(struct sheet *s)
{
    char buf[96];

    for (int c = CLASS_CRASH; c < CLASS_MAX; c++)
        for (int k = CAUSE_UNKNOWN; k < CAUSE_MAX; k++)
            if (s->x->incidents[c][k] > 0)
                sample(s, "",
                       labels(buf, "class", incident_class_name((enum incident_class)c), "cause",
                              cause_name((enum cause)k)),
                       (int64_t)s->x->incidents[c][k]);
}

static void fill_decisions(struct sheet *s)
{
    char buf[96];

    for (int a = ACTION_RESTART; a < ACTION_MAX; a++)
        for (int m = 0; m < MODE_MAX; m++)
            sample(
                s, "",
                labels(buf, "action", action_name((enum action)a), "mode", mode_name((enum mode)m)),
                (int64_t)s->x->decisions[a][m]);
}

static void fill_findings(struct sheet *s)
{
    char buf[96];

    for (int f = 0; f < FINDING_MAX; f++)
        sample(s, "", label(buf, "finding", finding_name((enum finding)f)),
               (int64_t)s->x->findings[f]);
}

static void fill_actions(struct sheet *s)
{
    char buf[96];

    for (int i = 0; i < INTENT_MAX; i++)
        for (int o = 0; o < OUTCOME_MAX; o++)
            sample(s, "",
                   labels(buf, "intent", intent_name((enum intent)i), "outcome",
                          outcome_name((enum outcome)o)),
                   (int64_t)s->x->results[i][o]);
}

static void fill_requests(struct sheet *s)
{
    char buf[96];

    for (int r = 0; r < REQUEST_MAX; r++)
        sample(s, "", label(buf, "request", request_name((enum request)r)),
               (int64_t)s->x->requests[r]);
}

static void fill_events(struct sheet *s)
{
    char buf[96];

    for (int k = 0; k < EVENT_MAX; k++)
        sample(s, "", label(buf, "kind", event_kind_name((enum event_kind)k)),
               (int64_t)s->x->events[k]);
}

static void fill_event(struct sheet *s)
{
    sample(s, "", NULL, (int64_t)s->x->events[s->family->arg]);
}

static void fill_excluded(struct sheet *s)
{
    sample(s, "", NULL, (int64_t)s->x->excluded);
}

static void fill_leg(struct sheet *s)
{
    const struct histogram *h = &s->x->latency.leg[s->family->arg];
    uint64_t below = 0;
    char buf[96];

    for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
        usec_t b = latency_bounds[i];

        below += h->in[i];
        snprintf(buf, sizeof(buf), "le=\"%g\"", (double)b / (double)USEC_PER_SEC);
        sample(s, "_bucket", buf, (int64_t)below);
    }
    sample(s, "_bucket", "le=\"+Inf\"", (int64_t)h->n);
    sample_seconds(s, "_sum", NULL, h->sum);
    sample(s, "_count", NULL, (int64_t)h->n);
}

static void fill_proposals(struct sheet *s)
{
    int64_t n = 0;

    VEC_FOREACH (&s->m->jobs, j)
        n += view_proposal(s->m, *j, store_now(s->store)) == PROPOSAL_OPEN;
    sample(s, "", NULL, n);
}

static void fill_kept_out(struct sheet *s)
{
    sample(s, "", NULL, sched_kept_out(s->m));
}

/* Budgets */

static void fill_used(struct sheet *s)
{
    sample(s, "", NULL, model_deeds_of_hour(s->m, DEED_ACTED));
}

static void fill_allowed(struct sheet *s)
{
    sample(s, "", NULL, s->m->brakes.actions_per_hour);
}

static void fill_spent_jobs(struct sheet *s)
{
    int64_t n = 0;

    VEC_FOREACH (&s->m->jobs, j) {
        const struct policy *p = policy_of(s->m, *j);

        n += (*j)->state != JOB_ENDED && (*j)->ledger.restarts >= p->max_restarts;
    }
    sample(s, "", NULL, n);
}

static void fill_frozen(struct sheet *s)
{
    sample(s, "", NULL, s->m->frozen);
}

static void fill_tilted(struct sheet *s)
{
    sample(s, "", NULL, s->s->tilt != NULL);
}

static void fill_storm(struct sheet *s)
{
    sample(s, "", NULL, brakes_see_storm(s->m));
}

/* The rest of the daemon */

static void fill_adapter_up(struct sheet *s)
{
    sample(s, "", NULL, s->s->adapter_ok);
}

/* Nothing, before the first look. */
static void fill_look_age(struct sheet *s)
{
    if (s->s->last_look > 0)
        sample_seconds(s, "", NULL, store_now(s->store) - s->s->last_look);
}

static void fill_adapter_errors(struct sheet *s)
{
    sample(s, "", NULL, (int64_t)s->s->adapter_errors);
}

static void fill_adapter_restarts(struct sheet *s)
{
    sample(s, "", NULL, (int64_t)s->s->adapter_restarts);
}

static void fill_readers(struct sheet *s)
{
    sample(s, "", "state=\"running\"", s->s->readers);
    sample(s, "", "state=\"hung\"", s->s->readers_hung);
}

static void fill_on_nodes(struct sheet *s)
{
    sample(s, "", NULL, s->s->readers_on_nodes);
}

static void fill_unread(struct sheet *s)
{
    sample(s, "", NULL, s->s->unread);
}

static void fill_replaced(struct sheet *s)
{
    sample(s, "", NULL, (int64_t)s->s->readers_replaced);
}

static void fill_agents(struct sheet *s)
{
    sample(s, "", "state=\"connected\"", s->s->agents.connected);
    sample(s, "", "state=\"gone\"", s->s->agents.gone);
}

static void fill_agents_silent(struct sheet *s)
{
    sample_seconds(s, "", NULL, s->s->agents.silent);
}

static void fill_agents_messages(struct sheet *s)
{
    sample(s, "", "fate=\"taken\"", (int64_t)s->s->agents.messages);
    sample(s, "", "fate=\"duplicate\"", (int64_t)s->s->agents.duplicates);
    sample(s, "", "fate=\"refused\"", (int64_t)s->s->agents.refused);
}

static void fill_agents_dropped(struct sheet *s)
{
    sample(s, "", NULL, (int64_t)s->s->agents.dropped);
}

/* Nodes */

static void fill_nodes_sick(struct sheet *s)
{
    uint32_t n[ISOLATION_MAX];
    char label[48];

    nodes_count(&s->m->nodes, n);
    for (int i = ISOLATION_EXCLUDE; i < ISOLATION_MAX; i++) {
        STR_PRINTF(label, "isolation=\"%s\"", isolation_name((enum isolation)i));
        sample(s, "", label, n[i]);
    }
}

static void fill_nodes_drained(struct sheet *s)
{
    sample(s, "", NULL, nodes_drained(&s->m->nodes));
}

static void fill_nodes_stopped(struct sheet *s)
{
    sample(s, "", NULL, s->m->nodes.n_stopped);
}

/* The webhook: nothing where there is none. */

static void fill_webhook_up(struct sheet *s)
{
    if (s->s->webhook.configured)
        sample(s, "", NULL, s->s->webhook.trouble == NULL);
}

static void fill_webhook_messages(struct sheet *s)
{
    sample(s, "", "fate=\"sent\"", (int64_t)s->s->webhook.sent);
    sample(s, "", "fate=\"given-up\"", (int64_t)s->s->webhook.given_up);
}

static void fill_webhook_failed(struct sheet *s)
{
    sample(s, "", NULL, (int64_t)s->s->webhook.failed);
}

static void fill_webhook_pending(struct sheet *s)
{
    sample(s, "", NULL, s->s->webhook.pending);
}

static void fill_lag(struct sheet *s)
{
    sample_seconds(s, "", NULL, s->store->loop_lag);
}

static void fill_seq(struct sheet *s)
{
    sample(s, "", NULL, (int64_t)s->m->seq);
}

static void fill_bytes(struct sheet *s)
{
    sample(s, "", NULL, (int64_t)s->s->journal_bytes);
}

static void fill_lost(struct sheet *s)
{
    sample(s, "", NULL, (int64_t)s->s->journal_lost);
}

static void fill_refused(struct sheet *s)
{
    sample(s, "", NULL, (int64_t)s->m->refused);
}

#define LEG(name, leg, help)                                                                       \
    {                                                                                              \
        "reknit_" name "_seconds", "histogram", help, fill_leg, leg                                \
    }

static const struct family families[] = {
    {"reknit_build_info", "gauge", "The release, as a label.", fill_build},
    {"reknit_start_time_seconds", "gauge", "When the daemon started.", fill_started},
    {"reknit_jobs", "gauge", "Jobs by how far their story is and what may be done for them.",
     fill_jobs},
    {"reknit_incidents_total", "counter", "Verdicts by class and cause; healthy ends are none.",
     fill_incidents},
    {"reknit_decisions_total", "counter", "Decisions by what was decided, and the mode it was in.",
     fill_decisions},
    {"reknit_findings_total", "counter", "Statements of detectors.", fill_findings},
    {"reknit_attempts_total", "counter", "Attempts that were seen to start.", fill_event,
     EVENT_ATTEMPT_STARTED},
    {"reknit_launch_failures_total", "counter", "Attempts that the scheduler could not start.",
     fill_event, EVENT_LAUNCH_FAILED},
    {"reknit_actions_total", "counter", "What was asked for, by what became of it.", fill_actions},
    {"reknit_requests_total", "counter", "What people asked for.", fill_requests},
    {"reknit_excluded_nodes_total", "counter", "Nodes that decisions keep out of a job.",
     fill_excluded},
    LEG("detection", LEG_DETECTION, "From the end of a task or attempt to its interruption."),
    LEG("verdict", LEG_VERDICT, "From the interruption to the verdict."),
    LEG("decision", LEG_DECISION, "From the verdict to the decision."),
    LEG("action", LEG_ACTION, "From the decision to a requeue that is done."),
    LEG("recovery", LEG_RECOVERY, "From the interruption to the next attempt, queue included."),
    LEG("scheduler", LEG_SCHEDULER, "From an intent to its result."),
    {"reknit_proposals_open", "gauge", "Decisions that wait for approval.", fill_proposals},
    {"reknit_nodes_kept_out", "gauge", "Pairs of a job and a node that it is kept away from.",
     fill_kept_out},
    {"reknit_budget_actions_used", "gauge", "Requeues in the last hour, of all jobs.", fill_used},
    {"reknit_budget_actions_allowed", "gauge", "So many are allowed; 0 = no limit.", fill_allowed},
    {"reknit_budget_spent_jobs", "gauge", "Jobs that have no restart left.", fill_spent_jobs},
    {"reknit_frozen", "gauge", "1 = an operator has frozen all actions.", fill_frozen},
    {"reknit_tilted", "gauge", "1 = it observes only, until what is wrong has passed.",
     fill_tilted},
    {"reknit_storm", "gauge", "1 = many jobs were interrupted at once.", fill_storm},
    {"reknit_adapter_up", "gauge", "1 = the scheduler answers.", fill_adapter_up},
    {"reknit_adapter_look_age_seconds", "gauge", "Since the scheduler last answered a look.",
     fill_look_age},
    {"reknit_adapter_errors_total", "counter", "Requests to it that failed or timed out.",
     fill_adapter_errors},
    {"reknit_adapter_restarts_total", "counter", "Times that the adapter was started again.",
     fill_adapter_restarts},
    {"reknit_readers", "gauge", "Processes that follow logs.", fill_readers},
    {"reknit_readers_on_nodes", "gauge", "... that run, on nodes of the jobs.", fill_on_nodes},
    {"reknit_unread_jobs", "gauge", "Jobs that run and whose logs nobody reads.", fill_unread},
    {"reknit_readers_replaced_total", "counter", "... that hung or died.", fill_replaced},
    {"reknit_agents", "gauge", "Nodes whose agent is connected, or was once.", fill_agents},
    {"reknit_agents_silent_seconds", "gauge", "The longest since a connected agent was heard.",
     fill_agents_silent},
    {"reknit_agents_messages_total", "counter", "Messages of agents, by what became of them.",
     fill_agents_messages},
    {"reknit_agents_dropped", "gauge", "Messages that agents had to give up, as they last said.",
     fill_agents_dropped},
    {"reknit_nodes_sick", "gauge", "Nodes that facts stand against, by what these ask for.",
     fill_nodes_sick},
    {"reknit_nodes_drained", "gauge", "Nodes that reknit has drained.", fill_nodes_drained},
    {"reknit_nodes_rules_stopped", "gauge", "Rules that convicted too many nodes.",
     fill_nodes_stopped},
    {"reknit_webhook_up", "gauge", "1 = what is to be told can be told.", fill_webhook_up},
    {"reknit_webhook_messages_total", "counter", "Messages of the webhook, by what became of them.",
     fill_webhook_messages},
    {"reknit_webhook_failed_tries_total", "counter", "Times that one was not taken.",
     fill_webhook_failed},
    {"reknit_webhook_pending", "gauge", "Decisions that wait to be told.", fill_webhook_pending},
    {"reknit_loop_lag_seconds", "gauge", "How late the loop was last.", fill_lag},
    {"reknit_journal_seq", "gauge", "Number of the newest event.", fill_seq},
    {"reknit_journal_bytes", "gauge", "Size of the journal.", fill_bytes},
    {"reknit_journal_lost_events", "gauge", "Events that the journal had lost at its opening.",
     fill_lost},
    {"reknit_events_total", "counter", "Events by kind.", fill_events},
    {"reknit_events_refused_total", "counter", "Events that did not fit the state.", fill_refused},
};

char *metrics_text(const struct metrics *x, const struct store *store, const struct api_status *s)
{
    struct sheet sheet = {.x = x, .store = store, .m = store_model(store), .s = s};

    for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
        const struct family *f = sheet.family = &families[i];

        strbuf_addf(&sheet.text, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name,
                    f->type);
        f->fill(&sheet);
    }
    return sheet.text.s;
}
