/* SPDX-License-Identifier: Apache-2.0 */

/* reknit flight-recorder: a folder of dumps in, the ranks that kept the others waiting out. */

#include "base/time.h"
#include "cli/flight.h"
#include "cli/options.h"

#include <unistd.h>

extern const struct verb verb_flight_recorder;

static const struct option options[] = {
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

struct bar {
    bool shown;
    usec_t start_us, last_us;
};

#define BAR_AFTER   USEC_PER_SEC
#define BAR_EVERY   (USEC_PER_SEC / 10)
#define BAR_COLUMNS 30

static void show_bar(void *ctx, size_t done, size_t total)
{
    struct bar *b = ctx;
    usec_t now = mono_us();
    int full = (int)(done * BAR_COLUMNS / total);

    if (now - b->start_us < BAR_AFTER || now - b->last_us < BAR_EVERY)
        return;
    b->last_us = now;
    b->shown = true;
    fprintf(stderr, "\r\033[K%zu of %zu dumps  [%.*s%*s]", done, total, full,
            "##############################", BAR_COLUMNS - full, "");
}

static size_t read_all(const char *path, struct dump_folder *d, struct flight *f)
{
    struct bar bar = {.start_us = mono_us()};
    bool terminal = isatty(STDERR_FILENO) == 1;
    size_t bad = dump_folder_read(path, d, f, terminal ? show_bar : NULL, &bar);

    if (bar.shown)
        fputs("\r\033[K", stderr);
    VEC_FOREACH (&d->files, file)
        if (file->error)
            fprintf(stderr, "reknit flight-recorder: %s\n", file->error);
    return bad;
}

static int judge_folder(const char *path, bool json)
{
    struct flight_judgement judgement = {0};
    struct dump_folder folder = {0};
    struct flight flight = {0};
    struct err e = {0};
    int rc = EXIT_TROUBLE;

    if (dump_folder_list(path, &folder, &e) < 0) {
        fprintf(stderr, "reknit flight-recorder: %s\n", e.text);
    } else {
        size_t bad = read_all(path, &folder, &flight);

        rc = bad ? EXIT_TROUBLE : EXIT_OK;
        flight_judge(&flight, &judgement);
        if (bad < folder.files.n)
            (json ? flight_print_json : flight_print_text)(stdout, &flight, &judgement, &folder);
    }
    flight_judgement_done(&judgement);
    flight_done(&flight);
    dump_folder_done(&folder);
    return rc;
}

static int flight_recorder(int argc, char **argv)
{
    bool json = false;
    int c, rc;

    while ((c = options_next(&verb_flight_recorder, argc, argv)) != OPTION_END) {
        if (c != OPTION_FORMAT)
            return EXIT_USAGE;
        rc = options_format(&verb_flight_recorder, optarg, &json);
        if (rc != 0)
            return rc;
    }
    if (argc - optind != 1)
        return usage_error("flight-recorder", "which folder? Name the one that holds the dumps");
    return judge_folder(argv[optind], json);
}

const struct verb verb_flight_recorder = {
    .name = "flight-recorder",
    .summary = "say from PyTorch's dumps which ranks kept a job waiting",
    .help = "usage: reknit flight-recorder [--format text|json] DIR\n"
            "\n"
            "Reads what PyTorch's flight recorder left of a job that stood still (one file a\n"
            "rank, its name ends in the rank; pickles or JSON) and says which ranks kept the\n"
            "others waiting, and why: never asked for the collective that its peers are in\n"
            "(CPU), asked but its GPU lags (GPU), left no dump, or asked for something else\n"
            "than its peers (desync: the program). With several groups it follows who waits\n"
            "for whom, and blames those who wait for nobody; nobody when nothing is proven.\n"
            "\n"
            "The dumps must be of one standstill. They are read as data: no Python, nothing\n"
            "in them is run. A dump that cannot be read proves nothing about its rank.\n"
            "\n"
            "options:\n"
            "  --format text      for people (the default)\n"
            "  --format json      for programs: one object\n"
            "  --help             this text\n"
            "\n"
            "examples:\n"
            "  reknit flight-recorder /tmp/nccl_trace\n"
            "  reknit flight-recorder --format json dumps | jq .culprits.ranks\n"
            "\n"
            "exit status: 0 judged, whatever the verdict; 1 a dump could not be read (the\n"
            "others are judged all the same), or there are none; 2 the command line is wrong.\n",
    .options = options,
    .run = flight_recorder,
};
