/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#include <assert.h>
#include <string.h>

json_t *cli_json_text(const char *s)
{
    size_t len = strlen(s), size = 3 * len + 1; /* a replacement character has three bytes */
    _cleanup_(freep) char *clean = NULL;
    json_t *j = json_string(s);

    if (j)
        return j;
    clean = xmalloc(size);
    str_sanitize(clean, size, s, len);
    j = json_string(clean);
    assert(j);
    return j;
}
