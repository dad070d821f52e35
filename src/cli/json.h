/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_JSON_H
#define REKNIT_CLI_JSON_H

/* JSON is UTF-8, a file's name is any bytes. */

#include <jansson.h>

/* s as it is, or printable when it is not UTF-8. Never NULL. */
json_t *cli_json_text(const char *s);

#endif
