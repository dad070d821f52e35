/* SPDX-License-Identifier: Apache-2.0 */

/* Component by component: a literal one is appended, for a wild one the folder is listed. */

#include "reader/find.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "base/vec.h"
#include "reader/pattern.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

struct find {
    find_fn fn;
    void *ctx;
    size_t left, entries; /* that may still be told, and looked at */
    bool folders;         /* those are told, in place of files */
    bool cut;
};

struct names {
    VEC(char *) v;
};

static void names_done(struct names *n)
{
    VEC_FOREACH (&n->v, name)
        free(*name);
    VEC_DONE(&n->v);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list(struct find *f, const char *folder, const char *part, size_t len,
                 struct names *ret)
{
    _cleanup_(closedirp) DIR *d = opendir(*folder ? folder : "/");
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        if (f->entries == 0 || ret->v.n >= f->left) {
            f->cut = true;
            break;
        }
        f->entries--;
        if (!streq(e->d_name, ".") && !streq(e->d_name, "..") && pattern_fits(part, len, e->d_name))
            *VEC_PUSH(&ret->v) = xstrdup(e->d_name);
    }
    if (ret->v.n > 1)
        qsort(ret->v.v, ret->v.n, sizeof(ret->v.v[0]), by_name);
}

static void tell(struct find *f, const char *path)
{
    if (f->left == 0) {
        f->cut = true;
        return;
    }
    f->left--;
    f->fn(f->ctx, path);
}

static bool exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

/* rest begins with '/'; base is the path so far, which grows and shrinks again. */
static void descend(struct find *f, struct strbuf *base, const char *rest)
{
    size_t len, at = base->len;
    const char *part;
    bool last;

    rest += strspn(rest, "/");
    part = rest;
    len = strcspn(part, "/");
    last = part[len] == '\0';
    if (last && f->folders) {
        tell(f, at == 0 ? "/" : strbuf_str(base));
        return;
    }
    if (!pattern_is_wild_part(part, len)) {
        strbuf_addc(base, '/');
        pattern_literal(part, len, base);
        if (!last)
            descend(f, base, part + len);
        else if (exists(strbuf_str(base)))
            tell(f, strbuf_str(base));
    } else {
        __attribute__((cleanup(names_done))) struct names names = {0};

        list(f, strbuf_str(base), part, len, &names);
        VEC_FOREACH (&names.v, name) {
            strbuf_addc(base, '/');
            strbuf_adds(base, *name);
            if (last)
                tell(f, strbuf_str(base));
            else
                descend(f, base, part + len);
            base->len = at;
            base->s[at] = '\0';
        }
    }
    base->len = at;
    if (base->s)
        base->s[at] = '\0';
}

bool find_files(const char *path, size_t max, find_fn fn, void *ctx)
{
    struct find f = {.fn = fn, .ctx = ctx, .left = max, .entries = FIND_ENTRIES_MAX};
    _cleanup_strbuf_ struct strbuf base = {0};

    descend(&f, &base, path);
    return !f.cut;
}

void find_folders(const char *path, size_t max, find_fn fn, void *ctx)
{
    struct find f = {
        .fn = fn, .ctx = ctx, .left = max, .entries = FIND_ENTRIES_MAX, .folders = true};
    _cleanup_strbuf_ struct strbuf base = {0};

    descend(&f, &base, path);
}

bool find_has_folder(const char *path)
{
    _cleanup_strbuf_ struct strbuf folder = {0};
    const char *part = path + strspn(path, "/");
    struct stat st;

    strbuf_addc(&folder, '/');
    while (part[strcspn(part, "/")] == '/') {
        size_t len = strcspn(part, "/");

        if (pattern_is_wild_part(part, len))
            break;
        pattern_literal(part, len, &folder);
        strbuf_addc(&folder, '/');
        part += len + strspn(part + len, "/");
    }
    return stat(strbuf_str(&folder), &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}
