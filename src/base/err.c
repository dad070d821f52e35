/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include "base/str.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int code, const char *format, ...)
{
    va_list ap;

    assert(code < 0);
    if (!e)
        return code;
    e->code = code;
    va_start(ap, format);
    vsnprintf(e->text, sizeof(e->text), format, ap);
    va_end(ap);
    return code;
}

int err_prefix(struct err *e, int code, const char *format, ...)
{
    char prefix[sizeof(e->text)], rest[sizeof(e->text)];
    size_t n;
    va_list ap;

    if (!e)
        return code;
    va_start(ap, format);
    vsnprintf(prefix, sizeof(prefix), format, ap);
    va_end(ap);
    str_copy(rest, sizeof(rest), e->text);
    str_copy(e->text, sizeof(e->text), prefix);
    n = strlen(e->text);
    if (n + 2 < sizeof(e->text)) {
        str_copy(e->text + n, sizeof(e->text) - n, ": ");
        str_copy(e->text + n + 2, sizeof(e->text) - n - 2, rest);
    }
    return e->code;
}
