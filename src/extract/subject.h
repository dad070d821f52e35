/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_SUBJECT_H
#define REKNIT_EXTRACT_SUBJECT_H

/* Which node a report on hardware is about, by the report's own words. */

#include "core/model/signal.h"

/* s[0..len): a message without its prefixes. ret is written only where a name is found. */
bool subject_node(const char *s, size_t len, char ret[NODE_NAME_LEN]);

#endif
