/* SPDX-License-Identifier: Apache-2.0 */

/* reknit diagnose: logs in, verdict out. */

#include "base/str.h"
#include "cli/dossier.h"
#include "cli/options.h"
#include "cli/report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct request {
    bool json, each;
    VEC(const char *) catalogs;
    struct dossier all; /* every file of the command line, kernel logs last */
};

extern const struct verb verb_diagnose;

enum option_value { OPTION_EACH = OPTION_FIRST, OPTION_NODE, OPTION_CATALOG };

static const struct option options[] = {
    {"format", required_argument, NULL, OPTION_FORMAT},
    {"each", no_argument, NULL, OPTION_EACH},
    {"node", required_argument, NULL, OPTION_NODE},
    {"catalog", required_argument, NULL, OPTION_CATALOG},
    OPTIONS_COMMON_END,
};

/* NAME=FILE; cuts the argument in two. */
static int add_node(struct request *r, char *argument)
{
    char *eq = strchr(argument, '=');

    if (!eq || eq == argument || !eq[1])
        return usage_error("diagnose", "--node wants NAME=FILE, not '%s'", argument);
    *eq = '\0';
    dossier_add(&r->all, eq + 1, argument);
    return 0;
}

static int parse(int argc, char **argv, struct request *r)
{
    int c, rc = 0;

    while (rc == 0 && (c = options_next(&verb_diagnose, argc, argv)) != OPTION_END) {
        if (c == OPTION_FORMAT)
            rc = options_format(&verb_diagnose, optarg, &r->json);
        else if (c == OPTION_EACH)
            r->each = true;
        else if (c == OPTION_NODE)
            rc = add_node(r, optarg);
        else if (c == OPTION_CATALOG)
            *VEC_PUSH(&r->catalogs) = optarg;
        else
            return EXIT_USAGE;
    }
    for (int i = optind; rc == 0 && i < argc; i++)
        dossier_add(&r->all, argv[i], NULL);
    if (rc == 0 && r->all.files.n == 0)
        return usage_error("diagnose",
                           "which log? Name at least one file, or - for standard input");
    return rc;
}

/* ---- progress on a terminal ---- */

struct bar {
    bool on, shown;
    usec_t start_us;
};

#define BAR_AFTER   USEC_PER_SEC
#define BAR_COLUMNS 30

static void show_bar(void *ctx, const char *path, uint64_t bytes, uint64_t total)
{
    struct bar *b = ctx;
    int done;

    if (mono_us() - b->start_us < BAR_AFTER)
        return;
    b->shown = true;
    if (total == 0 || bytes > total) {
        fprintf(stderr, "\r\033[K%s  %.0f MiB", path, (double)bytes / (1 << 20));
        return;
    }
    done = (int)(bytes * BAR_COLUMNS / total);
    fprintf(stderr, "\r\033[K%s  [%.*s%*s] %d %%", path, done, "##############################",
            BAR_COLUMNS - done, "", (int)(bytes * 100 / total));
}

static void clear_bar(struct bar *b)
{
    if (b->shown)
        fputs("\r\033[K", stderr);
    b->shown = false;
}

/* ---- judging ---- */

static void complain(const struct dossier *d)
{
    VEC_FOREACH (&d->files, f) {
        if (f->twin)
            fprintf(stderr, "reknit diagnose: %s: is given twice, and read once\n", f->shown);
        if (f->bad)
            fprintf(stderr, "reknit diagnose: %s\n", f->error);
    }
}

static bool all_bad(const struct dossier *d)
{
    VEC_FOREACH (&d->files, f)
        if (!f->twin && (!f->bad || f->bytes > 0))
            return false;
    return true;
}

static void report(const struct request *r, const struct dossier *d)
{
    struct report_style style = report_style_of(stdout);

    if (all_bad(d))
        return;
    if (r->json)
        report_json(stdout, d);
    else
        report_text(stdout, d, &style);
    fflush(stdout);
}

static size_t judge(const struct request *r, struct dossier *d, struct matcher *m)
{
    struct bar bar = {.on = isatty(STDERR_FILENO) == 1, .start_us = mono_us()};
    size_t bad = dossier_judge(d, m, bar.on ? show_bar : NULL, &bar);

    clear_bar(&bar);
    complain(d);
    report(r, d);
    return bad;
}

static size_t judge_each(const struct request *r, struct matcher *m)
{
    size_t bad = 0;

    for (size_t i = 0; i < r->all.files.n; i++) {
        struct dossier one = {0};

        if (i > 0 && !r->json)
            fputs("\n\n", stdout);
        dossier_add(&one, r->all.files.v[i].path, r->all.files.v[i].node);
        bad += judge(r, &one, m);
        dossier_done(&one);
    }
    return bad;
}

static int diagnose(int argc, char **argv)
{
    _cleanup_(catalog_freep) struct catalog *catalog = NULL;
    _cleanup_(matcher_freep) struct matcher *matcher = NULL;
    struct request r = {0};
    struct err e = {0};
    size_t bad;
    int rc = parse(argc, argv, &r);

    if (rc != 0)
        goto out;
    if (catalog_load(r.catalogs.v, r.catalogs.n, &catalog, &e) < 0 ||
        matcher_new(catalog, &matcher, &e) < 0) {
        fprintf(stderr, "reknit diagnose: %s\n", e.text);
        rc = EXIT_TROUBLE;
        goto out;
    }
    bad = r.each ? judge_each(&r, matcher) : judge(&r, &r.all, matcher);
    rc = bad ? EXIT_TROUBLE : EXIT_OK;
out:
    VEC_DONE(&r.catalogs);
    dossier_done(&r.all);
    return rc;
}

const struct verb verb_diagnose = {
    .name = "diagnose",
    .summary = "say from its logs what happened to a job, why, and what to do",
    .help = "usage: reknit diagnose [--format text|json] [--each] [--node NAME=FILE]...\n"
            "                       FILE...\n"
            "\n"
            "Reads the logs of one job and says what happened to it (crash, hang, straggler,\n"
            "interrupted, healthy), why, which node, GPU or rank is to blame if the logs\n"
            "prove it, and what to do next, with the lines that prove it.\n"
            "\n"
            "All files together are one job: its output, one file for each rank (rank3.log),\n"
            "kernel logs of its nodes (dmesg -T, journalctl -k, /dev/kmsg). Files packed with\n"
            "gzip or zstd are read as they are; - is standard input. When a file holds\n"
            "several attempts the last one is judged and the others are listed.\n"
            "\n"
            "options:\n"
            "  --each             every file is a job of its own: one verdict for each\n"
            "  --node NAME=FILE   FILE is the kernel log of node NAME (for logs that do not\n"
            "                     say it)\n"
            "  --catalog DIR      more signatures (*.yaml), beside the built-in ones and\n"
            "                     those of /etc/reknit/catalog.d\n"
            "  --format text      for people (the default)\n"
            "  --format json      for programs: one object a line\n"
            "  --help             this text\n"
            "\n"
            "examples:\n"
            "  reknit diagnose slurm-4242.out\n"
            "  reknit diagnose --node n3=n3.dmesg slurm-4242.out rank*.log\n"
            "  reknit diagnose --each --format json *.out | jq -r '[.files[0],.cause]|@tsv'\n"
            "  zcat old.log.gz | reknit diagnose -\n"
            "\n"
            "exit status: 0 judged, whatever the verdict; 1 an input could not be read (the\n"
            "others are judged all the same); 2 the command line is wrong.\n",
    .options = options,
    .run = diagnose,
};
