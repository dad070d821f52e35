/* SPDX-License-Identifier: Apache-2.0 */

/* reknit nodes: what stands against the cluster's nodes, and what people say to that. */

#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/client.h"
#include "cli/cluster.h"
#include "cli/nodes.h"
#include "cli/options.h"
#include "cli/table.h"

#include <inttypes.h>
#include <stdio.h>

extern const struct verb verb_nodes;

#define WHY_MIN 16

static void print_line(void *ctx, const char *text)
{
    puts(text);
}

static const char *when(const json_t *v, const char *key, char buf[TIMESTAMP_TEXT_MAX])
{
    usec_t t = cluster_number(v, key, 0);
    char *dot;

    if (t == 0)
        return "-";
    timestamp_format(t, buf);
    dot = strchr(buf, '.');
    if (dot)
        *dot = '\0';
    return buf;
}

static const char *or_dash(const char *s)
{
    return s[0] ? s : "-";
}

/* Who keeps it out of service: "reknit", another, "" = nobody does. */
static const char *whose(const json_t *v)
{
    const json_t *s = json_object_get(v, "scheduler");

    if (json_is_true(json_object_get(v, "drained")))
        return "reknit";
    if (!s || json_is_true(json_object_get(s, "usable")))
        return "";
    return cluster_text(s, "who")[0] ? cluster_text(s, "who") : "the scheduler";
}

static const char *last_word(const json_t *v)
{
    const json_t *last = json_object_get(v, "last");

    if (json_is_true(json_object_get(v, "lemon")) && streq(cluster_text(v, "isolation"), "none"))
        return "a lemon: it fails far more often than the others";
    if (cluster_text(v, "why")[0])
        return cluster_text(v, "why");
    return cluster_text(last, "text")[0] ? cluster_text(last, "text") : cluster_text(v, "reason");
}

struct listing {
    struct table table;
    bool json;
    size_t n;
};

static int take_node(void *ctx, json_t *v)
{
    struct listing *l = ctx;
    struct table *t = &l->table;
    char buf[TIMESTAMP_TEXT_MAX];

    l->n++;
    if (l->json) {
        json_dumpf(v, stdout, JSON_SORT_KEYS | JSON_COMPACT);
        putchar('\n');
        return 0;
    }
    strbuf_adds(table_cell(t), cluster_text(v, "node"));
    strbuf_adds(table_cell(t), or_dash(cluster_text(v, "isolation")));
    strbuf_adds(table_cell(t), or_dash(whose(v)));
    strbuf_adds(table_cell(t), when(v, "heard_us", buf));
    strbuf_adds(table_cell(t), or_dash(cluster_text(v, "waits")));
    strbuf_adds(table_cell(t), or_dash(last_word(v)));
    return 0;
}

static void print_texts(const char *what, const json_t *list, const char *key)
{
    size_t i;
    json_t *v;

    json_array_foreach (list, i, v)
        printf("%s: %s\n", what, key ? cluster_text(v, key) : json_string_value(v));
}

/* What is of no single node. */
static int print_rest(struct err *e)
{
    json_t *page = NULL;
    int r = client_get("/v1/nodes?limit=1", &page, e);

    if (r < 0)
        return r;
    print_texts("a rule is stopped, see 'reknit nodes rearm'", json_object_get(page, "stopped"),
                NULL);
    print_texts("trouble of what nodes share", json_object_get(page, "shared"), "signature");
    json_decref(page);
    return 0;
}

static int list(bool json)
{
    static const char *const heads[] = {"node",        "asks for",    "out of service by",
                                        "heard (UTC)", "not drained", "what"};
    struct listing l = {
        .json = json,
        .table = {.columns = ARRAY_SIZE(heads), .yields = 5, .yields_least = WHY_MIN, .spare = 3}};
    struct err e = {0};
    int r;

    for (size_t i = 0; !json && i < ARRAY_SIZE(heads); i++)
        strbuf_adds(table_cell(&l.table), heads[i]);
    r = cluster_each("/v1/nodes?limit=500", "nodes", "after", take_node, &l, &e);
    if (r >= 0 && !json && l.n > 0)
        table_print(&l.table, table_screen(stdout), print_line, NULL);
    else if (r >= 0 && !json)
        puts("nothing is known against any node");
    if (r >= 0 && !json)
        r = print_rest(&e);
    if (r < 0)
        log_error("%s", e.text);
    table_done(&l.table);
    return r < 0 ? EXIT_TROUBLE : EXIT_OK;
}

/* One of them */

static void print_entry(const char *name, const char *text)
{
    if (text[0])
        printf("%-12s %s\n", name, text);
}

static void print_facts(const json_t *facts)
{
    char at[TIMESTAMP_TEXT_MAX];
    size_t i;
    json_t *f;

    if (json_array_size(facts) > 0)
        puts("\nwhat was seen there, the newest first:");
    json_array_foreach (facts, i, f)
        printf("  %s  %s%s%s%s: %s\n", when(f, "time_us", at), cluster_text(f, "signature"),
               cluster_text(f, "device")[0] ? " of " : "", cluster_text(f, "device"),
               json_is_true(json_object_get(f, "cleared")) ? " (over)" : "",
               or_dash(cluster_text(f, "text")));
}

static void print_scheduler(const json_t *s)
{
    char at[TIMESTAMP_TEXT_MAX];

    if (!s)
        return;
    if (json_is_true(json_object_get(s, "usable")))
        print_entry("scheduler", "it can be used");
    else
        printf("%-12s out of service%s%s%s%s, since %s\n", "scheduler",
               cluster_text(s, "who")[0] ? " by " : "", cluster_text(s, "who"),
               cluster_text(s, "reason")[0] ? ": " : "", cluster_text(s, "reason"),
               when(s, "since_us", at));
}

static void print_jobs(const char *what, const json_t *list)
{
    size_t i;
    json_t *v;

    json_array_foreach (list, i, v)
        printf("%-12s %s%s%s\n", what, cluster_text(v, "job"),
               cluster_text(v, "summary")[0] ? ": " : "", cluster_text(v, "summary"));
}

static void print_node(const json_t *v)
{
    const json_t *l = json_object_get(v, "ledger");
    char at[TIMESTAMP_TEXT_MAX];

    print_entry("node", cluster_text(v, "node"));
    if (l && !streq(cluster_text(l, "isolation"), "none"))
        printf("%-12s %s since %s, by the rule '%s': %s\n", "asks for",
               cluster_text(l, "isolation"), when(l, "judged_us", at), cluster_text(l, "rule"),
               cluster_text(l, "why"));
    else
        print_entry("asks for", "nothing: no fact stands against it");
    if (json_is_true(json_object_get(l, "drained")))
        printf("%-12s by reknit, since %s: %s\n", "drained", when(l, "drained_us", at),
               cluster_text(l, "reason"));
    print_entry("not drained", cluster_text(l, "waits"));
    if (cluster_number(l, "incidents", 0) > 0)
        printf("%-12s %" PRId64 " of the last weeks, %" PRId64 " %% of what other nodes have%s\n",
               "incidents", cluster_number(l, "incidents", 0), cluster_number(l, "rate_percent", 0),
               json_is_true(json_object_get(l, "lemon")) ? ": a lemon" : "");
    print_scheduler(json_object_get(v, "scheduler"));
    print_jobs("kept out of", json_object_get(v, "kept_out_of"));
    print_jobs("blamed in", json_object_get(v, "blamed_in"));
    print_facts(json_object_get(l, "facts"));
}

static void path_of(const char *node, char *ret, size_t size)
{
    char name[256];

    client_escape(node, name, sizeof(name));
    str_printf(ret, size, "/v1/nodes/%s", name);
}

bool nodes_know(const char *node)
{
    char path[320];
    json_t *v = NULL;
    struct err e = {0};
    bool known;

    path_of(node, path, sizeof(path));
    known = client_has_socket() && client_get(path, &v, &e) >= 0 &&
            (json_object_get(v, "ledger") || json_object_get(v, "scheduler"));
    json_decref(v);
    return known;
}

int nodes_explain(const char *node, bool json)
{
    char path[320];

    path_of(node, path, sizeof(path));
    return cluster_show(path, json, print_node);
}

/* What people say */

static int post(const char *path, bool json, const char *done)
{
    json_t *answer = NULL;
    struct err e = {0};

    if (client_post(path, json_object(), &answer, &e) < 0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    json_decref(answer);
    puts(json ? "{\"done\":true}" : done);
    return EXIT_OK;
}

static int resume(const char *node, bool json)
{
    char path[320], name[256], done[320];

    client_escape(node, name, sizeof(name));
    STR_PRINTF(path, "/v1/nodes/%s/resume", name);
    STR_PRINTF(done, "node %s: nothing stands against it any more, and it is given back", node);
    return post(path, json, done);
}

static const struct option options[] = {
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

static int run(int argc, char **argv)
{
    const char *word;
    bool json = false;
    int opt, n;

    while ((opt = options_next(&verb_nodes, argc, argv)) != OPTION_END)
        if (opt == OPTION_WRONG || options_format(&verb_nodes, optarg, &json) != 0)
            return EXIT_USAGE;
    n = argc - optind;
    if (n == 0)
        return list(json);
    word = argv[optind];
    if (streq(word, "resume"))
        return n == 2 ? resume(argv[optind + 1], json)
                      : usage_error("nodes", "resume wants a node, one at a time");
    if (streq(word, "rearm"))
        return n == 1 ? post("/v1/rearm", json, "the rules that were stopped may convict again")
                      : usage_error("nodes", "rearm wants no argument");
    return n == 1 ? nodes_explain(word, json) : usage_error("nodes", "one node at a time");
}

const struct verb verb_nodes = {
    .name = "nodes",
    .summary = "what stands against nodes of a cluster, and what is done",
    .help = "usage: reknit nodes [OPTION]... [NODE]\n"
            "       reknit nodes [OPTION]... resume NODE\n"
            "       reknit nodes [OPTION]... rearm\n"
            "\n"
            "Lists the nodes that something is known of: what it asks for, who keeps them out\n"
            "of service, and why a sick one is not drained. With NODE: all about that one.\n"
            "For operators.\n"
            "\n"
            "  resume NODE   it is well: nothing stands against it, and it is given back if\n"
            "                reknit drained it\n"
            "  rearm         rules that were stopped, since they convicted too many nodes,\n"
            "                may convict again\n"
            "\n"
            "Asks reknitd, at $REKNIT_SOCKET or " CLIENT_SOCKET ".\n"
            "\n"
            "  --format text|json   json: one object per node\n"
            "\n"
            "Exit status: 0, or 1 when it may not be, there is nothing to resume or rearm, or\n"
            "no daemon answers.\n",
    .options = options,
    .run = run,
};
