/* SPDX-License-Identifier: Apache-2.0 */

/* Policy files: whatever is in one, it is refused with a text, or makes a sound policy that reads
 * the same again when it is written down. */

#include "config/policy_file.h"
#include "core/model/event_fields.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    struct policy p = {.max_restarts = 4711}, again;
    struct err e = {0};
    char where[128];

    if (size > 4096)
        return 0;
    if (policy_parse((const char *)data, size, "f", &p, &e) < 0) {
        assert(e.code == -EINVAL && strlen(e.text) > 4);
        assert(p.max_restarts == 4711);
        return 0;
    }
    assert(policy_check(&p, NULL) == 0);
    policy_format(&p, &text);
    assert(policy_parse(strbuf_str(&text), text.len, "f", &again, &e) == 0);
    assert(!fields_differ(event_body(EVENT_POLICY)->sub, &p, &again, where, sizeof(where))[0]);
    return 0;
}
