/* SPDX-License-Identifier: Apache-2.0 */

/* What can be seen on this host without asking Slurm or reknitd. */

#include "base/cleanup.h"
#include "base/file.h"
#include "base/siblings.h"
#include "cli/doctor.h"
#include "cli/run_program.h"
#include "config/keys.h"

#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>

#define PATIENCE   (15 * USEC_PER_SEC) /* munge itself waits for 10 s */
#define SPACE_FAIL ((uint64_t)100 << 20)
#define SPACE_WARN ((uint64_t)1 << 30)

/* ---- programs ---- */

/* "reknitd 0.1.0 (Slurm 22.05.8)": the second word. False: it says nothing of the kind. */
static bool version_of(const char *path, char *ret, size_t size)
{
    const char *const argv[] = {path, "--version", NULL};
    struct program_result r = {0};
    bool ok = run_program(argv, NULL, PATIENCE, &r) == 0 && r.status == 0;
    const char *text = strbuf_str(&r.output), *word = text + strcspn(text, " \n");

    word += *word == ' ';
    str_copy_n(ret, size, word, strcspn(word, " \n"));
    strbuf_done(&r.output);
    return ok && *ret;
}

static void look_at_programs(struct doctor *d)
{
    static const char *const names[] = {"reknitd",       "reknit-spawner", "reknit-slurm",
                                        "reknit-reader", "reknit-seal",    "reknit-post"};
    _cleanup_strbuf_ struct strbuf same = {0}, other = {0}, absent = {0};
    char path[PATH_MAX], version[64];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct strbuf *b = &absent;

        STR_COPY(version, "");
        if (sibling_find(names[i], path, sizeof(path)) == 0) {
            b = version_of(path, version, sizeof(version)) && streq(version, REKNIT_VERSION)
                    ? &same
                    : &other;
        }
        strbuf_addf(b, "%s%s%s%s", b->len > 0 ? ", " : "", names[i], b == &other ? " " : "",
                    b == &other ? (*version ? version : "(it does not start)") : "");
    }
    if (other.len > 0)
        doctor_row(d, DOCTOR_FAIL, "programs", "install one release, all of it",
                   "reknit is " REKNIT_VERSION ", but: %s", strbuf_str(&other));
    else if (absent.len > 0)
        doctor_row(d, DOCTOR_WARN, "programs", "install them, unless this host runs no reknitd",
                   "not found: %s", strbuf_str(&absent));
    else
        doctor_row(d, DOCTOR_OK, "programs", NULL, "%s: all of release " REKNIT_VERSION,
                   strbuf_str(&same));
}

static void look_at_commands(struct doctor *d)
{
    const struct command *fence = &d->config->fence;

    if (fence->n > 0 && access(fence->argv[0], X_OK) < 0)
        doctor_row(d, DOCTOR_FAIL, "fence", "mend the path or the program's permissions", "%s: %s",
                   fence->argv[0], strerror(errno));
    else if (fence->n > 0)
        doctor_row(d, DOCTOR_OK, "fence", NULL, "%s can be run", fence->argv[0]);
}

/* ---- users ---- */

static void look_at_users(struct doctor *d)
{
    const char *group = d->config->operators;

    if (!getpwnam("reknit"))
        doctor_row(d, DOCTOR_WARN, "user", "systemd-sysusers reknit.conf",
                   "there is no user reknit, whom reknitd.service runs as");
    else
        doctor_row(d, DOCTOR_OK, "user", NULL, "reknit");
    if (*group && !getgrnam(group))
        doctor_row(d, DOCTOR_FAIL, "operators", "create the group, or mend 'operators'",
                   "there is no group %s", group);
}

/* ---- the spawner ---- */

static int connect_to(const char *path, int type)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    _cleanup_(closep) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (!STR_COPY(a.sun_path, path))
        return -ENAMETOOLONG;
    return connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? -errno : 0;
}

static void look_at_spawner(struct doctor *d)
{
    const char *path = d->config->spawner;
    int r = *path ? connect_to(path, SOCK_SEQPACKET) : 0;

    if (!*path)
        doctor_row(d, DOCTOR_WARN, "spawner", "set 'spawner', where jobs have several owners",
                   "none is configured: logs are read as reknitd's own user");
    else if (r == -EACCES || r == -EPERM)
        doctor_row(d, DOCTOR_SKIP, "spawner", "run doctor as root",
                   "%s: only reknitd and root may connect", path);
    else if (r < 0)
        doctor_row(d, DOCTOR_FAIL, "spawner", "systemctl start reknit-spawner.socket", "%s: %s",
                   path, strerror(-r));
    else
        doctor_row(d, DOCTOR_OK, "spawner", NULL, "%s takes connections", path);
}

/* ---- the state folder ---- */

static void look_at_state(struct doctor *d)
{
    const char *path = d->config->state_dir;
    struct statvfs fs;
    uint64_t free_bytes;
    enum doctor_state state;

    if (statvfs(path, &fs) < 0) {
        state = errno == ENOENT ? DOCTOR_WARN : DOCTOR_FAIL;
        doctor_row(d, state, "state folder",
                   errno == ENOENT ? "reknitd.service makes it when it starts" : NULL, "%s: %s",
                   path, strerror(errno));
        return;
    }
    free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    state = free_bytes < SPACE_FAIL   ? DOCTOR_FAIL
            : free_bytes < SPACE_WARN ? DOCTOR_WARN
                                      : DOCTOR_OK;
    if (fs.f_flag & ST_RDONLY)
        doctor_row(d, DOCTOR_FAIL, "state folder", "mount it writable", "%s is read-only", path);
    else
        doctor_row(d, state, "state folder",
                   state == DOCTOR_OK ? NULL : "make room: without a journal nothing is done",
                   "%s: %llu MiB free", path, (unsigned long long)(free_bytes >> 20));
}

/* ---- slurm.conf ---- */

/* What of it is not Slurm's alone. */
struct slurm_conf {
    char plugstack[PATH_MAX];
    char plugins[PATH_MAX]; /* folders, between colons; "" = where Slurm was built for */
    char munge[108];        /* socket, "" = the usual one */
};

static void read_conf_line(struct slurm_conf *c, const char *line)
{
    static const char plugstack[] = "PlugStackConfig=", plugins[] = "PluginDir=";
    static const char auth[] = "AuthInfo=", at[] = "socket=";
    const char *socket;

    line += strspn(line, " \t");
    if (strncasecmp(line, plugstack, sizeof(plugstack) - 1) == 0) {
        line += sizeof(plugstack) - 1;
        str_copy_n(c->plugstack, sizeof(c->plugstack), line, strcspn(line, " \t\r#"));
    } else if (strncasecmp(line, plugins, sizeof(plugins) - 1) == 0) {
        line += sizeof(plugins) - 1;
        str_copy_n(c->plugins, sizeof(c->plugins), line, strcspn(line, " \t\r#"));
    } else if (strncasecmp(line, auth, sizeof(auth) - 1) == 0 && (socket = strstr(line, at))) {
        socket += sizeof(at) - 1;
        str_copy_n(c->munge, sizeof(c->munge), socket, strcspn(socket, ", \t\r#"));
    }
}

/* plugstack.conf lies beside it unless it says otherwise. */
static void read_slurm_conf(struct slurm_conf *ret)
{
    const char *path = getenv("SLURM_CONF");
    _cleanup_strbuf_ struct strbuf text = {0};
    const char *slash;

    if (!path || *path != '/')
        path = "/etc/slurm/slurm.conf";
    slash = strrchr(path, '/');
    STR_PRINTF(ret->plugstack, "%.*s/plugstack.conf", (int)(slash - path), path);
    if (file_read(path, 1 << 20, &text, NULL) < 0 || text.len == 0)
        return;
    for (char *save, *line = strtok_r(text.s, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        read_conf_line(ret, line);
}

/* ---- MUNGE ---- */

static void look_at_munge(struct doctor *d, const struct slurm_conf *conf)
{
    const char *const option = *conf->munge ? "-S" : NULL;
    const char *const encode[] = {"munge", "-n", option, conf->munge, NULL};
    const char *const decode[] = {"unmunge", "-n", option, conf->munge, NULL};
    struct program_result made = {0}, read = {0};
    int r = run_program(encode, NULL, PATIENCE, &made);
    char said[160];

    if (r == 0 && made.status == 0)
        r = run_program(decode, strbuf_str(&made.output), PATIENCE, &read);
    STR_COPY(said, strbuf_str(made.status != 0 ? &made.output : &read.output));
    said[strcspn(said, "\n")] = '\0';
    if (r == -ENOENT)
        doctor_row(d, DOCTOR_SKIP, "MUNGE", NULL, "the munge command is not installed here");
    else if (r < 0)
        doctor_row(d, DOCTOR_FAIL, "MUNGE", "systemctl restart munge",
                   "credentials cannot be made or read: %s", strerror(-r));
    else if (made.status != 0 || read.status != 0)
        doctor_row(d, DOCTOR_FAIL, "MUNGE",
                   "systemctl status munge; the key must be the same on every host",
                   "credentials cannot be made or read: %s", said);
    else
        doctor_row(d, DOCTOR_OK, "MUNGE", NULL, "a credential was made and read");
    strbuf_done(&made.output);
    strbuf_done(&read.output);
}

/* ---- the SPANK plugin ---- */

#define PLUGIN       "spank_reknit.so"
#define INCLUDES_MAX 64

enum plugin { PLUGIN_ABSENT, PLUGIN_OPTIONAL, PLUGIN_REQUIRED };

struct plugstack {
    unsigned files; /* read so far */
    enum plugin plugin;
    char named[PATH_MAX]; /* its path, or its name alone */
};

static void read_plugstack(struct plugstack *p, const char *path);

/* "include /etc/slurm/plugstack.conf.d/\*". */
static void include(struct plugstack *p, const char *pattern)
{
    glob_t found;

    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            read_plugstack(p, found.gl_pathv[i]);
    globfree(&found);
}

static void take_plugin(struct plugstack *p, const char *word, const char *named)
{
    p->plugin = streq(word, "required") ? PLUGIN_REQUIRED : PLUGIN_OPTIONAL;
    STR_COPY(p->named, named);
}

static void read_plugstack_line(struct plugstack *p, char *line)
{
    char *save, *word;

    line[strcspn(line, "#")] = '\0';
    word = strtok_r(line, " \t\r", &save);
    if (!word)
        return;
    line = strtok_r(NULL, " \t\r", &save);
    if (line && streq(word, "include"))
        include(p, line);
    else if (line && (str_endswith(line, "/" PLUGIN) || streq(line, PLUGIN)))
        take_plugin(p, word, line);
}

static void read_plugstack(struct plugstack *p, const char *path)
{
    _cleanup_strbuf_ struct strbuf text = {0};

    if (p->files++ >= INCLUDES_MAX || file_read(path, 256 * 1024, &text, NULL) < 0 || text.len == 0)
        return;
    for (char *save, *line = strtok_r(text.s, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        read_plugstack_line(p, line);
}

static bool is_in(const char *pattern)
{
    glob_t found;
    bool any = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;

    globfree(&found);
    return any;
}

/* Where Slurm looks for one that is named without its folder: where slurm.conf says; else in a
 * folder that is known to Slurm alone, so in all that it may be. */
static bool is_in_plugin_dir(const char *folders)
{
    static const char usual[] = "/usr/lib/slurm*:/usr/lib/*/slurm*:/usr/lib64/slurm*:"
                                "/usr/*/lib/slurm*:/usr/*/lib/*/slurm*:/opt/*/lib*/slurm*";
    char pattern[PATH_MAX];

    for (const char *at = *folders ? folders : usual; *at;) {
        size_t n = strcspn(at, ":");

        STR_PRINTF(pattern, "%.*s/" PLUGIN, (int)n, at);
        if (is_in(pattern))
            return true;
        at += n + (at[n] == ':');
    }
    return false;
}

static void look_at_plugin_file(struct doctor *d, const struct slurm_conf *conf,
                                const struct plugstack *p, const char *line)
{
    bool there =
        strchr(p->named, '/') ? access(p->named, R_OK) == 0 : is_in_plugin_dir(conf->plugins);

    if (there)
        doctor_row(d, DOCTOR_OK, "plugin", NULL, "%s says 'optional %s'", conf->plugstack,
                   p->named);
    else
        doctor_row(d, DOCTOR_WARN, "plugin", line, "%s says 'optional %s', which is not %s",
                   conf->plugstack, p->named,
                   strchr(p->named, '/') ? "there" : "in Slurm's PluginDir");
}

static void look_at_plugin(struct doctor *d, const struct slurm_conf *conf)
{
    char file[PATH_MAX], line[PATH_MAX + 64];
    const char *path = conf->plugstack;
    struct plugstack p = {0};

    if (sibling_find(PLUGIN, file, sizeof(file)) == 0)
        STR_PRINTF(line, "'optional %s' in it, on every node that has that file", file);
    else
        STR_PRINTF(line, "'optional " PLUGIN "' in it on every node, with its folder");
    read_plugstack(&p, path);
    if (p.plugin == PLUGIN_REQUIRED)
        doctor_row(d, DOCTOR_FAIL, "plugin",
                   "write 'optional': where it is missing, 'required' makes every sbatch fail",
                   "%s says 'required " PLUGIN "'", path);
    else if (p.plugin == PLUGIN_ABSENT)
        doctor_row(d, DOCTOR_SKIP, "plugin", line,
                   "%s does not name " PLUGIN ": tasks that die are noticed one poll later", path);
    else
        look_at_plugin_file(d, conf, &p, line);
}

void doctor_here(struct doctor *d)
{
    struct slurm_conf conf = {0};

    read_slurm_conf(&conf);
    look_at_programs(d);
    look_at_users(d);
    look_at_state(d);
    look_at_spawner(d);
    look_at_commands(d);
    look_at_munge(d, &conf);
    look_at_plugin(d, &conf);
}
