/* SPDX-License-Identifier: Apache-2.0 */
#include "base/names.h"

#include <string.h>

const char *names_get(const char *const *table, size_t n, int i)
{
    return i >= 0 && (size_t)i < n ? table[i] : NULL;
}

int names_find(const char *const *table, size_t n, const char *s)
{
    for (size_t i = 0; i < n; i++)
        if (table[i] && strcmp(table[i], s) == 0)
            return (int)i;
    return -EINVAL;
}
