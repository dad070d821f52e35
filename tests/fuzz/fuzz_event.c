/* SPDX-License-Identifier: Apache-2.0 */

/* What stands in a journal: it is refused with a reason, or it is an event whose text is the same
 * however often it is written and read. The first byte chooses the kind. */

#include "base/str.h"
#include "wire/codec.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event e = {0}, again = {0};
    char *json, *once, *twice;
    struct err err = {0};

    if (size < 1)
        return 0;
    e.kind = again.kind = (enum event_kind)(data[0] % EVENT_MAX);
    json = strndup((const char *)data + 1, size - 1);
    if (codec_decode(json, &e, &err) < 0) {
        assert(err.code < 0 && err.text[0] != '\0');
        free(json);
        return 0;
    }
    once = codec_encode(&e);
    assert(codec_decode(once, &again, &err) == 0);
    twice = codec_encode(&again);
    assert(streq(once, twice));
    free(json);
    free(once);
    free(twice);
    return 0;
}
