/* SPDX-License-Identifier: Apache-2.0 */

/* reknit replay: would this release decide as the journal says it was decided? */

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/chronicle.h"
#include "cli/cluster.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/state.h"
#include "core/model/event_fields.h"
#include "wire/codec.h"
#include "pump/replay.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

extern const struct verb verb_replay;

static void print_side(const char *who, const struct event *e, bool present)
{
    _cleanup_strbuf_ struct strbuf b = {0};

    if (present)
        fields_print(event_fields, e, &b);
    printf("  %s %s\n", who, present ? strbuf_str(&b) : "nothing");
}

/* Inputs that came twice or too late. */
static void print_strays(const struct replay_result *r)
{
    if (r->strays > 0)
        printf("  %" PRIu64 " inputs fitted nowhere and changed nothing\n", r->strays);
}

static void print_thinned(const struct replay_result *r)
{
    if (r->thinned > 0)
        printf("  thinned out: of the events up to %" PRIu64 ", %" PRIu64
               " are gone, so only what comes after them was judged again\n",
               r->upto, r->thinned);
}

static void print_text(const struct replay_result *r)
{
    if (!r->differs) {
        printf("%" PRIu64 " inputs, %" PRIu64 " derived events, identical\n", r->inputs,
               r->derived);
        print_thinned(r);
        print_strays(r);
        return;
    }
    printf("%" PRIu64 " inputs, %" PRIu64 " derived events; event %" PRIu64 " differs%s%s\n",
           r->inputs, r->derived, r->seq, r->where[0] ? " in " : "", r->where);
    print_side("recorded:", &r->recorded, r->has_recorded);
    print_side("now:     ", &r->fresh, r->has_derived);
    print_thinned(r);
}

static void print_json(const struct replay_result *r, const char *path)
{
    json_t *j =
        json_pack("{s:i, s:o, s:I, s:I, s:I, s:b}", "schema", 1, "journal", cli_json_text(path),
                  "inputs", (json_int_t)r->inputs, "derived", (json_int_t)r->derived, "strays",
                  (json_int_t)r->strays, "identical", !r->differs);

    assert(j);
    if (r->thinned > 0)
        json_object_set_new(
            j, "thinned",
            json_pack("{s:I, s:I}", "upto", (json_int_t)r->upto, "gone", (json_int_t)r->thinned));
    if (r->differs) {
        json_object_set_new(j, "seq", json_integer((json_int_t)r->seq));
        json_object_set_new(j, "member", json_string(r->where));
        if (r->has_recorded)
            json_object_set_new(j, "recorded", codec_event_json(&r->recorded));
        if (r->has_derived)
            json_object_set_new(j, "now", codec_event_json(&r->fresh));
    }
    json_dumpf(j, stdout, JSON_SORT_KEYS | JSON_COMPACT);
    putchar('\n');
    json_decref(j);
}

/* A journal's file, the folder of a job, or a job's name, as explain takes it. */
static const char *find_journal(const char *given, char buf[PATH_MAX])
{
    struct stat st;

    if (stat(given, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            return given;
        snprintf(buf, PATH_MAX, "%s/journal.db", given);
        if (stat(buf, &st) == 0) /* otherwise it only has the job's name */
            return buf;
    }
    if (state_name_is_valid(given) && state_journal_path(given, buf, NULL) >= 0 &&
        stat(buf, &st) == 0)
        return buf;
    return NULL;
}

static int replay_one(const char *given, bool json, bool prefix)
{
    char buf[PATH_MAX];
    const char *path = find_journal(given, buf);
    _cleanup_(journal_freep) struct journal *j = NULL;
    _cleanup_(freep) struct replay_result *result = xnew(struct replay_result);
    struct err e = {0};

    if (!path && cluster_is_job(given)) {
        log_error("%s: nothing was run here under that name. The jobs of a cluster are all in "
                  "reknitd's own journal: reknit replay /var/lib/reknit/journal.db",
                  given);
        return EXIT_TROUBLE;
    }
    if (!path) {
        log_error("%s: neither a journal nor a job; 'reknit jobs' lists the jobs", given);
        return EXIT_TROUBLE;
    }
    if (journal_open(path, JOURNAL_READ, &j, &e) < 0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    if (replay(j, result, &e) < 0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    if (prefix && !json)
        printf("%s: ", given);
    if (json)
        print_json(result, path);
    else
        print_text(result);
    return result->differs ? EXIT_TROUBLE : EXIT_OK;
}

static const struct option options[] = {
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

static int run(int argc, char **argv)
{
    char newest[JOB_NAME_LEN];
    struct err e = {0};
    bool json = false;
    int opt, status = EXIT_OK;

    while ((opt = options_next(&verb_replay, argc, argv)) != OPTION_END)
        if (opt == OPTION_WRONG || options_format(&verb_replay, optarg, &json) != 0)
            return EXIT_USAGE;
    if (optind == argc && chronicle_newest(newest, &e) < 0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    if (optind == argc)
        return replay_one(newest, json, true);
    for (int i = optind; i < argc; i++)
        if (replay_one(argv[i], json, argc - optind > 1) != EXIT_OK)
            status = EXIT_TROUBLE;
    return status;
}

const struct verb verb_replay = {
    .name = "replay",
    .summary = "judge a journal's inputs again and compare the decisions",
    .help = "usage: reknit replay [--format text|json] [JOB|JOURNAL]...\n"
            "\n"
            "Feeds the inputs of each journal to the present rules and compares what they\n"
            "derive with what was recorded. Changes nothing. A journal is named by its job,\n"
            "as 'reknit jobs' lists it, by the job's folder, or by a file: journal.db in that\n"
            "folder, or a copy. Default: the journal of the job that was active last.\n"
            "\n"
            "Of a journal that reknitd has thinned out, what is whole is judged again.\n"
            "\n"
            "  --format text|json   json: one object per journal\n"
            "\n"
            "Exit status: 0 when all is identical, 1 at the first difference or when a\n"
            "journal cannot be read.\n",
    .options = options,
    .run = run,
};
