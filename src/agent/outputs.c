/* SPDX-License-Identifier: Apache-2.0 */

/* What a job's record names are the files of its batch script. Where `srun --output` or a script
 * sends the output of tasks is seen here only: the standard output and error of their processes. A
 * file that all tasks share is written by srun, which has it open under another number, for
 * writing alone.
 *
 * The links of /proc say what is open. Reading one asks no file system, but if its process closes
 * the file in that very moment, the last to let go of it is who reads: that may hang, so it is done
 * aside. Whether it is a regular file would have to be asked of its file system; who reads it
 * finds out. */

#include "agent/outputs.h"

#include "base/alloc.h"
#include "base/aside.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/proctree.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROCESSES_MAX 16384 /* of one look; more are not looked at */
#define FOUND_MAX     4096  /* files of one look; likewise */
#define SRUN          "srun"
#define SRUN_FILES    64 /* that are told of one srun */

struct attempt {
    struct attempt_id id;
    VEC(uint64_t) told; /* hashes of paths */
    bool full;          /* said so */
};

struct found {
    struct attempt_id whose;
    unsigned writers;
    uint64_t hash;
    char *path;
};

/* Of one attempt, to be told together. */
struct batch {
    struct attempt *attempt;
    struct node_paths paths;
    uint64_t hashes[OUTPUTS_MAX];
    size_t n;
};

struct outputs {
    outputs_fn fn;
    void *ctx;
    VEC(struct attempt) attempts;
    VEC(pid_t) pids;
    VEC(struct attempt_id) asked; /* for each of them */
    VEC(struct found) found;
};

struct outputs *outputs_new(outputs_fn fn, void *ctx)
{
    struct outputs *o = xnew(struct outputs);

    o->fn = fn;
    o->ctx = ctx;
    return o;
}

struct outputs *outputs_free(struct outputs *o)
{
    if (!o)
        return NULL;
    VEC_FOREACH (&o->attempts, a)
        VEC_DONE(&a->told);
    VEC_DONE(&o->attempts);
    VEC_DONE(&o->pids);
    VEC_DONE(&o->asked);
    VEC_DONE(&o->found);
    free(o);
    return NULL;
}

/* ---- of one process, in a child ---- */

/* Not "pipe:[7]", a terminal, "/x (deleted)", or "(unreachable)/x". */
static bool is_of_file(const char *path, size_t len)
{
    static const char *const others[] = {"/dev/", "/proc/", "/sys/"};

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        if (str_startswith(path, others[i]))
            return false;
    return node_path_is_good(path, len) && !str_endswith(path, " (deleted)");
}

/* Of the links of /proc/PID/fd, the mode says for what the file is open. */
static bool add_output(const char *link, mode_t not_open_for, struct strbuf *ret)
{
    char path[NODE_PATH_LEN + 1];
    struct stat st;
    ssize_t n;

    if (lstat(link, &st) < 0 || !(st.st_mode & S_IWUSR) || (st.st_mode & not_open_for))
        return false;
    n = readlink(link, path, sizeof(path) - 1);
    if (n < 0)
        return false;
    path[n] = '\0';
    if (!is_of_file(path, (size_t)n))
        return false;
    strbuf_add(ret, path, (size_t)n + 1);
    return true;
}

static void add_files_of_srun(const char *folder, struct strbuf *ret)
{
    _cleanup_(closedirp) DIR *d = opendir(folder);
    const struct dirent *e;
    char link[64];
    int n = 0;

    while (d && n < SRUN_FILES && (e = readdir(d))) {
        STR_PRINTF(link, "%s/%s", folder, e->d_name);
        n += strtol(e->d_name, NULL, 10) > STDERR_FILENO && add_output(link, S_IRUSR, ret);
    }
}

int outputs_read(pid_t pid, struct strbuf *ret)
{
    char folder[32], link[40];
    struct proc p;
    int r = proc_read(pid, &p);

    if (r < 0 || proc_is_dead(&p))
        return -ESRCH;
    STR_PRINTF(folder, "/proc/%d/fd", (int)pid);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        STR_PRINTF(link, "%s/%d", folder, fd);
        add_output(link, 0, ret);
    }
    if (streq(p.comm, SRUN))
        add_files_of_srun(folder, ret);
    return 0;
}

/* ---- of all ---- */

static void note(struct outputs *o, const struct attempt_id *whose, const char *path, size_t len)
{
    uint64_t hash = hash_bytes(HASH_INIT, path, len);

    VEC_FOREACH (&o->found, f) {
        if (f->hash == hash && attempt_id_is(&f->whose, whose)) {
            f->writers++;
            return;
        }
    }
    if (o->found.n < FOUND_MAX)
        *VEC_PUSH(&o->found) =
            (struct found){.whose = *whose, .writers = 1, .hash = hash, .path = xstrdup(path)};
}

static void on_read(void *ctx, size_t i, const struct strbuf *text)
{
    struct outputs *o = ctx;
    const char *last = NULL;

    if (!text)
        return;
    for (size_t at = 0; at < text->len;) {
        const char *path = text->s + at;
        size_t len = strlen(path);

        if (!last || !streq(last, path)) /* mostly, output and error are one file */
            note(o, &o->asked.v[i], path, len);
        last = path;
        at += len + 1;
    }
}

/* Those of an attempt together, of them what most of its processes write to first. */
static int by_writers(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    if (x->whose.job != y->whose.job)
        return x->whose.job < y->whose.job ? -1 : 1;
    if (x->whose.restart != y->whose.restart)
        return x->whose.restart < y->whose.restart ? -1 : 1;
    if (x->whose.user != y->whose.user)
        return x->whose.user < y->whose.user ? -1 : 1;
    if (x->writers != y->writers)
        return x->writers > y->writers ? -1 : 1;
    return strcmp(x->path, y->path);
}

static struct attempt *get_attempt(struct outputs *o, const struct attempt_id *whose)
{
    struct attempt *a;

    VEC_FOREACH (&o->attempts, known)
        if (attempt_id_is(&known->id, whose))
            return known;
    a = VEC_PUSH(&o->attempts);
    a->id = *whose;
    return a;
}

static bool is_told(const struct attempt *a, uint64_t hash)
{
    VEC_FOREACH (&a->told, t)
        if (*t == hash)
            return true;
    return false;
}

static void tell_batch(struct outputs *o, struct batch *b)
{
    if (b->n > 0 && o->fn(o->ctx, &b->attempt->id, &b->paths)) {
        for (size_t i = 0; i < b->n; i++)
            *VEC_PUSH(&b->attempt->told) = b->hashes[i];
    }
    b->n = b->paths.len = 0;
}

/* Whether another may be told of the attempt, `waiting` of which are about to. */
static bool has_room(struct attempt *a, size_t waiting)
{
    if (a->told.n + waiting < OUTPUTS_MAX)
        return true;
    if (!a->full)
        log_warning("job %" PRIu32 " writes to more than %d files here: the others are not told",
                    a->id.job, OUTPUTS_MAX);
    a->full = true;
    return false;
}

static void add_to_batch(struct outputs *o, struct batch *b, const struct found *f)
{
    if (is_told(b->attempt, f->hash) || !has_room(b->attempt, b->n))
        return;
    if (!node_paths_add(&b->paths, f->path)) {
        tell_batch(o, b);
        node_paths_add(&b->paths, f->path);
    }
    b->hashes[b->n++] = f->hash;
}

static void tell_all(struct outputs *o)
{
    struct batch b = {0};

    if (o->found.n > 1)
        qsort(o->found.v, o->found.n, sizeof(o->found.v[0]), by_writers);
    VEC_FOREACH (&o->found, f) {
        if (f == o->found.v || !attempt_id_is(&f->whose, &f[-1].whose)) {
            tell_batch(o, &b);
            b.attempt = get_attempt(o, &f->whose);
        }
        add_to_batch(o, &b, f);
    }
    tell_batch(o, &b);
}

void outputs_ask(struct outputs *o, const struct attempt_id *whose, pid_t pid)
{
    if (o->pids.n >= PROCESSES_MAX)
        return;
    *VEC_PUSH(&o->pids) = pid;
    *VEC_PUSH(&o->asked) = *whose;
}

void outputs_look(struct outputs *o)
{
    if (o->pids.n > 0)
        aside_read(o->pids.v, o->pids.n, outputs_read, on_read, o);
    tell_all(o);
    VEC_FOREACH (&o->found, f)
        free(f->path);
    o->pids.n = o->asked.n = o->found.n = 0;
}

void outputs_repeat(struct outputs *o)
{
    VEC_FOREACH (&o->attempts, a)
        a->told.n = 0;
}

void outputs_forget(struct outputs *o, const struct attempt_id *whose)
{
    for (size_t i = o->attempts.n; i-- > 0;) {
        struct attempt *a = &o->attempts.v[i];

        if (!attempt_id_is(&a->id, whose))
            continue;
        VEC_DONE(&a->told);
        VEC_REMOVE(&o->attempts, i);
    }
}
