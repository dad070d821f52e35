/* SPDX-License-Identifier: Apache-2.0 */

/* The node's own file systems and NVMe controllers, and those that another host serves. Room is
 * told of / and /dev/shm only: those fill up silently, and everything needs them.
 *
 * When a file system finds itself broken, the kernel lets nobody write to it any more, without a
 * word to anybody: what was mounted for writing is read-only. One that was mounted read-only is so
 * in both places of mountinfo. */

#include "probe/areas.h"
#include "probe/mountinfo.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/statvfs.h>

#define MOUNTS_MAX 1024
#define MIB        (1024ULL * 1024)

static int64_t permille(uint64_t part, uint64_t whole)
{
    return (int64_t)(part / (whole / 1000 + (whole % 1000 != 0)));
}

static void set_room(struct observation *o, const struct statvfs *st)
{
    uint64_t unit = st->f_frsize ? st->f_frsize : 1;

    observation_set(o, ITEM_TOTAL_MIB, (int64_t)(st->f_blocks * unit / MIB));
    observation_set(o, ITEM_FREE_MIB, (int64_t)(st->f_bavail * unit / MIB));
    if (st->f_blocks > 0)
        observation_set(o, ITEM_FREE_PERMILLE, permille(st->f_bavail, st->f_blocks));
    if (st->f_files > 0)
        observation_set(o, ITEM_INODES_FREE_PERMILLE, permille(st->f_favail, st->f_files));
}

static void look_at_room(const struct probe *p, const char *name, struct observation *o)
{
    char path[PATH_MAX];
    struct statvfs st;

    STR_PRINTF(path, "%s%s", p->root, name);
    if (statvfs(path, &st) == 0)
        set_room(o, &st);
}

static bool is_on_disk(const struct mount_line *m)
{
    return str_startswith(m->source, "/dev/") && !streq(m->type, "squashfs") &&
           !streq(m->type, "iso9660") && !streq(m->type, "erofs");
}

static void look_at_systems(const struct probe *p, struct report *r)
{
    _cleanup_(freep) struct mount_line *mounts = xcalloc(MOUNTS_MAX, sizeof(*mounts));
    size_t n = mounts_read(p, mounts, MOUNTS_MAX);

    for (size_t i = 0; i < n; i++) {
        struct observation o = observation_make(AREA_DISK, mounts[i].path);
        bool on_disk = is_on_disk(&mounts[i]);

        if (on_disk && !mounts[i].read_only)
            observation_set(&o, ITEM_FORCED_READ_ONLY, mounts[i].system_read_only);
        if (streq(mounts[i].path, "/") || streq(mounts[i].path, "/dev/shm"))
            look_at_room(p, mounts[i].path, &o);
        STR_COPY(o.label, mounts[i].type);
        if (o.known)
            r->tell(r, &o);
    }
}

static void look_at_controllers(const struct probe *p, struct report *r)
{
    _cleanup_names_ struct names found = {0};
    char state[32];

    node_names(p, &found, "/sys/class/nvme");
    for (size_t i = 0; i < found.n; i++) {
        struct observation o = observation_make(AREA_DISK, found.name[i]);

        if (node_file(p, state, sizeof(state), "/sys/class/nvme/%s/state", found.name[i]) < 0)
            continue;
        str_sanitize(o.label, sizeof(o.label), state, strlen(state));
        /* Between the two it is coming or going, and one does not know. */
        if (streq(state, "live") || streq(state, "dead"))
            observation_set(&o, ITEM_LIVE, streq(state, "live"));
        r->tell(r, &o);
    }
}

enum ended area_disk(const struct probe *p, const char *subject, struct report *r)
{
    look_at_controllers(p, r);
    look_at_systems(p, r);
    return ENDED_DONE;
}

/* One that hangs is told by its hanging. */
enum ended area_mount(const struct probe *p, const char *path, struct report *r)
{
    struct observation o = observation_make(AREA_MOUNTS, path);
    usec_t began = mono_us();
    struct statvfs st;
    int failed = statvfs(path, &st) < 0 ? errno : 0;

    /* What a service may not see is not known to be ill. */
    if (failed == EACCES || failed == EPERM || failed == ENOENT) {
        STR_PRINTF(r->why, "%s", strerror(failed));
        return ENDED_FAILED;
    }
    observation_set(&o, ITEM_ERROR, failed);
    observation_set(&o, ITEM_ANSWER_US, mono_us() - began);
    if (failed == 0)
        set_room(&o, &st);
    r->tell(r, &o);
    return ENDED_DONE;
}
