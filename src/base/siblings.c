/* SPDX-License-Identifier: Apache-2.0 */
#include "base/siblings.h"

#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The folder of the running program, as the kernel knows it. */
static int own_folder(char ret[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
    char *slash;

    if (n < 0)
        return -errno;
    ret[n] = '\0';
    slash = strrchr(ret, '/');
    if (!slash)
        return -ENOENT;
    *slash = '\0';
    return 0;
}

int sibling_find(const char *name, char *ret, size_t size)
{
    /* beside it; from bin, sbin and libexec/reknit to each other; the build folder's bin; plugins
     */
    static const char libexec[] = "../" REKNIT_LIBEXEC; /* clang doubts it within a list */
    static const char lib[] = "../" REKNIT_LIB;
    static const char *const ways[] = {
        ".", libexec, "../sbin", "../bin", "../../sbin", "../../bin", lib,
    };
    char own[PATH_MAX], path[PATH_MAX];
    int r = own_folder(own);

    str_copy(ret, size, name);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        int n = snprintf(path, sizeof(path), "%s/%s/%s", own, ways[i], name);

        if (n > 0 && (size_t)n < size && access(path, X_OK) == 0) {
            str_copy(ret, size, path);
            return 0;
        }
    }
    str_printf(ret, size, "%s/../" REKNIT_LIBEXEC "/%s", own, name);
    return -ENOENT;
}
