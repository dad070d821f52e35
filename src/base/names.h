/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_NAMES_H
#define REKNIT_BASE_NAMES_H

/* Enum <-> string, one table per enum. Every enum that is stored or shown ends in FOO_MAX, has
 * FOO_INVALID = -EINVAL, and gets both functions from
 *
 *   DECLARE_NAMES(foo, enum foo);                      in the header
 *   DEFINE_NAMES(foo, enum foo, foo_names);            in one .c file, with
 *   static const char *const foo_names[FOO_MAX] = {[FOO_BAR] = "bar", ...};
 *
 * foo_name(v) yields NULL outside of the enum; foo_from_name(s) yields -EINVAL. */

#include <errno.h>
#include <stddef.h>

#define DECLARE_NAMES(prefix, type)                                                                \
    const char *prefix##_name(type v);                                                             \
    type prefix##_from_name(const char *s)

#define DEFINE_NAMES(prefix, type, table)                                                          \
    const char *prefix##_name(type v)                                                              \
    {                                                                                              \
        return names_get(table, sizeof(table) / sizeof((table)[0]), (int)v);                       \
    }                                                                                              \
    type prefix##_from_name(const char *s)                                                         \
    {                                                                                              \
        return (type)names_find(table, sizeof(table) / sizeof((table)[0]), s);                     \
    }                                                                                              \
    struct _names_needs_semicolon_

const char *names_get(const char *const *table, size_t n, int i);
int names_find(const char *const *table, size_t n, const char *s); /* -EINVAL: none such */

#endif
