/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_WIRE_REQUEST_CLAIM_H
#define REKNIT_WIRE_REQUEST_CLAIM_H

/* What a credential must say so that it is good for one HTTP request, and for no other:
 *
 *   POST /v1/jobs/4242/mode 2f2ef0f7cd8e...
 *
 * the method, the target as it is sent (path and query), and the SHA-256 of the body, in lower-case
 * hexadecimal digits; without a body, of nothing. */

#include <stddef.h>

/* Owned by the caller. */
char *request_claim(const char *method, const char *target, const char *body, size_t len);

#endif
