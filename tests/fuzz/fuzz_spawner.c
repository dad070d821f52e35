/* SPDX-License-Identifier: Apache-2.0 */

/* Any datagram at all: what is accepted is well formed, and nothing is asked that is not listed. */

#include "spawner/request.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = {0};
    struct request q;
    int r = request_parse((const char *)data, size, &q, &e);

    if (r < 0) {
        assert(e.code == r && e.text[0] != '\0');
        return 0;
    }
    assert(size <= REQUEST_MAX && q.id >= 0);
    assert(q.op == REQUEST_KILL || q.op == REQUEST_START_ADAPTER || q.op == REQUEST_START_READER);
    assert(q.op != REQUEST_START_READER || q.uid != (uid_t)-1);
    return 0;
}
