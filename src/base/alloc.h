/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_ALLOC_H
#define REKNIT_BASE_ALLOC_H

/* Allocation that never returns NULL: out of memory aborts the process. Inputs are bounded and
 * the journal makes a restart a tested path, so nothing is gained by unwinding. */

#include <stddef.h>

void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
/* Grows or shrinks an array of n items of `size` bytes; aborts on overflow of n * size. */
void *xreallocarray(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));
void *xmemdup(const void *p, size_t size) __attribute__((returns_nonnull));

/* A zeroed object of the type. */
#define xnew(type) ((type *)xcalloc(1, sizeof(type)))

#endif
