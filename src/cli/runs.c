/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runs.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/state.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_PER_RUN 10000

/* The number in "run-N", 0 = it is no such name. */
static unsigned run_number(const char *name)
{
    long long v;

    if (!str_startswith(name, "run-") || str_to_i64(name + 4, &v) < 0 || v <= 0 || v >= UINT32_MAX)
        return 0;
    return (unsigned)v;
}

/* Only files and no folders: what is in there was written by reknit. */
static void remove_run(const char *path)
{
    _cleanup_(closedirp) DIR *dir = opendir(path);
    struct dirent *entry;

    for (int i = 0; dir && i < FILES_PER_RUN && (entry = readdir(dir)); i++)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    rmdir(path);
}

static unsigned last_run(const char *job)
{
    _cleanup_(closedirp) DIR *dir = opendir(job);
    const struct dirent *entry;
    unsigned last = 0;

    while (dir && (entry = readdir(dir)))
        if (run_number(entry->d_name) > last)
            last = run_number(entry->d_name);
    return last;
}

int runs_begin(const char *job, unsigned *ret_number, char ret_path[PATH_MAX], struct err *e)
{
    unsigned number = last_run(job) + 1;
    char path[PATH_MAX];
    int r;

    if (number > RUNS_KEPT && state_path(path, NULL, "%s/run-%u", job, number - RUNS_KEPT) >= 0)
        remove_run(path);
    r = state_path(path, e, "%s/run-%u", job, number);
    if (r >= 0)
        r = state_make_folders(path, e);
    if (r < 0)
        return r;
    *ret_number = number;
    str_copy(ret_path, PATH_MAX, path);
    return 0;
}

void runs_archive(const char *job, unsigned number, const char *journal)
{
    static const char *const files[] = {"", "-wal", "-shm", "-last"}; /* read with any journal */
    char folder[PATH_MAX], from[PATH_MAX], to[PATH_MAX];

    if (state_path(folder, NULL, "%s/run-%u", job, number - 1) < 0)
        return;
    mkdir(folder, 0700); /* it may have been tidied away */
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        if (state_path(from, NULL, "%s%s", journal, files[i]) >= 0 &&
            state_path(to, NULL, "%s/journal.db%s", folder, files[i]) >= 0)
            rename(from, to);
}
