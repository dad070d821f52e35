/* SPDX-License-Identifier: Apache-2.0 */
#include "api/views.h"

#include "api/waits.h"
#include "base/str.h"
#include "core/plan/scheduled.h"

#include <string.h>

static const char *const proposal_names[PROPOSAL_MAX] = {
    [PROPOSAL_NONE] = "none",         [PROPOSAL_OPEN] = "open",
    [PROPOSAL_APPROVED] = "approved", [PROPOSAL_REJECTED] = "rejected",
    [PROPOSAL_EXPIRED] = "expired",
};
DEFINE_NAMES(proposal, enum proposal, proposal_names);

/* All text in the state was made valid before it got there; should it not be, it is made so here,
 * rather than left out. */
static json_t *text_of(const char *s)
{
    char clean[1024];
    json_t *j = json_string(s);

    if (j)
        return j;
    str_sanitize(clean, sizeof(clean), s, strlen(s));
    return json_string(clean);
}

void view_text(json_t *j, const char *key, const char *s)
{
    if (s && s[0])
        json_object_set_new(j, key, text_of(s));
}

void view_time(json_t *j, const char *key, usec_t t)
{
    if (t != 0 && t != USEC_NEVER && t != USEC_UNKNOWN)
        json_object_set_new(j, key, json_integer(t));
}

void view_number(json_t *j, const char *key, int64_t v, int64_t absent)
{
    if (v != absent)
        json_object_set_new(j, key, json_integer(v));
}

static json_t *list_of_nodes(const char (*nodes)[NODE_NAME_LEN], uint32_t n)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(list, text_of(nodes[i]));
    return list;
}

static json_t *list_of_ranks(const struct culprits *c)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < c->n_ranks; i++)
        json_array_append_new(list, json_integer(c->ranks[i]));
    return list;
}

static json_t *list_of_devices(const struct culprits *c)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < c->n_devices; i++)
        json_array_append_new(list, text_of(c->devices[i]));
    return list;
}

static json_t *view_culprits(const struct culprits *c)
{
    json_t *j = json_object();

    if (c->n_nodes > 0)
        json_object_set_new(j, "nodes", list_of_nodes(c->nodes, c->n_nodes));
    if (c->n_ranks > 0)
        json_object_set_new(j, "ranks", list_of_ranks(c));
    if (c->n_devices > 0)
        json_object_set_new(j, "devices", list_of_devices(c));
    return j;
}

static json_t *view_evidence(const struct incident *i)
{
    json_t *list = json_array();

    for (uint32_t k = 0; k < i->n_evidence; k++) {
        json_t *line = json_object();

        view_text(line, "signature", i->evidence[k].signature);
        view_text(line, "text", i->evidence[k].text);
        json_object_set_new(line, "role", json_string(role_name(i->evidence[k].role)));
        view_text(line, "file", incident_path(i, &i->evidence[k]));
        view_number(line, "line", (int64_t)i->evidence[k].line, 0);
        view_number(line, "count", (int64_t)i->evidence[k].count, 0);
        json_array_append_new(list, line);
    }
    return list;
}

json_t *view_incident(const struct incident *i, bool full)
{
    json_t *j = json_pack("{s:s, s:s, s:i}", "class", incident_class_name(i->class), "cause",
                          cause_name(i->cause), "confidence", (int)i->confidence);

    view_text(j, "summary", i->summary);
    view_text(j, "signature", i->signature);
    view_text(j, "fingerprint", i->fingerprint);
    json_object_set_new(j, "culprits", view_culprits(&i->culprits));
    view_number(j, "last_step", i->progress.last_step, STEP_NONE);
    view_number(j, "checkpoint_step", i->progress.checkpoint_step, STEP_NONE);
    if (full)
        json_object_set_new(j, "evidence", view_evidence(i));
    return j;
}

json_t *view_decision(const struct decision_facts *f)
{
    json_t *j =
        json_pack("{s:s, s:s}", "action", action_name(f->action), "mode", mode_name(f->mode));

    view_text(j, "rule", f->rule);
    view_text(j, "why", f->why);
    view_number(j, "used", f->used, 0);
    view_number(j, "allowed", f->allowed, 0);
    view_number(j, "delay_us", f->delay, 0);
    if (f->n_nodes > 0)
        json_object_set_new(j, "nodes", list_of_nodes(f->nodes, f->n_nodes));
    return j;
}

/* Something would be done, if somebody approved. */
static bool is_proposed(const struct job *j)
{
    const struct decision_facts *f = &j->attempt.decision;

    return j->scheduled && j->state == JOB_DECIDED && j->sched.decision > 0 &&
           f->mode >= MODE_PROPOSE && j->sched.mode >= MODE_PROPOSE &&
           (action_restarts(f->action) || f->action == ACTION_STOP) &&
           (f->mode == MODE_PROPOSE || j->sched.mode == MODE_PROPOSE || j->sched.over ||
            j->sched.succeeded);
}

enum proposal view_proposal(const struct model *m, const struct job *j, usec_t now)
{
    usec_t life = m->brakes.proposal_life;

    if (!is_proposed(j))
        return PROPOSAL_NONE;
    if (j->sched.rejected)
        return PROPOSAL_REJECTED;
    if (j->sched.approved)
        return PROPOSAL_APPROVED;
    if (life > 0 && now >= j->attempt.decided_at + life)
        return PROPOSAL_EXPIRED;
    return PROPOSAL_OPEN;
}

/* The mode was raised since. */
static bool was_observed(const struct job *j)
{
    return j->attempt.decision.mode <= MODE_OBSERVE && j->sched.mode > MODE_OBSERVE;
}

static json_t *view_answer(const struct job *j)
{
    json_t *v = json_object();

    view_number(v, "decision", (int64_t)j->sched.answer.of, 0);
    json_object_set_new(v, "approved", json_boolean(j->sched.answer.approved));
    view_text(v, "who", j->sched.answer.who);
    view_time(v, "time_us", j->sched.answer.at);
    return v;
}

static json_t *view_last_decision(const struct store *store, const struct job *j)
{
    const struct model *m = store_model(store);
    json_t *v = view_decision(&j->attempt.decision);
    enum proposal p = view_proposal(m, j, store_now(store));
    char why_not[256];

    view_number(v, "seq", (int64_t)j->sched.decision, 0);
    view_time(v, "time_us", j->attempt.decided_at);
    if (p != PROPOSAL_NONE)
        json_object_set_new(v, "proposal", json_string(proposal_name(p)));
    if (p == PROPOSAL_OPEN && m->brakes.proposal_life > 0)
        view_time(v, "expires_us", j->attempt.decided_at + m->brakes.proposal_life);
    if (j->scheduled && j->state == JOB_DECIDED &&
        !plan_sched_may_act(m, j, why_not, sizeof(why_not)))
        view_text(v, "held_back",
                  was_observed(j) ? "it was decided in mode observe: that is not caught up with"
                                  : why_not);
    return v;
}

static void add_attempt(json_t *v, const struct store *store, const struct job *j)
{
    const struct attempt *a = &j->attempt;

    view_number(v, "attempt", a->number, 0);
    if (a->number == 0)
        return;
    view_time(v, "started_us", a->started);
    view_time(v, "interrupted_us", a->interrupted_at);
    view_number(v, "last_step", a->last_step, STEP_NONE);
    view_number(v, "checkpoint_step", a->checkpoint_step, STEP_NONE);
    if (j->state >= JOB_JUDGED && a->incident.class != CLASS_HEALTHY)
        json_object_set_new(v, "incident", view_incident(&a->incident, false));
    if (a->decision.action != ACTION_NONE)
        json_object_set_new(v, "decision", view_last_decision(store, j));
    if (j->sched.answer.of > 0)
        json_object_set_new(v, "answer", view_answer(j));
}

static json_t *view_kept_out(const struct model *m, const struct job *j)
{
    const struct sched *s = &j->sched;
    json_t *list = json_array();

    for (uint32_t i = 0; i < s->n_kept; i++)
        if (sched_keeps_out(m, j, i)) {
            json_t *k = json_object();

            view_text(k, "node", s->kept[i].node);
            view_time(k, "until_us", s->kept[i].until);
            json_array_append_new(list, k);
        }
    return list;
}

bool view_is_held_unnoted(const struct job *j)
{
    const struct look_facts *l = &j->sched.look;

    return j->sched.guarded && l->held && !l->noted && !sched_has_ended(l->state);
}

static void add_look(json_t *v, const struct look_facts *l)
{
    if (l->state == SCHED_NONE)
        return;
    json_object_set_new(v, "state", json_string(sched_state_name(l->state)));
    view_text(v, "reason", l->reason);
    view_text(v, "node_list", l->nodes);
    view_time(v, "begin_us", l->begin);
    if (l->completing)
        json_object_set_new(v, "completing", json_true());
    if (l->held)
        json_object_set_new(v, "held", json_true());
}

static void add_wait(json_t *v, const struct model *m, const struct job *j, usec_t now)
{
    char text[320];

    if (waits_for(m, j, now, text, sizeof(text)))
        view_text(v, "waits_for", text);
}

static void add_unread(void *ctx, const char *path, const char *why)
{
    json_t *v = json_object();

    view_text(v, "path", path);
    view_text(v, "why", why);
    json_array_append_new(ctx, v);
}

static void add_logs(json_t *v, const struct store *store, const char *key)
{
    json_t *unread = json_array();
    char text[320];
    uint32_t n;

    store_logs(store, key, text, sizeof(text));
    view_text(v, "logs", text);
    n = store_unread_logs(store, key, add_unread, unread);
    view_number(v, "unread_logs_more", n - (uint32_t)json_array_size(unread), 0);
    if (json_array_size(unread) > 0)
        json_object_set(v, "unread_logs", unread);
    json_decref(unread);
}

static void add_names(json_t *v, const char *label, const char *name, const char *user,
                      const char *account, const char *partition, const char *qos)
{
    view_text(v, "label", label);
    view_text(v, "name", name);
    view_text(v, "user", user);
    view_text(v, "account", account);
    view_text(v, "partition", partition);
    view_text(v, "qos", qos);
}

/* Nobody looks at what becomes of it. */
static bool is_let_go(const struct job *j)
{
    return sched_is_let_go(j) && j->sched.let_go;
}

json_t *view_job(const struct store *store, const struct job *j)
{
    const struct model *m = store_model(store);
    const struct sched *s = &j->sched;
    json_t *v = json_object();

    view_text(v, "key", j->name);
    view_number(v, "id", s->id, 0);
    add_names(v, s->label, s->name, s->user, s->account, s->partition, s->qos);
    json_object_set_new(v, "phase", json_string(job_state_name(j->state)));
    json_object_set_new(v, "mode", json_string(mode_name(s->mode)));
    view_text(v, "notes", store_notes(store, j->name));
    if (s->interactive)
        json_object_set_new(v, "interactive", json_true());
    if (is_let_go(j))
        json_object_set_new(v, "let_go", json_true());
    view_time(v, "seen_us", j->seen_at);
    view_number(v, "nodes", j->nodes, 0);
    view_number(v, "gpus", j->gpus, 0);
    json_object_set_new(v, "restarts", json_integer(j->ledger.restarts));
    json_object_set_new(v, "max_restarts", json_integer(policy_of(m, j)->max_restarts));
    if (!is_let_go(j)) {
        add_look(v, &s->look);
        if (view_is_held_unnoted(j))
            json_object_set_new(v, "held_unnoted", json_true());
        add_wait(v, m, j, store_now(store));
    }
    add_logs(v, store, j->name);
    add_attempt(v, store, j);
    json_object_set_new(v, "kept_out", view_kept_out(m, j));
    return v;
}

json_t *view_past_job(const struct found_job *f)
{
    const struct job_facts *s = f->seen;
    json_t *v = json_object();

    view_text(v, "key", f->key);
    view_number(v, "id", s->id, 0);
    add_names(v, s->label, s->name, s->user, s->account, s->partition, s->qos);
    json_object_set_new(v, "phase", json_string("forgotten"));
    view_time(v, "seen_us", f->seen_at);
    view_number(v, "nodes", s->nodes, 0);
    view_number(v, "gpus", s->gpus, 0);
    return v;
}

json_t *view_stopped(const struct nodes *n)
{
    json_t *rules = json_array();

    for (uint32_t i = 0; i < n->n_stopped; i++)
        json_array_append_new(rules, json_string(n->stopped[i]));
    return rules;
}
