/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_OPENAPI_H
#define REKNIT_API_OPENAPI_H

/* docs/openapi.json, put in by the build. */
extern const char openapi_json[];

#endif
