/* SPDX-License-Identifier: Apache-2.0 */

/* reknit jobs: one line for each job of this user. */

#include "base/log.h"
#include "base/str.h"
#include "cli/chronicle.h"
#include "cli/narrate.h"
#include "cli/options.h"
#include "cli/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

extern const struct verb verb_jobs;

struct jobs {
    bool json;
    size_t n, bad;
};

static void print_row(const struct story *s, const struct story_run *run, bool alive)
{
    _cleanup_strbuf_ struct strbuf state = {0}, cause = {0};
    const struct story_attempt *a = NULL;
    char step[32] = "-", when[TIMESTAMP_TEXT_MAX];

    if (run->attempts.n > 0)
        a = &run->attempts.v[run->attempts.n - 1];
    narrate_state(run, alive, &state);
    if (a && a->last_step != STEP_NONE)
        snprintf(step, sizeof(step), "%" PRId64, a->last_step);
    for (size_t i = run->attempts.n; i-- > 0 && cause.len == 0;)
        if (run->attempts.v[i].incident || run->attempts.v[i].lost) {
            narrate_cause(&run->attempts.v[i], &cause);
            if (streq(strbuf_str(&cause), "-") && i > 0)
                strbuf_reset(&cause);
        }
    timestamp_format(run->began, when);
    when[19] = 'Z'; /* whole seconds */
    when[20] = '\0';
    printf("%-28s %-8s %8zu %10s  %-24s %s\n", s->job, strbuf_str(&state), run->attempts.n, step,
           cause.len > 0 ? strbuf_str(&cause) : "-", when);
}

static int show_job(void *ctx, const char *name)
{
    _cleanup_story_ struct story s = {0};
    struct jobs *jobs = ctx;
    struct err e = {0};
    bool alive = chronicle_is_alive(name);
    struct story_run *run;

    if (chronicle_read(name, &s, &e) < 0) {
        log_warning("%s: %s", name, e.text);
        jobs->bad++;
        return 0;
    }
    run = story_last_run(&s);
    if (!run)
        return 0;
    if (jobs->n++ == 0 && !jobs->json)
        printf("%-28s %-8s %8s %10s  %-24s %s\n", "job", "state", "attempts", "last step",
               "last cause", "began");
    story_account(run, alive ? now_us() : s.last_event);
    if (jobs->json) {
        json_t *j = chronicle_run_json(&s, run, alive, false);

        json_dumpf(j, stdout, JSON_SORT_KEYS | JSON_COMPACT);
        putchar('\n');
        json_decref(j);
    } else {
        print_row(&s, run, alive);
    }
    return 0;
}

static const struct option options[] = {
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

static int run(int argc, char **argv)
{
    struct jobs jobs = {0};
    struct err e = {0};
    int opt;

    while ((opt = options_next(&verb_jobs, argc, argv)) != OPTION_END)
        if (opt == OPTION_WRONG || options_format(&verb_jobs, optarg, &jobs.json) != 0)
            return EXIT_USAGE;
    if (optind < argc)
        return usage_error("jobs", "wants no argument; 'reknit explain JOB' tells about one");
    if (state_each_job(show_job, &jobs, &e) < 0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    if (jobs.n == 0 && !jobs.json)
        puts("no jobs yet: 'reknit run' makes the first");
    return jobs.bad > 0 ? EXIT_TROUBLE : EXIT_OK;
}

const struct verb verb_jobs = {
    .name = "jobs",
    .summary = "list the jobs that were run here",
    .help = "usage: reknit jobs [--format text|json]\n"
            "\n"
            "One line per job of this user: its state (running, done, stopped, or killed together\n"
            "with reknit), attempts, last step, and the cause of its last failure. Of a job that\n"
            "was run several times, the last run.\n"
            "\n"
            "  --format text|json   json: one object per job and line\n"
            "\n"
            "Exit status: 0, or 1 when a journal cannot be read.\n",
    .options = options,
    .run = run,
};
