/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/mountinfo.h"

#include "base/cleanup.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Blanks and backslashes are written as \040 and the like. */
static void unescape(char *s)
{
    char *out = s;

    while (*s) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
            s[3] >= '0' && s[3] <= '7') {
            *out++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
            s += 4;
        } else {
            *out++ = *s++;
        }
    }
    *out = '\0';
}

static bool is_read_only(const char *options)
{
    return str_startswith(options, "ro") && (options[2] == ',' || options[2] == '\0');
}

/* 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue */
bool mount_line_parse(char *line, struct mount_line *ret)
{
    struct mount_line m = {0};
    char *word[6], *rest = line;

    for (int i = 0; i < 6; i++)
        if (!(word[i] = strsep(&rest, " ")))
            return false;
    if (rest && !str_startswith(rest, "- ") && (rest = strstr(rest, " - ")))
        rest++;
    if (!rest)
        return false;
    rest += 2;
    unescape(word[4]);
    if (!STR_COPY(m.path, word[4]))
        return false;
    m.read_only = is_read_only(word[5]);
    for (int i = 0; i < 3; i++)
        if (!(word[i] = strsep(&rest, " \n")))
            return false;
    unescape(word[1]);
    STR_COPY(m.type, word[0]);
    STR_COPY(m.source, word[1]);
    m.system_read_only = is_read_only(word[2]);
    *ret = m;
    return true;
}

/* A service has a view of its own, in which most is read-only and some is hidden: that of the first
 * process is the node's. */
static FILE *open_mountinfo(const struct probe *p)
{
    char path[PATH_MAX];
    FILE *f;

    STR_PRINTF(path, "%s/proc/1/mountinfo", p->root);
    f = fopen(path, "re");
    if (f)
        return f;
    STR_PRINTF(path, "%s/proc/self/mountinfo", p->root);
    return fopen(path, "re");
}

static void keep(struct mount_line *all, size_t *n, size_t max, const struct mount_line *m)
{
    for (size_t i = 0; i < *n; i++)
        if (streq(all[i].path, m->path)) {
            all[i] = *m;
            return;
        }
    if (*n < max)
        all[(*n)++] = *m;
}

size_t mounts_read(const struct probe *p, struct mount_line *ret, size_t max)
{
    _cleanup_(fclosep) FILE *f = open_mountinfo(p);
    _cleanup_(freep) char *line = NULL;
    size_t cap = 0, n = 0;
    struct mount_line m;

    while (f && getline(&line, &cap, f) > 0)
        if (mount_line_parse(line, &m))
            keep(ret, &n, max, &m);
    return n;
}

bool mount_is_remote(const struct mount_line *m)
{
    static const char *const types[] = {
        "nfs",   "nfs4",        "lustre", "gpfs",         "beegfs",       "beegfs_nodev",
        "ceph",  "fuse.ceph",   "cifs",   "smb3",         "wekafs",       "fuse.glusterfs",
        "pvfs2", "orangefs",    "afs",    "fuse.juicefs", "fuse.sshfs",   "fuse.s3fs",
        "9p",    "fuse.daosfs", "panfs",  "virtiofs",     "fuse.quobyte",
    };

    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (streq(m->type, types[i]))
            return true;
    return false;
}
