/* SPDX-License-Identifier: Apache-2.0 */

/* reknit catalog: tests the catalogue, and shows what it makes of a line. */

#include "base/log.h"
#include "base/str.h"
#include "cli/catalog_line.h"
#include "cli/json.h"
#include "cli/options.h"
#include "extract/check.h"

#include <stdio.h>
#include <string.h>

#define DIRS_MAX 32

extern const struct verb verb_catalog;

enum option_value { OPTION_CATALOG = OPTION_FIRST };

static const struct option known[] = {
    {"catalog", required_argument, NULL, OPTION_CATALOG},
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

struct options {
    const char *dirs[DIRS_MAX];
    size_t n_dirs;
    bool json;
};

static json_t *place_json(const struct entry *e)
{
    return json_pack("{s:s, s:o, s:i}", "entry", e->id, "file", cli_json_text(e->file), "line",
                     (int)e->line);
}

/* ctx: an array, or NULL. */
static void tell_complaint(void *ctx, const struct entry *e, const char *complaint)
{
    json_t *fault;

    if (ctx) {
        fault = place_json(e);
        json_object_set_new(fault, "fault", cli_json_text(complaint));
        json_array_append_new(ctx, fault);
        return;
    }
    fprintf(stderr, "%s:%u: %s: %s\n", e->file, e->line, e->id, complaint);
}

/* To replace an entry is a right of the site's, and easily done by mistake. */
static void tell_replaced(const struct catalog *c, json_t *list)
{
    for (size_t i = 0; i < catalog_size(c); i++) {
        const struct entry *e = catalog_entry(c, i);
        json_t *place = e->replaced && list ? place_json(e) : NULL;

        if (place) {
            json_object_set_new(place, "replaces", place_json(e->replaced));
            json_array_append_new(list, place);
        } else if (e->replaced)
            printf("%s:%u: %s: replaces the one of %s:%u\n", e->file, e->line, e->id,
                   e->replaced->file, e->replaced->line);
    }
}

static void print_check(size_t entries, size_t examples, json_t *faults, json_t *replaced)
{
    json_t *o = json_pack("{s:i, s:I, s:I, s:o, s:o}", "schema", 1, "entries", (json_int_t)entries,
                          "examples", (json_int_t)examples, "faults", faults, "replaced", replaced);

    json_dumpf(o, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(o);
}

static int run_check(struct matcher *m, bool json)
{
    const struct catalog *c = matcher_catalog(m);
    json_t *found = json ? json_array() : NULL, *replaced = json ? json_array() : NULL;
    size_t faults, examples = 0;

    tell_replaced(c, replaced);
    faults = catalog_check(m, tell_complaint, found);
    for (size_t i = 0; i < catalog_size(c); i++)
        examples += catalog_entry(c, i)->match.n + catalog_entry(c, i)->no_match.n;
    if (json)
        print_check(catalog_size(c), examples, found, replaced);
    else if (faults > 0)
        fprintf(stderr, "%zu fault%s in %zu entries\n", faults, faults == 1 ? "" : "s",
                catalog_size(c));
    else
        printf("%zu entries agree with their %zu examples\n", catalog_size(c), examples);
    return faults > 0 ? EXIT_TROUBLE : EXIT_OK;
}

static void explain(struct matcher *m, const struct options *o, const char *text, size_t len)
{
    if (o->json)
        catalog_line_json(stdout, m, text, len);
    else
        catalog_line_text(stdout, m, text, len);
}

static int explain_stdin(struct matcher *m, const struct options *o)
{
    _cleanup_(freep) char *text = NULL;
    bool first = true;
    size_t size = 0;
    ssize_t len;

    while ((len = getline(&text, &size, stdin)) >= 0) {
        if (!first && !o->json)
            putchar('\n');
        first = false;
        explain(m, o, text, (size_t)len - (len > 0 && text[len - 1] == '\n'));
    }
    return EXIT_OK;
}

static int parse_options(int argc, char **argv, struct options *o)
{
    int opt;

    while ((opt = options_next(&verb_catalog, argc, argv)) != OPTION_END) {
        switch (opt) {
        case OPTION_CATALOG:
            if (o->n_dirs == DIRS_MAX)
                return usage_error("catalog", "more than %d folders", DIRS_MAX);
            o->dirs[o->n_dirs++] = optarg;
            break;
        case OPTION_FORMAT:
            if (options_format(&verb_catalog, optarg, &o->json) != 0)
                return EXIT_USAGE;
            break;
        default:
            return EXIT_USAGE;
        }
    }
    return EXIT_OK;
}

static int run_catalog(int argc, char **argv)
{
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    _cleanup_(matcher_freep) struct matcher *m = NULL;
    struct options o = {0};
    struct err e = {0};
    const char *what;
    int r = parse_options(argc, argv, &o);

    if (r != EXIT_OK)
        return r;
    what = argv[optind];
    if (!what || (!streq(what, "check") && !streq(what, "explain")))
        return usage_error("catalog", "say what to do: check or explain");
    if (streq(what, "check") && optind + 1 != argc)
        return usage_error("catalog", "check takes no argument");
    if (streq(what, "explain") && optind + 2 != argc)
        return usage_error("catalog", "explain takes one line, in quotes, or - for standard input");
    if (catalog_load(o.dirs, o.n_dirs, &c, &e) < 0 || matcher_new(c, &m, &e) < 0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    if (streq(what, "check"))
        return run_check(m, o.json);
    if (streq(argv[optind + 1], "-"))
        return explain_stdin(m, &o);
    explain(m, &o, argv[optind + 1], strlen(argv[optind + 1]));
    return EXIT_OK;
}

const struct verb verb_catalog = {
    .name = "catalog",
    .summary = "check the failure catalogue, or say what it makes of a line",
    .help = "usage: reknit catalog check [--catalog DIR]... [--format text|json]\n"
            "       reknit catalog explain [--catalog DIR]... [--format text|json] [--] LINE\n"
            "       reknit catalog explain [--catalog DIR]... [--format text|json] -\n"
            "\n"
            "check    tests every entry, the site's own included, on its own examples and on\n"
            "         those of all others\n"
            "explain  shows what is left of LINE without prefixes, clocks and colours, which\n"
            "         entries match it, what they read from it, which of them speak, and why\n"
            "         the others are silent; - reads lines from standard input; a LINE that\n"
            "         begins with a dash goes behind --\n"
            "\n"
            "  --catalog DIR        more signatures (*.yaml), beside the built-in ones and\n"
            "                       those of " CATALOG_SITE_DIR "; may be given several\n"
            "                       times\n"
            "  --format text|json   for a person (default), or JSON: of check one object,\n"
            "                       of explain one for each line\n"
            "\n"
            "Exit status: 0, 1 when an entry is at fault or a file cannot be read, 2 wrong\n"
            "usage.\n",
    .options = known,
    .run = run_catalog,
};
