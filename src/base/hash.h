/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_HASH_H
#define REKNIT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a, 64 bit (draft-eastlake-fnv): stable across machines and releases, so it may be stored;
 * not a defence against chosen collisions. Start with HASH_INIT, feed pieces. */
#define HASH_INIT UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
    const unsigned char *s = p;

    for (size_t i = 0; i < n; i++)
        h = (h ^ s[i]) * UINT64_C(0x100000001b3);
    return h;
}

#endif
