/* SPDX-License-Identifier: Apache-2.0 */
#include "config/daemon_file.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"
#include "config/daemon_form.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static const char *const agent_auth_names[AGENT_AUTH_MAX] = {
    [AGENT_AUTH_MUNGE] = "munge",
    [AGENT_AUTH_KEY] = "key",
};
DEFINE_NAMES(agent_auth, enum agent_auth, agent_auth_names);

static const char *const read_at_names[READ_AT_MAX] = {
    [READ_AT_AUTO] = "auto", [READ_AT_CONTROLLER] = "controller", [READ_AT_NODES] = "nodes"};
DEFINE_NAMES(read_at, enum read_at, read_at_names);

/* Proposals expire before Slurm forgets a job, whose MinJobAge is 300 s unless somebody says so. */
static const struct daemon_config built_in = {
    .mode = MODE_OBSERVE,
    .policy = POLICY_STANDARD,
    .watch_all = true,
    .aps_comments = true,
    .state_dir = "/var/lib/reknit",
    .poll = 5 * USEC_PER_SEC,
    .spawner = "/run/reknit-spawner/spawner.sock",
    .log_level = LOG_LEVEL_INFO,
    .adapter = {.timeout = 15 * USEC_PER_SEC},
    .api = {.socket = "/run/reknit/reknitd.sock"},
    .agents = {.auth = AGENT_AUTH_MUNGE},
    .brakes =
        {
            .actions_per_hour = 120,
            .actions_per_partition_hour = 60,
            .actions_per_user_hour = 30,
            .exclusions_per_node_hour = 6,
            .storm_jobs = 8,
            .storm_window = 30 * USEC_PER_SEC,
            .storm_per_minute = 10,
            .proposal_life = 4 * USEC_PER_MIN,
            .early_start = 2 * USEC_PER_SEC,
            .exclusion_life = USEC_PER_DAY,
        },
    .max_excluded = 10,
    .nodes = {.mode = MODE_OBSERVE, .max_drained = 5, .drains_per_hour = 4, .breaker_share = 10},
    .webhook = {.mode = MODE_PROPOSE},
    .journal = {.keep = 30 * USEC_PER_DAY, .detail = USEC_PER_DAY, .newest = 200000},
    .readers = {.max_processes = 512, .stall = 30 * USEC_PER_SEC},
};

struct daemon_config *daemon_config_new(void)
{
    struct daemon_config *c = xnew(struct daemon_config);

    *c = built_in;
    c->policies = xnew(struct named_policy);
    c->n_policies = 1;
    STR_COPY(c->policies[0].name, POLICY_STANDARD);
    policy_default(&c->policies[0].policy);
    STR_COPY(c->policies[0].policy.name, POLICY_STANDARD);
    return c;
}

struct daemon_config *daemon_config_free(struct daemon_config *c)
{
    if (c) {
        free(c->rules);
        free(c->alerts);
        free(c->policies);
        free(c);
    }
    return NULL;
}

const struct named_policy *daemon_config_policy(const struct daemon_config *c, const char *name)
{
    for (unsigned i = 0; i < c->n_policies; i++)
        if (streq(c->policies[i].name, name))
            return &c->policies[i];
    return NULL;
}

/* ---- files ---- */

static bool is_open_to_all(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && (st.st_mode & S_IROTH);
}

static int add_file(struct daemon_config *c, const char *path, struct err *e)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    int r = file_read(path, DAEMON_FILE_MAX, &b, e);
    struct form_text text = {path, strbuf_str(&b), b.len};
    char before[CONFIG_TEXT_MAX];

    if (r < 0)
        return r;
    STR_COPY(before, c->webhook.url);
    r = daemon_config_add(c, &text, e);
    if (!streq(before, c->webhook.url))
        c->webhook.exposed = c->webhook.url[0] && is_open_to_all(path);
    return r;
}

bool daemon_config_drop_ins(const char *path, char *ret, size_t size)
{
    size_t n = strlen(path);

    if (!str_endswith(path, ".yaml") || n + 1 > size + 3)
        return false;
    str_printf(ret, size, "%.*s.d", (int)(n - 5), path);
    return true;
}

static int is_drop_in(const struct dirent *d)
{
    return d->d_name[0] != '.' && str_endswith(d->d_name, ".yaml");
}

/* By bytes: the order must not depend on a locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_drop_ins(struct daemon_config *c, const char *folder, struct err *e)
{
    struct dirent **found = NULL;
    int n = scandir(folder, &found, is_drop_in, by_name), r = 0;

    if (n < 0)
        return errno == ENOENT ? 0 : err_set(e, -errno, "%s: %s", folder, strerror(errno));
    if (n > DAEMON_FILES_MAX)
        r = err_set(e, -E2BIG, "%s: more than %d files", folder, DAEMON_FILES_MAX);
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX];

        STR_PRINTF(path, "%s/%s", folder, found[i]->d_name);
        r = r < 0 ? r : add_file(c, path, e);
        free(found[i]);
    }
    free(found);
    return r;
}

int daemon_config_load(const char *main_path, const char *drop_in_dir, struct daemon_config **ret,
                       struct err *e)
{
    _cleanup_(daemon_config_freep) struct daemon_config *c = daemon_config_new();
    int r = 0;

    if (main_path) {
        r = add_file(c, main_path, e);
        r = r == -ENOENT && streq(main_path, DAEMON_CONFIG_PATH) ? 0 : r;
    }
    if (r == 0 && drop_in_dir)
        r = add_drop_ins(c, drop_in_dir, e);
    r = r < 0 ? r : daemon_config_check(c, e);
    if (r == 0)
        *ret = TAKE(c);
    return r;
}
