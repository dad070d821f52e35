/* SPDX-License-Identifier: Apache-2.0 */

/* What the values of reknitd's configuration may be: each by itself, so that a bad one is reported
 * with the line of the file that has it, then all together. */

#include "config/daemon_form.h"

#include "core/state/state.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#define READERS_MAX 1024 /* that the spawner starts */

struct fault {
    char *path;
    size_t size;
    struct err *e;
};

__attribute__((format(printf, 3, 4))) static int wrong(const struct fault *f, const char *path,
                                                       const char *format, ...)
{
    char text[320];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    str_copy(f->path, f->size, path);
    return err_set(f->e, -EINVAL, "%s", text);
}

/* ---- one value ---- */

static int check_times(const struct daemon_config *c, const struct fault *f)
{
    const struct {
        const char *path;
        usec_t value, least, most;
    } times[] = {
        {"poll", c->poll, 100 * USEC_PER_MSEC, 10 * USEC_PER_MIN},
        {"adapter.timeout", c->adapter.timeout, USEC_PER_SEC, 10 * USEC_PER_MIN},
        {"brakes.storm_window", c->brakes.storm_window, USEC_PER_SEC, USEC_PER_DAY},
        {"brakes.proposal_life", c->brakes.proposal_life, 10 * USEC_PER_SEC, 7 * USEC_PER_DAY},
        {"brakes.early_start", c->brakes.early_start, USEC_PER_SEC, 2 * USEC_PER_MIN},
        {"brakes.exclusion_life", c->brakes.exclusion_life, USEC_PER_MIN, 365 * USEC_PER_DAY},
        {"readers.stall", c->readers.stall, USEC_PER_SEC, USEC_PER_HOUR},
        {"journal.keep", c->journal.keep, 2 * USEC_PER_DAY, 3650 * USEC_PER_DAY},
        {"journal.detail", c->journal.detail, USEC_PER_HOUR, 3650 * USEC_PER_DAY},
    };
    char least[DURATION_TEXT_MAX], most[DURATION_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(times); i++)
        if (times[i].value < times[i].least || times[i].value > times[i].most)
            return wrong(f, times[i].path, "must lie between %s and %s",
                         duration_format(times[i].least, least),
                         duration_format(times[i].most, most));
    return 0;
}

static int check_counts(const struct daemon_config *c, const struct fault *f)
{
    const struct brakes *b = &c->brakes;
    const struct {
        const char *path;
        uint32_t value, least, most;
    } counts[] = {
        {"brakes.actions_per_hour", b->actions_per_hour, 0, DEEDS_MAX},
        {"brakes.actions_per_partition_hour", b->actions_per_partition_hour, 0, DEEDS_MAX},
        {"brakes.actions_per_user_hour", b->actions_per_user_hour, 0, DEEDS_MAX},
        {"brakes.exclusions_per_node_hour", b->exclusions_per_node_hour, 0, DEEDS_MAX},
        {"brakes.storm_jobs", b->storm_jobs, 0, DEEDS_MAX},
        {"brakes.storm_per_minute", b->storm_per_minute, 1, DEEDS_MAX},
        {"max_excluded", c->max_excluded, 0, 100},
        {"nodes.max_drained", c->nodes.max_drained, 0, 100},
        {"nodes.drains_per_hour", c->nodes.drains_per_hour, 0, DEEDS_MAX},
        {"nodes.breaker_share", c->nodes.breaker_share, 0, 100},
        {"readers.max_processes", c->readers.max_processes, 1, READERS_MAX},
        {"journal.newest", c->journal.newest, 10000, 1000000000},
    };

    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        if (counts[i].value < counts[i].least || counts[i].value > counts[i].most)
            return wrong(f, counts[i].path, "must lie between %u and %u", counts[i].least,
                         counts[i].most);
    return 0;
}

static int check_paths(const struct daemon_config *c, const struct fault *f)
{
    const struct {
        const char *path, *value;
        bool needed, socket;
    } paths[] = {
        {"state_dir", c->state_dir, true, false},
        {"spawner", c->spawner, false, true},
        {"api.socket", c->api.socket, true, true},
        {"api.tls_cert", c->api.tls_cert, false, false},
        {"api.tls_key", c->api.tls_key, false, false},
        {"api.token_file", c->api.token_file, false, false},
        {"agents.key_file", c->agents.key_file, false, false},
        {"agents.munge_socket", c->agents.munge_socket, false, true},
        {"webhook.token_file", c->webhook.token_file, false, false},
        {"webhook.ca_cert", c->webhook.ca_cert, false, false},
    };
    static const size_t socket_max = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        if (!*paths[i].value && !paths[i].needed)
            continue;
        if (paths[i].value[0] != '/')
            return wrong(f, paths[i].path, "'%s' is no absolute path", paths[i].value);
        if (paths[i].socket && strlen(paths[i].value) > socket_max)
            return wrong(f, paths[i].path, "longer than %zu bytes, which is all a socket may have",
                         socket_max);
    }
    return 0;
}

/* "127.0.0.1:6820", "[::1]:6820". */
static bool parse_listen(const char *text, bool *ret_local)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    char host[INET6_ADDRSTRLEN];
    unsigned char address[16];
    long long port;

    if (!colon || !isdigit((unsigned char)colon[1]) || str_to_i64(colon + 1, &port) < 0 ||
        port < 1 || port > 65535)
        return false;
    if (text[0] == '[' && n > 2 && text[n - 1] == ']') {
        if (!str_copy_n(host, sizeof(host), text + 1, n - 2) ||
            inet_pton(AF_INET6, host, address) != 1)
            return false;
        *ret_local = streq(host, "::1");
        return true;
    }
    if (!str_copy_n(host, sizeof(host), text, n) || inet_pton(AF_INET, host, address) != 1)
        return false;
    *ret_local = address[0] == 127;
    return true;
}

static int check_listen(const struct fault *f, const char *path, const char *value)
{
    bool local;

    if (!*value || parse_listen(value, &local))
        return 0;
    return wrong(f, path, "'%s' is no address with a port: write it as 0.0.0.0:6820 or [::]:6820",
                 value);
}

/* Nothing of it is told: whoever knows it can write there. */
static int check_url(const struct daemon_config *c, const struct fault *f)
{
    const char *url = c->webhook.url;

    if (!*url)
        return 0;
    if (!str_startswith(url, "https://") && !str_startswith(url, "http://"))
        return wrong(f, "webhook.url", "does not begin with https:// or http://");
    if (strpbrk(url, " \t"))
        return wrong(f, "webhook.url", "has a blank in it");
    return 0;
}

/* No PATH decides what runs, and no shell: "~" and "$X" are as they are. */
static int check_command(const struct fault *f, const char *path, const struct command *cmd)
{
    if (cmd->n > 0 && cmd->argv[0][0] != '/')
        return wrong(f, path, "'%s' is no absolute path of a program", cmd->argv[0]);
    return 0;
}

static int check_node_command(const struct fault *f, const char *path, const struct command *cmd)
{
    int r = check_command(f, path, cmd);
    bool named = cmd->n == 0;

    for (unsigned i = 1; i < cmd->n; i++)
        named |= strstr(cmd->argv[i], "{node}") != NULL;
    if (r == 0 && !named)
        return wrong(f, path, "no argument holds {node}: the program would not know which");
    return r;
}

static int check_nodes(const struct daemon_config *c, const struct fault *f)
{
    if (c->nodes.mode == MODE_PROPOSE)
        return wrong(f, "nodes.mode", "is off, observe or act: nobody is asked about a node");
    return 0;
}

static int check_commands(const struct daemon_config *c, const struct fault *f)
{
    int r = check_command(f, "adapter.command", &c->adapter.command);

    r = r < 0 ? r : check_node_command(f, "fence", &c->fence);
    return r < 0 ? r : check_node_command(f, "nodes.check", &c->nodes.check);
}

static bool is_name(const char *s, const char *more)
{
    for (const char *p = s; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr(more, *p))
            return false;
    return *s && *s != '-';
}

bool policy_name_is_sound(const char *name)
{
    return is_name(name, "._-") && mode_from_name(name) < 0;
}

static int check_names(const struct daemon_config *c, const struct fault *f)
{
    char path[64];

    if (*c->cluster && !is_name(c->cluster, "._-"))
        return wrong(f, "cluster", "'%s' is no name of a cluster", c->cluster);
    if (*c->operators && !is_name(c->operators, "._-@\\"))
        return wrong(f, "operators", "'%s' is no name of a group", c->operators);
    for (unsigned i = 0; i < c->n_policies; i++) {
        STR_PRINTF(path, "policies");
        if (!policy_name_is_sound(c->policies[i].name))
            return wrong(f, path,
                         "'%s' cannot be the name of a policy: letters, digits, and . _ - between "
                         "them, but none of off, observe, propose, act",
                         c->policies[i].name);
    }
    return 0;
}

int daemon_values_check(const struct daemon_config *c, char *ret_path, size_t size, struct err *e)
{
    static int (*const checks[])(const struct daemon_config *c, const struct fault *f) = {
        check_times, check_counts, check_paths, check_url, check_commands, check_names, check_nodes,
    };
    const struct fault f = {ret_path, size, e};
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(checks); i++)
        r = checks[i](c, &f);
    r = r < 0 ? r : check_listen(&f, "api.listen", c->api.listen);
    return r < 0 ? r : check_listen(&f, "agents.listen", c->agents.listen);
}

/* ---- all together ---- */

static const char *policy_word(const void *ctx, size_t i)
{
    const struct daemon_config *c = ctx;

    return i < c->n_policies ? c->policies[i].name : NULL;
}

static int check_policy(const struct daemon_config *c, const char *from, const char *name,
                        struct err *e)
{
    const char *like;

    if (daemon_config_policy(c, name))
        return 0;
    like = nearest_word(name, policy_word, c);
    if (like)
        return err_set(e, -EINVAL, "%s: policy: there is none called '%s'; did you mean '%s'?",
                       from, name, like);
    return err_set(e, -EINVAL, "%s: policy: none called '%s' is defined under 'policies'", from,
                   name);
}

static int check_policies(const struct daemon_config *c, struct err *e)
{
    int r = check_policy(c, "the configuration", c->policy, e);

    for (unsigned i = 0; r == 0 && i < c->n_rules; i++)
        if (*c->rules[i].policy)
            r = check_policy(c, c->rules[i].from, c->rules[i].policy, e);
    return r;
}

static int check_api(const struct daemon_config *c, struct err *e)
{
    bool tls = *c->api.tls_cert && *c->api.tls_key, local = true;

    if (!*c->api.tls_cert != !*c->api.tls_key)
        return err_set(e, -EINVAL, "api.%s is missing: the other half of TLS is there",
                       *c->api.tls_cert ? "tls_key" : "tls_cert");
    if (!*c->api.listen)
        return 0;
    if (!*c->api.token_file && !c->api.munge)
        return err_set(e, -EINVAL,
                       "api.listen: nobody could be told from anybody else: it needs "
                       "token_file, or munge: true");
    parse_listen(c->api.listen, &local);
    if (!local && !tls && *c->api.token_file)
        return err_set(e, -EINVAL,
                       "api.listen: other hosts reach %s, and tokens would pass in "
                       "the clear: it needs tls_cert and tls_key, or an address of "
                       "this host",
                       c->api.listen);
    return 0;
}

int daemon_config_check(const struct daemon_config *c, struct err *e)
{
    char path[128];
    int r = daemon_values_check(c, path, sizeof(path), e);

    if (r < 0)
        return err_prefix(e, r, "%s", path);
    r = check_policies(c, e);
    r = r < 0 ? r : check_api(c, e);
    if (r == 0 && *c->agents.listen && c->agents.auth == AGENT_AUTH_KEY && !*c->agents.key_file)
        return err_set(e, -EINVAL, "agents.key_file is missing: auth is 'key'");
    return r;
}

/* ---- doubts ---- */

struct doubter {
    const struct daemon_config *c;
    void (*fn)(void *ctx, const char *text);
    void *ctx;
    const char *about; /* of which policy */
};

__attribute__((format(printf, 2, 3))) static void doubt(const struct doubter *d, const char *format,
                                                        ...)
{
    char text[384];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    d->fn(d->ctx, text);
}

static void doubt_policy(void *ctx, const char *text)
{
    const struct doubter *d = ctx;

    doubt(d, "policy %s: %s", d->about, text);
}

static bool policy_is_used(const struct daemon_config *c, const struct named_policy *p)
{
    bool used = p->users || streq(p->name, POLICY_STANDARD) || streq(c->policy, p->name);

    for (unsigned i = 0; i < c->n_rules; i++)
        used |= streq(c->rules[i].policy, p->name);
    return used;
}

static void doubt_policies(struct doubter *d)
{
    for (unsigned i = 0; i < d->c->n_policies; i++) {
        const struct named_policy *p = &d->c->policies[i];

        d->about = p->name;
        policy_doubts(&p->policy, doubt_policy, d);
        if (!policy_is_used(d->c, p))
            doubt(d, "policy %s: no rule names it, and users may not (users: false)", p->name);
    }
}

static void doubt_rules(const struct doubter *d)
{
    for (unsigned i = 0; i < d->c->n_rules; i++) {
        const struct job_rule *r = &d->c->rules[i];

        if (r->mode < 0 && r->opt_in < 0 && !*r->policy)
            doubt(d, "%s: the rule changes nothing: it has none of mode, opt_in, policy", r->from);
        else if (!*r->partition && !*r->account && !*r->qos && !*r->user && d->c->n_rules > 1)
            doubt(d, "%s: the rule holds for every job, whatever rules before it say", r->from);
    }
}

/* Missing files are no fault of the text: it may be checked on another machine. */
static void doubt_secret(const struct doubter *d, const char *key, const char *path)
{
    struct stat st;

    if (!*path)
        return;
    if (stat(path, &st) < 0)
        doubt(d, "%s: %s: %s", key, path, strerror(errno));
    else if (st.st_mode & S_IROTH)
        doubt(d, "%s: %s is readable for everybody: chmod o-rwx", key, path);
}

/* A credential shows who asks, and hides nothing. */
static void doubt_munge(const struct doubter *d)
{
    bool local = true;

    if (!d->c->api.munge || !*d->c->api.listen || *d->c->api.tls_cert)
        return;
    parse_listen(d->c->api.listen, &local);
    if (!local)
        doubt(d, "api.munge: without tls_cert and tls_key, answers can be read on the way");
}

static bool some_act(const struct daemon_config *c)
{
    bool act = c->mode == MODE_ACT;

    for (unsigned i = 0; i < c->n_rules; i++)
        act |= c->rules[i].mode == MODE_ACT;
    return act;
}

void daemon_config_doubts(const struct daemon_config *c, void (*fn)(void *ctx, const char *text),
                          void *ctx)
{
    struct doubter d = {c, fn, ctx, NULL};

    doubt_policies(&d);
    doubt_rules(&d);
    doubt_secret(&d, "api.tls_key", c->api.tls_key);
    doubt_secret(&d, "api.token_file", c->api.token_file);
    doubt_secret(&d, "agents.key_file", c->agents.key_file);
    doubt_secret(&d, "webhook.token_file", c->webhook.token_file);
    if (some_act(c) && c->brakes.actions_per_hour == 0 && c->brakes.actions_per_partition_hour == 0)
        doubt(&d, "brakes: nothing limits the actions of an hour");
    doubt_munge(&d);
    if (c->webhook.exposed)
        doubt(&d, "webhook.url: it is a secret, and the file that has it is readable for "
                  "everybody: chmod o-rwx");
    if (!c->webhook.url[0] && c->webhook.token_file[0])
        doubt(&d, "webhook.token_file: there is no webhook.url to send it to");
    if (str_startswith(c->webhook.url, "http://"))
        doubt(&d, "webhook.url: what is sent there can be read on the way (http)");
}
