/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include "base/str.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Names of files, keys and nodes are in it, and whoever gave them may not be the one who reads. */
static void make_printable(struct err *e)
{
    char text[sizeof(e->text)];

    str_copy(text, sizeof(text), e->text);
    str_sanitize(e->text, sizeof(e->text), text, strlen(text));
}

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
    make_printable(e);
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
    make_printable(e);
    return e->code;
}

int err_suffix(struct err *e, int code, const char *format, ...)
{
    char suffix[sizeof(e->text) / 2];
    size_t n, most;
    va_list ap;

    if (!e)
        return code;
    va_start(ap, format);
    vsnprintf(suffix, sizeof(suffix), format, ap);
    va_end(ap);
    most = sizeof(e->text) - strlen(suffix) - sizeof("; ");
    n = strnlen(e->text, most);
    snprintf(e->text + n, sizeof(e->text) - n, "; %s", suffix);
    make_printable(e);
    return e->code;
}
