/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_PROBE_MOUNTINFO_H
#define REKNIT_PROBE_MOUNTINFO_H

/* Lines of /proc/PID/mountinfo (proc(5)). */

#include "probe/areas.h"

struct mount_line {
    char path[SUBJECT_LEN];
    char type[32];
    char source[128];
    bool read_only;        /* as it was mounted */
    bool system_read_only; /* the file system itself */
};

/* Whether that is a line of it. The line is written over. */
bool mount_line_parse(char *line, struct mount_line *ret);

/* Those of the node, each path once (what is mounted over another hides it). At most max. */
size_t mounts_read(const struct probe *p, struct mount_line *ret, size_t max);

/* Another host serves it. */
bool mount_is_remote(const struct mount_line *m);

#endif
