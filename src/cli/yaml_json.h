/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_YAML_JSON_H
#define REKNIT_CLI_YAML_JSON_H

#include "base/str.h"

#include <jansson.h>

/* YAML that we wrote ourselves, as JSON: what is not quoted and looks like a number or a boolean is
 * one. NULL: it is no YAML. The caller's. */
json_t *yaml_json(const struct strbuf *text);

#endif
