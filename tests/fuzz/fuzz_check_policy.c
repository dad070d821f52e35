/* SPDX-License-Identifier: Apache-2.0 */

/* Policies of reknit-agent check: refused with a text and nothing of it is used, or it can be asked
 * about any trouble. */

#include "agent/check_policy.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct check_policy p, untouched;
    struct change c = {.signature = "probe.gpu_lost", .isolation = ISOLATION_REBOOT};
    struct err e = {0};

    p = untouched;
    if (check_policy_parse("policy", (const char *)data, size, &p, &e) < 0) {
        assert(e.code < 0 && strlen(e.text) > 4);
        assert(memcmp(&p, &untouched, sizeof(p)) == 0);
        return 0;
    }
    assert(p.fail.n <= CHECK_PATTERNS_MAX && p.ignore.n <= CHECK_PATTERNS_MAX);
    check_policy_fails(&p, &c);
    return 0;
}
