/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Never inlined: tools/check-purity knows it by name as a place that nothing returns from. */
static __attribute__((noinline, cold, noreturn)) void out_of_memory(void)
{
    fputs("reknit: out of memory\n", stderr);
    abort();
}

static void *checked(void *p)
{
    if (!p)
        out_of_memory();
    return p;
}

void *xmalloc(size_t size)
{
    return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t n, size_t size)
{
    return checked(calloc(n ? n : 1, size ? size : 1));
}

void *xreallocarray(void *p, size_t n, size_t size)
{
    return checked(reallocarray(p, n ? n : 1, size ? size : 1));
}

char *xstrdup(const char *s)
{
    return checked(strdup(s));
}

char *xasprintf(const char *format, ...)
{
    char *s = NULL;
    va_list ap;
    int n;

    va_start(ap, format);
    n = vasprintf(&s, format, ap);
    va_end(ap);
    return checked(n < 0 ? NULL : s);
}

void *xmemdup(const void *p, size_t size)
{
    return memcpy(xmalloc(size), p, size);
}
