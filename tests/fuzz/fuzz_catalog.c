/* SPDX-License-Identifier: Apache-2.0 */

/* A catalogue file of a site: refused with a message, or usable. */

#include "base/alloc.h"
#include "extract/check.h"
#include "extract/matcher.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *ctx, const struct entry *e, const char *complaint)
{
    assert(e->line > 0 && *complaint);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(catalog_freep) struct catalog *c = NULL;
    _cleanup_(matcher_freep) struct matcher *m = NULL;
    struct err e = {0};

    if (catalog_load_text("fuzz.yaml", (const char *)data, size, &c, &e) < 0) {
        assert(strncmp(e.text, "fuzz.yaml:", 10) == 0);
        return 0;
    }
    if (matcher_new(c, &m, &e) < 0) {
        assert(strncmp(e.text, "fuzz.yaml:", 10) == 0);
        return 0;
    }
    catalog_check(m, ignore, NULL);
    return 0;
}
