/* SPDX-License-Identifier: Apache-2.0 */
#include "flight/dump.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

void dump_folder_done(struct dump_folder *d)
{
    VEC_FOREACH (&d->files, f) {
        free(f->name);
        free(f->error);
    }
    VEC_DONE(&d->files);
}

/* "nccl_trace_rank_12", "_dump_12", "rank12.json"; -1: no rank. */
static int32_t rank_of_name(const char *name)
{
    static const char *const suffixes[] = {".json", ".pickle", ".pkl", ".bin"};
    size_t end = strlen(name), from;
    int64_t rank = 0;

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
        if (str_endswith(name, suffixes[i])) {
            end -= strlen(suffixes[i]);
            break;
        }
    for (from = end; from > 0 && name[from - 1] >= '0' && name[from - 1] <= '9'; from--)
        ;
    for (size_t i = from; i < end && rank < FLIGHT_RANKS_MAX; i++)
        rank = 10 * rank + (name[i] - '0');
    return from == end || rank >= FLIGHT_RANKS_MAX || name[0] == '.' ? -1 : (int32_t)rank;
}

static int add_file(struct dump_folder *d, const char *path, const char *name, struct err *e)
{
    int32_t rank = rank_of_name(name);
    size_t i;

    if (rank < 0)
        return 0;
    i = VEC_BISECT(&d->files, f, f->rank < rank);
    if (i < d->files.n && d->files.v[i].rank == rank)
        return err_set(e, -EEXIST,
                       "%s: %s and %s are both of rank %d; put the dumps of one standstill into a "
                       "folder of their own",
                       path, d->files.v[i].name, name, rank);
    VEC_INSERT(&d->files, i)->rank = rank;
    d->files.v[i].name = xstrdup(name);
    return 0;
}

int dump_folder_list(const char *path, struct dump_folder *ret, struct err *e)
{
    _cleanup_(closedirp) DIR *dir = opendir(path);
    struct dirent *entry;
    int r = 0;

    if (!dir)
        return err_set(e, -errno, "%s: %s", path, strerror(errno));
    while (r == 0 && (errno = 0, entry = readdir(dir)))
        r = add_file(ret, path, entry->d_name, e);
    if (r == 0 && errno)
        return err_set(e, -errno, "%s: %s", path, strerror(errno));
    if (r == 0 && ret->files.n == 0)
        return err_set(e, -ENOENT, "%s: holds no dump: no file whose name ends in a rank", path);
    return r;
}

/* One that is too large is refused before it is read. */
static int read_file(const char *path, struct strbuf *out, struct err *e)
{
    struct stat st;

    strbuf_reset(out);
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > DUMP_BYTES_MAX)
        return err_set(e, -EFBIG, "%s: larger than any dump (%u MiB)", path, DUMP_BYTES_MAX >> 20);
    return file_read(path, DUMP_BYTES_MAX, out, e);
}

static int read_dump(const char *folder, const struct dump_file *file, struct strbuf *data,
                     struct tree *t, struct flight *f, struct err *e)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", folder, file->name);
    struct flight_rank *rank = flight_add_rank(f, file->rank);
    int r = read_file(path, data, e);

    if (r < 0) {
        rank->unread = true;
        return r;
    }
    r = dump_read(data->s ? data->s : "", data->len, t, f, rank, e);
    rank->unread = r < 0;
    return r < 0 ? err_prefix(e, r, "%s", path) : 0;
}

size_t dump_folder_read(const char *path, struct dump_folder *d, struct flight *f,
                        dump_progress_fn progress, void *ctx)
{
    _cleanup_strbuf_ struct strbuf data = {0};
    _cleanup_(tree_done) struct tree tree = {0};
    size_t bad = 0;

    VEC_FOREACH (&d->files, file) {
        struct err e = {0};

        if (progress)
            progress(ctx, (size_t)(file - d->files.v), d->files.n);
        if (read_dump(path, file, &data, &tree, f, &e) == 0)
            continue;
        file->error = xstrdup(e.text);
        bad++;
    }
    return bad;
}
