/* SPDX-License-Identifier: Apache-2.0 */

/* reknit approve, reject, mode, freeze, thaw: what people say to reknitd. */

#include "base/log.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/cluster.h"
#include "cli/json.h"
#include "cli/options.h"

#include <inttypes.h>
#include <stdio.h>

extern const struct verb verb_approve, verb_reject, verb_mode, verb_freeze, verb_thaw;

static int trouble(const struct err *e)
{
    log_error("%s", e->text);
    return EXIT_TROUBLE;
}

/* What was done, for programs. */
static void print_done(json_t *more)
{
    json_t *o = json_pack("{s:b}", "done", 1);

    json_object_update(o, more);
    json_dumpf(o, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(o);
    json_decref(more);
}

static int post(const char *path, json_t *body, struct err *e)
{
    json_t *answer = NULL;
    int r = client_post(path, body, &answer, e);

    json_decref(answer);
    return r;
}

/* Proposals */

struct answer_options {
    bool json;
    int64_t decision; /* that it must still be; 0 = whichever it is */
};

static int print_proposal(void *ctx, json_t *v)
{
    const struct answer_options *o = ctx;
    const json_t *d = json_object_get(v, "decision");

    if (o->json) {
        json_dumpf(v, stdout, JSON_SORT_KEYS | JSON_COMPACT);
        putchar('\n');
        return 0;
    }
    printf("%s  %s, decision %" PRId64 ": %s\n    %s\n", cluster_text(v, "key"),
           cluster_text(v, "name"), cluster_number(d, "seq", 0), cluster_text(d, "action"),
           cluster_text(d, "why"));
    return 0;
}

static int list_proposals(struct answer_options *o)
{
    struct err e = {0};
    json_t *page = NULL, *v, *list;
    size_t i;

    if (client_get("/v1/decisions?limit=500", &page, &e) < 0)
        return trouble(&e);
    list = json_object_get(page, "decisions");
    json_array_foreach (list, i, v)
        print_proposal(o, v);
    if (json_array_size(list) == 0 && !o->json)
        puts("nothing waits for approval");
    json_decref(page);
    return EXIT_OK;
}

/* Somebody was sooner; what has become of the job since. */
static int say_answered(const json_t *job, const char *key, struct err *e)
{
    const json_t *a = json_object_get(job, "answer");
    char at[TIMESTAMP_TEXT_MAX];

    return err_set(e, -EALREADY,
                   "decision %" PRId64 " of job %s was %s already, by %s at %s; the job is %s now, "
                   "and the scheduler says %s",
                   cluster_number(a, "decision", 0), key,
                   json_is_true(json_object_get(a, "approved")) ? "approved" : "rejected",
                   cluster_text(a, "who"), timestamp_format(cluster_number(a, "time_us", 0), at),
                   cluster_text(job, "phase"), cluster_text(job, "state"));
}

/* The decision of the job, which must be the one that was meant. */
static int check_decision(const json_t *job, const char *key, int64_t wanted, struct err *e)
{
    const json_t *d = json_object_get(job, "decision");
    int64_t seq = cluster_number(d, "seq", 0),
            answered = cluster_number(json_object_get(job, "answer"), "decision", 0);
    bool open = streq(cluster_text(d, "proposal"), "open");

    if (answered > 0 && !open && (wanted == 0 || wanted == answered))
        return say_answered(job, key, e);
    if (seq == 0)
        return err_set(e, -ENOENT, "nothing is decided about job %s", key);
    if (wanted != 0 && wanted != seq)
        return err_set(e, -EBUSY,
                       "decision %" PRId64 " does not stand any more: job %s has decision %" PRId64,
                       wanted, key, seq);
    if (!cluster_text(d, "proposal")[0])
        return err_set(e, -EBUSY, "job %s waits for no approval: %s was decided in mode %s", key,
                       cluster_text(d, "action"), cluster_text(d, "mode"));
    return 0;
}

static int find_decision(const char *job, int64_t wanted, int64_t *ret_seq, char *ret_key,
                         size_t size, struct err *e)
{
    json_t *v = NULL;
    const json_t *d;
    int r = cluster_job(job, &v, e);

    if (r < 0)
        return r;
    d = json_object_get(v, "decision");
    *ret_seq = cluster_number(d, "seq", 0);
    str_copy(ret_key, size, cluster_text(v, "key"));
    r = check_decision(v, ret_key, wanted, e);
    json_decref(v);
    return r;
}

static int answer(const char *verb, const char *job, const struct answer_options *o)
{
    char path[96], key[JOB_NAME_LEN];
    struct err e = {0};
    int64_t seq;

    if (find_decision(job, o->decision, &seq, key, sizeof(key), &e) < 0)
        return trouble(&e);
    snprintf(path, sizeof(path), "/v1/decisions/%" PRId64 "/%s", seq, verb);
    if (post(path, json_object(), &e) < 0)
        return trouble(&e);
    if (!o->json)
        printf("job %s: decision %" PRId64 " is %s\n", key, seq,
               streq(verb, "approve") ? "approved" : "rejected");
    else
        print_done(
            json_pack("{s:s, s:I, s:s}", "job", key, "decision", (json_int_t)seq, "answer", verb));
    return EXIT_OK;
}

enum option_value { OPTION_DECISION = OPTION_FIRST, OPTION_REASON };

static const struct option answer_options[] = {
    {"decision", required_argument, NULL, OPTION_DECISION},
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

static int run_answer(const struct verb *verb, int argc, char **argv)
{
    struct answer_options o = {0};
    long long v;
    int opt;

    while ((opt = options_next(verb, argc, argv)) != OPTION_END) {
        if (opt == OPTION_WRONG)
            return EXIT_USAGE;
        if (opt == OPTION_FORMAT && options_format(verb, optarg, &o.json) != 0)
            return EXIT_USAGE;
        if (opt == OPTION_DECISION) {
            if (str_to_i64(optarg, &v) < 0 || v <= 0)
                return usage_error(verb->name, "--decision wants its number, not '%s'", optarg);
            o.decision = v;
        }
    }
    if (argc - optind > 1)
        return usage_error(verb->name, "one job at a time");
    return optind < argc ? answer(verb->name, argv[optind], &o) : list_proposals(&o);
}

static int run_approve(int argc, char **argv)
{
    return run_answer(&verb_approve, argc, argv);
}

static int run_reject(int argc, char **argv)
{
    return run_answer(&verb_reject, argc, argv);
}

/* Modes */

static const struct option plain_options[] = {
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

static int run_mode(int argc, char **argv)
{
    char path[300];
    struct err e = {0};
    bool json = false, withdraws;
    int opt;

    while ((opt = options_next(&verb_mode, argc, argv)) != OPTION_END)
        if (opt == OPTION_WRONG || options_format(&verb_mode, optarg, &json) != 0)
            return EXIT_USAGE;
    if (argc - optind != 2)
        return usage_error("mode", "wants a job and off, observe, propose, act or default");
    withdraws = streq(argv[optind + 1], "default");
    if (!withdraws && (int)mode_from_name(argv[optind + 1]) < 0)
        return usage_error("mode", "there is no mode '%s': off, observe, propose, act or default",
                           argv[optind + 1]);
    if (cluster_path(argv[optind], "/mode", path, sizeof(path), &e) < 0 ||
        post(path, json_pack("{s:s}", "mode", argv[optind + 1]), &e) < 0)
        return trouble(&e);
    if (json)
        print_done(
            json_pack("{s:o, s:s}", "job", cli_json_text(argv[optind]), "mode", argv[optind + 1]));
    else if (withdraws)
        printf("job %s: what you said of its mode is taken back\n", argv[optind]);
    else
        printf("job %s: mode %s from now on\n", argv[optind], argv[optind + 1]);
    return EXIT_OK;
}

/* Freeze and thaw */

static const struct option freeze_options[] = {
    {"reason", required_argument, NULL, OPTION_REASON},
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

static int run_freeze_or_thaw(const struct verb *verb, const char *path, const char *done, int argc,
                              char **argv)
{
    char reason[512] = "";
    struct err e = {0};
    bool json = false;
    json_t *body;
    int opt;

    while ((opt = options_next(verb, argc, argv)) != OPTION_END) {
        if (opt == OPTION_WRONG)
            return EXIT_USAGE;
        if (opt == OPTION_FORMAT && options_format(verb, optarg, &json) != 0)
            return EXIT_USAGE;
        if (opt == OPTION_REASON)
            str_sanitize(reason, sizeof(reason), optarg, strlen(optarg));
    }
    if (optind < argc)
        return usage_error(verb->name, "wants no argument");
    body = json_object();
    if (reason[0])
        json_object_set_new(body, "reason", json_string(reason));
    if (post(path, body, &e) < 0)
        return trouble(&e);
    if (json)
        print_done(json_pack("{s:b}", "frozen", verb == &verb_freeze));
    else
        puts(done);
    return EXIT_OK;
}

static int run_freeze(int argc, char **argv)
{
    return run_freeze_or_thaw(&verb_freeze, "/v1/freeze",
                              "frozen: reknitd decides and records, and does nothing until "
                              "'reknit thaw'",
                              argc, argv);
}

static int run_thaw(int argc, char **argv)
{
    return run_freeze_or_thaw(&verb_thaw, "/v1/thaw", "thawed: reknitd acts again", argc, argv);
}

#define ASKS "Asks reknitd, at $REKNIT_SOCKET or " CLIENT_SOCKET ".\n"

const struct verb verb_approve = {
    .name = "approve",
    .summary = "let reknitd do what it proposes for a job",
    .help = "usage: reknit approve [OPTION]... [JOB]\n"
            "\n"
            "What was decided for JOB in mode propose is done, if it is still right. Without\n"
            "JOB: lists what waits for approval.\n" ASKS "\n"
            "  --decision N         only if that is still the decision\n"
            "  --format text|json   json: one object per line\n"
            "\n"
            "Exit status: 0, or 1 when nothing waits, it has expired, or no daemon answers.\n",
    .options = answer_options,
    .run = run_approve,
};

const struct verb verb_reject = {
    .name = "reject",
    .summary = "have reknitd leave a job as it is",
    .help = "usage: reknit reject [OPTION]... [JOB]\n"
            "\n"
            "Nothing is done about the present end of JOB. Without JOB: lists what waits for\n"
            "approval.\n" ASKS "\n"
            "  --decision N         only if that is still the decision\n"
            "  --format text|json   json: one object per line\n"
            "\n"
            "Exit status: 0, or 1 when nothing waits, it has expired, or no daemon answers.\n",
    .options = answer_options,
    .run = run_reject,
};

const struct verb verb_mode = {
    .name = "mode",
    .summary = "say how far reknitd may go with a job",
    .help = "usage: reknit mode [OPTION]... JOB off|observe|propose|act|default\n"
            "\n"
            "  off       leave it alone\n"
            "  observe   decide and record, touch nothing\n"
            "  propose   ask before each action (reknit approve)\n"
            "  act       do it\n"
            "  default   what was said is taken back: a user's word by its user, an\n"
            "            operator's by an operator; then rules and comment count again\n"
            "\n"
            "A user's word lowers what rules and comment allow, now and when they change.\n"
            "An operator's stands in their place until an operator says otherwise.\n" ASKS "\n"
            "  --format text|json\n"
            "\n"
            "Exit status: 0, or 1 when there is no such job, it may not be, or no daemon\n"
            "answers.\n",
    .options = plain_options,
    .run = run_mode,
};

const struct verb verb_freeze = {
    .name = "freeze",
    .summary = "have reknitd act on no job, until thawed",
    .help = "usage: reknit freeze [OPTION]...\n"
            "\n"
            "From now on reknitd decides and records, and does nothing for any job, until\n"
            "'reknit thaw'. For operators.\n" ASKS "\n"
            "  --reason TEXT        is recorded\n"
            "  --format text|json\n"
            "\n"
            "Exit status: 0, or 1 when it may not be, or no daemon answers.\n",
    .options = freeze_options,
    .run = run_freeze,
};

const struct verb verb_thaw = {
    .name = "thaw",
    .summary = "have reknitd act again",
    .help = "usage: reknit thaw [OPTION]...\n"
            "\n"
            "Ends what 'reknit freeze' began. For operators.\n" ASKS "\n"
            "  --reason TEXT        is recorded\n"
            "  --format text|json\n"
            "\n"
            "Exit status: 0, or 1 when it may not be, or no daemon answers.\n",
    .options = freeze_options,
    .run = run_thaw,
};
