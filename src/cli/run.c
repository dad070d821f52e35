/* SPDX-License-Identifier: Apache-2.0 */

/* reknit run: the command line; session.c does the work. */

#include "base/str.h"
#include "base/vec.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/state.h"

#include <ctype.h>
#include <string.h>

extern const struct verb verb_run;

#define LOG_LIMIT_DEFAULT (UINT64_C(1) << 30)
#define LOG_LIMIT_MIN     (UINT64_C(1) << 20)
#define CATALOGS_MAX      32

enum option_value {
    OPTION_NAME = OPTION_FIRST,
    OPTION_POLICY,
    OPTION_LOG_DIR,
    OPTION_LOG_LIMIT,
    OPTION_CATALOG,
    OPTION_QUIET = 'q',
};

static const struct option options[] = {
    {"name", required_argument, NULL, OPTION_NAME},
    {"policy", required_argument, NULL, OPTION_POLICY},
    {"log-dir", required_argument, NULL, OPTION_LOG_DIR},
    {"log-limit", required_argument, NULL, OPTION_LOG_LIMIT},
    {"catalog", required_argument, NULL, OPTION_CATALOG},
    {"quiet", no_argument, NULL, OPTION_QUIET},
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

/* "64M", "2G"; -EINVAL */
static int parse_size(const char *text, uint64_t *ret)
{
    static const char units[] = "KMGT";
    char number[32], *end;
    long long v;
    const char *unit;

    str_copy(number, sizeof(number), text);
    end = number + strlen(number);
    unit = end > number ? strchr(units, toupper((unsigned char)end[-1])) : NULL;
    if (unit && *unit)
        end[-1] = '\0';
    if (str_to_i64(number, &v) < 0 || v < 0 || v > 1 << 20)
        return -EINVAL;
    *ret = (uint64_t)v << (unit && *unit ? 10 * (unit - units + 1) : 0);
    return 0;
}

static int take_option(struct session_options *o, const char **catalogs, int opt, const char *arg)
{
    switch (opt) {
    case OPTION_NAME:
        if (!state_name_is_valid(arg))
            return usage_error("run", "'%s' is no good name: use letters, digits and . _ - + @",
                               arg);
        STR_COPY(o->name, arg);
        return 0;
    case OPTION_POLICY:
        o->policy_file = arg;
        return 0;
    case OPTION_LOG_DIR:
        o->log_dir = arg;
        return 0;
    case OPTION_LOG_LIMIT:
        if (parse_size(arg, &o->log_limit) < 0 || o->log_limit < LOG_LIMIT_MIN)
            return usage_error(
                "run", "--log-limit wants a size of at least 1M, as in 512M or 2G, not '%s'", arg);
        return 0;
    case OPTION_CATALOG:
        if (o->n_catalogs == CATALOGS_MAX)
            return usage_error("run", "more than %d folders", CATALOGS_MAX);
        catalogs[o->n_catalogs++] = arg;
        return 0;
    case OPTION_QUIET:
        o->quiet = true;
        return 0;
    case OPTION_FORMAT:
        return options_format(&verb_run, arg, &o->json);
    default:
        return EXIT_USAGE;
    }
}

static int run(int argc, char **argv)
{
    const char *catalogs[CATALOGS_MAX];
    struct session_options o = {.log_limit = LOG_LIMIT_DEFAULT, .catalogs = catalogs};
    int opt;

    while ((opt = options_next(&verb_run, argc, argv)) != OPTION_END) {
        int r = take_option(&o, catalogs, opt, optarg);

        if (r != 0)
            return r;
    }
    if (optind == argc)
        return usage_error("run", "which command? Put it behind --");
    o.argv = argv + optind;
    if (o.name[0] == '\0')
        state_default_name(o.argv, o.name);
    return session_run(&o);
}

const struct verb verb_run = {
    .name = "run",
    .summary = "run a command, find out why it fails or hangs; restart or stop",
    .help = "usage: reknit run [OPTION]... [--] COMMAND [ARGUMENT]...\n"
            "\n"
            "Runs COMMAND and watches it. Its output passes through unchanged and is kept in\n"
            "a log. When it crashes or hangs, all its processes are ended and it is started\n"
            "again, from a budget that only progress refills; when another try is pointless,\n"
            "reknit stops.\n"
            "\n"
            "  --name NAME        the job's name (default: the script's, and a hash of the\n"
            "                     command); of one name only one can run at a time\n"
            "  --policy FILE      what may be done for which cause (see 'reknit config')\n"
            "  --log-dir DIR      keep the logs of the attempts in DIR (made if missing)\n"
            "  --log-limit SIZE   keep so much of each attempt's output (1G)\n"
            "  --catalog DIR      more failure signatures (repeatable)\n"
            "  --quiet            say only what is wrong with reknit itself\n"
            "  --format text|json json: at the end, a summary as one object on standard error\n"
            "\n"
            "Exit status: that of the job (128 + n when signal n ended it); 75 when reknit\n"
            "stopped it because another try is pointless; 126, 127 when the command cannot be\n"
            "run; 2 when this command line is wrong.\n"
            "\n"
            "In the job's environment: REKNIT_ATTEMPT (from 1), REKNIT_RESTART_COUNT (from\n"
            "0), REKNIT_RUN (unique to this run); after the same failure came twice behind\n"
            "one step, REKNIT_FAILED_AFTER_STEP; while a bad GPU is kept out,\n"
            "CUDA_VISIBLE_DEVICES.\n"
            "\n"
            "SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on, and the job is not restarted\n"
            "after; the policy's kill_grace (10s) later, or at a second one, everything is\n"
            "killed. SIGUSR1 and SIGUSR2 go to the command itself. A reader of the output\n"
            "that goes away ('| head') does not end the job; its log goes on.\n"
            "State is kept below $REKNIT_STATE_DIR, $XDG_STATE_HOME/reknit or\n"
            "~/.local/state/reknit.\n",
    .options = options,
    .letters = "q",
    .runs_command = true,
    .run = run,
};
