/* SPDX-License-Identifier: Apache-2.0 */

/* A pattern, a NUL, a file name: what comes out is absolute, bounded, and matches without end. */

#include "reader/pattern.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *pattern, const char *name, const struct pattern_names *names)
{
    _cleanup_strbuf_ struct strbuf path = {0}, literal = {0};
    const char *last;

    if (pattern_expand(pattern, "/work", names, &path) < 0)
        return;
    assert(path.len < PATH_MAX && path.s[0] == '/');
    pattern_literal(path.s, path.len, &literal);
    assert(literal.len <= path.len);
    last = strrchr(path.s, '/') + 1;
    pattern_fits(last, strlen(last), name);
    if (pattern_is_wild(path.s))
        return;
    last = strrchr(path.s, '/') + 1;
    assert(pattern_fits(last, strlen(last), strrchr(strbuf_str(&literal), '/') + 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pattern_names plain = {.numbers.job = 7, .numbers.array_task = LOG_NO_TASK};
    struct pattern_names task = {.numbers.job = 9,
                                 .numbers.array_job = 7,
                                 .numbers.array_task = 2,
                                 .job_name = "a b",
                                 .user_name = "u"};
    char text[512];
    size_t n = size < sizeof(text) - 2 ? size : sizeof(text) - 2;

    memcpy(text, data, n);
    text[n] = text[n + 1] = '\0';
    check(text, text + strlen(text) + (strlen(text) < n), &plain);
    check(text, text + strlen(text) + (strlen(text) < n), &task);
    return 0;
}
