/* SPDX-License-Identifier: Apache-2.0 */

/* Hostile text: whatever goes in, what str_sanitize() makes of it is printable UTF-8, bounded,
 * terminated and stays as it is when cleaned again. Durations are parsed or refused, never both. */

#include "base/str.h"
#include "base/time.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sanitize(const char *text, size_t len, size_t room)
{
    char *out = malloc(room), *again = malloc(room);
    size_t n = str_sanitize(out, room, text, len);

    assert(n < room && out[n] == '\0' && strlen(out) == n);
    for (size_t i = 0; i < n; i++)
        assert((unsigned char)out[i] >= 0x20 && out[i] != 0x7f);
    assert(str_sanitize(again, room, out, n) == n);
    assert(memcmp(out, again, n) == 0);
    free(out);
    free(again);
}

static void check_duration(const char *text, size_t len)
{
    static const usec_t untouched = -4711;
    char *s = calloc(1, len + 1), buf[DURATION_TEXT_MAX];
    usec_t us = untouched;
    int r;

    memcpy(s, text, len);
    r = duration_parse(s, &us);

    assert(r == 0 ? us >= 0 : us == untouched && (r == -EINVAL || r == -ERANGE));
    if (r == 0)
        assert(strlen(duration_format(us, buf)) < sizeof(buf));
    free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_sanitize((const char *)data, size, 4 * size + 1);
    check_sanitize((const char *)data, size, size / 2 + 1);
    check_duration((const char *)data, size);
    return 0;
}
