/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_CLEANUP_H
#define REKNIT_BASE_CLEANUP_H

/* Scope-bound ownership.
 *
 *   _cleanup_(freep) char *s = xstrdup("x");
 *   return TAKE(s);                             ownership moves to the caller
 *
 * A type `struct foo` with `struct foo *foo_free(struct foo *)` gets its clean-up function
 * from DEFINE_CLEANUP(struct foo *, foo_free), used as _cleanup_(foo_freep). */

#include <stdlib.h>
#include <unistd.h>
#include <stdio.h>
#include <dirent.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

#define TAKE(p)                                                                                    \
    __extension__({                                                                                \
        __typeof__(p) *_src = &(p);                                                                \
        __typeof__(p) _taken = *_src;                                                              \
        *_src = NULL;                                                                              \
        _taken;                                                                                    \
    })

/* The same for file descriptors, where "nothing" is -1. */
static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

#define DEFINE_CLEANUP(type, func)                                                                 \
    static inline void func##p(type *p)                                                            \
    {                                                                                              \
        if (*p)                                                                                    \
            func(*p);                                                                              \
    }                                                                                              \
    struct _cleanup_needs_semicolon_

static inline void freep(void *p)
{
    free(*(void **)p);
}

/* Closes *fd if it is open; keeps errno, so that it can run on an error path. */
void closep(int *fd);

static inline void fclosep(FILE **f)
{
    if (*f)
        fclose(*f);
}

static inline void closedirp(DIR **d)
{
    if (*d)
        closedir(*d);
}

#endif
