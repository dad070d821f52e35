/* SPDX-License-Identifier: Apache-2.0 */

/* reknit catalog: tests the catalogue, and shows what it makes of a line. */

#include "base/log.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "extract/check.h"
#include "extract/facts.h"
#include "extract/line.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define DIRS_MAX       32
#define LINE_MAX_BYTES ((size_t)1 << 20)

extern const struct verb verb_catalog;

struct catalog_options {
    const char *dirs[DIRS_MAX];
    size_t n_dirs;
    bool json;
};

static void print_complaint(void *ctx, const struct entry *e, const char *complaint)
{
    (void)ctx;
    fprintf(stderr, "%s:%u: %s: %s\n", e->file, e->line, e->id, complaint);
}

static int run_check(struct matcher *m)
{
    const struct catalog *c = matcher_catalog(m);
    size_t faults = catalog_check(m, print_complaint, NULL), lines = 0;

    for (size_t i = 0; i < catalog_size(c); i++)
        lines += catalog_entry(c, i)->match.n + catalog_entry(c, i)->no_match.n;
    if (faults > 0) {
        fprintf(stderr, "%zu faults in %zu entries\n", faults, catalog_size(c));
        return EXIT_TROUBLE;
    }
    printf("%zu entries agree with their %zu examples\n", catalog_size(c), lines);
    return EXIT_OK;
}

static int explain_line(struct matcher *m, const char *text, size_t len)
{
    _cleanup_(freep) char *buf = xmalloc(len + 1);
    struct hit *hits = xcalloc(HITS_MAX, sizeof(*hits));
    struct log_clock clock = {USEC_UNKNOWN, USEC_UNKNOWN};
    struct line line;
    size_t n;

    line_clean(&clock, text, len, buf, &line);
    n = matcher_line(m, line.text, line.len, hits);
    printf("message: %.*s\n", (int)line.len, line.text);
    for (size_t i = 0; i < n; i++)
        printf("  %-24s %s\n", hits[i].entry->id,
               hits[i].dropped_by ? hits[i].dropped_by->id : "speaks");
    free(hits);
    return EXIT_OK;
}

static int run_catalog(int argc, char **argv)
{
    static const struct option options[] = {
        {"catalog", required_argument, NULL, 'c'},
        {"format", required_argument, NULL, 'f'},
        {0},
    };
    struct catalog_options o = {0};
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    _cleanup_(matcher_freep) struct matcher *m = NULL;
    struct err e = {0};
    int opt;

    while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0)
        if (opt == 'c' && o.n_dirs < DIRS_MAX)
            o.dirs[o.n_dirs++] = optarg;
        else if (opt == 'f' && (streq(optarg, "json") || streq(optarg, "text")))
            o.json = streq(optarg, "json");
        else
            return usage_error("catalog", "wrong option");
    if (optind >= argc)
        return usage_error("catalog", "say what to do: check or explain");
    if (catalog_load(o.dirs, o.n_dirs, &c, &e) < 0 || matcher_new(c, &m, &e) < 0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    if (streq(argv[optind], "check") && optind + 1 == argc)
        return run_check(m);
    if (streq(argv[optind], "explain") && optind + 2 == argc)
        return explain_line(m, argv[optind + 1], strlen(argv[optind + 1]));
    return usage_error("catalog", "say what to do: check or explain LINE");
}

const struct verb verb_catalog = {
    .name = "catalog",
    .summary = "check the failure catalogue, or explain what it makes of a line",
    .help = "usage: reknit catalog [--catalog DIR]... check\n"
            "       reknit catalog [--catalog DIR]... explain LINE\n",
    .run = run_catalog,
};
