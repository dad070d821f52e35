/* SPDX-License-Identifier: Apache-2.0 */

/* What people say to reknit: yes and no to its proposals, how far it may go with a job, and to stop
 * acting altogether. Each becomes an input of core with the name of whoever asked, and is judged
 * there; here is only checked what the asker may say, and of what. */

#include "api/routes.h"
#include "api/views.h"
#include "base/str.h"

#include <string.h>

void get_decisions(struct store *store, const struct api_request *r, const struct route_params *p,
                   struct api_answer *ret)
{
    const struct model *m = store_model(store);
    const char *all = request_arg(r, "all");
    json_t *list;
    size_t limit, n = 0, left_off = 0;

    if (!request_limit(r, &limit, ret))
        return;
    list = json_array();
    VEC_FOREACH (&m->jobs, at) {
        const struct job *j = *at;
        enum proposal proposal = view_proposal(m, j, store_now(store));

        if (!access_sees(r->asker, j->sched.uid) || proposal == PROPOSAL_NONE ||
            (!all && proposal != PROPOSAL_OPEN))
            continue;
        if (n++ < limit)
            json_array_append_new(list, view_job(store, j));
        else
            left_off++;
    }
    answer_json(ret, 200,
                json_pack("{s:o, s:I, s:I}", "decisions", list, "left_off", (json_int_t)left_off,
                          "now_us", (json_int_t)store_now(store)));
}

static void submit(struct store *store, const struct event *e, struct api_answer *ret)
{
    struct err err = {0};
    int r = store->backend.submit(store->ctx, e, &err);

    if (r < 0)
        answer_error(ret, 503, "%s", err.text);
    else
        answer_json(ret, 200, json_pack("{s:b}", "done", 1));
}

static struct event request_event(const struct api_request *r, enum request request)
{
    struct event e = {.kind = EVENT_OPERATOR};

    e.request.request = request;
    STR_COPY(e.request.who, r->asker->name);
    return e;
}

/* Proposals */

static const struct job *job_of_decision(const struct store *store, const struct asker *who,
                                         uint64_t seq)
{
    const struct model *m = store_model(store);

    VEC_FOREACH (&m->jobs, j)
        if (seq > 0 && (*j)->scheduled && (*j)->sched.decision == seq &&
            access_sees(who, (*j)->sched.uid))
            return *j;
    return NULL;
}

static void answer_proposal(struct store *store, const struct api_request *r, uint64_t seq,
                            enum request request, struct api_answer *ret)
{
    const struct job *j = job_of_decision(store, r->asker, seq);
    struct event e = request_event(r, request);
    enum proposal proposal;

    if (!j) {
        answer_error(ret, 404, "there is no decision %llu that still stands",
                     (unsigned long long)seq);
        return;
    }
    proposal = view_proposal(store_model(store), j, store_now(store));
    if (proposal == PROPOSAL_NONE) {
        answer_error(ret, 409, "nothing waits for approval of decision %llu",
                     (unsigned long long)seq);
        return;
    }
    if (proposal != PROPOSAL_OPEN) {
        answer_error(ret, 409, "the proposal is %s already", proposal_name(proposal));
        return;
    }
    STR_COPY(e.job, j->name);
    e.attempt = j->attempt.number;
    e.request.of = seq;
    submit(store, &e, ret);
}

void post_approve(struct store *store, const struct api_request *r, const struct route_params *p,
                  struct api_answer *ret)
{
    answer_proposal(store, r, p->seq, REQUEST_APPROVE, ret);
}

void post_reject(struct store *store, const struct api_request *r, const struct route_params *p,
                 struct api_answer *ret)
{
    answer_proposal(store, r, p->seq, REQUEST_REJECT, ret);
}

/* Modes */

#define WITHDRAW "default" /* whoever asks says nothing any more */

static bool read_mode(const struct api_request *r, struct mode_facts *ret, struct api_answer *a)
{
    json_t *body = request_object(r, a);
    const char *word;

    if (!body)
        return false;
    word = json_string_value(json_object_get(body, "mode"));
    ret->withdrawn = word && streq(word, WITHDRAW);
    ret->mode = ret->withdrawn ? MODE_OFF : word ? mode_from_name(word) : MODE_INVALID;
    json_decref(body);
    if ((int)ret->mode < 0)
        answer_error(a, 400, "mode: give one of off, observe, propose, act, " WITHDRAW);
    return (int)ret->mode >= 0;
}

static void word_mode(const struct asker *who, const struct mode_words *words, struct mode_facts *f)
{
    struct mode_words after = *words;

    f->asked = true;
    f->owner = !who->is_operator;
    if (!f->withdrawn) {
        STR_PRINTF(f->why, "asked for by %s", who->name);
        return;
    }
    mode_hear(&after, f);
    f->mode = mode_in_force(&after);
    STR_PRINTF(f->why, "%s took back what %s said of it", who->name,
               f->owner ? "its user" : "an operator");
}

void post_mode(struct store *store, const struct api_request *r, const struct route_params *p,
               struct api_answer *ret)
{
    _cleanup_found_job_ struct found_job f = {0};
    struct event e = {.kind = EVENT_MODE};
    enum mode allowed;

    if (!answer_found(store, r, p->name, &f, ret) || !read_mode(r, &e.mode, ret))
        return;
    if (!f.job || !f.job->scheduled) {
        answer_error(ret, 409, "job %s is over: there is nothing to set", f.key);
        return;
    }
    allowed = mode_allowed(&f.job->sched.words);
    if (!access_sets_mode(r->asker, f.owner, allowed, e.mode.mode)) {
        answer_error(ret, 403,
                     "job %s may be in mode %s at most: only an operator can give it more", f.key,
                     mode_name(allowed));
        return;
    }
    STR_COPY(e.job, f.key);
    word_mode(r->asker, &f.job->sched.words, &e.mode);
    submit(store, &e, ret);
}

/* Everything */

static void set_frozen(struct store *store, const struct api_request *r, enum request request,
                       struct api_answer *ret)
{
    struct event e = request_event(r, request);
    json_t *body = request_object(r, ret);
    const json_t *why = json_object_get(body, "reason");

    if (!body)
        return;
    if (why && !json_is_string(why)) {
        answer_error(ret, 400, "\"reason\" is a text");
    } else {
        if (why)
            str_sanitize(e.request.why, sizeof(e.request.why), json_string_value(why),
                         json_string_length(why));
        submit(store, &e, ret);
    }
    json_decref(body);
}

void post_freeze(struct store *store, const struct api_request *r, const struct route_params *p,
                 struct api_answer *ret)
{
    set_frozen(store, r, REQUEST_FREEZE, ret);
}

void post_thaw(struct store *store, const struct api_request *r, const struct route_params *p,
               struct api_answer *ret)
{
    set_frozen(store, r, REQUEST_THAW, ret);
}
