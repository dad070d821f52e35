/* SPDX-License-Identifier: Apache-2.0 */

/* reknit config: whether a policy or reknitd's configuration is sound, and what would hold. */

#include "cli/json.h"
#include "cli/options.h"
#include "cli/yaml_json.h"

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

static const struct option options[] = {
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

#define BUILT_IN "the built-in default"

/* What is done with what is found. */
struct config_query {
    bool show, json;
};

static void print_doubt(void *ctx, const char *text)
{
    printf("  but %s\n", text);
}

static void add_doubt(void *ctx, const char *text)
{
    json_array_append_new(ctx, cli_json_text(text));
}

static json_t *object_of(const char *kind, const char *file)
{
    return json_pack("{s:i, s:s, s:o}", "schema", 1, "kind", kind, "file",
                     file ? cli_json_text(file) : json_null());
}

static void print_object(json_t *object)
{
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(object);
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

static void check_policy(const struct policy *p, const char *path, bool json)
{
    char name[PATH_MAX];
    json_t *object, *doubts;

    if (!json) {
        printf("%s: sound\n", path ? shown(path, name) : BUILT_IN);
        policy_doubts(p, print_doubt, NULL);
        return;
    }
    object = object_of("policy", path);
    json_object_set_new(object, "sound", json_true());
    json_object_set_new(object, "doubts", doubts = json_array());
    policy_doubts(p, add_doubt, doubts);
    print_object(object);
}

static void show_policy(const struct policy *p, const char *path, bool json)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    char name[PATH_MAX];
    json_t *object;

    policy_format(p, &text);
    if (!json) {
        printf("# %s\n%s", path ? shown(path, name) : BUILT_IN, strbuf_str(&text));
        return;
    }
    object = object_of("policy", path);
    json_object_set_new(object, "config", yaml_json(&text));
    print_object(object);
}

/* path NULL: the built-in one. */
static int one_policy(const char *path, const struct config_query *q)
{
    struct err e = {0};
    struct policy p;

    policy_default(&p);
    if (path && policy_load(path, &p, &e) < 0)
        return complain(&e);
    if (q->show)
        show_policy(&p, path, q->json);
    else
        check_policy(&p, path, q->json);
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

/* The folder of its drop-ins, which go with it; false: there is none. */
static bool has_drop_ins(const char *path, char ret[PATH_MAX])
{
    return daemon_config_drop_ins(path, ret, PATH_MAX) && access(ret, F_OK) == 0;
}

/* What is said of a file holds for its drop-ins too. */
static void say_where(const char *path, char *ret, size_t size)
{
    char drop_ins[PATH_MAX], name[PATH_MAX], folder[PATH_MAX];

    if (has_drop_ins(path, drop_ins))
        str_printf(ret, size, "%s and %s", shown(path, name), shown(drop_ins, folder));
    else
        str_copy(ret, size, shown(path, name));
}

static json_t *object_of_daemon(const char *path)
{
    json_t *object = object_of("reknitd", path);
    char drop_ins[PATH_MAX];

    json_object_set_new(object, "drop_ins",
                        has_drop_ins(path, drop_ins) ? cli_json_text(drop_ins) : json_null());
    return object;
}

static void print_rule(const struct job_rule *r)
{
    const struct {
        const char *label, *value;
    } of[] = {
        {"partition", r->partition}, {"account", r->account}, {"QOS", r->qos}, {"user", r->user}};
    const char *sep = "  ";

    for (size_t i = 0; i < ARRAY_SIZE(of); i++)
        if (*of[i].value) {
            printf("%s%s %s", sep, of[i].label, of[i].value);
            sep = ", ";
        }
    fputs(*sep == ',' ? ":" : "  all jobs:", stdout);
    if (r->mode >= 0)
        printf(" mode %s", mode_name(r->mode));
    if (r->opt_in >= 0)
        fputs(r->opt_in ? " without a word of their users" : " only by their users' comments",
              stdout);
    if (*r->policy)
        printf(" policy %s", r->policy);
    printf("  (%s)\n", r->from);
}

/* What it comes to, for who has only just written it. */
static void print_what_holds(const struct daemon_config *c)
{
    printf("  mode %s, for %s; others are %s\n", mode_name(c->mode),
           c->opt_in ? "all jobs" : "jobs whose comment asks for it",
           c->watch_all ? "observed" : "left alone");
    for (unsigned i = 0; i < c->n_rules; i++)
        print_rule(&c->rules[i]);
    printf("  agents %s%s; webhook %s; nodes: mode %s\n",
           *c->agents.listen ? "are heard at " : "are not heard", c->agents.listen,
           c->webhook.url[0] ? "set" : "none", mode_name(c->nodes.mode));
}

static void check_daemon(const struct daemon_config *c, const char *path, bool json)
{
    char where[PATH_MAX];
    json_t *object, *doubts;

    if (!json) {
        say_where(path, where, sizeof(where));
        printf("%s: sound\n", where);
        print_what_holds(c);
        daemon_config_doubts(c, print_doubt, NULL);
        return;
    }
    object = object_of_daemon(path);
    json_object_set_new(object, "sound", json_true());
    json_object_set_new(object, "doubts", doubts = json_array());
    daemon_config_doubts(c, add_doubt, doubts);
    print_object(object);
}

static void show_daemon(const struct daemon_config *c, const char *path, bool json)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    char where[PATH_MAX];
    json_t *object, *config;

    daemon_config_format(c, &text);
    if (!json) {
        say_where(path, where, sizeof(where));
        printf("# %s\n%s", where, strbuf_str(&text));
        return;
    }
    object = object_of_daemon(path);
    json_object_set_new(object, "config", config = yaml_json(&text));
    if (c->webhook.url[0]) /* the form says so in a comment */
        json_object_set_new(json_object_get(config, "webhook"), "url", json_true());
    print_object(object);
}

static int one_daemon(const char *path, const struct config_query *q)
{
    _cleanup_(daemon_config_freep) struct daemon_config *c = load_daemon(path);

    if (!c)
        return EXIT_TROUBLE;
    if (q->show)
        show_daemon(c, path, q->json);
    else
        check_daemon(c, path, q->json);
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

/* Where no key is known, as one that is misspelt is not, its name may tell more. */
static bool is_named_for_daemon(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct policy p;

    if (strncmp(slash ? slash + 1 : path, "reknitd", strlen("reknitd")) != 0 &&
        !strstr(path, "reknitd.d/"))
        return false;
    policy_default(&p);
    return policy_load(path, &p, NULL) < 0;
}

static int one_file(const char *path, const struct config_query *q)
{
    int daemon = is_daemon(path);

    if (daemon < 0)
        return EXIT_TROUBLE;
    return daemon > 0 || is_named_for_daemon(path) ? one_daemon(path, q) : one_policy(path, q);
}

/* The policy that `reknit run` would find, and what reknitd would. */
static int what_is_found(const struct config_query *q)
{
    char found[PATH_MAX];
    const char *policy = policy_find(found, sizeof(found)) == 0 ? found : NULL;
    int r = EXIT_OK;

    if (access(DAEMON_CONFIG_PATH, F_OK) == 0 || access(DAEMON_CONFIG_DROP_INS, F_OK) == 0) {
        r = one_daemon(DAEMON_CONFIG_PATH, q);
        if (q->show && !q->json)
            puts("---"); /* YAML's own: another document */
    }
    return one_policy(policy, q) == EXIT_OK ? r : EXIT_TROUBLE;
}

static int run_config(int argc, char **argv)
{
    struct config_query q = {0};
    const char *what;
    int opt;

    while ((opt = options_next(&verb_config, argc, argv)) != OPTION_END)
        if (opt == OPTION_WRONG || options_format(&verb_config, optarg, &q.json) != 0)
            return EXIT_USAGE;
    what = argv[optind];
    if (!what || (!streq(what, "check") && !streq(what, "show")))
        return usage_error("config", "say what to do: check or show");
    if (argc - optind > 2)
        return usage_error("config", "one file at a time");
    q.show = streq(what, "show");
    return argv[optind + 1] ? one_file(argv[optind + 1], &q) : what_is_found(&q);
}

const struct verb verb_config = {
    .name = "config",
    .summary = "check a policy or reknitd's configuration, show what holds",
    .help = "usage: reknit config check [--format text|json] [FILE]\n"
            "       reknit config show [--format text|json] [FILE]\n"
            "\n"
            "check  Reads a policy, or reknitd's configuration, and says whether it is sound;\n"
            "       if not, where and why; and which values are surely not meant.\n"
            "show   Prints the whole of it, with what FILE leaves to the default.\n"
            "\n"
            "Which of the two FILE is, its keys or its name tell. With reknitd.yaml go the\n"
            "files of the folder reknitd.d beside it.\n"
            "\n"
            "Without FILE: the policy that 'reknit run' uses when it is given none, the first\n"
            "of $XDG_CONFIG_HOME/reknit/policy.yaml (or ~/.config/reknit/policy.yaml) and\n"
            "/etc/reknit/policy.yaml, else the built-in default; and before it, where there\n"
            "is one, /etc/reknit/reknitd.yaml.\n"
            "\n"
            "  --format text|json   json: one object for each of them\n"
            "\n"
            "Exit status: 0 sound, 1 not sound or not readable, 2 wrong usage.\n",
    .options = options,
    .run = run_config,
};
