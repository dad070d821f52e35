/* SPDX-License-Identifier: Apache-2.0 */
#include "action/cgroup.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEPTH_MAX   16
#define ENTRIES_MAX 10000 /* of a folder that is looked through */
#define PREFIX      "reknit-"

/* Where cgroup v2 is mounted: alone (/sys/fs/cgroup) or beside v1 (.../unified). */
static int find_mount(char *ret, size_t size)
{
    _cleanup_(fclosep) FILE *f = fopen("/proc/self/mountinfo", "re");
    char line[4096];

    if (!f)
        return -errno;
    while (fgets(line, sizeof(line), f)) {
        char where[CGROUP_PATH_MAX];

        /* proc(5): id parent major:minor root mount-point options ... - type source options */
        if (!strstr(line, " - cgroup2 "))
            continue;
        if (sscanf(line, "%*s %*s %*s %*s %511s", where) == 1)
            return str_copy(ret, size, where) ? 0 : -ENAMETOOLONG;
    }
    return -ENOENT;
}

static int find_own(char *ret, size_t size)
{
    _cleanup_(fclosep) FILE *f = fopen("/proc/self/cgroup", "re");
    char line[4096];

    if (!f)
        return -errno;
    while (fgets(line, sizeof(line), f))
        if (str_startswith(line, "0::/")) {
            line[strcspn(line, "\n")] = '\0';
            return str_copy(ret, size, line + 3) ? 0 : -ENAMETOOLONG;
        }
    return -ENOENT;
}

/* An empty one that is older than that belongs to nobody: a live run's holds its job. */
#define ABANDONED_S 60

static void remove_abandoned(const char *parent)
{
    _cleanup_(closedirp) DIR *dir = opendir(parent);
    struct dirent *entry;
    struct stat st;

    for (int i = 0; dir && i < ENTRIES_MAX && (entry = readdir(dir)); i++)
        if (str_startswith(entry->d_name, PREFIX) &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            st.st_mtime < time(NULL) - ABANDONED_S)
            unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR); /* refused while it has a process */
}

void cgroup_create(const char *name, char ret_path[CGROUP_PATH_MAX])
{
    char mount[CGROUP_PATH_MAX], own[CGROUP_PATH_MAX], parent[CGROUP_PATH_MAX];
    int n;

    assert(str_startswith(name, PREFIX));
    ret_path[0] = '\0';
    if (find_mount(mount, sizeof(mount)) < 0 || find_own(own, sizeof(own)) < 0)
        return;
    n = snprintf(parent, sizeof(parent), "%s%s", mount, streq(own, "/") ? "" : own);
    if (n >= (int)sizeof(parent))
        return;
    remove_abandoned(parent);
    n = snprintf(ret_path, CGROUP_PATH_MAX, "%s/%s", parent, name);
    if (n >= CGROUP_PATH_MAX || (mkdir(ret_path, 0755) < 0 && errno != EEXIST))
        ret_path[0] = '\0';
}

/* Depth first; a cgroup folder's files vanish with it. */
static void remove_below(int parent, const char *name, int depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    _cleanup_(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    while (dir && depth < DEPTH_MAX && (entry = readdir(dir)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            remove_below(fd, entry->d_name, depth + 1);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void cgroup_remove(const char *path)
{
    if (path[0] != '\0')
        remove_below(AT_FDCWD, path, 0);
}

bool cgroup_is_populated(const char *path)
{
    char file[CGROUP_PATH_MAX + 16], line[64];
    _cleanup_(fclosep) FILE *f = NULL;

    if (path[0] == '\0')
        return false;
    snprintf(file, sizeof(file), "%s/cgroup.events", path);
    f = fopen(file, "re");
    if (!f)
        return errno != ENOENT && errno != ENODEV; /* what cannot be seen may be */
    while (fgets(line, sizeof(line), f))
        if (streq(line, "populated 1\n"))
            return true;
    return false;
}

void cgroup_kill(const char *path)
{
    char file[CGROUP_PATH_MAX + 16];
    _cleanup_(closep) int fd = -1;

    if (path[0] == '\0')
        return;
    snprintf(file, sizeof(file), "%s/cgroup.kill", path);
    fd = open(file, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "1", 1) < 0)
        return; /* whoever calls looks at /proc as well */
}
