/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/areas.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 4, 0))) static int
make_path(const struct probe *p, char *ret, size_t size, const char *format, va_list ap)
{
    int head = snprintf(ret, size, "%s", p->root), n;

    if (head < 0 || (size_t)head >= size)
        return -ENAMETOOLONG;
    n = vsnprintf(ret + head, size - (size_t)head, format, ap);
    return n < 0 || (size_t)(head + n) >= size ? -ENAMETOOLONG : 0;
}

static int read_path(const char *path, char *ret, size_t size)
{
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);

    if (n < 0)
        return -errno;
    if (n > 0 && ret[n - 1] == '\n')
        n--;
    ret[n] = '\0';
    return 0;
}

#define PATH_FROM_ARGUMENTS(p, path, format)                                                       \
    __extension__({                                                                                \
        va_list _ap;                                                                               \
        int _r;                                                                                    \
        va_start(_ap, format);                                                                     \
        _r = make_path((p), (path), sizeof(path), (format), _ap);                                  \
        va_end(_ap);                                                                               \
        _r;                                                                                        \
    })

int node_file(const struct probe *p, char *ret, size_t size, const char *format, ...)
{
    char path[PATH_MAX];
    int r = PATH_FROM_ARGUMENTS(p, path, format);

    return r < 0 ? r : read_path(path, ret, size);
}

static bool read_number(const char *path, int64_t *ret)
{
    char text[64], *end;
    long long n;

    if (read_path(path, text, sizeof(text)) < 0)
        return false;
    errno = 0;
    n = strtoll(text, &end, 10);
    if (end == text || errno != 0)
        return false;
    *ret = n;
    return true;
}

bool node_number(const struct probe *p, int64_t *ret, const char *format, ...)
{
    char path[PATH_MAX];

    return PATH_FROM_ARGUMENTS(p, path, format) == 0 && read_number(path, ret);
}

void node_item(const struct probe *p, struct observation *o, enum item i, const char *format, ...)
{
    char path[PATH_MAX];
    int64_t n;

    if (PATH_FROM_ARGUMENTS(p, path, format) == 0 && read_number(path, &n))
        observation_set(o, i, n);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

int node_names(const struct probe *p, struct names *ret, const char *format, ...)
{
    _cleanup_(closedirp) DIR *folder = NULL;
    char path[PATH_MAX];
    struct names found = {0};
    const struct dirent *e;
    int r = PATH_FROM_ARGUMENTS(p, path, format);

    if (r < 0)
        return r;
    folder = opendir(path);
    if (!folder)
        return -errno;
    found.name = xcalloc(PROBE_SUBJECTS_MAX, sizeof(*found.name));
    while (found.n < PROBE_SUBJECTS_MAX && (e = readdir(folder)))
        if (e->d_name[0] != '.' && STR_COPY(found.name[found.n], e->d_name))
            found.n++;
    qsort(found.name, found.n, sizeof(*found.name), by_name);
    *ret = found;
    return 0;
}

void names_done(struct names *n)
{
    free(n->name);
    *n = (struct names){0};
}
