/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_FLIGHT_JSON_TEXT_H
#define REKNIT_FLIGHT_JSON_TEXT_H

/* JSON (RFC 8259) as the same tree, for dumps that a rank writes in this form. Not jansson: a tree
 * of it takes ten times the memory of the text, and has no limit. */

#include "flight/tree.h"

#define JSON_TEXT_DEPTH_MAX 64

/* -EBADMSG, -E2BIG; e names the place. */
int json_text_read(const char *data, size_t len, struct tree *t, struct tree_value *ret,
                   struct err *e);

#endif
