/* SPDX-License-Identifier: Apache-2.0 */

/* reknit config: whether a policy or reknitd's configuration is sound, and what would hold. */

#include "cli/options.h"

#include "base/file.h"
#include "base/log.h"
#include "config/daemon_file.h"
#include "config/keys.h"
#include "config/policy_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

extern const struct verb verb_config;

static const struct option options[] = {OPTIONS_COMMON_END};

#define BUILT_IN "the built-in default"

static void print_doubt(void *ctx, const char *text)
{
    printf("  but %s\n", text);
}

/* A file may have any name, and a terminal obeys some of them. */
static const char *shown(const char *path, char ret[PATH_MAX])
{
    str_sanitize(ret, PATH_MAX, path, strlen(path));
    return ret;
}

static int complain(const struct err *e)
{
    log_error("%s", e->text);
    return EXIT_TROUBLE;
}

/* ---- policies ---- */

/* path NULL: the built-in one. */
static int check_policy(const char *path)
{
    char name[PATH_MAX];
    struct err e = {0};
    struct policy p;

    policy_default(&p);
    if (path && policy_load(path, &p, &e) < 0)
        return complain(&e);
    printf("%s: sound\n", path ? shown(path, name) : BUILT_IN);
    policy_doubts(&p, print_doubt, NULL);
    return EXIT_OK;
}

static int show_policy(const char *path)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    char name[PATH_MAX];
    struct err e = {0};
    struct policy p;

    policy_default(&p);
    if (path && policy_load(path, &p, &e) < 0)
        return complain(&e);
    policy_format(&p, &text);
    printf("# %s\n%s", path ? shown(path, name) : BUILT_IN, strbuf_str(&text));
    return EXIT_OK;
}

/* ---- reknitd's configuration, with its drop-ins ---- */

static struct daemon_config *load_daemon(const char *path)
{
    char drop_ins[PATH_MAX];
    bool more = daemon_config_drop_ins(path, drop_ins, sizeof(drop_ins));
    struct daemon_config *c = NULL;
    struct err e = {0};

    if (daemon_config_load(path, more ? drop_ins : NULL, &c, &e) < 0)
        complain(&e);
    return c;
}

/* What is said of a file holds for its drop-ins too. */
static void say_where(const char *path, char *ret, size_t size)
{
    char drop_ins[PATH_MAX], name[PATH_MAX], folder[PATH_MAX];

    if (daemon_config_drop_ins(path, drop_ins, sizeof(drop_ins)) && access(drop_ins, F_OK) == 0)
        str_printf(ret, size, "%s and %s", shown(path, name), shown(drop_ins, folder));
    else
        str_copy(ret, size, shown(path, name));
}

static int check_daemon(const char *path)
{
    _cleanup_(daemon_config_freep) struct daemon_config *c = load_daemon(path);
    char where[PATH_MAX];

    if (!c)
        return EXIT_TROUBLE;
    say_where(path, where, sizeof(where));
    printf("%s: sound\n", where);
    daemon_config_doubts(c, print_doubt, NULL);
    return EXIT_OK;
}

static int show_daemon(const char *path)
{
    _cleanup_(daemon_config_freep) struct daemon_config *c = load_daemon(path);
    _cleanup_strbuf_ struct strbuf text = {0};
    char where[PATH_MAX];

    if (!c)
        return EXIT_TROUBLE;
    say_where(path, where, sizeof(where));
    daemon_config_format(c, &text);
    printf("# %s\n%s", where, strbuf_str(&text));
    return EXIT_OK;
}

/* ---- which ---- */

/* -errno: it cannot be read. */
static int is_daemon(const char *path)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    struct err e = {0};
    int r = file_read(path, DAEMON_FILE_MAX, &b, &e);
    struct form_text text = {path, strbuf_str(&b), b.len};

    if (r < 0 && r != -EFBIG)
        log_error("%s", e.text);
    return r < 0 && r != -EFBIG ? r : daemon_config_is_meant(&text);
}

static int one_file(const char *path, bool show)
{
    int daemon = is_daemon(path);

    if (daemon < 0)
        return EXIT_TROUBLE;
    if (daemon > 0)
        return show ? show_daemon(path) : check_daemon(path);
    return show ? show_policy(path) : check_policy(path);
}

/* The policy that `reknit run` would find, and what reknitd would. */
static int what_is_found(bool show)
{
    char found[PATH_MAX];
    const char *policy = policy_find(found, sizeof(found)) == 0 ? found : NULL;
    int r = EXIT_OK;

    if (access(DAEMON_CONFIG_PATH, F_OK) == 0 || access(DAEMON_CONFIG_DROP_INS, F_OK) == 0) {
        r = show ? show_daemon(DAEMON_CONFIG_PATH) : check_daemon(DAEMON_CONFIG_PATH);
        if (show)
            puts("---"); /* YAML's own: another document */
    }
    return (show ? show_policy(policy) : check_policy(policy)) == EXIT_OK ? r : EXIT_TROUBLE;
}

static int run_config(int argc, char **argv)
{
    const char *what;
    bool show;

    if (options_next(&verb_config, argc, argv) != OPTION_END)
        return EXIT_USAGE;
    what = argv[optind];
    if (!what || (!streq(what, "check") && !streq(what, "show")))
        return usage_error("config", "say what to do: check or show");
    if (argc - optind > 2)
        return usage_error("config", "one file at a time");
    show = streq(what, "show");
    return argv[optind + 1] ? one_file(argv[optind + 1], show) : what_is_found(show);
}

const struct verb verb_config = {
    .name = "config",
    .summary = "check a policy or reknitd's configuration, show what holds",
    .help = "usage: reknit config check [FILE]\n"
            "       reknit config show [FILE]\n"
            "\n"
            "check  Reads a policy, or reknitd's configuration, and says whether it is sound;\n"
            "       if not, where and why; and which values are surely not meant.\n"
            "show   Prints the whole of it, with what FILE leaves to the default.\n"
            "\n"
            "Which of the two FILE is, its keys tell. With reknitd.yaml go the files of the\n"
            "folder reknitd.d beside it.\n"
            "\n"
            "Without FILE: the policy that 'reknit run' uses when it is given none, the first\n"
            "of $XDG_CONFIG_HOME/reknit/policy.yaml (or ~/.config/reknit/policy.yaml) and\n"
            "/etc/reknit/policy.yaml, else the built-in default; and before it, where there\n"
            "is one, /etc/reknit/reknitd.yaml.\n"
            "\n"
            "Exit status: 0 sound, 1 not sound or not readable, 2 wrong usage.\n",
    .options = options,
    .run = run_config,
};
