/* SPDX-License-Identifier: Apache-2.0 */

/* reknit incidents: what interrupted the cluster's jobs, the newest first. */

#include "base/log.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/cluster.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/table.h"

#include <inttypes.h>
#include <stdio.h>

extern const struct verb verb_incidents;

#define COUNT_DEFAULT 20
#define COUNT_MAX     10000
#define SUMMARY_MIN   16

struct query {
    bool json;
    size_t count;
    const char *job;
};

struct listing {
    const struct query *query;
    struct table table;
    size_t n;
};

static void print_line(void *ctx, const char *text)
{
    puts(text);
}

static void add_culprits(const json_t *v, struct strbuf *out)
{
    const json_t *c = json_object_get(v, "culprits"), *nodes = json_object_get(c, "nodes");
    size_t i;
    json_t *node;

    json_array_foreach (nodes, i, node)
        strbuf_addf(out, "%s%s", i > 0 ? "," : "", json_string_value(node));
    if (out->len == 0)
        strbuf_addc(out, '-');
}

static void add_row(struct table *t, const json_t *v)
{
    char when[TIMESTAMP_TEXT_MAX], *dot;

    timestamp_format(cluster_number(v, "time_us", 0), when);
    dot = strchr(when, '.');
    if (dot)
        *dot = '\0';
    strbuf_adds(table_cell(t), cluster_text(v, "job"));
    strbuf_addf(table_cell(t), "%" PRId64, cluster_number(v, "attempt", 0));
    strbuf_adds(table_cell(t), when);
    strbuf_adds(table_cell(t), cluster_text(v, "class"));
    strbuf_adds(table_cell(t), cluster_text(v, "cause"));
    add_culprits(v, table_cell(t));
    strbuf_adds(table_cell(t), cluster_text(v, "summary"));
}

static int take_incident(void *ctx, json_t *v)
{
    struct listing *l = ctx;

    if (l->n == l->query->count)
        return 1;
    l->n++;
    if (l->query->json) {
        json_dumpf(v, stdout, JSON_SORT_KEYS | JSON_COMPACT);
        putchar('\n');
    } else {
        add_row(&l->table, v);
    }
    return l->n == l->query->count;
}

static int list(const struct query *r)
{
    static const char *const heads[] = {"job",   "attempt", "time (UTC)", "class",
                                        "cause", "nodes",   "what"};
    struct listing l = {.query = r,
                        .table = {.columns = ARRAY_SIZE(heads),
                                  .right = 1 << 1,
                                  .yields = 6,
                                  .yields_least = SUMMARY_MIN,
                                  .spare = 2}};
    char path[400], job[256];
    struct err e = {0};
    int error;

    for (size_t i = 0; !r->json && i < ARRAY_SIZE(heads); i++)
        strbuf_adds(table_cell(&l.table), heads[i]);
    client_escape(r->job ? r->job : "", job, sizeof(job));
    snprintf(path, sizeof(path), "/v1/incidents?limit=%zu%s%s%s",
             r->count < 500 ? r->count : (size_t)500, r->json ? "&full=1" : "",
             r->job ? "&job=" : "", job);
    error = cluster_each(path, "incidents", "before", take_incident, &l, &e);
    if (error < 0)
        log_error("%s", e.text);
    else if (!r->json && l.n > 0)
        table_print(&l.table, table_screen(stdout), print_line, NULL);
    else if (!r->json)
        puts("no incidents yet");
    table_done(&l.table);
    return error < 0 ? EXIT_TROUBLE : EXIT_OK;
}

enum option_value { OPTION_COUNT = OPTION_FIRST };

static const struct option options[] = {
    {"count", required_argument, NULL, OPTION_COUNT},
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

static int take_option(int opt, const char *arg, struct query *r)
{
    long long v;

    switch (opt) {
    case OPTION_COUNT:
        if (str_to_i64(arg, &v) < 0 || v <= 0 || v > COUNT_MAX)
            return usage_error("incidents", "--count wants a number up to %d, not '%s'", COUNT_MAX,
                               arg);
        r->count = (size_t)v;
        return 0;
    case OPTION_FORMAT:
        return options_format(&verb_incidents, arg, &r->json);
    default:
        return EXIT_USAGE;
    }
}

static int run(int argc, char **argv)
{
    struct query r = {.count = COUNT_DEFAULT};
    int opt;

    while ((opt = options_next(&verb_incidents, argc, argv)) != OPTION_END)
        if (take_option(opt, optarg, &r) != 0)
            return EXIT_USAGE;
    if (argc - optind > 1)
        return usage_error("incidents", "one job at a time");
    if (optind < argc)
        r.job = argv[optind];
    return list(&r);
}

const struct verb verb_incidents = {
    .name = "incidents",
    .summary = "list what interrupted the cluster's jobs",
    .help = "usage: reknit incidents [OPTION]... [JOB]\n"
            "\n"
            "What interrupted the jobs of the cluster that you may see (your own; operators:\n"
            "all), the newest first: job and attempt, when, what happened, why, which nodes\n"
            "are to blame. Asks reknitd, at $REKNIT_SOCKET or " CLIENT_SOCKET ".\n"
            "\n"
            "  --count N            so many, 20 unless said\n"
            "  --format text|json   json: one object per line, with the evidence\n"
            "\n"
            "Exit status: 0, or 1 when there is no such job or no daemon answers.\n",
    .options = options,
    .run = run,
};
