/* SPDX-License-Identifier: Apache-2.0 */

/* What has happened, from the journal. An answer looks at a bounded number of rows, and says where
 * the next one goes on ("next"), also when nothing of what it looked at was for the asker's eyes:
 * so no question, however wide, holds the loop up. */

#include "api/routes.h"
#include "api/views.h"
#include "base/str.h"
#include "wire/codec.h"

#include <errno.h>
#include <string.h>

#define ROWS_MAX         2000
#define OWNERS_ASKED_MAX 200               /* of jobs that only the journal knows, for one page */
#define SEQS_MAX         ((uint64_t)20000) /* where rows are looked for that no index leads to */
#define KIND_BIT(k)      (UINT64_C(1) << (k))
#define RARE_KINDS       ((KIND_BIT(EVENT_MAX) - 1) & ~(KIND_BIT(EVENT_SIGNAL) | KIND_BIT(EVENT_TICK)))
#define ALL_KINDS        (KIND_BIT(EVENT_MAX) - 1)

/* "verdict,decision", "all"; NULL = all but signals and ticks. */
static bool read_kinds(const char *text, uint64_t *ret, struct api_answer *a)
{
    char name[32];

    *ret = text ? 0 : RARE_KINDS;
    if (text && streq(text, "all"))
        *ret = ALL_KINDS;
    while (text && *ret != ALL_KINDS && *text) {
        size_t n = strcspn(text, ",");
        enum event_kind k = EVENT_INVALID;

        if (str_copy_n(name, sizeof(name), text, n))
            k = event_kind_from_name(name);
        if ((int)k < 0) {
            answer_error(a, 400, "kind: there is no '%.*s'", n > 60 ? 60 : (int)n, text);
            return false;
        }
        *ret |= KIND_BIT(k);
        text += n + (text[n] == ',');
    }
    if (*ret == 0)
        *ret = RARE_KINDS;
    return true;
}

/* Pages */

struct page {
    struct store *store;
    const struct api_request *request;
    json_t *list;
    size_t limit;
    uint64_t next; /* the last that was looked at */
    bool more;     /* it ended early */
};

/* Calls fn, which says whether it took the event, until the page is full. */
static int fill_page(struct page *p, const struct journal_choice *c,
                     bool (*fn)(struct page *p, const struct event *e), struct err *e)
{
    _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;
    _cleanup_(freep) struct event *event = xnew(struct event);
    uint64_t asked = p->store->owners_asked;
    size_t rows = 0, taken = 0;
    int r = store_select(p->store, c, &cursor, e);

    while (r >= 0 && (r = journal_next(cursor, event, e)) > 0) {
        if (taken == p->limit || rows == ROWS_MAX ||
            p->store->owners_asked - asked >= OWNERS_ASKED_MAX) {
            p->more = true;
            return 0;
        }
        rows++;
        p->next = event->seq;
        taken += fn(p, event);
    }
    return r;
}

static void answer_page(struct page *p, const char *name, int r, const struct err *e,
                        struct api_answer *ret)
{
    json_t *answer;

    if (r < 0) {
        json_decref(p->list);
        answer_no_journal(ret, e);
        return;
    }
    answer = json_pack("{s:o}", name, p->list);
    if (p->more)
        json_object_set_new(answer, "next", json_integer((json_int_t)p->next));
    answer_json(ret, 200, answer);
}

/* Events */

static bool take_event(struct page *p, const struct event *e)
{
    json_array_append_new(p->list, codec_event_json(e));
    return true;
}

static bool take_seen_event(struct page *p, const struct event *e)
{
    if (!store_shows(p->store, p->request->asker, e->job))
        return false;
    return take_event(p, e);
}

/* Of steps, which come every second, a story needs few: the first, those that stand before
 * something else, and one in so many. */
#define THIN_STEPS 50

struct thin_page {
    struct page page;  /* the first member */
    struct event held; /* the last step, if it was not told */
    bool holds;
    unsigned skipped; /* since one was told; 0 = the next is */
};

static bool tell_held(struct thin_page *t)
{
    bool holds = t->holds;

    t->holds = false;
    return holds && take_event(&t->page, &t->held);
}

static bool take_step(struct thin_page *t, const struct event *e)
{
    t->holds = t->skipped > 0 && t->skipped < THIN_STEPS;
    if (t->holds) {
        t->held = *e;
        t->skipped++;
        return false;
    }
    t->skipped = 1;
    return take_event(&t->page, e);
}

static bool take_thin(struct page *p, const struct event *e)
{
    struct thin_page *t = (struct thin_page *)p;
    bool is_signal = e->kind == EVENT_SIGNAL, told;

    if (is_signal && e->signal.kind == SIGNAL_STEP)
        return take_step(t, e);
    if (is_signal && e->signal.kind != SIGNAL_CHECKPOINT)
        return false;
    told = tell_held(t);
    if (!is_signal)
        t->skipped = 0;
    return take_event(p, e) || told;
}

void get_job_events(struct store *store, const struct api_request *r, const struct route_params *p,
                    struct api_answer *ret)
{
    _cleanup_found_job_ struct found_job f = {0};
    _cleanup_(freep) struct thin_page *t = xnew(struct thin_page);
    const char *thin = request_arg(r, "thin");
    struct journal_choice c = {.job = f.key};
    struct err e = {0};
    int error;

    t->page = (struct page){.store = store, .request = r};
    if (!answer_found(store, r, p->name, &f, ret) || !request_limit(r, &t->page.limit, ret) ||
        !request_number(r, "after", 0, &c.after, ret) ||
        !read_kinds(thin && !request_arg(r, "kind") ? "all" : request_arg(r, "kind"), &c.kinds,
                    ret))
        return;
    if (c.kinds == ALL_KINDS)
        c.kinds = 0;
    t->page.list = json_array();
    error = fill_page(&t->page, &c, thin ? take_thin : take_event, &e);
    tell_held(t); /* at the end of a page; the next begins behind it */
    answer_page(&t->page, "events", error, &e, ret);
}

/* Whether an index leads to the events: then there may be any number of others between them. */
static bool is_indexed(const struct journal_choice *c)
{
    bool one = (c->kinds & (c->kinds - 1)) == 0;

    return c->job || (one && c->kinds != 0 && (c->kinds & ~RARE_KINDS) == 0);
}

/* The journal's newest number, or where its events are looked for next. */
static uint64_t window_end(struct store *store, const struct journal_choice *c, bool *ret_more)
{
    uint64_t last = store_model(store)->seq, end = c->after + SEQS_MAX;

    *ret_more = c->after < last && end < last;
    return *ret_more ? end : last;
}

static void page_of_events(struct store *store, const struct api_request *r,
                           struct journal_choice *c, size_t limit, struct api_answer *ret)
{
    struct page page = {.store = store, .request = r, .limit = limit, .list = json_array()};
    struct err e = {0};
    uint64_t end;
    bool more;
    int error;

    end = window_end(store, c, &more);
    if (is_indexed(c))
        more = false;
    else
        c->below = end + 1;
    if (c->kinds == ALL_KINDS)
        c->kinds = 0;
    error = fill_page(&page, c, take_seen_event, &e);
    if (!page.more && more) {
        page.more = true;
        page.next = end;
    }
    answer_page(&page, "events", error, &e, ret);
}

static bool read_after(const struct api_request *r, bool stream, uint64_t *ret,
                       struct api_answer *a)
{
    long long v;

    if (stream && r->last_event_id) {
        if (str_to_i64(r->last_event_id, &v) < 0 || v < 0) {
            answer_error(a, 400, "Last-Event-ID: give the id of an event");
            return false;
        }
        *ret = (uint64_t)v;
        return true;
    }
    return request_number(r, "after", stream ? UINT64_MAX : 0, ret, a);
}

/* Where to begin for ?since=TIME: the seq of the last event before that. */
static int seq_before(struct store *store, usec_t since, uint64_t *ret, struct err *e)
{
    _cleanup_(freep) struct event *event = xnew(struct event);
    uint64_t low = 0, high = store_model(store)->seq;

    while (low < high) { /* times ascend with numbers */
        uint64_t mid = low + (high - low) / 2;
        _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;
        int r = store_select(store, &(struct journal_choice){.after = mid}, &cursor, e);

        if (r >= 0)
            r = journal_next(cursor, event, e);
        if (r < 0)
            return r;
        if (r == 0 || event->time_us >= since)
            high = mid;
        else
            low = event->seq;
    }
    *ret = low;
    return 0;
}

void get_events(struct store *store, const struct api_request *r, const struct route_params *p,
                struct api_answer *ret)
{
    bool stream = r->wants_stream || request_arg(r, "follow");
    struct journal_choice c = {0};
    const char *job = request_arg(r, "job");
    _cleanup_found_job_ struct found_job f = {0};
    struct err e = {0};
    uint64_t since;
    size_t limit;

    if (!read_kinds(request_arg(r, "kind"), &c.kinds, ret) || !request_limit(r, &limit, ret) ||
        !read_after(r, stream, &c.after, ret) || !request_number(r, "since_us", 0, &since, ret) ||
        (job && !answer_found(store, r, job, &f, ret)))
        return;
    if (since > 0 && !request_arg(r, "after") &&
        seq_before(store, (usec_t)since, &c.after, &e) < 0) {
        answer_no_journal(ret, &e);
        return;
    }
    if (stream) {
        ret->status = 200;
        ret->stream = true;
        ret->choice = (struct stream_choice){.kinds = c.kinds, .after = c.after};
        STR_COPY(ret->choice.job, f.key);
        return;
    }
    if (job)
        c.job = f.key;
    page_of_events(store, r, &c, limit, ret);
}

/* Incidents */

static bool take_incident(struct page *p, const struct event *e)
{
    json_t *v;

    if (e->incident.class == CLASS_HEALTHY || !store_shows(p->store, p->request->asker, e->job))
        return false;
    v = view_incident(&e->incident, request_arg(p->request, "full"));
    json_object_set_new(v, "seq", json_integer((json_int_t)e->seq));
    json_object_set_new(v, "job", json_string(e->job));
    json_object_set_new(v, "attempt", json_integer(e->attempt));
    view_time(v, "time_us", e->time_us);
    json_array_append_new(p->list, v);
    return true;
}

void get_incidents(struct store *store, const struct api_request *r, const struct route_params *p,
                   struct api_answer *ret)
{
    struct page page = {.store = store, .request = r};
    struct journal_choice c = {.kinds = KIND_BIT(EVENT_VERDICT), .newest_first = true};
    const char *job = request_arg(r, "job");
    _cleanup_found_job_ struct found_job f = {0};
    struct err e = {0};
    int error;

    if (!request_limit(r, &page.limit, ret) || !request_number(r, "before", 0, &c.below, ret) ||
        (job && !answer_found(store, r, job, &f, ret)))
        return;
    if (job)
        c.job = f.key;
    page.list = json_array();
    error = fill_page(&page, &c, take_incident, &e);
    answer_page(&page, "incidents", error, &e, ret);
}

/* Attempts */

/* The object of the event's attempt; they come in order. */
static json_t *attempt_of(struct page *p, const struct event *e)
{
    size_t n = json_array_size(p->list);
    json_t *last = n > 0 ? json_array_get(p->list, n - 1) : NULL;

    if (last && json_integer_value(json_object_get(last, "attempt")) == e->attempt)
        return last;
    last = json_pack("{s:I}", "attempt", (json_int_t)e->attempt);
    json_array_append_new(p->list, last);
    return last;
}

static bool take_attempt(struct page *p, const struct event *e)
{
    size_t before = json_array_size(p->list);
    json_t *v;

    if (e->attempt == 0)
        return false;
    v = attempt_of(p, e);
    switch (e->kind) {
    case EVENT_ATTEMPT_STARTED:
        view_time(v, "started_us", e->time_us);
        break;
    case EVENT_ATTEMPT_EXITED:
        view_time(v, "exited_us", e->time_us);
        json_object_set_new(v, "exit_code", json_integer(e->exited.code));
        view_number(v, "exit_signal", e->exited.signal, 0);
        break;
    case EVENT_INTERRUPTED:
        view_time(v, "interrupted_us", e->time_us);
        break;
    case EVENT_VERDICT:
        json_object_set_new(v, "incident", view_incident(&e->incident, true));
        break;
    case EVENT_DECISION:
        json_object_set_new(v, "decision", view_decision(&e->decision));
        json_object_set_new(json_object_get(v, "decision"), "seq",
                            json_integer((json_int_t)e->seq));
        break;
    default:
        break;
    }
    return json_array_size(p->list) > before;
}

void get_attempts(struct store *store, const struct api_request *r, const struct route_params *p,
                  struct api_answer *ret)
{
    _cleanup_found_job_ struct found_job f = {0};
    struct page page = {.store = store, .request = r};
    struct journal_choice c = {
        .job = f.key,
        .kinds = KIND_BIT(EVENT_ATTEMPT_STARTED) | KIND_BIT(EVENT_ATTEMPT_EXITED) |
                 KIND_BIT(EVENT_INTERRUPTED) | KIND_BIT(EVENT_VERDICT) | KIND_BIT(EVENT_DECISION)};
    struct err e = {0};
    int error;

    if (!answer_found(store, r, p->name, &f, ret) || !request_limit(r, &page.limit, ret) ||
        !request_number(r, "after", 0, &c.after, ret))
        return;
    page.list = json_array();
    error = fill_page(&page, &c, take_attempt, &e);
    answer_page(&page, "attempts", error, &e, ret);
}
