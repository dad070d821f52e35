/* SPDX-License-Identifier: Apache-2.0 */

/* reknit config: whether a policy file is sound, and which policy would hold. */

#include "cli/options.h"

#include "base/log.h"
#include "config/policy_file.h"

#include <limits.h>
#include <stdio.h>

extern const struct verb verb_config;

static const struct option options[] = {OPTIONS_COMMON_END};

#define BUILT_IN "the built-in default"

static void print_doubt(void *ctx, const char *text)
{
    printf("  but %s\n", text);
}

static int check(const char *where, const struct policy *p)
{
    printf("%s: sound\n", where);
    policy_doubts(p, print_doubt, NULL);
    return EXIT_OK;
}

static int show(const char *where, const struct policy *p)
{
    _cleanup_strbuf_ struct strbuf text = {0};

    policy_format(p, &text);
    printf("# %s\n%s", where, strbuf_str(&text));
    return EXIT_OK;
}

/* The file that is named, or the one that `reknit run` would find, or none. */
static int load(const char *named, struct policy *ret, const char **ret_where)
{
    static char found[PATH_MAX];
    struct err e = {0};

    *ret_where = named;
    if (!named && policy_find(found, sizeof(found)) == 0)
        *ret_where = found;
    if (!*ret_where) {
        policy_default(ret);
        *ret_where = BUILT_IN;
        return EXIT_OK;
    }
    if (policy_load(*ret_where, ret, &e) < 0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    return EXIT_OK;
}

static int run_config(int argc, char **argv)
{
    const char *what, *where;
    struct policy p;
    int r;

    if (options_next(&verb_config, argc, argv) != OPTION_END)
        return EXIT_USAGE;
    what = argv[optind];
    if (!what || (!streq(what, "check") && !streq(what, "show")))
        return usage_error("config", "say what to do: check or show");
    if (argc - optind > 2)
        return usage_error("config", "one file at a time");
    r = load(argv[optind + 1], &p, &where);
    if (r != EXIT_OK)
        return r;
    return streq(what, "check") ? check(where, &p) : show(where, &p);
}

const struct verb verb_config = {
    .name = "config",
    .summary = "check a policy file, show the policy that holds",
    .help = "usage: reknit config check [FILE]\n"
            "       reknit config show [FILE]\n"
            "\n"
            "check  Reads a policy and says whether it is sound; if not, where and why; and\n"
            "       which values have no effect because of others.\n"
            "show   Prints the whole policy that FILE makes, with what it leaves to the\n"
            "       default.\n"
            "\n"
            "Without FILE, the one that 'reknit run' uses when it is given none: the first of\n"
            "$XDG_CONFIG_HOME/reknit/policy.yaml (or ~/.config/reknit/policy.yaml) and\n"
            "/etc/reknit/policy.yaml, else the built-in default.\n"
            "\n"
            "Exit status: 0 sound, 1 not sound or not readable, 2 wrong usage.\n",
    .options = options,
    .run = run_config,
};
