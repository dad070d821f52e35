/* SPDX-License-Identifier: Apache-2.0 */

/* reknit review: what reknitd decided, beside what people did: the ground for letting it act.
 *
 * The journal may be long, so only the kinds of events that tell are asked for, each by itself, as
 * the journal's index leads to them; here they are put together again in the order of their
 * numbers. */

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/appraise.h"
#include "cli/client.h"
#include "cli/cluster.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/table.h"
#include "wire/codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

extern const struct verb verb_review;

#define SINCE_DEFAULT (7 * USEC_PER_DAY)
#define SINCE_MAX     (3650 * USEC_PER_DAY)
#define COUNT_DEFAULT 40
#define COUNT_MAX     100000
#define NODES_MAX     500 /* that are asked for */
#define ENOUGH        10  /* cases, below which a rate says little */
#define GOOD_RATE     90  /* percent */

struct query {
    usec_t since;
    size_t count;
    bool json;
};

/* The events of one kind. */
struct stream {
    enum event_kind kind;
    json_t *page;
    size_t at;
    bool more;
    uint64_t after;
    int64_t seq; /* of the event at `at`; -1 = no more */
};

static const enum event_kind kinds[] = {
    EVENT_JOB_SEEN, EVENT_ATTEMPT_STARTED, EVENT_LOOK,   EVENT_FINDING,  EVENT_VERDICT,
    EVENT_DECISION, EVENT_INTENT,          EVENT_RESULT, EVENT_OPERATOR,
};

/* Streams */

static int read_page(struct stream *s, usec_t since, struct err *e)
{
    char path[160], after[40] = "";
    const json_t *next;
    int r;

    if (s->after > 0)
        STR_PRINTF(after, "&after=%" PRIu64, s->after);
    STR_PRINTF(path, "/v1/events?limit=500&kind=%s&since_us=%" PRId64 "%s",
               event_kind_name(s->kind), since, after);
    json_decref(s->page);
    s->page = NULL;
    s->at = 0;
    r = client_get(path, &s->page, e);
    next = json_object_get(s->page, "next");
    s->more = json_is_integer(next);
    if (s->more)
        s->after = (uint64_t)json_integer_value(next);
    return r;
}

static const json_t *element(const struct stream *s)
{
    return json_array_get(json_object_get(s->page, "events"), s->at);
}

/* Makes s->seq that of the next event. A page may be empty and not the last. */
static int advance(struct stream *s, usec_t since, struct err *e)
{
    int r = 0;

    if (s->page)
        s->at++;
    while (r == 0 && !element(s) && (!s->page || s->more))
        r = read_page(s, since, e);
    s->seq = element(s) ? cluster_number(element(s), "seq", 0) : -1;
    return r;
}

static struct stream *first(struct stream *s, size_t n)
{
    struct stream *best = NULL;

    for (size_t i = 0; i < n; i++)
        if (s[i].seq >= 0 && (!best || s[i].seq < best->seq))
            best = &s[i];
    return best;
}

/* A job that was seen before the time in question: its name is needed to know it again. */
static int recall(struct appraise *a, const char *job, struct event *event, struct err *e)
{
    char name[256], path[320];
    json_t *page = NULL;
    int r;

    client_escape(job, name, sizeof(name));
    STR_PRINTF(path, "/v1/jobs/%s/events?kind=job-seen&limit=1", name);
    r = client_get(path, &page, e);
    if (r == 0 &&
        codec_json_event(json_array_get(json_object_get(page, "events"), 0), event, NULL) >= 0)
        appraise_add(a, event);
    json_decref(page);
    return r == -ENOENT ? 0 : r;
}

static int take(struct appraise *a, const json_t *j, struct event *event, struct err *e)
{
    _cleanup_(freep) struct event *seen = NULL;
    int r = codec_json_event(j, event, e);

    if (r < 0)
        return err_prefix(e, r, "an event that this release does not understand");
    if (event->kind == EVENT_DECISION && !appraise_knows(a, event->job)) {
        seen = xnew(struct event);
        r = recall(a, event->job, seen, e);
    }
    appraise_add(a, event);
    return r;
}

static int read_all(struct appraise *a, usec_t since, struct err *e)
{
    _cleanup_(freep) struct event *event = xnew(struct event);
    struct stream streams[ARRAY_SIZE(kinds)] = {0}, *s;
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(kinds); i++) {
        streams[i].kind = kinds[i];
        r = advance(&streams[i], since, e);
    }
    while (r == 0 && (s = first(streams, ARRAY_SIZE(kinds)))) {
        r = take(a, element(s), event, e);
        if (r == 0)
            r = advance(s, since, e);
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        json_decref(streams[i].page);
    return r;
}

/* Nodes */

static void ask_node(struct appraise *a, const char *node)
{
    struct appraise_word w = {0};
    struct err e = {0};
    char name[256], path[320];
    json_t *page = NULL;
    const json_t *said;

    client_escape(node, name, sizeof(name));
    STR_PRINTF(path, "/v1/nodes/%s", name);
    if (client_get(path, &page, &e) < 0)
        return; /* less is known, and nothing wrong */
    said = json_object_get(page, "scheduler");
    STR_COPY(w.node, node);
    STR_COPY(w.who, cluster_text(said, "who"));
    STR_COPY(w.reason, cluster_text(said, "reason"));
    w.at = cluster_number(said, "since_us", 0);
    appraise_add_word(a, &w);
    json_decref(page);
}

/* Of each that was blamed: whether people have taken it out of service. */
static void ask_nodes(struct appraise *a)
{
    VEC(const char *) asked = {0};

    VEC_FOREACH (&a->cases, c)
        for (uint32_t i = 0; i < c->n_nodes && asked.n < NODES_MAX; i++) {
            size_t at = VEC_BISECT(&asked, s, strcmp(*s, c->nodes[i]) < 0);

            if (at < asked.n && streq(asked.v[at], c->nodes[i]))
                continue;
            *VEC_INSERT(&asked, at) = c->nodes[i];
            ask_node(a, c->nodes[i]);
        }
    VEC_DONE(&asked);
}

static void count_nodes(const struct appraise *a, uint32_t *ret_blamed, uint32_t *ret_taken)
{
    *ret_blamed = *ret_taken = 0;
    VEC_FOREACH (&a->cases, c)
        for (uint32_t i = 0; i < c->n_nodes; i++) {
            ++*ret_blamed;
            *ret_taken += c->taken_out[i] > 0;
        }
}

/* For programs */

static json_t *taken_out_json(const struct appraise *a, const struct appraisal *c)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < c->n_nodes; i++) {
        const struct appraise_word *w =
            c->taken_out[i] > 0 ? &a->words.v[c->taken_out[i] - 1] : NULL;

        if (w)
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:s, s:I}", "node", w->node, "who", w->who,
                                            "reason", w->reason, "time_us", (json_int_t)w->at));
    }
    return list;
}

static json_t *case_json(const struct appraise *a, const struct appraisal *c)
{
    json_t *nodes = json_array();
    json_t *v = json_pack(
        "{s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "job", c->job, "attempt",
        (json_int_t)c->attempt, "decision", (json_int_t)c->decision, "time_us", (json_int_t)c->at,
        "action", action_name(c->action), "mode", mode_name(c->mode), "rule", c->rule, "class",
        incident_class_name(c->class), "cause", cause_name(c->cause), "afterwards",
        aftermath_name(c->after), "agreement", agreement_name(c->agreement));

    for (uint32_t i = 0; i < c->n_nodes; i++)
        json_array_append_new(nodes, json_string(c->nodes[i]));
    json_object_set_new(v, "nodes", nodes);
    json_object_set_new(v, "taken_out", taken_out_json(a, c));
    json_object_set_new(v, "label", json_string(c->names.label));
    json_object_set_new(v, "name", json_string(c->names.name));
    json_object_set_new(v, "user", json_string(c->names.user));
    json_object_set_new(v, "partition", json_string(c->names.partition));
    if (c->after_at > 0)
        json_object_set_new(v, "afterwards_us", json_integer(c->after_at));
    if (c->who[0])
        json_object_set_new(v, "who", json_string(c->who));
    if (c->as[0])
        json_object_set_new(v, "resubmitted_as", json_string(c->as));
    return v;
}

static json_t *tally_json(const struct appraise_tally *t, const char *key)
{
    int rate = appraise_rate(t);
    json_t *v = json_pack("{s:I, s:I, s:I, s:I, s:I}", "decisions", (json_int_t)t->decisions,
                          "agreed", (json_int_t)t->agreed, "differed", (json_int_t)t->differed,
                          "unknown", (json_int_t)t->unknown, "done", (json_int_t)t->done);

    if (key)
        json_object_set_new(v, key, json_string(t->word));
    json_object_set_new(v, "rate", rate < 0 ? json_null() : json_integer(rate));
    return v;
}

static json_t *tallies_json(const struct appraise *a, appraise_key_fn key, const char *name)
{
    _cleanup_(freep) struct appraise_tally *t = NULL;
    size_t n = appraise_count(a, key, &t);
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, tally_json(&t[i], name));
    return list;
}

static void print_json(const struct appraise *a, const struct query *q, usec_t now)
{
    json_t *root =
        json_pack("{s:I, s:I, s:o, s:o, s:o}", "since_us", (json_int_t)(now - q->since), "until_us",
                  (json_int_t)now, "by_cause", tallies_json(a, appraise_by_cause, "cause"),
                  "by_rule", tallies_json(a, appraise_by_rule, "rule"), "by_partition",
                  tallies_json(a, appraise_by_partition, "partition"));
    json_t *all = tallies_json(a, appraise_by_nothing, NULL), *cases = json_array();
    json_t *none = tally_json(&(struct appraise_tally){0}, NULL);
    uint32_t blamed, taken;

    VEC_FOREACH (&a->cases, c)
        json_array_append_new(cases, case_json(a, c));
    count_nodes(a, &blamed, &taken);
    json_object_set_new(
        root, "nodes",
        json_pack("{s:I, s:I}", "blamed", (json_int_t)blamed, "taken_out", (json_int_t)taken));
    json_object_set_new(root, "cases", cases);
    json_object_set(root, "all", json_array_size(all) > 0 ? json_array_get(all, 0) : none);
    json_object_set_new(root, "dropped", json_integer((json_int_t)a->dropped));
    json_dumpf(root, stdout, JSON_SORT_KEYS | JSON_COMPACT);
    putchar('\n');
    json_decref(root);
    json_decref(all);
    json_decref(none);
}

/* For people */

static void print_line(void *ctx, const char *text)
{
    puts(text);
}

static void print_table(struct table *t)
{
    table_print(t, table_screen(stdout), print_line, NULL);
    table_done(t);
}

static void add_heads(struct table *t, const char *const *heads)
{
    for (unsigned i = 0; i < t->columns; i++)
        strbuf_adds(table_cell(t), heads[i]);
}

static const char *day_and_time(usec_t at, char ret[20])
{
    time_t seconds = (time_t)(at / USEC_PER_SEC);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(ret, 20, "%m-%d %H:%M", &tm);
    return ret;
}

static void add_decided(const struct appraisal *c, struct strbuf *out)
{
    if (c->action == ACTION_STOP) {
        strbuf_adds(out, "stop");
        return;
    }
    strbuf_adds(out, "restart");
    for (uint32_t i = 0; i < c->n_nodes; i++)
        strbuf_addf(out, "%s%s", i == 0 ? " without " : ",", c->nodes[i]);
}

static void add_taken_out(const struct appraise *a, const struct appraisal *c, struct strbuf *out)
{
    for (uint32_t i = 0; i < c->n_nodes; i++)
        if (c->taken_out[i] > 0)
            strbuf_addf(out, ", took out %s (%s)", c->nodes[i],
                        a->words.v[c->taken_out[i] - 1].who);
}

static void add_afterwards(const struct appraisal *c, struct strbuf *out)
{
    static const char *const words[AFTER_MAX] = {
        [AFTER_OPEN] = "nothing yet",
        [AFTER_LEFT] = "left it as it was",
        [AFTER_REQUEUED] = "requeued it",
        [AFTER_RESUBMITTED] = "submitted it again",
        [AFTER_CANCELLED] = "cancelled it",
        [AFTER_APPROVED] = "approved",
        [AFTER_REJECTED] = "rejected",
        [AFTER_GONE_ON] = "(it went on by itself)",
        [AFTER_UNDONE] = "cancelled what Reknit restarted",
        [AFTER_SLURM] = "(Slurm requeued it by itself)",
        [AFTER_DONE] = "(Reknit did it)",
    };

    strbuf_adds(out, words[c->after]);
    if (c->as[0])
        strbuf_addf(out, " as %.*s", (int)strcspn(c->as, "-"), c->as);
    if (c->who[0])
        strbuf_addf(out, " (%s)", c->who);
}

static void print_cases(const struct appraise *a, size_t most)
{
    static const char *const heads[] = {"job",     "when (UTC)", "cause",
                                        "decided", "people did", "agree"};
    struct table t = {.columns = ARRAY_SIZE(heads), .yields = 3, .yields_least = 12, .spare = 1};
    size_t from = a->cases.n > most ? a->cases.n - most : 0;
    char when[20];

    add_heads(&t, heads);
    for (size_t i = a->cases.n; i-- > from;) { /* the newest first */
        const struct appraisal *c = &a->cases.v[i];
        struct strbuf *cell;

        strbuf_adds(table_cell(&t), c->names.label[0] ? c->names.label : c->job);
        strbuf_adds(table_cell(&t), day_and_time(c->at, when));
        strbuf_adds(table_cell(&t), cause_name(c->cause));
        add_decided(c, table_cell(&t));
        cell = table_cell(&t);
        add_afterwards(c, cell);
        add_taken_out(a, c, cell);
        strbuf_adds(table_cell(&t),
                    c->agreement == AGREEMENT_NONE ? "-" : agreement_name(c->agreement));
    }
    print_table(&t);
    if (from > 0)
        printf("and %zu before them (--count)\n", from);
}

static void print_tallies(const struct appraise *a, appraise_key_fn key, const char *what)
{
    const char *const heads[] = {what, "decisions", "agree", "differ", "not known", "done", "rate"};
    _cleanup_(freep) struct appraise_tally *tallies = NULL;
    struct table t = {.columns = ARRAY_SIZE(heads), .right = 0x7e, .yields_least = 16, .spare = 5};
    size_t n = appraise_count(a, key, &tallies);

    add_heads(&t, heads);
    for (size_t i = 0; i < n; i++) {
        const struct appraise_tally *x = &tallies[i];
        const uint32_t numbers[] = {x->decisions, x->agreed, x->differed, x->unknown, x->done};
        int rate = appraise_rate(x);

        strbuf_adds(table_cell(&t), x->word);
        for (size_t k = 0; k < ARRAY_SIZE(numbers); k++)
            strbuf_addf(table_cell(&t), "%" PRIu32, numbers[k]);
        if (rate < 0)
            strbuf_adds(table_cell(&t), "-");
        else
            strbuf_addf(table_cell(&t), "%d %%", rate);
    }
    putchar('\n');
    print_table(&t);
}

/* Where to begin, for somebody who has to decide. */
static void print_ground(const struct appraise *a)
{
    _cleanup_(freep) struct appraise_tally *t = NULL, *all = NULL;
    size_t n = appraise_count(a, appraise_by_partition, &t), good = 0;
    uint32_t known, blamed, taken;

    appraise_count(a, appraise_by_nothing, &all);
    known = all[0].agreed + all[0].differed;
    putchar('\n');
    count_nodes(a, &blamed, &taken);
    if (blamed > 0)
        printf("Nodes were blamed %" PRIu32 " times; %" PRIu32
               " times people have taken such a node out of service.\n",
               blamed, taken);
    if (known < ENOUGH) {
        printf("What people would have done is known of %" PRIu32 ": too few to let it act on.\n",
               known);
        return;
    }
    printf("People did what was decided in %" PRIu32 " of %" PRIu32 " known cases (%d %%).\n",
           all[0].agreed, known, appraise_rate(&all[0]));
    for (size_t i = 0; i < n; i++)
        if (t[i].agreed + t[i].differed >= ENOUGH && appraise_rate(&t[i]) >= GOOD_RATE)
            printf("%s%s", good++ == 0 ? "Partitions to begin with: " : ", ", t[i].word);
    puts(good > 0 ? ""
                  : "In no partition do people agree often enough yet: 90 % of at least 10 cases.");
}

static void print_text(const struct appraise *a, const struct query *q)
{
    char span[DURATION_TEXT_MAX];

    if (a->cases.n == 0) {
        printf("no restart or stop was decided in the last %s\n", duration_format(q->since, span));
        return;
    }
    print_cases(a, q->count);
    print_tallies(a, appraise_by_cause, "by cause");
    print_tallies(a, appraise_by_rule, "by rule");
    print_tallies(a, appraise_by_partition, "by partition");
    print_ground(a);
    if (a->dropped > 0)
        log_warning("%" PRIu64 " further decisions are left out: ask for a shorter time",
                    a->dropped);
}

static int review(const struct query *q)
{
    _cleanup_appraise_ struct appraise a = {0};
    struct err e = {0};
    usec_t now = now_us();

    if (read_all(&a, now - q->since, &e) < 0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    ask_nodes(&a);
    appraise_end(&a, now);
    if (q->json)
        print_json(&a, q, now);
    else
        print_text(&a, q);
    return EXIT_OK;
}

enum option_value { OPTION_SINCE = OPTION_FIRST, OPTION_COUNT };

static const struct option options[] = {
    {"since", required_argument, NULL, OPTION_SINCE},
    {"count", required_argument, NULL, OPTION_COUNT},
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

static int take_option(int opt, const char *arg, struct query *q)
{
    long long v;

    switch (opt) {
    case OPTION_SINCE:
        if (duration_parse(arg, &q->since) < 0 || q->since <= 0 || q->since > SINCE_MAX)
            return usage_error("review", "--since wants a duration like 7d or 12h, not '%s'", arg);
        return 0;
    case OPTION_COUNT:
        if (str_to_i64(arg, &v) < 0 || v < 0 || v > COUNT_MAX)
            return usage_error("review", "--count wants a number up to %d, not '%s'", COUNT_MAX,
                               arg);
        q->count = (size_t)v;
        return 0;
    case OPTION_FORMAT:
        return options_format(&verb_review, arg, &q->json);
    default:
        return EXIT_USAGE;
    }
}

static int run(int argc, char **argv)
{
    struct query q = {.since = SINCE_DEFAULT, .count = COUNT_DEFAULT};
    int opt;

    while ((opt = options_next(&verb_review, argc, argv)) != OPTION_END)
        if (take_option(opt, optarg, &q) != 0)
            return EXIT_USAGE;
    if (optind < argc)
        return usage_error("review", "it takes no '%s'", argv[optind]);
    return review(&q);
}

const struct verb verb_review = {
    .name = "review",
    .summary = "compare what was decided with what people did",
    .help = "usage: reknit review [--since TIME] [--count N] [--format text|json]\n"
            "\n"
            "Each decision of reknitd to restart or to stop a job, beside what people did\n"
            "with that job afterwards, and how often the two agree: by cause, by rule, by\n"
            "partition. It is the ground for letting Reknit act, where it has only observed.\n"
            "You see your own jobs; operators all.\n"
            "\n"
            "A restart agrees when somebody requeued the job, submitted one of the same\n"
            "name after it, or approved; not when it was cancelled, rejected, went on by\n"
            "itself, or was left as it was for a day. A stop agrees when it was left,\n"
            "cancelled, or approved, or when the same failure met it again; not when it was\n"
            "requeued or rejected. What cannot be told is not counted: the first day, a\n"
            "requeue by Slurm itself, what Reknit did, a new submission after a stop.\n"
            "\n"
            "  --since TIME         the last 7d, unless said\n"
            "  --count N            so many decisions are listed, 40 unless said\n"
            "  --format text|json   json: one object with all of them\n"
            "\n"
            "Exit status: 0, or 1 when reknitd does not answer.\n",
    .options = options,
    .run = run,
};
