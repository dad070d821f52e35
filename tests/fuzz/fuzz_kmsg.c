/* SPDX-License-Identifier: Apache-2.0 */

/* Records of the kernel's log: whatever is in one, its text is one line that ends where it should,
 * and what is said to be the kernel's word is within it. */

#include "agent/kmsg_record.h"
#include "extract/kernel_line.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct kmsg_record r;
    size_t len;

    if (kmsg_record_parse((const char *)data, size, &r) < 0)
        return 0;
    len = strnlen(r.text, sizeof(r.text));
    assert(len < sizeof(r.text) && len <= size && !memchr(r.text, '\n', len));
    for (size_t i = 0; i + KERNEL_WORDS_MIN <= len; i++)
        if (kernel_line_vouches(r.text, i, i + KERNEL_WORDS_MIN))
            assert(!memchr(r.text, '\'', i) && !memchr(r.text, '"', i));
    return 0;
}
