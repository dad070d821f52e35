/* SPDX-License-Identifier: Apache-2.0 */

/* Cleaning a record: any bytes, any nesting of prefixes. */

#include "base/alloc.h"
#include "extract/line.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct log_clock clock = {(usec_t)1781000000 * USEC_PER_SEC, USEC_UNKNOWN, 0};
    char *buf = xmalloc(size + 1), *stripped = xmalloc(size + 1);
    size_t n = line_strip((const char *)data, size, stripped);
    struct line l;

    assert(n <= size);
    line_clean(&clock, (const char *)data, size, buf, &l);
    assert(l.whole == buf && l.whole_len <= n);
    assert(l.text >= l.whole && l.text + l.len == l.whole + l.whole_len);
    assert(memchr(l.whole, '\r', l.whole_len) == NULL && memchr(l.whole, 0, l.whole_len) == NULL);
    assert(l.rank >= RANK_NONE && l.local_rank >= RANK_NONE && l.repeats >= 1);
    assert(strlen(l.node) < sizeof(l.node));
    free(stripped);
    free(buf);
    return 0;
}
