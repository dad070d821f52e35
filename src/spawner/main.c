/* SPDX-License-Identifier: Apache-2.0 */

/* reknit-spawner: the one program of Reknit's that runs as root on the controller, so that reknitd
 * need not. It starts two programs, whose paths are its own, as users that its own rules allow. */

#include "base/cleanup.h"
#include "base/log.h"
#include "base/siblings.h"
#include "base/str.h"
#include "spawner/serve.h"
#include "spawner/start.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define LOGIN_DEFS "/etc/login.defs"

static const char help[] =
    "usage: reknit-spawner [--socket PATH] [OPTION]...\n"
    "\n"
    "Starts, for reknitd, the scheduler adapter as SlurmUser and log readers as the owners\n"
    "of jobs; nothing else, and for nobody else. Needs root. systemd hands it its socket.\n"
    "\n"
    "options:\n"
    "  --socket PATH       makes the socket itself\n"
    "  --user NAME         whom reknitd runs as (default: reknit); root may always ask\n"
    "  --slurm-user NAME   whom the adapter runs as: SlurmUser of slurm.conf (default: slurm)\n"
    "  --slurm-conf PATH   for the adapter, where it is not where Slurm looks by itself\n"
    "  --programs DIR      where reknit-reader and reknit-slurm are\n"
    "                      (default: where this one belongs)\n"
    "  --version           names the release\n"
    "  --help              this text\n"
    "\n"
    "Readers never run as a user below UID_MIN of /etc/login.defs, nor as one of those that\n"
    "systemd gives to services (61184 to 65519).\n";

enum { OPTION_SOCKET = 256, OPTION_USER, OPTION_SLURM_USER, OPTION_SLURM_CONF, OPTION_PROGRAMS };

static const struct option options[] = {
    {"socket", required_argument, NULL, OPTION_SOCKET},
    {"user", required_argument, NULL, OPTION_USER},
    {"slurm-user", required_argument, NULL, OPTION_SLURM_USER},
    {"slurm-conf", required_argument, NULL, OPTION_SLURM_CONF},
    {"programs", required_argument, NULL, OPTION_PROGRAMS},
    {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL},
};

struct arguments {
    const char *socket, *user, *slurm_user, *slurm_conf, *programs;
};

/* Exit status to end with, -1 = go on. */
static int parse(int argc, char **argv, struct arguments *a)
{
    int c;

    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (c == 'h' || c == 'v') {
            fputs(c == 'h' ? help : "reknit-spawner " REKNIT_VERSION "\n", stdout);
            return 0;
        }
        if (c == OPTION_SOCKET)
            a->socket = optarg;
        else if (c == OPTION_USER)
            a->user = optarg;
        else if (c == OPTION_SLURM_USER)
            a->slurm_user = optarg;
        else if (c == OPTION_SLURM_CONF)
            a->slurm_conf = optarg;
        else if (c == OPTION_PROGRAMS)
            a->programs = optarg;
        else
            return 2;
    }
    if (optind < argc) {
        log_error("it takes no '%s'", argv[optind]);
        return 2;
    }
    return -1;
}

static int find_user(const char *name, uid_t *ret, struct err *e)
{
    const struct passwd *pw = getpwnam(name);

    if (!pw)
        return err_set(e, -ENOENT, "there is no user '%s'", name);
    *ret = pw->pw_uid;
    return 0;
}

/* Only the user can write to it, and so connect; root can anyway. */
static int make_socket(const char *path, uid_t user, int *ret, struct err *e)
{
    _cleanup_(closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;
    mode_t mask;
    int r;

    if (fd < 0)
        return err_set(e, -errno, "no socket: %s", strerror(errno));
    if (strlen(path) >= sizeof(a.sun_path))
        return err_set(e, -ENAMETOOLONG, "%s: the path of a socket has at most %zu bytes", path,
                       sizeof(a.sun_path) - 1);
    STR_COPY(a.sun_path, path);
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        unlink(path); /* of one that was killed */
    mask = umask(0177);
    r = bind(fd, (struct sockaddr *)&a, sizeof(a));
    umask(mask);
    if (r < 0 || lchown(path, user, (gid_t)-1) < 0 || listen(fd, 8) < 0)
        return err_set(e, -errno, "%s: %s", path, strerror(errno));
    *ret = take_fd(&fd);
    return 0;
}

static int find_socket(const struct arguments *a, uid_t user, int *ret, struct err *e)
{
    int n;

    if (a->socket)
        return make_socket(a->socket, user, ret, e);
    n = sd_listen_fds(1);
    if (n != 1 || sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_SEQPACKET, 1, NULL, 0) <= 0)
        return err_set(e, -EINVAL, "systemd hands it no socket, and no --socket is given");
    *ret = SD_LISTEN_FDS_START;
    return 0;
}

/* Where there is none it is told when it is to be started. */
static void find_program(const char *folder, const char *name, char *ret, size_t size)
{
    if (folder)
        str_printf(ret, size, "%s/%s", folder, name);
    else
        sibling_find(name, ret, size);
}

static int run(const struct arguments *a, struct err *e)
{
    char reader[PATH_MAX] = "", adapter[PATH_MAX] = "";
    struct spawner_options o = {.reader = reader, .adapter = adapter, .slurm_conf = a->slurm_conf};
    int r;

    if (geteuid() != 0)
        return err_set(e, -EPERM, "it needs root, to become other users");
    if (a->programs && a->programs[0] != '/')
        return err_set(e, -EINVAL, "--programs %s: the path must begin with /", a->programs);
    find_program(a->programs, "reknit-reader", reader, sizeof(reader));
    find_program(a->programs, "reknit-slurm", adapter, sizeof(adapter));
    r = find_user(a->user, &o.user, e);
    if (r >= 0)
        r = find_user(a->slurm_user, &o.slurm_user, e);
    if (r >= 0)
        r = find_socket(a, o.user, &o.listening, e);
    if (r < 0)
        return r;
    o.uid_min = start_id_min(LOGIN_DEFS, "UID_MIN");
    o.gid_min = start_id_min(LOGIN_DEFS, "GID_MIN");
    return spawner_serve(&o, e);
}

/* One that is closed would be the number of a socket, and a child's standard stream. */
static bool fill_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    struct arguments a = {.user = "reknit", .slurm_user = "slurm"};
    struct err e = {0};
    int status;

    if (!fill_standard_streams())
        return 1;
    log_init("reknit-spawner");
    status = parse(argc, argv, &a);
    if (status >= 0)
        return status;
    if (run(&a, &e) < 0) {
        log_error("%s", e.text);
        return 1;
    }
    return 0;
}
