/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/request_claim.h"

#include "base/alloc.h"

#include <nettle/base16.h>
#include <nettle/sha2.h>

#define HEX_LEN BASE16_ENCODE_LENGTH(SHA256_DIGEST_SIZE)

char *request_claim(const char *method, const char *target, const char *body, size_t len)
{
    struct sha256_ctx ctx;
    uint8_t digest[SHA256_DIGEST_SIZE];
    char hex[HEX_LEN + 1] = "";

    sha256_init(&ctx);
    sha256_update(&ctx, len, (const uint8_t *)body);
    sha256_digest(&ctx, sizeof(digest), digest);
    base16_encode_update(hex, sizeof(digest), digest);
    return xasprintf("%s %s %s", method, target, hex);
}
