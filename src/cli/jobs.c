/* SPDX-License-Identifier: Apache-2.0 */

/* reknit jobs: one line for each job of this user. */

#include "base/log.h"
#include "base/str.h"
#include "cli/chronicle.h"
#include "cli/client.h"
#include "cli/cluster.h"
#include "cli/narrate.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/state.h"
#include "cli/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

extern const struct verb verb_jobs;

#define NAME_MOST 24 /* columns; a longer one pushes its own row to the right */
#define CAUSE_MIN 10

/* A job, read and ready to be printed: there may be thousands, and the newest comes first. */
struct row {
    usec_t began;
    char *json; /* or the columns */
    char *name, *cause;
    char state[16], attempts[16], step[24], ago[32];
};

struct jobs {
    bool json;
    size_t bad;
    VEC(struct row) rows;
};

static void jobs_done(struct jobs *jobs)
{
    VEC_FOREACH (&jobs->rows, r) {
        free(r->json);
        free(r->name);
        free(r->cause);
    }
    VEC_DONE(&jobs->rows);
}

static void warn_of_lost_events(struct jobs *jobs, const struct story *s)
{
    _cleanup_strbuf_ struct strbuf b = {0};

    if (s->lost_events == 0)
        return;
    narrate_lost_events(s->lost_events, &b);
    log_warning("%s: %s", s->job, strbuf_str(&b));
    jobs->bad++;
}

/* Of the last attempt that failed. */
static char *last_cause(const struct story_run *run)
{
    for (size_t i = run->attempts.n; i-- > 0;) {
        _cleanup_strbuf_ struct strbuf cause = {0};

        if (!run->attempts.v[i].incident && !run->attempts.v[i].lost)
            continue;
        narrate_cause(&run->attempts.v[i], &cause);
        if (!streq(strbuf_str(&cause), "-"))
            return xstrdup(strbuf_str(&cause));
    }
    return xstrdup("-");
}

/* In one unit: it stands in a narrow column. */
static void format_ago(usec_t span, char *ret, size_t size)
{
    static const struct {
        usec_t length;
        const char *name;
    } units[] = {{USEC_PER_DAY, "d"}, {USEC_PER_HOUR, "h"}, {USEC_PER_MIN, "min"}};

    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (span >= units[i].length) {
            str_printf(ret, size, "%" PRId64 "%s ago", span / units[i].length, units[i].name);
            return;
        }
    str_printf(ret, size, "%" PRId64 "s ago", span > 0 ? span / USEC_PER_SEC : 0);
}

static void fill_row(struct row *r, const struct story *s, const struct story_run *run, bool alive)
{
    const struct story_attempt *a =
        run->attempts.n > 0 ? &run->attempts.v[run->attempts.n - 1] : NULL;
    _cleanup_strbuf_ struct strbuf state = {0};

    narrate_state(run, alive, &state);
    r->name = xstrdup(s->job);
    r->cause = last_cause(run);
    STR_COPY(r->state, strbuf_str(&state));
    STR_PRINTF(r->attempts, "%zu", run->attempts.n);
    if (a && a->last_step != STEP_NONE)
        STR_PRINTF(r->step, "%" PRId64, a->last_step);
    else
        STR_COPY(r->step, "-");
    format_ago(now_us() - run->began, r->ago, sizeof(r->ago));
}

static int read_job(void *ctx, const char *name)
{
    _cleanup_story_ struct story s = {0};
    struct jobs *jobs = ctx;
    struct err e = {0};
    bool alive = chronicle_is_alive(name);
    struct story_run *run;
    struct row *r;

    if (chronicle_read(name, &s, &e) < 0) {
        log_warning("%s: %s", name, e.text);
        jobs->bad++;
        return 0;
    }
    warn_of_lost_events(jobs, &s);
    run = story_last_run(&s);
    if (!run)
        return 0;
    story_account(run, alive ? now_us() : s.last_event);
    r = VEC_PUSH(&jobs->rows); /* state_each_job() bounds their number */
    r->began = run->began;
    if (jobs->json) {
        json_t *j = chronicle_run_json(&s, run, alive, false);

        r->json = json_dumps(j, JSON_SORT_KEYS | JSON_COMPACT);
        json_decref(j);
    } else {
        fill_row(r, &s, run, alive);
    }
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return (x->began < y->began) - (x->began > y->began);
}

static void print_line(void *ctx, const char *text)
{
    puts(text);
}

/* The name is what one types next, so it is never cut; the cause gives way. */
static void print_rows(const struct jobs *jobs)
{
    static const char *const heads[] = {"job",       "state",      "attempts",
                                        "last step", "last cause", "began"};
    _cleanup_table_ struct table t = {.columns = ARRAY_SIZE(heads),
                                      .right = 1 << 2 | 1 << 3,
                                      .first_most = NAME_MOST,
                                      .yields = 4,
                                      .yields_least = CAUSE_MIN,
                                      .spare = 2};

    for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
        strbuf_adds(table_cell(&t), heads[i]);
    VEC_FOREACH (&jobs->rows, r) {
        const char *const cells[] = {r->name, r->state, r->attempts, r->step, r->cause, r->ago};

        for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
            strbuf_adds(table_cell(&t), cells[i]);
    }
    table_print(&t, table_screen(stdout), print_line, NULL);
}

static void print_all(struct jobs *jobs)
{
    if (jobs->rows.n > 0)
        qsort(jobs->rows.v, jobs->rows.n, sizeof(jobs->rows.v[0]), newest_first);
    if (!jobs->json && jobs->rows.n > 0)
        print_rows(jobs);
    VEC_FOREACH (&jobs->rows, r)
        if (r->json)
            puts(r->json);
}

/* Jobs of the cluster */

struct cluster_list {
    struct table table;
    bool json;
    size_t n;
};

static void add_step(const json_t *v, struct strbuf *out)
{
    int64_t step = cluster_number(v, "last_step", STEP_NONE);

    if (step != STEP_NONE)
        strbuf_addf(out, "%" PRId64, step);
    else
        strbuf_addc(out, '-');
}

static void add_cluster_row(struct table *t, const json_t *v)
{
    const json_t *incident = json_object_get(v, "incident");
    const char *cause = cluster_text(incident, "cause"), *state = cluster_text(v, "state");

    strbuf_adds(table_cell(t), cluster_text(v, "label"));
    strbuf_adds(table_cell(t), cluster_text(v, "user"));
    strbuf_adds(table_cell(t), cluster_text(v, "name"));
    strbuf_adds(table_cell(t), state[0] ? state : "-");
    strbuf_adds(table_cell(t), cluster_text(v, "mode"));
    strbuf_addf(table_cell(t), "%" PRId64, cluster_number(v, "attempt", 0));
    add_step(v, table_cell(t));
    strbuf_adds(table_cell(t), cause[0] ? cause : "-");
}

static int take_cluster_job(void *ctx, json_t *v)
{
    struct cluster_list *l = ctx;

    l->n++;
    if (!l->json) {
        add_cluster_row(&l->table, v);
        return 0;
    }
    json_object_set_new(v, "where", json_string("cluster"));
    json_dumpf(v, stdout, JSON_SORT_KEYS | JSON_COMPACT);
    putchar('\n');
    return 0;
}

static int list_cluster(bool json, bool below, size_t *ret_n)
{
    static const char *const heads[] = {"id",   "user",    "name",      "state",
                                        "mode", "attempt", "last step", "last cause"};
    struct cluster_list l = {.json = json,
                             .table = {.columns = ARRAY_SIZE(heads),
                                       .right = 1 << 5 | 1 << 6,
                                       .yields = 2,
                                       .yields_least = CAUSE_MIN,
                                       .spare = 4}};
    struct err e = {0};
    int r;

    for (size_t i = 0; !json && i < ARRAY_SIZE(heads); i++)
        strbuf_adds(table_cell(&l.table), heads[i]);
    r = cluster_each("/v1/jobs?limit=500", "jobs", "page", take_cluster_job, &l, &e);
    if (r < 0) {
        log_error("%s", e.text);
    } else if (!json && l.n > 0) {
        puts(below ? "\non the cluster:" : "on the cluster:");
        table_print(&l.table, table_screen(stdout), print_line, NULL);
    }
    table_done(&l.table);
    *ret_n = l.n;
    return r;
}

enum option_value { OPTION_LOCAL = OPTION_FIRST, OPTION_CLUSTER };

static const struct option options[] = {
    {"local", no_argument, NULL, OPTION_LOCAL},
    {"cluster", no_argument, NULL, OPTION_CLUSTER},
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

/* Which of the two lists is wanted; both, unless said. */
struct wanted {
    bool local, cluster;
};

static int take_option(int opt, const char *arg, struct wanted *w, bool *ret_json)
{
    switch (opt) {
    case OPTION_LOCAL:
        w->local = true;
        return 0;
    case OPTION_CLUSTER:
        w->cluster = true;
        return 0;
    case OPTION_FORMAT:
        return options_format(&verb_jobs, arg, ret_json);
    default:
        return EXIT_USAGE;
    }
}

static void say_that_there_are_none(bool local, bool cluster)
{
    if (local)
        puts("no jobs yet: 'reknit run' makes the first");
    if (cluster)
        puts("no jobs on the cluster yet that you may see. A job is opted in by\n"
             "#SBATCH --comment=reknit or an operator's rule; one that runs already, by\n"
             "scontrol update JobId=ID Comment=reknit");
}

/* Unless it is asked for, a cluster is listed only where there was ever a daemon. */
static int list_wanted(struct jobs *jobs, const struct wanted *w)
{
    bool local = w->local || !w->cluster;
    bool cluster = w->cluster || (!w->local && client_has_socket());
    struct err e = {0};
    size_t n = 0;
    int r = 0;

    if (local && state_each_job(read_job, jobs, &e) < 0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    print_all(jobs);
    if (cluster)
        r = list_cluster(jobs->json, jobs->rows.n > 0, &n);
    if (jobs->rows.n == 0 && jobs->bad == 0 && n == 0 && r >= 0 && !jobs->json)
        say_that_there_are_none(local, cluster);
    return jobs->bad > 0 || r < 0 ? EXIT_TROUBLE : EXIT_OK;
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(jobs_done))) struct jobs jobs = {0};
    struct wanted w = {0};
    int opt;

    while ((opt = options_next(&verb_jobs, argc, argv)) != OPTION_END)
        if (take_option(opt, optarg, &w, &jobs.json) != 0)
            return EXIT_USAGE;
    if (optind < argc)
        return usage_error("jobs", "wants no argument; 'reknit explain JOB' tells about one");
    return list_wanted(&jobs, &w);
}

const struct verb verb_jobs = {
    .name = "jobs",
    .summary = "list the jobs that were run here, and those of the cluster",
    .help = "usage: reknit jobs [OPTION]...\n"
            "\n"
            "One line per job of this user, the newest first: its state (running, done,\n"
            "stopped, killed together with reknit, or unrecorded: it ended in order, on a\n"
            "disk too full to say how), attempts, last step, the cause of its last failure,\n"
            "and when it began. Of a job that was run several times, the last run.\n"
            "\n"
            "Below them, where a reknitd runs (at $REKNIT_SOCKET or\n" CLIENT_SOCKET
            "), the jobs of the cluster that you may see: your own;\n"
            "operators: all.\n"
            "\n"
            "  --local              only what was run here\n"
            "  --cluster            only the cluster's jobs\n"
            "  --format text|json   json: one object per job and line; those of the cluster\n"
            "                       have \"where\":\"cluster\"\n"
            "\n"
            "Exit status: 0, or 1 when a journal cannot be read, or has lost something, or\n"
            "reknitd does not answer.\n",
    .options = options,
    .run = run,
};
