/* SPDX-License-Identifier: Apache-2.0 */

/* The API without a connection: which path leads where, who sees and commands what, pages that
 * neither lose nor repeat anything, metrics that Prometheus reads. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/metrics.h"
#include "api/routes.h"
#include "api/stream.h"
#include "api/waits.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALICE 1000
#define BOB   1001

static const struct asker root = {.known = true, .is_operator = true, .name = "root"};
static const struct asker alice = {.known = true, .uid = ALICE, .name = "alice"};
static const struct asker bob = {.known = true, .uid = BOB, .name = "bob"};
static const struct asker nobody = {0};

struct world {
    char folder[64], path[96];
    struct model *model;
    struct journal *journal;
    struct journal_batch *batch;
    uint64_t seq;
    usec_t now;
    struct store *store;
    struct streams *streams;
    struct event *submitted; /* the last */
    unsigned submissions;
};

static const struct model *get_model(void *ctx)
{
    return ((struct world *)ctx)->model;
}

static usec_t get_now(void *ctx)
{
    return ((struct world *)ctx)->now;
}

static int submit(void *ctx, const struct event *e, struct err *err)
{
    struct world *w = ctx;

    *w->submitted = *e;
    w->submissions++;
    return 0;
}

static void get_status(void *ctx, struct api_status *ret)
{
    *ret = (struct api_status){.version = "1.2\"3\\",
                               .cluster = "c",
                               .adapter = "connected",
                               .adapter_ok = true,
                               .started = 1500000};
}

static void get_agents_of_test(void *ctx, bool (*fn)(void *fn_ctx, const struct api_agent *a),
                               void *fn_ctx)
{
    for (int i = 1; i <= 5; i++) {
        char node[8];
        struct api_agent a = {.node = node, .version = "1", .connected = i % 2, .heard = i};

        STR_PRINTF(node, "n%d", i);
        if (!fn(fn_ctx, &a))
            return;
    }
}

static bool get_node_of_test(void *ctx, const char *node, struct api_node *ret)
{
    *ret = (struct api_node){.usable = false, .reason = "bad HBM", .who = "bob", .since = 77};
    return str_startswith(node, "n");
}

static int set_up(void **state)
{
    struct world *w = *state = xnew(struct world);
    struct api_backend b = {.model = get_model,
                            .now = get_now,
                            .submit = submit,
                            .status = get_status,
                            .agents = get_agents_of_test,
                            .node = get_node_of_test};

    STR_COPY(w->folder, "/tmp/reknit-test-api-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    STR_PRINTF(w->path, "%s/j.db", w->folder);
    w->model = model_new();
    assert_int_equal(journal_open(w->path, JOURNAL_WRITE, &w->journal, NULL), 0);
    w->batch = journal_batch_new();
    w->now = USEC_PER_SEC;
    w->submitted = xnew(struct event);
    b.journal = w->path;
    w->store = store_new(&b, w);
    w->streams = streams_new(w->store);
    return 0;
}

static int tear_down(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-last"};
    struct world *w = *state;

    streams_free(w->streams);
    store_free(w->store);
    journal_batch_free(w->batch);
    journal_free(w->journal);
    model_free(w->model);
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        char name[128];

        STR_PRINTF(name, "%s%s", w->path, ends[i]);
        unlink(name);
    }
    assert_int_equal(rmdir(w->folder), 0);
    free(w->submitted);
    free(w);
    return 0;
}

/* An event happens: it changes the state, is recorded, and told. */
static uint64_t happen(struct world *w, struct event *e)
{
    e->seq = ++w->seq;
    e->time_us = w->now += USEC_PER_SEC;
    assert_true(model_apply(w->model, e));
    journal_batch_add(w->batch, e);
    assert_int_equal(journal_commit(w->journal, w->batch, false, NULL), 0);
    metrics_happened(w->store->metrics, e);
    streams_happened(w->streams, e);
    return e->seq;
}

static uint64_t happens(struct world *w, enum event_kind kind, const char *job, uint32_t attempt)
{
    struct event e = {.kind = kind, .attempt = attempt};

    STR_COPY(e.job, job);
    return happen(w, &e);
}

static void see_job(struct world *w, const char *key, uint32_t uid)
{
    struct event e = {.kind = EVENT_JOB_SEEN}, mode = {.kind = EVENT_MODE};

    STR_COPY(e.job, key);
    e.seen =
        (struct job_facts){.scheduled = true, .id = (uint32_t)strtoul(key, NULL, 10), .uid = uid};
    STR_COPY(e.seen.user, uid == ALICE ? "alice" : "bob");
    STR_COPY(e.seen.partition, uid == ALICE ? "gpu" : "cpu");
    STR_PRINTF(e.seen.label, "%" PRIu32, e.seen.id);
    happen(w, &e);
    STR_COPY(mode.job, key);
    mode.mode.mode = MODE_PROPOSE;
    happen(w, &mode);
    happens(w, EVENT_ATTEMPT_STARTED, key, 1);
}

/* The attempt crashes on a node, and a restart is proposed. Returns the decision's seq. */
static uint64_t crash_job(struct world *w, const char *key, const char *node)
{
    struct event *e = xnew(struct event);
    uint64_t seq;

    happens(w, EVENT_INTERRUPTED, key, 1);
    *e = (struct event){.kind = EVENT_VERDICT, .attempt = 1};
    STR_COPY(e->job, key);
    e->incident = (struct incident){.class = CLASS_CRASH, .cause = CAUSE_NODE_HARDWARE};
    e->incident.culprits.n_nodes = 1;
    STR_COPY(e->incident.culprits.nodes[0], node);
    e->incident.n_evidence = 2;
    e->incident.evidence[0] = (struct evidence_line){.file = 3, .line = 7};
    e->incident.n_logs = 1;
    e->incident.logs[0] = (struct evidence_log){.file = 3, .path = "/home/alice/train-1.log"};
    happen(w, e);
    *e = (struct event){.kind = EVENT_DECISION, .attempt = 1};
    STR_COPY(e->job, key);
    e->decision = (struct decision_facts){
        .action = ACTION_RESTART_EXCLUDING, .mode = MODE_PROPOSE, .n_nodes = 1};
    STR_COPY(e->decision.nodes[0], node);
    seq = happen(w, e);
    free(e);
    return seq;
}

/* Asking */

static const char *find_arg(void *ctx, const char *name)
{
    const char *const *args = ctx;

    for (size_t i = 0; args[i]; i += 2)
        if (streq(args[i], name))
            return args[i + 1];
    return NULL;
}

static void ask_with(struct world *w, const struct asker *who, const char *method, const char *path,
                     const char *body, const char *const *args, struct api_answer *ret)
{
    struct api_request r = {.method = method,
                            .path = path,
                            .body = body,
                            .body_len = body ? strlen(body) : 0,
                            .asker = who,
                            .arg = args ? find_arg : NULL,
                            .arg_ctx = (void *)args};

    route_answer(w->store, &r, ret);
    assert_true(ret->stream || (ret->text && ret->len == strlen(ret->text)));
}

static unsigned status_of(struct world *w, const struct asker *who, const char *method,
                          const char *path, const char *body)
{
    _cleanup_answer_ struct api_answer a = {0};

    ask_with(w, who, method, path, body, NULL, &a);
    return a.status;
}

static json_t *get(struct world *w, const struct asker *who, const char *path,
                   const char *const *args)
{
    _cleanup_answer_ struct api_answer a = {0};
    json_t *j;

    ask_with(w, who, "GET", path, NULL, args, &a);
    assert_int_equal(a.status, 200);
    j = json_loads(a.text, 0, NULL);
    assert_true(json_is_object(j));
    return j;
}

static size_t count(struct world *w, const struct asker *who, const char *path, const char *name)
{
    json_t *j = get(w, who, path, NULL);
    const json_t *v = json_object_get(j, name);
    size_t n = json_is_object(v) ? json_object_size(v) : json_array_size(v);

    json_decref(j);
    return n;
}

/* Routes */

static void paths_lead_where_the_table_says(void **state)
{
    static const struct {
        const char *method, *path, *route, *name;
        uint64_t seq;
    } cases[] = {
        {"GET", "/v1/jobs", "/v1/jobs", "", 0},
        {"GET", "/v1/jobs/4242", "/v1/jobs/{job}", "4242", 0},
        {"GET", "/v1/jobs/25_3", "/v1/jobs/{job}", "25_3", 0},
        {"GET", "/v1/jobs/25_[4,6-9%2]", "/v1/jobs/{job}", "25_[4,6-9%2]", 0},
        {"GET", "/v1/jobs/4242-17/events", "/v1/jobs/{job}/events", "4242-17", 0},
        {"POST", "/v1/decisions/17/approve", "/v1/decisions/{seq}/approve", "", 17},
        {"POST", "/v1/nodes/n7/resume", "/v1/nodes/{node}/resume", "n7", 0},
        {"GET", "/v1/nodes/gpu-a01.site", "/v1/nodes/{node}", "gpu-a01.site", 0},
        {"GET", "/v1/jobs/", NULL, NULL, 0},
        {"GET", "/v1/jobs//events", NULL, NULL, 0},
        {"GET", "/v1/jobs/.", NULL, NULL, 0},
        {"GET", "/v1/jobs/..", NULL, NULL, 0},
        {"GET", "/v1/jobs/../health", NULL, NULL, 0},
        {"GET", "/v1/jobs/a b", NULL, NULL, 0},
        {"GET", "/v1/jobs/-x", NULL, NULL, 0},
        {"GET", "/v1/jobs/%34", NULL, NULL, 0},
        {"GET", "/v1/jobs/4242/events/", NULL, NULL, 0},
        {"GET", "v1/jobs", NULL, NULL, 0},
        {"GET", "", NULL, NULL, 0},
        {"GET", "//v1/jobs", NULL, NULL, 0},
        {"POST", "/v1/decisions/99999999999999999999999/approve", NULL, NULL, 0},
        {"POST", "/v1/decisions/-1/approve", NULL, NULL, 0},
        {"POST", "/v1/decisions//approve", NULL, NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct route_params p = {0};
        char allow[32];
        const struct route *r = route_find(cases[i].method, cases[i].path, &p, allow);

        if (!cases[i].route) {
            assert_null(r);
            continue;
        }
        assert_non_null(r);
        assert_string_equal(r->path, cases[i].route);
        assert_string_equal(p.name, cases[i].name);
        assert_int_equal(p.seq, cases[i].seq);
    }
}

static void other_methods_are_told(void **state)
{
    struct world *w = *state;
    _cleanup_answer_ struct api_answer a = {0};

    ask_with(w, &root, "DELETE", "/v1/jobs", NULL, NULL, &a);
    assert_int_equal(a.status, 405);
    assert_string_equal(a.allow, "GET, HEAD");
    assert_int_equal(status_of(w, &root, "GET", "/v1/freeze", NULL), 405);
    assert_int_equal(status_of(w, &root, "HEAD", "/v1/health", NULL), 200);
    assert_int_equal(status_of(w, &root, "GET", "/v2/health", NULL), 404);
}

static void the_description_has_the_routes_and_no_others(void **state)
{
    struct world *w = *state;
    json_t *doc = get(w, &alice, "/v1/openapi.json", NULL), *path, *op;
    size_t described = 0, n = 0;
    const char *name, *method;

    json_object_foreach (json_object_get(doc, "paths"), name, path)
        json_object_foreach (path, method, op) {
            described++;
            assert_true(json_is_string(json_object_get(op, "operationId")));
        }
    for (const struct route *r = routes; r->method; r++, n++) {
        char lower[8] = "";

        for (size_t i = 0; r->method[i]; i++)
            lower[i] = (char)tolower((unsigned char)r->method[i]);
        path = json_object_get(json_object_get(doc, "paths"), r->path);
        if (!json_object_get(path, lower))
            fail_msg("docs/openapi.json has no %s %s", r->method, r->path);
    }
    assert_int_equal(n, described);
    json_decref(doc);
}

/* Who sees what */

static void a_job_is_its_users_and_operators_alone(void **state)
{
    static const char *const gets[] = {"/v1/jobs/1-10", "/v1/jobs/1", "/v1/jobs/1-10/attempts",
                                       "/v1/jobs/1/events"};
    struct world *w = *state;

    see_job(w, "1-10", ALICE);
    see_job(w, "2-10", BOB);
    for (size_t i = 0; i < ARRAY_SIZE(gets); i++) {
        assert_int_equal(status_of(w, &root, "GET", gets[i], NULL), 200);
        assert_int_equal(status_of(w, &alice, "GET", gets[i], NULL), 200);
        assert_int_equal(status_of(w, &bob, "GET", gets[i], NULL), 404);
        assert_int_equal(status_of(w, &nobody, "GET", gets[i], NULL), 401);
    }
    assert_int_equal(count(w, &root, "/v1/jobs", "jobs"), 2);
    assert_int_equal(count(w, &alice, "/v1/jobs", "jobs"), 1);
    assert_int_equal(count(w, &bob, "/v1/events", "events"), 3);
}

/* What is said of another's job and of none must not differ, or one could count jobs. */
static void what_is_not_seen_is_as_if_it_were_not(void **state)
{
    struct world *w = *state;
    _cleanup_answer_ struct api_answer a = {0}, b = {0};

    see_job(w, "1-10", ALICE);
    ask_with(w, &bob, "POST", "/v1/jobs/1/mode", "{\"mode\":\"off\"}", NULL, &a);
    ask_with(w, &bob, "POST", "/v1/jobs/7/mode", "{\"mode\":\"off\"}", NULL, &b);
    assert_int_equal(a.status, 404);
    assert_int_equal(b.status, 404);
    assert_string_equal(
        a.text,
        "{\"error\":\"there is no job '1' that you may see and Reknit watches or remembers; "
        "'#SBATCH --comment=reknit' opts a job in\"}");
    assert_string_equal(
        b.text,
        "{\"error\":\"there is no job '7' that you may see and Reknit watches or remembers; "
        "'#SBATCH --comment=reknit' opts a job in\"}");
}

static void a_job_of_root_is_nobody_elses(void **state)
{
    struct world *w = *state;

    see_job(w, "1-10", 0);
    assert_int_equal(status_of(w, &alice, "GET", "/v1/jobs/1", NULL), 404);
    assert_int_equal(status_of(w, &root, "GET", "/v1/jobs/1", NULL), 200);
    assert_false(access_sees(&nobody, 0));
    assert_false(access_sees(&nobody, ALICE));
}

static void incidents_and_nodes_show_ones_own_jobs(void **state)
{
    struct world *w = *state;

    see_job(w, "1-10", ALICE);
    see_job(w, "2-10", BOB);
    crash_job(w, "1-10", "n7");
    crash_job(w, "2-10", "n7");
    assert_int_equal(count(w, &root, "/v1/incidents", "incidents"), 2);
    assert_int_equal(count(w, &bob, "/v1/incidents", "incidents"), 1);
    assert_int_equal(count(w, &root, "/v1/nodes/n7", "blamed_in"), 2);
    assert_int_equal(count(w, &alice, "/v1/nodes/n7", "blamed_in"), 1);
    assert_int_equal(count(w, &alice, "/v1/nodes/n7", "kept_out_of"), 0); /* exclusion_life is 0 */
    assert_int_equal(count(w, &root, "/v1/nodes/n8", "blamed_in"), 0);
    assert_int_equal(count(w, &root, "/v1/nodes/n8", "scheduler"), 4);
    assert_int_equal(count(w, &alice, "/v1/nodes/n7", "scheduler"), 4);
    assert_int_equal(count(w, &alice, "/v1/nodes/n8", "scheduler"), 0); /* none of hers */
    assert_int_equal(status_of(w, &alice, "GET", "/metrics", NULL), 403);
    assert_int_equal(status_of(w, &alice, "POST", "/v1/freeze", NULL), 403);
}

static void the_newest_of_a_number_is_meant(void **state)
{
    struct world *w = *state;
    json_t *j;

    see_job(w, "5-10", ALICE);
    see_job(w, "5-20", BOB);
    j = get(w, &root, "/v1/jobs/5", NULL);
    assert_string_equal(json_string_value(json_object_get(j, "key")), "5-20");
    json_decref(j);
    j = get(w, &alice, "/v1/jobs/5", NULL);
    assert_string_equal(json_string_value(json_object_get(j, "key")), "5-10");
    json_decref(j);
}

static void sicken(struct world *w, const char *node, enum isolation i)
{
    struct event e = {.kind = EVENT_NODE_FACT}, v = {.kind = EVENT_NODE_VERDICT};

    e.fact.count = 1;
    e.fact.isolation = i;
    e.fact.signal = signal_make(SIGNAL_HIT, PROVENANCE_KERNEL);
    STR_COPY(e.fact.node, node);
    STR_COPY(e.fact.signal.text, "job 5 of bob");
    happen(w, &e);
    v.node_verdict.isolation = i;
    STR_COPY(v.node_verdict.node, node);
    STR_COPY(v.node_verdict.why, "a GPU is gone");
    happen(w, &v);
}

static void what_stands_against_nodes_is_for_operators(void **state)
{
    struct world *w = *state;
    json_t *j, *ledger;

    sicken(w, "n1", ISOLATION_REBOOT);
    sicken(w, "n2", ISOLATION_DRAIN);
    assert_int_equal(count(w, &root, "/v1/nodes", "nodes"), 2);
    j = get(w, &root, "/v1/nodes", (const char *const[]){"after", "n1", NULL});
    assert_int_equal(json_array_size(json_object_get(j, "nodes")), 1);
    json_decref(j);
    assert_int_equal(status_of(w, &alice, "GET", "/v1/nodes", NULL), 403);
    assert_true(count(w, &root, "/v1/nodes/n1", "ledger") > 0);
    assert_int_equal(count(w, &alice, "/v1/nodes/n1", "ledger"), 0);
    j = get(w, &root, "/v1/nodes/n1", NULL);
    ledger = json_object_get(j, "ledger");
    assert_string_equal(json_string_value(json_object_get(ledger, "isolation")), "reboot");
    assert_string_equal(json_string_value(json_object_get(ledger, "why")), "a GPU is gone");
    assert_int_equal(json_array_size(json_object_get(ledger, "facts")), 1);
    json_decref(j);
}

static void people_say_that_a_node_is_well(void **state)
{
    struct world *w = *state;

    assert_int_equal(status_of(w, &root, "POST", "/v1/nodes/n1/resume", NULL), 404);
    sicken(w, "n1", ISOLATION_REBOOT);
    assert_int_equal(status_of(w, &alice, "POST", "/v1/nodes/n1/resume", NULL), 403);
    assert_int_equal(status_of(w, &root, "POST", "/v1/nodes/n1/resume", NULL), 200);
    assert_int_equal(w->submitted->request.request, REQUEST_RESUME);
    assert_string_equal(w->submitted->request.node, "n1");
    assert_string_equal(w->submitted->request.who, "root");
    assert_int_equal(status_of(w, &root, "POST", "/v1/rearm", NULL), 409); /* none is stopped */
}

static void a_job_that_the_state_forgot_is_in_the_journal(void **state)
{
    struct world *w = *state;
    json_t *j;

    see_job(w, "5-10", ALICE);
    model_free(w->model);
    w->model = model_new();
    j = get(w, &alice, "/v1/jobs/5", NULL);
    assert_string_equal(json_string_value(json_object_get(j, "phase")), "forgotten");
    json_decref(j);
    assert_int_equal(status_of(w, &bob, "GET", "/v1/jobs/5", NULL), 404);
    assert_int_equal(status_of(w, &bob, "GET", "/v1/jobs/5-10/events", NULL), 404);
    assert_int_equal(status_of(w, &alice, "GET", "/v1/jobs/5-10/events", NULL), 200);
    assert_int_equal(status_of(w, &alice, "POST", "/v1/jobs/5/mode", "{\"mode\":\"off\"}"), 409);
}

/* Whose a job is that only the journal knows is looked up for whom it matters, once, and not for
 * many in one turn of the loop. */
static void owners_are_looked_up_in_bounds(void **state)
{
    struct world *w = *state;
    const char *args[] = {"before", NULL, NULL};
    char key[32], before[24] = "1000000";
    size_t found = 0, pages = 0;

    see_job(w, "1-10", ALICE);
    crash_job(w, "1-10", "n7");
    for (int i = 2; i <= 500; i++) {
        STR_PRINTF(key, "%d-10", i);
        see_job(w, key, BOB);
        crash_job(w, key, "n7");
    }
    model_free(w->model);
    w->model = model_new();
    count(w, &root, "/v1/incidents", "incidents");
    assert_int_equal(w->store->owners_asked, 0);
    for (args[1] = before; found == 0; pages++) {
        uint64_t asked = w->store->owners_asked;
        json_t *j = get(w, &alice, "/v1/incidents", args);

        found = json_array_size(json_object_get(j, "incidents"));
        assert_in_range(w->store->owners_asked - asked, 0, 200);
        STR_PRINTF(before, "%lld", (long long)json_integer_value(json_object_get(j, "next")));
        json_decref(j);
        assert_true(pages < 10);
    }
    assert_int_equal(found, 1);
    for (int i = 0; i < 2; i++) { /* the last that were looked up are remembered */
        uint64_t asked = w->store->owners_asked;

        assert_int_equal(store_owner(w->store, "1-10"), ALICE);
        assert_int_equal(w->store->owners_asked, asked);
    }
}

/* Commands */

static void a_proposal_is_approved_once_by_whom_it_concerns(void **state)
{
    struct world *w = *state;
    char path[64];
    uint64_t seq;

    see_job(w, "1-10", ALICE);
    seq = crash_job(w, "1-10", "n7");
    assert_int_equal(count(w, &alice, "/v1/decisions", "decisions"), 1);
    assert_int_equal(count(w, &bob, "/v1/decisions", "decisions"), 0);
    STR_PRINTF(path, "/v1/decisions/%" PRIu64 "/approve", seq);
    assert_int_equal(status_of(w, &bob, "POST", path, NULL), 404);
    assert_int_equal(w->submissions, 0);
    assert_int_equal(status_of(w, &alice, "POST", path, NULL), 200);
    assert_int_equal(w->submissions, 1);
    assert_int_equal(w->submitted->kind, EVENT_OPERATOR);
    assert_int_equal(w->submitted->request.request, REQUEST_APPROVE);
    assert_int_equal(w->submitted->request.of, seq);
    assert_string_equal(w->submitted->job, "1-10");
    assert_string_equal(w->submitted->request.who, "alice");
    happen(w, w->submitted);
    assert_int_equal(status_of(w, &alice, "POST", path, NULL), 409);
    assert_int_equal(status_of(w, &alice, "POST", "/v1/decisions/1/approve", NULL), 404);
}

static void an_expired_proposal_is_not_taken(void **state)
{
    struct world *w = *state;
    struct event e = {.kind = EVENT_BRAKES, .brakes = {.proposal_life = USEC_PER_MIN}};
    char path[64];

    happen(w, &e);
    see_job(w, "1-10", ALICE);
    STR_PRINTF(path, "/v1/decisions/%" PRIu64 "/reject", crash_job(w, "1-10", "n7"));
    w->now += USEC_PER_MIN; /* and nothing happens meanwhile */
    assert_int_equal(status_of(w, &alice, "POST", path, NULL), 409);
    assert_int_equal(count(w, &alice, "/v1/decisions", "decisions"), 0);
    assert_int_equal(w->submissions, 0);
}

static void a_user_moves_within_what_operators_allow(void **state)
{
    struct world *w = *state;

    see_job(w, "1-10", ALICE); /* propose */
    assert_int_equal(status_of(w, &alice, "POST", "/v1/jobs/1/mode", "{\"mode\":\"act\"}"), 403);
    assert_int_equal(status_of(w, &alice, "POST", "/v1/jobs/1/mode", "{\"mode\":\"full\"}"), 400);
    assert_int_equal(status_of(w, &alice, "POST", "/v1/jobs/1/mode", "{}"), 400);
    assert_int_equal(status_of(w, &alice, "POST", "/v1/jobs/1/mode", "[1"), 400);
    assert_int_equal(w->submissions, 0);
    assert_int_equal(status_of(w, &alice, "POST", "/v1/jobs/1/mode", "{\"mode\":\"observe\"}"),
                     200);
    assert_int_equal(w->submitted->mode.mode, MODE_OBSERVE);
    assert_true(w->submitted->mode.asked && w->submitted->mode.owner);
    happen(w, w->submitted);
    assert_int_equal(status_of(w, &alice, "POST", "/v1/jobs/1/mode", "{\"mode\":\"act\"}"), 403);
    assert_int_equal(status_of(w, &alice, "POST", "/v1/jobs/1/mode", "{\"mode\":\"propose\"}"),
                     200); /* what she lowered she may raise again */
    assert_int_equal(status_of(w, &root, "POST", "/v1/jobs/1/mode", "{\"mode\":\"act\"}"), 200);
    assert_int_equal(w->submitted->mode.mode, MODE_ACT);
    assert_true(w->submitted->mode.asked && !w->submitted->mode.owner);
    happen(w, w->submitted);
    assert_int_equal(status_of(w, &alice, "POST", "/v1/jobs/1/mode", "{\"mode\":\"act\"}"), 200);
}

static void a_word_about_the_mode_is_taken_back(void **state)
{
    static const char back[] = "{\"mode\":\"default\"}";
    struct world *w = *state;

    see_job(w, "1-10", ALICE); /* propose */
    assert_int_equal(status_of(w, &root, "POST", "/v1/jobs/1/mode", "{\"mode\":\"act\"}"), 200);
    happen(w, w->submitted);
    assert_int_equal(status_of(w, &alice, "POST", "/v1/jobs/1/mode", "{\"mode\":\"off\"}"), 200);
    happen(w, w->submitted);
    assert_int_equal(status_of(w, &alice, "POST", "/v1/jobs/1/mode", back), 200);
    assert_true(w->submitted->mode.owner && w->submitted->mode.withdrawn);
    assert_int_equal(w->submitted->mode.mode, MODE_ACT);
    happen(w, w->submitted);
    assert_int_equal(status_of(w, &bob, "POST", "/v1/jobs/1/mode", back), 404);
    assert_int_equal(status_of(w, &root, "POST", "/v1/jobs/1/mode", back), 200);
    assert_true(!w->submitted->mode.owner && w->submitted->mode.withdrawn);
    assert_int_equal(w->submitted->mode.mode, MODE_PROPOSE);
    assert_string_equal(w->submitted->mode.why, "root took back what an operator said of it");
    happen(w, w->submitted);
    assert_int_equal(status_of(w, &alice, "POST", "/v1/jobs/1/mode", "{\"mode\":\"act\"}"), 403);
}

static void a_freeze_says_why(void **state)
{
    struct world *w = *state;

    assert_int_equal(status_of(w, &root, "POST", "/v1/freeze", "{\"reason\":[]}"), 400);
    assert_int_equal(status_of(w, &root, "POST", "/v1/thaw", "{\"reason\":7}"), 400);
    assert_int_equal(w->submissions, 0);
    assert_int_equal(
        status_of(w, &root, "POST", "/v1/freeze", "{\"reason\":\"a\\u0007 switch\\n\"}"), 200);
    assert_int_equal(w->submitted->request.request, REQUEST_FREEZE);
    assert_string_equal(w->submitted->request.why, "a\xef\xbf\xbd switch ");
    assert_string_equal(w->submitted->request.who, "root");
    happen(w, w->submitted);
    assert_true(w->model->frozen);
}

/* Pages */

static void see_label(struct world *w, const char *key, const char *label)
{
    struct event e = {.kind = EVENT_LOOK, .attempt = 1};

    STR_COPY(e.job, key);
    e.look.state = SCHED_RUNNING;
    STR_COPY(e.look.label, label);
    happen(w, &e);
}

static unsigned asked_for(struct world *w, const char *name)
{
    char path[64];

    STR_PRINTF(path, "/v1/jobs/%s", name);
    return status_of(w, &alice, "GET", path, NULL);
}

/* The last of an array's tasks to begin keeps the number of the array. */
static void a_task_is_found_by_what_it_is_called_now(void **state)
{
    struct world *w = *state;

    see_job(w, "6-10", ALICE);
    see_label(w, "6-10", "6_[2-3%2]");
    assert_int_equal(asked_for(w, "6_[2-3%2]"), 200);
    assert_int_equal(asked_for(w, "6_[1-3%2]"), 200); /* as it was a moment ago */
    assert_int_equal(asked_for(w, "6_3"), 404);
    assert_int_equal(asked_for(w, "7_[2-3%2]"), 404);
    see_label(w, "6-10", "6_3");
    assert_int_equal(asked_for(w, "6_3"), 200);
    assert_int_equal(asked_for(w, "6"), 200);
    assert_int_equal(asked_for(w, "6_[3]"), 404);
}

static void evidence_names_its_file(void **state)
{
    struct world *w = *state;
    json_t *j, *list;

    see_job(w, "1-10", ALICE);
    crash_job(w, "1-10", "n7");
    j = get(w, &alice, "/v1/jobs/1/attempts", NULL);
    list = json_object_get(
        json_object_get(json_array_get(json_object_get(j, "attempts"), 0), "incident"), "evidence");
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "file")),
                        "/home/alice/train-1.log");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "line")), 7);
    assert_null(json_object_get(json_array_get(list, 1), "file"));
    json_decref(j);
    assert_int_equal(status_of(w, &bob, "GET", "/v1/jobs/1/attempts", NULL), 404);
}

static void pages_of_jobs_hold_each_once(void **state)
{
    struct world *w = *state;
    const char *args[] = {"limit", "3", "page", NULL, NULL};
    char page[200] = "", seen[200] = "";

    for (int i = 1; i <= 8; i++) {
        char key[32];

        STR_PRINTF(key, "%d-10", i);
        see_job(w, key, i % 4 == 0 ? BOB : ALICE);
    }
    for (int n = 0; n < 4; n++) {
        json_t *j, *v;
        size_t i;

        args[2] = page[0] ? "page" : NULL;
        args[3] = page;
        j = get(w, &alice, "/v1/jobs", args);
        json_array_foreach (json_object_get(j, "jobs"), i, v) {
            strncat(seen, json_string_value(json_object_get(v, "label")), 8);
            strncat(seen, " ", 2);
        }
        v = json_object_get(j, "next");
        page[0] = '\0';
        if (v)
            STR_COPY(page, json_string_value(v));
        json_decref(j);
        if (!page[0])
            break;
    }
    assert_string_equal(seen, "7 6 5 3 2 1 ");
}

static void pages_of_events_hold_each_once(void **state)
{
    struct world *w = *state;
    const char *args[] = {"limit", "4", "after", "0", NULL};
    char after[32] = "0";
    size_t n = 0;

    see_job(w, "1-10", ALICE);
    see_job(w, "2-10", BOB);
    crash_job(w, "1-10", "n1");
    for (int rounds = 0; rounds < 10; rounds++) {
        json_t *j, *next;

        args[3] = after;
        j = get(w, &alice, "/v1/events", args);
        n += json_array_size(json_object_get(j, "events"));
        next = json_object_get(j, "next");
        if (next)
            STR_PRINTF(after, "%" PRId64, (int64_t)json_integer_value(next));
        json_decref(j);
        if (!next)
            break;
    }
    assert_int_equal(n, 6);
}

static void step(struct world *w, const char *job, uint32_t attempt, int64_t number)
{
    struct event *e = xnew(struct event);

    *e = (struct event){.kind = EVENT_SIGNAL, .attempt = attempt};
    STR_COPY(e->job, job);
    e->signal = (struct signal){.kind = SIGNAL_STEP, .step.step = number};
    happen(w, e);
    free(e);
}

static void save(struct world *w, const char *job, uint32_t attempt, int64_t number)
{
    struct event *e = xnew(struct event);

    *e = (struct event){.kind = EVENT_SIGNAL, .attempt = attempt};
    STR_COPY(e->job, job);
    e->signal = (struct signal){.kind = SIGNAL_CHECKPOINT,
                                .checkpoint = {.edge = EDGE_END, .step = number}};
    happen(w, e);
    free(e);
}

/* "1 50 99 " are the numbers of the steps of an answer. */
static const char *told_steps(struct world *w, char *text, size_t size)
{
    static const char *const args[] = {"thin", "1", "limit", "500", NULL};
    json_t *j = get(w, &alice, "/v1/jobs/1-10/events", args), *e;
    size_t i, n = 0;

    *text = '\0';
    json_array_foreach (json_object_get(j, "events"), i, e) {
        json_t *signal = json_object_get(e, "signal");
        json_t *s = json_object_get(json_object_get(signal, "step"), "step");

        if (s)
            n += (size_t)snprintf(text + n, size - n, "%d ", (int)json_integer_value(s));
    }
    json_decref(j);
    return text;
}

static void of_many_steps_the_telling_ones_are_told(void **state)
{
    struct world *w = *state;
    char text[512];

    see_job(w, "1-10", ALICE);
    for (int64_t i = 1; i <= 120; i++)
        step(w, "1-10", 1, i);
    assert_string_equal(told_steps(w, text, sizeof(text)), "1 51 101 120 ");
    crash_job(w, "1-10", "n1");
    happens(w, EVENT_ATTEMPT_STARTED, "1-10", 2);
    for (int64_t i = 101; i <= 120; i++) {
        step(w, "1-10", 2, i);
        if (i % 10 == 0)
            save(w, "1-10", 2, i);
    }
    step(w, "1-10", 2, 121);
    assert_string_equal(told_steps(w, text, sizeof(text)), "1 51 101 120 101 110 120 121 ");
}

static void wrong_questions_are_refused(void **state)
{
    static const char *const wrong[][2] = {{"limit", "0"},   {"limit", "501"}, {"limit", "x"},
                                           {"limit", "-1"},  {"page", "x"},    {"page", "1"},
                                           {"phase", "odd"}, {"mode", "all"},  {"state", "R"}};
    static const char *const events[][2] = {
        {"kind", "odd"}, {"kind", "verdict,,x"}, {"after", "-3"}, {"since_us", "noon"}};
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(wrong) + ARRAY_SIZE(events); i++) {
        const char *const *at = i < ARRAY_SIZE(wrong) ? wrong[i] : events[i - ARRAY_SIZE(wrong)];
        const char *args[] = {at[0], at[1], NULL};
        _cleanup_answer_ struct api_answer a = {0};

        ask_with(w, &root, "GET", i < ARRAY_SIZE(wrong) ? "/v1/jobs" : "/v1/events", NULL, args,
                 &a);
        assert_int_equal(a.status, 400);
    }
}

static void events_since_a_time_begin_there(void **state)
{
    struct world *w = *state;
    char since[32];
    const char *args[] = {"since_us", since, NULL};
    json_t *j;

    see_job(w, "1-10", ALICE);
    STR_PRINTF(since, "%" PRId64, w->now + 1);
    see_job(w, "2-10", ALICE);
    j = get(w, &alice, "/v1/events", args);
    assert_int_equal(json_array_size(json_object_get(j, "events")), 3);
    json_decref(j);
}

/* Streams */

static void note_wake(void *ctx)
{
    (*(unsigned *)ctx)++;
}

/* The ids that can be read now: "1 2 ". */
static const char *read_ids(struct stream *st)
{
    static char ids[512], text[65536];
    size_t n = 0;
    ssize_t r;

    while ((r = stream_read(st, text + n, sizeof(text) - 1 - n)) > 0)
        n += (size_t)r;
    text[n] = '\0';
    ids[0] = '\0';
    for (const char *p = text; (p = strstr(p, "id: ")); p += 4) {
        strncat(ids, p + 4, strcspn(p + 4, "\n"));
        strncat(ids, " ", 2);
    }
    return ids;
}

static void a_stream_shows_ones_own_and_goes_on_where_it_was(void **state)
{
    struct world *w = *state;
    struct stream_choice now = {.kinds = ~UINT64_C(0) >> (64 - EVENT_MAX), .after = UINT64_MAX};
    struct stream_choice past = now;
    struct stream *st, *late;
    unsigned wakes = 0;

    past.after = 1;
    see_job(w, "1-10", ALICE); /* 1 2 3 */
    st = stream_new(w->streams, &alice, &now, note_wake, &wakes);
    late = stream_new(w->streams, &alice, &past, note_wake, &wakes);
    assert_string_equal(read_ids(st), "");
    assert_string_equal(read_ids(late), "2 3 ");
    see_job(w, "2-10", BOB);       /* 4 5 6 */
    crash_job(w, "1-10", "n1");    /* 7 8 9 */
    happens(w, EVENT_TICK, "", 0); /* 10: of no job */
    assert_int_equal(wakes, 2);
    assert_string_equal(read_ids(st), "7 8 9 ");
    assert_string_equal(read_ids(late), "7 8 9 ");
    streams_close(w->streams);
    assert_int_equal(stream_read(st, (char[8]){0}, 8), -ENOENT);
    stream_free(st);
    stream_free(late);
}

static void a_stream_that_fell_behind_reads_the_journal(void **state)
{
    struct world *w = *state;
    struct stream_choice c = {.kinds = ~UINT64_C(0) >> (64 - EVENT_MAX), .after = UINT64_MAX};
    unsigned wakes = 0;
    struct stream *st = stream_new(w->streams, &root, &c, note_wake, &wakes);
    uint64_t last = 0;
    char text[40960];
    ssize_t r;

    for (int i = 0; i < 1500; i++)
        happens(w, EVENT_TICK, "", 0);
    while ((r = stream_read(st, text, sizeof(text) - 1)) > 0) { /* in whole pieces */
        text[r] = '\0';
        for (const char *p = text; (p = strstr(p, "id: ")); p += 4)
            assert_int_equal(strtoull(p + 4, NULL, 10), ++last); /* none is passed over */
    }
    assert_int_equal(last, 1500);
    stream_free(st);
}

static void streams_are_few(void **state)
{
    struct world *w = *state;
    struct stream_choice c = {.kinds = 1, .after = 0};
    struct stream *st[STREAMS_PER_USER_MAX];
    unsigned wakes = 0;

    for (size_t i = 0; i < STREAMS_PER_USER_MAX; i++)
        assert_non_null(st[i] = stream_new(w->streams, &alice, &c, note_wake, &wakes));
    assert_null(stream_new(w->streams, &alice, &c, note_wake, &wakes));
    for (size_t i = 0; i < STREAMS_PER_USER_MAX; i++)
        stream_free(st[i]);
}

/* Metrics */

static bool is_metric_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '_')
            return false;
    return n > 0 && !isdigit((unsigned char)s[0]);
}

/* One sample: name{label="value",...} number */
static void check_sample(const char *line, const char *family)
{
    size_t n = strcspn(line, "{ ");
    const char *p = line + n;
    char *end;

    assert_true(is_metric_name(line, n));
    assert_int_equal(strncmp(line, family, strlen(family)), 0);
    while (*p && strchr("{,", *p)) {
        size_t k = strcspn(++p, "=");

        assert_true(is_metric_name(p, k));
        p += k + 1;
        assert_int_equal(*p++, '"');
        while (*p != '"')
            p += *p == '\\' ? 2 : 1;
        p++;
    }
    if (*p == '}')
        p++;
    assert_int_equal(*p++, ' ');
    strtod(p, &end);
    assert_true(end > p && *end == '\0');
}

static void agents_are_told_to_operators_page_by_page(void **state)
{
    struct world *w = *state;
    const char *first[] = {"limit", "2", NULL}, *next[] = {"limit", "2", "after", "n2", NULL};
    const char *gone[] = {"gone", "", NULL};
    json_t *j = get(w, &root, "/v1/agents", first);

    assert_int_equal(json_array_size(json_object_get(j, "agents")), 2);
    assert_string_equal(json_string_value(json_object_get(j, "next")), "n2");
    json_decref(j);
    j = get(w, &root, "/v1/agents", next);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(json_object_get(j, "agents"), 0), "node")),
        "n3");
    json_decref(j);
    j = get(w, &root, "/v1/agents", gone);
    assert_int_equal(json_array_size(json_object_get(j, "agents")), 2);
    json_decref(j);
    j = get(w, &root, "/v1/health", NULL);
    assert_int_equal(json_array_size(json_object_get(json_object_get(j, "agents"), "gone_nodes")),
                     2);
    json_decref(j);
    assert_int_equal(status_of(w, &alice, "GET", "/v1/agents", NULL), 403);
    j = get(w, &alice, "/v1/health", NULL);
    assert_null(json_object_get(j, "agents"));
    assert_null(json_object_get(j, "config_hash"));
    json_decref(j);
}

static void metrics_are_what_prometheus_reads(void **state)
{
    struct world *w = *state;
    _cleanup_answer_ struct api_answer a = {0};
    char family[96] = "", *save = NULL;
    unsigned samples = 0;

    see_job(w, "1-10", ALICE);
    crash_job(w, "1-10", "n1");
    ask_with(w, &root, "GET", "/metrics", NULL, NULL, &a);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.text, "reknit_build_info{version=\"1.2\\\"3\\\\\"} 1\n"));
    assert_non_null(
        strstr(a.text, "reknit_incidents_total{class=\"crash\",cause=\"node-hardware\"} 1\n"));
    assert_non_null(strstr(a.text, "reknit_verdict_seconds_bucket{le=\"0.5\"} 0\n"));
    assert_non_null(strstr(a.text, "reknit_verdict_seconds_bucket{le=\"1\"} 1\n"));
    assert_non_null(strstr(a.text, "reknit_verdict_seconds_sum 1.000000\n"));
    assert_null(strstr(a.text, "alice"));
    for (char *line = strtok_r(a.text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (str_startswith(line, "# HELP ")) {
            str_copy_n(family, sizeof(family), line + 7, strcspn(line + 7, " "));
        } else if (str_startswith(line, "# TYPE ")) {
            assert_int_equal(strncmp(line + 7, family, strlen(family)), 0);
        } else {
            check_sample(line, family);
            samples++;
        }
    }
    assert_in_range(samples, 100, 400); /* bounded, whatever runs */
}

/* What a job waits for */

static void what_a_job_waits_for_is_said(void **state)
{
    static const struct {
        struct look_facts look;
        enum job_state state;
        bool held_for_people;
        const char *waits; /* NULL = for nothing */
    } cases[] = {
        {{.state = SCHED_RUNNING}, JOB_RUNNING, false, NULL},
        {{.state = SCHED_COMPLETED}, JOB_ENDED, false, NULL},
        {{.state = SCHED_PENDING, .reason = "Resources"},
         JOB_NEW,
         false,
         "nodes that are free (Resources)"},
        {{.state = SCHED_PENDING, .reason = "Dependency"},
         JOB_NEW,
         false,
         "the jobs that it depends on (Dependency)"},
        {{.state = SCHED_PENDING, .reason = "Licenses"},
         JOB_NEW,
         false,
         "the scheduler (Licenses)"},
        {{.state = SCHED_PENDING, .reason = "BeginTime", .begin = 130 * USEC_PER_SEC},
         JOB_NEW,
         false,
         "its start time, in 30.0s"},
        {{.state = SCHED_PENDING, .reason = "JobHeldUser", .held = true},
         JOB_NEW,
         false,
         "whoever holds it (JobHeldUser): 'scontrol release 7' ends that"},
        {{.state = SCHED_PENDING, .reason = "JobHeldAdmin", .held = true},
         JOB_NEW,
         false,
         "an operator, as its user may not release it (JobHeldAdmin): 'scontrol release 7' ends "
         "that"},
        {{.state = SCHED_PENDING, .held = true},
         JOB_ENDED,
         true,
         "somebody to look at it, as its policy says: 'scontrol release 7' lets it go on"},
        {{.state = SCHED_PENDING, .reason = "BadConstraints", .constrained = true},
         JOB_STARTING,
         false,
         "nodes that cannot come together (BadConstraints)"},
        {{.state = SCHED_PENDING, .lost_node = "n2"},
         JOB_STARTING,
         false,
         "node n2, which does not answer"},
        {{.state = SCHED_FAILED, .lost_node = "n2"},
         JOB_DECIDED,
         false,
         "node n2, which does not answer"},
        {{.state = SCHED_FAILED, .completing = true},
         JOB_DECIDED,
         false,
         "the scheduler, which still ends what is left of the attempt"},
        {{.state = SCHED_FAILED}, JOB_DECIDED, false, NULL},
    };
    struct model *m = model_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct job *j = xnew(struct job);
        char text[320] = "";

        j->scheduled = true;
        j->state = cases[i].state;
        j->attempt.decision.action = ACTION_RESTART;
        j->attempt.decision.mode = j->sched.mode = MODE_ACT;
        j->sched.look = cases[i].look;
        j->sched.held_for_people = cases[i].held_for_people;
        STR_COPY(j->sched.label, "7");
        assert_int_equal(waits_for(m, j, 100 * USEC_PER_SEC, text, sizeof(text)),
                         cases[i].waits != NULL);
        if (cases[i].waits && !str_startswith(text, cases[i].waits))
            fail_msg("case %zu: %s", i, text);
        free(j);
    }
    model_free(m);
}

int main(void)
{
#define WITH_WORLD(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_job_waits_for_is_said),
        cmocka_unit_test(paths_lead_where_the_table_says),
        WITH_WORLD(other_methods_are_told),
        WITH_WORLD(the_description_has_the_routes_and_no_others),
        WITH_WORLD(a_job_is_its_users_and_operators_alone),
        WITH_WORLD(what_is_not_seen_is_as_if_it_were_not),
        WITH_WORLD(a_job_of_root_is_nobody_elses),
        WITH_WORLD(incidents_and_nodes_show_ones_own_jobs),
        WITH_WORLD(the_newest_of_a_number_is_meant),
        WITH_WORLD(what_stands_against_nodes_is_for_operators),
        WITH_WORLD(people_say_that_a_node_is_well),
        WITH_WORLD(a_job_that_the_state_forgot_is_in_the_journal),
        WITH_WORLD(owners_are_looked_up_in_bounds),
        WITH_WORLD(a_proposal_is_approved_once_by_whom_it_concerns),
        WITH_WORLD(an_expired_proposal_is_not_taken),
        WITH_WORLD(a_user_moves_within_what_operators_allow),
        WITH_WORLD(a_word_about_the_mode_is_taken_back),
        WITH_WORLD(a_freeze_says_why),
        WITH_WORLD(evidence_names_its_file),
        WITH_WORLD(a_task_is_found_by_what_it_is_called_now),
        WITH_WORLD(pages_of_jobs_hold_each_once),
        WITH_WORLD(pages_of_events_hold_each_once),
        WITH_WORLD(of_many_steps_the_telling_ones_are_told),
        WITH_WORLD(wrong_questions_are_refused),
        WITH_WORLD(events_since_a_time_begin_there),
        WITH_WORLD(a_stream_shows_ones_own_and_goes_on_where_it_was),
        WITH_WORLD(a_stream_that_fell_behind_reads_the_journal),
        WITH_WORLD(streams_are_few),
        WITH_WORLD(agents_are_told_to_operators_page_by_page),
        WITH_WORLD(metrics_are_what_prometheus_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
