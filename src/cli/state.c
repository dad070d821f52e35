/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/state.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/vec.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BASE_MAX 64
#define JOBS_LISTED   10000

bool state_name_is_valid(const char *name)
{
    size_t n = strlen(name);

    if (n == 0 || n >= JOB_NAME_LEN || !isalnum((unsigned char)name[0]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("._-+@", name[i]))
            return false;
    return true;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The script that a launcher starts says more than the launcher. */
static const char *pick_script(char *const *argv)
{
    static const char *const suffixes[] = {".py", ".sh", ".pl", ".jl"};

    for (size_t i = 1; argv[i]; i++)
        for (size_t k = 0; k < ARRAY_SIZE(suffixes); k++)
            if (str_endswith(argv[i], suffixes[k]))
                return base_name(argv[i]);
    return base_name(argv[0]);
}

void state_default_name(char *const *argv, char ret[JOB_NAME_LEN])
{
    char base[NAME_BASE_MAX], cwd[PATH_MAX];
    uint64_t h = HASH_INIT;

    if (!getcwd(cwd, sizeof(cwd)))
        cwd[0] = '\0';
    h = hash_bytes(h, cwd, strlen(cwd) + 1);
    for (size_t i = 0; argv[i]; i++)
        h = hash_bytes(h, argv[i], strlen(argv[i]) + 1);
    str_copy(base, sizeof(base), pick_script(argv));
    for (char *s = base; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("._-+@", *s))
            *s = '_';
    snprintf(ret, JOB_NAME_LEN, "%s%s-%06x", isalnum((unsigned char)base[0]) ? "" : "job", base,
             (unsigned)(h & 0xffffff));
}

int state_path(char ret[PATH_MAX], struct err *e, const char *format, ...)
{
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(ret, PATH_MAX, format, ap);
    va_end(ap);
    return n < PATH_MAX ? 0 : err_set(e, -ENAMETOOLONG, "the path of the state folder is too long");
}

int state_root(char ret[PATH_MAX], struct err *e)
{
    const char *ours = getenv("REKNIT_STATE_DIR"), *xdg = getenv("XDG_STATE_HOME"),
               *home = getenv("HOME");
    char cwd[PATH_MAX];

    if (ours && ours[0] == '/')
        return state_path(ret, e, "%s", ours);
    if (ours && ours[0] != '\0') {
        if (!getcwd(cwd, sizeof(cwd)))
            return err_set(e, -errno, "REKNIT_STATE_DIR is relative, and to what cannot be told");
        return state_path(ret, e, "%s/%s", cwd, ours);
    }
    if (xdg && xdg[0] == '/') /* the specification: a relative path is to be ignored */
        return state_path(ret, e, "%s/reknit", xdg);
    if (home && home[0] == '/')
        return state_path(ret, e, "%s/.local/state/reknit", home);
    return err_set(e, -ENOENT, "where to keep the state? Set HOME or REKNIT_STATE_DIR");
}

int state_journal_path(const char *name, char ret[PATH_MAX], struct err *e)
{
    char root[PATH_MAX];
    int r = state_root(root, e);

    if (r < 0)
        return r;
    if (!state_name_is_valid(name))
        return err_set(e, -EINVAL, "'%s' is no name of a job", name);
    return state_path(ret, e, "%s/%s/journal.db", root, name);
}

int state_make_folders(const char *path, struct err *e)
{
    char part[PATH_MAX];
    struct stat st;

    STR_COPY(part, path);
    for (char *s = part + 1;; s++) {
        char c = *s;

        if (c != '/' && c != '\0')
            continue;
        *s = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return err_set(e, -errno, "%s: %s", part, strerror(errno));
        if (c == '\0')
            break;
        *s = c;
    }
    if (access(part, W_OK | X_OK) < 0 || stat(part, &st) < 0)
        return err_set(e, -errno, "%s: %s", part, strerror(errno));
    return S_ISDIR(st.st_mode) ? 0 : err_set(e, -ENOTDIR, "%s: %s", part, strerror(ENOTDIR));
}

struct names {
    VEC(char *) v;
};

static void names_done(struct names *n)
{
    VEC_FOREACH (&n->v, s)
        free(*s);
    VEC_DONE(&n->v);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int state_each_job(int (*fn)(void *ctx, const char *name), void *ctx, struct err *e)
{
    __attribute__((cleanup(names_done))) struct names names = {0};
    _cleanup_(closedirp) DIR *dir = NULL;
    char root[PATH_MAX];
    struct dirent *entry;
    int r = state_root(root, e);

    if (r < 0)
        return r;
    dir = opendir(root);
    if (!dir)
        return errno == ENOENT ? 0 : err_set(e, -errno, "%s: %s", root, strerror(errno));
    while ((entry = readdir(dir)) && names.v.n < JOBS_LISTED) {
        char path[PATH_MAX];

        if (state_name_is_valid(entry->d_name) &&
            state_path(path, NULL, "%s/%s/journal.db", root, entry->d_name) == 0 &&
            access(path, F_OK) == 0)
            *VEC_PUSH(&names.v) = xstrdup(entry->d_name);
    }
    if (names.v.n > 0)
        qsort(names.v.v, names.v.n, sizeof(names.v.v[0]), compare_names);
    VEC_FOREACH (&names.v, name) {
        r = fn(ctx, *name);
        if (r < 0)
            return r;
    }
    return 0;
}
