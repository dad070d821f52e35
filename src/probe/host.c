/* SPDX-License-Identifier: Apache-2.0 */

/* The host itself: its memory, its clock, its processes. */

#include "probe/areas.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>

/* "MemAvailable:   263821408 kB" */
static bool find_kib(const char *text, const char *name, int64_t *ret)
{
    const char *at = strstr(text, name);
    char *end;

    if (!at || (at > text && at[-1] != '\n'))
        return false;
    at += strlen(name);
    *ret = strtoll(at, &end, 10);
    return end > at && str_startswith(end, " kB");
}

static void look_at_memory(const struct probe *p, struct report *r)
{
    struct observation o = observation_make(AREA_MEMORY, "");
    char text[8192];
    int64_t kib;

    if (node_file(p, text, sizeof(text), "/proc/meminfo") < 0)
        return;
    if (find_kib(text, "MemTotal:", &kib))
        observation_set(&o, ITEM_TOTAL_MIB, kib / 1024);
    if (find_kib(text, "MemAvailable:", &kib))
        observation_set(&o, ITEM_AVAILABLE_MIB, kib / 1024);
    if (find_kib(text, "HardwareCorrupted:", &kib))
        observation_set(&o, ITEM_CORRUPTED_KIB, kib);
    r->tell(r, &o);
}

enum ended area_memory(const struct probe *p, const char *subject, struct report *r)
{
    _cleanup_names_ struct names found = {0};

    look_at_memory(p, r);
    node_names(p, &found, "/sys/devices/system/edac/mc");
    for (size_t i = 0; i < found.n; i++) {
        struct observation o = observation_make(AREA_MEMORY, found.name[i]);

        node_item(p, &o, ITEM_UNCORRECTED, "/sys/devices/system/edac/mc/%s/ue_count",
                  found.name[i]);
        node_item(p, &o, ITEM_CORRECTED, "/sys/devices/system/edac/mc/%s/ce_count", found.name[i]);
        if (o.known)
            r->tell(r, &o);
    }
    return ENDED_DONE;
}

/* Reading it needs no privilege, also where setting it is forbidden. */
enum ended area_clock(const struct probe *p, const char *subject, struct report *r)
{
    struct observation o = observation_make(AREA_CLOCK, "");
    struct timex t = {0};

    if (adjtimex(&t) < 0) {
        STR_PRINTF(r->why, "adjtimex: %s", strerror(errno));
        return ENDED_FAILED;
    }
    observation_set(&o, ITEM_SYNCHRONISED, !(t.status & STA_UNSYNC));
    observation_set(&o, ITEM_OFFSET_US, t.status & STA_NANO ? t.offset / 1000 : t.offset);
    r->tell(r, &o);
    return ENDED_DONE;
}

/* Behind the name, which may hold anything, stands the state. */
static char state_of(const struct probe *p, const char *pid)
{
    char text[512];
    const char *close;

    if (node_file(p, text, sizeof(text), "/proc/%s/stat", pid) < 0)
        return '\0';
    close = strrchr(text, ')');
    return close && close[1] == ' ' ? close[2] : '\0';
}

enum ended area_processes(const struct probe *p, const char *subject, struct report *r)
{
    struct observation o = observation_make(AREA_PROCESSES, "");
    _cleanup_(closedirp) DIR *folder = NULL;
    int64_t n = 0, zombies = 0, blocked = 0;
    const struct dirent *e;
    char path[512];

    STR_PRINTF(path, "%s/proc", p->root);
    folder = opendir(path);
    if (!folder) {
        STR_PRINTF(r->why, "%.100s: %s", path, strerror(errno));
        return ENDED_FAILED;
    }
    while ((e = readdir(folder))) {
        char state = isdigit((unsigned char)e->d_name[0]) ? state_of(p, e->d_name) : '\0';

        n += state != '\0';
        zombies += state == 'Z';
        blocked += state == 'D';
    }
    observation_set(&o, ITEM_PROCESSES, n);
    observation_set(&o, ITEM_ZOMBIES, zombies);
    observation_set(&o, ITEM_BLOCKED, blocked);
    r->tell(r, &o);
    return ENDED_DONE;
}
